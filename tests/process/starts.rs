//! Hundreds of starts: what goes wrong in a race goes wrong in one of many.

use super::support::{Lease, keeper, key, programs, shared, skip};

/// Prints the number of each signal that it gets. The C library uses 32 and 33 itself. It forks nothing, so nobody owes
/// it a CHLD.
const LISTENER: &str = r#"
number=1
while [ $number -le 64 ]; do
    case $number in
        9 | 19 | 32 | 33) ;;
        *) trap "echo got-$number" $number ;;
    esac
    number=$((number + 1))
done
echo ready; read line; echo end"#;

/// Starts a short job so often, in so many lanes, each with a key of its own.
fn many(lanes: usize, starts: usize, one: impl Fn(&str) + Sync) {
    std::thread::scope(|scope| {
        for lane in 0..lanes {
            let (key, one) = (format!("{}-{lane}", key()), &one);
            scope.spawn(move || (0..starts).for_each(|_| one(&key)));
        }
    });
}

#[test]
fn none_of_500_jobs_without_a_signal_sees_one() {
    many(10, 50, |key| {
        let out = Lease::new(["run", key, "--", "sh", "-c", LISTENER])
            .on(shared())
            .output()
            .expect_code(0);
        let said = (out.stdout.as_str(), out.stderr.as_str());
        assert_eq!(said, ("ready\nend\n", ""), "{out}");
    });
}

/// The same before the job can set a trap, and for signals that do nothing to who has none: the kernel's own account.
#[test]
fn no_process_of_a_run_gets_a_signal_but_for_the_end_of_a_child() {
    let traced = |file: &std::path::Path| {
        Lease::program("strace")
            .args(["-f", "-qq", "-e", "trace=none", "-e", "signal=all", "-o"])
            .arg(file)
    };
    let file = || keeper::dir("trace").join("signals");
    if programs::find("strace").is_none() || traced(&file()).arg("true").output().code != Some(0) {
        return skip("strace");
    }
    many(4, 25, |key| {
        let file = file();
        traced(&file)
            .args([programs::lease(), "run", key, "--", "true"])
            .on(shared())
            .output()
            .expect_code(0);
        let account = std::fs::read_to_string(&file).expect("an account");
        let signals = || account.lines().filter(|line| line.contains(" --- "));
        assert!(signals().count() > 0, "{account}");
        assert!(
            signals().all(|line| line.contains(" --- SIGCHLD ")),
            "{account}"
        );
    });
}
