//! A client's connection. Its memory is bounded: lines are copied from the spool only as fast as the client reads, and
//! requests are read only while it reads the answers.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
};

use crate::{
    bounds::PIECE,
    spool::{Cursor, Spool},
    wire::{self, FromClient, FromShim, LONGEST_HEADER, Malformed, Reading},
};

pub(super) struct Link {
    pub(super) stream: UnixStream,
    /// Received bytes, and the parsed part of them.
    input: Vec<u8>,
    parsed: usize,
    /// Bytes to send, and the sent part of them.
    output: Vec<u8>,
    sent: usize,
    /// Headers to send after the current line.
    control: Vec<u8>,
    /// Position in the spool. `None` before HELLO.
    pub(super) cursor: Option<Cursor>,
    /// The last reported state of the spool.
    pub(super) reported_reading: Option<Reading>,
    /// Whether the agent's exit was sent.
    pub(super) exit_sent: bool,
    /// Closes once all pending output is sent.
    pub(super) closing: bool,
}

impl Link {
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            input: Vec::new(),
            parsed: 0,
            output: Vec::new(),
            sent: 0,
            control: Vec::new(),
            cursor: None,
            reported_reading: None,
            exit_sent: false,
            closing: false,
        })
    }

    pub(super) fn has_output(&self) -> bool {
        self.sent < self.output.len() || !self.control.is_empty()
    }

    /// Whether pending output exceeds the limit, so the client must read first.
    pub(super) fn is_behind(&self) -> bool {
        self.output.len() - self.sent + self.control.len() >= PIECE * 2
    }

    /// Whether further requests are read.
    pub(super) fn may_ask(&self) -> bool {
        !self.closing && !self.is_behind()
    }

    /// Reads from the client. Returns false if it has left.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> bool {
        match self.stream.read(buffer) {
            Ok(0) => false,
            Ok(count) => {
                self.input.drain(..self.parsed);
                self.parsed = 0;
                if self.input.is_empty() {
                    // A single long line must not pin memory forever.
                    self.input.shrink_to(PIECE);
                }
                self.input.extend_from_slice(&buffer[..count]);
                true
            }
            Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        }
    }

    /// The next complete request, with its payload.
    pub(super) fn next_request(
        &mut self,
        longest: usize,
    ) -> Result<Option<(FromClient, Vec<u8>)>, Malformed> {
        let input = &self.input[self.parsed..];
        let head = &input[..input.len().min(LONGEST_HEADER)];
        let Some(end) = head.iter().position(|byte| *byte == b'\n') else {
            let is_endless = head.len() == LONGEST_HEADER;
            return if is_endless { Err(Malformed("a header without an end".to_owned())) } else { Ok(None) };
        };
        let text = String::from_utf8_lossy(&head[..end]).into_owned();
        let header = FromClient::parse(&text)?;
        if header.payload() > longest {
            return Err(Malformed(format!("{text}: at most {longest} bytes are accepted")));
        }
        let all = end + 1 + header.payload();
        if input.len() < all {
            return Ok(None);
        }
        let payload = input[end + 1..all].to_vec();
        self.parsed += all;
        Ok(Some((header, payload)))
    }

    /// Queues a header behind the current line.
    pub(super) fn queue(&mut self, header: &FromShim, payload: &[u8]) {
        // Writing to memory doesn't fail.
        let _ = wire::write(&mut self.control, header, payload);
    }

    /// Whether the client has every line of the spool.
    pub(super) fn has_all(&self, spool: &Spool) -> bool {
        self.cursor.as_ref().is_some_and(|cursor| cursor.seq >= spool.next())
    }

    /// Sends pending output as far as the client reads. On an error the client has left, or the spool can't be read.
    pub(super) fn send(&mut self, spool: &Spool, buffer: &mut [u8]) -> io::Result<()> {
        loop {
            let mut is_more = true;
            while is_more && self.output.len() < PIECE {
                is_more = match &mut self.cursor {
                    Some(cursor) if !self.closing => {
                        spool.copy(cursor, &mut self.control, &mut self.output, buffer)?
                    }
                    // No header may follow an incomplete line.
                    Some(cursor) if cursor.is_amid() => {
                        self.control.clear();
                        false
                    }
                    _ => {
                        self.output.append(&mut self.control);
                        false
                    }
                };
            }
            if self.output.is_empty() {
                return Ok(());
            }
            while self.sent < self.output.len() {
                match self.stream.write(&self.output[self.sent..]) {
                    Ok(count) => self.sent += count,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            self.output.clear();
            self.output.shrink_to(PIECE * 2);
            self.sent = 0;
        }
    }
}
