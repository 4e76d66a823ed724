//! MCP servers that are programs with secrets. The host runs them outside of the agent's sandbox, in a sandbox of their
//! own, so the agent can't reach the secrets. Each client session has its own process.

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

/// Time for a program to exit and for its last output: a hung program would keep its slot.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Why a program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// No clients are left.
    Wanted,
    /// It no longer reads.
    Deaf,
    ByItself,
}

/// Starts a server. It ends when all senders are gone.
pub fn start(session: &Arc<Session>, server: &McpServer) -> io::Result<mpsc::Sender<Bytes>> {
    let shared = &session.shared;
    let permit = shared.programs.acquire(Instant::now()).map_err(io::Error::other)?;
    let limits = shared.rules.borrow().as_ref().map(|rules| rules.limits).unwrap_or_default();
    let mut command = shared.services.program(server, limits)?;
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
        let mut said = session.shared.tasks.spawn(async move {
            tokio::join!(read_messages(&hearing, stdout), read_stderr(&hearing, stderr))
        });
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
            Ending::Deaf => session.report_failure("It was ended because it stopped reading its input."),
            Ending::ByItself => {
                let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                session.report_failure(&format!("It has exited ({how})."));
            }
        }
        if ending != Ending::Wanted {
            session.close_client().await;
        }
        drop(permit);
    });
    Ok(input)
}

/// Closes a process's stdin, and kills the process after a while.
async fn end(mut child: Child) -> io::Result<std::process::ExitStatus> {
    match timeout(LAST_WORDS, child.wait()).await {
        Ok(status) => status,
        Err(_) => {
            child.start_kill()?;
            child.wait().await
        }
    }
}

/// Writes complete messages until all senders are gone, or the program no longer reads. Such a program would keep its
/// slot after its clients have left.
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

async fn read_messages(session: &Session, stdout: ChildStdout) {
    let mut lines = Lines::new(stdout, session.shared.memory.clone());
    while let Some(line) = lines.next().await {
        session.handle_server_line(line).await;
    }
}

async fn read_stderr(session: &Session, stderr: ChildStderr) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    while let Ok(1..) = (&mut stderr).take(1024).read_until(b'\n', &mut line).await {
        session.record_stderr(&line);
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
