//! A connection that has to keep a pace: a client that does not take what it has asked for does not hold it for ever.
//!
//! While something waits to be written, the other end has to take [`LEAST`] bytes in each window of time; else writing fails,
//! and the connection with it. At the end, what the client still sends is read for a moment and thrown away: it would be reset
//! otherwise, and might not see the answer that refused it.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};

/// The fewest bytes that are taken in a window.
const LEAST: usize = 64 << 10;
/// For how long what a client still sends is thrown away.
const FAREWELL: Duration = Duration::from_secs(2);

/// The connection.
pub struct Paced {
    stream: TcpStream,
    window: Duration,
    /// Runs while something waits to be written.
    clock: Option<Pin<Box<Sleep>>>,
    /// What was written in this window.
    written: usize,
    /// Runs once our half is closed and the client is found to be sending.
    farewell: Option<Pin<Box<Sleep>>>,
}

impl Paced {
    /// The connection with windows of this length.
    #[must_use]
    pub fn new(stream: TcpStream, window: Duration) -> Self {
        Self { stream, window, clock: None, written: 0, farewell: None }
    }

    /// Judges one attempt to write.
    fn judge(&mut self, cx: &mut Context<'_>, tried: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match tried {
            Poll::Ready(Ok(written)) => {
                self.written = self.written.saturating_add(written);
                if self.written >= LEAST {
                    self.begin_again();
                }
                tried
            }
            Poll::Ready(Err(_)) => tried,
            Poll::Pending => {
                let window = self.window;
                let clock = self.clock.get_or_insert_with(|| Box::pin(sleep(window)));
                ready!(clock.as_mut().poll(cx));
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes too little")))
            }
        }
    }

    /// A window begins when next something has to wait.
    fn begin_again(&mut self) {
        self.clock = None;
        self.written = 0;
    }
}

impl AsyncRead for Paced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for Paced {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let tried = Pin::new(&mut self.stream).poll_write(cx, from);
        self.judge(cx, tried)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let tried = Pin::new(&mut self.stream).poll_write_vectored(cx, from);
        self.judge(cx, tried)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Asked for when nothing is left to write.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.begin_again();
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        match &mut this.farewell {
            None => ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?,
            Some(farewell) => {
                if farewell.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Ok(()));
                }
            }
        }
        let mut space = [0_u8; 4096];
        // A few pieces at a time: who sends a lot is not to keep the thread.
        for _ in 0..64 {
            let mut into = ReadBuf::new(&mut space);
            match Pin::new(&mut this.stream).poll_read(cx, &mut into) {
                Poll::Ready(Ok(())) if !into.filled().is_empty() => {
                    let farewell = this.farewell.get_or_insert_with(|| Box::pin(sleep(FAREWELL)));
                    // So that it wakes this task.
                    let _ = farewell.as_mut().poll(cx);
                }
                Poll::Pending if this.farewell.is_some() => return Poll::Pending,
                // The client has closed too, is gone, or sends nothing.
                _ => return Poll::Ready(Ok(())),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
