//! The types that every other room uses: a lease, its holder, and the outcomes of an operation on it.
//!
//! A *term* ([`Term`]) is one tenure of a key, from its grant to its end. It is identified by key, holder and fence.
//! Every statement acts on a term, never on a key alone, so that a late release can't end the term of a successor.
//!
//! | file | what it has |
//! |---|---|
//! | `invalid` | a value that cannot be valid |
//! | `names` | keys and holders |
//! | `server_time` | a reading of the server's clock |
//! | `term` | a term, its fence, and its times |
//! | `row` | a row of the table, and its state |
//! | `outcome` | how an operation on a lease can end |

mod invalid;
mod names;
mod outcome;
mod row;
mod server_time;
mod term;
#[cfg(test)]
mod tests;

pub use self::invalid::Invalid;
pub use self::names::{HOLDER_MAX_BYTES, Holder, KEY_MAX_BYTES, Key};
pub use self::outcome::{Claim, Eviction, Loss, Release, Renewal, Success};
pub use self::row::{LeaseState, Row};
pub use self::server_time::ServerTime;
pub use self::term::{Fence, Grant, Term};
