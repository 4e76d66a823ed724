//! MCP servers that are programs with secrets: the host runs them outside of the agent's sandbox, in one of their own, so their
//! secrets never come near the agent. Each session of a client has a process of its own.

use std::{io, process::Stdio, sync::Arc, time::Duration};

use bytes::Bytes;
use muster_protocol::plan::McpServer;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    sync::mpsc,
    time::timeout,
};

use super::{lines::Lines, session::Session};

/// How long a program may take to end, and what it said last to be read.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How much of its standard error is read at once, in bytes.
const LONGEST_COMPLAINT: u64 = 1024;
/// How many messages wait for a program.
const WAITING: usize = 16;

/// Starts a server. It ends when nobody can write to it any more.
pub fn begin(session: &Arc<Session>, server: &McpServer) -> io::Result<mpsc::Sender<Bytes>> {
    let shared = &session.shared;
    let place = Arc::clone(&shared.programs).try_acquire_owned();
    let place = place.map_err(|_| io::Error::other("too many programs of this agent's servers run"))?;
    let mut command = shared.outside.program(server)?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    let (input, messages) = mpsc::channel(WAITING);
    let (session, name, closing) = (Arc::clone(session), server.name.clone(), shared.closing.clone());
    shared.tasks.spawn(async move {
        let hearing = Arc::clone(&session);
        let mut said = session
            .shared
            .tasks
            .spawn(async move { tokio::join!(hear(&hearing, stdout), complaints(&hearing, stderr)) });
        let was_ended = tokio::select! {
            is_over = write(stdin, messages) => is_over,
            _ = &mut said => false,
            _ = child.wait() => false,
            () = closing.cancelled() => true,
        };
        let status = end(child).await;
        if !said.is_finished() {
            let _ = timeout(LAST_WORDS, &mut said).await;
            said.abort();
        }
        tracing::debug!(server = name, ?status, "an MCP server has ended");
        if !was_ended {
            let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
            session.failed(&format!("It has ended by itself ({how})."));
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

/// Writes messages, each whole, until none can come. False if the program reads no more.
async fn write(mut stdin: ChildStdin, mut messages: mpsc::Receiver<Bytes>) -> bool {
    while let Some(message) = messages.recv().await {
        for part in [&message[..], b"\n"] {
            if stdin.write_all(part).await.is_err() {
                return false;
            }
        }
        if stdin.flush().await.is_err() {
            return false;
        }
    }
    true
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
    while let Ok(1..) = (&mut stderr).take(LONGEST_COMPLAINT).read_until(b'\n', &mut line).await {
        session.complains(&line);
        line.clear();
    }
}
