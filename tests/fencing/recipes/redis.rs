//! Redis, by a script.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};

use super::{dir, run, stands};
use crate::page::recipe;
use crate::support::{programs, skip, until};

/// A server on a socket, with nothing on disk.
struct Redis {
    dir: tempfile::TempDir,
    server: Child,
}

impl Redis {
    fn start() -> Self {
        let dir = dir();
        let server = Command::new("redis-server")
            .args([
                "--port",
                "0",
                "--save",
                "",
                "--appendonly",
                "no",
                "--unixsocket",
                "socket",
            ])
            .current_dir(dir.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server");
        // The recipe calls redis-cli as a reader would, who has his server on the usual port.
        let client = programs::find("redis-cli").expect("redis-cli");
        let wrapper = dir.path().join("redis-cli");
        fs::write(
            &wrapper,
            format!("#!/bin/sh\nexec {} -s socket \"$@\"\n", client.display()),
        )
        .expect("a file");
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).expect("chmod");
        let redis = Self { dir, server };
        until("redis answers", || redis.ask(&["PING"]) == "PONG\n");
        redis
    }

    fn ask(&self, arguments: &[&str]) -> String {
        let output = Command::new(self.dir.path().join("redis-cli"))
            .args(arguments)
            .current_dir(self.dir.path())
            .output();
        String::from_utf8(output.expect("redis-cli").stdout).expect("text")
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn a_value_and_its_fence() {
    if programs::find("redis-server").is_none() || programs::find("redis-cli").is_none() {
        return skip("redis-server and redis-cli");
    }
    let redis = Redis::start();
    let path = std::env::var("PATH").unwrap_or_default();
    let environment = [("PATH", format!("{}:{path}", redis.dir.path().display()))];
    let script = recipe("redis");
    let contents = || redis.ask(&["MGET", "{report}", "{report}:fence"]);
    // A text that is not a fence is refused, as the first fence and later.
    let refuses_what_is_no_fence = || {
        let before = contents();
        for fence in [
            "",
            "nan",
            "inf",
            "1e3",
            "-5",
            "0x10",
            " 5",
            "5.5",
            "0",
            // 2^53, which is also what 2^53 + 1 is taken for.
            "9007199254740992",
            "9007199254740993",
        ] {
            let script = format!("FENCE='{fence}'\n{script}");
            let output = run(&script, None, redis.dir.path(), &environment);
            let said = String::from_utf8_lossy(&output.stderr).to_lowercase();
            assert_eq!(output.status.code(), Some(1), "{fence:?}: {output:?}");
            assert!(
                said.contains("no fence") && !said.contains("stale"),
                "{fence:?}: {output:?}"
            );
            assert_eq!(contents(), before, "{fence:?}");
        }
    };
    refuses_what_is_no_fence();
    stands(&script, 1, redis.dir.path(), &environment, contents);
    refuses_what_is_no_fence();
    assert_eq!(
        redis.ask(&["GET", "{report}:fence"]),
        "1796098403884123\n",
        "digits, not a rounded double"
    );
    redis.ask(&["SET", "{report}:fence", "nan"]);
    let output = run(&script, Some(i64::MAX), redis.dir.path(), &environment);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
