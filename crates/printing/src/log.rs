//! The log's lines on their way to standard error.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    collections::VecDeque,
    fmt,
    io::{self, ErrorKind, Write},
    panic,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};

/// Limit of pending bytes: a blocked reader must not fill the memory.
const WAITING: usize = 1024 * 1024;

static STDERR: OnceLock<Arc<Log>> = OnceLock::new();

/// The process's log, written to standard error.
pub fn to_stderr() -> Arc<Log> {
    Arc::clone(STDERR.get_or_init(|| Log::start(Stderr)))
}

/// Number of lost lines of the process's log.
pub fn lost() -> u64 {
    STDERR.get().map_or(0, |log| log.lost())
}

/// Writes the pending lines of the process's log. Call it at the end of the process, before any other output to
/// standard error.
pub fn finish() {
    if let Some(log) = STDERR.get() {
        // The limit is for a blocked reader.
        log.flush_within(Duration::from_secs(1));
    }
}

/// Makes each panic a line of the log.
pub fn log_panics() {
    panic::set_hook(Box::new(|panic| {
        let cause = panic.payload_as_str().unwrap_or("no message");
        let at = panic.location().map(ToString::to_string);
        let current = thread::current();
        // Captured only if RUST_BACKTRACE is set.
        let trace = Backtrace::capture();
        let trace = (trace.status() == BacktraceStatus::Captured).then(|| trace.to_string());
        tracing::error!(cause, at, thread = current.name(), trace, "process.panicked");
        if let Some(log) = STDERR.get() {
            // The panic may end the process, or be one of many.
            log.flush_within(Duration::from_millis(100));
        }
    }));
}

/// Lines written in order by a thread. A line that can't be written is counted.
///
/// One `write` is one line, as in tracing's formatter. It never blocks and never fails.
pub struct Log {
    queue: Mutex<Queue>,
    changed: Condvar,
    lost: AtomicU64,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<Box<[u8]>>,
    bytes: usize,
    /// Whether a line has left the queue and is not written yet.
    is_writing: bool,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("lost", &self.lost()).finish_non_exhaustive()
    }
}

impl Log {
    /// A log that writes to `out`.
    pub fn start(out: impl Write + Send + 'static) -> Arc<Self> {
        let log =
            Arc::new(Self { queue: Mutex::default(), changed: Condvar::new(), lost: AtomicU64::new(0) });
        let writer = Arc::clone(&log);
        // Without the thread the lines fill the queue, and further ones count as lost.
        let _ = thread::Builder::new().name("log".to_owned()).spawn(move || writer.write_lines(out));
        log
    }

    /// Number of lost lines.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits until all lines are written, up to `patience`. Returns whether they are.
    pub fn flush_within(&self, patience: Duration) -> bool {
        let is_left = |queue: &mut Queue| queue.is_writing || !queue.lines.is_empty();
        let mut queue = self.queue.lock();
        self.changed.wait_while_for(&mut queue, is_left, patience);
        // Not by the result, which is a timeout even if the last line was written at the limit.
        !is_left(&mut queue)
    }

    fn write_lines(&self, mut out: impl Write) {
        let (mut reported, mut is_torn) = (0, false);
        loop {
            let line = self.next();
            // The rest of a truncated line is lost, but the next line must start on its own.
            let line = if is_torn { [b"\n", &*line].concat().into_boxed_slice() } else { line };
            let done = write_whole(&mut out, &line);
            match done {
                Ok(()) => is_torn = false,
                Err(written) => {
                    is_torn |= written > 0;
                    self.lost.fetch_add(1, Ordering::Relaxed);
                }
            }
            // Only after a successful write: otherwise this line would be lost too, and so on without end.
            if self.finish_line() && done.is_ok() && self.lost() > reported {
                let lost = self.lost() - reported;
                reported += lost;
                tracing::warn!(lost, "log.lines_lost");
            }
        }
    }

