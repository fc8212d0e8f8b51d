//! lease
pub mod cli;
pub mod clock;
pub mod connect;
pub mod exit;
pub mod fault;
pub mod lease;
pub mod process;
pub mod signals;
pub mod supervise;
pub mod timing;
pub mod watchdog;
/// Runs.
pub fn main() -> ! {
    loop {}
}
