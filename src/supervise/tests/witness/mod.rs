//! Watches one run from the outside. After each event, and at the end, it checks that nothing forbidden has happened.
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
