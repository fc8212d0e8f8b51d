//! What takes the rows of an answer.

/// Takes rows one by one, so that not all of them have to be in memory.
pub trait Sink<T>: Send + 'static {
    /// Takes the next one.
    fn take(&mut self, item: T);
}

impl<T: Send + 'static> Sink<T> for Vec<T> {
    fn take(&mut self, item: T) {
        self.push(item);
    }
}

/// Ignores them.
impl<T> Sink<T> for () {
    fn take(&mut self, _: T) {}
}
