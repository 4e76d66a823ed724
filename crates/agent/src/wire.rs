//! Lines on standard input and output.
//!
//! Both are bounded: an overlong line is dropped, and the writer waits for a slow reader. The ACP crate's send queue is
//! unbounded, so a turn's updates go through [`Wire`] directly. The order is preserved: a turn sends requests and
//! responses only after its updates are in the queue.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    pin::Pin,
    thread,
};

use futures::{Sink, Stream};
use tokio::sync::{mpsc, oneshot};

use crate::output;

enum Output {
    Bytes(Vec<u8>),
    Flushed(oneshot::Sender<()>),
}

#[derive(Clone)]
pub struct Wire(mpsc::Sender<Output>);

impl Wire {
    /// Starts the writer thread.
    pub fn stdout() -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel(16);
        // Once the reader is gone, the channel closes and the next write fails.
        thread::Builder::new().name("stdout".to_owned()).spawn(move || drop(write_all(receiver)))?;
        Ok(Self(sender))
    }

    /// Writes bytes unchanged.
    pub async fn write_bytes(&self, bytes: Vec<u8>) -> io::Result<()> {
        self.0.send(Output::Bytes(bytes)).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    pub async fn write_line(&self, line: String) -> io::Result<()> {
        let mut bytes = line.into_bytes();
        bytes.push(b'\n');
        self.write_bytes(bytes).await
    }

    /// Waits until everything queued is written.
    pub async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.0.send(Output::Flushed(done)).await.is_ok() {
            // Fails only without a reader.
            let _ = flushed.await;
        }
    }

    /// For the ACP crate.
    pub fn sink(&self) -> Pin<Box<dyn Sink<String, Error = io::Error> + Send>> {
        Box::pin(futures::sink::unfold(self.clone(), async |wire: Self, line: String| {
            wire.write_line(line).await?;
            Ok(wire)
        }))
    }
}

fn write_all(mut outputs: mpsc::Receiver<Output>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    while let Some(output) = outputs.blocking_recv() {
        match output {
            Output::Bytes(bytes) => {
                out.write_all(&bytes)?;
                out.flush()?;
            }
            // The caller may have stopped waiting.
            Output::Flushed(done) => drop(done.send(())),
        }
    }
    Ok(())
}

/// The lines of standard input, read by a thread.
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

/// The next line within the limit, without its line end. Invalid UTF-8 is replaced: no valid message contains it.
fn next_line(input: &mut impl BufRead, max: usize) -> io::Result<Option<String>> {
    loop {
        let mut line = Vec::new();
        let read = input.take(max as u64 + 1).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(None);
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if read > max {
            output::report_error(format_args!("dropped a line of more than {max} bytes"));
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
    fn an_overlong_line_is_skipped() {
        let mut input = &b"12345\n123456\n1234567890123\nok\nend"[..];
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut input, 5).unwrap() {
            lines.push(line);
        }
        assert_eq!(lines, ["12345", "ok", "end"]);
    }
}
