//! Whether a line that will be removed is on the terminal. It lies below everything that writes, because each message
//! clears that line first, a panic's too.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::process;

/// To the beginning of the line, and clear it.
pub(super) const CLEAR: &str = "\r\u{1b}[K";

static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// Remembers whether the line is shown.
pub(super) fn set_shown(is_shown: bool) {
    IS_SHOWN.store(is_shown, Ordering::SeqCst);
}

/// What a message begins with, so that it does not mix with the line.
pub(super) fn clearing() -> &'static str {
    if IS_SHOWN.swap(false, Ordering::SeqCst) && process::is_foreground(io::stderr()) {
        CLEAR
    } else {
        ""
    }
}
