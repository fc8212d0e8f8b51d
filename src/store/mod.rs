//! Runs the statements, and turns rows into outcomes and errors into [`Failure`]s.
//!
//! Each operation opens a connection, runs one short transaction and closes the connection. Between two operations no
//! connection is held, except for a moment after a claim (see `kept`).
//!
//! | file | what it does |
//! |---|---|
//! | `failure` | why an operation did not succeed, in words |
//! | `bounded` | one attempt, within its time |
//! | `transaction` | one attempt, as its thread sees it |
//! | `kept` | a connection that stays open for a moment after a claim |
//! | `statement` | runs one statement |
//! | `columns` | from columns to values, and to a row of the lease table |
//! | `sink` | what takes the rows of an answer |
//! | `outcome` | from rows to outcomes |
//! | `database` | where the table is |
//! | `operate` | one operation: attempt after attempt |
//! | `table` | making the table, and what is installed beside it |
//! | `term` | claim, renew, release |
//! | `due` | a claim that is granted only if the key is due |
//! | `evict` | release by force |
//! | `lookout` | the look of a waiter that has kept its connection |
//! | `listing` | what `status` reads |
//! | `history` | what `history` reads |
//! | `purge` | removing keys that nobody uses |

mod bounded;
mod columns;
mod database;
mod due;
mod evict;
mod failure;
mod history;
mod kept;
mod listing;
mod lookout;
mod operate;
mod outcome;
mod purge;
mod sink;
mod statement;
mod table;
mod term;
mod transaction;

pub use self::database::{MessageSink, Reporter, Store};
pub use self::failure::{Applied, Failure};
pub use self::history::Wanted;
pub use self::listing::{Listed, Listing};
pub use self::purge::{Purged, Unused};
pub use self::sink::Sink;
pub use self::transaction::Sent;
