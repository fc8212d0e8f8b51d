//! The program `lease`. Everything is in the library, so that tests and generators can use it.

fn main() -> ! {
    pglease::main()
}
