//! MCP servers that are programs with secrets: the host runs them outside of the agent's sandbox, in one of their own, so their
//! secrets never come near the agent. Each session of a client has a process of its own.

use std::{
    io,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use muster_protocol::plan::McpServer;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    process::{Child, ChildStderr, ChildStdout},
    sync::mpsc,
    time::timeout,
};

use super::{lines::Lines, session::Session};
use crate::bounds;

/// How long a program may take to end, and what it said last to be read: one that does not end would keep its place.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Why a program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// It has no clients left.
    Wanted,
    /// It reads nothing.
    Deaf,
    ByItself,
}

/// Starts a server. It ends when nobody can write to it any more.
pub fn begin(session: &Arc<Session>, server: &McpServer) -> io::Result<mpsc::Sender<Bytes>> {
    let shared = &session.shared;
    let place = shared.programs.begin(Instant::now()).map_err(io::Error::other)?;
    let limits = shared.rules.borrow().as_ref().map(|rules| rules.limits).unwrap_or_default();
    let mut command = shared.outside.program(server, limits)?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    let (input, messages) = mpsc::channel(bounds::QUEUE);
    let (session, name, closing) = (Arc::clone(session), server.name.clone(), shared.closing.clone());
    shared.tasks.spawn(async move {
        let hearing = Arc::clone(&session);
        let mut said = session
            .shared
            .tasks
            .spawn(async move { tokio::join!(hear(&hearing, stdout), complaints(&hearing, stderr)) });
        let ending = tokio::select! {
            ending = write(stdin, messages) => ending,
            _ = &mut said => Ending::ByItself,
            _ = child.wait() => Ending::ByItself,
            () = closing.cancelled() => Ending::Wanted,
        };
        let status = end(child).await;
        if !said.is_finished() {
            let _ = timeout(LAST_WORDS, &mut said).await;
            said.abort();
        }
        tracing::debug!(server = name, ?status, "an MCP server has ended");
        match ending {
            Ending::Wanted => {}
            Ending::Deaf => session.failed("It was ended: it has stopped reading what it is sent."),
            Ending::ByItself => {
                let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                session.failed(&format!("It has ended by itself ({how})."));
            }
        }
        if ending != Ending::Wanted {
            session.ended().await;
        }
        drop(place);
    });
    Ok(input)
}

/// Ends a process: its stdin is closed, and a while later it is killed.
async fn end(mut child: Child) -> io::Result<std::process::ExitStatus> {
    match timeout(LAST_WORDS, child.wait()).await {
        Ok(status) => status,
        Err(_) => {
            child.start_kill()?;
            child.wait().await
        }
    }
}

/// Writes messages, each whole, until none can come, or the program reads no more: it would keep its place after its clients have
/// left.
async fn write(mut stdin: impl AsyncWrite + Unpin, mut messages: mpsc::Receiver<Bytes>) -> Ending {
    while let Some(message) = messages.recv().await {
        let writing = async {
            stdin.write_all(&message).await?;
            stdin.write_all(b"\n").await?;
            stdin.flush().await
        };
        match timeout(bounds::WAIT, writing).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Ending::ByItself,
            Err(_) => return Ending::Deaf,
        }
    }
    Ending::Wanted
}

async fn hear(session: &Session, stdout: ChildStdout) {
    let mut lines = Lines::of(stdout, session.shared.room.clone());
    while let Some(line) = lines.next().await {
        session.heard(line).await;
    }
}

async fn complaints(session: &Session, stderr: ChildStderr) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    while let Ok(1..) = (&mut stderr).take(1024).read_until(b'\n', &mut line).await {
        session.complains(&line);
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_program_that_reads_no_more_is_ended() {
        let (near, far) = tokio::io::duplex(1024);
        let (input, messages) = mpsc::channel(bounds::QUEUE);
        let sends = async {
            let mut sent = 0;
            while input.send(Bytes::from(vec![b'x'; 600])).await.is_ok() {
                sent += 1;
            }
            sent
        };
        let (ending, sent) = tokio::join!(write(near, messages), sends);
        assert_eq!(ending, Ending::Deaf);
        assert!(sent > bounds::QUEUE, "waiting senders go on");
        drop(far);
    }
}
