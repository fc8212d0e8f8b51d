//! Whether a run has kept its promises: its job's notes and its own words, against the history of its row.

use std::sync::OnceLock;

use crate::support::job::{Journal, of_job};
use crate::support::table::literal;
use crate::support::{Lease, Output, Server};

/// A trigger notes each state of each row, and when it began.
const HISTORY: &str = "
CREATE TABLE history (n bigserial, at timestamptz, key text, holder text, fence bigint, expires_at timestamptz);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.history (at, key, holder, fence, expires_at)
    VALUES (clock_timestamp(), NEW.key, NEW.holder, NEW.fence, NEW.expires_at);
    RETURN NULL;
END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE ON public.lease FOR EACH ROW EXECUTE FUNCTION note()";

/// A server that keeps the history of its leases.
pub(super) fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = Server::start_plain();
        Lease::new(["init"]).on(&server).output().expect_code(0);
        server.client().batch_execute(HISTORY).expect("a history");
        server
    })
}

/// A state of the row, in seconds since 1970.
struct State {
    since: f64,
    holder: String,
    expires_at: f64,
}

fn history(key: &str) -> Vec<State> {
    let rows = server().psql(&format!(
        "SELECT extract(epoch from at), holder, extract(epoch from expires_at) FROM history WHERE key = {} ORDER BY n",
        literal(key)
    ));
    let number = |text: &str| text.parse().expect("a number");
    rows.lines()
        .map(|row| {
            let fields: Vec<&str> = row.split('|').collect();
            State {
                since: number(fields[0]),
                holder: fields[1].to_owned(),
                expires_at: number(fields[2]),
            }
        })
        .collect()
}

fn is_first(holder: &str) -> bool {
    holder.starts_with("first-")
}

/// What is wrong about a run of the holder `first-...`, which has ended.
pub(super) fn violations(key: &str, journal: &Journal, out: &Output) -> Vec<String> {
    let (history, notes) = (history(key), journal.lines());
    let mut found = Vec::new();
    for note in &notes {
        let Ok(at) = note.parse::<f64>() else {
            continue;
        };
        let state = history.iter().rev().find(|state| state.since <= at);
        if !state.is_some_and(|state| is_first(&state.holder) && at < state.expires_at) {
            found.push(format!("the job acted at {at} without a lease"));
        }
    }
    let done = notes.iter().any(|note| note == "done");
    let says = |part: &str| out.stderr.contains(part);
    let unreleased = says("cannot release") || says("it is unknown whether");
    // Only the run itself releases.
    let released = history.windows(2).any(|two| {
        is_first(&two[0].holder) && two[1].holder.is_empty() && two[1].since < two[0].expires_at
    });
    match out.code {
        Some(0) => {
            if !done {
                found.push("code 0, and the job was not done".to_owned());
            }
            if says("lost")
                || says("could not be renewed in time")
                || says("the watchdog has stopped")
            {
                found.push("code 0, and a loss".to_owned());
            }
            // On a busy machine a release may reach the row after the expiry. It is still one if no other holder came
            // between: the job was done in time, which is judged above.
            let released_late = history
                .windows(2)
                .any(|two| is_first(&two[0].holder) && two[1].holder.is_empty());
            if !released_late && !unreleased {
                found.push("code 0, and neither released nor a word about it".to_owned());
            }
        }
        Some(76) => {
            if !says("lost") && !says("could not be renewed in time") && !says("was not started") {
                found.push("code 76 without a word".to_owned());
            }
            if done && released {
                found.push(
                    "code 76 for a job that was done, and a lease that was released in time"
                        .to_owned(),
                );
            }
        }
        code => found.push(format!("code {code:?}")),
    }
    // Only the clock ends this lease, and no job is at work then.
    if says("lost before the job ended") || says("lost before signal") {
        found.push("the lease was not lost before the job ended".to_owned());
    }
    if history.last().is_some_and(|state| is_first(&state.holder))
        && out.code == Some(0)
        && !unreleased
    {
        found.push("the row is still held".to_owned());
    }
    let left = of_job(key);
    if !left.is_empty() {
        found.push(format!("left: {left:?}"));
    }
    if !found.is_empty() {
        let rows: Vec<String> = history
            .iter()
            .map(|state| {
                format!(
                    "{} {:?} until {}",
                    state.since, state.holder, state.expires_at
                )
            })
            .collect();
        found.push(format!("{out}\n{}\n{}", notes.join(" "), rows.join("\n")));
    }
    found
}
