//! lease
pub mod cli;
pub mod clock;
pub mod connect;
pub mod exit;
pub mod fault;
pub mod lease;
pub mod sql;
pub mod store;
pub mod timing;
/// Runs.
pub fn main() -> ! {
    loop {}
}
