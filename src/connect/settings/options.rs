//! `options` and PGOPTIONS: run-time settings for the session (`-c name=value`).
//!
//! libpq sends them when it connects. They are not sent here: PgBouncer refuses such a connection, and a SET after the
//! login would leak to the next client of a pooled connection. A setting that makes no difference to a lease is accepted
//! and ignored. Any other is refused by name. ALTER ROLE ... SET has the same effect with every kind of connection.

use super::error::SettingsError;

/// Settings that make no difference to a lease. Each transaction sets its own limits, search path and isolation level.
/// The others are about plans, formats and logs.
const HARMLESS: &[&str] = &[
    "application_name",
    "bytea_output",
    "client_encoding",
    "client_min_messages",
    "datestyle",
    "default_transaction_deferrable",
    "default_transaction_isolation",
    "effective_cache_size",
    "extra_float_digits",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "intervalstyle",
    "lock_timeout",
    "maintenance_work_mem",
    "max_parallel_workers_per_gather",
    "random_page_cost",
    "search_path",
    "seq_page_cost",
    "statement_timeout",
    "temp_buffers",
    "timezone",
    "transaction_timeout",
    "work_mem",
];

/// Families of such settings.
const HARMLESS_FAMILIES: &[&str] = &[
    "enable_",
    "geqo",
    "jit",
    "lc_",
    "log_",
    "plan_cache_",
    "tcp_keepalives_",
    "track_",
];

/// Refuses settings that must not be ignored.
///
/// # Errors
/// A setting that makes a difference, or a text that is not of the form `-c name=value`.
pub(super) fn check(text: &str) -> Result<(), SettingsError> {
    let mut words = split(text).into_iter();
    while let Some(word) = words.next() {
        let assignment = if word == "-c" || word == "--" {
            words.next()
        } else {
            word.strip_prefix("--")
                .or_else(|| word.strip_prefix("-c"))
                .map(str::to_owned)
        };
        let Some((name, _)) = assignment
            .as_deref()
            .and_then(|a| a.split_once('='))
            .filter(|(n, _)| !n.is_empty())
        else {
            return Err(SettingsError::about(
                "options",
                "options: only -c name=value is supported",
            ));
        };
        let name = name.replace('-', "_").to_ascii_lowercase();
        if !HARMLESS.contains(&name.as_str())
            && !HARMLESS_FAMILIES.iter().any(|f| name.starts_with(f))
        {
            return Err(SettingsError::about(
                "options",
                format!(
                    "options: {name:?} is not supported, because poolers refuse startup options (use ALTER ROLE ... SET)"
                ),
            ));
        }
    }
    Ok(())
}

/// The words between spaces. A backslash escapes the next character (`pg_split_opts`).
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(char::is_ascii_whitespace).is_some() {}
        if chars.peek().is_none() {
            return words;
        }
        let mut word = String::new();
        while let Some(c) = chars.next_if(|c| !c.is_ascii_whitespace()) {
            if c == '\\' {
                word.extend(chars.next());
            } else {
                word.push(c);
            }
        }
        words.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_split_as_the_server_splits_them() {
        assert_eq!(split(r" -c  a=b\ c \\d  "), ["-c", "a=b c", r"\d"]);
        assert!(split("").is_empty());
    }

    #[test]
    fn a_setting_that_makes_no_difference_is_accepted_and_any_other_refused_by_name() {
        for harmless in [
            "",
            "-c geqo=off",
            "-cstatement_timeout=5s --search-path=a",
            r"-c TimeZone=UTC -c search_path=a\ b",
        ] {
            assert_eq!(
                check(harmless).map_err(|e| e.to_string()),
                Ok(()),
                "{harmless}"
            );
        }
        for (given, named) in [
            ("-c role=app", "\"role\""),
            (
                "-c geqo=off --default-transaction-read-only=on",
                "\"default_transaction_read_only\"",
            ),
            ("-c synchronous_commit=off", "\"synchronous_commit\""),
            ("endpoint=ep-1", "-c name=value"),
            ("-d 5", "-c name=value"),
            ("-c", "-c name=value"),
            ("-c role", "-c name=value"),
            ("--=x", "-c name=value"),
        ] {
            assert!(
                check(given).unwrap_err().to_string().contains(named),
                "{given}"
            );
        }
    }
}
