//! Keys with wildcards, as a person types them.

/// A key as it is typed for `status`: `*` and `?` are wildcards, `\*` and `\?` are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The same as a LIKE pattern, in which what LIKE takes for wildcards is text.
    pub like: String,
    /// The key itself, where there is no wildcard in it.
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
}
