//! The rooms that touch processes, tested with real ones.

mod fixture;

fn main() {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == "fixture") {
        fixture::run(args);
    }
}
