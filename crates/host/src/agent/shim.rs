//! The host's end of a shim's socket. One task reads, one writes; the agent's task gets frames, in order and bounded.

use std::{io, mem, path::Path, sync::Arc};

use muster_shim::{
    folder::{Address, SOCKET},
    wire::{Ended, FromClient, FromShim, Greeting, LONGEST_HEADER, Malformed, Reading, Refusal},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinSet,
};

use crate::bounds::{ANSWER_WAIT, BATCH};

/// Buffered bytes of lines: an agent may write faster than the journal. Beyond this the shim isn't read, and its spool
/// grows.
const BUDGET: usize = 8 << 20;

/// A frame after the greeting.
#[derive(Debug)]
pub enum Frame {
    /// A line of the agent.
    Out {
        seq: u64,
        line: Vec<u8>,
        /// Counts against the buffer until dropped.
        _held: OwnedSemaphorePermit,
    },
    /// The agent has the lines up to this one.
    Took(u64),
    Refused(Refusal, String),
    /// State of reading the agent's lines.
    Spool(Reading),
    /// The agent has exited, and all its lines were sent.
    Exit(Ended),
}

/// Progress of the lines for an agent.
#[derive(Debug, Default)]
pub struct Sending {
    /// The last line sent on this connection.
    pub sent: u64,
    /// Whether sending waits until the agent has read a line.
    pub is_blocked: bool,
}

impl Sending {
    /// Records that the agent has the lines up to this one. Later ones are sent again if any was refused.
    pub fn mark_taken(&mut self, seq: u64) {
        if mem::take(&mut self.is_blocked) {
            self.sent = seq;
        }
    }

    /// Handles a refused line. Returns whether that is expected.
    ///
    /// BUSY means that lines are pending, so TOOK follows once the agent has read one. GAP follows from an earlier
    /// refused line, which is sent again anyway. It must not block: it may arrive after the last TOOK.
    pub fn refused(&mut self, code: Refusal) -> bool {
        self.is_blocked |= code == Refusal::Busy;
        matches!(code, Refusal::Busy | Refusal::Gap)
    }
}

/// A connection to a shim. It closes on drop; the shim stays.
#[derive(Debug)]
pub struct Connection {
    pub greeting: Greeting,
    pub sending: Sending,
    frames: mpsc::Receiver<Frame>,
    out: mpsc::UnboundedSender<(FromClient, Vec<u8>)>,
    _tasks: JoinSet<()>,
}

impl Connection {
    /// Connects to the shim of a launch, and requests the lines from `from` on.
    pub async fn open(dir: &Path, from: u64, longest: usize) -> io::Result<Self> {
        let connected = tokio::time::timeout(ANSWER_WAIT, connect(dir, from));
        let (mut reader, writer, greeting) = connected
            .await
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "the shim doesn't answer"))??;
        let (to_task, frames) = mpsc::channel(BATCH);
        let (out, mut to_shim) = mpsc::unbounded_channel::<(FromClient, Vec<u8>)>();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let budget = Arc::new(Semaphore::new(BUDGET));
            while let Ok(Some(frame)) = read(&mut reader, longest, &budget).await {
                if to_task.send(frame).await.is_err() {
                    return;
                }
            }
        });
        tasks.spawn(async move {
            let mut writer = writer;
            while let Some((header, payload)) = to_shim.recv().await {
                if write(&mut writer, header, &payload).await.is_err() {
                    return;
                }
            }
        });
        let sending = Sending { sent: greeting.taken, is_blocked: false };
        Ok(Self { greeting, sending, frames, out, _tasks: tasks })
    }

    /// The next frame; `None` if the shim is gone.
    pub async fn next(&mut self) -> Option<Frame> {
        self.frames.recv().await
    }

    /// The next frame, if already received.
    pub fn ready(&mut self) -> Option<Frame> {
        self.frames.try_recv().ok()
    }

    /// Sends a header. A lost one is repeated after the next greeting, if it matters.
    pub fn send_header(&self, header: FromClient) {
        let _ = self.out.send((header, Vec::new()));
    }

    /// Sends a line for the agent.
    pub fn line(&self, seq: u64, line: String) {
        let line = line.into_bytes();
        let _ = self.out.send((FromClient::In { seq, len: line.len() }, line));
    }
}

