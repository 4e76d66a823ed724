//! The spool: the agent's lines that the host has not yet stored, in segment files.
//!
//! A segment is named by its first line's number. It starts with `SPOOL 1 <generation> <first line>`. Each line follows
//! in the wire format, with a newline: `OUT <seq> <len>`, a newline, the bytes, a newline. So sending is plain copying.
//! After a crash of the machine the last line may be torn: the first malformed one ends the spool.
//!
//! A segment is removed once all its lines are trimmed.

use std::{
    collections::VecDeque,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    os::unix::fs::{DirBuilderExt, FileExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    about,
    folder::{self, SPOOL},
    wire::{self, FromShim, Malformed, VERSION, read_header},
};

/// The lines of a launch's folder from `from` on, with or without a running shim. Ends at the spool's end or at a torn
/// line.
pub fn read(dir: &Path, from: u64) -> io::Result<Lines> {
    let folder = dir.join(SPOOL);
    let mut firsts = Vec::new();
    for entry in fs::read_dir(&folder).map_err(|error| about(folder.display(), error))? {
        firsts.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u64>().ok()));
    }
    firsts.sort_unstable();
    Ok(Lines { folder, firsts: firsts.into(), from, open: None, next: 0 })
}

/// The lines of a spool, with their numbers.
#[derive(Debug)]
pub struct Lines {
    folder: PathBuf,
    firsts: VecDeque<u64>,
    from: u64,
    open: Option<BufReader<File>>,
    /// The expected line; 0 before the first.
    next: u64,
}

