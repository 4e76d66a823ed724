//! An agent's log on disk: files with a line of JSON for each line. The newest is written; the oldest is removed when
//! there are too many.
//!
//! A file's name is when the log was begun, and the number of the file's first line, so a line's number is its place. A
//! kill leaves at most a torn last line, which is cut off.

use std::{
    collections::VecDeque,
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use muster_protocol::frame::{LogLine, LogSource};

use crate::folder::create_private;

/// The size at which the next file begins, and how many are kept: an agent may write without end.
const FILE_BYTES: u64 = 1 << 20;
const FILES: usize = 4;

#[derive(Debug)]
pub struct LogFile {
    folder: PathBuf,
    /// When the log was begun.
    pub begun_at: i64,
    /// The number of the newest file's first line, and the file's size.
    first: i64,
    size: u64,
    /// The number of the next line.
    next: i64,
}

impl LogFile {
    /// Opens the log in this folder, which may be missing.
    pub fn open(folder: PathBuf, now: i64) -> io::Result<Self> {
        let Some(&(begun_at, first)) = files(&folder)?.last() else {
            return Ok(Self { folder, begun_at: now, first: 1, size: 0, next: 1 });
        };
        let path = path(&folder, (begun_at, first));
        let bytes = fs::read(&path)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole < bytes.len() {
            OpenOptions::new().write(true).open(&path)?.set_len(whole as u64)?;
        }
        let lines = bytes[..whole].iter().filter(|byte| **byte == b'\n').count();
        Ok(Self { folder, begun_at, first, size: whole as u64, next: first + number(lines) })
    }

    /// Appends lines. Returns the number of the first. None is appended if the disk is full.
    pub fn append(&mut self, lines: &[LogLine]) -> io::Result<i64> {
        let mut bytes = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut bytes, line)?;
            bytes.push(b'\n');
        }
        if self.size >= FILE_BYTES {
            (self.first, self.size) = (self.next, 0);
        }
        if self.size == 0 {
            create_private(&self.folder).map_err(io::Error::other)?;
            self.remove_oldest()?;
        }
        let path = path(&self.folder, (self.begun_at, self.first));
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        if let Err(error) = file.write_all(&bytes) {
            file.set_len(self.size)?;
            return Err(error);
        }
        self.size += bytes.len() as u64;
        let position = self.next;
        self.next += number(lines.len());
        Ok(position)
    }

    /// The last lines, of at most this many bytes in their files, and the number of the first.
    pub fn tail(&self, most: usize) -> io::Result<(i64, Vec<LogLine>)> {
        let (mut lines, mut bytes) = (VecDeque::new(), 0);
        'files: for file in files(&self.folder)?.into_iter().rev() {
            let text = fs::read(path(&self.folder, file))?;
            for line in text.split(|byte| *byte == b'\n').rev().filter(|line| !line.is_empty()) {
                bytes += line.len();
                if bytes > most {
                    break 'files;
                }
                lines.push_front(muster_json::from_slice(line).unwrap_or_else(|_| unreadable()));
            }
        }
        Ok((self.next - number(lines.len()), lines.into()))
    }

    /// Makes room for a new file.
    fn remove_oldest(&self) -> io::Result<()> {
        let files = files(&self.folder)?;
        let many = (files.len() + 1).saturating_sub(FILES);
        files.into_iter().take(many).try_for_each(|file| fs::remove_file(path(&self.folder, file)))
    }
}

/// Stands for a damaged line, so that the others keep their numbers.
fn unreadable() -> LogLine {
    let text = "This line of the log is damaged.".to_owned();
    LogLine { time: 0, source: LogSource::Launch, text }
}

fn number(lines: usize) -> i64 {
    i64::try_from(lines).unwrap_or(i64::MAX)
}

fn path(folder: &Path, (begun_at, first): (i64, i64)) -> PathBuf {
    folder.join(format!("{begun_at}-{first}"))
}

/// The files in a log's folder, oldest first: begin of the log, and number of the first line.
fn files(folder: &Path) -> io::Result<Vec<(i64, i64)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found: Vec<(i64, i64)> = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let numbers = name.to_str().and_then(|name| name.split_once('-'));
        let numbers = numbers.and_then(|(begun_at, first)| begun_at.parse().ok().zip(first.parse().ok()));
        found.extend(numbers);
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: impl Into<String>) -> LogLine {
        LogLine { time: 5, source: LogSource::Stderr, text: text.into() }
    }

    fn texts(log: &LogFile, most: usize) -> (i64, Vec<String>) {
        let (position, lines) = log.tail(most).unwrap();
        (position, lines.into_iter().map(|line| line.text).collect())
    }

    #[test]
    fn a_killed_host_leaves_whole_lines_with_their_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("log");
        let mut log = LogFile::open(folder.clone(), 70).unwrap();
        assert_eq!(texts(&log, 1000), (1, vec![]));
        assert_eq!(log.append(&[line("one"), line("two")]).unwrap(), 1);
        let file = folder.join("70-1");
        let whole = fs::read(&file).unwrap();
        let third = serde_json::to_vec(&line("three")).unwrap();
        // Killed at each byte of the third line.
        for cut in 0..=third.len() {
            fs::write(&file, [&whole[..], &third[..cut]].concat()).unwrap();
            let mut log = LogFile::open(folder.clone(), 90).unwrap();
            assert_eq!(log.begun_at, 70);
            assert_eq!(log.append(&[line("next")]).unwrap(), 3, "cut at {cut}");
            let expected = ["one", "two", "next"].map(str::to_owned).to_vec();
            assert_eq!(texts(&log, 1000), (1, expected), "cut at {cut}");
        }
    }

    #[test]
    fn endless_output_stays_within_the_bound_with_its_last_lines() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("log");
        let mut log = LogFile::open(folder.clone(), 70).unwrap();
        let many: Vec<LogLine> = (0..32).map(|_| line("x".repeat(2000))).collect();
        let mut next = 1;
        for round in 0..200 {
            assert_eq!(log.append(&many).unwrap(), next);
            next += 32;
            if round % 50 == 49 {
                log = LogFile::open(folder.clone(), 90).unwrap();
            }
        }
        let sizes = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
        let sizes: Vec<u64> = sizes.collect();
        assert_eq!(sizes.len(), FILES);
        assert!(sizes.iter().sum::<u64>() < FILES as u64 * (FILE_BYTES + (128 << 10)), "{sizes:?}");
        log.append(&[line("last")]).unwrap();
        let (position, tail) = texts(&log, 256 << 10);
        assert_eq!(position + number(tail.len()), next + 1);
        assert!(tail.len() > 100 && tail.last().unwrap() == "last");
        // A tail may begin in an older file.
        let (position, tail) = texts(&log, 2 << 20);
        assert!(tail.len() > 900 && position + number(tail.len()) == next + 1, "{}", tail.len());
    }

    #[test]
    fn a_damaged_line_moves_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = LogFile::open(dir.path().to_owned(), 70).unwrap();
        log.append(&[line("one"), line("two"), line("three")]).unwrap();
        let file = dir.path().join("70-1");
        let damaged = fs::read_to_string(&file).unwrap().replace("\"two\"", "\"two");
        fs::write(&file, damaged).unwrap();
        let (position, tail) = texts(&log, 1000);
        assert_eq!((position, tail.len(), tail[2].as_str()), (1, 3, "three"));
    }
}
