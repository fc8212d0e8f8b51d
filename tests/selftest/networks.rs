//! What stands between a client and its server: a proxy, a pooler, TLS, a network.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};

use crate::support::{
    AtCommit, LIMIT, Lease, Mode, Network, Pooler, Proxy, Server, key, programs, shared, skip,
    stays, tls, until,
};

fn table() -> String {
    let name = format!("\"{}\"", key());
    shared().psql(&format!("CREATE TABLE {name} (x int)"));
    name
}

fn rows(table: &str) -> String {
    shared().psql(&format!("SELECT count(*) FROM {table}"))
}

/// Runs SQL on a thread; its outcome arrives when there is one.
fn run_aside(mut client: Client, sql: &str) -> mpsc::Receiver<bool> {
    let (sender, outcome) = mpsc::channel();
    let sql = sql.to_owned();
    std::thread::spawn(move || sender.send(client.batch_execute(&sql).is_ok()));
    outcome
}

#[test]
fn a_stalled_proxy_answers_nothing_until_it_resumes() {
    let proxy = Proxy::to(shared());
    let client = Client::connect(&proxy.url(), NoTls).unwrap();
    proxy.stall();
    let outcome = run_aside(client, "SELECT 1");
    let url = proxy.url();
    let (sender, connected) = mpsc::channel();
    std::thread::spawn(move || sender.send(Client::connect(&url, NoTls).is_ok()));
    until("the second connection is accepted", || {
        proxy.accepted() == 2
    });
    let silent = || outcome.try_recv().is_err() && connected.try_recv().is_err();
    stays("no answer", Duration::from_millis(300), silent);
    proxy.resume();
    assert_eq!(
        (outcome.recv_timeout(LIMIT), connected.recv_timeout(LIMIT)),
        (Ok(true), Ok(true))
    );
}

#[test]
fn a_proxy_cuts_refuses_and_comes_back() {
    let proxy = Proxy::to(shared());
    let mut client = Client::connect(&proxy.url(), NoTls).unwrap();
    proxy.cut();
    assert!(client.simple_query("SELECT 1").is_err());
    assert!(Client::connect(&proxy.url(), NoTls).is_ok());
    proxy.refuse();
    let error = std::net::TcpStream::connect(("127.0.0.1", proxy.port())).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    proxy.resume();
    assert!(Client::connect(&proxy.url(), NoTls).is_ok());
    until("no connection is left", || proxy.open() == 0);
}

#[test]
fn an_answer_is_cut_off_after_the_server_has_committed() {
    let (proxy, table) = (Proxy::to(shared()), table());
    proxy.at_next_commits(1, AtCommit::CutAnswer);
    let insert = format!(
        "INSERT INTO {table} VALUES (1); SELECT set_config('synchronous_commit', 'on', true)"
    );
    let transaction = |client: &mut Client| {
        client.batch_execute("BEGIN")?;
        client.batch_execute(&insert)?;
        client.batch_execute("COMMIT")
    };
    let mut client = Client::connect(&proxy.url(), NoTls).unwrap();
    assert!(transaction(&mut client).is_err());
    assert_eq!((rows(&table).as_str(), proxy.commits_disturbed()), ("1", 1));
    let mut client = Client::connect(&proxy.url(), NoTls).unwrap();
    assert!(transaction(&mut client).is_ok());
    assert_eq!((rows(&table).as_str(), proxy.commits_disturbed()), ("2", 1));
}

#[test]
fn a_commit_can_be_lost_before_the_server_hears_of_it() {
    let (proxy, table) = (Proxy::to(shared()), table());
    proxy.at_next_commits(1, AtCommit::CutRequest);
    let mut client = Client::connect(&proxy.url(), NoTls).unwrap();
    client
        .batch_execute(&format!("BEGIN; INSERT INTO {table} VALUES (1)"))
        .unwrap();
    assert!(client.batch_execute("COMMIT").is_err());
    assert_eq!((rows(&table).as_str(), proxy.commits_disturbed()), ("0", 1));
}

#[test]
fn the_answer_to_a_commit_can_stay_on_the_way() {
    let (proxy, table) = (Proxy::to(shared()), table());
    proxy.at_next_commits(1, AtCommit::HoldAnswer);
    let mut client = Client::connect(&proxy.url(), NoTls).unwrap();
    client
        .batch_execute(&format!("BEGIN; INSERT INTO {table} VALUES (1)"))
        .unwrap();
    let outcome = run_aside(client, "COMMIT");
    until("the server has committed", || rows(&table) == "1");
    stays("no answer", Duration::from_millis(200), || {
        outcome.try_recv().is_err()
    });
    proxy.cut();
    assert_eq!(outcome.recv_timeout(LIMIT), Ok(false));
}

#[test]
fn a_link_can_be_slow_in_each_direction_and_when_it_connects() {
    let proxy = Proxy::to(shared());
    let one_way = Duration::from_millis(30);
    proxy.delay(one_way);
    let start = Instant::now();
    let mut client = Client::connect(&proxy.url(), NoTls).unwrap();
    assert!(start.elapsed() >= one_way * 4, "{:?}", start.elapsed());
    let start = Instant::now();
    client.batch_execute("SELECT 1").unwrap();
    assert!(start.elapsed() >= one_way * 2, "{:?}", start.elapsed());
}

#[test]
fn an_answer_that_was_held_back_can_be_let_go() {
    let (proxy, table) = (Proxy::to(shared()), table());
    proxy.at_next_commits(1, AtCommit::HoldAnswer);
    let mut client = Client::connect(&proxy.url(), NoTls).unwrap();
    client
        .batch_execute(&format!("BEGIN; INSERT INTO {table} VALUES (1)"))
        .unwrap();
    let outcome = run_aside(client, "COMMIT");
    until("the answer is held back", || proxy.held() == 1);
    assert_eq!(rows(&table), "1");
    proxy.let_go();
    assert_eq!(outcome.recv_timeout(LIMIT), Ok(true));
}

