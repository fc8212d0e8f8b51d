//! Waiting for facts. A test never sleeps and hopes: it says what it waits for, and fails by that name.

use std::time::{Duration, Instant};

/// How long a fact may take to come true. Generous: it is paid only by a test that fails.
pub const LIMIT: Duration = Duration::from_secs(30);

const POLL: Duration = Duration::from_millis(5);

/// Something that may already be known: a `bool`, an `Option` or a `Result`.
pub trait Fact {
    /// What is known once it is.
    type Value;

    /// The value, or why it is not there yet.
    fn known(self) -> Result<Self::Value, String>;
}

impl Fact for bool {
    type Value = ();

    fn known(self) -> Result<(), String> {
        self.then_some(()).ok_or_else(String::new)
    }
}

impl<T> Fact for Option<T> {
    type Value = T;

    fn known(self) -> Result<T, String> {
        self.ok_or_else(String::new)
    }
}

impl<T, E: std::fmt::Display> Fact for Result<T, E> {
    type Value = T;

    fn known(self) -> Result<T, String> {
        self.map_err(|error| format!(": {error}"))
    }
}

/// Waits until `fact` is known, for at most [`LIMIT`], and returns it. Panics with `what` otherwise.
#[track_caller]
pub fn until<F: Fact>(what: &str, fact: impl FnMut() -> F) -> F::Value {
    until_within(what, LIMIT, fact)
}

/// As [`until`], with a limit of its own. The fact is looked at once more after the limit, so that a machine that
/// was away for the whole of it does not fail a test whose fact is long true.
#[track_caller]
pub fn until_within<F: Fact>(what: &str, limit: Duration, mut fact: impl FnMut() -> F) -> F::Value {
    let start = Instant::now();
    loop {
        let late = start.elapsed() > limit;
        match fact().known() {
            Ok(value) => return value,
            Err(reason) if late => panic!("waited {limit:?} in vain: {what}{reason}"),
            Err(_) => std::thread::sleep(POLL),
        }
    }
}

/// Watches that `fact` is true at every look for the whole of `span`. For what must *not* happen, where there is no
/// event to wait for; keep `span` short.
#[track_caller]
pub fn stays(what: &str, span: Duration, mut fact: impl FnMut() -> bool) {
    let start = Instant::now();
    loop {
        assert!(fact(), "no longer so after {:?}: {what}", start.elapsed());
        if start.elapsed() > span {
            return;
        }
        std::thread::sleep(POLL);
    }
}
