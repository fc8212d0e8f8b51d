//! Lists that are longer than what should be in memory.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::database;
use crate::support::{Disk, Lease, Proxy, keeper, shared, skip};

const ROWS: usize = 60_000;
/// The program itself and its buffers take 16 MB. The lines alone would take up to 30 MB more.
const MOST_KB: u64 = 24_000;

/// A database with so many leases, each with a run. The last key is the longest.
fn world(rows: usize) -> (String, String) {
    let database = database(shared());
    let url = shared().url_for("postgres", &database);
    Lease::new(["init"]).url(&url).output().expect_code(0);
    shared().psql_in(
        &database,
        &format!(
            "ALTER TABLE public.lease DISABLE TRIGGER USER;
             INSERT INTO public.lease (key, holder, fence, acquired_at, expires_at)
             SELECT 'key-' || lpad(n::text, 7, '0') || CASE n WHEN {rows} THEN '-which-is-longer' ELSE '' END,
                    'web-1-5f0c9a1e77b2', n, now(), now() + interval '1 day' FROM generate_series(1, {rows}) AS n;
             INSERT INTO public.lease_history (key, fence, holder, host, pid, program, acquired_at, ended_at, ended, exit_code)
             SELECT key, fence, holder, 'web-1', 4711, 'report', acquired_at, acquired_at, 'released', 0 FROM public.lease;
             ANALYZE public.lease; ANALYZE public.lease_history;"
        ),
    );
    (database, url)
}