#[test]
fn a_pooler_shares_its_connections_by_its_mode() {
    if !Pooler::is_available() {
        return skip("PgBouncer");
    }
    let pooler = Pooler::start(shared(), Mode::Transaction, 1);
    let mut clients: Vec<Client> = (0..3)
        .map(|_| Client::connect(&pooler.url(), NoTls).unwrap())
        .collect();
    let backends: Vec<String> = clients
        .iter_mut()
        .map(|client| {
            client
                .query_typed("SELECT pg_backend_pid()::text", &[])
                .unwrap()[0]
                .get(0)
        })
        .collect();
    assert_eq!(backends, vec![backends[0].clone(); 3]);
    assert!(pooler.console("SHOW POOLS").contains("transaction"));

    let pooler = Pooler::start(shared(), Mode::Statement, 1);
    let mut client = Client::connect(&pooler.url(), NoTls).unwrap();
    assert!(client.batch_execute("BEGIN").is_err());
}

#[test]
fn a_pooler_freezes_stops_and_comes_back() {
    if !Pooler::is_available() {
        return skip("PgBouncer");
    }
    let pooler = Pooler::start(shared(), Mode::Session, 5);
    let mut client = Client::connect(&pooler.url(), NoTls).unwrap();
    client.simple_query("SELECT 1").unwrap();
    pooler.freeze();
    let outcome = run_aside(client, "SELECT 1");
    stays("no answer", Duration::from_millis(200), || {
        outcome.try_recv().is_err()
    });
    pooler.thaw();
    assert_eq!(outcome.recv_timeout(LIMIT), Ok(true));
    pooler.stop();
    assert!(Client::connect(&pooler.url(), NoTls).is_err());
    pooler.launch();
    assert!(Client::connect(&pooler.url(), NoTls).is_ok());
}

#[test]
fn psql_takes_good_certificates_and_no_others() {
    if !tls::is_available() {
        return skip("openssl");
    }
    let (ours, other) = (tls::Authority::root("ours"), tls::Authority::root("other"));
    let server = |request: &tls::Request, signer: &tls::Authority| {
        let certificate = signer.issue(request);
        Server::builder()
            .ssl(certificate.chain, certificate.key)
            .client_ca(&ours.certificate)
            .start()
    };
    let psql = |server: &Server, host: &str, root: &tls::Authority| {
        let root = root.certificate.display();
        Lease::program(programs::psql())
            .args(["-XAtc", "SELECT 1"])
            .arg(format!(
                "host={host} hostaddr=127.0.0.1 port={} user=postgres sslmode=verify-full sslrootcert={root}",
                server.port()
            ))
            .output()
    };
    let good = tls::Request::server("db.example")
        .dns("db.example")
        .ip("127.0.0.1");
    let direct = server(&good, &ours);
    psql(&direct, "db.example", &ours).expect_code(0);
    psql(&direct, "127.0.0.1", &ours).expect_code(0);
    assert!(
        psql(&direct, "else.example", &ours)
            .expect_code(2)
            .stderr
            .contains("else.example")
    );
    assert!(
        psql(&direct, "db.example", &other)
            .expect_code(2)
            .stderr
            .contains("verify failed")
    );
    drop(direct);
    let through = server(&good, &ours.intermediate("between"));
    psql(&through, "db.example", &ours).expect_code(0);
    drop(through);
    let old = server(&good.clone().expired(), &ours);
    assert!(
        psql(&old, "db.example", &ours)
            .expect_code(2)
            .stderr
            .contains("certificate")
    );
}

#[test]
fn a_client_shows_its_certificate() {
    if !tls::is_available() {
        return skip("openssl");
    }
    let ours = tls::Authority::root("ours");
    let own = tls::self_signed("own", "db.example");
    let server = Server::builder()
        .ssl(&own.chain, &own.key)
        .client_ca(&ours.certificate)
        .hba("hostssl all all 127.0.0.1/32 cert")
        .start();
    server.psql("CREATE ROLE app LOGIN");
    let client = ours.issue(&tls::Request::client("app"));
    let psql = |user: &str| {
        Lease::program(programs::psql()).args(["-XAtc", "SELECT current_user"]).arg(format!(
            "host=127.0.0.1 port={} dbname=postgres user={user} sslmode=require sslcert={} sslkey={}",
            server.port(),
            client.chain.display(),
            client.key.display()
        ))
    };
    assert_eq!(psql("app").output().expect_code(0).stdout, "app\n");
    psql("postgres").output().expect_code(2);
}

#[test]
fn a_network_loses_every_packet_and_finds_them_again() {
    let Some(network) = Network::new() else {
        return skip("network namespaces");
    };
    let server = Server::builder().for_networks().start();
    let url = format!("{}?connect_timeout=2", network.url(&server));
    let psql = || {
        Lease::program(programs::psql())
            .args([&url, "-XAtc", "SELECT 1"])
            .wrapped(network.wrapper())
    };
    assert_eq!(psql().output().expect_code(0).stdout, "1\n");
    let open = Lease::program(programs::psql())
        .args([&url, "-XAt"])
        .wrapped(network.wrapper())
        .open_input()
        .spawn();
    open.write("SELECT 'before';\n");
    open.wait_for_line("before");
    network.drop_packets();
    assert!(psql().output().expect_code(2).stderr.contains("timeout"));
    open.write("SELECT 'lost', 'found';\n");
    stays("no answer", Duration::from_millis(300), || {
        !open.stdout().contains("found")
    });
    network.join();
    open.wait_for_line("lost|found");
}
