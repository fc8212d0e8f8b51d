//! The parts of the model: what a search goes through, and everything that a moment consists of.
//!
//! Times are relative to the moment: how long ago, in how long, how far a fence lies behind what the server's clock reads
//! in microseconds. Of what is over, only the order counts. So the states are finite in number although neither time
//! nor the number of runs is bounded, and a search that ends has seen every future.

/// How long a lease lasts. One tick is the unit of every duration; everything else happens between two ticks, in any
/// order.
pub(crate) const TTL: i16 = 3;

/// How far the server's clock jumps: past the end of any lease.
pub(crate) const JUMP: i16 = TTL + 1;

/// The microseconds in a tick, besides one for every grant. Nothing depends on there being a million times more.
pub(crate) const FINE: i16 = 2;

/// The protocol as it is, or one way in which it could have been wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// As it is.
    Lease,
    /// A release deletes the row, and a new row starts its fence at 1.
    CounterFromOne,
    /// A renewal matches key and holder, but not the fence.
    RenewalWithoutFence,
    /// A deadline is counted from the arrival of the answer.
    DeadlineFromAnswer,
    /// The fence of a new row is read from the clock before the insert waits for the row's lock.
    FenceBeforeLock,
    /// The resource takes every write.
    ResourceWithoutCheck,
}

/// How the clients come by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// A new one for every run, as `lease run` does.
    Fresh,
    /// One for each client, as with `lease claim --holder`.
    Fixed,
    /// The same for all of them, a host name say. Claiming again is then no way to extend.
    Shared,
}

/// What jobs do to the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    /// Nothing: the search is about the jobs themselves.
    None,
    /// Write while they run.
    Direct,
    /// Also send writes that arrive at any time later.
    Late,
}

/// What a search goes through: the variant, and how many of each fault.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Protocol<const N: usize> {
    /// The protocol, or a wrong one.
    pub variant: Variant,
    /// The clients' names.
    pub names: Names,
    /// Whether a request that its client has given up can still be carried out later.
    pub late_requests: bool,
    /// What jobs do to the resource.
    pub writes: Writes,
    /// How often a whole machine (client, watchdog and job) freezes.
    pub pauses: u8,
    /// How often the server's clock jumps ahead.
    pub jumps_ahead: u8,
    /// How often it jumps back.
    pub jumps_back: u8,
    /// How often the row is deleted.
    pub deletions: u8,
    /// How often a replica without the last writes takes over, or an old dump is restored.
    pub failovers: u8,
    /// Whether jobs must never overlap. Otherwise only the resource must be safe.
    pub exclusive: bool,
}

/// A lease that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Term {
    /// As the server has handed it out, minus the microseconds that its clock reads now.
    pub fence: i16,
    /// Its place in the true order of all grants, which is not visible in the protocol: 0 for the latest, -1 for the
    /// one before.
    pub serial: i16,
}

/// A name, as its own client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Name {
    Current,
    /// That of an earlier run, which has left a request behind.
    Earlier,
}

/// Who is in the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Holder {
    Nobody,
    /// A run that is over, and of which nothing is left on its way.
    Gone,
    Client(u8, Name),
    /// The one name that all share.
    Shared,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Row {
    pub holder: Holder,
    pub term: Term,
    /// By the server's clock; zero or less is over.
    pub expires_in: i16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Verb {
    Claim,
    Renew(Term),
    Release(Term),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Request {
    pub verb: Verb,
    pub name: Name,
    pub sent_ago: i16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Answer {
    Granted(Term),
    Held,
    Renewed,
    Lost,
    Released,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Phase {
    Idle,
    Claiming,
    Running { term: Term, deadline_in: i16 },
    Releasing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Client {
    pub phase: Phase,
    pub paused: bool,
    /// What it waits for; with an answer once the server has made one.
    pub call: Option<(Request, Option<Answer>)>,
    /// A request that was given up and is still on its way.
    pub late: Option<Request>,
}

/// How often each fault has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Faults {
    pub pauses: u8,
    pub ahead: u8,
    pub back: u8,
    pub deletions: u8,
    pub failovers: u8,
}

/// What must never happen, seen in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Wrong {
    FenceFell,
    StaleWrite,
}

/// Everything at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State<const N: usize> {
    /// For how many ticks the server does not answer.
    pub down_for: i16,
    pub row: Option<Row>,
    /// What a replica or a dump has: the row as it was at some moment.
    pub copy: Option<Row>,
    pub clients: [Client; N],
    /// The term whose write the resource has accepted last.
    pub accepted: Option<Term>,
    /// A write that has left its job and has not arrived.
    pub late_write: Option<Term>,
    pub faults: Faults,
    /// The largest fence so far, and the serial of the latest grant, which need not belong together.
    pub latest: Term,
    pub wrong: Option<Wrong>,
}

/// A step, with the number of the client that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Tick,
    SendClaim(usize),
    SendRenewal(usize),
    EndJobAndSendRelease(usize),
    ServerCarriesOut(usize),
    ServerCarriesOutGivenUp(usize),
    Receive(usize),
    GiveUp(usize),
    Stop(usize),
    Write(usize),
    SendWrite(usize),
    LateWriteArrives,
    Pause(usize),
    Thaw(usize),
    ClockJumpsAhead,
    ClockJumpsBack,
    DeleteRow,
    CopyRow,
    FailOverToCopy,
}

impl<const N: usize> State<N> {
    /// Every term, for operations on all of them.
    pub(crate) fn each_term(&mut self, mut change: impl FnMut(&mut Term)) {
        fn of_request(request: &mut Request, change: &mut impl FnMut(&mut Term)) {
            match &mut request.verb {
                Verb::Claim => {}
                Verb::Renew(term) | Verb::Release(term) => change(term),
            }
        }
        change(&mut self.latest);
        for row in [&mut self.row, &mut self.copy].into_iter().flatten() {
            change(&mut row.term);
        }
        for term in [&mut self.accepted, &mut self.late_write]
            .into_iter()
            .flatten()
        {
            change(term);
        }
        for client in &mut self.clients {
            if let Phase::Running { term, .. } = &mut client.phase {
                change(term);
            }
            if let Some((request, answer)) = &mut client.call {
                of_request(request, &mut change);
                if let Some(Answer::Granted(term)) = answer {
                    change(term);
                }
            }
            if let Some(request) = &mut client.late {
                of_request(request, &mut change);
            }
        }
    }

    /// The same, but for what `change` does to one client.
    pub(crate) fn with(&self, slot: usize, change: impl FnOnce(&mut Client)) -> Self {
        let mut after = *self;
        change(&mut after.clients[slot]);
        after
    }

    /// The server's clock goes on by so many microseconds.
    pub(crate) fn clock_passes(&mut self, micros: i16) {
        self.each_term(|term| term.fence -= micros);
    }

    /// The server's clock goes on by so many ticks, of so many microseconds.
    pub(crate) fn clock_ticks(&mut self, ticks: i16, fine: i16) {
        self.clock_passes(ticks * fine);
        for row in [&mut self.row, &mut self.copy].into_iter().flatten() {
            row.expires_in -= ticks;
        }
    }
}
