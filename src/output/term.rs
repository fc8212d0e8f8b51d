//! A term as scripts read it.

use std::time::Duration;

use serde::Serialize;

use super::escape::harmless_json;
use crate::lease::Grant;

/// A word in quotes for a POSIX shell. Single quotes protect every character except the single quote itself.
fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Lines for `eval "$(lease claim KEY)"`. `is_new` is for a claim: whether it began the term.
#[must_use]
pub fn term_shell(grant: &Grant, is_new: Option<bool>) -> String {
    let (fence, expires_at) = (grant.term.fence.to_string(), grant.expires_at.to_string());
    let mut variables = vec![
        ("LEASE_KEY", grant.term.key.as_str()),
        ("LEASE_HOLDER", grant.term.holder.as_str()),
        ("FENCE", &fence),
        ("LEASE_EXPIRES_AT", &expires_at),
    ];
    variables.extend(is_new.map(|is_new| ("LEASE_NEW", if is_new { "1" } else { "0" })));
    variables
        .into_iter()
        .map(|(name, value)| format!("export {name}={}\n", shell_word(value)))
        .collect()
}

#[derive(Serialize)]
struct TermJson<'a> {
    key: &'a str,
    holder: &'a str,
    fence: i64,
    acquired_at: String,
    expires_at: String,
    expires_in_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<bool>,
}

/// One JSON object. `left` is the time until the expiry; `is_new` is for a claim, as above.
#[must_use]
pub fn term_json(grant: &Grant, left: Duration, is_new: Option<bool>) -> String {
    let term = TermJson {
        key: grant.term.key.as_str(),
        holder: grant.term.holder.as_str(),
        fence: grant.term.fence.get(),
        acquired_at: grant.acquired_at.to_string(),
        expires_at: grant.expires_at.to_string(),
        expires_in_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
        new: is_new,
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
