//! A small blocking client for tests and experiments. The host has its own async client on the same [`crate::wire`].

use std::{
    fmt::Display,
    io::{self, BufReader, Read},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use crate::{
    folder::{Address, SOCKET},
    wire::{self, FromClient, FromShim, Greeting, Malformed, read_header},
};

/// A connection to a shim.
#[derive(Debug)]
pub struct Client {
    from: BufReader<UnixStream>,
    to: UnixStream,
    longest: usize,
}

/// A frame of the shim, with its payload.
pub type ReceivedFrame = (FromShim, Vec<u8>);

impl Client {
    /// Connects to the shim of a launch's folder. Lines longer than `longest` are an error.
    pub fn connect(dir: &Path, longest: usize) -> io::Result<Self> {
        let address = Address::for_socket(&dir.join(SOCKET))?;
        let to = UnixStream::connect(address.path())?;
        Ok(Self { from: BufReader::new(to.try_clone()?), to, longest })
    }

    /// Sets the read timeout. A read that times out fails with `WouldBlock`.
    pub fn patience(&self, limit: Duration) -> io::Result<()> {
        self.to.set_read_timeout(Some(limit))
    }

    /// Says hello, and asks for the spool from line `from` on.
    pub fn hello(&mut self, from: u64) -> io::Result<Greeting> {
        self.say(FromClient::Hello { from }, b"")?;
        match self.read()? {
            Some((FromShim::Shim(greeting), _)) => Ok(greeting),
            Some((other, _)) => Err(io::Error::other(other.to_string())),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Sends a line to the agent.
    pub fn line(&mut self, seq: u64, line: &[u8]) -> io::Result<()> {
        self.say(FromClient::In { seq, len: line.len() }, line)
    }

    /// Sends a header and its payload.
    pub fn say(&mut self, header: impl Display, payload: &[u8]) -> io::Result<()> {
        wire::write(&mut self.to, header, payload)
    }

    /// Reads the next frame; `None`: the connection is closed.
    pub fn read(&mut self) -> io::Result<Option<ReceivedFrame>> {
        let Some(line) = read_header(&mut self.from)? else { return Ok(None) };
        let header = FromShim::parse(&line)?;
        if header.payload() > self.longest {
            return Err(Malformed(line).into());
        }
        let mut payload = vec![0; header.payload()];
        self.from.read_exact(&mut payload)?;
        Ok(Some((header, payload)))
    }
}
