//! `lease history`, and what `status` and `release` know from it.

mod ends;
mod list;
mod overdue;
mod read;
mod table;
