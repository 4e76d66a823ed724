//! The protocol on DIR/socket: lines of text, some of them followed by raw bytes.
//!
//! ```text
//! client                      shim
//!  │ ── HELLO 18 ────────────► │  first, and once
//!  │ ◄── SHIM 1 3 4711 7 12 20 │  version, generation, the agent's pid, last line taken, first and next line of the spool
//!  │ ◄───────────── SPOOL OPEN │  and on each change
//!  │ ◄──── OUT 18 5 (5 bytes) ─│  a line from the agent, without its newline
//!  │ ── IN 8 12 (12 bytes) ──► │  a line for the agent, without its newline
//!  │ ◄──────────────── TOOK 8 ─│  the line is in the agent's pipe
//!  │ ── TRIM 18 ─────────────► │  lines up to here are no longer needed
//!  │ ── SIGNAL 15 ───────────► │  to the agent's process group
//!  │ ── CLOSE ───────────────► │  close the agent's stdin, after all lines
//!  │ ── STDERR ──────────────► │
//!  │ ◄─── STDERR 90 (90 bytes) │
//!  │ ◄─ EXIT 0 - 1760000000000 EXITED │  after the last OUT
//!  │ ── BYE ─────────────────► │  all is trimmed: the shim may exit
//! ```
//!
//! No async: a header is parsed from a `&str` and written with `Display` (without its newline). Both sides limit their
//! reads.

use std::{
    fmt::{self, Display, Formatter},
    io::{self, BufRead, Read, Write},
    str::{FromStr, SplitN},
};

/// Version of the protocol and of the files in DIR.
pub const VERSION: u16 = 1;

/// The longest header in bytes, with its newline: a client may send none.
pub const LONGEST_HEADER: usize = 512;

/// A header from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromClient {
    /// Sends the spool from this line on. Takes over from any other client.
    Hello {
        /// The first line to send; 0 and 1 mean all.
        from: u64,
    },
    /// A line for the agent, followed by its bytes. Lines are numbered 1, 2, 3, ….
    In {
        /// Number of the line.
        seq: u64,
        /// Length without a newline.
        len: usize,
    },
    /// Lines up to this one are no longer needed.
    Trim(u64),
    /// A signal for the agent's process group.
    Signal(i32),
    /// Closes the agent's stdin after the pending lines. Most agents exit then.
    Close,
    /// Requests the end of the agent's stderr.
    Stderr,
    /// Lets the shim exit. Refused unless the agent has exited and all lines are trimmed.
    Bye,
}

/// A header from the shim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromShim {
    /// The answer to HELLO.
    Shim(Greeting),
    /// A line of the agent, followed by its bytes.
    Out {
        /// Number of the line.
        seq: u64,
        /// Length without its newline.
        len: usize,
    },
    /// This line, and all before it, are in the agent's pipe.
    Took(u64),
    /// A request was refused.
    Refused {
        /// The reason, for programs.
        code: Refusal,
        /// The reason, for people.
        reason: String,
    },
    /// State of reading the agent's lines.
    Spool(Reading),
    /// The end of the agent's stderr, followed by its bytes.
    Stderr {
        /// Number of bytes.
        len: usize,
    },
    /// The agent has exited, and all its lines were sent.
    Exit(Ended),
}

/// State of a shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Protocol version.
    pub version: u16,
    /// Number of the agent's launch.
    pub generation: u64,
    /// The agent's process and process group.
    pub pid: i32,
    /// The last line received by the agent. Later ones must be sent again; each is written once.
    pub taken: u64,
    /// The first untrimmed line.
    pub first: u64,
    /// Number of the agent's next line.
    pub next: u64,
}

/// State of reading the agent's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Lines are read.
    Open,
    /// The spool is full: the agent blocks until lines are trimmed.
    Full,
    /// The disk is full: the agent blocks. The shim retries every second.
    Disk,
    /// The agent has closed its stdout.
    Closed,
}

/// Reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not understood, or a line above the limit. The connection is closed.
    Malformed,
    /// Another client has taken over. The connection is closed.
    Superseded,
    /// A line's number skips others, or TRIM or HELLO name lines that don't exist yet.
    Gap,
    /// Lines are pending, so a TOOK will follow. Send the line again after it.
    Busy,
    /// A line contains a newline.
    Line,
    /// The agent has closed its stdin, or has exited.
    Closed,
    /// No such signal.
    Signal,
    /// BYE came too early.
    Early,
}

/// An agent's exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The exit code, unless a signal ended the agent. Under bubblewrap, 128 plus the signal's number.
    pub code: Option<i32>,
    /// The signal that ended the agent.
    pub signal: Option<i32>,
    /// Time in milliseconds since 1970.
    pub at: u64,
    /// Reason of the exit.
    pub reason: Reason,
}