/// The lines that a call prints, and the most memory that it had in kB.
fn lines(url: &str, args: &[&str]) -> (Vec<String>, u64) {
    let call = Lease::new(args).args(["--db-timeout", "5m"]).url(url);
    let mut child = call.command().stdout(Stdio::piped()).spawn().expect("it");
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut first = String::new();
    out.read_line(&mut first).expect("a line");
    // It prints once it has read everything, and the pipe is too small for that, so it is still there.
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("a status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|text| text.trim().strip_suffix(" kB"));
    let peak = peak.and_then(|text| text.parse().ok()).expect("a number");
    let mut lines = vec![first.trim_end().to_owned()];
    lines.extend(out.lines().map(|line| line.expect("text")));
    let code = i32::from(args.contains(&"--overdue"));
    assert_eq!(child.wait().expect("its end").code(), Some(code));
    (lines, peak)
}

#[test]
fn the_memory_for_a_list_does_not_grow_with_its_length_and_columns_fit_all_of_it() {
    let (_, url) = world(ROWS);
    let limit = (2 * ROWS).to_string();
    let history = ["history", "--limit", &limit];
    let last = ["history", "--last"];
    let overdue = ["history", "--overdue", "1ms"];
    for words in [&["status"][..], &history, &last, &overdue] {
        let (table, peak) = lines(&url, words);
        assert!(peak < MOST_KB, "{words:?}: {peak} kB");
        assert_eq!(table.len(), 1 + ROWS, "{words:?}");
        let second = table[0].find(table[0].split_whitespace().nth(1).expect("a column"));
        let long = "key-0060000-which-is-longer";
        assert_eq!(second, Some(long.len() + 2), "{words:?}: {}", table[0]);
        let second = long.len() + 2;
        for line in &table {
            assert_eq!(&line[second - 2..second], "  ", "{line}");
            assert_ne!(&line[second..=second], " ", "{line}");
        }
        assert!(table.iter().any(|line| line.starts_with(long)));

        let (json, peak) = lines(&url, &[words, &["--format", "json"]].concat());
        assert!(peak < MOST_KB, "{words:?}: {peak} kB");
        let parsed: Vec<serde_json::Value> =
            serde_json::from_str(&json.join("\n")).expect("one array");
        assert_eq!(parsed.len(), ROWS);
        let with_run = |l: &&serde_json::Value| !l["last_run"].is_null() || !l["ended"].is_null();
        assert_eq!(parsed.iter().filter(with_run).count(), ROWS);
        if words == ["status"] {
            let keys: Vec<_> = parsed.iter().map(|l| l["key"].as_str()).collect();
            assert!(keys.is_sorted());
        }
    }
}

#[test]
fn the_memory_for_gauges_does_not_grow_with_the_number_of_keys() {
    let (_, url) = world(ROWS);
    let (text, peak) = lines(&url, &["status", "--format", "openmetrics"]);
    assert!(peak < MOST_KB, "{peak} kB");
    // Eight gauges, each with a heading of two lines, and the end.
    assert_eq!(text.len(), 8 * (2 + ROWS) + 1);
    for gauge in text[..text.len() - 1].chunks(2 + ROWS) {
        let name = gauge[1].split(' ').nth(2).expect("a name");
        let start = format!("{name}{{key=\"key-");
        assert!(
            gauge[2..].iter().all(|sample| sample.starts_with(&start)),
            "{name}"
        );
    }
    assert_eq!(text[text.len() - 1], "# EOF");
}

#[test]
fn a_chart_needs_little_memory_for_each_run() {
    let (_, url) = world(ROWS);
    let (chart, peak) = lines(&url, &["history", "--chart"]);
    // A hundred bytes for each.
    assert!(peak < MOST_KB, "{peak} kB");
    assert_eq!(chart.len(), 1 + ROWS + 1);
    assert!(chart[ROWS].starts_with("key-0060000-which-is-longer  "));
}

#[test]
fn a_list_that_breaks_off_is_read_again_and_nothing_of_it_is_printed_twice() {
    let (database, _) = world(10_000);
    let proxy = Proxy::to(shared());
    let url = proxy.url_for("postgres", &database);
    let call = Lease::new(["status", "--format", "json", "--db-timeout", "5m"]).url(&url);
    // The whole list is about 1 MB.
    proxy.cut_next_after(1, 500_000);
    let out = call.output().expect_code(0);
    let parsed: Vec<serde_json::Value> = serde_json::from_str(&out.stdout).expect("one array");
    assert_eq!(parsed.len(), 10_000);
    assert_eq!(proxy.accepted(), 2);

    proxy.cut_next_after(100, 500_000);
    let out = call.output().expect_code(69);
    assert_eq!(out.stdout, "");
    assert!(
        out.stderr.starts_with("lease: cannot read the leases: "),
        "{out}"
    );
}

#[test]
fn a_long_list_leaves_no_file_behind_and_needs_none() {
    let (_, url) = world(20_000);
    let dir = keeper::dir("tmp");
    let path = dir.to_str().expect("text");
    let call = |dir: &str| {
        let call = Lease::new(["status", "--format", "json", "--db-timeout", "5m"]);
        let call = call.env("TMPDIR", dir);
        call.url(&url).output().expect_code(0).stdout
    };
    let with = call(path);
    assert!(with.len() > 4 << 20, "{} bytes", with.len());
    assert_eq!(fs::read_dir(&dir).expect("a folder").count(), 0);
    let without = call(&format!("{path}/missing"));
    assert_eq!(without.lines().count(), with.lines().count());
}

#[test]
fn a_full_disk_for_temporary_files_leaves_no_line_out() {
    let Some(disk) = Disk::new(2) else {
        return skip("the right to mount a file system");
    };
    let (_, url) = world(20_000);
    let call = Lease::new(["status", "--format", "json", "--db-timeout", "5m"]);
    let call = call.env("TMPDIR", disk.dir("tmp")).url(&url);
    let text = call.output().expect_code(0).stdout;
    assert!(text.len() > 4 << 20, "{} bytes", text.len());
    let parsed: Vec<serde_json::Value> = serde_json::from_str(&text).expect("one array");
    let keys: Vec<_> = parsed.iter().map(|l| l["key"].as_str()).collect();
    assert_eq!(keys.len(), 20_000);
    assert!(keys.is_sorted_by(|a, b| a < b));
}
