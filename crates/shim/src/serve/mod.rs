//! `muster-shim serve`: the shim itself. A single thread waits for all events, so there are no locks, and a slow part
//! (a client, the agent's stdin, a full disk) delays nothing else.
//!
//! Phases: the agent runs; it has exited and its pipes are drained; DIR/exit is written and clients get the rest, until
//! the shim is no longer needed.

mod agent;
mod disk;
mod link;
mod requests;

use std::{
    fs,
    io::{self, Write, stdout},
    os::{
        fd::AsFd,
        unix::{fs::DirBuilderExt, fs::PermissionsExt, net::UnixListener, process::ExitStatusExt},
    },
    path::Path,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::{
    agent::{Agent, killed_for_memory},
    disk::{Ring, Syncer},
    link::Link,
};
use crate::{
    about,
    args::Launch,
    bounds::{LAST_WORDS, LOOK},
    contain::Environment,
    detach::READY,
    exec::NOT_STARTED,
    folder::{self, FAILED, SOCKET, one_line},
    record::{Exit, Record},
    spool::Spool,
    wire::{Ended, FromShim, Reading, Reason},
};

/// Interval of syncs, against a crash of the machine, and of retries on a full disk.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

struct Shim {
    launch: Launch,
    listener: UnixListener,
    agent: Agent,
    spool: Spool,
    /// The agent's current line.
    partial: Vec<u8>,
    stderr: Ring,
    syncer: Syncer,
    /// The active client, and one before its HELLO.
    links: [Option<Link>; 2],
    phase: Phase,
    /// Why the shim ended the agent.
    verdict: Option<(Reason, String)>,
    /// Time of the next attempt on a full disk.
    retry: Option<Instant>,
    synced: Instant,
    /// When out-of-memory kills were last counted, and the count.
    memory: (Instant, Option<u64>),
}

enum Phase {
    Runs,
    /// The agent has exited; its pipes are read until this time.
    Drains(Instant),
    /// All is recorded; the shim stays until this time.
    Ended(Instant, Ended),
    Leaves,
}

/// Event sources.
#[derive(Clone, Copy)]
enum Source {
    Listener,
    Gone,
    Stdin,
    Stdout,
    Stderr,
    Link(usize),
}

/// Runs the shim until it is no longer needed. In a container the agent's environment is passed in; otherwise it is the
/// shim's own.
pub(crate) fn serve(prefix: &[&str], launch: &Launch, environment: Option<Environment>) -> io::Result<()> {
    let begun = begin(prefix, launch, environment).and_then(|shim| {
        // The caller may be gone; the agent runs anyway.
        let _ = stdout().write_all(READY.as_bytes()).and_then(|()| stdout().flush());
        let null = fs::File::open("/dev/null")?;
        rustix::stdio::dup2_stdout(null)?;
        Ok(shim)
    });
    match begun {
        Ok(mut shim) => shim.run(),
        Err(error) => {
            let _ = write!(stdout(), "{error}");
            Err(error)
        }
    }
}

fn begin(prefix: &[&str], launch: &Launch, environment: Option<Environment>) -> io::Result<Shim> {
    // Fails for a group leader, as under a shell, which already has a session.
    let _ = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let folder = std::path::absolute(&launch.dir)?;
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.and_then(|()| fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)))
        .and_then(|()| std::env::set_current_dir(&folder))
        .map_err(|error| about(folder.display(), error))?;
    // Paths are relative to the current folder from here on: a socket's path must be short.
    let dir = Path::new("");
    let spool = Spool::create(dir, launch.generation, launch.spool_bytes)?;
    let listener = UnixListener::bind(SOCKET).map_err(|error| about(folder.join(SOCKET).display(), error))?;
    fs::set_permissions(SOCKET, fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    let syncer = Syncer::start()?;
    let agent = Agent::start(prefix, launch, &folder, environment)?;
    let recorded = Record::current(launch.generation, agent.pid.as_raw_nonzero().get()).write(dir);
    if let Err(error) = recorded {
        agent.kill();
        return Err(error);
    }
    let now = Instant::now();
    Ok(Shim {
        launch: launch.clone(),
        listener,
        agent,
        spool,
        partial: Vec::new(),
        stderr: Ring::new(dir),
        syncer,
        links: [None, None],
        phase: Phase::Runs,
        verdict: None,
        retry: None,
        synced: now,
        memory: (now, killed_for_memory(launch.contained.is_some())),
    })
}

