//! What a mail server says: whole responses, within bounds (RFC 3501, section 7).
//!
//! The server is one that a tenant names. Each byte is looked at once, whatever the pieces in which it comes, and nothing here calls
//! itself. A response is understood by `said.rs` when all of it has come.

use std::{io, ops::Range, time::Duration};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    time::{Instant, sleep, timeout_at},
};

use crate::{
    bounds,
    contract::{Hold, Room},
};

/// The longest response that a tenant's server may give, without its literals: the numbers of some 100,000 mails.
const LINE: usize = 1 << 20;
/// How deep it may nest brackets. What is asked for needs three levels.
const DEPTH: usize = 32;
/// All that it may say to one command: the largest mail that is read, or a line for each of very many mails.
const ANSWER: usize = 48 << 20;
/// The bytes that must come in ten seconds while memory is held for the answer, or it must end: 64 KiB a second. A server that
/// stops within its answer, or after it, would keep its organization's share of the memory from others.
const STEP: usize = 640 << 10;

/// Why nothing more is read of a connection.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the connection is lost")]
    Lost,
    #[error("its answer is too long")]
    TooLong,
    #[error("its answer is nested too deeply")]
    TooDeep,
    #[error("its answer can't be understood")]
    Unclear,
    #[error("it does not answer in time")]
    Slow,
    #[error("it sends a mail too slowly")]
    TooSlow,
    /// Not the server's fault.
    #[error("too many mails are being read at the moment")]
    Crowded,
}

/// A whole response.
#[derive(Debug)]
pub struct Response {
    /// With its literals and line ends.
    pub bytes: Bytes,
    /// Where its literals are.
    pub literals: Vec<Range<usize>>,
}

/// What has come of responses.
pub struct Responses {
    buffer: BytesMut,
    scan: Scan,
    /// How much of the answer to the present command has come.
    answer: usize,
    hold: Box<dyn Hold>,
    held: usize,
    /// While memory is held: until when how much of the answer must have come.
    pace: Option<(Instant, usize)>,
    /// How long the present command has waited for memory. It is our time, not the server's.
    waited: Duration,
}

/// How far the present response was looked at.
#[derive(Default)]
struct Scan {
    at: usize,
    /// Its length without its literals.
    length: usize,
    depth: usize,
    quoted: bool,
    escaped: bool,
    literals: Vec<Range<usize>>,
}

impl Responses {
    pub fn new(room: &dyn Room) -> Self {
        let (buffer, scan) = (BytesMut::new(), Scan::default());
        Self { buffer, scan, answer: 0, hold: room.open(), held: 0, pace: None, waited: Duration::ZERO }
    }

    /// Begins to count again: another command is sent.
    pub fn begin(&mut self) {
        self.answer = self.buffer.len();
        (self.pace, self.waited) = (None, Duration::ZERO);
    }

    /// Whether the present command has waited for memory.
    pub const fn has_waited(&self) -> bool {
        !self.waited.is_zero()
    }

    /// Drops what came before the encryption, which could be anybody's.
    pub fn forget(&mut self) {
        self.buffer.clear();
        self.scan = Scan::default();
    }

    /// Gives back the memory of what was read.
    pub fn let_go(&mut self) {
        // What is left may be a few bytes of a large piece.
        self.buffer = BytesMut::from(&self.buffer[..]);
        self.hold.shrink(self.held);
        (self.held, self.pace) = (0, None);
    }

    /// The next response, which must come until then. If this is dropped before, nothing is lost.
    pub async fn next(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        until: Instant,
    ) -> Result<Response, Broken> {
        loop {
            if let Some(end) = self.scan.find_end(&self.buffer)? {
                let literals = std::mem::take(&mut self.scan).literals;
                return Ok(Response { bytes: self.buffer.split_to(end).freeze(), literals });
            }
            let most = self.scan.literal().map_or(8 << 10, |end| (end - self.buffer.len()).min(STEP));
            self.read(stream, most, until).await?;
        }
    }

