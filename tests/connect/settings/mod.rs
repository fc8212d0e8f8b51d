//! Every kind of connection setting, compared with `psql`.

mod cases;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::LazyLock;

use crate::NOBODY;
use crate::both::Given;
use crate::support::Server;
use cases::CASES;
use cases::Expect::{In, Refused};

const HBA: &str = "
local all pw,wrong scram-sha-256
host all pw,wrong 127.0.0.1/32 scram-sha-256
host all hashed 127.0.0.1/32 md5
host all clear 127.0.0.1/32 password
host all nobody 127.0.0.1/32 reject
";

static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let server = Server::builder()
        .hba(HBA)
        .conf("listen_addresses = '127.0.0.1,::1'")
        .start();
    // The user that runs the test is the default.
    let me = nix::unistd::User::from_uid(nix::unistd::Uid::effective())
        .unwrap()
        .unwrap()
        .name;
    for sql in [
        format!("create role \"{me}\" login"),
        format!("create database \"{me}\""),
        "create role app login".to_owned(),
        "create role nobody login".to_owned(),
        "create role \"a b\" login".to_owned(),
        "create role \"o'x\\y\" login".to_owned(),
        "create role pw login password 'p:a\\ss w@rd/%'".to_owned(),
        "set password_encryption = md5; create role hashed login password 'secret'".to_owned(),
        "create role clear login password 'secret'".to_owned(),
        "create database orders".to_owned(),
        "create database \"a b\"".to_owned(),
        "create database app".to_owned(),
        "create database pw".to_owned(),
    ] {
        server.psql(&sql);
    }
    server
});

fn prepare(dir: &std::path::Path, fill: &dyn Fn(&str) -> String) {
    let private = |name: &str, mode: u32, text: &str| {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, fill(text)).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let secret = r"p\:a\\ss w@rd/%";
    let lines = format!(
        "# all of them\n127.0.0.1:{{port}}:pw:pw:{secret}\n{{sock}}:{{port}}:*:pw:{secret}\n"
    );
    private("pass", 0o600, &lines);
    private(".pgpass", 0o600, &lines);
    private("open", 0o644, &lines);
    private(
        "other",
        0o600,
        &format!("127.0.0.1:1:*:*:{secret}\n*:*:*:app:{secret}\n"),
    );
    private("wild", 0o600, &format!("*:*:*:*:{secret}\n*:*:*:*:no\n"));
    private("local", 0o600, &format!("localhost:*:*:*:{secret}\n"));
    private(
        "named",
        0o600,
        &format!("127.0.0.1:*:*:*:no\ndb.invalid:*:*:*:{secret}\n"),
    );
    let service = "host={sock}\nport={port}\nuser=app\ndbname=orders\n";
    private(
        "services",
        0o644,
        &format!(
            "# services\n[other]\nhost=/nowhere\n[mine]\n{service}dbname=none\n\n[broken]\n{service}nonsense\n\
             [unknown]\n{service}hots=a\n[nested]\n{service}service=mine\n"
        ),
    );
    private(".pg_service.conf", 0o644, &format!("[home]\n{service}"));
    private(
        "etc/pg_service.conf",
        0o644,
        &format!("[system]\n{service}"),
    );
}

/// Runs every `of`-th case from `from` on. There are four tests, so that they run in parallel.
fn compare(from: usize, of: usize) {
    let dir = tempfile::tempdir().unwrap();
    let sock = SERVER.socket_dir().to_str().unwrap();
    let (port, dead) = (SERVER.port().to_string(), NOBODY.to_string());
    let fill = |text: &str| {
        text.replace("{sock}", sock)
            .replace("{sock%}", &sock.replace('/', "%2F"))
            .replace("{port}", &port)
            .replace("{dead}", &dead)
            .replace("{dir}", dir.path().to_str().unwrap())
    };
    prepare(dir.path(), &fill);
    let mut wrong = Vec::new();
    for (what, string, variables, expect) in CASES.iter().skip(from).step_by(of) {
        let mut given = Given::new(string.map(&fill).as_deref(), &[("HOME", "/nonexistent")]);
        given
            .variables
            .extend(variables.iter().map(|(n, v)| ((*n).to_owned(), fill(v))));
        let (psql, library) = (given.by_psql(), given.by_library());
        let alike = match (&psql, &library) {
            (Ok(a), Ok(b)) => a == b && *expect == In,
            (Err(_), Err(text)) => {
                assert!(
                    !text.contains("w@rd") && !text.contains("secret"),
                    "a password is shown: {text}"
                );
                *expect == Refused
            }
            _ => false,
        };
        if !alike {
            wrong.push(format!(
                "{what}: {given:?}\n  psql:    {psql:?}\n  library: {library:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn psql_and_the_library_understand_settings_alike_1() {
    compare(0, 4);
}

#[test]
fn psql_and_the_library_understand_settings_alike_2() {
    compare(1, 4);
}

#[test]
fn psql_and_the_library_understand_settings_alike_3() {
    compare(2, 4);
}

#[test]
fn psql_and_the_library_understand_settings_alike_4() {
    compare(3, 4);
}

#[test]
fn a_refused_login_names_the_user_and_the_database() {
    let given = Given::new(
        Some(&format!(
            "host=127.0.0.1 port={} user=pw dbname=orders password=wr0ng",
            SERVER.port()
        )),
        &[("HOME", "/nonexistent")],
    );
    assert_eq!(
        given.by_library().unwrap_err(),
        format!(
            "127.0.0.1:{}: password authentication failed for user \"pw\" (database \"orders\")",
            SERVER.port()
        )
    );
}

#[test]
fn an_error_for_a_role_that_cannot_connect_to_the_database_names_the_missing_grant() {
    SERVER.psql("create database closed");
    SERVER.psql("revoke connect on database closed from public");
    let given = format!(
        "host={} port={} user=app dbname=closed",
        SERVER.socket_dir().display(),
        SERVER.port()
    );
    let settings = Given::new(Some(&given), &[("HOME", "/nonexistent")]).resolve();
    let error = crate::both::connect(&settings.unwrap(), pglease::connect::Access::Write)
        .map(drop)
        .expect_err("CONNECT is revoked");
    assert_eq!(error.fault, pglease::fault::Fault::Login);
    assert!(
        error
            .message
            .ends_with("(GRANT CONNECT ON DATABASE \"closed\" TO \"app\")"),
        "{}",
        error.message
    );
}

#[test]
fn a_password_file_is_read_for_each_connection() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pass");
    let write = |password: &str| {
        fs::write(&path, format!("*:*:*:*:{password}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    };
    write("no");
    let settings = Given::new(
        Some(&format!(
            "host=127.0.0.1 port={} user=pw passfile={}",
            SERVER.port(),
            path.display()
        )),
        &[],
    )
    .resolve()
    .unwrap();
    assert!(crate::both::connect(&settings, pglease::connect::Access::Read).is_err());
    write(r"p\:a\\ss w@rd/%");
    assert!(crate::both::connect(&settings, pglease::connect::Access::Read).is_ok());
}

#[test]
fn an_unusable_password_file_is_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pass");
    fs::write(&path, "*:*:*:*:secret\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let settings = Given::new(Some(&format!("passfile={}", path.display())), &[])
        .resolve()
        .unwrap();
    assert_eq!(settings.warnings().len(), 1);
    assert!(
        settings.warnings()[0].contains("chmod 0600"),
        "{:?}",
        settings.warnings()
    );
}
