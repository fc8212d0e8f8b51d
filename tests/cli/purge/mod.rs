//! `lease purge`. Each test has a database of its own, because purge looks at every key.

mod beside;
mod place;
mod refused;
mod removed;
