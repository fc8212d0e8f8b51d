//! Every way of saying where the database is, side by side with `psql`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::LazyLock;

use crate::NOBODY;
use crate::both::Given;
use crate::support::Server;

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
    // The user that runs the test, too: it is the default.
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

/// Whether the two should get in.
#[derive(Clone, Copy, PartialEq)]
enum Expect {
    In,
    Refused,
}
use Expect::{In, Refused};

/// A case: what it shows, the string, the variables, the outcome. `{sock}`, `{port}`, `{dead}` and `{dir}` stand for
/// the socket directory, the port, a port that nobody listens on, and a directory with prepared files.
type Case = (
    &'static str,
    Option<&'static str>,
    &'static [(&'static str, &'static str)],
    Expect,
);

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Strings of words.
    ("words", Some("host={sock} port={port} user=app dbname=orders"), &[], In),
    ("blanks around =", Some("  host = {sock}  port= {port} user =app dbname = orders "), &[], In),
    ("quotes", Some("host='{sock}' port='{port}' user='a b' dbname='a b'"), &[], In),
    ("quotes without a blank behind", Some("host='{sock}'port={port} user=app dbname=orders"), &[], In),
    ("backslashes", Some(r"host={sock} port={port} user=a\ b dbname=orders"), &[], In),
    ("quote and backslash", Some(r"host={sock} port={port} user='o\'x\\y' dbname=orders"), &[], In),
    ("last word wins", Some("host=/nowhere user=nope host={sock} port={port} user=app dbname=orders"), &[], In),
    ("tabs and newlines", Some("host={sock}\tport={port}\nuser=app dbname=orders"), &[], In),
    ("database defaults to user", Some("host={sock} port={port} user=app"), &[], In),
    ("empty database is the user's", Some("host={sock} port={port} user=app dbname=''"), &[("PGDATABASE", "orders")], In),
    ("user defaults to the system's", Some("host={sock} port={port} dbname=orders"), &[], In),
    ("all defaults but the place", Some("host={sock} port={port}"), &[], In),
    ("unclosed quote", Some("host={sock} port={port} user='app"), &[], Refused),
    ("word without =", Some("host={sock} port={port} user"), &[], Refused),
    ("unknown word", Some("host={sock} port={port} hots=a"), &[], Refused),
    ("bad port", Some("host={sock} port=x"), &[], Refused),
    ("port out of range", Some("host={sock} port=65536"), &[], Refused),
    ("unknown database", Some("host={sock} port={port} user=app dbname=none"), &[], Refused),
    ("unknown user", Some("host={sock} port={port} user=none dbname=orders"), &[], Refused),
    ("nobody listens", Some("host=127.0.0.1 port={dead} user=app dbname=orders"), &[], Refused),
    ("no such socket", Some("host=/nowhere user=app dbname=orders"), &[], Refused),
    ("requiressl", Some("host={sock} port={port} user=app dbname=orders requiressl=0"), &[], In),
    ("requiressl for real", Some("host=127.0.0.1 port={port} user=app dbname=orders requiressl=1"), &[], Refused),
    // URIs.
    ("uri", Some("postgresql://app@127.0.0.1:{port}/orders"), &[], In),
    ("short scheme", Some("postgres://app@127.0.0.1:{port}/orders"), &[], In),
    ("other scheme", Some("mysql://app@127.0.0.1:{port}/orders"), &[], Refused),
    ("socket in a uri", Some("postgresql://app@{sock%}:{port}/orders"), &[], In),
    ("socket as a parameter", Some("postgresql:///orders?host={sock}&port={port}&user=app"), &[], In),
    ("ipv6", Some("postgresql://app@[::1]:{port}/orders"), &[], In),
    ("ipv6 as a word", Some("host=::1 port={port} user=app dbname=orders"), &[], In),
    ("unclosed ipv6", Some("postgresql://app@[::1:{port}/orders"), &[], Refused),
    ("percent in user", Some("postgresql://a%20b@127.0.0.1:{port}/a%20b"), &[], In),
    ("password in a uri", Some("postgresql://pw:p%3Aa%5Css%20w%40rd%2F%25@127.0.0.1:{port}/orders"), &[], In),
    ("raw colon in a password", Some("postgresql://pw:p:a%5Css%20w%40rd%2F%25@127.0.0.1:{port}/orders"), &[], In),
    ("wrong password", Some("postgresql://pw:no@127.0.0.1:{port}/orders"), &[], Refused),
    ("no password", Some("postgresql://pw@127.0.0.1:{port}/orders"), &[], Refused),
    ("bad percent", Some("postgresql://app@127.0.0.1:{port}/orders%zz"), &[], Refused),
    ("nul", Some("postgresql://app@127.0.0.1:{port}/orders%00"), &[], Refused),
    ("unknown parameter", Some("postgresql://app@127.0.0.1:{port}/orders?sslmod=disable"), &[], Refused),
    ("parameter without =", Some("postgresql://app@127.0.0.1:{port}/orders?sslmode"), &[], Refused),
    ("parameter with two =", Some("postgresql://app@127.0.0.1:{port}/orders?options=a=b"), &[], Refused),
    ("trailing &", Some("postgresql://app@127.0.0.1:{port}/orders?sslmode=disable&"), &[], In),
    ("uri without a port", Some("postgresql://app@127.0.0.1/orders"), &[("PGPORT", "{port}")], In),
    ("uri without a database", Some("postgresql://app@127.0.0.1:{port}"), &[("PGDATABASE", "orders")], In),
    ("uri with an empty database", Some("postgresql://app@127.0.0.1:{port}/"), &[("PGDATABASE", "orders")], In),
    ("uri without a host", Some("postgresql:///orders"), &[("PGHOST", "{sock}"), ("PGPORT", "{port}"), ("PGUSER", "app")], In),
    ("uri with nothing", Some("postgresql://"), &[("PGHOST", "{sock}"), ("PGPORT", "{port}"), ("PGUSER", "app")], In),
    ("jdbc's ssl", Some("postgresql://app@127.0.0.1:{port}/orders?ssl=true"), &[], Refused),
    ("parameter over path", Some("postgresql://app@127.0.0.1:{port}/none?dbname=orders"), &[], In),
    // The name of a database alone.
    ("bare name", Some("orders"), &[("PGHOST", "{sock}"), ("PGPORT", "{port}"), ("PGUSER", "app")], In),
    // Variables.
    ("variables", None, &[("PGHOST", "{sock}"), ("PGPORT", "{port}"), ("PGUSER", "app"), ("PGDATABASE", "orders")], In),
    ("string over variables", Some("user=app dbname=orders"), &[("PGHOST", "{sock}"), ("PGPORT", "{port}"), ("PGUSER", "none"), ("PGDATABASE", "none")], In),
    ("hostaddr", None, &[("PGHOST", "no.such.host.invalid"), ("PGHOSTADDR", "127.0.0.1"), ("PGPORT", "{port}"), ("PGUSER", "app")], In),
    ("hostaddr alone", Some("hostaddr=127.0.0.1 port={port} user=app"), &[], In),
    ("hostaddr with a name in it", Some("hostaddr=localhost port={port} user=app"), &[], Refused),
    ("PGPASSWORD", Some("host=127.0.0.1 port={port} user=pw"), &[("PGPASSWORD", "p:a\\ss w@rd/%")], In),
    ("empty PGPASSWORD", Some("host=127.0.0.1 port={port} user=pw"), &[("PGPASSWORD", "")], Refused),
    ("password over PGPASSWORD", Some("host=127.0.0.1 port={port} user=hashed password=secret dbname=orders"), &[("PGPASSWORD", "no")], In),
    ("md5", Some("host=127.0.0.1 port={port} user=hashed password=secret dbname=orders"), &[], In),
    ("cleartext", Some("host=127.0.0.1 port={port} user=clear password=secret dbname=orders"), &[], In),
    ("rejected by pg_hba", Some("host=127.0.0.1 port={port} user=nobody dbname=orders"), &[], Refused),
    ("PGAPPNAME", Some("host={sock} port={port} user=app"), &[("PGAPPNAME", "nightly")], In),
    ("application_name", Some("host={sock} port={port} user=app application_name=mine"), &[("PGAPPNAME", "nightly")], In),
    ("PGSSLMODE", Some("host=127.0.0.1 port={port} user=app"), &[("PGSSLMODE", "require")], Refused),
    ("PGREQUIRESSL", Some("host=127.0.0.1 port={port} user=app"), &[("PGREQUIRESSL", "1")], Refused),
    ("PGSSLMODE over PGREQUIRESSL", Some("host=127.0.0.1 port={port} user=app"), &[("PGREQUIRESSL", "1"), ("PGSSLMODE", "disable")], In),
    ("empty PGHOST and PGPORT", Some("host={sock} port={port} user=app"), &[("PGHOST", ""), ("PGPORT", "")], In),
    ("PGTARGETSESSIONATTRS", Some("host={sock} port={port} user=app"), &[("PGTARGETSESSIONATTRS", "standby")], Refused),
    ("PGCONNECT_TIMEOUT", Some("host={sock} port={port} user=app"), &[("PGCONNECT_TIMEOUT", "5")], In),
    ("bad PGCONNECT_TIMEOUT", Some("host={sock} port={port} user=app"), &[("PGCONNECT_TIMEOUT", "5s")], Refused),
    // What is accepted and does nothing here.
    ("client_encoding", Some("host={sock} port={port} user=app client_encoding=LATIN1"), &[("PGCLIENTENCODING", "SQL_ASCII")], In),
    ("gssapi", Some("host=127.0.0.1 port={port} user=app gssencmode=prefer krbsrvname=pg gsslib=gssapi"), &[], In),
    ("gssapi off", Some("host=127.0.0.1 port={port} user=app gssencmode=disable sslcompression=1"), &[], In),
    ("gssapi required", Some("host=127.0.0.1 port={port} user=app gssencmode=require"), &[], Refused),
    ("date style and zone", Some("host={sock} port={port} user=app"), &[("PGDATESTYLE", "german"), ("PGTZ", "UTC")], In),
    ("keepalives", Some("host=127.0.0.1 port={port} user=app keepalives=1 keepalives_idle=10 keepalives_interval=5 keepalives_count=2 tcp_user_timeout=2000"), &[], In),
    ("bad keepalives", Some("host=127.0.0.1 port={port} user=app keepalives_idle=x"), &[], Refused),
    ("options", Some("host={sock} port={port} user=app options='-c geqo=off'"), &[], In),
    // sslmode on a server without TLS, and on a socket.
    ("disable", Some("host=127.0.0.1 port={port} user=app sslmode=disable"), &[], In),
    ("allow", Some("host=127.0.0.1 port={port} user=app sslmode=allow"), &[], In),
    ("prefer", Some("host=127.0.0.1 port={port} user=app sslmode=prefer"), &[], In),
    ("require", Some("host=127.0.0.1 port={port} user=app sslmode=require"), &[], Refused),
    ("verify-full without roots", Some("host=127.0.0.1 port={port} user=app sslmode=verify-full"), &[], Refused),
    ("require on a socket", Some("host={sock} port={port} user=app sslmode=require"), &[], In),
    ("verify-full on a socket", Some("host={sock} port={port} user=app sslmode=verify-full"), &[], In),
    ("unknown sslmode", Some("host=127.0.0.1 port={port} user=app sslmode=on"), &[], Refused),
    ("empty sslmode", Some("host=127.0.0.1 port={port} user=app sslmode=''"), &[], Refused),
    ("sslmode in capitals", Some("host=127.0.0.1 port={port} user=app sslmode=DISABLE"), &[], Refused),
    ("channel binding without TLS", Some("host=127.0.0.1 port={port} user=app channel_binding=require"), &[], Refused),
    ("channel binding off", Some("host=127.0.0.1 port={port} user=app channel_binding=disable"), &[], In),
    // target_session_attrs on a primary.
    ("any", Some("host={sock} port={port} user=app target_session_attrs=any"), &[], In),
    ("read-write", Some("host={sock} port={port} user=app target_session_attrs=read-write"), &[], In),
    ("read-only", Some("host={sock} port={port} user=app target_session_attrs=read-only"), &[], Refused),
    ("primary", Some("host={sock} port={port} user=app target_session_attrs=primary"), &[], In),
    ("standby", Some("host={sock} port={port} user=app target_session_attrs=standby"), &[], Refused),
    ("prefer-standby", Some("host={sock} port={port} user=app target_session_attrs=prefer-standby"), &[], In),
    ("unknown target", Some("host={sock} port={port} user=app target_session_attrs=master"), &[], Refused),
    // Values that are there and empty.
    ("empty user", Some("host={sock} port={port} user='' dbname=orders"), &[], In),
    ("empty PGUSER", Some("host={sock} port={port} dbname=orders"), &[("PGUSER", "")], In),
    ("empty host", Some("host='' port={port} user=app"), &[("PGHOST", "{sock}")], Refused),
    ("empty port", Some("host={sock} port='' user=app"), &[("PGPORT", "{port}")], Refused),
    ("empty password", Some("host=127.0.0.1 port={port} user=pw password='' passfile={dir}/pass"), &[], In),
    ("empty connect_timeout", Some("host={sock} port={port} user=app connect_timeout=''"), &[], Refused),
    ("empty keepalives", Some("host=127.0.0.1 port={port} user=app keepalives=''"), &[], Refused),
    ("empty PGSERVICE", Some("host={sock} port={port} user=app"), &[("PGSERVICE", "")], Refused),
    ("empty passfile", Some("host=127.0.0.1 port={port} user=pw passfile=''"), &[("HOME", "{dir}")], In),
    ("empty target", Some("host={sock} port={port} user=app target_session_attrs=''"), &[], Refused),
    ("empty application_name", Some("host={sock} port={port} user=app application_name=''"), &[], In),
    ("empty channel_binding", Some("host={sock} port={port} user=app channel_binding=''"), &[], Refused),
    ("empty options", Some("host={sock} port={port} user=app options=''"), &[], In),
    ("zero connect_timeout", Some("host={sock} port={port} user=app connect_timeout=0"), &[], In),
    ("negative connect_timeout", Some("host={sock} port={port} user=app connect_timeout=-1"), &[], In),
    ("number with blanks", Some("host={sock} port=' {port} ' user=app connect_timeout=' 5 '"), &[], In),
    // Several hosts.
    ("second host", Some("host=127.0.0.1,{sock} port={dead},{port} user=app"), &[], In),
    ("second host in a uri", Some("postgresql://app@127.0.0.1:{dead},127.0.0.1:{port}/orders"), &[], In),
    ("one port for two hosts", Some("host=/nowhere,{sock} port={port} user=app"), &[], In),
    ("empty host is the default socket", Some("host=,{sock} port={port} user=app"), &[], In),
    ("ports and hosts that do not match", Some("host={sock},127.0.0.1,::1 port={port},{port} user=app"), &[], Refused),
    ("hosts and addresses that do not match", Some("host=a,b hostaddr=127.0.0.1 port={port} user=app"), &[], Refused),
    ("wrong password on the first", Some("host=127.0.0.1,{sock} port={port} user=wrong password=x"), &[], Refused),
    ("unreachable first", Some("host=no.such.host.invalid,{sock} port={port} user=app"), &[], In),
    ("abstract socket that is not there", Some("host=@lease-nowhere port={port} user=app"), &[], Refused),
    // Password files.
    ("passfile", Some("host=127.0.0.1 port={port} user=pw passfile={dir}/pass"), &[], In),
    ("PGPASSFILE", Some("host=127.0.0.1 port={port} user=pw"), &[("PGPASSFILE", "{dir}/pass")], In),
    ("~/.pgpass", Some("host=127.0.0.1 port={port} user=pw"), &[("HOME", "{dir}")], In),
    ("~/.pgpass for a socket", Some("host={sock} port={port} user=pw"), &[("HOME", "{dir}")], In),
    ("passfile that others may read", Some("host=127.0.0.1 port={port} user=pw passfile={dir}/open"), &[], Refused),
    ("passfile without a line", Some("host=127.0.0.1 port={port} user=pw passfile={dir}/other"), &[], Refused),
    ("passfile with wildcards", Some("host=127.0.0.1 port={port} user=pw passfile={dir}/wild"), &[], In),
    ("passfile for the name, not the address", Some("host=db.invalid hostaddr=127.0.0.1 port={port} user=pw passfile={dir}/named"), &[], In),
    ("passfile for the address alone", Some("hostaddr=127.0.0.1 port={port} user=pw passfile={dir}/pass"), &[], In),
    ("passfile for a name that the address does not have", Some("hostaddr=127.0.0.1 port={port} user=pw passfile={dir}/local"), &[], Refused),
    ("passfile a host", Some("host=127.0.0.1,127.0.0.1 port={dead},{port} user=pw passfile={dir}/pass"), &[], In),
    // Service files.
    ("service", Some("service=mine"), &[("PGSERVICEFILE", "{dir}/services")], In),
    ("PGSERVICE", None, &[("PGSERVICE", "mine"), ("PGSERVICEFILE", "{dir}/services")], In),
    ("~/.pg_service.conf", Some("service=home"), &[("HOME", "{dir}")], In),
    ("PGSYSCONFDIR", Some("service=system"), &[("HOME", "{dir}"), ("PGSYSCONFDIR", "{dir}/etc")], In),
    ("string over service", Some("service=mine dbname=app"), &[("PGSERVICEFILE", "{dir}/services")], In),
    ("service over variables", Some("service=mine"), &[("PGSERVICEFILE", "{dir}/services"), ("PGUSER", "none"), ("PGDATABASE", "none")], In),
    ("service in a uri", Some("postgresql:///?service=mine"), &[("PGSERVICEFILE", "{dir}/services")], In),
    ("unknown service", Some("service=none"), &[("PGSERVICEFILE", "{dir}/services")], Refused),
    ("service file that is not there", Some("service=mine"), &[("PGSERVICEFILE", "{dir}/none")], Refused),
    ("service with a mistake", Some("service=broken"), &[("PGSERVICEFILE", "{dir}/services")], Refused),
    ("service with an unknown word", Some("service=unknown"), &[("PGSERVICEFILE", "{dir}/services")], Refused),
    ("service that names a service", Some("service=nested"), &[("PGSERVICEFILE", "{dir}/services")], Refused),
];

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

/// Runs every `of`-th case from `from` on: in four tests, so that they run side by side.
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
fn a_refused_login_says_which_user_and_database() {
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
fn a_role_that_may_not_connect_to_the_database_is_told_the_grant_that_is_missing() {
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
fn a_password_file_is_read_anew_for_each_connection() {
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
