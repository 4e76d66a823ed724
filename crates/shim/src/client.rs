//! A small blocking client, for tests and for trying things out. The host has an async one of its own, on the same
//! [`crate::wire`].

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

/// What the shim said, with the bytes that followed.
pub type Said = (FromShim, Vec<u8>);

impl Client {
    /// Connects to the shim of a launch's folder. Lines longer than `longest` are an error.
    pub fn connect(dir: &Path, longest: usize) -> io::Result<Self> {
        let address = Address::of(&dir.join(SOCKET))?;
        let to = UnixStream::connect(address.path())?;
        Ok(Self { from: BufReader::new(to.try_clone()?), to, longest })
    }

    /// Gives up reading after this time, with an error of the kind `WouldBlock`.
    pub fn patience(&self, limit: Duration) -> io::Result<()> {
        self.to.set_read_timeout(Some(limit))
    }

    /// Says hello: the spool from `from` on is wanted.
    pub fn hello(&mut self, from: u64) -> io::Result<Greeting> {
        self.say(FromClient::Hello { from }, b"")?;
        match self.read()? {
            Some((FromShim::Shim(greeting), _)) => Ok(greeting),
            Some((other, _)) => Err(io::Error::other(other.to_string())),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Sends a line for the agent.
    pub fn line(&mut self, seq: u64, line: &[u8]) -> io::Result<()> {
        self.say(FromClient::In { seq, len: line.len() }, line)
    }

    /// Sends a header and what follows it.
    pub fn say(&mut self, header: impl Display, payload: &[u8]) -> io::Result<()> {
        wire::write(&mut self.to, header, payload)
    }

    /// Reads what the shim says next. `None`: it has closed the connection.
    pub fn read(&mut self) -> io::Result<Option<Said>> {
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
