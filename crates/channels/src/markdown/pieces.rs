//! From the syntax tree to pieces: words, breaks, and marks that open and close.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd, TextMergeStream};
use url::Url;

use super::{mentions, table};
use crate::contract::Dialect;

/// How deep quotes and lists may be nested; deeper ones are written as if they were not nested further.
const DEEPEST: usize = 6;

/// One step of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A mark begins.
    Open(Mark),
    /// The last mark that began ends.
    Close,
    /// A word with the space after it, or a line of code. Not escaped.
    Text(String),
    /// Between blocks: at least so many newlines.
    Break(usize),
    /// One more line of code.
    Newline,
    /// A line ends here in the source.
    Soft,
    /// A line ends here on purpose.
    Hard,
}

/// What a text is marked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    Paragraph,
    Heading(u8),
    Strong,
    Emphasis,
    Strike,
    Code,
    /// A block of code, and its language.
    Pre(String),
    Quote,
    /// A list, and its first number.
    List(Option<u64>),
    /// An item, and its number.
    Item(Option<u64>),
    Link(String),
    Table,
    Row,
    Cell,
}

/// The pieces of a text.
pub fn of(markdown: &str, dialect: Dialect, longest: usize) -> Vec<Piece> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut reader = Reader::new(dialect, longest);
    for event in TextMergeStream::new(Parser::new_ext(markdown, options)) {
        reader.take(event);
    }
    reader.pieces
}

/// The pieces of a text that is taken letter by letter.
pub fn verbatim(text: &str, dialect: Dialect, longest: usize) -> Vec<Piece> {
    let mut reader = Reader::new(dialect, longest);
    reader.pieces.push(Piece::Open(Mark::Paragraph));
    reader.words(&mentions::neutral(text), &Piece::Hard);
    reader.pieces.push(Piece::Close);
    reader.pieces
}

struct Reader {
    pieces: Vec<Piece>,
    /// For each open tag, what closes it: `false` where nothing was opened.
    open: Vec<Opened>,
    /// The next number of each open list.
    numbers: Vec<Option<u64>>,
    /// The rows of the table that is being read, if the dialect has none of its own.
    table: Option<Vec<Vec<String>>>,
    dialect: Dialect,
    longest_url: usize,
    in_code: bool,
}

enum Opened {
    /// A piece that has to be closed.
    Marked(Mark),
    /// Nothing.
    Bare,
    /// An address that is written after its text, since it is too long for a link.
    Spelled(String),
}

impl Reader {
    fn new(dialect: Dialect, longest: usize) -> Self {
        Self {
            pieces: Vec::new(),
            open: Vec::new(),
            numbers: Vec::new(),
            table: None,
            dialect,
            longest_url: (longest / 4).min(2000),
            in_code: false,
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.in_code => self.code_lines(&text),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => {
                if self.cell().is_some() {
                    return self.text(&text);
                }
                self.pieces.push(Piece::Open(Mark::Code));
                self.words(&text, &Piece::Soft);
                self.pieces.push(Piece::Close);
            }
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::SoftBreak => self.line(Piece::Soft),
            Event::HardBreak => self.line(Piece::Hard),
            Event::Rule => {
                self.block();
                self.pieces.push(Piece::Text("———".to_owned()));
            }
            Event::TaskListMarker(done) => self.text(if done { "☑ " } else { "☐ " }),
            // Not asked for with the options above.
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.text(&text);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let opened = match tag {
            Tag::Paragraph => self.blocked(Mark::Paragraph),
            Tag::Heading { level, .. } => self.blocked(Mark::Heading(level as u8)),
            Tag::BlockQuote(_) => self.nested(Mark::Quote),
            Tag::CodeBlock(kind) => {
                self.in_code = true;
                self.blocked(Mark::Pre(language(&kind)))
            }
            Tag::HtmlBlock => self.blocked(Mark::Paragraph),
            Tag::List(first) => {
                self.numbers.push(first);
                self.listed(Mark::List(first))
            }
            Tag::Item => self.item(),
            Tag::Emphasis => self.inline(Mark::Emphasis),
            Tag::Strong => self.inline(Mark::Strong),
            Tag::Strikethrough => self.inline(Mark::Strike),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.link(&dest_url),
            Tag::Table(_) => self.tabled(),
            Tag::TableHead | Tag::TableRow => self.row(),
            Tag::TableCell => self.celled(),
            _ => Opened::Bare,
        };
        self.open.push(opened);
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::List(_) => drop(self.numbers.pop()),
            TagEnd::CodeBlock => self.in_code = false,
            TagEnd::Table => self.drawn(),
            _ => {}
        }
        match self.open.pop() {
            Some(Opened::Marked(_)) => self.pieces.push(Piece::Close),
            Some(Opened::Spelled(url)) => self.text(&format!(" ({url})")),
            Some(Opened::Bare) | None => {}
        }
    }

