//! What a client and the shim say on DIR/socket: a line of text, and after some of them raw bytes.
//!
//! ```text
//! client                      shim
//!  │ ── HELLO 18 ────────────► │  first, and once
//!  │ ◄── SHIM 1 3 4711 7 12 20 │  version, generation, the agent's pid, last line taken, first and next line of the spool
//!  │ ◄───────────── SPOOL OPEN │  and whenever that changes
//!  │ ◄──── OUT 18 5 (5 bytes) ─│  a line of the agent, without its newline
//!  │ ── IN 8 12 (12 bytes) ──► │  a line for the agent, without its newline
//!  │ ◄──────────────── TOOK 8 ─│  it is in the agent's pipe
//!  │ ── TRIM 18 ─────────────► │  lines up to here are no longer needed
//!  │ ── SIGNAL 15 ───────────► │  to the agent's process group
//!  │ ── CLOSE ───────────────► │  close the agent's stdin, once it has all lines
//!  │ ── STDERR ──────────────► │
//!  │ ◄─── STDERR 90 (90 bytes) │
//!  │ ◄─ EXIT 0 - 1760000000000 EXITED │  after the last OUT
//!  │ ── BYE ─────────────────► │  everything is trimmed: the shim may go
//! ```
//!
//! No async here: a header is parsed from a `&str` and written with `Display` (without its newline), and both sides
//! bound what they read.

use std::{
    fmt::{self, Display, Formatter},
    io::{self, BufRead, Read, Write},
    str::{FromStr, SplitN},
};

/// The version of what is said here, and of the files in DIR.
pub const VERSION: u16 = 1;

/// A client that writes no newline: the longest header, in bytes, with its newline.
pub const LONGEST_HEADER: usize = 512;

/// A header from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromClient {
    /// Send the spool from this line on. Takes over from any other client.
    Hello {
        /// The first line wanted; 0 and 1 are all.
        from: u64,
    },
    /// A line for the agent, followed by its bytes. The numbers are 1, 2, 3, ….
    In {
        /// Its number.
        seq: u64,
        /// Its length, without a newline.
        len: usize,
    },
    /// The lines up to this one are no longer needed.
    Trim(u64),
    /// A signal for the agent's process group.
    Signal(i32),
    /// Close the agent's stdin after the lines that it has still to get. Most agents end then.
    Close,
    /// Send the end of the agent's stderr.
    Stderr,
    /// Nothing is needed. Refused unless the agent has ended and all lines are trimmed.
    Bye,
}

/// A header from the shim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromShim {
    /// The answer to HELLO.
    Shim(Greeting),
    /// A line of the agent, followed by its bytes.
    Out {
        /// Its number.
        seq: u64,
        /// Its length, without its newline.
        len: usize,
    },
    /// This line, and so each before it, is in the agent's pipe.
    Took(u64),
    /// What was asked is not done.
    Refused {
        /// Why, for programs.
        code: Refusal,
        /// Why, for people.
        reason: String,
    },
    /// Whether the agent's lines are read.
    Spool(Reading),
    /// The end of the agent's stderr, followed by its bytes.
    Stderr {
        /// How many.
        len: usize,
    },
    /// The agent has ended, and all its lines were sent.
    Exit(Ended),
}

/// What a shim is and has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The version that it speaks.
    pub version: u16,
    /// The agent's launch.
    pub generation: u64,
    /// The agent's process and process group.
    pub pid: i32,
    /// The last line that the agent has got. Send the later ones again; they are written once.
    pub taken: u64,
    /// The first line that is not trimmed.
    pub first: u64,
    /// The number that the agent's next line will get.
    pub next: u64,
}

/// Whether the agent's lines are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// They are.
    Open,
    /// The spool has reached its bound: the agent waits until lines are trimmed.
    Full,
    /// The disk is full: the agent waits. The shim tries again each second.
    Disk,
    /// The agent has closed its stdout.
    Closed,
}

/// Why something is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The shim doesn't understand, or a line is longer than it accepts. It closes the connection.
    Malformed,
    /// Another client has taken over. The connection is closed.
    Superseded,
    /// A line's number leaves out some, or TRIM or HELLO name lines that don't exist yet.
    Gap,
    /// Lines wait for the agent, so a TOOK will follow. Send the line again after it.
    Busy,
    /// A line has a newline in it.
    Line,
    /// The agent has closed its stdin, or has ended.
    Closed,
    /// There is no such signal.
    Signal,
    /// BYE came too early.
    Early,
}

/// How an agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code, unless a signal ended it. Under bubblewrap, 128 and the signal's number.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// Why.
    pub reason: Reason,
}

/// Why an agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// By itself.
    Exited,
    /// By a signal.
    Killed,
    /// By a signal, within seconds of the kernel killing something for want of memory.
    OutOfMemory,
    /// Its program could not be started.
    SpawnFailed,
    /// The shim ended it: it wrote a line that is too long.
    LineTooLong,
    /// The shim ended it: the spool can't be written, and not because the disk is full.
    SpoolFailed,
}

/// A header that is invalid.
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

/// The words on the wire for each value, both ways.
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
    /// Reads a header, without its newline.
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

    /// How many bytes follow.
    pub fn payload(&self) -> usize {
        if let Self::In { len, .. } = self { *len } else { 0 }
    }
}

impl FromShim {
    /// Reads a header, without its newline.
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
                code: words.maybe()?,
                signal: words.maybe()?,
                at: words.value()?,
                reason: words.value()?,
            }),
            _ => return Err(words.malformed()),
        };
        words.end(header)
    }

    /// How many bytes follow.
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

/// The number, or `-`.
pub(crate) fn or_dash(number: Option<i32>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

/// Reads a header's line, without its newline. `None` at the end of what there is to read.
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

/// Writes a header, its newline, and the bytes that follow.
pub fn write(to: &mut impl Write, header: impl Display, payload: &[u8]) -> io::Result<()> {
    writeln!(to, "{header}")?;
    to.write_all(payload)
}

/// The words of a header, from left to right.
struct Words<'a> {
    line: &'a str,
    rest: SplitN<'a, char>,
}

impl<'a> Words<'a> {
    fn new(line: &'a str) -> Self {
        // The longest has seven words; what a reason says is the third.
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

    fn maybe<T: FromStr>(&mut self) -> Result<Option<T>, Malformed> {
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
    fn what_is_written_is_read_back() {
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
    fn what_makes_no_sense_is_refused() {
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