impl Shim {
    fn run(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; 64 << 10];
        while !matches!(self.phase, Phase::Leaves) {
            for source in self.wait()? {
                self.handle(source, &mut buffer);
            }
            self.advance();
            self.pump(&mut buffer);
        }
        drop(fs::remove_file(SOCKET));
        Ok(())
    }

    /// Waits for events.
    fn wait(&self) -> io::Result<Vec<Source>> {
        let mut sources = Vec::with_capacity(8);
        let mut fds = Vec::with_capacity(8);
        let mut add = |source, fd, flags| {
            sources.push(source);
            fds.push(PollFd::from_borrowed_fd(fd, flags));
        };
        add(Source::Listener, self.listener.as_fd(), PollFlags::IN);
        if let (Some(gone), None) = (&self.agent.gone, self.agent.status) {
            add(Source::Gone, gone.as_fd(), PollFlags::IN);
        }
        if let Some(stdin) = self.agent.stdin.as_ref().filter(|_| self.agent.has_input()) {
            add(Source::Stdin, stdin.as_fd(), PollFlags::OUT);
        }
        if let Some(stdout) = self.agent.stdout.as_ref().filter(|_| self.reading() == Reading::Open) {
            add(Source::Stdout, stdout.as_fd(), PollFlags::IN);
        }
        if let Some(stderr) = &self.agent.stderr {
            add(Source::Stderr, stderr.as_fd(), PollFlags::IN);
        }
        for (index, link) in self.links.iter().enumerate() {
            let Some(link) = link else { continue };
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, link.may_ask());
            flags.set(PollFlags::OUT, link.has_output());
            add(Source::Link(index), link.stream.as_fd(), flags);
        }
        let patience = self.poll_timeout();
        let limit = Timespec {
            tv_sec: patience.as_secs().cast_signed(),
            tv_nsec: i64::from(patience.subsec_nanos()),
        };
        match poll(&mut fds, Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(sources
            .into_iter()
            .zip(&fds)
            .filter(|(_, fd)| !fd.revents().is_empty())
            .map(|(source, _)| source)
            .collect())
    }

    /// Time until the next timer.
    fn poll_timeout(&self) -> Duration {
        match self.phase {
            Phase::Drains(_) => LOOK,
            Phase::Runs if self.agent.gone.is_none() => LOOK,
            _ if self.retry.is_some() || self.spool.is_unsynced() => SYNC_INTERVAL,
            _ => SYNC_INTERVAL * 5,
        }
    }

    fn handle(&mut self, source: Source, buffer: &mut [u8]) {
        match source {
            Source::Listener => self.accept(),
            Source::Gone | Source::Stdin => {}
            Source::Stdout => self.read_stdout(buffer),
            Source::Stderr => {
                let bytes = self.agent.stderr.as_mut().and_then(|stderr| Agent::read(stderr, buffer));
                match bytes {
                    Some([]) => self.agent.stderr = None,
                    Some(bytes) => self.stderr.write(bytes),
                    None => {}
                }
            }
            Source::Link(index) => self.receive(index, buffer),
        }
    }

    /// Whether the agent's lines are being read, and if not, why.
    fn reading(&self) -> Reading {
        if self.agent.stdout.is_none() {
            Reading::Closed
        } else if self.spool.is_waiting() {
            Reading::Disk
        } else if self.spool.is_full() && matches!(self.phase, Phase::Runs) {
            Reading::Full
        } else {
            Reading::Open
        }
    }

    fn read_stdout(&mut self, buffer: &mut [u8]) {
        let Some(stdout) = &mut self.agent.stdout else { return };
        let Some(mut bytes) = Agent::read(stdout, buffer) else { return };
        if bytes.is_empty() {
            self.end_stdout();
        }
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            if self.partial.len() + line.len() > self.launch.line_bytes {
                break;
            }
            if self.partial.is_empty() {
                self.spool.push(line);
            } else {
                self.partial.extend_from_slice(line);
                self.spool.push(&self.partial);
                self.partial.clear();
                // A single long line must not pin memory forever.
                self.partial.shrink_to(256 << 10);
            }
            bytes = rest;
        }
        self.partial.extend_from_slice(bytes);
        if self.partial.len() > self.launch.line_bytes {
            let detail = one_line(&self.partial, 1024);
            self.partial = Vec::new();
            self.end_agent(Reason::LineTooLong, detail);
        }
        self.flush();
    }

    /// Ends the agent's output. Its last line may lack a newline.
    fn end_stdout(&mut self) {
        self.agent.stdout = None;
        if !self.partial.is_empty() {
            self.spool.push(&self.partial);
            self.partial = Vec::new();
        }
    }

    /// Writes pending lines, or detects a full disk.
    fn flush(&mut self) {
        self.retry = match self.spool.flush() {
            Ok(()) => None,
            Err(error) if is_full(&error) => Some(Instant::now() + SYNC_INTERVAL),
            Err(error) => {
                self.fail(&error);
                None
            }
        };
    }

    /// Ends the agent: without its spool no output is safe.
    fn fail(&mut self, error: &io::Error) {
        self.spool.give_up();
        self.partial = Vec::new();
        self.end_agent(Reason::SpoolFailed, one_line(error.to_string().as_bytes(), 1024));
    }

    fn end_agent(&mut self, reason: Reason, detail: String) {
        self.verdict.get_or_insert((reason, detail));
        self.agent.stdout = None;
        self.agent.kill();
    }

    /// Handles timers and the agent's exit.
    fn advance(&mut self) {
        let now = Instant::now();
        self.agent.reap();
        if self.retry.is_some_and(|at| at <= now) {
            self.flush();
        }
        if now - self.synced >= SYNC_INTERVAL {
            self.synced = now;
            if let Err(error) = self.sync() {
                self.fail(&error);
            }
        }
        match self.phase {
            Phase::Runs if self.agent.status.is_some() => {
                self.agent.close_stdin();
                self.phase = Phase::Drains(now + LAST_WORDS);
                self.drain(now + LAST_WORDS, now);
            }
            Phase::Runs if now - self.memory.0 >= SYNC_INTERVAL * 5 => {
                self.memory = (now, self.killed_for_memory());
            }
            Phase::Drains(until) => self.drain(until, now),
            Phase::Ended(until, _) if until <= now => self.phase = Phase::Leaves,
            _ => {}
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.spool.is_unsynced() && !self.syncer.is_busy()? {
            self.syncer.begin(self.spool.unsynced()?);
        }
        Ok(())
    }

    /// After the agent's exit: kills its remaining processes, and waits until its pipes are empty and the spool is
    /// written.
    fn drain(&mut self, until: Instant, now: Instant) {
        let are_left = self.agent.kill_descendants();
        if self.retry.is_some() {
            self.phase = Phase::Drains(now + LAST_WORDS);
            return;
        }
        if until <= now {
            self.end_stdout();
            self.agent.stderr = None;
            self.flush();
        }
        let are_open = self.agent.stdout.is_some() || self.agent.stderr.is_some();
        if are_open || self.spool.is_waiting() || (are_left && now < until) {
            return;
        }
        if let Err(error) = self.spool.unsynced().and_then(|files| self.syncer.finish(&files)) {
            self.fail(&error);
        }
        let exit = self.exit();
        match exit.write(Path::new("")) {
            // Clients learn about the exit only after it is recorded.
            Err(error) if is_full(&error) => self.retry = Some(now + SYNC_INTERVAL),
            // On an error the exit can't be recorded at all, for example in a removed folder, but connected clients
            // still get it. In both cases, clients can fetch the remaining lines for an hour.
            Ok(()) | Err(_) => self.phase = Phase::Ended(now + Duration::from_secs(3600), exit.ended),
        }
    }

    fn exit(&self) -> Exit {
        let status = self.agent.status.unwrap_or_default();
        // Bubblewrap reports a signal as shells do.
        let is_sandboxed = self.launch.spec.sandbox.is_some();
        let was_killed = status.signal() == Some(9) || (is_sandboxed && status.code() == Some(128 + 9));
        let (reason, detail) = match (&self.verdict, self.not_started(status.code())) {
            (Some(verdict), _) => verdict.clone(),
            (None, Some(why)) => (Reason::SpawnFailed, one_line(&why, 1024)),
            _ if was_killed && self.killed_for_memory() > self.memory.1 => {
                (Reason::OutOfMemory, String::new())
            }
            _ if status.signal().is_some() => (Reason::Killed, String::new()),
            _ => (Reason::Exited, String::new()),
        };
        let ended = Ended { code: status.code(), signal: status.signal(), at: milliseconds(), reason };
        Exit { generation: self.launch.generation, ended, lines: self.spool.next() - 1, detail }
    }

    /// The reason of a failed start. In a container `exec` can't write into the shim's folder, and reports on stderr
    /// instead.
    fn not_started(&self, code: Option<i32>) -> Option<Vec<u8>> {
        if self.launch.contained.is_none() {
            return fs::read(FAILED).ok();
        }
        let said = folder::stderr(Path::new("")).ok().filter(|_| code == Some(NOT_STARTED.into()))?;
        Some(said.strip_prefix(b"muster-shim: ")?.trim_ascii_end().to_vec())
    }

    fn killed_for_memory(&self) -> Option<u64> {
        killed_for_memory(self.launch.contained.is_some())
    }

    /// Forwards pending data in both directions.
    fn pump(&mut self, buffer: &mut [u8]) {
        self.feed_agent();
        let (reading, ended) = (self.reading(), self.ended());
        for slot in &mut self.links {
            let Some(link) = slot else { continue };
            if link.cursor.is_some() && link.reported_reading != Some(reading) {
                link.reported_reading = Some(reading);
                link.queue(&FromShim::Spool(reading), b"");
            }
            let mut sent = link.send(&self.spool, buffer);
            if let Some(ended) = ended
                && sent.is_ok()
                && !link.exit_sent
                && link.has_all(&self.spool)
            {
                link.exit_sent = true;
                link.queue(&FromShim::Exit(ended), b"");
                sent = link.send(&self.spool, buffer);
            }
            if sent.is_err() || (link.closing && !link.has_output()) {
                *slot = None;
            }
        }
    }

    fn ended(&self) -> Option<Ended> {
        if let Phase::Ended(_, ended) = self.phase { Some(ended) } else { None }
    }
}

/// Whether the disk or the user's quota is full.
fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge
            | io::ErrorKind::WriteZero
    )
}

#[expect(clippy::disallowed_methods, reason = "the shim has no clock that tests move")]
fn milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