async fn connect(dir: &Path, from: u64) -> io::Result<(BufReader<OwnedReadHalf>, OwnedWriteHalf, Greeting)> {
    let address = Address::for_socket(&dir.join(SOCKET))?;
    let (reader, mut writer) = UnixStream::connect(address.path()).await?.into_split();
    let mut reader = BufReader::new(reader);
    write(&mut writer, FromClient::Hello { from }, b"").await?;
    match header(&mut reader).await? {
        Some(FromShim::Shim(greeting)) => Ok((reader, writer, greeting)),
        Some(other) => Err(io::Error::other(other.to_string())),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

async fn write(to: &mut OwnedWriteHalf, header: FromClient, payload: &[u8]) -> io::Result<()> {
    let mut bytes = format!("{header}\n").into_bytes();
    bytes.extend_from_slice(payload);
    to.write_all(&bytes).await
}

async fn header(from: &mut BufReader<OwnedReadHalf>) -> io::Result<Option<FromShim>> {
    let mut line = Vec::new();
    from.take(LONGEST_HEADER as u64).read_until(b'\n', &mut line).await?;
    match line.pop() {
        None => Ok(None),
        Some(b'\n') => {
            let line = String::from_utf8(line).map_err(|error| Malformed(error.to_string()))?;
            Ok(Some(FromShim::parse(&line)?))
        }
        Some(_) => Err(Malformed("a header without an end".to_owned()).into()),
    }
}

async fn read(
    from: &mut BufReader<OwnedReadHalf>,
    longest: usize,
    budget: &Arc<Semaphore>,
) -> io::Result<Option<Frame>> {
    let Some(header) = header(from).await? else { return Ok(None) };
    let len = header.payload();
    if len > longest.min(BUDGET) {
        return Err(Malformed(header.to_string()).into());
    }
    let permits = Arc::clone(budget).acquire_many_owned(len as u32).await;
    let held = permits.map_err(io::Error::other)?;
    let mut payload = vec![0; len];
    from.read_exact(&mut payload).await?;
    Ok(Some(match header {
        FromShim::Out { seq, .. } => Frame::Out { seq, line: payload, _held: held },
        FromShim::Took(seq) => Frame::Took(seq),
        FromShim::Refused { code, reason } => Frame::Refused(code, reason),
        FromShim::Spool(reading) => Frame::Spool(reading),
        FromShim::Exit(ended) => Frame::Exit(ended),
        FromShim::Shim(_) | FromShim::Stderr { .. } => return Err(Malformed(header.to_string()).into()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_after_the_last_line_that_the_agent_took_blocks_nothing() {
        // Line 4 is so long that the shim refuses 5. The agent reads 4 before 6 arrives, which was already under way.
        let mut sending = Sending { sent: 6, is_blocked: false };
        assert!(sending.refused(Refusal::Busy));
        assert!(sending.is_blocked);
        sending.mark_taken(4);
        assert!(sending.refused(Refusal::Gap));
        assert!(!sending.is_blocked, "nothing waits in the shim, so no TOOK would come");
        assert_eq!(sending.sent, 4, "5 and 6 are sent again");
    }

    #[test]
    fn lines_wait_from_a_refusal_to_the_next_that_the_agent_takes() {
        let mut sending = Sending { sent: 9, is_blocked: false };
        sending.mark_taken(3);
        assert_eq!(sending.sent, 9, "none was refused");
        assert!(sending.refused(Refusal::Busy));
        assert!(sending.refused(Refusal::Gap));
        assert!(sending.is_blocked);
        sending.mark_taken(4);
        assert_eq!((sending.sent, sending.is_blocked), (4, false));
        assert!(!sending.refused(Refusal::Closed));
        assert!(!sending.is_blocked);
    }
}
