//! Text that cannot control a terminal, as text and as JSON.

/// Text that cannot control a terminal: control characters, and characters that hide or reverse others, become escapes.
#[must_use]
pub fn escape(text: &str) -> String {
    if !text.chars().any(controls_the_terminal) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if controls_the_terminal(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Control characters (C0, DEL, C1), line and paragraph separators, and the invisible characters of Unicode's
/// bidirectional algorithm ("Trojan Source", CVE-2021-42574).
fn controls_the_terminal(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
}

/// JSON that cannot control a terminal. The serializer escapes only the characters below U+0020.
pub(super) fn harmless_json(json: String) -> String {
    if !json.chars().any(controls_the_terminal) {
        return json;
    }
    json.chars()
        .map(|c| {
            if controls_the_terminal(c) && c != '\n' {
                format!("\\u{:04x}", u32::from(c))
            } else {
                c.to_string()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_cannot_write_to_the_terminal() {
        assert_eq!(escape("\u{1b}]0;owned\u{7}"), r"\u{1b}]0;owned\u{7}");
        assert_eq!(escape("a\u{9b}2Jb"), r"a\u{9b}2Jb");
        assert_eq!(escape("user\u{202e}nimda"), r"user\u{202e}nimda");
        assert_eq!(escape("naïve ✓"), "naïve ✓");
        assert_eq!(
            harmless_json("\"a\u{9b}\u{202e}\"".to_owned()),
            r#""a\u009b\u202e""#
        );
    }
}
