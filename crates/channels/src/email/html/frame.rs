//! Words in lines, and what lines stand in: cells, rows, items and quotes.

use super::{super::texts::is_visible, look::STRUCK};

/// The longest cell that is put into one line with others, in bytes and lines.
const CELL: (usize, usize) = (200, 3);

/// The longest item whose lines are indented, in bytes: a stranger's mail may nest millions of short lines.
const LONG: usize = 256 << 10;

/// What a frame stands for.
#[derive(Debug)]
pub enum Holds {
    Lines,
    Quote,
    /// An item of a list, with its number or dash.
    Item(String),
    /// A row: the cells that are over.
    Row(Vec<String>),
    Cell,
}

/// Words that are laid out by themselves, and then put into what is around them.
#[derive(Debug)]
pub struct Frame {
    holds: Holds,
    text: String,
    /// How many lines end before the next word.
    ends: usize,
    /// Whether a space stands before the next word.
    space: bool,
    /// How far the present line, which has no words yet, is moved to the right.
    indent: usize,
    /// Whether the present line is empty on purpose.
    is_blank: bool,
    /// Whether the next words are struck, and the last ones are marked so and may go on.
    is_struck: bool,
    is_marked: bool,
}

impl Frame {
    pub const fn new(holds: Holds) -> Self {
        Self {
            holds,
            text: String::new(),
            ends: 0,
            space: false,
            indent: 0,
            is_blank: false,
            is_struck: false,
            is_marked: false,
        }
    }

    pub const fn is_row(&self) -> bool {
        matches!(self.holds, Holds::Row(_))
    }

    /// Whether it is a quote that has no words yet.
    pub const fn is_new_quote(&self) -> bool {
        matches!(self.holds, Holds::Quote) && self.text.is_empty()
    }

    /// Whether lines in both get the same kind of marks.
    pub const fn marks_like(&self, other: &Self) -> bool {
        matches!((&self.holds, &other.holds), (Holds::Quote, Holds::Quote) | (Holds::Item(_), Holds::Item(_)))
    }

    /// A quote whose first words are not those of another mail's header is none: people draw lines, too. Who quotes in another language
    /// has other labels, and names a time and a recipient beside the sender.
    pub fn check_header(&mut self) {
        let label = |line: &str| {
            let label = line.split_once([':', '：']).map_or("", |(label, _)| label.trim()).to_lowercase();
            (!label.is_empty() && label.chars().count() <= 30).then_some(label)
        };
        let labels: Vec<_> = self.text.lines().filter_map(label).collect();
        let is_sure = labels.iter().any(|label| matches!(&**label, "sent" | "date" | "subject"));
        // Three lines at least, where the language is unknown.
        let is_header = labels.len() >= 3 || labels.len() > 1 && is_sure;
        if matches!(self.holds, Holds::Quote) && !is_header {
            self.holds = Holds::Lines;
        }
    }

    /// The empty cells that a row has where it has none of its own. Returns how many there are now.
    pub fn fill_row(&mut self, empty: usize) -> usize {
        let Holds::Row(cells) = &mut self.holds else { return 0 };
        cells.extend(std::iter::repeat_n(String::new(), empty));
        cells.len()
    }

    pub const fn len(&self) -> usize {
        self.text.len()
    }

    pub fn text(self) -> String {
        self.ended().1
    }

    /// The next words are struck, or not. Each line of struck words has marks of its own.
    pub fn strike(&mut self, is_struck: bool) {
        self.is_struck = is_struck;
        if !is_struck {
            self.end_mark();
        }
    }

    fn end_mark(&mut self) {
        if std::mem::take(&mut self.is_marked) {
            self.text.push_str(STRUCK);
        }
    }

