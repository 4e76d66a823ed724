//! A connection with a minimum pace, so that a client which doesn't read its answer can't hold it forever.
//!
//! While data waits to be written, the peer must accept at least [`LEAST`] bytes per window. Otherwise the
//! write fails, and with it the connection. At the end, anything the client still sends is read and discarded
//! for a moment: otherwise the connection would be reset, and the client might not see the answer that refused
//! it.

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

use crate::base::bounds;

/// The fewest bytes the peer must accept per window: one that reads slowly on purpose must not hold memory.
const LEAST: usize = 64 << 10;

pub struct Paced {
    stream: TcpStream,
    window: Duration,
    /// Runs while data waits to be written.
    clock: Option<Pin<Box<Sleep>>>,
    /// Bytes written in the current window.
    written: usize,
    /// Runs once our half is closed and the client is still sending.
    farewell: Option<Pin<Box<Sleep>>>,
}

impl Paced {
    /// Wraps a connection, with windows of this length.
    #[must_use]
    pub fn new(stream: TcpStream, window: Duration) -> Self {
        Self { stream, window, clock: None, written: 0, farewell: None }
    }

    /// Counts an attempt to write, and fails it if the client is too slow.
    fn check_pace(
        &mut self,
        cx: &mut Context<'_>,
        tried: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match tried {
            Poll::Ready(Ok(written)) => {
                self.written = self.written.saturating_add(written);
                if self.written >= LEAST {
                    self.end_window();
                }
                tried
            }
            Poll::Ready(Err(_)) => tried,
            Poll::Pending => {
                let window = self.window;
                let clock = self.clock.get_or_insert_with(|| Box::pin(sleep(window)));
                ready!(clock.as_mut().poll(cx));
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads too slowly")))
            }
        }
    }

    /// Ends the window. The next one begins when a write next has to wait.
    fn end_window(&mut self) {
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
        self.check_pace(cx, tried)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let tried = Pin::new(&mut self.stream).poll_write_vectored(cx, from);
        self.check_pace(cx, tried)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Called once everything is written.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.end_window();
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
        // A few pieces at a time, so that a client which sends a lot doesn't hog the thread.
        for _ in 0..64 {
            let mut into = ReadBuf::new(&mut space);
            match Pin::new(&mut this.stream).poll_read(cx, &mut into) {
                Poll::Ready(Ok(())) if !into.filled().is_empty() => {
                    let farewell = this.farewell.get_or_insert_with(|| Box::pin(sleep(bounds::BRIEF_WAIT)));
                    // Polled so that the timer wakes this task.
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
