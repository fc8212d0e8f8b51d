//! What reaches the loop from its threads.

use crate::heartbeat::Beat;
use crate::record::Culprit;
use crate::signals::Caught;
use crate::supervise::Event;

/// What the loop waits for.
#[derive(Debug)]
pub enum Input {
    /// A signal, or news of a child.
    Caught(Caught),
    /// An answer of the database.
    Answer(Event),
    /// Who has evicted the holder, if that is known.
    Evicted(Option<Culprit>),
    /// News of the heartbeat.
    Beat(Beat),
}

impl From<Caught> for Input {
    fn from(caught: Caught) -> Self {
        Self::Caught(caught)
    }
}
