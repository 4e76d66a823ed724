//! Lines of JSON for a library, checked beforehand (`muster_json`).

use std::{
    io, mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, ReadBuf};

/// Passes complete lines on. A line that fails the check is an error, which ends the connection. An overlong line is
/// passed on unchecked: its reader drops it.
pub struct CheckedLines<R> {
    from: R,
    longest: usize,
    /// Received bytes, with the number of checked and of passed ones.
    read: Vec<u8>,
    checked: usize,
    handed: usize,
    /// Whether the current line is overlong.
    is_long: bool,
}

impl<R> CheckedLines<R> {
    /// `longest`: the reader drops longer lines.
    pub fn new(from: R, longest: usize) -> Self {
        Self { from, longest, read: Vec::new(), checked: 0, handed: 0, is_long: false }
    }

    /// Checks complete lines, or all at the end. The first `searched` bytes contain no newline.
    fn check(&mut self, mut searched: usize, is_end: bool) -> io::Result<()> {
        while let Some(rest) = self.read.get(self.checked..).filter(|rest| !rest.is_empty()) {
            let mut bytes = rest.iter().enumerate().skip(mem::take(&mut searched));
            let end = bytes.find(|(_, byte)| **byte == b'\n');
            let length = end.map_or(rest.len(), |(at, _)| at + 1);
            self.is_long |= length > self.longest + 2;
            if end.is_none() && !is_end && !self.is_long {
                break;
            }
            if !self.is_long {
                muster_json::check(rest.get(..length).unwrap_or(rest)).map_err(io::Error::other)?;
            }
            self.checked += length;
            self.is_long &= end.is_none();
        }
        Ok(())
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for CheckedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.handed == this.checked {
            this.read.drain(..this.handed);
            (this.checked, this.handed) = (0, 0);
            let mut chunk = [0; 4096];
            let mut chunk = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut this.from).poll_read(cx, &mut chunk))?;
            let is_end = chunk.filled().is_empty();
            let searched = this.read.len();
            this.read.extend_from_slice(chunk.filled());
            this.check(searched, is_end)?;
            if is_end && this.checked == 0 {
                return Poll::Ready(Ok(()));
            }
        }
        let ready = this.read.get(this.handed..this.checked).unwrap_or_default();
        let now = ready.get(..to.remaining()).unwrap_or(ready);
        to.put_slice(now);
        this.handed += now.len();
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    async fn read(text: &str) -> io::Result<String> {
        let mut read = String::new();
        let from = in_pieces(text);
        CheckedLines::new(from, 100).read_to_string(&mut read).await?;
        Ok(read)
    }

    fn in_pieces(text: &str) -> impl AsyncRead + Unpin + use<'_> {
        text.as_bytes()
            .chunks(7)
            .fold(Box::new(tokio::io::empty()) as Box<dyn AsyncRead + Unpin + '_>, |before, chunk| {
                Box::new(before.chain(chunk))
            })
    }

    #[tokio::test]
    async fn only_lines_that_may_be_read_are_handed_on() {
        for text in ["", "{}", "{\"a\": 1}\n[2]\n", "a\n\nb", &"x\n".repeat(500), &"x".repeat(5000)] {
            assert_eq!(read(text).await.unwrap(), text);
        }
        for text in [
            "{}\n{\"a\": [{\"$serde_json::private::RawValue\": \"1\"}]}\n",
            "{\"\\u0024serde_json::private::RawValue\":1}",
            // An unclosed quote hides nothing of the next line.
            "\"\n{\"$serde_json::private::RawValue\":1}\n",
        ] {
            assert!(read(text).await.is_err(), "{text:.60}");
        }
    }
}
