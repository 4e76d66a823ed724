//! Reads whole IMAP responses within limits (RFC 3501, section 7).
//!
//! Tenants name the server. Each byte is scanned once, however the input is split, without recursion.
//! `imap_response.rs` parses complete responses.

use std::{io, ops::Range, time::Duration};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    time::{Instant, sleep, timeout_at},
};

use crate::{
    bounds,
    contract::{MemoryBudget, MemoryGrant},
};

/// Maximum response of a tenant's server, without literals: the numbers of some 100,000 mails.
const MAX_LINE: usize = 1 << 20;
/// Maximum nesting of brackets. Expected responses need three levels.
const MAX_DEPTH: usize = 32;
/// Maximum answer to one command: the largest mail, or a line for each of very many mails.
const MAX_ANSWER: usize = 48 << 20;
/// Bytes per ten seconds while memory is held: 64 KiB a second. A stalled server would keep its organization's share of
/// the memory.
const STEP: usize = 640 << 10;

/// Why a connection is unusable.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
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

/// A complete response.
#[derive(Debug)]
pub struct RawResponse {
    /// With literals and line ends.
    pub bytes: Bytes,
    /// Positions of the literals.
    pub literals: Vec<Range<usize>>,
}

/// Buffers incoming responses.
pub struct ResponseReader {
    buffer: BytesMut,
    scan: Scan,
    /// Received bytes of the answer to the current command.
    answer: usize,
    hold: Box<dyn MemoryGrant>,
    held: usize,
    /// While memory is held: the deadline and the bytes due.
    pace: Option<(Instant, usize)>,
    /// Time that the current command waited for memory: our time, not the server's.
    waited: Duration,
}

/// Scan position in the current response.
#[derive(Default)]
struct Scan {
    at: usize,
    /// Length without literals.
    length: usize,
    depth: usize,
    quoted: bool,
    escaped: bool,
    literals: Vec<Range<usize>>,
}

impl ResponseReader {
    pub fn new(room: &dyn MemoryBudget) -> Self {
        let (buffer, scan) = (BytesMut::new(), Scan::default());
        Self { buffer, scan, answer: 0, hold: room.open(), held: 0, pace: None, waited: Duration::ZERO }
    }

    /// Restarts the limits for the next command.
    pub fn begin_command(&mut self) {
        self.answer = self.buffer.len();
        (self.pace, self.waited) = (None, Duration::ZERO);
    }

    pub const fn has_waited(&self) -> bool {
        !self.waited.is_zero()
    }

    /// Drops input from before TLS, which could be anyone's.
    pub fn discard(&mut self) {
        self.buffer.clear();
        self.scan = Scan::default();
    }

    /// Releases the memory of handled responses.
    pub fn release_memory(&mut self) {
        // The rest may be a few bytes of a large buffer.
        self.buffer = BytesMut::from(&self.buffer[..]);
        self.hold.shrink(self.held);
        (self.held, self.pace) = (0, None);
    }

    /// The next response, before the deadline. Cancel-safe.
    pub async fn next(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        until: Instant,
    ) -> Result<RawResponse, ReadError> {
        loop {
            if let Some(end) = self.scan.find_end(&self.buffer)? {
                let literals = std::mem::take(&mut self.scan).literals;
                return Ok(RawResponse { bytes: self.buffer.split_to(end).freeze(), literals });
            }
            let most = self.scan.pending_literal().map_or(8 << 10, |end| (end - self.buffer.len()).min(STEP));
            self.read(stream, most, until).await?;
        }
    }

    async fn read(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        most: usize,
        until: Instant,
    ) -> Result<(), ReadError> {
        self.reserve_memory(self.buffer.len() + most).await?;
        if self.answer >= MAX_ANSWER {
            return Err(ReadError::TooLong);
        }
        self.buffer.reserve(most);
        let (until, late) = self.next_deadline(until);
        let mut some = (&mut *stream).take(most as u64);
        let read = timeout_at(until, some.read_buf(&mut self.buffer)).await.map_err(|_| late)??;
        self.answer += read;
        if read == 0 { Err(ReadError::Lost) } else { Ok(()) }
    }

    /// The next deadline, and the error for missing it.
    fn next_deadline(&mut self, until: Instant) -> (Instant, ReadError) {
        let until = until + self.waited;
        if self.held == 0 {
            return (until, ReadError::Slow);
        }
        let paced = self.pace.filter(|(_, goal)| self.answer < *goal);
        let (paced, _) = *self
            .pace
            .insert(paced.unwrap_or((Instant::now() + Duration::from_secs(10), self.answer + STEP)));
        if paced < until { (paced, ReadError::TooSlow) } else { (until, ReadError::Slow) }
    }

    /// Reserves memory for this many bytes, beyond a free allowance: each exists up to three times, as received, as
    /// parsed, and while either buffer grows. Waits a while if the organization's share is used up.
    async fn reserve_memory(&mut self, bytes: usize) -> Result<(), ReadError> {
        let needed = 3 * bytes.saturating_sub(bounds::TEXT);
        let mut waited = Duration::ZERO;
        while needed > self.held {
            if self.hold.grow(needed - self.held) {
                self.held = needed;
            } else if waited > Duration::from_secs(60) {
                return Err(ReadError::Crowded);
            } else {
                let begun = Instant::now();
                sleep(Duration::from_millis(250)).await;
                waited += begun.elapsed();
                self.postpone(begun.elapsed());
            }
        }
        Ok(())
    }

    /// Postpones deadlines by a time without reading.
    fn postpone(&mut self, time: Duration) {
        self.waited += time;
        if let Some((until, _)) = &mut self.pace {
            *until += time;
        }
    }
}

impl Scan {
    /// The end of an incomplete literal.
    fn pending_literal(&self) -> Option<usize> {
        self.literals.last().map(|literal| literal.end).filter(|end| *end > self.at)
    }

    /// Scans new bytes. `None`: incomplete.
    fn find_end(&mut self, bytes: &[u8]) -> Result<Option<usize>, ReadError> {
        if let Some(end) = self.pending_literal() {
            if bytes.len() < end {
                return Ok(None);
            }
            self.at = end;
        }
        while let Some(byte) = bytes.get(self.at) {
            self.at += 1;
            if *byte == b'\n' {
                let Some(length) = self.announced_literal(bytes) else { return Ok(Some(self.at)) };
                (self.quoted, self.escaped) = (false, false);
                let end =
                    self.at.checked_add(length).filter(|end| *end <= MAX_ANSWER).ok_or(ReadError::TooLong)?;
                self.literals.push(self.at..end);
                if bytes.len() < end {
                    return Ok(None);
                }
                self.at = end;
            } else {
                self.scan_byte(*byte)?;
            }
        }
        Ok(None)
    }

    fn scan_byte(&mut self, byte: u8) -> Result<(), ReadError> {
        self.length += 1;
        if self.length > MAX_LINE {
            return Err(ReadError::TooLong);
        }
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.quoted => self.escaped = true,
            b'"' => self.quoted = !self.quoted,
            b'(' | b'[' if !self.quoted => self.depth += 1,
            b')' | b']' if !self.quoted => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        if self.depth > MAX_DEPTH { Err(ReadError::TooDeep) } else { Ok(()) }
    }

    /// The length of the literal announced at the end of the current line.
    fn announced_literal(&self, bytes: &[u8]) -> Option<usize> {
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
