//! From the syntax tree to pieces: text, breaks, and marks that open and close.

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd, TextMergeStream};
use url::Url;

use super::{
    dialect::{form, plain},
    mentions,
    nesting::LimitedMarkdown,
    table,
};
use crate::contract::Dialect;

/// Shown nesting of quotes and lists; deeper levels are flattened.
const DEEPEST: usize = 6;

/// An element of a rendered text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Open(Mark),
    /// Closes the innermost mark.
    Close,
    /// A word with its trailing space, or a line of code. Not escaped.
    Text(String),
    /// Between blocks: at least this many newlines.
    Break(usize),
    /// A newline in code.
    Newline,
    /// A line break of the source.
    Soft,
    /// An intended line break.
    Hard,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    Paragraph,
    Heading(u8),
    Strong,
    Emphasis,
    Strike,
    Code,
    /// A code block with its language.
    Pre(String),
    Quote,
    /// A list with its first number.
    List(Option<u64>),
    /// An item with its number.
    Item(Option<u64>),
    Link(String),
    Table,
    Row,
    Cell,
}

/// The pieces of a text, and the escapes inside code, which are unneeded there.
pub fn parse(markdown: &LimitedMarkdown<'_>, dialect: Dialect, longest: usize) -> (Vec<Piece>, Vec<usize>) {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut reader = Reader::new(dialect, longest);
    // Bounded, since a link defined once can be referenced any number of times.
    reader.addresses_left = 10_000 + 2 * markdown.text.len();
    let (mut is_code, mut needless) = (false, Vec::new());
    let events = Parser::new_ext(&markdown.text, options).into_offset_iter().map(|(event, part)| {
        is_code = match event {
            Event::Start(Tag::CodeBlock(_)) => true,
            Event::End(TagEnd::CodeBlock) => false,
            _ => is_code,
        };
        match event {
            Event::Text(code) if is_code => {
                needless.extend(markdown.escapes(&part));
                Event::Text(markdown.code(code, &part))
            }
            event => event,
        }
    });
    for event in TextMergeStream::new(events) {
        reader.read_event(event);
    }
    (reader.pieces, needless)
}

pub fn parse_literal(text: &str, dialect: Dialect, longest: usize) -> Vec<Piece> {
    let mut reader = Reader::new(dialect, longest);
    reader.pieces.push(Piece::Open(Mark::Paragraph));
    reader.add_words(&mentions::neutralize(text), &Piece::Hard);
    reader.pieces.push(Piece::Close);
    reader.pieces
}

struct Reader {
    pieces: Vec<Piece>,
    /// How to close each open tag. Agents may nest any number.
    open: Vec<Opened>,
    /// The open marks: few, however deep the source is.
    marks: Vec<Mark>,
    /// The next number of each open list.
    numbers: Vec<Option<u64>>,
    /// Rows of the current table, if the dialect has no tables.
    table: Option<Vec<Vec<String>>>,
    dialect: Dialect,
    /// Maximum length of a link's marks: each part with the link repeats them.
    longest_link: usize,
    /// Remaining bytes for addresses.
    addresses_left: usize,
    in_code: bool,
}

enum Opened {
    Marked,
    Bare,
    /// An address written after its text, because it is too long for a link.
    Spelled(String),
}

impl Reader {
    fn new(dialect: Dialect, longest: usize) -> Self {
        Self {
            pieces: Vec::new(),
            open: Vec::new(),
            marks: Vec::new(),
            numbers: Vec::new(),
            table: None,
            dialect,
            longest_link: (longest / 4).min(2000),
            addresses_left: 0,
            in_code: false,
        }
    }

