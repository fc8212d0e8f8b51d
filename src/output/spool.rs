//! Lines that are printed once all of them are there, without memory for all of them.
//!
//! They can't be printed as they come. A reader that pauses, such as less(1), would make the database wait, and a connection
//! that breaks would leave half of a list. So a long list goes to a file. Its name is removed at once, so nobody else can
//! open it, and the file is gone when the process ends.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Seek as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;

use serde::Serialize;

use super::escape::harmless_json;
use super::layout::{fit, padded};
use super::stdout_is_open;
use super::width::width;

/// How many bytes stay in memory.
const BUFFER: usize = 1 << 20;
/// The same for plain lines: several lists of them are filled at once.
const PLAIN_BUFFER: usize = BUFFER / 8;
/// Between the texts of a line that is kept. The texts are escaped, so they contain none.
const SEPARATOR: char = '\t';

/// Lines of a table or items of a JSON array.
pub struct Lines {
    layout: Layout,
    /// The beginning of a long list, if there is room for a file.
    file: Option<File>,
    /// How many bytes of the file are whole lines.
    length: u64,
    /// Whether a file takes no more, or none is wanted. Then the rest of the list stays in memory.
    is_full: bool,
    /// The end of the list.
    buffer: String,
}

enum Layout {
    /// Each line as it is.
    Plain,
    Json,
    Table {
        head: &'static [&'static str],
        widths: Vec<usize>,
        limit: Option<usize>,
        flexible: &'static [usize],
    },
}

impl Lines {
    /// Lines under a heading, in columns that are as wide as their longest text. If they are too long for a terminal of
    /// `limit` characters, the columns `flexible` are shortened.
    pub(super) fn table(
        head: &'static [&'static str],
        limit: Option<usize>,
        flexible: &'static [usize],
    ) -> Self {
        Self::new(Layout::Table {
            head,
            widths: head.iter().map(|text| width(text)).collect(),
            limit,
            flexible,
        })
    }

    /// A JSON array with one object on each line.
    pub(super) const fn json() -> Self {
        Self::new(Layout::Json)
    }

    /// Lines that are printed as they are.
    pub(super) const fn plain() -> Self {
        Self::new(Layout::Plain)
    }

    const fn new(layout: Layout) -> Self {
        Self {
            layout,
            file: None,
            length: 0,
            is_full: false,
            buffer: String::new(),
        }
    }

    /// Whether it is a JSON array.
    #[must_use]
    pub const fn is_json(&self) -> bool {
        matches!(self.layout, Layout::Json)
    }

    /// Whether there is no line.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.buffer.is_empty() && self.length == 0
    }

    /// Adds a line of the table.
    pub(super) fn row(&mut self, texts: &[String]) {
        if let Layout::Table { widths, .. } = &mut self.layout {
            for (column, text) in widths.iter_mut().zip(texts) {
                *column = width(text).max(*column);
            }
        }
        self.push(&texts.join(&SEPARATOR.to_string()));
    }

    /// Adds an item of the array.
    pub(super) fn item(&mut self, item: &impl Serialize) {
        let text = serde_json::to_string(item).expect("text and numbers have a JSON form");
        self.push(&harmless_json(text));
    }

    /// Adds a line as it is. It has no line break.
    pub(super) fn push(&mut self, line: &str) {
        self.buffer.push_str(line);
        self.buffer.push('\n');
        let most = match self.layout {
            Layout::Plain => PLAIN_BUFFER,
            Layout::Json | Layout::Table { .. } => BUFFER,
        };
        if self.buffer.len() >= most && !self.is_full {
            // Without room for a file, memory has to do.
            self.is_full = self.write_to_file().is_err();
        }
    }

    fn write_to_file(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(open_without_name()?);
        }
        if let Some(file) = &mut self.file {
            file.write_all(self.buffer.as_bytes())?;
            self.length += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Writes them to stdout.
    ///
    /// # Errors
    /// If the data cannot be written: a full disk, a closed pipe. If the file cannot be read.
    pub fn print(self) -> io::Result<()> {
        stdout_is_open()?;
        self.write_to(&mut BufWriter::new(io::stdout().lock()))
    }

    /// The same list, which needs no file: its source is in memory anyway.
    pub(super) const fn in_memory(mut self) -> Self {
        self.is_full = true;
        self
    }

    /// The text of a list in memory.
    pub(super) fn text(self) -> String {
        let mut text = Vec::new();
        self.write_to(&mut text)
            .expect("memory can be written, and no file is read");
        String::from_utf8(text).expect("it was written as UTF-8")
    }

    pub(super) fn write_to(self, out: &mut impl Write) -> io::Result<()> {
        let mut file = self.file;
        if let Some(file) = &mut file {
            file.rewind()?;
        }
        let kept = file.map(|file| BufReader::new(file.take(self.length)).lines());
        let rest = self.buffer.lines().map(|line| Ok(line.to_owned()));
        let lines = kept.into_iter().flatten().chain(rest);
        match self.layout {
            Layout::Plain => {
                for line in lines {
                    writeln!(out, "{}", line?)?;
                }
            }
            Layout::Table {
                head,
                mut widths,
                limit,
                flexible,
            } => {
                fit(&mut widths, limit, flexible);
                out.write_all(padded(head.iter().copied(), &widths).as_bytes())?;
                for line in lines {
                    out.write_all(padded(line?.split(SEPARATOR), &widths).as_bytes())?;
                }
            }
            Layout::Json => {
                let mut before = "[";
                for line in lines {
                    write!(out, "{before}{}", line?)?;
                    before = ",\n ";
                }
                out.write_all(if before == "[" { b"[]\n" } else { b"]\n" })?;
            }
        }
        out.flush()
    }
}

/// A file in the folder for temporary files. Its name is removed at once.
fn open_without_name() -> io::Result<File> {
    let random = getrandom::u64().map_err(io::Error::other)?;
    let path = std::env::temp_dir().join(format!("lease.{random:016x}"));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    fs::remove_file(path)?;
    Ok(file)
}
