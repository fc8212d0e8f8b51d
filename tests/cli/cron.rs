//! Two replicas, each under a cron daemon of its own, with the lines that the README shows: what cron mails, and what the
//! history says the next morning.
//!
//! The daemons are real, in mount and host name spaces of their own. Their clock starts shortly before the hour and goes
//! sixty times as fast; the clock of the jobs, of `lease` and of the server does not.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::support::{Clock, Lease, Running, Server, keeper, programs, skip, until};

/// Fails when it is called for the first time under this key.
const REPORT: &str = r#"#!/bin/sh
echo "report on $(hostname) for $LEASE_KEY"
test "$LEASE_KEY" != weekly || test -e "$TRIED" || { touch "$TRIED"; exit 3; }
"#;

/// A machine with a crontab.
struct Replica {
    dir: PathBuf,
    _cron: Running,
}

impl Replica {
    /// Starts its cron daemon, whose clock shows `at`, or `None` where that is not allowed.
    fn start(name: &str, at: &str, crontab: &str) -> Option<Self> {
        let cron = programs::find("cron")?;
        let clock = Clock::new()?;
        let dir = keeper::dir(name);
        let file = |path: &str, text: &str, mode: u32| {
            let path = dir.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(&path, text).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
        };
        for folder in ["run", "cron.d"] {
            fs::create_dir(dir.join(folder)).expect("a folder");
        }
        // The folders of programs are hidden by ours.
        fs::copy(cron, dir.join("cron")).expect("a copy");
        fs::create_dir(dir.join("bin")).expect("a folder");
        fs::copy(programs::lease(), dir.join("bin/lease")).expect("a copy");
        file("bin/report", REPORT, 0o755);
        let sendmail = format!("#!/bin/sh\ncat >>{}\n", dir.join("mails").display());
        file("sbin/sendmail", &sendmail, 0o755);
        file("mails", "", 0o600);
        file("crontab", "", 0o600);
        let tick = format!("* * * * * echo >>{}\n", dir.join("ticks").display());
        file("crontabs/root", &format!("{crontab}{tick}"), 0o600);
        file("ticks", "", 0o600);
        let pam = "auth required pam_permit.so\naccount required pam_permit.so\nsession required pam_permit.so\n";
        file("pam", pam, 0o644);
        let script = format!(
            "hostname {name} && cd {} && mount --bind run /run && mount --bind crontab /etc/crontab &&
             mount --bind cron.d /etc/cron.d && mount --bind crontabs /var/spool/cron/crontabs &&
             mount --bind pam /etc/pam.d/cron && mount --bind sbin /usr/sbin && mount --bind bin /usr/local/bin && exec \"$@\"",
            dir.display()
        );
        let words = ["unshare", "-m", "--uts", "sh", "-c", &script, "sh"];
        if Lease::program("true").wrapped(words).output().code != Some(0) {
            return None;
        }
        let cron = Lease::program(dir.join("cron"))
            .args(["-f"])
            .wrapped(words)
            .env("LD_PRELOAD", clock.library())
            .env("FAKETIME", format!("@2026-12-03 {at} x60"))
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("TZ", "UTC")
            .spawn();
        Some(Self { dir, _cron: cron })
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.dir.join(name)).expect("a file")
    }

    /// What cron has mailed about the lines with this text, without the headers.
    fn mails(&self, about: &str) -> Vec<String> {
        let mails = self.read("mails");
        let mails = mails.split("From: root (Cron Daemon)\n").skip(1);
        mails
            .filter_map(|mail| mail.split_once("\n\n"))
            .filter(|(head, _)| head.contains(about))
            .map(|(_, body)| body.to_owned())
            .collect()
    }

    /// Waits until so many minutes of its clock have passed.
    fn wait_for_minutes(&self, minutes: usize) {
        let minutes = self.read("ticks").len() + minutes;
        until("time passes", || self.read("ticks").len() >= minutes);
    }
}

/// The lines of the README that begin like this.
fn shown(start: &str) -> String {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = fs::read_to_string(readme).expect("README.md");
    let lines: Vec<&str> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(start))
        .collect();
    assert_eq!(lines.len(), 1, "one line of the README begins with {start}");
    format!("{}\n", lines[0])
}

#[test]
fn cron_on_two_replicas_runs_a_job_once_makes_up_for_a_failure_and_mails_what_matters() {
    let server = Server::start_plain();
    let dir = keeper::dir("cron");
    let services = dir.join("services");
    let service = format!(
        "[leases]\nhost=localhost\nport={}\nuser=postgres\n",
        server.port()
    );
    fs::write(&services, service).expect("a file");
    let settings = format!(
        "{}PGSERVICEFILE={}\nTRIED={}\n",
        shown("LEASE_DATABASE_URL=service=leases"),
        services.display(),
        dir.join("tried").display()
    );
    let crontab = format!(
        "{settings}{}{}",
        shown("0 4 * * *  /usr/local/bin/lease run"),
        shown("*/10 4-8 * * *").replace(" nightly ", " weekly ")
    );
    let start = |name: &str, at: &str, crontab: &str| Replica::start(name, at, crontab);
    let Some(first) = start("web-1", "03:59:40", &crontab) else {
        return skip("cron, faketime or mount namespaces");
    };
    // Its clock is two minutes late: the job has ended long before.
    let second = start("web-2", "03:57:40", &crontab).expect("as the first");
    let replicas = [&first, &second];

    let runs = |key: &str| -> Vec<serde_json::Value> {
        let out = Lease::new(["history", "--format", "json", key]).on(&server);
        serde_json::from_str(&out.output().stdout).unwrap_or_default()
    };
    until("the weekly report has succeeded", || {
        runs("weekly").iter().any(|run| run["exit_code"] == 0)
    });
    for replica in replicas {
        replica.wait_for_minutes(11);
    }

    let nightly = runs("nightly");
    assert_eq!(nightly.len(), 1, "{nightly:?}");
    assert_eq!(nightly[0]["exit_code"], 0);
    let host = nightly[0]["host"].as_str().expect("a host");
    let codes: Vec<_> = runs("weekly")
        .iter()
        .map(|run| run["exit_code"].clone())
        .collect();
    assert_eq!(codes, [0, 3], "the newest first");
    let mails = |about: &str| -> Vec<String> {
        replicas
            .iter()
            .flat_map(|replica| replica.mails(about))
            .collect()
    };
    assert_eq!(
        mails(" nightly "),
        [format!("report on {host} for nightly\n")]
    );
    let weekly = mails(" weekly ");
    assert!(
        weekly.len() == 2 && weekly.iter().all(|mail| mail.ends_with(" for weekly\n")),
        "{weekly:?}"
    );

    // Nobody has ever run the backup.
    let alert = format!("{settings}{}", shown("0 9 * * *"));
    let third = start("web-3", "08:59:40", &alert).expect("as the first");
    until("cron has mailed", || !third.mails("--overdue").is_empty());
    let mail = third.mails("--overdue").concat();
    assert!(
        mail.contains("backup") && !mail.contains("nightly"),
        "{mail}"
    );
}

/// cron's own PATH is /usr/bin:/bin.
#[test]
fn the_lines_for_cron_name_lease_by_its_path() {
    for line in ["0 4 * * *  /", "*/10 4-8 * * *  /", "0 9 * * *  /"] {
        let line = shown(line);
        let program = line.split_whitespace().nth(5).expect("a program");
        assert_eq!(Path::new(program), Path::new("/usr/local/bin/lease"));
    }
}
