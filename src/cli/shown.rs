//! A wrong value, made fit for a message.

/// How many characters of a wrong value a message repeats.
const SHOWN_OF_A_VALUE: usize = 40;

/// A wrong value for a message: shortened, and without a password that was typed in the wrong place.
pub(crate) fn shown(text: &str) -> String {
    let text = without_passwords(text);
    if text.chars().count() <= SHOWN_OF_A_VALUE {
        return text;
    }
    let start: String = text.chars().take(SHOWN_OF_A_VALUE).collect();
    format!("{start}...")
}

/// A text without the passwords of the URLs and connection strings in it.
pub(crate) fn without_passwords(text: &str) -> String {
    let mut out = text.to_owned();
    if let Some(scheme) = text.find("://") {
        let start = scheme + 3;
        if let Some(at) = text[start..].rfind('@') {
            out = format!("{}...{}", &text[..start], &text[start + at..]);
        }
    }
    match out.find("password=") {
        Some(at) => format!("{}password=...", &out[..at]),
        None => out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_repeated_without_a_password_in_it_even_if_it_is_long() {
        let long = format!("postgres://app:s3cret{}@db/x", "y".repeat(50));
        for text in [
            "postgres://app:s3cret@db/x",
            "postgres://app:s3cret p@db/x",
            "host=db password=s3cret",
            &long,
        ] {
            assert!(!shown(text).contains("s3cret"), "{}", shown(text));
        }
        assert_eq!(shown(&"k".repeat(41)), format!("{}...", "k".repeat(40)));
    }
}
