//! The keys that are named in full, beside rows that come by key.

use super::pattern::Pattern;

/// Named keys that have not come yet.
#[derive(Clone, Debug)]
pub struct NamedKeys {
    /// The last one first.
    left: Vec<String>,
}

impl NamedKeys {
    /// Those among the patterns, each once.
    #[must_use]
    pub fn among(patterns: &[Pattern]) -> Self {
        let mut left: Vec<String> = patterns.iter().filter_map(|p| p.plain.clone()).collect();
        left.sort_by(|a, b| b.cmp(a));
        left.dedup();
        Self { left }
    }

    /// The named keys that have no row. Rows come by key, and the next one has this key, so they would have come by now.
    pub fn missing_before(&mut self, key: &str) -> Vec<String> {
        let mut missing = Vec::new();
        while let Some(named) = self.left.pop_if(|named| named.as_str() <= key) {
            if named != key {
                missing.push(named);
            }
        }
        missing
    }

    /// The same after the last row.
    pub fn missing_at_the_end(&mut self) -> Vec<String> {
        self.left.drain(..).rev().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_named_key_without_a_row_comes_once_and_in_its_place() {
        let patterns = ["c", "a", "b*", "c", "e", "d"].map(Pattern::parse);
        let mut named = NamedKeys::among(&patterns);
        assert_eq!(named.missing_before("b1"), ["a"]);
        assert_eq!(named.missing_before("d"), ["c"]);
        assert_eq!(named.missing_before("d1"), [""; 0]);
        assert_eq!(named.missing_at_the_end(), ["e"]);
        assert_eq!(named.missing_at_the_end(), [""; 0]);
    }
}
