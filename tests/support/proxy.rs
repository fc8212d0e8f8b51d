//! A TCP proxy that can do to a connection what networks do.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use super::ports::Port;
use super::protocol::{Answers, Requests};
use super::{Server, lock, until};

/// What happens to a connection at the moment when its client says COMMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtCommit {
    /// The server commits, but its answer is thrown away and both sides are closed.
    CutAnswer,
    /// The server commits, but its answer stays on the way; nothing is closed until [`Proxy::cut`].
    HoldAnswer,
    /// The server never hears of it: both sides are closed.
    CutRequest,
}

/// A proxy on 127.0.0.1 in front of one address. It understands enough of PostgreSQL's protocol, without TLS, to know
/// a COMMIT.
#[derive(Debug)]
pub struct Proxy {
    port: Port,
    shared: Arc<Shared>,
    acceptor: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    upstream: SocketAddr,
    stalled: bool,
    closing: bool,
    /// What is to happen at each of the next commits.
    at_commit: Vec<AtCommit>,
    commits: usize,
    accepted: usize,
    connections: Vec<(usize, TcpStream, Option<TcpStream>)>,
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
            at_commit: Vec::new(),
            commits: 0,
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

fn close(socket: &TcpStream) {
    let _ = socket.shutdown(Shutdown::Both);
}

/// What a thread that forwards does with the bytes in its hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Forward,
    Hold,
    Close,
}

impl Shared {
    /// Serves one client on threads of its own, so that one that is held up holds up no other.
    fn take(self: &Arc<Self>, client: TcpStream) {
        let Ok(kept) = client.try_clone() else { return };
        let id = {
            let mut state = lock(&self.state);
            state.accepted += 1;
            let id = state.accepted;
            state.connections.push((id, kept, None));
            id
        };
        let shared = Arc::clone(self);
        std::thread::spawn(move || {
            shared.serve(id, &client);
            lock(&shared.state)
                .connections
                .retain(|(other, ..)| *other != id);
            close(&client);
        });
    }

    fn serve(self: &Arc<Self>, id: usize, client: &TcpStream) {
        if !self.wait_while_stalled(id) {
            return;
        }
        let address = lock(&self.state).upstream;
        let Ok(upstream) = TcpStream::connect(address) else {
            return;
        };
        let (Ok(kept), Ok(from), Ok(to)) = (
            upstream.try_clone(),
            upstream.try_clone(),
            client.try_clone(),
        ) else {
            return;
        };
        match lock(&self.state)
            .connections
            .iter_mut()
            .find(|(other, ..)| *other == id)
        {
            Some(connection) => connection.2 = Some(kept),
            // Cut in the meantime.
            None => return,
        }
        let at_commit = Arc::new(Mutex::new(None));
        let (shared, learned) = (Arc::clone(self), Arc::clone(&at_commit));
        let answers = std::thread::spawn(move || {
            let mut answers = Answers::default();
            shared.pump(id, &from, &to, |bytes| match *lock(&learned) {
                Some(AtCommit::HoldAnswer) if answers.end_commit(bytes) => Fate::Hold,
                Some(AtCommit::CutAnswer) if answers.end_commit(bytes) => Fate::Close,
                Some(AtCommit::HoldAnswer | AtCommit::CutAnswer | AtCommit::CutRequest) | None => {
                    Fate::Forward
                }
            });
        });
        let mut requests = Requests::default();
        self.pump(id, client, &upstream, |bytes| {
            if requests.begin_commit(bytes) {
                let mut state = lock(&self.state);
                if let Some(what) = state.at_commit.pop() {
                    state.commits += 1;
                    *lock(&at_commit) = Some(what);
                    if what == AtCommit::CutRequest {
                        return Fate::Close;
                    }
                }
            }
            Fate::Forward
        });
        let _ = answers.join();
    }

    /// Copies one direction. The end of one side is passed on to the other, as a network would.
    fn pump(
        &self,
        id: usize,
        mut from: &TcpStream,
        mut to: &TcpStream,
        mut fate: impl FnMut(&[u8]) -> Fate,
    ) {
        let mut chunk = [0; 16384];
        loop {
            let count = from.read(&mut chunk).unwrap_or(0);
            if !self.wait_while_stalled(id) {
                break;
            }
            if count == 0 {
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            match fate(&chunk[..count]) {
                Fate::Forward if to.write_all(&chunk[..count]).is_ok() => {}
                Fate::Hold => {
                    self.wait_for_cut(id);
                    break;
                }
                Fate::Forward | Fate::Close => break,
            }
        }
        close(from);
        close(to);
    }

    /// Returns whether the connection still exists once nothing stalls it any more.
    fn wait_while_stalled(&self, id: usize) -> bool {
        let exists = |state: &State| state.connections.iter().any(|(other, ..)| *other == id);
        let wait = |state: &mut State| state.stalled && exists(state);
        let state = self.changed.wait_while(lock(&self.state), wait);
        exists(&state.unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    fn wait_for_cut(&self, id: usize) {
        let exists = |state: &mut State| state.connections.iter().any(|(other, ..)| *other == id);
        drop(self.changed.wait_while(lock(&self.state), exists));
    }
}
