//! One message, and the line that it becomes.
//!
//! As text, a line is `lease: ` and the message. With `--log-format json` it is an object with the time, the level, the
//! event, the lease, the fields of the event, and the same message.

use std::sync::OnceLock;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::escape::{escape, harmless_json};
use crate::clock::{self, UTC_LENGTH};
use crate::lease::Fence;
use crate::text::PreparedLine;

/// How much a message matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Written with `--quiet` too.
    Error,
    /// Not written with `--quiet`.
    Info,
    /// Written with `--verbose` only.
    Step,
}

impl Level {
    /// The word of the JSON, which those who collect logs know.
    const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Info => "info",
            Self::Step => "debug",
        }
    }
}

/// A message for people, and what it says for programs.
#[derive(Clone, Debug)]
pub struct Message {
    pub(super) level: Level,
    event: &'static str,
    text: String,
    fields: Vec<(&'static str, Value)>,
}

impl Message {
    /// A message about an event, which has a short name that does not change.
    #[must_use]
    pub fn new(level: Level, event: &'static str, text: impl std::fmt::Display) -> Self {
        Self {
            level,
            event,
            text: text.to_string(),
            fields: Vec::new(),
        }
    }

    /// The same with another field of the event.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    /// The line for stderr.
    pub(super) fn line(&self) -> String {
        match JSON.get() {
            None => format!("lease: {}\n", escape(&self.text)),
            Some(about) => self.json(about, &clock::utc_now()),
        }
    }

    fn json(&self, about: &About, time: &[u8; UTC_LENGTH]) -> String {
        let object = Object {
            message: self,
            about,
            time: std::str::from_utf8(time).unwrap_or_default(),
        };
        let json = serde_json::to_string(&object).expect("text and numbers have a JSON form");
        harmless_json(json) + "\n"
    }
}

/// What the messages of this process are about.
#[derive(Debug)]
struct About {
    key: String,
    holder: OnceLock<String>,
    fence: OnceLock<i64>,
}

/// Set if the messages of this process are JSON. It belongs to the process, as stderr does: the last error of all, and that
/// of a bug, are written where nothing else of a run is left.
static JSON: OnceLock<About> = OnceLock::new();

/// Whether messages are objects for a program.
pub(super) fn is_json() -> bool {
    JSON.get().is_some()
}

/// From now on the messages are JSON, about this key.
pub fn log_as_json(key: &str) {
    let about = About {
        key: key.to_owned(),
        holder: OnceLock::new(),
        fence: OnceLock::new(),
    };
    // A process has one run.
    let _ = JSON.set(about);
}

/// From now on the messages name this holder.
pub fn log_holder(holder: &str) {
    if let Some(about) = JSON.get() {
        let _ = about.holder.set(holder.to_owned());
    }
}

/// From now on the messages name this fence.
pub fn log_fence(fence: Fence) {
    if let Some(about) = JSON.get() {
        let _ = about.fence.set(fence.get());
    }
}

struct Object<'a> {
    message: &'a Message,
    about: &'a About,
    time: &'a str,
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Message {
            level,
            event,
            text,
            fields,
        } = self.message;
        let mut map = serializer.serialize_map(None)?;
        // First, so that its place in the line is known; see [`prepared`].
        map.serialize_entry("time", self.time)?;
        map.serialize_entry("level", level.word())?;
        map.serialize_entry("event", event)?;
        map.serialize_entry("key", &self.about.key)?;
        map.serialize_entry("holder", &self.about.holder.get())?;
        map.serialize_entry("fence", &self.about.fence.get())?;
        for (name, value) in fields {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry("message", text)?;
        map.end()
    }
}

/// The line of a message for another process, which writes it later.
pub(super) fn prepared(message: &Message) -> PreparedLine {
    PreparedLine {
        text: message.line(),
        time_at: JSON.get().map(|_| "{\"time\":\"".len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_becomes_one_object_with_its_time_first() {
        let about = About {
            key: "a\n\u{9b}".to_owned(),
            holder: OnceLock::new(),
            fence: OnceLock::from(7),
        };
        let message = Message::new(Level::Step, "started", "\"it\" runs").with("pid", 5);
        assert_eq!(
            message.json(&about, b"2026-12-03T04:00:01.250Z"),
            concat!(
                r#"{"time":"2026-12-03T04:00:01.250Z","level":"debug","event":"started","key":"a\n\u009b","#,
                r#""holder":null,"fence":7,"pid":5,"message":"\"it\" runs"}"#,
                "\n"
            )
        );
    }
}
