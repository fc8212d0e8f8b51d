//! What only the client knows of a term, for the trigger that writes the history.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use crate::job::Ended;

/// What is said about the process that asks, and about its job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// The machine that asks.
    pub host: Option<String>,
    /// The process that asks.
    pub pid: u32,
    /// The job's file name. Its arguments may contain secrets.
    pub program: Option<String>,
    /// Whether the term of another holder is ended.
    pub is_forced: bool,
    /// How the job ended, if that is known.
    pub ended: Option<Ended>,
    /// The expiry that the job has ended before, by the server's clock, in microseconds since 1970. A release that comes
    /// later is then only late.
    pub ours_to: Option<i64>,
}

/// The setting's content, as the trigger reads it.
#[derive(Serialize)]
struct Content<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ours_to: Option<i64>,
}

/// The longest text that is said: the trigger reads no more than 2000 bytes in all.
const LONGEST: usize = 100;

impl Said {
    /// A file name, as far as it is of use.
    #[must_use]
    pub fn program_of(command: &OsStr) -> Option<String> {
        let name = Path::new(command).file_name()?;
        Some(name.to_string_lossy().into_owned())
    }

    /// The statement that says it, for the flight that opens a transaction.
    ///
    /// ASCII only, since it must be readable in a database of any encoding, and with each backslash doubled, since that
    /// means the same whatever `standard_conforming_strings` is.
    #[must_use]
    pub fn statement(&self) -> String {
        let short = |text: &Option<String>| -> Option<String> {
            let text = text.as_ref()?;
            Some(text.chars().filter(|c| *c != '\0').take(LONGEST).collect())
        };
        let (host, program) = (short(&self.host), short(&self.program));
        let (exit_code, exit_signal) = match self.ended {
            Some(Ended::Code(code)) => (Some(code), None),
            Some(Ended::Signal(signal)) => (None, Some(signal.number())),
            None => (None, None),
        };
        let content = Content {
            host: host.as_deref(),
            pid: self.pid,
            program: program.as_deref(),
            ended: self.is_forced.then_some("forced"),
            exit_code,
            exit_signal,
            ours_to: self.ours_to,
        };
        // Strings and numbers can always be written.
        let json = serde_json::to_string(&content).unwrap_or_default();
        let mut text = String::with_capacity(json.len() + 50);
        for c in json.chars() {
            match c {
                '\'' => text.push_str("''"),
                '\\' => text.push_str("\\\\"),
                c if c.is_ascii() => text.push(c),
                c => {
                    let mut units = [0; 2];
                    for unit in c.encode_utf16(&mut units) {
                        let _ = write!(text, "\\\\u{unit:04x}");
                    }
                }
            }
        }
        format!("SELECT pg_catalog.set_config('lease.run', E'{text}', true)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Signal;

    #[test]
    fn what_is_said_is_ascii_and_leaves_its_quotes_for_nothing() {
        let said = Said {
            host: Some("web'1\\".to_owned()),
            pid: 7,
            program: Some("größe\u{1f600}\n".to_owned()),
            is_forced: false,
            ended: Some(Ended::Signal(Signal::TERM)),
            ours_to: None,
        };
        assert_eq!(
            said.statement(),
            r#"SELECT pg_catalog.set_config('lease.run', E'{"host":"web''1\\\\","pid":7,"program":"gr\\u00f6\\u00dfe\\ud83d\\ude00\\n","exit_signal":15}', true)"#
        );
        let long = Said {
            program: Some("\u{1f600}".repeat(5000)),
            ..Said::default()
        };
        assert!(long.statement().len() < 2000);
    }
}
