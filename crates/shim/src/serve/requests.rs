//! What clients ask for.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use rustix::process::geteuid;

use super::{Phase, Shim, link::Link};
use crate::{
    folder::{self, SOCKET},
    spool::Cursor,
    wire::{FromClient, FromShim, Greeting, Malformed, Refusal, VERSION},
};

impl Shim {
    /// Takes new connections of this process's own user. One that has not said hello is replaced by the next.
    pub(super) fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            if !is_closed() {
                continue;
            }
            self.links[1] = Link::new(stream).ok();
        }
    }

    /// Reads and does what a client asks.
    pub(super) fn receive(&mut self, index: usize, buffer: &mut [u8]) {
        // Taken out, so that it can change everything else.
        let Some(mut link) = self.links[index].take() else { return };
        if link.may_ask() && !link.receive(buffer) {
            return;
        }
        // All of what was read: it may be the last that it sends.
        while !link.closing {
            match link.request(self.launch.line_bytes) {
                Ok(Some((header, payload))) => self.answer(&mut link, header, payload),
                Ok(None) => break,
                Err(Malformed(what)) => {
                    refuse(&mut link, Refusal::Malformed, &what);
                    link.closing = true;
                }
            }
        }
        if index == 1 && link.cursor.is_some() {
            self.take_over(link);
        } else {
            self.links[index] = Some(link);
        }
    }

    /// The newest client that says hello is the client.
    fn take_over(&mut self, link: Link) {
        if let Some(mut old) = self.links[0].replace(link) {
            refuse(&mut old, Refusal::Superseded, "another client has taken over");
            old.closing = true;
            // It gets what its socket takes now.
            drop(old.send(&self.spool, &mut []));
        }
    }

    fn answer(&mut self, link: &mut Link, header: FromClient, payload: Vec<u8>) {
        if link.cursor.is_none() != matches!(header, FromClient::Hello { .. }) {
            refuse(link, Refusal::Malformed, "say HELLO first, and once");
            link.closing = true;
            return;
        }
        let done = match header {
            FromClient::Hello { from } => self.hello(link, from),
            FromClient::In { seq, .. } => self.input(link, seq, payload),
            FromClient::Trim(through) => self.trim(link, through),
            FromClient::Signal(number) => self.agent.signal(number),
            FromClient::Close => {
                self.agent.close();
                Ok(())
            }
            FromClient::Stderr if link.is_behind() => {
                Err((Refusal::Busy, "read first what was asked for".to_owned()))
            }
            FromClient::Stderr => {
                let end = folder::stderr(Path::new("")).unwrap_or_default();
                link.tell(&FromShim::Stderr { len: end.len() }, &end);
                Ok(())
            }
            FromClient::Bye => self.bye(),
        };
        if let Err((code, reason)) = done {
            refuse(link, code, &reason);
        }
    }

    fn hello(&mut self, link: &mut Link, from: u64) -> Result<(), (Refusal, String)> {
        let (first, next) = (self.spool.first(), self.spool.next());
        if from > next {
            return Err((Refusal::Gap, format!("the next line will be {next}, and HELLO asks for {from}")));
        }
        let greeting = Greeting {
            version: VERSION,
            generation: self.launch.generation,
            pid: self.agent.pid.as_raw_nonzero().get(),
            taken: self.agent.taken(),
            first,
            next,
        };
        link.tell(&FromShim::Shim(greeting), b"");
        link.cursor = Some(Cursor::at(from.max(first)));
        Ok(())
    }

    fn input(&mut self, link: &mut Link, seq: u64, line: Vec<u8>) -> Result<(), (Refusal, String)> {
        if self.agent.accept(seq, line)? {
            link.tell(&FromShim::Took(seq), b"");
        }
        self.feed_to(link);
        Ok(())
    }

    /// Writes to the agent's stdin, and tells the client.
    pub(super) fn feed(&mut self) {
        if self.agent.has_input() {
            let mut link = self.links[0].take();
            match &mut link {
                Some(link) => self.feed_to(link),
                None => drop(self.agent.write()),
            }
            self.links[0] = link;
        }
    }

    fn feed_to(&mut self, link: &mut Link) {
        let before = self.agent.taken();
        let lost = self.agent.write();
        for seq in before + 1..=self.agent.taken() {
            link.tell(&FromShim::Took(seq), b"");
        }
        if lost {
            refuse(link, Refusal::Closed, "the agent has closed its stdin");
        }
    }

    fn trim(&mut self, link: &mut Link, through: u64) -> Result<(), (Refusal, String)> {
        if through >= self.spool.next() {
            return Err((Refusal::Gap, format!("there is no line {through} yet")));
        }
        self.spool.trim(through, link.cursor.as_mut());
        if self.retry.is_some() && self.spool.is_waiting() {
            self.flush();
        }
        Ok(())
    }

    fn bye(&mut self) -> Result<(), (Refusal, String)> {
        if self.ended().is_none() {
            return Err((Refusal::Early, "the agent has not ended".to_owned()));
        }
        if self.spool.first() < self.spool.next() {
            return Err((Refusal::Early, format!("line {} is not trimmed", self.spool.first())));
        }
        self.phase = Phase::Leaves;
        Ok(())
    }
}

/// Whether this process's user alone can connect: the kernel compares users at each connection, by the owner and the mode of
/// the folder and of the socket. Who came while it was open to others isn't taken. `SO_PEERCRED` would say the same, but a
/// host outside of the container has the process id 0 here, for which rustix has no value.
fn is_closed() -> bool {
    let is_own = |path: &str, mode: u32| {
        let found = fs::metadata(path);
        found.is_ok_and(|found| found.uid() == geteuid().as_raw() && found.mode() & 0o777 == mode)
    };
    is_own(".", 0o700) && is_own(SOCKET, 0o600)
}

fn refuse(link: &mut Link, code: Refusal, reason: &str) {
    // As one line, however it came.
    let reason = folder::one_line(reason.as_bytes(), 200);
    link.tell(&FromShim::Refused { code, reason }, b"");
}
