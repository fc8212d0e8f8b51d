//! Poolers in front of the server, several servers, and servers that come and go.

#[path = "../support/mod.rs"]
mod support;

mod eager;
mod failover;
mod given_up;
mod kept;
mod late_answers;
mod outages;
mod passing_errors;
mod pooler;
mod release_tries;
mod slow_links;
mod unknown;
mod unreachable;

use support::table::column;
use support::{Lease, Output, Server};

/// The holder and fence of a claimed term.
fn term(out: &Output) -> (String, i64) {
    let value: serde_json::Value = serde_json::from_str(&out.stdout).expect("one JSON object");
    (
        value["holder"].as_str().expect("a holder").to_owned(),
        value["fence"].as_i64().expect("a fence"),
    )
}

/// Claims `key` by `url`, which must succeed.
#[track_caller]
fn claim(url: &str, key: &str, more: &[&str]) -> (String, i64) {
    let call = Lease::new(["claim", "--format", "json"])
        .args(more)
        .arg(key)
        .url(url);
    term(&call.output().expect_code(0))
}

/// A connection string for several servers, in this order.
fn hosts(servers: &[&Server]) -> String {
    let hosts: Vec<String> = servers
        .iter()
        .map(|s| format!("127.0.0.1:{}", s.port()))
        .collect();
    format!("postgresql://postgres@{}/postgres", hosts.join(","))
}
