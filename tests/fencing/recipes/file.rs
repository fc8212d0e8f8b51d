//! A file that is replaced together with its fence.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::thread;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::{dir, run, stands};
use crate::page::recipe;
use crate::support::{LIMIT, Lease, programs, until};

/// Writes once, with a umask that the recipe must respect.
fn script() -> String {
    format!(
        "umask 027\n{}\necho contents | publish report.txt",
        recipe("file")
    )
}

/// What lies in the directory besides the lock.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .expect("the directory")
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.into_string().expect("text"))
        .filter(|name| name != "report.txt.lock")
        .collect();
    names.sort();
    names
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").mode() & 0o7777
}

#[test]
fn a_file_under_flock() {
    let dir = dir();
    stands(&script(), 76, dir.path(), &[], || {
        format!(
            "{:?}{}",
            names(dir.path()),
            fs::read_to_string(dir.path().join("report.txt")).unwrap_or_default()
        )
    });
}

#[test]
fn where_no_fence_is_found_nothing_is_written_and_nothing_is_called_stale() {
    let dir = dir();
    let file = dir.path().join("report.txt");
    for contents in [
        "",
        "contents\n",
        "\nfence 5\n",
        "fence \n",
        "fence torn\n",
        "fence -5\n",
        "fence 5 \n",
        "fence 99999999999999999999\n",
    ] {
        fs::write(&file, contents).expect("a file");
        let output = run(&script(), Some(i64::MAX), dir.path(), &[]);
        let code = output.status.code();
        assert!(matches!(code, Some(1 | 2)), "{contents:?}: {output:?}");
        assert_eq!(fs::read_to_string(&file).expect("a file"), contents);
        assert_eq!(names(dir.path()), ["report.txt"]);
    }
    fs::remove_file(&file).expect("removes");
    for odd in ["a directory", "a link that leads nowhere"] {
        if odd == "a directory" {
            fs::create_dir(&file).expect("a directory");
        } else {
            fs::remove_dir(&file).expect("still empty");
            std::os::unix::fs::symlink("nowhere", &file).expect("a link");
        }
        let output = run(&script(), Some(i64::MAX), dir.path(), &[]);
        assert_eq!(output.status.code(), Some(1), "{odd}: {output:?}");
        assert_eq!(names(dir.path()), ["report.txt"], "{odd}");
    }
}

#[test]
fn a_text_that_is_not_a_fence_publishes_nothing() {
    let dir = dir();
    for fence in [
        "",
        "nan",
        "1e3",
        "-5",
        "0x10",
        "5\n6",
        "0",
        "007",
        "99999999999999999999",
    ] {
        let script = format!("FENCE='{fence}'\n{}", script());
        let output = run(&script, None, dir.path(), &[]);
        let code = output.status.code();
        assert!(matches!(code, Some(1 | 2)), "{fence:?}: {output:?}");
        assert!(names(dir.path()).is_empty(), "{fence:?}");
    }
}

/// A user who may replace the file but not read it. Tests that don't run as root have no second user; theirs may not read it either.
#[test]
fn a_file_that_this_user_cannot_read_is_not_taken_for_a_missing_one() {
    let dir = dir();
    let file = dir.path().join("report.txt");
    set_mode(dir.path(), 0o777);
    assert!(
        run(&script(), Some(8), dir.path(), &[]).status.success(),
        "the first user"
    );
    set_mode(&dir.path().join("report.txt.lock"), 0o666);
    let as_second = |fence: &str| {
        let mut command = programs::command("sh");
        command
            .args(["-c", &script()])
            .current_dir(dir.path())
            .env("FENCE", fence);
        command.output().expect("sh")
    };
    let unreadable = if programs::unprivileged().is_some() {
        0o600
    } else {
        0
    };
    set_mode(&file, unreadable);
    for fence in ["7", "9"] {
        let output = as_second(fence);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("can't tell"),
            "{output:?}"
        );
        assert_eq!(names(dir.path()), ["report.txt"]);
        assert_eq!(mode(&file), unreadable);
    }
    set_mode(&file, 0o644);
    assert_eq!(as_second("7").status.code(), Some(76));
    assert_eq!(as_second("9").status.code(), Some(0));
    assert_eq!(
        fs::read_to_string(&file).expect("a file"),
        "fence 9\ncontents\n"
    );
    assert_eq!(mode(&file), 0o644);
}

#[test]
fn a_new_file_has_the_mode_of_the_umask_and_a_later_one_that_of_the_file_before() {
    let dir = dir();
    let file = dir.path().join("report.txt");
    assert!(run(&script(), Some(1), dir.path(), &[]).status.success());
    assert_eq!(mode(&file), 0o640);
    for kept in [0o604, 0o600, 0o444, 0o664] {
        set_mode(&file, kept);
        assert!(run(&script(), Some(1), dir.path(), &[]).status.success());
        assert_eq!(mode(&file), kept);
    }
}

/// As `lease run` ends a job: by a signal to its process group.
#[test]
fn a_writer_that_is_ended_by_a_signal_leaves_nothing_behind() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let dir = dir();
        let writer = Lease::program("sh")
            .args(["-c", &format!("{}\npublish report.txt", recipe("file"))])
            .dir(dir.path())
            .env("FENCE", "5")
            .open_input()
            .spawn();
        let written = || -> u64 {
            let sizes = names(dir.path())
                .into_iter()
                .map(|name| fs::metadata(dir.path().join(name)).map_or(0, |m| m.len()));
            sizes.sum()
        };
        until("it has begun to write", || written() > 0);
        killpg(Pid::from_raw(writer.pid()), signal).expect("a signal");
        // The process that makes the contents belongs to the job too, and is ended by the same signal.
        writer.close_input();
        assert!(!writer.wait_exit(LIMIT).success(), "{signal}");
        until("its file is gone", || names(dir.path()).is_empty());
    }
}

#[test]
fn a_lock_that_is_kept_is_reported_and_nothing_is_written() {
    let dir = dir();
    let holder = Lease::program("sh")
        .args([
            "-c",
            "exec 9>>report.txt.lock; flock 9; echo locked; read end",
        ])
        .dir(dir.path())
        .open_input()
        .spawn();
    holder.wait_for_line("locked");
    let patient = script();
    assert!(patient.contains("flock -w 60 9"), "{patient}");
    let output = run(
        &patient.replace("-w 60", "-w 0.2"),
        Some(7),
        dir.path(),
        &[],
    );
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "can't tell: no lock on report.txt.lock\n"
    );
    assert!(names(dir.path()).is_empty());
}

#[test]
fn many_that_publish_a_file_at_once_leave_the_newest() {
    let dir = dir();
    let script = format!(
        "{}\necho \"by $FENCE\" | publish report.txt",
        recipe("file")
    );
    thread::scope(|scope| {
        for fence in 1..=20 {
            let (script, dir) = (&script, dir.path());
            scope.spawn(move || run(script, Some(fence), dir, &[]));
        }
    });
    let left = fs::read_to_string(dir.path().join("report.txt")).expect("a file");
    assert_eq!(left, "fence 20\nby 20\n");
}