    /// Adds words, between which blanks are one space.
    pub fn words(&mut self, words: &str) {
        // In Japanese, it is a letter's width and part of the text.
        let is_blank = |c: char| c.is_whitespace() && c != '\u{3000}';
        let before = self.text.len();
        self.space |= words.starts_with(is_blank);
        let mut blanks = words.chars().filter(|c| is_blank(*c));
        for (nth, word) in words.split(is_blank).enumerate() {
            if nth > 0 {
                self.space = true;
                self.move_right(blanks.next());
            }
            if word.chars().any(is_visible) {
                self.push(word);
            } else if !word.is_empty() {
                // What fills the line after a preheader.
                self.indent = 0;
            }
        }
        let is_fresh = self.is_fresh();
        self.is_blank |= is_fresh && self.text.len() == before && words.contains('\u{a0}');
    }

    /// Whether the present line has no words yet.
    const fn is_fresh(&self) -> bool {
        self.ends > 0 || self.text.is_empty()
    }

    /// A blank moves what a line begins with to the right, if it is a no-break space or follows one. In the first line of a cell or item
    /// it only keeps a distance.
    fn move_right(&mut self, blank: Option<char>) {
        let is_first = self.text.is_empty() && matches!(self.holds, Holds::Cell | Holds::Item(_));
        if self.is_fresh() && !is_first && (blank == Some('\u{a0}') || self.indent > 0) {
            self.indent = (self.indent + 1).min(80);
        }
    }

    /// Adds lines as they are.
    pub fn lines(&mut self, lines: &str) {
        for (nth, line) in lines.split('\n').enumerate() {
            if nth > 0 && !self.text.is_empty() {
                self.ends += 1;
            }
            let line = line.trim_end_matches('\r');
            if !line.is_empty() {
                self.space = false;
                self.push(line);
            }
        }
    }

    fn push(&mut self, word: &str) {
        if self.ends > 0 {
            self.end_mark();
        }
        if !self.text.is_empty() {
            self.text.extend(std::iter::repeat_n('\n', self.ends));
            if self.ends == 0 && self.space {
                self.text.push(' ');
            }
        }
        self.text.extend(std::iter::repeat_n(' ', self.indent));
        (self.ends, self.space, self.indent, self.is_blank) = (0, false, 0, false);
        if self.is_struck && !std::mem::replace(&mut self.is_marked, true) {
            self.text.push_str(STRUCK);
        }
        // Where a word may be cut, nothing is shown.
        let shown = word.chars().filter(|c| !matches!(c, '\u{ad}' | '\u{34f}' | '\u{200b}' | '\u{feff}'));
        self.text.extend(shown.map(|c| if c == '\u{a0}' { ' ' } else { c }));
    }

    /// What follows is so many lines apart.
    pub fn gap(&mut self, gap: usize) {
        if gap == 0 {
            return;
        }
        (self.space, self.indent) = (false, 0);
        if !self.text.is_empty() {
            self.ends = self.ends.max(gap);
            if std::mem::take(&mut self.is_blank) {
                self.ends = self.ends.max(2);
            }
        }
    }

    pub fn line_break(&mut self) {
        (self.space, self.indent) = (false, 0);
        if !self.text.is_empty() {
            self.ends = (self.ends + 1).min(2);
        }
    }

    pub fn rule(&mut self) {
        self.strike(false);
        self.gap(1);
        if !self.text.is_empty() {
            self.push("---");
            self.gap(1);
        }
    }

    /// Words that began here lead to this address. If there are none, it stands for a picture.
    pub fn link(&mut self, from: usize, href: &str, is_picture: bool) {
        let words = self.text.get(from..).unwrap_or_default();
        let words = words.trim_matches(|c: char| c.is_whitespace() || c == '~');
        if words.is_empty() {
            if let Some(address) = address(href, "").filter(|_| is_picture) {
                self.words(&address);
            }
            return;
        }
        if let Some(address) = address(href, words) {
            self.text.push_str(" (");
            self.text.push_str(&address);
            self.text.push(')');
        }
    }

    fn ended(mut self) -> (Holds, String) {
        self.end_mark();
        (self.holds, self.text)
    }

