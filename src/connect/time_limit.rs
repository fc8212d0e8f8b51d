//! Work that may hang, within a time limit.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::clock::BootTime;
use crate::fault::Fault;
use crate::text::os_error_text;

use super::error::ConnectError;

/// Runs `work` on a thread of its own, and waits for it no longer than `limit`.
///
/// The thread is not joined. If the limit passes, the thread goes on until the operating system ends its wait. Its result
/// is then dropped.
///
/// # Errors
/// The limit has passed, or no thread could be started.
pub(super) fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ConnectError> {
    let end = BootTime::now() + limit;
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new()
        .name("connect".to_owned())
        .spawn(move || {
            // The limit may have passed.
            let _ = sender.send(work());
        })
        .map_err(|e| {
            ConnectError::new(
                Fault::Busy,
                format!("cannot start a thread: {}", os_error_text(&e)),
            )
        })?;
    loop {
        // The channel's clock stops while the machine is suspended, so the boot-time clock is read every second.
        let left = end.remaining();
        match receiver.recv_timeout(left.min(Duration::from_secs(1))) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) if !end.has_passed() => {}
            Err(RecvTimeoutError::Timeout) => {
                return Err(ConnectError::new(
                    Fault::Timeout,
                    format!("no answer within {:.1} s", limit.as_secs_f64()),
                ));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(ConnectError::new(
                    Fault::Refused,
                    "the connection attempt ended without a result: a bug in lease",
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_hangs_costs_its_limit_and_no_more() {
        let (keep, wait) = mpsc::channel::<()>();
        let before = BootTime::now();
        let late = within(Duration::from_millis(50), move || wait.recv()).unwrap_err();
        assert_eq!(
            (late.fault, late.text.as_str()),
            (Fault::Timeout, "no answer within 0.1 s")
        );
        assert!(BootTime::now().since(before) < Duration::from_secs(20));
        drop(keep);
        assert_eq!(within(Duration::from_secs(60), || 7).unwrap(), 7);
    }
}
