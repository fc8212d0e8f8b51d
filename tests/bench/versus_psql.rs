//! Side by side in one run: `lease` and `psql` doing the same, a job with and without `lease`, and what a thousand
//! renewals cost. Run it with `cargo bench --bench versus_psql`.
//!
//! Nothing here passes or fails: a machine that does something else at the same time gives other figures. The two sides
//! of a pair alternate, so that both see the same machine.

#![allow(clippy::print_stdout)] // What it prints is what it is for.

#[path = "../support/mod.rs"]
mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::{Server, programs, tls};

/// How often each side of a pair runs.
const ROUNDS: usize = 60;

/// What `psql` does in place of a claim: the same table, one statement, one transaction.
const BY_PSQL: &str = "INSERT INTO public.lease AS l (key, holder, expires_at) VALUES ('psql', 'h', clock_timestamp() + '60s')
    ON CONFLICT (key) DO UPDATE SET expires_at = EXCLUDED.expires_at WHERE l.holder = EXCLUDED.holder RETURNING fence";

fn lease(url: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lease"));
    command.args(args).env("LEASE_DATABASE_URL", url);
    command
}

fn psql(url: &str, sql: &str) -> Command {
    let mut command = Command::new(programs::psql());
    command.args(["-XAtq", "-d", url, "-c", sql]);
    command
}

fn time(command: &mut Command) -> Duration {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit());
    let start = Instant::now();
    let status = command.status().expect("the program starts");
    let took = start.elapsed();
    assert!(status.success(), "{command:?}: {status}");
    took
}

/// Median and the middle half of many, in milliseconds.
fn spread(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let ms = |at: usize| times[at.min(times.len() - 1)].as_secs_f64() * 1e3;
    format!(
        "{:6.1} ms ({:.1} to {:.1})",
        ms(times.len() / 2),
        ms(times.len() / 4),
        ms(times.len() * 3 / 4)
    )
}

fn pair(what: &str, names: [&str; 2], mut sides: [Box<dyn FnMut() -> Command + '_>; 2]) {
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        for side in [round % 2, (round + 1) % 2] {
            times[side].push(time(&mut sides[side]()));
        }
    }
    let [a, b] = times.map(spread);
    println!("{what:34} {:>6} {a}   {:>6} {b}", names[0], names[1]);
}

/// How many times a program waits for its server's answer, as strace sees it.
fn waits(command: &Command, trace: &str) -> Option<usize> {
    let strace = programs::find("strace")?;
    let log = support::keeper::dir("strace").join("log");
    let mut traced = Command::new(strace);
    traced
        .args(["-f", "-qq", "-e", trace, "-o"])
        .arg(&log)
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        traced.env(name, value.unwrap_or_default());
    }
    traced
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .ok()?;
    let text = std::fs::read_to_string(log).ok()?;
    // Something sent after something was received begins another round trip.
    let mut trips = 0;
    let mut sending = false;
    for line in text.lines() {
        let sent =
            line.contains("sendto(") || line.contains("writev(") || line.contains("sendmsg(");
        let received = line.contains("recvfrom(") || line.contains("recvmsg(");
        if sent && !sending {
            trips += 1;
        }
        sending = (sending || sent) && !received;
    }
    Some(trips)
}

fn main() {
    println!("median (middle half) of {ROUNDS} runs each, alternating\n");
    let secure = tls::is_available().then(|| {
        let authority = tls::Authority::root("bench");
        let certificate = authority.issue(
            &tls::Request::server("localhost")
                .dns("localhost")
                .ip("127.0.0.1"),
        );
        let server = Server::builder()
            .ssl(&certificate.chain, &certificate.key)
            .hba("hostssl all app 127.0.0.1/32 scram-sha-256")
            .fsync(true)
            .start();
        server
            .psql("CREATE ROLE app LOGIN PASSWORD 'secret'; GRANT CREATE ON SCHEMA public TO app");
        let url = format!(
            "postgresql://app:secret@127.0.0.1:{}/postgres?sslmode=verify-full&sslrootcert={}",
            server.port(),
            authority.certificate.display()
        );
        (server, url)
    });
    let plain = Server::builder().fsync(true).start();
    let mut places = vec![("unix socket, trust", plain.socket_url())];
    if let Some((_, url)) = &secure {
        places.push(("TCP, TLS 1.3, scram", url.clone()));
    }
    for (place, url) in &places {
        time(&mut lease(url, &["init", "-q"]));
        time(&mut lease(url, &["claim", "--holder", "h", "lease"]));
        pair(
            &format!("claim: {place}"),
            ["lease", "psql"],
            [
                Box::new(|| lease(url, &["claim", "--holder", "h", "lease"])),
                Box::new(|| psql(url, BY_PSQL)),
            ],
        );
        pair(
            &format!("status: {place}"),
            ["lease", "psql"],
            [
                Box::new(|| lease(url, &["status"])),
                Box::new(|| {
                    psql(
                        url,
                        "SELECT * FROM public.lease WHERE holder <> '' ORDER BY key",
                    )
                }),
            ],
        );
        let trace = "trace=sendto,writev,sendmsg,recvfrom,recvmsg";
        let trips = |command: Command| {
            waits(&command, trace).map_or_else(|| "not counted".to_owned(), |n| n.to_string())
        };
        println!(
            "{:34} {:>6} {:>6}                        {:>6} {:>6}",
            "  round trips of a claim, by strace",
            "lease",
            trips(lease(url, &["claim", "--holder", "h", "lease"])),
            "psql",
            trips(psql(url, BY_PSQL)),
        );
    }
    let url = &places[0].1;
    let run = |command: &[&str]| {
        let mut all = vec!["run", "job", "--"];
        all.extend(command);
        lease(url, &all)
    };
    pair(
        "run: a job that does nothing",
        ["lease", "bare"],
        [
            Box::new(|| run(&["true"])),
            Box::new(|| Command::new("true")),
        ],
    );

    let pipe = |prefix: &str| {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            &format!("{prefix} head -c 2G /dev/zero | cat >/dev/null"),
        ]);
        command.env("LEASE_DATABASE_URL", url);
        command
    };
    let wrapped = format!("{} run throughput --", env!("CARGO_BIN_EXE_lease"));
    for _ in 0..2 {
        let (with, without) = (time(&mut pipe(&wrapped)), time(&mut pipe("")));
        println!(
            "{:34}  lease {:6.0} ms             bare {:6.0} ms",
            "2 GB through stdout",
            with.as_secs_f64() * 1e3,
            without.as_secs_f64() * 1e3
        );
    }
    let size = std::fs::metadata(env!("CARGO_BIN_EXE_lease"))
        .map(|m| m.len())
        .unwrap_or_default();
    println!("\nthe program: {:.2} MB", size as f64 / 1e6);
}
