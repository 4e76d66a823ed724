//! Lines and their memory: never more than they need, and none while idle.

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader},
    time::timeout,
};

use crate::{
    bounds,
    memory::{MemoryBudget, MemoryReservation},
};

/// The longest message in bytes: an agent or a server could fill the host's memory with one.
const LONGEST: usize = 8 * 1024 * 1024;
/// Copies of a message in memory: as received, complete, and as sent, with the rewritten parts.
const COPIES: usize = 4;

/// A line without its newline, and its memory.
pub struct MessageLine {
    pub bytes: Vec<u8>,
    pub held: MemoryReservation,
}

/// A growing line. It reserves memory before it grows.
pub struct GrowingLine {
    pub line: MessageLine,
    memory: MemoryBudget,
    most: usize,
}

impl GrowingLine {
    /// Reserves memory for a short message; a longer one doubles it. `None` on a timeout.
    pub async fn begin(memory: &MemoryBudget) -> Option<Self> {
        let held = memory.take(COPIES * bounds::TEXT).await?;
        Some(Self {
            line: MessageLine { bytes: Vec::new(), held },
            memory: memory.clone(),
            most: bounds::TEXT,
        })
    }

    /// The free bytes; waits for more memory. `None` if the line is too long, or on a timeout.
    async fn space(&mut self) -> Option<usize> {
        if self.line.bytes.len() >= self.most {
            if self.most >= LONGEST {
                return None;
            }
            self.line.held.add(self.memory.take(COPIES * self.most).await?);
            self.most *= 2;
        }
        Some(self.most - self.line.bytes.len())
    }

    /// Appends bytes. `None` as in [`Self::space`].
    pub async fn add(&mut self, mut more: &[u8]) -> Option<()> {
        while !more.is_empty() {
            let count = self.space().await?.min(more.len());
            self.line.bytes.extend_from_slice(&more[..count]);
            more = &more[count..];
        }
        Some(())
    }
}

pub struct Lines<R> {
    from: BufReader<R>,
    memory: MemoryBudget,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub fn new(from: R, memory: MemoryBudget) -> Self {
        Self { from: BufReader::new(from), memory }
    }

    /// Peeks at the next byte.
    pub async fn peek(&mut self) -> Option<u8> {
        self.from.fill_buf().await.ok()?.first().copied()
    }

    /// The next line. `None` at the end, or if a line is too long, too slow, or out of memory budget. Not cancel-safe.
    pub async fn next(&mut self) -> Option<MessageLine> {
        self.peek().await?;
        timeout(bounds::WAIT, self.rest()).await.ok().flatten()
    }

    async fn rest(&mut self) -> Option<MessageLine> {
        let mut growing = GrowingLine::begin(&self.memory).await?;
        loop {
            let space = growing.space().await? as u64;
            let bytes = &mut growing.line.bytes;
            let count = (&mut self.from).take(space).read_until(b'\n', bytes).await.ok()?;
            if bytes.ends_with(b"\n") {
                bytes.pop();
                let len = bytes.len();
                growing.line.held.shrink(COPIES * len);
                return Some(growing.line);
            }
            if count == 0 {
                return None;
            }
        }
    }
}