    /// A block begins: away from what stands before it.
    fn block(&mut self) {
        match self.pieces.last() {
            None | Some(Piece::Open(Mark::Item(_) | Mark::Quote | Mark::Cell)) => {}
            _ => self.pieces.push(Piece::Break(2)),
        }
    }

    fn blocked(&mut self, mark: Mark) -> Opened {
        self.block();
        self.marked(mark)
    }

    fn marked(&mut self, mark: Mark) -> Opened {
        self.pieces.push(Piece::Open(mark.clone()));
        Opened::Marked(mark)
    }

    fn nested(&mut self, mark: Mark) -> Opened {
        self.block();
        if self.depth() < DEEPEST { self.marked(mark) } else { Opened::Bare }
    }

    fn listed(&mut self, mark: Mark) -> Opened {
        let within = self.open.iter().any(|opened| matches!(opened, Opened::Marked(Mark::Item(_))));
        if within {
            self.pieces.push(Piece::Break(1));
        } else {
            self.block();
        }
        if self.dialect == Dialect::Html { self.marked(mark) } else { Opened::Bare }
    }

    fn item(&mut self) -> Opened {
        self.pieces.push(Piece::Break(1));
        let number = self.numbers.last_mut().and_then(Option::as_mut).map(|next| {
            let this = *next;
            *next = next.saturating_add(1);
            this
        });
        if self.depth() < DEEPEST { self.marked(Mark::Item(number)) } else { Opened::Bare }
    }

    fn depth(&self) -> usize {
        let deep = |opened: &&Opened| matches!(opened, Opened::Marked(Mark::Quote | Mark::Item(_)));
        self.open.iter().filter(deep).count()
    }

    /// Once is enough: bold within bold is bold.
    fn inline(&mut self, mark: Mark) -> Opened {
        let again = self.open.iter().any(|opened| matches!(opened, Opened::Marked(open) if *open == mark));
        if again || self.cell().is_some() { Opened::Bare } else { self.marked(mark) }
    }

    /// A link leads to another page or an address, and nowhere else: in some dialects other words are commands.
    fn link(&mut self, address: &str) -> Opened {
        let within = self.open.iter().any(|opened| matches!(opened, Opened::Marked(Mark::Link(_))));
        let url = Url::parse(address)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https" | "mailto" | "tel"));
        match url {
            _ if within => Opened::Bare,
            Some(url) if url.as_str().len() <= self.longest_url && self.cell().is_none() => {
                self.marked(Mark::Link(url.into()))
            }
            Some(url) => Opened::Spelled(url.into()),
            None if address.is_empty() => Opened::Bare,
            None => Opened::Spelled(address.to_owned()),
        }
    }

    fn tabled(&mut self) -> Opened {
        self.block();
        if self.dialect == Dialect::Html {
            return self.marked(Mark::Table);
        }
        self.table = Some(Vec::new());
        Opened::Bare
    }

    fn row(&mut self) -> Opened {
        match &mut self.table {
            Some(rows) => {
                rows.push(Vec::new());
                Opened::Bare
            }
            None => self.marked(Mark::Row),
        }
    }

    fn celled(&mut self) -> Opened {
        match self.table.as_mut().and_then(|rows| rows.last_mut()) {
            Some(row) => {
                row.push(String::new());
                Opened::Bare
            }
            None => self.marked(Mark::Cell),
        }
    }

    /// The cell that is being read, if its table becomes lines of text.
    fn cell(&mut self) -> Option<&mut String> {
        self.table.as_mut()?.last_mut()?.last_mut()
    }

    /// A table that the dialect doesn't have becomes a block of aligned text.
    fn drawn(&mut self) {
        if let Some(rows) = self.table.take() {
            self.pieces.push(Piece::Open(Mark::Pre(String::new())));
            self.code_lines(&table::draw(&rows));
            self.pieces.push(Piece::Close);
        }
    }

    fn line(&mut self, piece: Piece) {
        match self.cell() {
            Some(cell) => cell.push(' '),
            None => self.pieces.push(piece),
        }
    }

    fn text(&mut self, text: &str) {
        let text = mentions::neutral(text);
        match self.cell() {
            Some(cell) => cell.push_str(&text),
            None => self.words(&text, &Piece::Soft),
        }
    }

    /// Words, with `newline` between their lines.
    fn words(&mut self, text: &str, newline: &Piece) {
        for (nth, line) in text.split('\n').enumerate() {
            if nth > 0 {
                self.pieces.push(newline.clone());
            }
            let words = line.split_inclusive(' ').map(|word| Piece::Text(word.to_owned()));
            self.pieces.extend(words);
        }
    }

    fn code_lines(&mut self, text: &str) {
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

/// The first word after a fence, if it may be the name of a language.
fn language(kind: &CodeBlockKind<'_>) -> String {
    let CodeBlockKind::Fenced(info) = kind else { return String::new() };
    let word = info.split([' ', ',']).next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '#' | '_');
    if word.len() <= 24 && word.chars().all(is_name) { word.to_owned() } else { String::new() }
}
