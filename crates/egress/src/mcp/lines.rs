//! Lines, and the memory that they take: no more than what is there of them, and none while nothing comes.

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader},
    time::timeout,
};

use crate::{
    bounds,
    room::{Held, Room},
};

/// The longest message, in bytes: agents and servers could fill the host's memory with one.
const LONGEST: usize = 8 * 1024 * 1024;
/// How often a message is in memory: as it arrives, whole, and as it is sent, with the parts that are written again.
const COPIES: usize = 4;

/// A line, without its end, and the room that it takes.
pub struct Line {
    pub bytes: Vec<u8>,
    pub held: Held,
}

/// What grows, and waits for room before it does.
pub struct Growing {
    pub line: Line,
    room: Room,
    most: usize,
}

impl Growing {
    /// Room for the beginning of a message; a longer one gets twice as much each time. None if there is no room in time.
    pub async fn begin(room: &Room) -> Option<Self> {
        let held = room.take(COPIES * bounds::TEXT).await?;
        Some(Self { line: Line { bytes: Vec::new(), held }, room: room.clone(), most: bounds::TEXT })
    }

    /// How many more bytes there is room for; waits for some. None if that is too long, or there is no room in time.
    async fn space(&mut self) -> Option<usize> {
        if self.line.bytes.len() >= self.most {
            if self.most >= LONGEST {
                return None;
            }
            self.line.held.add(self.room.take(COPIES * self.most).await?);
            self.most *= 2;
        }
        Some(self.most - self.line.bytes.len())
    }

    /// Adds these. None as [`Self::space`].
    pub async fn add(&mut self, mut more: &[u8]) -> Option<()> {
        while !more.is_empty() {
            let count = self.space().await?.min(more.len());
            self.line.bytes.extend_from_slice(&more[..count]);
            more = &more[count..];
        }
        Some(())
    }
}

/// Reads lines.
pub struct Lines<R> {
    from: BufReader<R>,
    room: Room,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub fn of(from: R, room: Room) -> Self {
        Self { from: BufReader::new(from), room }
    }

    /// The first byte of what comes next, which stays there.
    pub async fn peek(&mut self) -> Option<u8> {
        self.from.fill_buf().await.ok()?.first().copied()
    }

    /// The next line. None at the end, and if a line is too long, takes too long, or there is no room for it. Must not be
    /// cancelled.
    pub async fn next(&mut self) -> Option<Line> {
        self.peek().await?;
        timeout(bounds::WAIT, self.rest()).await.ok().flatten()
    }

    async fn rest(&mut self) -> Option<Line> {
        let mut growing = Growing::begin(&self.room).await?;
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
