use super::Settings;

fn resolve(given: &str) -> Result<Settings, String> {
    Settings::read(Some(given), &|name| {
        (name == "HOME").then(|| "/nonexistent".to_owned())
    })
    .map_err(|e| e.to_string())
}

#[test]
fn the_lists_of_hosts_addresses_and_ports_are_combined_item_by_item() {
    let hosts = |given: &str| {
        let hosts = resolve(given)?.hosts;
        Ok::<_, String>(
            hosts
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" "),
        )
    };
    assert_eq!(hosts("").unwrap(), "/var/run/postgresql/.s.PGSQL.5432");
    assert_eq!(hosts("host=a,b port=1,2").unwrap(), "a:1 b:2");
    assert_eq!(hosts("host=a,b port=1").unwrap(), "a:1 b:1");
    assert_eq!(hosts("host=a,b port=,2").unwrap(), "a:5432 b:2");
    assert_eq!(
        hosts("host=a,,c").unwrap(),
        "a:5432 /var/run/postgresql/.s.PGSQL.5432 c:5432"
    );
    assert_eq!(
        hosts("hostaddr=::1,10.0.0.5 port=7").unwrap(),
        "[::1]:7 10.0.0.5:7"
    );
    assert_eq!(
        hosts("host=a, hostaddr=10.0.0.5,10.0.0.6").unwrap(),
        "a (10.0.0.5):5432 10.0.0.6:5432"
    );
    assert_eq!(
        hosts("host=a port=1,2").unwrap_err(),
        "port has 2 entries for 1 host: give one port for all hosts, or one for each"
    );
    assert_eq!(
        hosts("host=a,b hostaddr=::1").unwrap_err(),
        "host has 2 entries and hostaddr has 1: give the same number of each"
    );
}

#[test]
fn a_setting_that_would_weaken_the_connection_if_ignored_is_refused_by_name() {
    for (given, named) in [
        ("gssencmode=require", "gssencmode"),
        ("requirepeer=postgres", "requirepeer"),
        ("sslcrldir=/etc/ssl/crl", "sslcrldir"),
        ("replication=database", "replication"),
        ("options='-c role=app'", "options"),
        ("gssencmode=always", "gssencmode"),
        ("sslrootcert=system sslmode=require", "sslrootcert=system"),
        ("sslnegotiation=direct", "sslnegotiation=direct"),
        ("require_auth=scram", "require_auth"),
    ] {
        let text = resolve(given).map(drop).unwrap_err();
        assert!(text.starts_with(named), "{given}: {text}");
    }
    for harmless in [
        "gssencmode=prefer",
        "replication=off",
        "sslcompression=1 sslpassword=x",
        "gssdelegation=1",
    ] {
        assert_eq!(resolve(harmless).map(drop), Ok(()), "{harmless}");
    }
}

#[test]
fn an_error_in_a_value_begins_with_its_source() {
    let error = |given: &str, variable: (&str, &str)| {
        Settings::read(Some(given), &|name| match name {
            "HOME" => Some("/nonexistent".to_owned()),
            _ => (name == variable.0).then(|| variable.1.to_owned()),
        })
        .map(drop)
        .map_err(|e| e.to_string())
    };
    for (variable, value) in [
        ("PGPORT", "abc"),
        ("PGPORT", "1,2"),
        ("PGHOSTADDR", "db.example"),
        ("PGCONNECT_TIMEOUT", "soon"),
        ("PGSSLMODE", "yes"),
        ("PGSSLNEGOTIATION", "direct"),
        ("PGSSLMINPROTOCOLVERSION", "SSLv3"),
        ("PGREQUIREAUTH", "scram"),
        ("PGREQUIREPEER", "postgres"),
        ("PGGSSENCMODE", "require"),
        ("PGOPTIONS", "-c role=app"),
        ("PGTARGETSESSIONATTRS", "master"),
        ("PGCHANNELBINDING", "on"),
    ] {
        let text = error("", (variable, value)).unwrap_err();
        assert!(text.starts_with(&format!("{variable}: ")), "{text}");
    }
    let text = error("port=abc", ("PGPORT", "5432")).unwrap_err();
    assert!(text.starts_with("port=\"abc\" is not a number"), "{text}");
}

#[test]
fn servers_are_named_without_a_password() {
    let settings = resolve("postgresql://app:secret@db1,db2:6/orders").unwrap();
    assert_eq!(settings.servers(), "db1:5432,db2:6");
    assert_eq!((settings.user(), settings.database()), ("app", "orders"));
}