    /// Adds what stood in a frame of its own, marked as what it is.
    pub fn take(&mut self, frame: Self, is_marked: bool) {
        let (holds, text) = frame.ended();
        match holds {
            Holds::Quote | Holds::Item(_) if !is_marked => self.block(&text, 1),
            Holds::Cell => match &mut self.holds {
                Holds::Row(cells) => cells.push(text),
                _ => self.block(&text, 1),
            },
            Holds::Row(cells) => {
                self.block(&text, 1);
                self.row(cells);
            }
            Holds::Quote => {
                let quoted: Vec<_> = text.lines().map(marked).collect();
                self.block(&quoted.join("\n"), 1);
                self.gap(2);
            }
            Holds::Item(sign) if text.len() > LONG => self.block(&(sign + &text), 1),
            Holds::Item(sign) => {
                let next = format!("\n{}", " ".repeat(sign.len()));
                let text = if text.is_empty() { text } else { sign + &text.replace('\n', &next) };
                self.block(&text.replace(&format!("{next}\n"), "\n\n"), 1);
            }
            Holds::Lines => self.block(&text, 1),
        }
    }

    /// Adds the cells of a row: in one line with tabs between them, or those with many lines one below the other.
    fn row(&mut self, mut cells: Vec<String>) {
        while cells.last().is_some_and(String::is_empty) {
            cells.pop();
        }
        let mut filled = cells.iter().filter(|cell| !cell.is_empty());
        if let (Some(only), None) = (filled.next(), filled.next()) {
            let gap = if only.contains('\n') { 2 } else { 1 };
            return self.block(&only.clone(), gap);
        }
        let is_short =
            |cell: &String| cell.len() <= CELL.0 && cell.lines().count() <= CELL.1 && !cell.contains("\n\n");
        if cells.iter().all(is_short) {
            let cells: Vec<_> = cells.iter().map(|cell| cell.replace('\n', " / ")).collect();
            return self.block(&cells.join("\t"), 1);
        }
        let mut line: Vec<&str> = Vec::new();
        for cell in &cells {
            if cell.contains('\n') {
                self.block(&std::mem::take(&mut line).join("\t"), 1);
                self.block(cell, 2);
            } else if !cell.is_empty() {
                line.push(cell);
            }
        }
        self.block(&line.join("\t"), 1);
    }

    /// Adds lines that stand by themselves.
    fn block(&mut self, text: &str, gap: usize) {
        self.gap(gap);
        if text.is_empty() {
            return;
        }
        self.end_mark();
        if !self.text.is_empty() {
            self.text.extend(std::iter::repeat_n('\n', self.ends));
        }
        (self.ends, self.space, self.indent, self.is_blank) = (0, false, 0, false);
        self.text.push_str(text);
        self.gap(gap);
    }
}

fn marked(line: &str) -> String {
    let space = if line.is_empty() || line.starts_with('>') { "" } else { " " };
    format!(">{space}{line}")
}

/// The address of a link, unless its words are it, or it leads nowhere outside.
fn address(href: &str, words: &str) -> Option<String> {
    let href: String = href.chars().filter(|c| !c.is_control()).collect();
    let href = href.trim();
    let (scheme, rest) = href.split_once(':')?;
    match &*scheme.to_ascii_lowercase() {
        "http" | "https" | "ftp" => (plain(words) != plain(href)).then(|| href.to_owned()),
        "mailto" => {
            let address = rest.split('?').next().unwrap_or_default().trim();
            let is_said = words.to_lowercase().contains(&address.to_lowercase());
            (!address.is_empty() && !is_said).then(|| address.to_owned())
        }
        "tel" | "sms" | "callto" => {
            let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
            let is_said = digits(words).ends_with(digits(rest).trim_start_matches('0'));
            (!is_said).then(|| rest.to_owned())
        }
        _ => None,
    }
}

/// An address without what people leave out.
fn plain(address: &str) -> String {
    let address = address.trim();
    let address = address.split_once("://").map_or(address, |(_, rest)| rest);
    // The case of what follows the host counts.
    let (host, path) = address.split_at(address.find('/').unwrap_or(address.len()));
    format!("{}{}", host.to_ascii_lowercase().trim_start_matches("www."), path.trim_end_matches('/'))
}
