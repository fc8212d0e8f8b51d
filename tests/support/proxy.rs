//! A TCP proxy that can do to a connection what networks do.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use super::forward::{Shared, State, close};
use super::ports::Port;
use super::{Server, lock, until};

/// What happens to a connection at the moment when its client says COMMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtCommit {
    /// The server commits, but its answer is thrown away and both sides are closed.
    CutAnswer,
    /// The server commits, but its answer stays on the way until [`Proxy::let_go`]; nothing is closed until
    /// [`Proxy::cut`].
    HoldAnswer,
    /// The server never hears of it: both sides are closed.
    CutRequest,
    /// The server commits, but the client is told what a pooler says that has lost its server: XX000, and that it is
    /// ready for the next request.
    AnswerError,
}

/// A proxy on 127.0.0.1 in front of one address. It understands enough of PostgreSQL's protocol, without TLS, to know
/// a COMMIT.
#[derive(Debug)]
pub struct Proxy {
    port: Port,
    shared: Arc<Shared>,
    acceptor: Mutex<Option<JoinHandle<()>>>,
}

impl Proxy {
    /// A proxy in front of a server's TCP port.
    pub fn to(server: &Server) -> Self {
        Self::to_address(SocketAddr::from((Ipv4Addr::LOCALHOST, server.port())))
    }

    /// A proxy in front of any address, a pooler's for instance.
    pub fn to_address(upstream: SocketAddr) -> Self {
        let state = State {
            upstream,
            stalled: false,
            closing: false,
            delay: Duration::ZERO,
            at_commit: Vec::new(),
            refused_logins: Vec::new(),
            cut_after: Vec::new(),
            commits: 0,
            held: 0,
            let_go: 0,
            accepted: 0,
            connections: Vec::new(),
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let proxy = Self {
            port: Port::reserve(),
            shared,
            acceptor: Mutex::new(None),
        };
        proxy.listen();
        proxy
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The superuser's URL through the proxy.
    pub fn url(&self) -> String {
        self.url_for("postgres", "postgres")
    }

    /// Any user and database through the proxy. A proxy that is to know a COMMIT needs a connection without TLS.
    pub fn url_for(&self, user: &str, database: &str) -> String {
        self.port.url(user, database)
    }

    /// From now on everything takes this long in each direction, connecting included.
    pub fn delay(&self, one_way: Duration) {
        self.change(|state| state.delay = one_way);
    }

    /// Forwards nothing any more, in either direction, keeps every socket open and goes on accepting.
    pub fn stall(&self) {
        self.change(|state| state.stalled = true);
    }

    /// Forwards again, what was held up first. Listens again after [`refuse`](Self::refuse).
    pub fn resume(&self) {
        self.change(|state| state.stalled = false);
        self.listen();
    }

    /// Closes every connection. New ones are taken as before.
    pub fn cut(&self) {
        self.change(|state| {
            for (_, client, upstream) in state.connections.drain(..) {
                close(&client);
                upstream.iter().for_each(close);
            }
        });
    }

    /// Closes every connection and stops listening: the kernel refuses new ones, until [`resume`](Self::resume).
    pub fn refuse(&self) {
        let mut acceptor = lock(&self.acceptor);
        if let Some(thread) = acceptor.take() {
            self.change(|state| state.closing = true);
            // A connection wakes the thread that waits for one.
            let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port()));
            let _ = thread.join();
            self.change(|state| state.closing = false);
            // A program that another test starts at this moment has the listening socket as well, until its exec closes it.
            until("the kernel refuses connections", || {
                TcpStream::connect((Ipv4Addr::LOCALHOST, self.port())).is_err()
            });
        }
        drop(acceptor);
        self.cut();
    }

    /// Sends new connections to another server.
    pub fn redirect(&self, server: &Server) {
        self.change(|state| state.upstream.set_port(server.port()));
    }

    /// Does `what` at each of the next `count` commits, and leaves the later ones alone.
    pub fn at_next_commits(&self, count: usize, what: AtCommit) {
        self.change(|state| state.at_commit = vec![what; count]);
    }

    /// Answers each of the next `count` logins with `FATAL` and this SQLSTATE, as a pooler does that has lost its server.
    pub fn refuse_next_logins(&self, count: usize, sqlstate: &'static str) {
        self.change(|state| state.refused_logins = vec![sqlstate; count]);
    }

    /// Closes each of the next `count` connections once the server has sent more than this many bytes.
    pub fn cut_next_after(&self, count: usize, bytes: usize) {
        self.change(|state| state.cut_after = vec![bytes; count]);
    }

    /// How many answers are held back at this moment.
    pub fn held(&self) -> usize {
        self.state().held
    }

    /// Forwards the answers that are held back.
    pub fn let_go(&self) {
        self.change(|state| state.let_go += 1);
    }

    /// How many commits it has disturbed.
    pub fn commits_disturbed(&self) -> usize {
        self.state().commits
    }

    /// How many connections it has accepted so far.
    pub fn accepted(&self) -> usize {
        self.state().accepted
    }

    /// How many connections are open.
    pub fn open(&self) -> usize {
        self.state().connections.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.shared.state)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.shared.changed.notify_all();
    }

    fn listen(&self) {
        let mut acceptor = lock(&self.acceptor);
        if acceptor.is_some() {
            return;
        }
        // A child that another thread has just forked may for a moment still hold the socket by which the port was tried.
        let listener = until("the reserved port is free", || {
            TcpListener::bind((Ipv4Addr::LOCALHOST, self.port()))
        });
        let shared = Arc::clone(&self.shared);
        *acceptor = Some(std::thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                if lock(&shared.state).closing {
                    return;
                }
                shared.take(client);
            }
        }));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.refuse();
    }
}
