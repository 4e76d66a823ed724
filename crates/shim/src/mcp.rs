//! `mcp SOCKET -- PROGRAM`: the relay of an MCP server next to the agent. The agent's client and the program don't talk
//! directly: every message goes to the host, which judges and routes it.
//!
//! The first line on the socket is `+`. On every other line the first byte is a tag: `>` a message from the client, or
//! for the program; `<` a message from the program, or for the client; `!` a line of the program's stderr; `.` the
//! program's exit.

use std::{
    ffi::OsString,
    io::{self, BufRead, BufReader, Read, Write, stdin, stdout},
    net::Shutdown,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::{
            net::UnixStream,
            process::{CommandExt, ExitStatusExt},
        },
    },
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver, Sender},
    thread,
    time::Instant,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal, getpid, kill_process_group},
};

use crate::{
    about,
    bounds::{LARGEST, LAST_WORDS, LOOK, PIECE},
    folder::Address,
};

/// Starts the program, and relays until the client, the program or the host ends.
pub(crate) fn relay(
    prefix: &[&str],
    socket: &Path,
    program: OsString,
    args: Vec<OsString>,
) -> io::Result<()> {
    let address = Address::for_socket(socket)?;
    let host = UnixStream::connect(address.path()).map_err(|error| about(socket.display(), error))?;
    // The program ends with this process, even if it is killed.
    let own = getpid().as_raw_nonzero().to_string();
    let mut command = Command::new(std::env::current_exe()?);
    command.args(prefix).args(["exec", "--parent", &own, "--"]).arg(program).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // In the agent's session, by which leftover processes are found.
    let mut child = command.process_group(0).spawn()?;
    let relayed = relay_messages(&host, &mut child);
    end_program(&mut child)?;
    relayed
}

fn relay_messages(host: &UnixStream, child: &mut Child) -> io::Result<()> {
    let (Some(input), Some(output), Some(errors)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    // A program that reads slowly must not delay messages for the client.
    let (to_program, for_program) = mpsc::channel();
    thread::spawn(move || write_to_program(input, &for_program));
    let (from_host, (ends, ended)) = (host.try_clone()?, mpsc::channel());
    thread::spawn(move || {
        let heard = route_host_lines(&from_host, &to_program);
        drop(to_program);
        let _ = ends.send(heard);
    });
    let client = stdin();
    let mut client = Source::new(client.as_fd(), b'>', LARGEST);
    let mut output = Source::new(output.as_fd(), b'<', LARGEST);
    let mut errors = Source::new(errors.as_fd(), b'!', 1024);
    let mut host = host;
    host.write_all(b"+\n")?;
    while !client.has_ended && !output.has_ended {
        if !forward_lines(&mut [&mut client, &mut output, &mut errors], host)? {
            return ended.recv_timeout(LAST_WORDS).unwrap_or(Ok(()));
        }
    }
    if output.has_ended {
        let status = wait_for_exit(child)?;
        errors.forward_rest(&mut host)?;
        host.write_all(format!(".{}\n", status.map(describe_exit).unwrap_or_default()).as_bytes())?;
    }
    host.shutdown(Shutdown::Write)?;
    let heard = ended.recv_timeout(LAST_WORDS).unwrap_or(Ok(()));
    wait_for_exit(child)?;
    heard
}

/// Forwards available lines to the host. False if the host has left.
fn forward_lines(sources: &mut [&mut Source<'_>], mut host: &UnixStream) -> io::Result<bool> {
    let mut fds: Vec<PollFd<'_>> = vec![PollFd::new(host, PollFlags::empty())];
    // A finished source would be reported by every poll.
    let mut sources: Vec<_> = sources.iter_mut().filter(|source| !source.has_ended).collect();
    fds.extend(sources.iter().map(|source| PollFd::from_borrowed_fd(source.fd, PollFlags::IN)));
    match poll(&mut fds, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
    for (source, _) in sources.iter_mut().zip(&ready[1..]).filter(|(_, ready)| **ready) {
        source.forward(&mut host)?;
    }
    Ok(!ready[0])
}

/// A source of lines.
struct Source<'a> {
    fd: BorrowedFd<'a>,
    tag: u8,
    longest: usize,
    /// The tag and the current line so far.
    line: Vec<u8>,
    has_ended: bool,
}

impl<'a> Source<'a> {
    fn new(fd: BorrowedFd<'a>, tag: u8, longest: usize) -> Self {
        Self { fd, tag, longest, line: vec![tag], has_ended: false }
    }

    /// Reads once, and writes each complete line. A message above the limit is dropped and ends the source; a stderr
    /// line is truncated.
    fn forward(&mut self, to: &mut impl Write) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        let count = match rustix::io::read(self.fd, &mut piece) {
            Ok(count) => count,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        self.has_ended = count == 0;
        for part in piece[..count].split_inclusive(|byte| *byte == b'\n') {
            let room = (self.longest + 1).saturating_sub(self.line.len());
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            if text.len() > room && self.tag != b'!' {
                self.has_ended = true;
                return Ok(());
            }
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            if text.len() < part.len() {
                self.line.push(b'\n');
                to.write_all(&self.line)?;
                self.line = vec![self.tag];
            }
        }
        Ok(())
    }

    /// Forwards the rest after the end, including a line without a newline. A process left by the program may still
    /// write.
    fn forward_rest(&mut self, to: &mut impl Write) -> io::Result<()> {
        let (until, now) = (Instant::now() + LAST_WORDS, Timespec { tv_sec: 0, tv_nsec: 0 });
        while !self.has_ended && Instant::now() < until {
            let is_ready = poll(&mut [PollFd::from_borrowed_fd(self.fd, PollFlags::IN)], Some(&now))?;
            if is_ready == 0 {
                break;
            }
            self.forward(to)?;
        }
        if self.line.len() > 1 {
            self.line.push(b'\n');
            to.write_all(&self.line)?;
        }
        Ok(())
    }
}

/// Routes the host's lines to the client or the program.
fn route_host_lines(host: &UnixStream, to_program: &Sender<Vec<u8>>) -> io::Result<()> {
    let mut host = BufReader::new(host);
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut host).take(LARGEST as u64 + 2).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        match line.first() {
            Some(b'<') => {
                let mut client = stdout().lock();
                client.write_all(&line[1..])?;
                client.flush()?;
            }
            Some(b'>') => _ = to_program.send(line.split_off(1)),
            _ => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the host's line has an unknown tag"));
            }
        }
    }
}

/// Writes messages to the program until the sender is gone, then closes its stdin.
fn write_to_program(mut input: ChildStdin, messages: &Receiver<Vec<u8>>) {
    while let Ok(message) = messages.recv() {
        if input.write_all(&message).and_then(|()| input.flush()).is_err() {
            return;
        }
    }
}

/// Waits for the program's exit, up to a limit.
fn wait_for_exit(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let until = Instant::now() + LAST_WORDS;
    loop {
        match child.try_wait()? {
            None if Instant::now() < until => thread::sleep(LOOK),
            status => return Ok(status),
        }
    }
}

fn describe_exit(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("code {code}"),
        None => format!("signal {}", status.signal().unwrap_or_default()),
    }
}

/// Ends the program and its child processes.
fn end_program(child: &mut Child) -> io::Result<()> {
    if child.try_wait()?.is_none() {
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        child.kill()?;
        child.wait()?;
    }
    Ok(())
}
