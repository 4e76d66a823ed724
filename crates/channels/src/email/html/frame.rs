//! Lays out text in lines, inside cells, rows, items and quotes.

use super::{super::body_text::is_visible, element::STRUCK};

/// Maximum cell that shares a line with others, in bytes and lines.
const MAX_SHORT_CELL: (usize, usize) = (200, 3);

/// Maximum item whose lines are indented, in bytes: a stranger's mail may nest millions of short lines.
const MAX_INDENTED: usize = 256 << 10;

/// A frame's element.
#[derive(Debug)]
pub enum FrameKind {
    Lines,
    Quote,
    /// A list item, with its number or dash.
    Item(String),
    /// A row, with its finished cells.
    Row(Vec<String>),
    Cell,
}

/// Words that are laid out separately, and then inserted into the surrounding frame.
#[derive(Debug)]
pub struct Frame {
    kind: FrameKind,
    text: String,
    /// Line ends before the next word.
    ends: usize,
    /// Whether a space precedes the next word.
    space: bool,
    /// Indentation of the current, still empty line.
    indent: usize,
    /// Whether the current line is blank on purpose.
    is_blank: bool,
    /// Whether the next text is struck, and whether a strikethrough is open in the text.
    is_struck: bool,
    is_marked: bool,
}

impl Frame {
    pub const fn new(kind: FrameKind) -> Self {
        Self {
            kind,
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
        matches!(self.kind, FrameKind::Row(_))
    }

    /// Whether this is a quote without text.
    pub const fn is_new_quote(&self) -> bool {
        matches!(self.kind, FrameKind::Quote) && self.text.is_empty()
    }

    /// Whether lines in both frames get the same kind of marks.
    pub const fn marks_like(&self, other: &Self) -> bool {
        matches!(
            (&self.kind, &other.kind),
            (FrameKind::Quote, FrameKind::Quote) | (FrameKind::Item(_), FrameKind::Item(_))
        )
    }

    /// Demotes a quote whose first text is not another mail's header: people draw lines, too. In other languages the
    /// labels differ, but a time and a recipient still accompany the sender.
    pub fn check_header(&mut self) {
        let label = |line: &str| {
            let label = line.split_once([':', '：']).map_or("", |(label, _)| label.trim()).to_lowercase();
            (!label.is_empty() && label.chars().count() <= 30).then_some(label)
        };
        let labels: Vec<_> = self.text.lines().filter_map(label).collect();
        let is_sure = labels.iter().any(|label| matches!(&**label, "sent" | "date" | "subject"));
        // At least three lines, if the language is unknown.
        let is_header = labels.len() >= 3 || labels.len() > 1 && is_sure;
        if matches!(self.kind, FrameKind::Quote) && !is_header {
            self.kind = FrameKind::Lines;
        }
    }

    /// Adds empty cells to a row. Returns the number of cells.
    pub fn fill_row(&mut self, empty: usize) -> usize {
        let FrameKind::Row(cells) = &mut self.kind else { return 0 };
        cells.extend(std::iter::repeat_n(String::new(), empty));
        cells.len()
    }

    pub const fn len(&self) -> usize {
        self.text.len()
    }

    pub fn text(self) -> String {
        self.ended().1
    }

    /// Begins or ends strikethrough. Each line of struck text has its own marks.
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

    /// Adds text, with blanks collapsed.
    pub fn add_words(&mut self, words: &str) {
        // The ideographic space has a letter's width and belongs to the text.
        let is_blank = |c: char| c.is_whitespace() && c != '\u{3000}';
        let before = self.text.len();
        self.space |= words.starts_with(is_blank);
        let mut blanks = words.chars().filter(|c| is_blank(*c));
        for (nth, word) in words.split(is_blank).enumerate() {
            if nth > 0 {
                self.space = true;
                self.indent_line(blanks.next());
            }
            if word.chars().any(is_visible) {
                self.push(word);
            } else if !word.is_empty() {
                // Filler after a preheader.
                self.indent = 0;
            }
        }
        let is_fresh = self.is_fresh();
        self.is_blank |= is_fresh && self.text.len() == before && words.contains('\u{a0}');
    }

    /// Whether the current line is empty.
    const fn is_fresh(&self) -> bool {
        self.ends > 0 || self.text.is_empty()
    }

    /// Indents the beginning of a line for a no-break space, and for blanks after one. In the first line of a cell or
    /// item it is only padding.
    fn indent_line(&mut self, blank: Option<char>) {
        let is_first = self.text.is_empty() && matches!(self.kind, FrameKind::Cell | FrameKind::Item(_));
        if self.is_fresh() && !is_first && (blank == Some('\u{a0}') || self.indent > 0) {
            self.indent = (self.indent + 1).min(80);
        }
    }

    /// Adds preformatted lines.
    pub fn add_lines(&mut self, lines: &str) {
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
        // Soft hyphens and the like are dropped.
        let shown = word.chars().filter(|c| !matches!(c, '\u{ad}' | '\u{34f}' | '\u{200b}' | '\u{feff}'));
        self.text.extend(shown.map(|c| if c == '\u{a0}' { ' ' } else { c }));
    }

    /// Separates the next text by line ends.
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

    pub fn add_line_break(&mut self) {
        (self.space, self.indent) = (false, 0);
        if !self.text.is_empty() {
            self.ends = (self.ends + 1).min(2);
        }
    }

    pub fn add_rule(&mut self) {
        self.strike(false);
        self.gap(1);
        if !self.text.is_empty() {
            self.push("---");
            self.gap(1);
        }
    }

    /// Appends a link's address to its text since `from`. Without text, the address stands for a picture.
    pub fn add_link(&mut self, from: usize, href: &str, is_picture: bool) {
        let words = self.text.get(from..).unwrap_or_default();
        let words = words.trim_matches(|c: char| c.is_whitespace() || c == '~');
        if words.is_empty() {
            if let Some(address) = external_address(href, "").filter(|_| is_picture) {
                self.add_words(&address);
            }
            return;
        }
        if let Some(address) = external_address(href, words) {
            self.text.push_str(" (");
            self.text.push_str(&address);
            self.text.push(')');
        }
    }

    fn ended(mut self) -> (FrameKind, String) {
        self.end_mark();
        (self.kind, self.text)
    }

    /// Inserts a finished frame, with the marks of its element.
    pub fn insert(&mut self, frame: Self, is_marked: bool) {
        let (kind, text) = frame.ended();
        match kind {
            FrameKind::Quote | FrameKind::Item(_) if !is_marked => self.add_block(&text, 1),
            FrameKind::Cell => match &mut self.kind {
                FrameKind::Row(cells) => cells.push(text),
                _ => self.add_block(&text, 1),
            },
            FrameKind::Row(cells) => {
                self.add_block(&text, 1);
                self.add_row(cells);
            }
            FrameKind::Quote => {
                let quoted: Vec<_> = text.lines().map(mark_quote).collect();
                self.add_block(&quoted.join("\n"), 1);
                self.gap(2);
            }
            FrameKind::Item(sign) if text.len() > MAX_INDENTED => self.add_block(&(sign + &text), 1),
            FrameKind::Item(sign) => {
                let next = format!("\n{}", " ".repeat(sign.len()));
                let text = if text.is_empty() { text } else { sign + &text.replace('\n', &next) };
                self.add_block(&text.replace(&format!("{next}\n"), "\n\n"), 1);
            }
            FrameKind::Lines => self.add_block(&text, 1),
        }
    }

    /// Adds a row's cells: on one line with tabs, or below each other if they are long.
    fn add_row(&mut self, mut cells: Vec<String>) {
        while cells.last().is_some_and(String::is_empty) {
            cells.pop();
        }
        let mut filled = cells.iter().filter(|cell| !cell.is_empty());
        if let (Some(only), None) = (filled.next(), filled.next()) {
            let gap = if only.contains('\n') { 2 } else { 1 };
            return self.add_block(&only.clone(), gap);
        }
        let is_short = |cell: &String| {
            cell.len() <= MAX_SHORT_CELL.0
                && cell.lines().count() <= MAX_SHORT_CELL.1
                && !cell.contains("\n\n")
        };
        if cells.iter().all(is_short) {
            let cells: Vec<_> = cells.iter().map(|cell| cell.replace('\n', " / ")).collect();
            return self.add_block(&cells.join("\t"), 1);
        }
        let mut line: Vec<&str> = Vec::new();
        for cell in &cells {
            if cell.contains('\n') {
                self.add_block(&std::mem::take(&mut line).join("\t"), 1);
                self.add_block(cell, 2);
            } else if !cell.is_empty() {
                line.push(cell);
            }
        }
        self.add_block(&line.join("\t"), 1);
    }

    /// Adds separate lines.
    fn add_block(&mut self, text: &str, gap: usize) {
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

fn mark_quote(line: &str) -> String {
    let space = if line.is_empty() || line.starts_with('>') { "" } else { " " };
    format!(">{space}{line}")
}

/// A link's address, unless its text repeats it or it isn't external.
fn external_address(href: &str, words: &str) -> Option<String> {
    let href: String = href.chars().filter(|c| !c.is_control()).collect();
    let href = href.trim();
    let (scheme, rest) = href.split_once(':')?;
    match &*scheme.to_ascii_lowercase() {
        "http" | "https" | "ftp" => {
            (comparable_address(words) != comparable_address(href)).then(|| href.to_owned())
        }
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

/// Normalizes an address for comparison with its text.
fn comparable_address(address: &str) -> String {
    let address = address.trim();
    let address = address.split_once("://").map_or(address, |(_, rest)| rest);
    // Paths are case-sensitive.
    let (host, path) = address.split_at(address.find('/').unwrap_or(address.len()));
    format!("{}{}", host.to_ascii_lowercase().trim_start_matches("www."), path.trim_end_matches('/'))
}
