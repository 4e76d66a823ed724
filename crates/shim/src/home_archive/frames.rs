//! A byte stream with an explicit end: a truncated stream is never taken for a complete one.
//!
//! A frame is a big-endian length of four bytes and its data. Length 0 is the end; [`FAILED`] is a failure, followed by
//! the reason.

use std::io::{self, Read, Write};

use crate::bounds::PIECE;

/// Length of a failure frame.
const FAILED: u32 = u32::MAX;

/// Writes frames.
pub struct Sender<W>(W);

impl<W: Write> Sender<W> {
    /// A sender on this stream.
    pub fn new(to: W) -> Self {
        Self(to)
    }

    /// Ends the stream, or reports a failure.
    pub fn end(mut self, done: Result<(), String>) -> io::Result<()> {
        match done {
            Ok(()) => self.0.write_all(&0_u32.to_be_bytes()),
            Err(why) => self.0.write_all(&[&FAILED.to_be_bytes()[..], why.as_bytes()].concat()),
        }
    }
}

impl<W: Write> Write for Sender<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let bytes = &bytes[..bytes.len().min(PIECE)];
        self.0.write_all(&(bytes.len() as u32).to_be_bytes())?;
        self.0.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Reads frames. A stream without an end frame is an error.
pub struct Receiver<R> {
    from: R,
    left: u32,
    is_over: bool,
    has_failed: bool,
}

impl<R: Read> Receiver<R> {
    /// A receiver on this stream.
    pub fn new(from: R) -> Self {
        Self { from, left: 0, is_over: false, has_failed: false }
    }

    /// Whether the peer reported a failure. The read error contains its reason.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Reads the next frame's length.
    fn begin(&mut self) -> io::Result<()> {
        let mut length = [0; 4];
        self.from.read_exact(&mut length)?;
        match u32::from_be_bytes(length) {
            0 => self.is_over = true,
            FAILED => {
                self.has_failed = true;
                let mut why = Vec::new();
                // The peer may leave data unread, and its socket then closes with an error.
                let _ = self.from.by_ref().take(PIECE as u64).read_to_end(&mut why);
                return Err(io::Error::other(String::from_utf8_lossy(&why).into_owned()));
            }
            length => self.left = length,
        }
        Ok(())
    }
}

impl<R: Read> Read for Receiver<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !self.is_over {
            self.begin()?;
        }
        if self.is_over || buffer.is_empty() {
            return Ok(0);
        }
        let most = buffer.len().min(self.left as usize);
        match self.from.read(&mut buffer[..most])? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.left -= read as u32;
                Ok(read)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn sent(done: Result<(), String>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut sender = Sender::new(&mut bytes);
        sender.write_all(b"a home").unwrap();
        sender.write_all(&vec![7; PIECE + 1]).unwrap();
        sender.end(done).unwrap();
        bytes
    }

    #[test]
    fn a_truncated_stream_is_an_error() {
        let whole = sent(Ok(()));
        let mut read = Vec::new();
        Receiver::new(&whole[..]).read_to_end(&mut read).unwrap();
        assert_eq!(read, [b"a home".to_vec(), vec![7; PIECE + 1]].concat());
        for cut in (0..20).chain(whole.len() - 20..whole.len()) {
            let mut receiver = Receiver::new(&whole[..cut]);
            let error = receiver.read_to_end(&mut Vec::new()).unwrap_err();
            assert_eq!((error.kind(), receiver.has_failed()), (io::ErrorKind::UnexpectedEof, false), "{cut}");
        }
    }

    #[test]
    fn a_failure_carries_its_reason() {
        let failed = sent(Err("it is closed".to_owned()));
        let mut receiver = Receiver::new(&failed[..]);
        assert_eq!(receiver.read_to_end(&mut Vec::new()).unwrap_err().to_string(), "it is closed");
        assert!(receiver.has_failed());
    }

    #[test]
    fn a_failure_arrives_despite_unread_data() {
        let (here, there) = UnixStream::pair().unwrap();
        (&here).write_all(b"a home").unwrap();
        Sender::new(&there).end(Err("it is full".to_owned())).unwrap();
        drop(there);
        let mut receiver = Receiver::new(&here);
        assert_eq!(receiver.read_to_end(&mut Vec::new()).unwrap_err().to_string(), "it is full");
        assert!(receiver.has_failed());
    }
}