    /// Takes the next line, waiting for one.
    fn next(&self) -> Box<[u8]> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(line) = queue.lines.pop_front() {
                queue.bytes -= line.len();
                queue.is_writing = true;
                return line;
            }
            self.changed.wait(&mut queue);
        }
    }

    /// Marks the taken line as done. Returns whether the queue is empty.
    fn finish_line(&self) -> bool {
        let mut queue = self.queue.lock();
        queue.is_writing = false;
        self.changed.notify_all();
        queue.lines.is_empty()
    }
}

impl Write for &Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut queue = self.queue.lock();
        if queue.bytes + line.len() > WAITING {
            self.lost.fetch_add(1, Ordering::Relaxed);
        } else {
            queue.bytes += line.len();
            queue.lines.push_back(line.into());
            self.changed.notify_all();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes all of `line`, or returns the number of bytes written.
fn write_whole(out: &mut impl Write, line: &[u8]) -> Result<(), usize> {
    let mut written = 0;
    while written < line.len() {
        match out.write(&line[written..]) {
            Ok(0) => return Err(written),
            Ok(more) => written += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Err(written),
        }
    }
    Ok(())
}

/// Standard error without the lock of `std::io::stderr`, which this thread would hold while a reader blocks.
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let stderr = rustix::stdio::stderr();
        loop {
            match rustix::io::write(stderr, bytes) {
                // Another process has made the shared pipe non-blocking.
                Err(Errno::AGAIN) => {
                    poll(&mut [PollFd::new(&stderr, PollFlags::OUT)], None)?;
                }
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A throttled output: each message lets one `write` take that many bytes, 0 refuses it.
    struct Gate {
        may: mpsc::Receiver<usize>,
        out: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.may.recv() {
                Ok(0) => Err(ErrorKind::StorageFull.into()),
                Ok(most) => {
                    let taken = &bytes[..bytes.len().min(most)];
                    self.out.lock().extend_from_slice(taken);
                    Ok(taken.len())
                }
                Err(_) => Err(ErrorKind::BrokenPipe.into()),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gated() -> (Arc<Log>, mpsc::Sender<usize>, Arc<Mutex<Vec<u8>>>) {
        let (pass, may) = mpsc::channel();
        let out = Arc::default();
        (Log::start(Gate { may, out: Arc::clone(&out) }), pass, out)
    }

    fn text(out: &Mutex<Vec<u8>>) -> String {
        String::from_utf8(out.lock().clone()).unwrap()
    }

    #[test]
    fn lines_come_out_in_order() {
        let (log, pass, out) = gated();
        for n in 0..100 {
            (&*log).write_all(format!("{n}\n").as_bytes()).unwrap();
            pass.send(usize::MAX).unwrap();
        }
        assert!(log.flush_within(Duration::from_secs(30)));
        let expected: String = (0..100).map(|n| format!("{n}\n")).collect();
        assert_eq!((text(&out), log.lost()), (expected, 0));
    }

    #[test]
    fn a_refused_line_is_counted_and_the_next_one_is_whole() {
        let (log, pass, out) = gated();
        for (line, passes) in [("first\n", &[2, 0][..]), ("second\n", &[0]), ("third\n", &[3, 99])] {
            (&*log).write_all(line.as_bytes()).unwrap();
            for most in passes {
                pass.send(*most).unwrap();
            }
        }
        assert!(log.flush_within(Duration::from_secs(30)));
        assert_eq!((text(&out), log.lost()), ("fi\nthird\n".to_owned(), 2));
    }

    #[test]
    fn a_blocked_reader_blocks_no_writer() {
        let (log, pass, out) = gated();
        let line = vec![b'x'; WAITING / 4];
        let all = 40;
        for _ in 0..all {
            (&*log).write_all(&line).unwrap();
        }
        assert!(!log.flush_within(Duration::ZERO));
        // The current line may or may not have left the queue.
        let kept = all - log.lost();
        assert!((4..=5).contains(&kept), "{kept}");
        for _ in 0..kept {
            pass.send(usize::MAX).unwrap();
        }
        assert!(log.flush_within(Duration::from_secs(30)));
        assert_eq!(out.lock().len() as u64, kept * line.len() as u64);
    }
}
