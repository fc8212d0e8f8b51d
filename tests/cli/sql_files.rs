//! The statements are files that psql can run as they are.

use std::process::Command;

use crate::database;
use crate::support::{Lease, programs, shared};

/// Runs a script by the real psql, which stops at the first error.
fn psql(url: &str, script: &str) -> String {
    let psql = programs::bindir().join("psql");
    let output = Command::new(psql)
        .args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", url])
        .args([
            "-v",
            "statement_ms=1000",
            "-v",
            "lock_ms=900",
            "-v",
            "idle_ms=800",
        ])
        .args(["-c", "SELECT 1", "-f", "-"])
        .stdin(input(script))
        .output()
        .expect("psql runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}\n{script}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn input(script: &str) -> std::fs::File {
    let path = crate::support::keeper::dir("sql").join("script");
    std::fs::write(&path, script).expect("a file");
    std::fs::File::open(&path).expect("a file")
}

#[test]
fn psql_runs_each_statement_of_the_source_as_it_is() {
    let database = database(shared());
    let url = shared().url_for("postgres", &database);
    Lease::new(["init"]).url(&url).output().expect_code(0);
    let src = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut seen = 0;
    let files = ["sql", "record"].map(|room| std::fs::read_dir(src.join(room)).expect("a folder"));
    for entry in files.into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|e| e != "sql") {
            continue;
        }
        seen += 1;
        let text = std::fs::read_to_string(&path).expect("a file");
        let name = path.file_stem().and_then(|n| n.to_str()).expect("a name");
        assert!(text.starts_with("-- "), "{name} has no contract");
        let script = match name {
            "begin" | "begin_read" => format!("{text};\nROLLBACK;"),
            "create" | "mark" | "safe_default" | "install" => format!("BEGIN;\n{text};\nROLLBACK;"),
            _ => format!("PREPARE {name} AS\n{text};"),
        };
        psql(&url, &script);
    }
    assert!(seen > 15, "{seen} files");
}

#[test]
fn a_claim_and_a_release_by_hand_are_what_lease_does() {
    let database = database(shared());
    let url = shared().url_for("postgres", &database);
    Lease::new(["init"]).url(&url).output().expect_code(0);
    let file = |name| {
        let path = format!("{}/src/sql/{name}.sql", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).expect("a file")
    };
    let claimed = psql(
        &url,
        &format!(
            "PREPARE claim (text, text, bigint, boolean) AS\n{};\nEXECUTE claim ('k', 'by-hand', 60000000, false);",
            file("claim")
        ),
    );
    assert!(claimed.contains("t|t|k|by-hand|"), "{claimed}");
    let held = Lease::new(["claim", "k"])
        .url(&url)
        .output()
        .expect_code(75);
    assert!(held.stderr.contains("k is held by by-hand"), "{held}");
    let fence = shared().psql_in(&database, "SELECT fence FROM public.lease");
    let released = psql(
        &url,
        &format!(
            "PREPARE release (text, text, bigint, bigint) AS\n{};\nEXECUTE release ('k', 'by-hand', {fence}, 0);",
            file("release")
        ),
    );
    assert!(released.starts_with("1\nk|"), "{released}");
    Lease::new(["claim", "k"]).url(&url).output().expect_code(0);
}