impl Lines {
    /// The next line; `None` at the end of a segment or at a torn line.
    fn line(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        let Some(file) = &mut self.open else { return Ok(None) };
        let Some((seq, len)) = next_line(file)? else { return Ok(None) };
        if seq != self.next {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        file.by_ref().take(len as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() != len + 1 || bytes.pop() != Some(b'\n') {
            return Ok(None);
        }
        self.next += 1;
        Ok(Some((seq, bytes)))
    }

    /// Opens the next segment. Nothing may follow a torn line.
    fn open(&mut self) -> io::Result<bool> {
        let Some(first) = self.firsts.pop_front() else { return Ok(false) };
        if self.next != 0 && self.next != first {
            return Ok(false);
        }
        let path = path_of(&self.folder, first);
        let mut file = BufReader::new(folder::open(&path)?);
        self.next = first;
        // The head may be torn as well.
        self.open = match read_header(&mut file) {
            Ok(Some(head)) if head.starts_with("SPOOL ") => Some(file),
            Ok(_) => None,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
            Err(error) => return Err(error),
        };
        Ok(true)
    }
}

impl Iterator for Lines {
    type Item = io::Result<(u64, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.line() {
                Ok(Some((seq, _))) if seq < self.from => {}
                Ok(Some(line)) => return Some(Ok(line)),
                Ok(None) => match self.open() {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(error) => return Some(Err(error)),
                },
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Number and length of a segment's next line; `None` at its end or at a torn line.
fn next_line(file: &mut impl BufRead) -> io::Result<Option<(u64, usize)>> {
    match read_header(file) {
        Ok(None) => Ok(None),
        Ok(Some(header)) => match FromShim::parse(&header) {
            Ok(FromShim::Out { seq, len }) => Ok(Some((seq, len))),
            _ => Ok(None),
        },
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
        Err(error) => Err(error),
    }
}

fn path_of(folder: &Path, first: u64) -> PathBuf {
    folder.join(format!("{first:020}"))
}

/// The spool of a running shim.
pub(crate) struct Spool {
    folder: PathBuf,
    generation: u64,
    bound: u64,
    segments: VecDeque<Segment>,
    /// Bytes of all segments.
    total: u64,
    /// Number of the next written line.
    next_written: u64,
    /// The last trimmed line.
    last_trimmed: u64,
    /// Unwritten lines in the file format, and the written part of them.
    waiting: Vec<u8>,
    written: usize,
    /// Number of the next queued line.
    next_queued: u64,
    /// Whether the folder has unsynced names.
    has_unsynced_names: bool,
}

struct Segment {
    file: Arc<File>,
    first: u64,
    next: u64,
    /// Start of the first line, and end of the last.
    start: u64,
    len: u64,
    synced: bool,
}

/// A client's position in the spool.
pub(crate) struct Cursor {
    /// The next or current line.
    pub(crate) seq: u64,
    at: Option<(Arc<File>, u64, u64)>,
    /// Unread bytes of the line in its file, with the newline.
    left: u64,
}

impl Cursor {
    /// At the start of a line.
    pub(crate) fn at(seq: u64) -> Self {
        Self { seq, at: None, left: 0 }
    }

    /// Whether a line is partly sent.
    pub(crate) fn is_amid(&self) -> bool {
        self.left > 0
    }
}

impl Spool {
    /// Creates the folder, which must not exist: a launch's folder is used once.
    pub(crate) fn create(dir: &Path, generation: u64, bound: u64) -> io::Result<Self> {
        let folder = dir.join(SPOOL);
        DirBuilder::new().mode(0o700).create(&folder).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                about(format!("{} is there: each launch needs a folder of its own", folder.display()), error)
            }
            _ => about(folder.display(), error),
        })?;
        let segments = VecDeque::new();
        Ok(Self {
            folder,
            generation,
            bound,
            segments,
            total: 0,
            next_written: 1,
            last_trimmed: 0,
            waiting: Vec::new(),
            written: 0,
            next_queued: 1,
            has_unsynced_names: false,
        })
    }

    /// The first untrimmed line.
    pub(crate) fn first(&self) -> u64 {
        self.last_trimmed + 1
    }

    /// Number of the next line.
    pub(crate) fn next(&self) -> u64 {
        self.next_written
    }

    /// Whether the limit is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.total >= self.bound
    }

    /// Whether lines are unwritten.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Numbers and queues a line. It counts once [`Spool::flush`] has written it.
    pub(crate) fn push(&mut self, line: &[u8]) {
        let header = FromShim::Out { seq: self.next_queued, len: line.len() };
        // Writing to memory doesn't fail.
        let _ = wire::write(&mut self.waiting, header, line);
        self.waiting.push(b'\n');
        self.next_queued += 1;
    }

    /// Writes queued lines. After an error they stay queued, and the next call continues.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let largest = (self.bound / 8).min(4 << 20);
        if self.written == 0 && self.segments.back().is_none_or(|segment| segment.len >= largest) {
            self.begin()?;
        }
        let Some(segment) = self.segments.back_mut() else { return Ok(()) };
        while self.written < self.waiting.len() {
            let at = segment.len + self.written as u64;
            match segment.file.write_at(&self.waiting[self.written..], at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        segment.len += self.written as u64;
        segment.next = self.next_queued;
        segment.synced = false;
        self.total += self.written as u64;
        self.next_written = self.next_queued;
        self.written = 0;
        self.waiting.clear();
        // A single long line must not pin memory forever.
        self.waiting.shrink_to(256 << 10);
        Ok(())
    }

    /// Drops queued lines: the spool is no longer writable.
    pub(crate) fn give_up(&mut self) {
        self.waiting = Vec::new();
        self.written = 0;
        self.next_queued = self.next_written;
    }

    fn begin(&mut self) -> io::Result<()> {
        let path = path_of(&self.folder, self.next_written);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
        let head = format!("SPOOL {VERSION} {} {}\n", self.generation, self.next_written);
        if let Err(error) = file.write_all_at(head.as_bytes(), 0) {
            drop(fs::remove_file(&path));
            return Err(error);
        }
        let start = head.len() as u64;
        let (first, file) = (self.next_written, Arc::new(file));
        self.segments.push_back(Segment { file, first, next: first, start, len: start, synced: false });
        self.total += start;
        self.has_unsynced_names = true;
        Ok(())
    }

    /// Forgets lines up to this one. The requesting client must not keep a removed file open, or the disk stays full.
    pub(crate) fn trim(&mut self, through: u64, cursor: Option<&mut Cursor>) {
        self.forget(through);
        if let Some(cursor) = cursor.filter(|cursor| !cursor.is_amid()) {
            cursor.at.take_if(|(_, first, _)| self.segments.iter().all(|segment| segment.first != *first));
        }
    }

    fn forget(&mut self, through: u64) {
        self.last_trimmed = self.last_trimmed.max(through);
        while let Some(segment) = self.segments.front() {
            if segment.next > self.last_trimmed + 1 {
                return;
            }
            if self.segments.len() == 1 {
                // A partly written line starts over in the next segment.
                self.written = 0;
            }
            self.total -= segment.len;
            // A file that can't be removed now goes with the folder.
            drop(fs::remove_file(path_of(&self.folder, segment.first)));
            self.segments.pop_front();
        }
    }

    /// Whether anything is unsynced.
    pub(crate) fn is_unsynced(&self) -> bool {
        self.has_unsynced_names || self.segments.iter().any(|segment| !segment.synced)
    }

    pub(crate) fn unsynced(&mut self) -> io::Result<Vec<Arc<File>>> {
        let mut files = Vec::new();
        if std::mem::take(&mut self.has_unsynced_names) {
            files.push(Arc::new(File::open(&self.folder)?));
        }
        for segment in self.segments.iter_mut().filter(|segment| !segment.synced) {
            segment.synced = true;
            files.push(Arc::clone(&segment.file));
        }
        Ok(files)
    }

    /// Appends the next bytes to `to`, at most the size of `buffer`, and `control` between two lines. Returns whether
    /// there were any.
    pub(crate) fn copy(
        &self,
        cursor: &mut Cursor,
        control: &mut Vec<u8>,
        to: &mut Vec<u8>,
        buffer: &mut [u8],
    ) -> io::Result<bool> {
        if cursor.left == 0 {
            to.append(control);
        }
        let Some(until) = self.find(cursor)? else { return Ok(false) };
        let Some((file, _, offset)) = &mut cursor.at else { return Ok(false) };
        let most = usize::try_from(until - *offset).unwrap_or(usize::MAX).min(buffer.len());
        let count = file.read_at(&mut buffer[..most], *offset)?;
        if count == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the spool was cut off by another process",
            ));
        }
        let mut rest = &buffer[..count];
        while !rest.is_empty() {
            if cursor.left == 0 {
                to.append(control);
                let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { break };
                cursor.left = payload(&rest[..end], cursor.seq)? + 1;
                to.extend_from_slice(&rest[..=end]);
                *offset += end as u64 + 1;
                rest = &rest[end + 1..];
            } else {
                let taken = usize::try_from(cursor.left).unwrap_or(usize::MAX).min(rest.len());
                cursor.left -= taken as u64;
                // The newline after a line exists only in the file.
                let sent = if cursor.left == 0 { taken - 1 } else { taken };
                to.extend_from_slice(&rest[..sent]);
                *offset += taken as u64;
                rest = &rest[taken..];
                cursor.seq += u64::from(cursor.left == 0);
            }
        }
        Ok(true)
    }

    /// Moves the cursor into its line's file, and returns the readable end. `None`: no such line yet.
    fn find(&self, cursor: &mut Cursor) -> io::Result<Option<u64>> {
        if cursor.left > 0 {
            // The line is sent completely, even if it is trimmed meanwhile.
            return Ok(cursor.at.as_ref().map(|(_, _, offset)| offset + cursor.left));
        }
        if cursor.seq < self.first() {
            cursor.seq = self.first();
            cursor.at = None;
        }
        if cursor.seq >= self.next_written {
            return Ok(None);
        }
        let is_it = |segment: &&Segment| segment.first <= cursor.seq && cursor.seq < segment.next;
        let Some(segment) = self.segments.iter().find(is_it) else {
            return Err(Malformed(format!("no segment has line {}", cursor.seq)).into());
        };
        if cursor.at.as_ref().is_none_or(|(_, first, _)| *first != segment.first) {
            cursor.at = Some((Arc::clone(&segment.file), segment.first, segment.offset_of(cursor.seq)?));
        }
        Ok(Some(segment.len))
    }
}

impl Segment {
    fn offset_of(&self, seq: u64) -> io::Result<u64> {
        let mut file = BufReader::with_capacity(64 << 10, &*self.file);
        file.seek(SeekFrom::Start(self.start))?;
        for _ in self.first..seq {
            let Some((_, len)) = next_line(&mut file)? else {
                return Err(Malformed(format!("line {seq} is not where it was")).into());
            };
            file.seek_relative(i64::try_from(len).map_err(io::Error::other)? + 1)?;
        }
        file.stream_position()
    }
}

/// The length of the line with this header.
fn payload(header: &[u8], expected: u64) -> io::Result<u64> {
    let text = String::from_utf8_lossy(header);
    match FromShim::parse(&text)? {
        FromShim::Out { seq, len } if seq == expected => Ok(len as u64),
        _ => Err(Malformed(text.into_owned()).into()),
    }
}

#[cfg(test)]
mod tests;
