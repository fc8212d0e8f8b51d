//! Settings of a role or a database that change what the server prints, or how it reads a statement.

use crate::support::{Lease, serial, shared};
use crate::{database, term};

/// Each as far from its default as it goes.
const SETTINGS: [&str; 22] = [
    "quote_all_identifiers = on",
    "standard_conforming_strings = off",
    "escape_string_warning = off",
    "backslash_quote = on",
    "transform_null_equals = on",
    "array_nulls = off",
    "intervalstyle = 'sql_standard'",
    "datestyle = 'German, DMY'",
    "timezone = 'America/St_Johns'",
    "extra_float_digits = -15",
    "bytea_output = 'escape'",
    "lc_numeric = 'C'",
    "client_min_messages = 'debug5'",
    "client_encoding = 'LATIN1'",
    "search_path = 'nowhere'",
    "default_transaction_isolation = 'serializable'",
    "default_transaction_deferrable = on",
    "plan_cache_mode = 'force_generic_plan'",
    "jit_above_cost = 0",
    "row_security = off",
    "check_function_bodies = off",
    "synchronous_commit = off",
];

#[test]
fn no_setting_of_a_role_or_a_database_changes_what_a_verb_does() {
    let server = shared();
    let database = database(server);
    let role = format!("set_{}", serial());
    server.psql_in(
        &database,
        &format!("CREATE ROLE {role} LOGIN; GRANT CREATE ON SCHEMA public TO {role}"),
    );
    for (at, setting) in SETTINGS.iter().enumerate() {
        let whose = if at % 2 == 0 {
            format!("ROLE {role}")
        } else {
            format!("DATABASE {database}")
        };
        server.psql(&format!("ALTER {whose} SET {setting}"));
    }
    let url = server.url_for(&role, &database);
    let quiet = |words: &[&str]| {
        let out = Lease::new(words).url(&url).output().expect_code(0);
        assert_eq!(out.stderr, "", "{words:?}");
        out.stdout
    };
    // The second finds the table of the first.
    for _ in 0..2 {
        let out = Lease::new(["init", "--with-fencing"])
            .url(&url)
            .output()
            .expect_code(0);
        assert!(out.stderr.contains("public.lease is ready"), "{out:?}");
        assert!(!out.stderr.contains("ALTER TABLE"), "{out:?}");
    }
    let key = r"back\slash 'quote' ü";
    let held = term(&quiet(&["claim", "--format", "json", key]));
    assert_eq!(held.key, key);
    assert!((30_000..=60_000).contains(&held.expires_in_ms), "{held:?}");
    let fence = held.fence.to_string();
    let term_of = |verb: &'static str| [verb, "--holder", &held.holder, "--fence", &fence, key];
    quiet(&term_of("renew"));
    let shown: serde_json::Value =
        serde_json::from_str(&quiet(&["status", "--format", "json", r"back\slash*"]))
            .expect("an array");
    assert_eq!(shown[0]["holder"], held.holder.as_str());
    let expires_at = shown[0]["expires_at"].as_str().expect("a time");
    assert!(
        expires_at.len() == "2026-12-01T04:12:24.884Z".len() && expires_at.ends_with('Z'),
        "{expires_at}"
    );
    quiet(&term_of("release"));
    assert_eq!(quiet(&["run", key, "--", "echo", "ran"]), "ran\n");
    let held = term(&quiet(&["claim", "--format", "json", key]));
    assert!(held.fence > 1_000_000_000_000_000);
    let out = Lease::new(["release", "--force", key])
        .url(&url)
        .output()
        .expect_code(0);
    assert!(out.stderr.contains(&held.holder), "{out:?}");
}
