//! Writes pieces in a dialect, and splits them into parts.

use unicode_segmentation::UnicodeSegmentation;

use super::{
    dialect::{Form, escape, form, plain},
    pieces::{Mark, Piece},
};
use crate::contract::{Dialect, Longest, Rendered, Unit};

/// Maximum parts of one text.
pub const MAX_PARTS: usize = 100;
/// The last part of a longer text.
const REST: &str = "… The rest of this message is in the panel.";

/// Writes all parts, up to the maximum.
pub fn write(pieces: &[Piece], dialect: Dialect, longest: Longest) -> Vec<Rendered> {
    let mut writer =
        Writer { dialect, longest, parts: Vec::new(), part: Part::new(longest.unit), checkpoint: None };
    let mut next = 0;
    while let Some(piece) = pieces.get(next)
        && !writer.has_too_many()
    {
        next = writer.write_piece(piece, next);
    }
    writer.finish();
    if writer.has_too_many() {
        writer.refer_to_rest();
    }
    writer.parts
}

struct Writer {
    dialect: Dialect,
    longest: Longest,
    parts: Vec<Rendered>,
    part: Part,
    /// A possible end of the current part.
    checkpoint: Option<Checkpoint>,
}

/// The end of a block: the length of both texts there, in bytes and in the vendor's unit.
struct Checkpoint {
    marked: (usize, usize),
    plain: (usize, usize),
    open: Vec<Open>,
    /// The following piece.
    next: usize,
}

impl Writer {
    /// Writes one piece. Returns the index of the next one.
    fn write_piece(&mut self, piece: &Piece, at: usize) -> usize {
        match piece {
            Piece::Open(mark) => self.part.open_mark(self.dialect, mark),
            Piece::Close => self.part.close_mark(),
            Piece::Break(count) => {
                if *count > 1 {
                    self.checkpoint = Some(self.part.checkpoint(at));
                }
                self.part.newlines = self.part.newlines.max(*count);
            }
            Piece::Newline | Piece::Soft => self.part.newlines += 1,
            Piece::Hard => {
                self.part.newlines += 1;
                self.part.hard += 1;
            }
            Piece::Text(text) => return self.write_text(text, at),
        }
        at + 1
    }

    fn write_text(&mut self, text: &str, at: usize) -> usize {
        if self.part.fits(self.dialect, text, self.longest.count) {
            self.part.write(self.dialect, text);
            return at + 1;
        }
        match self.checkpoint.take() {
            // The end of the last block is a better place; the pieces after it are written again.
            Some(checkpoint) if checkpoint.plain.1 * 2 >= self.longest.count => {
                let next = checkpoint.next;
                self.part.roll_back(checkpoint);
                self.break_part();
                next
            }
            _ if !self.part.is_empty() => {
                self.break_part();
                at
            }
            _ => {
                self.split_word(text);
                at + 1
            }
        }
    }

    /// Splits a word that is longer than a part.
    fn split_word(&mut self, text: &str) {
        for cluster in text.graphemes(true) {
            if self.has_too_many() {
                return;
            }
            // A cluster can have any length, but people's are short.
            let is_whole = cluster.len() <= 64;
            let each =
                if is_whole { vec![cluster] } else { cluster.split_inclusive(|_: char| true).collect() };
            for unit in each {
                if !self.part.is_empty() && !self.part.fits(self.dialect, unit, self.longest.count) {
                    self.break_part();
                }
                self.part.write(self.dialect, unit);
            }
        }
    }

    /// Ends this part and begins the next one with the same marks.
    fn break_part(&mut self) {
        let mut open = self.part.open.clone();
        for open in &mut open {
            open.is_continued |= open.is_written;
            open.is_written = false;
        }
        self.finish();
        self.part.open = open;
        self.checkpoint = None;
    }

    fn has_too_many(&self) -> bool {
        self.parts.len() > MAX_PARTS
    }

    /// Replaces the last parts by a reference to the rest.
    fn refer_to_rest(&mut self) {
        self.parts.truncate(MAX_PARTS - 1);
        self.part.open_mark(self.dialect, &Mark::Paragraph);
        self.part.write(self.dialect, REST);
        self.finish();
    }

    fn finish(&mut self) {
        let mut part = std::mem::replace(&mut self.part, Part::new(self.longest.unit));
        while !part.open.is_empty() {
            part.close_mark();
        }
        let (text, plain) = (part.marked.text.trim_end(), part.plain.text.trim_end());
        if !plain.is_empty() {
            self.parts.push(Rendered { text: text.to_owned(), plain: plain.to_owned() });
        }
    }
}

/// A text with its length.
#[derive(Clone)]
struct Text {
    text: String,
    count: usize,
    unit: Unit,
}

impl Text {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.count += self.unit.length(text);
    }

    fn end(&self) -> (usize, usize) {
        (self.text.len(), self.count)
    }

    fn truncate(&mut self, (end, count): (usize, usize)) {
        self.text.truncate(end);
        self.count = count;
    }

    /// Inserts before trailing spaces: some dialects don't recognize a closing mark after a space.
    fn push_before_spaces(&mut self, text: &str) {
        let end = self.text.trim_end_matches(' ').len();
        self.text.insert_str(end, text);
        self.count += self.unit.length(text);
    }
}

