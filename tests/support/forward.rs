//! How a [`Proxy`](super::Proxy) forwards: the threads of each connection, and what holds them up.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::protocol::{Answers, Requests, refuse_login, server_lost};
use super::{AtCommit, lock};

/// What a proxy and its threads have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    pub(super) changed: Condvar,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) upstream: SocketAddr,
    pub(super) stalled: bool,
    pub(super) closing: bool,
    /// How long everything takes in each direction.
    pub(super) delay: Duration,
    /// What is to happen at each of the next commits.
    pub(super) at_commit: Vec<AtCommit>,
    /// The SQLSTATEs by which the next logins are refused.
    pub(super) refused_logins: Vec<&'static str>,
    /// After how many bytes from the server the next connections are closed.
    pub(super) cut_after: Vec<usize>,
    pub(super) commits: usize,
    /// How many answers are being held, and how often they were let go.
    pub(super) held: usize,
    pub(super) let_go: usize,
    pub(super) accepted: usize,
    pub(super) connections: Vec<(usize, TcpStream, Option<TcpStream>)>,
}

pub(super) fn close(socket: &TcpStream) {
    let _ = socket.shutdown(Shutdown::Both);
}

/// Counts bytes, and returns whether they are more than what is left, if there is a limit.
fn is_used_up(left: &mut Option<usize>, bytes: usize) -> bool {
    left.as_mut().is_some_and(|left| {
        let used_up = bytes > *left;
        *left = left.saturating_sub(bytes);
        used_up
    })
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
    pub(super) fn take(self: &Arc<Self>, client: TcpStream) {
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
        // The handshake by which a network connects: its client has not yet said anything.
        self.travel();
        self.travel();
        if !self.wait_while_stalled(id) {
            return;
        }
        let refused_by = lock(&self.state).refused_logins.pop();
        if let Some(sqlstate) = refused_by {
            // The client may have gone away.
            let _ = refuse_login(client, sqlstate);
            return;
        }
        let (address, mut left) = {
            let mut state = lock(&self.state);
            (state.upstream, state.cut_after.pop())
        };
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
                _ if is_used_up(&mut left, bytes.len()) => Fate::Close,
                Some(AtCommit::HoldAnswer) if answers.end_commit(bytes) => Fate::Hold,
                Some(AtCommit::CutAnswer) if answers.end_commit(bytes) => Fate::Close,
                Some(AtCommit::AnswerError) if answers.end_commit(bytes) => {
                    let _ = (&to).write_all(&server_lost("ERROR", "XX000"));
                    let _ = (&to).write_all(b"Z\0\0\0\x05I");
                    Fate::Hold
                }
                Some(
                    AtCommit::HoldAnswer
                    | AtCommit::CutAnswer
                    | AtCommit::CutRequest
                    | AtCommit::AnswerError,
                )
                | None => Fate::Forward,
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
            self.travel();
            if !self.wait_while_stalled(id) {
                break;
            }
            if count == 0 {
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            match fate(&chunk[..count]) {
                Fate::Forward if to.write_all(&chunk[..count]).is_ok() => {}
                Fate::Hold if self.was_let_go(id) && to.write_all(&chunk[..count]).is_ok() => {}
                Fate::Forward | Fate::Hold | Fate::Close => break,
            }
        }
        close(from);
        close(to);
    }

    /// Takes as long as the way does.
    fn travel(&self) {
        let delay = lock(&self.state).delay;
        std::thread::sleep(delay);
    }

    /// Returns whether the connection still exists once nothing stalls it any more.
    fn wait_while_stalled(&self, id: usize) -> bool {
        let exists = |state: &State| state.connections.iter().any(|(other, ..)| *other == id);
        let wait = |state: &mut State| state.stalled && exists(state);
        let state = self.changed.wait_while(lock(&self.state), wait);
        exists(&state.unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// Waits until the connection is cut or what is held is let go, and returns whether it was let go.
    fn was_let_go(&self, id: usize) -> bool {
        let exists = |state: &State| state.connections.iter().any(|(other, ..)| *other == id);
        let mut state = lock(&self.state);
        state.held += 1;
        let before = state.let_go;
        let wait = |state: &mut State| state.let_go == before && exists(state);
        let state = self.changed.wait_while(state, wait);
        let mut state = state.unwrap_or_else(|poisoned| poisoned.into_inner());
        state.held -= 1;
        exists(&state)
    }
}
