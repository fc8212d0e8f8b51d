//! A term as scripts read it.

use std::time::Duration;

use serde::Serialize;

use super::harmless_json;
use crate::lease::Grant;

/// A word in quotes for a POSIX shell. Single quotes protect every character except the single quote itself.
fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Lines for `eval "$(lease claim KEY)"`.
#[must_use]
pub fn term_shell(grant: &Grant) -> String {
    [
        ("LEASE_KEY", grant.term.key.as_str()),
        ("LEASE_HOLDER", grant.term.holder.as_str()),
        ("FENCE", &grant.term.fence.to_string()),
        ("LEASE_EXPIRES_AT", &grant.expires_at.to_string()),
    ]
    .map(|(name, value)| format!("export {name}={}\n", shell_word(value)))
    .concat()
}

#[derive(Serialize)]
struct TermJson<'a> {
    key: &'a str,
    holder: &'a str,
    fence: i64,
    acquired_at: String,
    expires_at: String,
    expires_in_ms: u64,
}

/// One JSON object. `left` is the time until the expiry.
#[must_use]
pub fn term_json(grant: &Grant, left: Duration) -> String {
    let term = TermJson {
        key: grant.term.key.as_str(),
        holder: grant.term.holder.as_str(),
        fence: grant.term.fence.get(),
        acquired_at: grant.acquired_at.to_string(),
        expires_at: grant.expires_at.to_string(),
        expires_in_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
    };
    let json = serde_json::to_string(&term).expect("text and numbers have a JSON form");
    harmless_json(json) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_quotes_keep_everything() {
        assert_eq!(shell_word("nightly"), "'nightly'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word("$(rm -rf /)\n`x` \\"), "'$(rm -rf /)\n`x` \\'");
    }
}
