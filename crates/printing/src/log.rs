//! The log's lines, on their way to standard error.

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

/// How many bytes of lines may wait. A reader that stands still must not fill the memory.
const WAITING: usize = 1024 * 1024;

static STDERR: OnceLock<Arc<Log>> = OnceLock::new();

/// The process's log, which is written to standard error.
pub fn to_stderr() -> Arc<Log> {
    Arc::clone(STDERR.get_or_init(|| Log::start(Stderr)))
}

/// How many lines of the process's log could not be written.
pub fn lost() -> u64 {
    STDERR.get().map_or(0, |log| log.lost())
}

/// Writes what is left of the process's log. Call it when the process ends, before anything else is written to standard
/// error.
pub fn finish() {
    if let Some(log) = STDERR.get() {
        // For a reader that stands still.
        log.flush_within(Duration::from_secs(1));
    }
}

/// Makes each panic a line of the log.
pub fn log_panics() {
    panic::set_hook(Box::new(|panic| {
        let cause = panic.payload_as_str().unwrap_or("no message");
        let at = panic.location().map(ToString::to_string);
        let current = thread::current();
        // Captured only if RUST_BACKTRACE asks for it.
        let trace = Backtrace::capture();
        let trace = (trace.status() == BacktraceStatus::Captured).then(|| trace.to_string());
        tracing::error!(cause, at, thread = current.name(), trace, "process.panicked");
        if let Some(log) = STDERR.get() {
            // It may be the end of the process, or one of many.
            log.flush_within(Duration::from_millis(100));
        }
    }));
}

/// Lines that a thread of their own writes, in order. A line that can't be written is counted.
///
/// One `write` is one line, as tracing's formatter does it. It never waits and never fails.
pub struct Log {
    queue: Mutex<Queue>,
    changed: Condvar,
    lost: AtomicU64,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<Box<[u8]>>,
    bytes: usize,
    /// A line has left the queue and is not written yet.
    is_writing: bool,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("lost", &self.lost()).finish_non_exhaustive()
    }
}

impl Log {
    /// A log that is written to `out`.
    pub fn start(out: impl Write + Send + 'static) -> Arc<Self> {
        let log =
            Arc::new(Self { queue: Mutex::default(), changed: Condvar::new(), lost: AtomicU64::new(0) });
        let writer = Arc::clone(&log);
        // Without the thread the lines fill the queue, and are counted from there on.
        let _ = thread::Builder::new().name("log".to_owned()).spawn(move || writer.write_lines(out));
        log
    }

    /// How many lines could not be written.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits until all lines are written, but no longer than `patience`. Returns whether they are.
    pub fn flush_within(&self, patience: Duration) -> bool {
        let is_left = |queue: &mut Queue| queue.is_writing || !queue.lines.is_empty();
        !self.changed.wait_while_for(&mut self.queue.lock(), is_left, patience).timed_out()
    }

    fn write_lines(&self, mut out: impl Write) {
        let (mut told, mut is_torn) = (0, false);
        loop {
            let line = self.next();
            // The rest of a line that was cut off is lost; the next one must not be.
            let line = if is_torn { [b"\n", &*line].concat().into_boxed_slice() } else { line };
            let done = write_whole(&mut out, &line);
            match done {
                Ok(()) => is_torn = false,
                Err(written) => {
                    is_torn |= written > 0;
                    self.lost.fetch_add(1, Ordering::Relaxed);
                }
            }
            // Only where a line gets through: else this one would be lost as well, and the next, without end.
            if self.written() && done.is_ok() && self.lost() > told {
                let lost = self.lost() - told;
                told += lost;
                tracing::warn!(lost, "log.lines_lost");
            }
        }
    }

    /// Takes the next line, as soon as there is one.
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

    /// The line that was taken has been dealt with. Returns whether no other waits.
    fn written(&self) -> bool {
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

/// Writes all of `line`, or says how much of it was written.
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

/// Standard error without the lock of `std::io::stderr`, which this thread would hold while a reader stands still.
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let stderr = rustix::stdio::stderr();
        loop {
            match rustix::io::write(stderr, bytes) {
                // Another process that has the same pipe wants it so.
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

    /// What is written when it may be: each message lets one `write` take that many bytes, 0 refuses it.
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
    fn a_reader_that_stands_still_keeps_nobody_waiting() {
        let (log, pass, out) = gated();
        let line = vec![b'x'; WAITING / 4];
        let all = 40;
        for _ in 0..all {
            (&*log).write_all(&line).unwrap();
        }
        assert!(!log.flush_within(Duration::ZERO));
        // The one that is being written has left the queue, or not yet.
        let kept = all - log.lost();
        assert!((4..=5).contains(&kept), "{kept}");
        for _ in 0..kept {
            pass.send(usize::MAX).unwrap();
        }
        assert!(log.flush_within(Duration::from_secs(30)));
        assert_eq!(out.lock().len() as u64, kept * line.len() as u64);
    }
}
