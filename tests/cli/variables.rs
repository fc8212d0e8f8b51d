//! What comes from the environment: taken as an option is, refused by the name of the variable, and none where it is empty.

use crate::support::Lease;

#[test]
fn a_value_from_a_variable_is_refused_by_the_variables_name() {
    for (variable, value, told) in [
        (
            "LEASE_TTL",
            "60",
            "LEASE_TTL: \"60\" has no unit (write 60s",
        ),
        (
            "LEASE_TTL",
            "31days",
            "LEASE_TTL: \"31days\" is out of range (100ms to 30days)",
        ),
        (
            "LEASE_DB_TIMEOUT",
            "soon",
            "LEASE_DB_TIMEOUT: \"soon\" is not a duration (write",
        ),
        (
            "LEASE_TABLE",
            "a.b.c",
            "LEASE_TABLE: \"a.b.c\" is not a table name",
        ),
    ] {
        let out = crate::lease(&["claim", "k"])
            .env(variable, value)
            .output()
            .expect_code(2);
        assert!(out.stderr.starts_with(&format!("lease: {told}")), "{out:?}");
    }
    crate::lease(&["renew", "k", "--holder", "h"])
        .env("FENCE", "-1")
        .output()
        .expect_code(2);
}

#[test]
fn a_connection_setting_is_refused_by_the_name_of_its_variable_or_service() {
    let services = crate::support::keeper::dir("services").join("conf");
    std::fs::write(&services, "[jobs]\nport=abc\n").expect("a file");
    let port = "port=\"abc\" is not a number between 1 and 65535";
    let cases = [
        (("PGPORT", "abc"), format!("PGPORT: {port}\n")),
        (("PGSSLMODE", "yes"), "PGSSLMODE: sslmode=".to_owned()),
        (("PGSERVICE", "jobs"), format!("service \"jobs\": {port}\n")),
    ];
    for ((variable, value), told) in cases {
        let out = Lease::new(["status"])
            .env("PGSERVICEFILE", &services)
            .env(variable, value)
            .output()
            .expect_code(2);
        assert!(
            out.stderr.starts_with(&format!("lease: {told}")),
            "{told}: {out}"
        );
    }
}

#[test]
fn an_empty_variable_is_none_for_lease_and_stays_as_it_is_for_the_job() {
    let variables = [
        "LEASE_TTL",
        "LEASE_DB_TIMEOUT",
        "LEASE_TABLE",
        "LEASE_QUIET",
    ];
    let key = crate::support::key();
    let job = "test -n \"${LEASE_TTL+set}${LEASE_TABLE+set}\" && echo \"<$LEASE_TTL$LEASE_TABLE>\"";
    let mut call = crate::lease(&["run", &key, "--", "sh", "-c", job]);
    for variable in variables {
        call = call.env(variable, "");
    }
    let out = call.output().expect_code(0);
    assert_eq!((out.stdout.as_str(), out.stderr.as_str()), ("<>\n", ""));
    let out = Lease::new(["status"])
        .env("LEASE_DATABASE_URL", "")
        .env("PGHOST", "/nowhere")
        .output()
        .expect_code(69);
    assert!(out.stderr.contains("/nowhere"), "{out:?}");
}

#[test]
fn an_empty_variable_of_a_term_is_called_empty_and_says_what_stands_in_for_it() {
    let variables = [
        ("LEASE_KEY", "a KEY"),
        ("LEASE_HOLDER", "--holder"),
        ("FENCE", "--fence"),
    ];
    for (empty, option) in variables {
        for verb in ["renew", "release"] {
            let mut call = crate::lease(&[verb]);
            for (variable, _) in variables {
                call = call.env(variable, if variable == empty { "" } else { "1" });
            }
            let told = call.output().expect_code(2).stderr;
            let right = format!("lease: {empty} is empty (give {option}, or claim first: ");
            assert!(told.starts_with(&right), "{told}");
        }
    }
}

#[test]
fn quiet_may_come_from_the_environment() {
    let key = crate::support::key();
    crate::claimed(&key, &[]);
    for (value, silent) in [
        ("1", true),
        ("yes", true),
        ("0", false),
        ("false", false),
        ("", false),
    ] {
        let out = crate::lease(&["claim", &key])
            .env("LEASE_QUIET", value)
            .output()
            .expect_code(75);
        assert_eq!(
            out.stderr.is_empty(),
            silent,
            "LEASE_QUIET={value}: {out:?}"
        );
    }
}
