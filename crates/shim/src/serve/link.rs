//! A connection of a client. What waits for it in memory is bounded: lines are copied from the spool only as far as the
//! client reads, and requests are read only while it reads their answers.

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
    /// What it said, and how much of that was looked at.
    input: Vec<u8>,
    parsed: usize,
    /// What it gets, and how much of that it has.
    output: Vec<u8>,
    sent: usize,
    /// What it gets after the line that it gets now.
    control: Vec<u8>,
    /// Where it is in the spool. None before HELLO.
    pub(super) cursor: Option<Cursor>,
    /// The state of the spool that it knows.
    pub(super) told: Option<Reading>,
    /// Whether it knows that the agent has ended.
    pub(super) told_exit: bool,
    /// It gets what waits for it, and nothing more.
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
            told: None,
            told_exit: false,
            closing: false,
        })
    }

    /// Whether something waits for it.
    pub(super) fn has_output(&self) -> bool {
        self.sent < self.output.len() || !self.control.is_empty()
    }

    /// Whether so much waits for it that it should read first.
    pub(super) fn is_behind(&self) -> bool {
        self.output.len() - self.sent + self.control.len() >= PIECE * 2
    }

    /// Whether it may ask for more.
    pub(super) fn may_ask(&self) -> bool {
        !self.closing && !self.is_behind()
    }

    /// Reads what it says. Returns false when it is gone.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> bool {
        match self.stream.read(buffer) {
            Ok(0) => false,
            Ok(count) => {
                self.input.drain(..self.parsed);
                self.parsed = 0;
                if self.input.is_empty() {
                    // One long line must not cost memory forever.
                    self.input.shrink_to(PIECE);
                }
                self.input.extend_from_slice(&buffer[..count]);
                true
            }
            Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        }
    }

    /// The next of its requests, if it is complete, with the bytes that follow it.
    pub(super) fn request(&mut self, longest: usize) -> Result<Option<(FromClient, Vec<u8>)>, Malformed> {
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

    /// Tells it something, after the line that it gets now.
    pub(super) fn tell(&mut self, header: &FromShim, payload: &[u8]) {
        // Writing to memory doesn't fail.
        let _ = wire::write(&mut self.control, header, payload);
    }

    /// Whether it has all lines there are.
    pub(super) fn has_all(&self, spool: &Spool) -> bool {
        self.cursor.as_ref().is_some_and(|cursor| cursor.seq >= spool.next())
    }

    /// Sends what waits for it, as far as it reads. An error: it is gone, or the spool can't be read.
    pub(super) fn send(&mut self, spool: &Spool, buffer: &mut [u8]) -> io::Result<()> {
        loop {
            let mut is_more = true;
            while is_more && self.output.len() < PIECE {
                is_more = match &mut self.cursor {
                    Some(cursor) if !self.closing => {
                        spool.copy(cursor, &mut self.control, &mut self.output, buffer)?
                    }
                    // A line that stays incomplete can't be followed by words.
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
