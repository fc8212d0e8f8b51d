//! Keys with wildcards, as a person types them.

use crate::lease::Key;

/// A key as it is typed for `status`: `*` and `?` are wildcards, `\*` and `\?` are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The same as a LIKE pattern, in which what LIKE takes for wildcards is text.
    pub like: String,
    /// The key itself, if it contains no wildcard.
    pub plain: Option<String>,
}

impl Pattern {
    /// Reads what was typed.
    #[must_use]
    pub fn parse(typed: &str) -> Self {
        let mut like = String::with_capacity(typed.len() + 8);
        let mut plain = Some(String::with_capacity(typed.len()));
        let mut chars = typed.chars().peekable();
        while let Some(c) = chars.next() {
            let literal = match c {
                '*' | '?' => {
                    plain = None;
                    like.push(if c == '*' { '%' } else { '_' });
                    continue;
                }
                '\\' => chars.next_if(|next| matches!(next, '*' | '?')).unwrap_or(c),
                _ => c,
            };
            if matches!(literal, '%' | '_' | '\\') {
                like.push('\\');
            }
            like.push(literal);
            if let Some(plain) = &mut plain {
                plain.push(literal);
            }
        }
        Self { like, plain }
    }

    /// The pattern that means this key and no other.
    #[must_use]
    pub fn of_key(key: &Key) -> Self {
        let mut like = String::with_capacity(key.as_str().len());
        for c in key.as_str().chars() {
            if matches!(c, '%' | '_' | '\\') {
                like.push('\\');
            }
            like.push(c);
        }
        Self {
            like,
            plain: Some(key.as_str().to_owned()),
        }
    }

    /// Whether `key` is meant; the same answer that LIKE gives.
    #[must_use]
    pub fn matches(&self, key: &str) -> bool {
        if let Some(plain) = &self.plain {
            return plain == key;
        }
        like(
            &self.like.chars().collect::<Vec<_>>(),
            &key.chars().collect::<Vec<_>>(),
        )
    }
}

/// LIKE, with its escapes; going back only to the last `%`, so that it ends in quadratic time at the worst.
fn like(pattern: &[char], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        let (literal, width) = match pattern.get(p) {
            Some('\\') => (pattern.get(p + 1), 2),
            other => (other, 1),
        };
        match literal {
            Some('%') if width == 1 => {
                retry = Some((p + 1, t));
                p += 1;
            }
            Some(&c) if (c == '_' && width == 1) || c == text[t] => {
                p += width;
                t += 1;
            }
            Some(_) | None => match retry {
                Some((after, from)) => {
                    p = after;
                    t = from + 1;
                    retry = Some((after, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == '%')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_star_and_question_mark_are_wildcards() {
        let parsed = |typed: &str| {
            let p = Pattern::parse(typed);
            (p.like, p.plain)
        };
        assert_eq!(parsed("nightly-*"), ("nightly-%".to_owned(), None));
        assert_eq!(parsed("a?c"), ("a_c".to_owned(), None));
        assert_eq!(
            parsed("50%_x\\"),
            ("50\\%\\_x\\\\".to_owned(), Some("50%_x\\".to_owned()))
        );
        assert_eq!(parsed(r"a\*b"), ("a*b".to_owned(), Some("a*b".to_owned())));
    }

    #[test]
    fn a_pattern_matches_what_like_matches() {
        let matches = |typed: &str, key: &str| Pattern::parse(typed).matches(key);
        assert!(matches("nightly-*", "nightly-eu") && !matches("nightly-*", "hourly-eu"));
        assert!(matches("*-eu", "a-eu-eu") && matches("*", "") && matches("a**b", "ab"));
        assert!(matches("a?c", "a_c") && matches("a?c", "aéc") && !matches("a?c", "ac"));
        assert!(matches(r"\*", "*") && !matches(r"\*", "x") && matches(r"*\?", "why?"));
        assert!(matches("50%", "50%") && !matches("50%*", "500"));
    }
}
