//! From the syntax tree to pieces: words, breaks, and marks that open and close.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd, TextMergeStream};
use url::Url;

use super::{
    dialect::{form, plain},
    mentions,
    nests::Bounded,
    table,
};
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

/// The pieces of a text, and which of its escapes are in code, so that nothing needs them.
pub fn of(markdown: &Bounded<'_>, dialect: Dialect, longest: usize) -> (Vec<Piece>, Vec<usize>) {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut reader = Reader::new(dialect, longest);
    // An address that is defined once can be referred to any number of times.
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
        reader.take(event);
    }
    (reader.pieces, needless)
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
    /// For each open tag, what closes it. Agents may nest as many as they like.
    open: Vec<Opened>,
    /// The marks among them. Those are few, however deep the source is.
    marks: Vec<Mark>,
    /// The next number of each open list.
    numbers: Vec<Option<u64>>,
    /// The rows of the table that is being read, if the dialect has none of its own.
    table: Option<Vec<Vec<String>>>,
    dialect: Dialect,
    /// How long the marks of a link may be: each part that it reaches into repeats them.
    longest_link: usize,
    /// How many bytes of addresses may still be written.
    addresses_left: usize,
    in_code: bool,
}

enum Opened {
    /// A mark that has to be closed.
    Marked,
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
            marks: Vec::new(),
            numbers: Vec::new(),
            table: None,
            dialect,
            longest_link: (longest / 4).min(2000),
            addresses_left: 0,
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
            Some(Opened::Marked) => {
                self.marks.pop();
                self.pieces.push(Piece::Close);
            }
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
        self.marks.push(mark);
        Opened::Marked
    }

    fn nested(&mut self, mark: Mark) -> Opened {
        self.block();
        if self.depth() < DEEPEST { self.marked(mark) } else { Opened::Bare }
    }

    fn listed(&mut self, mark: Mark) -> Opened {
        let within = self.marks.iter().any(|mark| matches!(mark, Mark::Item(_)));
        if within {
            self.pieces.push(Piece::Break(1));
        } else {
            self.block();
        }
        if self.dialect == Dialect::Html && self.depth() < DEEPEST { self.marked(mark) } else { Opened::Bare }
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
        self.marks.iter().filter(|mark| matches!(mark, Mark::Quote | Mark::Item(_))).count()
    }

    /// Once is enough: bold within bold is bold.
    fn inline(&mut self, mark: Mark) -> Opened {
        if self.marks.contains(&mark) || self.cell().is_some() { Opened::Bare } else { self.marked(mark) }
    }

    /// A link leads to another page or an address, and nowhere else: in some dialects other words are commands.
    fn link(&mut self, address: &str) -> Opened {
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
                if is_short && self.cell().is_none() { self.marked(mark) } else { Opened::Spelled(url) }
            }
            None if address.is_empty() => Opened::Bare,
            None => Opened::Spelled(address.to_owned()),
        }
    }

    /// How long the marks of a link are where they are longer: in the dialect, which may have to escape some of the address, or
    /// in the text beside it.
    fn link_length(&self, link: &Mark) -> usize {
        form(self.dialect, link, &[]).at_most().max(plain(link).at_most())
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