/// The current part.
struct Part {
    marked: Text,
    plain: Text,
    open: Vec<Open>,
    /// Pending newlines before the next text.
    newlines: usize,
    /// The intended ones among them.
    hard: usize,
}

/// An open mark. Written only with its first text, so that none is empty.
#[derive(Clone)]
struct Open {
    mark: Mark,
    form: Form,
    plain: Form,
    is_written: bool,
    is_continued: bool,
}

impl Part {
    fn new(unit: Unit) -> Self {
        let text = Text { text: String::new(), count: 0, unit };
        Self { marked: text.clone(), plain: text, open: Vec::new(), newlines: 0, hard: 0 }
    }

    fn is_empty(&self) -> bool {
        self.plain.count == 0
    }

    fn checkpoint(&self, next: usize) -> Checkpoint {
        Checkpoint { marked: self.marked.end(), plain: self.plain.end(), open: self.open.clone(), next }
    }

    fn roll_back(&mut self, checkpoint: Checkpoint) {
        self.marked.truncate(checkpoint.marked);
        self.plain.truncate(checkpoint.plain);
        self.open = checkpoint.open;
        (self.newlines, self.hard) = (0, 0);
    }

    fn open_mark(&mut self, dialect: Dialect, mark: &Mark) {
        let inside: Vec<_> = self.open.iter().map(|open| open.mark.clone()).collect();
        let (form, plain) = (form(dialect, mark, &inside), plain(mark));
        self.open.push(Open { mark: mark.clone(), form, plain, is_written: false, is_continued: false });
    }

    fn close_mark(&mut self) {
        let Some(closed) = self.open.pop() else { return };
        if matches!(closed.mark, Mark::Pre(_)) {
            self.newlines = 0;
        }
        if closed.is_written {
            match closed.mark {
                Mark::Strong | Mark::Emphasis | Mark::Strike | Mark::Heading(_) => {
                    self.marked.push_before_spaces(&closed.form.close);
                }
                _ => self.marked.push(&closed.form.close),
            }
            self.plain.push(&closed.plain.close);
        }
    }

    /// Whether a text fits, with the pending newlines and all closing marks.
    fn fits(&self, dialect: Dialect, text: &str, longest: usize) -> bool {
        self.max_length(text) <= longest || self.fits_exactly(dialect, text, longest)
    }

    /// Upper bound of the part's length with a text: quick, since most texts are far from the end.
    fn max_length(&self, text: &str) -> usize {
        // The longest escape of one byte is `&quot;`, of a newline `<br>` and itself.
        let marks: usize =
            self.open.iter().map(|open| open.form.max_length().max(open.plain.max_length())).sum();
        self.marked.count.max(self.plain.count) + text.len() * 6 + (marks + 5) * (1 + self.newlines)
    }

    fn fits_exactly(&self, dialect: Dialect, text: &str, longest: usize) -> bool {
        let mut added = Self {
            open: self.open.clone(),
            newlines: self.newlines,
            hard: self.hard,
            ..Self::new(self.plain.unit)
        };
        added.write_after(self.is_empty(), dialect, text);
        while !added.open.is_empty() {
            added.close_mark();
        }
        let plain = self.plain.count + added.plain.count;
        let marked = match self.plain.unit {
            Unit::Characters => self.marked.count + added.marked.count <= longest,
            // Telegram rejects longer texts before it parses the marks.
            Unit::VisibleUtf16 => self.marked.text.len() + added.marked.text.len() <= 32_768,
        };
        plain <= longest && marked
    }

    fn write(&mut self, dialect: Dialect, text: &str) {
        self.write_after(self.is_empty(), dialect, text);
    }

    fn write_after(&mut self, nothing: bool, dialect: Dialect, text: &str) {
        let (newlines, hard) = (std::mem::take(&mut self.newlines), std::mem::take(&mut self.hard));
        if !nothing {
            self.write_newlines(dialect, newlines, hard);
        }
        for open in self.open.iter_mut().filter(|open| !open.is_written) {
            self.marked.push(open.form.opening(open.is_continued));
            self.plain.push(open.plain.opening(open.is_continued));
            open.is_written = true;
        }
        let in_code = self.open.iter().any(|open| matches!(open.mark, Mark::Code | Mark::Pre(_)));
        self.marked.push(&escape(dialect, text, in_code));
        self.plain.push(text);
    }

    /// Writes newlines, with each line's prefixes.
    fn write_newlines(&mut self, dialect: Dialect, newlines: usize, hard: usize) {
        let prefix = |form: fn(&Open) -> &Form| -> String {
            self.open.iter().filter(|open| open.is_written).map(|open| form(open).prefix.as_ref()).collect()
        };
        let (marked, plain) = (prefix(|open| &open.form), prefix(|open| &open.plain));
        for nth in 0..newlines {
            if nth < hard && dialect == Dialect::Html {
                self.marked.push("<br>");
            }
            self.marked.push("\n");
            self.marked.push(&marked);
            self.plain.push("\n");
            self.plain.push(&plain);
        }
    }
}
