//! Requests of clients.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use rustix::process::geteuid;

use super::{Phase, Shim, link::Link};
use crate::{
    folder::{self, SOCKET},
    spool::Cursor,
    wire::{FromClient, FromShim, Greeting, Malformed, Refusal, VERSION},
};

impl Shim {
    /// Accepts connections of the shim's own user. A new one replaces another that has not said hello.
    pub(super) fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            if !is_private() {
                continue;
            }
            self.links[1] = Link::new(stream).ok();
        }
    }

    /// Reads and handles a client's requests.
    pub(super) fn receive(&mut self, index: usize, buffer: &mut [u8]) {
        // Taken out, so that requests can change the rest of the state.
        let Some(mut link) = self.links[index].take() else { return };
        if link.may_ask() && !link.receive(buffer) {
            return;
        }
        // Handles everything received: the client may have sent its last request.
        while !link.closing {
            match link.next_request(self.launch.line_bytes) {
                Ok(Some((header, payload))) => self.handle_request(&mut link, header, payload),
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

    /// Makes the newest client that says hello the active one.
    fn take_over(&mut self, link: Link) {
        if let Some(mut old) = self.links[0].replace(link) {
            refuse(&mut old, Refusal::Superseded, "another client has taken over");
            old.closing = true;
            // Sends only what the socket takes without blocking.
            drop(old.send(&self.spool, &mut []));
        }
    }

    fn handle_request(&mut self, link: &mut Link, header: FromClient, payload: Vec<u8>) {
        if link.cursor.is_none() != matches!(header, FromClient::Hello { .. }) {
            refuse(link, Refusal::Malformed, "say HELLO first, and once");
            link.closing = true;
            return;
        }
        let done = match header {
            FromClient::Hello { from } => self.handle_hello(link, from),
            FromClient::In { seq, .. } => self.handle_input(link, seq, payload),
            FromClient::Trim(through) => self.handle_trim(link, through),
            FromClient::Signal(number) => self.agent.signal(number),
            FromClient::Close => {
                self.agent.close();
                Ok(())
            }
            FromClient::Stderr if link.is_behind() => {
                Err((Refusal::Busy, "read the pending responses first".to_owned()))
            }
            FromClient::Stderr => {
                let end = folder::stderr(Path::new("")).unwrap_or_default();
                link.queue(&FromShim::Stderr { len: end.len() }, &end);
                Ok(())
            }
            FromClient::Bye => self.handle_bye(),
        };
        if let Err((code, reason)) = done {
            refuse(link, code, &reason);
        }
    }

    fn handle_hello(&mut self, link: &mut Link, from: u64) -> Result<(), (Refusal, String)> {
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
        link.queue(&FromShim::Shim(greeting), b"");
        link.cursor = Some(Cursor::at(from.max(first)));
        Ok(())
    }

    fn handle_input(&mut self, link: &mut Link, seq: u64, line: Vec<u8>) -> Result<(), (Refusal, String)> {
        if self.agent.accept(seq, line)? {
            link.queue(&FromShim::Took(seq), b"");
        }
        self.feed_and_report(link);
        Ok(())
    }

    /// Writes to the agent's stdin, and reports to the client.
    pub(super) fn feed_agent(&mut self) {
        if self.agent.has_input() {
            let mut link = self.links[0].take();
            match &mut link {
                Some(link) => self.feed_and_report(link),
                None => drop(self.agent.write()),
            }
            self.links[0] = link;
        }
    }

    fn feed_and_report(&mut self, link: &mut Link) {
        let before = self.agent.taken();
        let lost = self.agent.write();
        for seq in before + 1..=self.agent.taken() {
            link.queue(&FromShim::Took(seq), b"");
        }
        if lost {
            refuse(link, Refusal::Closed, "the agent has closed its stdin");
        }
    }

    fn handle_trim(&mut self, link: &mut Link, through: u64) -> Result<(), (Refusal, String)> {
        if through >= self.spool.next() {
            return Err((Refusal::Gap, format!("line {through} does not exist yet")));
        }
        self.spool.trim(through, link.cursor.as_mut());
        if self.retry.is_some() && self.spool.is_waiting() {
            self.flush();
        }
        Ok(())
    }

    fn handle_bye(&mut self) -> Result<(), (Refusal, String)> {
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

/// Whether only the shim's own user can connect: the kernel checks owner and mode of folder and socket at each
/// connection. Connections from a time with open permissions are refused. `SO_PEERCRED` would not do: a host outside of
/// the container has process id 0 here, which rustix can't represent.
fn is_private() -> bool {
    let is_own = |path: &str, mode: u32| {
        let found = fs::metadata(path);
        found.is_ok_and(|found| found.uid() == geteuid().as_raw() && found.mode() & 0o777 == mode)
    };
    is_own(".", 0o700) && is_own(SOCKET, 0o600)
}

fn refuse(link: &mut Link, code: Refusal, reason: &str) {
    // In a single line.
    let reason = folder::one_line(reason.as_bytes(), 200);
    link.queue(&FromShim::Refused { code, reason }, b"");
}