/// Reason of an agent's exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Exited by itself.
    Exited,
    /// Killed by a signal.
    Killed,
    /// Killed by a signal, within seconds of an out-of-memory kill.
    OutOfMemory,
    /// The program could not be started.
    SpawnFailed,
    /// Ended by the shim: a line was too long.
    LineTooLong,
    /// Ended by the shim: the spool can't be written, though the disk is not full.
    SpoolFailed,
}

/// An invalid header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

impl std::error::Error for Malformed {}

impl Display for Malformed {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, "this is not a header of the shim's protocol: {}", self.0.escape_debug())
    }
}

impl From<Malformed> for io::Error {
    fn from(error: Malformed) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

/// Words on the wire for each value, both ways.
macro_rules! words {
    ($of:ident: $($value:ident = $word:literal),+ $(,)?) => {
        impl $of {
            /// The word on the wire and in files.
            pub fn word(self) -> &'static str {
                match self { $(Self::$value => $word),+ }
            }
        }

        impl FromStr for $of {
            type Err = Malformed;

            fn from_str(word: &str) -> Result<Self, Malformed> {
                match word { $($word => Ok(Self::$value),)+ _ => Err(Malformed(word.to_owned())) }
            }
        }
    };
}

words!(Reading: Open = "OPEN", Full = "FULL", Disk = "DISK", Closed = "CLOSED");
words!(Refusal: Malformed = "MALFORMED", Superseded = "SUPERSEDED", Gap = "GAP", Busy = "BUSY", Line = "LINE",
    Closed = "CLOSED", Signal = "SIGNAL", Early = "EARLY");
words!(Reason: Exited = "EXITED", Killed = "KILLED", OutOfMemory = "OUT_OF_MEMORY", SpawnFailed = "SPAWN_FAILED",
    LineTooLong = "LINE_TOO_LONG", SpoolFailed = "SPOOL_FAILED");

impl FromClient {
    /// Parses a header, without its newline.
    pub fn parse(line: &str) -> Result<Self, Malformed> {
        let mut words = Words::new(line);
        let header = match words.next()? {
            "HELLO" => Self::Hello { from: words.value()? },
            "IN" => Self::In { seq: words.value()?, len: words.value()? },
            "TRIM" => Self::Trim(words.value()?),
            "SIGNAL" => Self::Signal(words.value()?),
            "CLOSE" => Self::Close,
            "STDERR" => Self::Stderr,
            "BYE" => Self::Bye,
            _ => return Err(words.malformed()),
        };
        words.end(header)
    }

    /// Length of the payload.
    pub fn payload(&self) -> usize {
        if let Self::In { len, .. } = self { *len } else { 0 }
    }
}

impl FromShim {
    /// Parses a header, without its newline.
    pub fn parse(line: &str) -> Result<Self, Malformed> {
        let mut words = Words::new(line);
        let header = match words.next()? {
            "SHIM" => Self::Shim(Greeting {
                version: words.value()?,
                generation: words.value()?,
                pid: words.value()?,
                taken: words.value()?,
                first: words.value()?,
                next: words.value()?,
            }),
            "OUT" => Self::Out { seq: words.value()?, len: words.value()? },
            "TOOK" => Self::Took(words.value()?),
            "REFUSED" => {
                let code = words.value()?;
                return Ok(Self::Refused { code, reason: words.rest().to_owned() });
            }
            "SPOOL" => Self::Spool(words.value()?),
            "STDERR" => Self::Stderr { len: words.value()? },
            "EXIT" => Self::Exit(Ended {
                code: words.optional()?,
                signal: words.optional()?,
                at: words.value()?,
                reason: words.value()?,
            }),
            _ => return Err(words.malformed()),
        };
        words.end(header)
    }

    /// Length of the payload.
    pub fn payload(&self) -> usize {
        match self {
            Self::Out { len, .. } | Self::Stderr { len } => *len,
            _ => 0,
        }
    }
}

impl Display for FromClient {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hello { from } => write!(to, "HELLO {from}"),
            Self::In { seq, len } => write!(to, "IN {seq} {len}"),
            Self::Trim(seq) => write!(to, "TRIM {seq}"),
            Self::Signal(number) => write!(to, "SIGNAL {number}"),
            Self::Close => to.write_str("CLOSE"),
            Self::Stderr => to.write_str("STDERR"),
            Self::Bye => to.write_str("BYE"),
        }
    }
}

