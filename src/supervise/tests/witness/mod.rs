//! One run, watched from the outside: after each event, and at its end, what must never happen is looked for.
//!
//! | file | what it does |
//! |---|---|
//! | `knowledge` | what is known about a run from the outside, and what each event adds to it |
//! | `judge` | what must never happen |
//! | `world` | what the world can say, and when |

mod judge;
mod knowledge;
mod world;

pub(super) use self::knowledge::{Starts, Witness};
