//! What `lease.run` says can be anything: the row has bounded values or none, and nothing fails.

use crate::support::{key, shared};
use crate::{Database, here};

const CLAIM: &str = "INSERT INTO public.lease (key, holder, expires_at)
    VALUES ($1, 'own', clock_timestamp() + interval '1h')";
const RELEASE: &str = "UPDATE public.lease SET holder = '' WHERE key = $1";

/// The row of a term that began and ended with this setting.
#[track_caller]
fn row_of(setting: &str) -> String {
    let (here, key) = (here(), key());
    let mut client = here.client();
    for statement in [CLAIM, RELEASE] {
        let mut transaction = client.transaction().expect("a transaction");
        transaction
            .execute("SELECT set_config('lease.run', $1, true)", &[&setting])
            .expect("the setting is set");
        let changed = transaction.execute(statement, &[&key]).expect("it works");
        assert_eq!(changed, 1);
        transaction.commit().expect("it is committed");
    }
    let rows = here.history(
        &key,
        "concat_ws(' ', holder, ended, 'host ' || host, 'pid ' || pid, 'program ' || program, 'by ' || ended_by,
            'on ' || ended_by_host, 'code ' || exit_code, 'signal ' || exit_signal)",
    );
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows[0].clone()
}

#[test]
fn what_cannot_be_read_has_not_been_said() {
    let long = format!(r#"{{"exit_code":3,"host":"{}"}}"#, "x".repeat(1024 * 1024));
    let nested = "[".repeat(1990);
    let deep = format!("{}{}", r#"{"exit_code":"#.repeat(100), "3".repeat(100));
    for setting in [
        "",
        " ",
        "null",
        "7",
        r#""exit_code""#,
        "[3]",
        r#"[{"exit_code":3}]"#,
        "{",
        r#"{"exit_code":"#,
        r#"{"exit_code":3"#,
        r#"{'exit_code':3}"#,
        r#"{"exit_code":3} {}"#,
        r#"{"host":"\x"}"#,
        "exit_code=3",
        &long,
        &nested,
        &deep,
    ] {
        let start = &setting[..setting.len().min(60)];
        assert_eq!(row_of(setting), "own released", "{start}");
    }
}

#[test]
fn values_of_another_type_or_out_of_range_are_left_out_one_by_one() {
    for value in [
        "null",
        "true",
        "[]",
        "{}",
        r#"{"exit_code":3}"#,
        "-1",
        "-0",
        "1.5",
        "1e1",
        "007",
        "2147483648",
        "99999999999999999999999",
        r#""""#,
        r#"" 3""#,
        r#""3\n""#,
        r#""0x3""#,
        r#""NaN""#,
        r#""٣""#,
    ] {
        let setting = format!(
            r#"{{"pid":{value},"exit_code":{value},"exit_signal":{value},"program":"job"}}"#
        );
        let row = row_of(&setting);
        // A whole number that begins with zeros is not JSON.
        let expected = if value == "007" {
            "own released"
        } else {
            "own released program job"
        };
        assert_eq!(row, expected, "{value}");
    }
    // When the job has ended, in microseconds since 1970: too early, too late, and no time at all.
    for value in [
        "0",
        "-1",
        "999999999999999999",
        "9223372036854775808",
        "null",
        r#""infinity""#,
    ] {
        let setting = format!(r#"{{"ours_to":{value},"exit_code":3}}"#);
        assert_eq!(row_of(&setting), "own released code 3", "{value}");
    }
    for (setting, row) in [
        (
            r#"{"exit_code":255,"pid":4194304}"#,
            "own released pid 4194304 code 255",
        ),
        (
            r#"{"exit_code":256,"exit_signal":127}"#,
            "own released signal 127",
        ),
        (
            r#"{"exit_code":0,"exit_signal":128}"#,
            "own released code 0",
        ),
        (r#"{"exit_signal":0,"pid":0}"#, "own released"),
        (r#"{"host":"","program":""}"#, "own released"),
    ] {
        assert_eq!(row_of(setting), row);
    }
}

#[test]
fn texts_are_cut_and_their_escapes_break_nothing() {
    let long = format!(r#"{{"host":"{}"}}"#, "x".repeat(1900));
    assert_eq!(
        row_of(&long),
        format!("own released host {}", "x".repeat(255))
    );
    let quotes = r#"{"program":"'; DROP TABLE public.lease; --"}"#;
    assert_eq!(
        row_of(quotes),
        "own released program '; DROP TABLE public.lease; --"
    );
    // What the database can't store does not cost the rest.
    for escape in [r"\u0000", r"\ud800", r"\udc00\ud800", r"\ud800\ud800"] {
        let setting = format!(r#"{{"host":"a{escape}b","exit_code":3}}"#);
        let row = row_of(&setting);
        assert!(
            row.starts_with("own released host a?") && row.ends_with("b code 3"),
            "{row}"
        );
    }
}

#[test]
fn only_its_own_statement_says_which_term_ends_and_how() {
    for manner in ["expired", "lost", "deleted", "released", "running", "?"] {
        let setting = format!(r#"{{"ended":"{manner}","exit_code":1}}"#);
        assert_eq!(row_of(&setting), "own released code 1");
    }
    let other = key();
    here().claim(&other, &[]);
    let fence = &here().history(&other, "fence")[0];
    let setting = format!(
        r#"{{"key":"{other}","fence":{fence},"holder":"x","ended_by":"x","ended_at":"2000-01-01","acquired_at":"2000-01-01","exit_code":2}}"#
    );
    assert_eq!(row_of(&setting), "own released code 2");
    assert_eq!(here().terms(&other), ["running"]);
    // The culprit is whoever is logged in, and a code that was said for a forced end is nobody's.
    let forced = r#"{"ended":"forced","ended_by":"x","host":"h","exit_code":0}"#;
    assert_eq!(row_of(forced), "own forced host h by postgres on h");
}

#[test]
fn a_setting_that_was_left_behind_says_nothing_about_the_terms_of_lease() {
    let here = Database::ready();
    let name = &here.name;
    here.sql(&format!(
        r#"ALTER DATABASE {name} SET lease.run = '{{"host":"x","program":"x","ended":"forced","exit_code":0}}'"#
    ));
    let term = here.claim("k", &[]);
    here.lease(&["release"])
        .args(term.named())
        .output()
        .expect_code(0);
    assert_eq!(here.terms("k"), ["released"]);
    assert_eq!(
        here.history("k", "host = 'x' OR program IS NOT NULL"),
        ["f"]
    );
}

#[test]
fn a_forged_host_reaches_no_terminal_as_it_is() {
    let here = Database::ready();
    here.claim("k", &[]);
    let forged = r#"{"ended":"forced","host":"h\u001b[31m\nk  \u202e","pid":1}"#;
    let mut client = here.client();
    let mut transaction = client.transaction().expect("a transaction");
    transaction
        .execute("SELECT set_config('lease.run', $1, true)", &[&forged])
        .expect("the setting is set");
    transaction.execute(RELEASE, &[&"k"]).expect("it works");
    transaction.commit().expect("it is committed");
    for args in [
        &["history", "k"][..],
        &["history", "--format", "json", "k"],
        &["status", "--all", "k"],
    ] {
        let out = here.lease(args).output().expect_code(0).stdout;
        let harmless = |c: char| !c.is_control() && c != '\u{202e}' || c == '\n';
        assert!(out.chars().all(harmless), "{out:?}");
        if !args.contains(&"json") {
            assert_eq!(out.lines().count(), 2, "{out:?}");
        }
    }
}

#[test]
fn names_that_the_encoding_of_the_database_does_not_have_cost_no_exit_code() {
    for encoding in ["SQL_ASCII", "LATIN1"] {
        let name = format!("in_{}", encoding.to_lowercase());
        shared().psql(&format!(
            "CREATE DATABASE {name} ENCODING {encoding} TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        ));
        let here = Database {
            server: shared(),
            name,
        };
        let dir = crate::support::keeper::dir("jobs");
        let job = dir.join("größe-Ж-\u{1f600}");
        std::os::unix::fs::symlink("/bin/false", &job).expect("a link");
        here.lease(&["run", "k", "--"])
            .arg(&job)
            .output()
            .expect_code(1);
        assert_eq!(here.terms("k"), ["released code 1"], "{encoding}");
        let program = &here.history("k", "program")[0];
        assert!(program.starts_with("gr"), "{program}");
    }
}