impl Display for FromShim {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shim(Greeting { version, generation, pid, taken, first, next }) => {
                write!(to, "SHIM {version} {generation} {pid} {taken} {first} {next}")
            }
            Self::Out { seq, len } => write!(to, "OUT {seq} {len}"),
            Self::Took(seq) => write!(to, "TOOK {seq}"),
            Self::Refused { code, reason } => write!(to, "REFUSED {} {reason}", code.word()),
            Self::Spool(reading) => write!(to, "SPOOL {}", reading.word()),
            Self::Stderr { len } => write!(to, "STDERR {len}"),
            Self::Exit(Ended { code, signal, at, reason }) => {
                write!(to, "EXIT {} {} {at} {}", or_dash(*code), or_dash(*signal), reason.word())
            }
        }
    }
}

pub(crate) fn or_dash(number: Option<i32>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

/// Reads a header's line, without its newline. `None` at the end of input.
pub fn read_header(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    from.by_ref().take(LONGEST_HEADER as u64).read_until(b'\n', &mut line)?;
    match line.pop() {
        None => return Ok(None),
        Some(b'\n') => {}
        Some(last) => {
            line.push(last);
            return Err(Malformed(String::from_utf8_lossy(&line).into_owned()).into());
        }
    }
    String::from_utf8(line).map(Some).map_err(|error| Malformed(error.to_string()).into())
}

/// Writes a header, its newline, and the payload.
pub fn write(to: &mut impl Write, header: impl Display, payload: &[u8]) -> io::Result<()> {
    writeln!(to, "{header}")?;
    to.write_all(payload)
}

struct Words<'a> {
    line: &'a str,
    rest: SplitN<'a, char>,
}

impl<'a> Words<'a> {
    fn new(line: &'a str) -> Self {
        // The longest header has seven words; a reason is the third word and may contain spaces.
        let limit = if line.starts_with("REFUSED ") { 3 } else { 8 };
        Self { line, rest: line.splitn(limit, ' ') }
    }

    fn malformed(&self) -> Malformed {
        Malformed(self.line.to_owned())
    }

    fn next(&mut self) -> Result<&'a str, Malformed> {
        self.rest.next().ok_or_else(|| self.malformed())
    }

    fn value<T: FromStr>(&mut self) -> Result<T, Malformed> {
        self.next()?.parse().map_err(|_| self.malformed())
    }

    fn optional<T: FromStr>(&mut self) -> Result<Option<T>, Malformed> {
        match self.next()? {
            "-" => Ok(None),
            word => word.parse().map(Some).map_err(|_| self.malformed()),
        }
    }

    fn rest(&mut self) -> &'a str {
        self.rest.next().unwrap_or_default()
    }

    fn end<T>(mut self, header: T) -> Result<T, Malformed> {
        if self.rest.next().is_some() { Err(self.malformed()) } else { Ok(header) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_round_trip() {
        for line in ["HELLO 0", "IN 3 18446744073709551615", "TRIM 9", "SIGNAL 15", "CLOSE", "STDERR", "BYE"]
        {
            assert_eq!(FromClient::parse(line).unwrap().to_string(), line);
        }
        for line in [
            "SHIM 1 3 4711 7 12 20",
            "OUT 18 5",
            "TOOK 8",
            "REFUSED GAP line 9 comes after 7: send 8",
            "SPOOL DISK",
            "STDERR 90",
            "EXIT 0 - 1760000000000 EXITED",
            "EXIT - 9 1760000000000 OUT_OF_MEMORY",
        ] {
            assert_eq!(FromShim::parse(line).unwrap().to_string(), line);
        }
    }

    #[test]
    fn malformed_headers_are_refused() {
        for line in ["", "HELLO", "HELLO -1", "HELLO 1 2", "IN 1", "hello 1", "IN 1  2", "SIGNAL x", "BYE 1"]
        {
            assert!(FromClient::parse(line).is_err(), "{line:?}");
        }
        for line in ["SHIM 1 3 4711 7 12", "OUT 18446744073709551616 1", "EXIT 0 - 1 NEVER", "REFUSED"] {
            assert!(FromShim::parse(line).is_err(), "{line:?}");
        }
    }

    #[test]
    fn a_header_is_read_up_to_its_bound() {
        let mut text = &b"TOOK 8\nTOOK"[..];
        assert_eq!(read_header(&mut text).unwrap().unwrap(), "TOOK 8");
        assert!(read_header(&mut text).is_err(), "it is cut off");
        assert_eq!(read_header(&mut text).unwrap(), None);
        let mut endless = Read::chain(&[b'x'; LONGEST_HEADER][..], &b"\n"[..]);
        assert!(read_header(&mut endless).is_err());
    }
}
