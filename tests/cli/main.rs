//! Black-box tests of the built binary, a file a verb.

#[path = "../support/mod.rs"]
mod support;

mod chart;
mod claim;
mod cron;
mod database_faults;
mod hints;
mod history;
mod init;
mod long_lists;
mod metrics;
mod purge;
mod readme;
mod release;
mod renew;
mod run;
mod run_exit;
mod run_log;
mod run_once;
mod run_programs;
mod run_replicas;
mod run_signals;
mod run_stop;
mod run_streams;
mod run_terminal;
mod run_wait;
mod run_words;
mod settings;
mod shared_table;
mod sql_files;
mod statements;
mod status;
mod table_types;
mod triggers;
mod usage;
mod variables;
mod wait_line;
mod watch;

use support::table::{column, literal};
use support::{Lease, Output, Server, shared};

/// `lease` with these arguments, on the server that all tests of this binary share.
fn lease(args: &[&str]) -> Lease {
    Lease::new(args).on(shared())
}

/// A term as `claim --format json` prints it.
#[derive(Clone, Debug)]
struct Term {
    key: String,
    holder: String,
    fence: i64,
    expires_in_ms: i64,
}

fn term(json: &str) -> Term {
    let value: serde_json::Value = serde_json::from_str(json).expect("one JSON object");
    Term {
        key: value["key"].as_str().expect("a key").to_owned(),
        holder: value["holder"].as_str().expect("a holder").to_owned(),
        fence: value["fence"].as_i64().expect("a fence"),
        expires_in_ms: value["expires_in_ms"].as_i64().expect("a time"),
    }
}

/// Whether this is what is left of so many milliseconds when the call that asked for them is over.
#[track_caller]
fn left_of(whole: i64, expires_in_ms: i64, out: &Output) {
    let took = i64::try_from(out.took.as_millis()).expect("short");
    assert!(
        (whole - took - 1..=whole).contains(&expires_in_ms),
        "{expires_in_ms} of {whole}: {out}"
    );
}

/// Claims a key that is free; more arguments may be given.
#[track_caller]
fn claimed(key: &str, more: &[&str]) -> Term {
    let call = lease(&["claim", "--format", "json", "--", key]);
    let call = if more.is_empty() {
        call
    } else {
        Lease::new(["claim", "--format", "json"])
            .args(more)
            .arg("--")
            .arg(key)
            .on(shared())
    };
    term(&call.output().expect_code(0).stdout)
}

/// Releases or renews a term.
fn with_term(verb: &str, term: &Term) -> Lease {
    with_term_and(&[verb], term)
}

/// As [`with_term`], with options behind the verb.
fn with_term_and(words: &[&str], term: &Term) -> Lease {
    let fence = term.fence.to_string();
    lease(words).args(["--holder", &term.holder, "--fence", &fence, "--", &term.key])
}

/// The names of the fields of an object, in alphabetical order.
fn fields(object: &serde_json::Value) -> Vec<&str> {
    let object = object.as_object().expect("an object");
    let mut fields: Vec<&str> = object.keys().map(String::as_str).collect();
    fields.sort_unstable();
    fields
}

/// The rows that must not change: how many and which, as one text.
fn row_text(server: &Server, key: &str) -> String {
    column(server, key, "lease::text || xmin::text")
}

/// The name of a new, empty database.
fn database(server: &Server) -> String {
    let url = server.create_database();
    url.rsplit('/').next().unwrap_or_default().to_owned()
}
