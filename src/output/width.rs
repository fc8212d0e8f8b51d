//! How wide text is on a terminal, and how it is made to fit.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

const ELLIPSIS: char = '…';

/// How many columns of a terminal `text` takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// `text`, in at most `columns`. If something is left out, it ends with an ellipsis.
pub(super) fn shorten(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let Some(room) = columns.checked_sub(1) else {
        return String::new();
    };
    let mut short = text[..fitting(text, room)].to_owned();
    short.push(ELLIPSIS);
    short
}

/// `text` in lines of at most `columns`, at most `lines` of them.
pub(super) fn wrap(text: &str, columns: usize, lines: usize) -> Vec<String> {
    let mut rest = text;
    let mut wrapped = Vec::new();
    while !rest.is_empty() && wrapped.len() + 1 < lines && width(rest) > columns {
        let end = fitting(rest, columns);
        if end == 0 {
            break;
        }
        // Between two words if there are two.
        let end = rest[..end].rfind(' ').map_or(end, |space| space + 1);
        wrapped.push(rest[..end].trim_end().to_owned());
        rest = &rest[end..];
    }
    wrapped.push(shorten(rest, columns));
    wrapped
}

/// The length in bytes of the longest beginning of `text` that fits into `columns`.
fn fitting(text: &str, columns: usize) -> usize {
    let mut taken = 0;
    for (at, c) in text.char_indices() {
        taken += c.width().unwrap_or(0);
        if taken > columns {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shortened_by_what_it_takes_on_the_screen() {
        assert_eq!(shorten("nightly", 7), "nightly");
        assert_eq!(shorten("nightly", 6), "night…");
        assert_eq!(shorten("nightly", 1), "…");
        assert_eq!(shorten("nightly", 0), "");
        // Each of these takes two columns, so half of one is left over.
        assert_eq!(shorten("夜間処理", 6), "夜間…");
        // A combining character takes none.
        assert_eq!(shorten("e\u{301}te\u{301}", 3), "e\u{301}te\u{301}");
    }

    #[test]
    fn long_text_is_wrapped_between_words_and_then_shortened() {
        assert_eq!(wrap("one two", 20, 3), ["one two"]);
        assert_eq!(
            wrap("one two three four", 9, 3),
            ["one two", "three", "four"]
        );
        assert_eq!(wrap("one two three four", 9, 2), ["one two", "three fo…"]);
        assert_eq!(wrap("12345678", 3, 2), ["123", "45…"]);
    }
}
