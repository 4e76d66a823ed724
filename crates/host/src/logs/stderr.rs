//! Follows an agent's standard error, which its shim writes in two files: the older one is replaced when the newer one
//! is full. The position is saved in a file, so that another host process continues from there.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    mem,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use muster_shim::folder::{self, STDERR, STDERR_BEFORE};
use serde::{Deserialize, Serialize};

/// The longest line that is read as a whole, and the longest word, in bytes: an agent may write without newlines.
const LONGEST: usize = 64 << 10;

/// Text in place of output that was replaced before it was read.
const MISSING: &str =
    "[Some of the standard error is missing: the agent wrote faster than this host read.]\n";

/// Text in place of a word that is too long to be searched for secrets.
const TOO_LONG: &str = "[More than 64 KiB without a space are not in the log.]\n";

/// Reads the standard error of one launch.
#[derive(Debug)]
pub struct StderrReader {
    /// The launch's folder.
    dir: PathBuf,
    /// The file with the position.
    position_file: PathBuf,
    /// The file being read, and how far.
    file: Option<(File, u64)>,
    /// Bytes of an unfinished line.
    rest: Vec<u8>,
    /// Whether to skip to the end of a word whose beginning is missing.
    is_in_word: bool,
}

/// How far a launch's standard error was read.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct ReadPosition {
    generation: i64,
    inode: u64,
    /// When the file was created, where that is known: numbers of inodes are used again.
    created: Option<SystemTime>,
    offset: u64,
}

/// Text that was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StderrText {
    /// Whole lines.
    pub text: String,
    /// Whether there is more.
    pub is_behind: bool,
}

impl StderrReader {
    /// A reader that begins where the last one of this launch ended.
    pub fn new(dir: PathBuf, position_file: PathBuf, generation: i64) -> Self {
        let saved = fs::read(&position_file).ok();
        let position = saved.and_then(|bytes| muster_json::from_slice::<ReadPosition>(&bytes).ok());
        let position = position.filter(|position| position.generation == generation);
        let mut reader = Self { dir, position_file, file: None, rest: Vec::new(), is_in_word: false };
        if let Some(position) = position {
            let names = [STDERR_BEFORE, STDERR].into_iter();
            let found = names.filter_map(|name| reader.open(name).ok()).find(|file| is_at(file, position));
            reader.file = found.map(|file| (file, position.offset));
            if reader.file.is_none() {
                reader.note_missing();
            }
        }
        reader
    }

    /// Reads about 64 KiB; with `all`, as much as both files may hold, and an unfinished last line.
    pub fn read(&mut self, all: bool) -> io::Result<StderrText> {
        let mut buffer = vec![0; LONGEST];
        let (mut read, most) = (0, if all { 16 * LONGEST } else { LONGEST });
        while read < most {
            let count = self.read_some(&mut buffer)?;
            self.add(&buffer[..count]);
            read += count;
            if count == 0 {
                break;
            }
        }
        let end = if all { Some(self.rest.len()) } else { end_of_lines(&self.rest) };
        let end = end.unwrap_or_else(|| {
            self.rest = TOO_LONG.as_bytes().to_vec();
            self.is_in_word = true;
            self.rest.len()
        });
        let later = self.rest.split_off(end);
        let whole = mem::replace(&mut self.rest, later);
        Ok(StderrText { text: String::from_utf8_lossy(&whole).into_owned(), is_behind: read >= LONGEST })
    }

    /// Saves the position. The text before it is in the log.
    pub fn save_position(&self, generation: i64) -> io::Result<()> {
        // Another host process must skip the whole word too.
        let Some((file, offset)) = self.file.as_ref().filter(|_| !self.is_in_word) else { return Ok(()) };
        let offset = offset.saturating_sub(self.rest.len() as u64);
        let found = file.metadata()?;
        let position = ReadPosition { generation, inode: found.ino(), created: found.created().ok(), offset };
        let next = self.position_file.with_extension("next");
        fs::write(&next, serde_json::to_vec(&position)?)?;
        fs::rename(next, &self.position_file)
    }

    /// Reads from the present file, or from the one after it. Returns 0 at the end of the newest.
    fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Of the two files, the present one may just have been replaced.
        for _ in 0..3 {
            if let Some((file, offset)) = &mut self.file {
                // Looked up before reading, so that output from before a replacement is read before the next file.
                let is_newest =
                    self.dir.join(STDERR).symlink_metadata().is_ok_and(|found| is_same(&found, file));
                file.seek(SeekFrom::Start(*offset))?;
                let count = file.read(buffer)?;
                *offset += count as u64;
                if count > 0 || is_newest {
                    return Ok(count);
                }
            }
            let Some(next) = self.next_file()? else { return Ok(0) };
            self.file = Some((next, 0));
        }
        Ok(0)
    }

    /// The file after the present one, which is no longer written.
    fn next_file(&mut self) -> io::Result<Option<File>> {
        let Some(before) = found(self.open(STDERR_BEFORE))? else { return found(self.open(STDERR)) };
        let Some((present, _)) = &self.file else { return Ok(Some(before)) };
        if is_same(&before.metadata()?, present) {
            // The present one is the older one, so the newer one follows.
            return found(self.open(STDERR));
        }
        self.note_missing();
        Ok(Some(before))
    }

    fn note_missing(&mut self) {
        // Nothing of the words at both sides: a part of a secret would not be recognized.
        let end = self.rest.iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1);
        self.rest.truncate(end);
        if !self.rest.is_empty() {
            self.rest.push(b'\n');
        }
        self.rest.extend_from_slice(MISSING.as_bytes());
        self.is_in_word = true;
    }

    /// Adds bytes that were read.
    fn add(&mut self, mut bytes: &[u8]) {
        if self.is_in_word {
            let Some(end) = bytes.iter().position(u8::is_ascii_whitespace) else { return };
            bytes = &bytes[end + 1..];
            self.is_in_word = false;
        }
        self.rest.extend_from_slice(bytes);
    }

    fn open(&self, name: &str) -> io::Result<File> {
        folder::open(&self.dir.join(name))
    }
}

