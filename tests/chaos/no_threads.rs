//! No thread is to be had: at any step of a run, once or from then on.

use crate::late_start::{can_trace, injecting};
use crate::support::job::{Journal, run_script};
use crate::support::table::column;
use crate::support::{key, shared};

/// More threads than a short run starts one after another in any of its threads.
const STEPS: u32 = 6;

#[test]
fn a_thread_that_can_not_be_had_is_told_in_words_and_leaves_nothing_claimed() {
    if !can_trace() {
        return;
    }
    std::thread::scope(|scope| {
        for step in 1..=STEPS {
            for from_then_on in ["", "+"] {
                scope.spawn(move || {
                    let (key, journal) = (key(), Journal::new());
                    let injection = format!("clone3:error=EAGAIN:when={step}{from_then_on}");
                    let options = ["--ttl", "4s", "--db-timeout", "2s"];
                    let job = format!("echo acted >>{}", journal.path());
                    let out = run_script(&options, &key, &job)
                        .wrapped(injecting(&[&injection]))
                        .on(shared())
                        .output();
                    let acted = !journal.lines().is_empty();
                    match out.code {
                        Some(0) => assert!(acted, "{injection}: {out}"),
                        Some(69 | 125) => {
                            assert!(
                                out.stderr.starts_with("lease: cannot "),
                                "{injection}: {out}"
                            );
                        }
                        _ => panic!("{injection}: {out}"),
                    }
                    assert!(!out.stderr.contains("os error"), "{injection}: {out}");
                    let row = column(shared(), &key, "holder");
                    assert_eq!(row, "", "{injection}: {out}");
                });
            }
        }
    });
}
