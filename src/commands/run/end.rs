//! From the end of the job to the end of `lease`.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::{Ending, Guard, LAST_WORDS, PATIENCE, Running, SLICE};
use crate::acquire::Input;
use crate::clock::BootTime;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::job::{Ended, OnLoss};
use crate::lease::{Grant, Lease, Loss, Release};
use crate::output;
use crate::store::{Applied, Failure, Store};
use crate::supervise::{Finish, RunExit};
use crate::timing::{self, Timing};

/// A term that is to be released, and how long it lasts otherwise.
pub(super) struct Due<'a> {
    pub(super) lease: &'a Lease,
    /// By the server's clock.
    pub(super) expires_at: &'a str,
    /// Until then, by this machine's clock, it is certainly unexpired.
    pub(super) certain_until: BootTime,
    /// From then on, by this machine's clock, it has certainly expired.
    pub(super) stays_until: BootTime,
}

/// What came of a release.
enum Released {
    Yes,
    /// The term had ended before, for this reason.
    LostBefore(Loss),
    /// The database answered only after the term had expired, and somebody else has claimed the key since.
    TooLate,
    No(Failure),
}

impl Guard {
    /// Nothing of the job is left: release, and leave as it did.
    pub(super) fn end(mut self, running: &Running, finish: Finish) -> Ending {
        self.watchdog = None;
        let end = match finish.exit {
            RunExit::AsJob { ended, .. } => match ended {
                Ended::Code(code) => format!("before the job ended with code {code}"),
                Ended::Signal(signal) => format!("before signal {signal} ended the job"),
            },
            RunExit::Lost | RunExit::Failed => "before the job ended".to_owned(),
        };
        let lost = finish.release
            && self.release(
                &Due {
                    lease: &running.lease,
                    expires_at: &running.expires_at,
                    certain_until: running.supervisor.deadline(),
                    stays_until: running.stays_until,
                },
                self.hold,
                &end,
            );
        let ending = match finish.exit {
            RunExit::AsJob { .. } if lost && self.on_loss == OnLoss::Stop => {
                Ending::Exit(Exit::Lost)
            }
            RunExit::AsJob { ended, whole_group } => Ending::As { ended, whole_group },
            RunExit::Lost => Ending::Exit(Exit::Lost),
            RunExit::Failed => Ending::Exit(Exit::Failed),
        };
        self.leave(ending)
    }

    /// Releases, bounded in time; a signal that ends processes cuts it short, but not before [`PATIENCE`] is over. Answers
    /// whether the lease turned out to be lost before the `end`, which the words describe.
    fn release(&mut self, due: &Due<'_>, hold: Duration, end: &str) -> bool {
        let (stays_until, expires_at) = (due.stays_until, due.expires_at);
        let key = due.lease.key.as_str();
        // Once it has expired there is nothing left to release, unless others are to be kept out for longer.
        let useful = if hold.is_zero() {
            stays_until.remaining()
        } else {
            Duration::MAX
        };
        let timing = self.timing;
        let limit = timing.db_timeout().min(useful.max(SLICE));
        let tries = Tries {
            store: self.store.clone(),
            timing,
            lease: due.lease.clone(),
            hold,
            expires_at: expires_at.to_owned(),
            certain_until: due.certain_until,
        };
        let (answers, answer) = mpsc::channel();
        let started = thread::Builder::new()
            .name("lease-release".to_owned())
            .spawn(move || drop(answers.send(tries.run(limit))));
        let now = BootTime::now();
        let (patient_until, until) = (now + PATIENCE, now + limit + SLICE);
        let mut asked_to_leave = false;
        let reason = if let Err(error) = started {
            output::io_error(&error)
        } else {
            loop {
                match answer.recv_timeout(Duration::from_millis(20)) {
                    Ok(Released::Yes) => {
                        self.speaker.step(format!("released {key}"));
                        return false;
                    }
                    Ok(Released::LostBefore(loss)) => {
                        self.speaker.error(format!(
                            "{key} was lost {end}: {}{}",
                            output::loss(&loss),
                            match loss {
                                Loss::Released => ", by force or by the job itself",
                                Loss::Taken(_)
                                | Loss::Mismatch { .. }
                                | Loss::Expired
                                | Loss::NoRow
                                | Loss::NoTable(_) => "",
                            }
                        ));
                        return true;
                    }
                    Ok(Released::TooLate) => {
                        break "the database answered only after the lease had expired".to_owned();
                    }
                    Ok(Released::No(failure)) => break failure.to_string(),
                    Err(_) if until.has_passed() => {
                        break "the database did not answer in time".to_owned();
                    }
                    Err(_) => {}
                }
                if let Ok(Input::Caught(caught)) = self.inputs.try_recv() {
                    asked_to_leave |= caught.ends_a_wait();
                }
                if asked_to_leave && patient_until.has_passed() {
                    break "interrupted".to_owned();
                }
            }
        };
        let without = if hold.is_zero() {
            String::new()
        } else {
            format!(", without --hold-at-least {}", timing::human(hold))
        };
        let expires = if stays_until.has_passed() {
            "expired"
        } else {
            "expires"
        };
        self.speaker.error(format!(
            "cannot release {key}: {reason}; it {expires} at {expires_at}{without}"
        ));
        false
    }