    async fn read(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        most: usize,
        until: Instant,
    ) -> Result<(), Broken> {
        self.make_room(self.buffer.len() + most).await?;
        if self.answer >= ANSWER {
            return Err(Broken::TooLong);
        }
        self.buffer.reserve(most);
        let (until, late) = self.due(until);
        let mut some = (&mut *stream).take(most as u64);
        let read = timeout_at(until, some.read_buf(&mut self.buffer)).await.map_err(|_| late)??;
        self.answer += read;
        if read == 0 { Err(Broken::Lost) } else { Ok(()) }
    }

    /// Until when something must come, and what it means if nothing does.
    fn due(&mut self, until: Instant) -> (Instant, Broken) {
        let until = until + self.waited;
        if self.held == 0 {
            return (until, Broken::Slow);
        }
        let paced = self.pace.filter(|(_, goal)| self.answer < *goal);
        let (paced, _) = *self
            .pace
            .insert(paced.unwrap_or((Instant::now() + Duration::from_secs(10), self.answer + STEP)));
        if paced < until { (paced, Broken::TooSlow) } else { (until, Broken::Slow) }
    }

    /// Counts memory for so many bytes, beside the first few: each is there three times at most, as it came, as what is in it, and
    /// while either grows. If the organization has its share, it waits a while.
    async fn make_room(&mut self, bytes: usize) -> Result<(), Broken> {
        let needed = 3 * bytes.saturating_sub(bounds::TEXT);
        let mut waited = Duration::ZERO;
        while needed > self.held {
            if self.hold.grow(needed - self.held) {
                self.held = needed;
            } else if waited > Duration::from_secs(60) {
                return Err(Broken::Crowded);
            } else {
                let begun = Instant::now();
                sleep(Duration::from_millis(250)).await;
                waited += begun.elapsed();
                self.pause(begun.elapsed());
            }
        }
        Ok(())
    }

    /// Moves what the server must do by a time in which it was not listened to.
    fn pause(&mut self, time: Duration) {
        self.waited += time;
        if let Some((until, _)) = &mut self.pace {
            *until += time;
        }
    }
}

impl Scan {
    /// The end of the literal that has not come wholly.
    fn literal(&self) -> Option<usize> {
        self.literals.last().map(|literal| literal.end).filter(|end| *end > self.at)
    }

    /// Looks at what has come. `None`: the response goes on.
    fn find_end(&mut self, bytes: &[u8]) -> Result<Option<usize>, Broken> {
        if let Some(end) = self.literal() {
            if bytes.len() < end {
                return Ok(None);
            }
            self.at = end;
        }
        while let Some(byte) = bytes.get(self.at) {
            self.at += 1;
            if *byte == b'\n' {
                let Some(length) = self.announced(bytes) else { return Ok(Some(self.at)) };
                (self.quoted, self.escaped) = (false, false);
                let end = self.at.checked_add(length).filter(|end| *end <= ANSWER).ok_or(Broken::TooLong)?;
                self.literals.push(self.at..end);
                if bytes.len() < end {
                    return Ok(None);
                }
                self.at = end;
            } else {
                self.look(*byte)?;
            }
        }
        Ok(None)
    }

    fn look(&mut self, byte: u8) -> Result<(), Broken> {
        self.length += 1;
        if self.length > LINE {
            return Err(Broken::TooLong);
        }
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.quoted => self.escaped = true,
            b'"' => self.quoted = !self.quoted,
            b'(' | b'[' if !self.quoted => self.depth += 1,
            b')' | b']' if !self.quoted => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        if self.depth > DEPTH { Err(Broken::TooDeep) } else { Ok(()) }
    }

    /// The length of the literal that the present line announces at its end.
    fn announced(&self, bytes: &[u8]) -> Option<usize> {
        if self.quoted {
            return None;
        }
        let begin = self.literals.last().map_or(0, |literal| literal.end);
        let line = bytes.get(begin..self.at)?.strip_suffix(b"\n")?;
        let line = line.strip_suffix(b"\r").unwrap_or(line).strip_suffix(b"}")?;
        let digits = line.get(line.iter().rposition(|byte| *byte == b'{')? + 1..)?;
        std::str::from_utf8(digits)
            .ok()
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?
            .parse()
            .ok()
    }
}

#[cfg(test)]
pub mod tests;
