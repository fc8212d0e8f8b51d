//! `lease history --chart`.

use crate::support::{Lease, Terminal, key, shared};
use crate::{claimed, database, lease};

/// A database with a history of three keys. A chart of 75 days has a column for each day; every time is half a day away from
/// the next column, so a slow machine changes nothing.
fn world() -> (String, String) {
    let database = database(shared());
    let url = shared().url_for("postgres", &database);
    Lease::new(["init"]).url(&url).output().expect_code(0);
    shared().psql_in(
        &database,
        "CREATE FUNCTION day(real) RETURNS timestamptz AS $$SELECT now() + ($1 - 75) * interval '24 h'$$ LANGUAGE sql;
         INSERT INTO public.lease_history (key, fence, holder, acquired_at, ended_at, ended, exit_code)
         VALUES ('a', 1, 'h', day(-9), day(-8.5), 'released', 0),
                ('a', 2, 'h', day(-4.5), day(2.5), 'released', 0),
                ('a', 3, 'h', day(10.5), day(10.5), 'released', 0),
                ('a', 4, 'h', day(10.5), day(10.5), 'forced', NULL),
                ('a', 5, 'h', day(10.5), day(10.5), 'released', NULL),
                ('b', 1, 'h', day(70.5), day(72.5), 'released', 1),
                ('b', 2, 'h', day(73.5), NULL, NULL, NULL),
                ('c', 1, 'h', day(0.5), day(0.5), 'released', 0);
         -- More than history shows without a limit.
         INSERT INTO public.lease_history (key, fence, holder, acquired_at, ended_at, ended, exit_code)
         SELECT 'c', 1 + n, 'h', day(n + 0.5), day(n + 0.5), 'released', 0 FROM generate_series(20, 60) AS n;
         ALTER TABLE public.lease DISABLE TRIGGER USER;
         INSERT INTO public.lease VALUES ('b', 'h', 2, day(73.5), 'infinity');",
    );
    (database, url)
}

#[test]
fn a_line_for_each_key_shows_every_run_that_overlaps_the_time() {
    let (database, url) = world();
    let clock = || {
        let times = "SELECT to_char((clock_timestamp() - d * interval '24 h') AT TIME ZONE 'UTC' + interval '330 min',
                                    'YYYY-MM-DD HH24:MI:SS') FROM unnest(ARRAY[75, 0]) AS d";
        let times = shared().psql_in(&database, times);
        times.lines().map(str::to_owned).collect::<Vec<String>>()
    };
    let chart = |args: &[&str]| {
        let chart = Lease::new(["history", "--chart", "--since", "75d"]).args(args);
        chart.url(&url).env("TZ", "<+0530>-5:30")
    };
    let before = clock();
    let out = chart(&[]).env("LC_CTYPE", "C.UTF-8").output();
    let after = clock();
    let out = out.expect_code(0).stdout;
    let (head, rest) = out.split_once('\n').expect("lines");
    assert_eq!((head.len(), &head[..5]), (80, "KEY  "), "{out}");
    let times = [head[5..24].to_owned(), head[61..].to_owned()];
    for (n, time) in times.into_iter().enumerate() {
        assert!(before[n] <= time && time <= after[n], "{out}");
    }
    let nothing = |columns| "·".repeat(columns);
    let ran = |columns| "█".repeat(columns);
    let expected = [
        format!("a    {}{}×{}", ran(3), nothing(7), nothing(64)),
        format!("b    {}×××▒▒", nothing(70)),
        format!("c    █{}{}{}", nothing(19), ran(41), nothing(14)),
        "█ ran  × failed  ▒ running  · nothing  (one column is 1day)\n".to_owned(),
    ];
    assert_eq!(rest, expected.join("\n"));

    let named = chart(&["c", "never"]).output().expect_code(0).stdout;
    let lines: Vec<&str> = named.lines().skip(1).collect();
    assert!(named.is_ascii() && lines.len() == 3, "{named}");
    assert!(lines[0].starts_with("c      #...") && lines[1].starts_with("never  ....."));
    let found = chart(&["[ab]", "?"]).output().expect_code(0).stdout;
    assert_eq!(found.lines().count(), 6, "{found}");
    // A day, if nothing else is said.
    let day = Lease::new(["history", "--chart", "b"]).url(&url).output();
    let day = day.expect_code(0).stdout;
    assert!(day.contains(&format!("b    {}\n", ">".repeat(75))), "{day}");
}

#[test]
fn the_locale_decides_whether_the_marks_are_ascii() {
    let (_, url) = world();
    let is_ascii = |locale: &[(&str, &str)]| {
        let mut chart = Lease::new(["history", "--chart", "b"]).url(&url);
        for (name, value) in locale {
            chart = chart.env(name, value);
        }
        chart.output().expect_code(0).stdout.is_ascii()
    };
    assert!(is_ascii(&[]));
    assert!(is_ascii(&[("LANG", "C.UTF-8"), ("LC_ALL", "C")]));
    assert!(is_ascii(&[("LANG", "C.UTF-8"), ("LC_CTYPE", "POSIX")]));
    assert!(!is_ascii(&[("LANG", "en_IN.utf8"), ("LC_ALL", "")]));
    assert!(!is_ascii(&[("LANG", "C"), ("LC_CTYPE", "de_DE.UTF-8")]));
}

#[test]
fn at_a_terminal_a_chart_is_as_wide_as_it_and_failures_are_red() {
    let (_, url) = world();
    let draw = "read go; exec \"$LEASE\" history --chart --since 75d b";
    let shell = Lease::program("sh").args(["-c", draw]).knowing_lease();
    let shell = shell.url(&url);
    let terminal = Terminal::spawn(&shell);
    terminal.resize(24, 105);
    terminal.type_in("\n");
    terminal.wait_for("nothing");
    let screen = terminal.screen();
    let marks = screen
        .lines()
        .find(|line| line.starts_with("b  "))
        .expect("b");
    let plain = marks.replace("\u{1b}[31m", "").replace("\u{1b}[0m", "");
    assert_eq!(plain.trim_end().len(), 105, "{screen}");
    assert!(marks.contains(".\u{1b}[31mXX"), "{screen}");
    let terminal = Terminal::spawn(&shell.env("NO_COLOR", "1"));
    terminal.type_in("\n");
    terminal.wait_for("nothing");
    assert!(!terminal.screen().contains("[31m"), "{}", terminal.screen());
}

#[test]
fn a_chart_is_refused_together_with_what_it_cannot_show() {
    for other in [
        &["--failed"][..],
        &["--last"],
        &["--overdue", "1h"],
        &["--limit", "3"],
        &["--format", "json"],
    ] {
        let out = lease(&["history", "--chart"]).args(other).output();
        let out = out.expect_code(2);
        assert!(out.stderr.contains(" cannot be used with "), "{out}");
    }
    claimed(&key(), &[]);
    for kind in ["--chart", "--failed"] {
        lease(&["history", kind, "--format", "table", "--since", "9000years"])
            .output()
            .expect_code(0);
    }
}
