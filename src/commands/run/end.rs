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
use crate::store::{Failure, Store};
use crate::supervise::{Finish, RunExit};
use crate::timing::{self, Timing};

/// What came of a release.
enum Released {
    Yes,
    /// The first try found that the term was over.
    LostBefore(Loss),
    /// A later try found that, after the job had ended.
    PassedOn,
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
                &running.lease,
                self.hold,
                &running.expires_at,
                running.stays_until,
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
    fn release(
        &mut self,
        lease: &Lease,
        hold: Duration,
        expires_at: &str,
        stays_until: BootTime,
        end: &str,
    ) -> bool {
        let key = lease.key.as_str();
        let (store, term, timing) = (self.store.clone(), lease.clone(), self.timing);
        // Once it has expired there is nothing left to release, unless others are to be kept out for longer.
        let useful = if hold.is_zero() {
            stays_until.remaining()
        } else {
            Duration::MAX
        };
        let limit = timing.db_timeout().min(useful.max(SLICE));
        let (answers, answer) = mpsc::channel();
        let started = thread::Builder::new()
            .name("lease-release".to_owned())
            .spawn(move || drop(answers.send(keep_releasing(&store, &term, hold, timing, limit))));
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
                    Ok(Released::PassedOn) => {
                        break "when the database answered again, the lease was over".to_owned();
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
        let only = if hold.is_zero() {
            String::new()
        } else {
            format!(
                ", whatever --hold-at-least {} asks for",
                timing::human(hold)
            )
        };
        let stays = if stays_until.has_passed() {
            "it stayed"
        } else {
            "it stays"
        };
        self.speaker.error(format!(
            "{key} could not be released, so {stays} until {expires_at}{only}: {reason}"
        ));
        false
    }

    /// The job was never started: the lease is given back at once.
    pub(super) fn give_up(mut self, grant: &Grant, ending: Ending) -> Ending {
        self.watchdog = None;
        let stays_until = BootTime::now() + self.timing.ttl().get();
        self.release(
            &grant.lease,
            Duration::ZERO,
            &grant.expires_at,
            stays_until,
            "before the job was started",
        );
        self.leave(ending)
    }

    /// Says the last words, and ends the watchdog if there is one.
    pub(super) fn leave(self, ending: Ending) -> Ending {
        drop(self.watchdog);
        self.speaker.finish(LAST_WORDS);
        ending
    }
}

/// Releases, again and again while the failure may pass, within the time of one operation. A server that restarts at this
/// moment must not cost `--hold-at-least`.
fn keep_releasing(
    store: &Store,
    lease: &Lease,
    hold: Duration,
    timing: Timing,
    limit: Duration,
) -> Released {
    let until = BootTime::now() + limit;
    let nobody = Interrupt::new();
    let mut failures = 0;
    loop {
        match store.release(lease, hold, until.remaining()) {
            Ok(Release::Released) => return Released::Yes,
            // Nobody has asked in this run's name before, so it was somebody else.
            Ok(Release::AlreadyReleased) if failures == 0 => {
                return Released::LostBefore(Loss::Released);
            }
            // A try that failed here may have arrived there.
            Ok(Release::AlreadyReleased) => return Released::Yes,
            Ok(Release::Lost(loss)) if failures == 0 => return Released::LostBefore(loss),
            Ok(Release::Lost(_)) => return Released::PassedOn,
            Err(failure) => {
                failures += 1;
                let pause = timing.retry_pause(failures);
                if !failure.fault.is_transient() || until.remaining() <= pause {
                    return Released::No(failure);
                }
                nobody.sleep(pause);
            }
        }
    }
}