    fn read_event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.open_tag(tag),
            Event::End(tag) => self.close_tag(tag),
            Event::Text(text) if self.in_code => self.add_code_lines(&text),
            Event::Text(text) => self.add_text(&text),
            Event::Code(text) => {
                if self.cell().is_some() {
                    return self.add_text(&text);
                }
                self.pieces.push(Piece::Open(Mark::Code));
                self.add_words(&text, &Piece::Soft);
                self.pieces.push(Piece::Close);
            }
            Event::Html(text) | Event::InlineHtml(text) => self.add_text(&text),
            Event::SoftBreak => self.break_line(Piece::Soft),
            Event::HardBreak => self.break_line(Piece::Hard),
            Event::Rule => {
                self.separate_block();
                self.pieces.push(Piece::Text("———".to_owned()));
            }
            Event::TaskListMarker(done) => self.add_text(if done { "☑ " } else { "☐ " }),
            // Not enabled by the options above.
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.add_text(&text);
            }
        }
    }

    fn open_tag(&mut self, tag: Tag<'_>) {
        let opened = match tag {
            Tag::Paragraph => self.open_block(Mark::Paragraph),
            Tag::Heading { level, .. } => self.open_block(Mark::Heading(level as u8)),
            Tag::BlockQuote(_) => self.open_nested(Mark::Quote),
            Tag::CodeBlock(kind) => {
                self.in_code = true;
                self.open_block(Mark::Pre(language(&kind)))
            }
            Tag::HtmlBlock => self.open_block(Mark::Paragraph),
            Tag::List(first) => {
                self.numbers.push(first);
                self.open_list(Mark::List(first))
            }
            Tag::Item => self.open_item(),
            Tag::Emphasis => self.open_inline(Mark::Emphasis),
            Tag::Strong => self.open_inline(Mark::Strong),
            Tag::Strikethrough => self.open_inline(Mark::Strike),
            // Discord shows the marks of a link whose text is an address, and links addresses by itself.
            Tag::Link { link_type: LinkType::Autolink | LinkType::Email, .. }
                if self.dialect == Dialect::Discord =>
            {
                Opened::Bare
            }
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.open_link(&dest_url),
            Tag::Table(_) => self.open_table(),
            Tag::TableHead | Tag::TableRow => self.open_row(),
            Tag::TableCell => self.open_cell(),
            _ => Opened::Bare,
        };
        self.open.push(opened);
    }

    fn close_tag(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::List(_) => drop(self.numbers.pop()),
            TagEnd::CodeBlock => self.in_code = false,
            TagEnd::Table => self.close_table(),
            _ => {}
        }
        match self.open.pop() {
            Some(Opened::Marked) => {
                self.marks.pop();
                self.pieces.push(Piece::Close);
            }
            Some(Opened::Spelled(url)) => self.add_text(&format!(" ({url})")),
            Some(Opened::Bare) | None => {}
        }
    }

    /// Separates a block from the one before.
    fn separate_block(&mut self) {
        match self.pieces.last() {
            None | Some(Piece::Open(Mark::Item(_) | Mark::Quote | Mark::Cell)) => {}
            _ => self.pieces.push(Piece::Break(2)),
        }
    }

    fn open_block(&mut self, mark: Mark) -> Opened {
        self.separate_block();
        self.open_mark(mark)
    }

    fn open_mark(&mut self, mark: Mark) -> Opened {
        self.pieces.push(Piece::Open(mark.clone()));
        self.marks.push(mark);
        Opened::Marked
    }

    fn open_nested(&mut self, mark: Mark) -> Opened {
        self.separate_block();
        if self.depth() < DEEPEST { self.open_mark(mark) } else { Opened::Bare }
    }

    fn open_list(&mut self, mark: Mark) -> Opened {
        let within = self.marks.iter().any(|mark| matches!(mark, Mark::Item(_)));
        if within {
            self.pieces.push(Piece::Break(1));
        } else {
            self.separate_block();
        }
        if self.dialect == Dialect::Html && self.depth() < DEEPEST {
            self.open_mark(mark)
        } else {
            Opened::Bare
        }
    }

    fn open_item(&mut self) -> Opened {
        self.pieces.push(Piece::Break(1));
        let number = self.numbers.last_mut().and_then(Option::as_mut).map(|next| {
            let this = *next;
            *next = next.saturating_add(1);
            this
        });
        if self.depth() < DEEPEST { self.open_mark(Mark::Item(number)) } else { Opened::Bare }
    }

    fn depth(&self) -> usize {
        self.marks.iter().filter(|mark| matches!(mark, Mark::Quote | Mark::Item(_))).count()
    }

    /// Nested equal marks are dropped: bold within bold is bold.
    fn open_inline(&mut self, mark: Mark) -> Opened {
        if self.marks.contains(&mark) || self.cell().is_some() { Opened::Bare } else { self.open_mark(mark) }
    }

    /// Links lead only to pages and addresses: in some dialects other targets are commands.
    fn open_link(&mut self, address: &str) -> Opened {
        let within = self.marks.iter().any(|mark| matches!(mark, Mark::Link(_)));
        if within || address.len() > self.addresses_left {
            return Opened::Bare;
        }
        self.addresses_left -= address.len();
        let url = Url::parse(address)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https" | "mailto" | "tel"));
        match url {
            Some(url) => {
                let url = String::from(url);
                let mark = Mark::Link(url.clone());
                let is_short = self.link_length(&mark) <= self.longest_link;
                if is_short && self.cell().is_none() { self.open_mark(mark) } else { Opened::Spelled(url) }
            }
            None if address.is_empty() => Opened::Bare,
            None => Opened::Spelled(address.to_owned()),
        }
    }

    /// The length of a link's marks in the dialect, which may escape the address, or in the plain text: the longer one.
    fn link_length(&self, link: &Mark) -> usize {
        form(self.dialect, link, &[]).max_length().max(plain(link).max_length())
    }

    fn open_table(&mut self) -> Opened {
        self.separate_block();
        if self.dialect == Dialect::Html {
            return self.open_mark(Mark::Table);
        }
        self.table = Some(Vec::new());
        Opened::Bare
    }

    fn open_row(&mut self) -> Opened {
        match &mut self.table {
            Some(rows) => {
                rows.push(Vec::new());
                Opened::Bare
            }
            None => self.open_mark(Mark::Row),
        }
    }

    fn open_cell(&mut self) -> Opened {
        match self.table.as_mut().and_then(|rows| rows.last_mut()) {
            Some(row) => {
                row.push(String::new());
                Opened::Bare
            }
            None => self.open_mark(Mark::Cell),
        }
    }

    /// The current cell, if its table becomes lines of text.
    fn cell(&mut self) -> Option<&mut String> {
        self.table.as_mut()?.last_mut()?.last_mut()
    }

    /// Writes a table as a block of aligned text, if the dialect has no tables.
    fn close_table(&mut self) {
        if let Some(rows) = self.table.take() {
            self.pieces.push(Piece::Open(Mark::Pre(String::new())));
            self.add_code_lines(&table::draw(&rows));
            self.pieces.push(Piece::Close);
        }
    }

    fn break_line(&mut self, piece: Piece) {
        match self.cell() {
            Some(cell) => cell.push(' '),
            None => self.pieces.push(piece),
        }
    }

    fn add_text(&mut self, text: &str) {
        let text = mentions::neutralize(text);
        match self.cell() {
            Some(cell) => cell.push_str(&text),
            None => self.add_words(&text, &Piece::Soft),
        }
    }

    /// Adds text, with `newline` between its lines.
    fn add_words(&mut self, text: &str, newline: &Piece) {
        for (nth, line) in text.split('\n').enumerate() {
            if nth > 0 {
                self.pieces.push(newline.clone());
            }
            let words = line.split_inclusive(' ').map(|word| Piece::Text(word.to_owned()));
            self.pieces.extend(words);
        }
    }

    fn add_code_lines(&mut self, text: &str) {
        for part in text.split_inclusive('\n') {
            let line = part.trim_end_matches(['\n', '\r']);
            if !line.is_empty() {
                self.pieces.push(Piece::Text(line.to_owned()));
            }
            if part.ends_with('\n') {
                self.pieces.push(Piece::Newline);
            }
        }
    }
}

/// The first word after a fence, if it looks like a language.
fn language(kind: &CodeBlockKind<'_>) -> String {
    let CodeBlockKind::Fenced(info) = kind else { return String::new() };
    let word = info.split([' ', ',']).next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '#' | '_');
    if word.len() <= 24 && word.chars().all(is_name) { word.to_owned() } else { String::new() }
}
