//! TLS with the kinds of certificates that real servers have, compared with `psql`.

mod trust;
mod ways;
mod world;

use crate::both::Given;
use crate::support::Server;
use world::WORLD;

const TLS: &str = "TLSv1.3";

fn given(server: &Server, settings: &str) -> Given {
    let dir = WORLD.dir.to_str().unwrap();
    let settings = settings.replace("{dir}", dir);
    // HOME=... at the end names the home directory.
    let (home, settings) = match settings.split_once("HOME=") {
        Some((before, home)) => (format!("{dir}/{home}"), before.to_owned()),
        None => ("/nonexistent".to_owned(), settings),
    };
    let place = if settings.contains("host=") || settings.contains("hostaddr=") {
        ""
    } else {
        "host=localhost"
    };
    Given::new(
        Some(&format!(
            "user=app {place} port={} dbname=postgres {settings}",
            server.port()
        )),
        &[("HOME", &home)],
    )
}

/// Both connect, over this kind of connection.
fn both_in(server: &Server, settings: &str, encryption: &str) {
    let said = given(server, settings)
        .compare()
        .unwrap_or_else(|e| panic!("{settings}: {e}"));
    assert!(
        said.contains(&format!("ssl={encryption}")),
        "{settings}: {said}"
    );
}

/// Both are refused, and the library's message contains `why`.
fn both_refused(server: &Server, settings: &str, why: &str) {
    let text = given(server, settings).compare().expect_err(settings);
    assert!(text.contains(why), "{settings}: {text}");
}

/// Only the library refuses, and its message contains `why`.
fn stricter(server: &Server, settings: &str, why: &str) {
    let given = given(server, settings);
    given
        .by_psql()
        .unwrap_or_else(|e| panic!("psql {settings}: {e}"));
    let text = given.by_library().expect_err(settings);
    assert!(text.contains(why), "{settings}: {text}");
}
