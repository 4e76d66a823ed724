//! Lines on standard input and output.
//!
//! Both are bounded: a line that is too long is dropped, and the writer waits until the reader at the other end keeps
//! up. The protocol's crate queues what it sends without a bound, so updates, of which a turn may have any number, go
//! through [`Wire`] directly. The order is kept: a turn doesn't ask or answer before its updates are in the queue.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    pin::Pin,
    thread,
};

use futures::{Sink, Stream};
use tokio::sync::{mpsc, oneshot};

use crate::say;

enum Piece {
    Bytes(Vec<u8>),
    Flushed(oneshot::Sender<()>),
}

/// Standard output.
#[derive(Clone)]
pub struct Wire(mpsc::Sender<Piece>);

impl Wire {
    /// Standard output, written by a thread of its own.
    pub fn stdout() -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel(16);
        // When the reader at the other end is gone, so is the channel, and the next line is refused.
        thread::Builder::new().name("stdout".to_owned()).spawn(move || drop(write_all(receiver)))?;
        Ok(Self(sender))
    }

    /// Writes bytes as they are, after everything before them.
    pub async fn raw(&self, bytes: Vec<u8>) -> io::Result<()> {
        self.0.send(Piece::Bytes(bytes)).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Writes a line.
    pub async fn line(&self, line: String) -> io::Result<()> {
        let mut bytes = line.into_bytes();
        bytes.push(b'\n');
        self.raw(bytes).await
    }

    /// Waits until everything before has left the process.
    pub async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.0.send(Piece::Flushed(done)).await.is_ok() {
            // On an error there is no reader left.
            let _ = flushed.await;
        }
    }

    /// For the protocol's crate.
    pub fn sink(&self) -> Pin<Box<dyn Sink<String, Error = io::Error> + Send>> {
        Box::pin(futures::sink::unfold(self.clone(), async |wire: Self, line: String| {
            wire.line(line).await?;
            Ok(wire)
        }))
    }
}

fn write_all(mut pieces: mpsc::Receiver<Piece>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    while let Some(piece) = pieces.blocking_recv() {
        match piece {
            Piece::Bytes(bytes) => {
                out.write_all(&bytes)?;
                out.flush()?;
            }
            // The waiting caller may have given up.
            Piece::Flushed(done) => drop(done.send(())),
        }
    }
    Ok(())
}

/// The lines of standard input, read by a thread of its own.
pub fn stdin() -> io::Result<Pin<Box<dyn Stream<Item = io::Result<String>> + Send>>> {
    let (sender, mut receiver) = mpsc::channel(16);
    thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        let mut input = BufReader::new(io::stdin());
        while let Some(line) = next_line(&mut input, 4 * 1024 * 1024).transpose() {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    })?;
    Ok(Box::pin(futures::stream::poll_fn(move |cx| receiver.poll_recv(cx))))
}

/// The next line that is not too long, without its end. What isn't UTF-8 is replaced: it can't be part of a valid
/// message anyway.
fn next_line(input: &mut impl BufRead, longest: usize) -> io::Result<Option<String>> {
    loop {
        let mut line = Vec::new();
        let read = input.take(longest as u64 + 1).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(None);
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if read > longest {
            say::complain(format_args!("dropped a line of more than {longest} bytes"));
            input.skip_until(b'\n')?;
            continue;
        }
        return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_dropped_and_the_next_one_is_read() {
        let mut input = &b"12345\n123456\n1234567890123\nok\nend"[..];
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut input, 5).unwrap() {
            lines.push(line);
        }
        assert_eq!(lines, ["12345", "ok", "end"]);
    }
}