    /// The job was never started: the lease is given back at once.
    pub(super) fn give_up(mut self, grant: &Grant, at: BootTime, ending: Ending) -> Ending {
        self.watchdog = None;
        let due = Due {
            lease: &grant.lease,
            expires_at: &grant.expires_at,
            certain_until: self.timing.deadline(at),
            stays_until: BootTime::now() + self.timing.ttl().get(),
        };
        self.release(&due, Duration::ZERO, "before the job was started");
        self.leave(ending)
    }

    /// Says the last words, and ends the watchdog if there is one.
    pub(super) fn leave(self, ending: Ending) -> Ending {
        drop(self.watchdog);
        self.speaker.finish(LAST_WORDS);
        ending
    }
}

/// A release that is tried again and again while the failure may pass. A server that restarts at this moment must not cost
/// `--hold-at-least`.
struct Tries {
    store: Store,
    timing: Timing,
    lease: Lease,
    hold: Duration,
    expires_at: String,
    certain_until: BootTime,
}

impl Tries {
    /// Tries for at most `limit`.
    fn run(&self, limit: Duration) -> Released {
        let until = BootTime::now() + limit;
        let was_certain = !self.certain_until.has_passed();
        let nobody = Interrupt::new();
        let mut failures = 0;
        // Whether an earlier try may have been applied. Such a try has found the term, after the job had ended.
        let mut unknown = false;
        loop {
            match self
                .store
                .release(&self.lease, self.hold, until.remaining())
            {
                Ok(Release::Released) => return Released::Yes,
                Ok(Release::AlreadyReleased | Release::Lost(_)) if unknown => {
                    return Released::Yes;
                }
                Ok(Release::AlreadyReleased) => return Released::LostBefore(Loss::Released),
                Ok(Release::Lost(loss)) => {
                    let expired_since = was_certain && self.certain_until.has_passed();
                    return if expired_since && self.may_be_a_successor(&loss) {
                        Released::TooLate
                    } else {
                        Released::LostBefore(loss)
                    };
                }
                Err(failure) => {
                    failures += 1;
                    unknown |= failure.applied == Applied::Unknown;
                    let failure = if unknown { failure.unknown() } else { failure };
                    let pause = self.timing.retry_pause(failures);
                    if !failure.fault.is_transient() || until.remaining() <= pause {
                        return Released::No(failure);
                    }
                    nobody.sleep(pause);
                }
            }
        }
    }

    /// Whether somebody else has claimed the key, and not before the term had expired. Both times are the server's, and
    /// of one form.
    fn may_be_a_successor(&self, loss: &Loss) -> bool {
        match loss {
            Loss::Taken(row) => row.acquired_at >= self.expires_at,
            Loss::Mismatch { .. }
            | Loss::Expired
            | Loss::Released
            | Loss::NoRow
            | Loss::NoTable(_) => false,
        }
    }
}