/// A file, if it is there.
fn found(opened: io::Result<File>) -> io::Result<Option<File>> {
    match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

fn is_same(found: &fs::Metadata, file: &File) -> bool {
    file.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino()))
}

fn is_at(file: &File, position: ReadPosition) -> bool {
    file.metadata().is_ok_and(|found| {
        (found.ino(), found.created().ok()) == (position.inode, position.created)
            && found.len() >= position.offset
    })
}

/// Where the last line ends. A line that is too long is cut at a space, because each word of a secret is recognized.
/// `None`: there is none, so its end would be cut off.
fn end_of_lines(bytes: &[u8]) -> Option<usize> {
    let after = |is_end: fn(&u8) -> bool| bytes.iter().rposition(is_end).map(|at| at + 1);
    match after(|byte| *byte == b'\n') {
        Some(end) => Some(end),
        None if bytes.len() < LONGEST => Some(0),
        None => after(u8::is_ascii_whitespace),
    }
}

/// Whether a launch has written anything to its standard error.
pub fn has_output(dir: &Path) -> bool {
    [STDERR, STDERR_BEFORE]
        .iter()
        .any(|name| fs::symlink_metadata(dir.join(name)).is_ok_and(|found| found.len() > 0))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    struct Launch(tempfile::TempDir);

    impl Launch {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn reader(&self) -> StderrReader {
            StderrReader::new(self.0.path().to_owned(), self.0.path().join("read"), 3)
        }

        fn write(&self, text: &str) {
            let file = File::options().append(true).create(true).open(self.0.path().join(STDERR));
            file.unwrap().write_all(text.as_bytes()).unwrap();
        }

        /// The newer file becomes the older one, as the shim does it.
        fn rotate(&self) {
            fs::rename(self.0.path().join(STDERR), self.0.path().join(STDERR_BEFORE)).unwrap();
        }
    }

    fn text(reader: &mut StderrReader) -> String {
        reader.read(false).unwrap().text
    }

    #[test]
    fn whole_lines_are_read_across_a_replaced_file() {
        let launch = Launch::new();
        let mut reader = launch.reader();
        assert_eq!(text(&mut reader), "");
        launch.write("one\ntw");
        assert_eq!(text(&mut reader), "one\n");
        launch.write("o\nthr");
        launch.rotate();
        launch.write("ee\nfour");
        assert_eq!(text(&mut reader), "two\nthree\n");
        assert_eq!(reader.read(true).unwrap().text, "four");
        assert_eq!(text(&mut reader), "");
    }

    #[test]
    fn another_process_goes_on_where_the_last_one_ended() {
        let launch = Launch::new();
        launch.write("one\ntw");
        let mut reader = launch.reader();
        assert_eq!(text(&mut reader), "one\n");
        reader.save_position(3).unwrap();
        drop(reader);
        launch.write("o\n");
        launch.rotate();
        launch.write("three\n");
        let mut reader = launch.reader();
        assert_eq!(text(&mut reader), "two\nthree\n");
        reader.save_position(3).unwrap();
        assert_eq!(text(&mut launch.reader()), "");
        let mut other = StderrReader::new(launch.0.path().to_owned(), launch.0.path().join("read"), 4);
        assert_eq!(text(&mut other), "one\ntwo\nthree\n", "another launch begins at its beginning");
    }

    #[test]
    fn output_replaced_unread_is_reported_as_missing() {
        let launch = Launch::new();
        launch.write("one\ntwo th");
        let mut reader = launch.reader();
        assert_eq!(text(&mut reader), "one\n");
        for round in 0..2 {
            launch.rotate();
            launch.write(&format!("cut later {round}\n"));
        }
        let read = text(&mut reader);
        assert_eq!(read, format!("two \n{MISSING}later 0\ncut later 1\n"));
    }

    #[test]
    fn a_line_without_end_is_read_in_parts_that_end_at_spaces() {
        let launch = Launch::new();
        launch.write(&"word ".repeat(30_000));
        let mut reader = launch.reader();
        let first = reader.read(false).unwrap();
        assert!(first.is_behind && first.text.ends_with("word ") && first.text.len() > 60_000);
        let rest = reader.read(true).unwrap().text;
        assert_eq!(first.text.len() + rest.len(), 150_000);
    }

    #[test]
    fn a_word_without_end_is_left_out() {
        let launch = Launch::new();
        launch.write("one\n");
        let mut reader = launch.reader();
        assert_eq!(text(&mut reader), "one\n");
        reader.save_position(3).unwrap();
        launch.write(&"x".repeat(LONGEST + 9));
        assert_eq!(text(&mut reader), TOO_LONG);
        reader.save_position(3).unwrap();
        assert_eq!(text(&mut launch.reader()), TOO_LONG, "another process begins with the whole word");
        assert_eq!(text(&mut reader), "");
        launch.write("x after\n");
        assert_eq!(text(&mut reader), "after\n");
    }
}
