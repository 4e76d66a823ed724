//! The words of an HTML mail, as a person sees them.
//!
//! A line for each block, row and item; a tab between cells; `> ` before what is quoted; `words (address)` for links. What is not shown
//! is left out. Tags come from a tokenizer that looks at each byte once; this walker keeps no tree, only the elements that are open, so
//! depth, memory and time are bounded.
//!
//! - `look.rs`: what elements are, and what their style says; `unseen.rs`: what is not shown; `frame.rs`: lines, cells, items and quotes.

mod frame;
mod look;
mod unseen;

use std::collections::HashSet;

use html5gum::{
    Span, State, Tokenizer,
    emitters::callback::{CallbackEmitter, CallbackEvent},
};

use self::{
    frame::{Frame, Holds},
    look::{Count, Tag},
    unseen::Unseen,
};
use super::words::percent;
use crate::bounds;

/// How many elements may be open. What is nested deeper is text. Each end tag looks through them, and a stranger may write millions.
const DEPTH: usize = 200;
/// How deep quotes and items are marked. Marks of more would make a stranger's text many times as long.
const MARKS: usize = 6;
/// How much is written, in bytes, of a stranger's text: more than is kept of any.
const MOST: usize = 2 << 20;

/// What the tokenizer is to do next, if it is not what it would do by itself.
enum Next {
    /// What follows is markup, also after the beginning of an element that otherwise holds none.
    Markup,
    /// There is enough.
    Nothing,
}

/// The words of a text in HTML, and whether these are all.
pub fn words(html: &str) -> (String, bool) {
    let mut page = Page::default();
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| page.see(&event));
    emitter.naively_switch_states(true);
    let mut tokenizer = Tokenizer::new_with_emitter(html, emitter);
    while let Some(Ok(Next::Markup)) = tokenizer.next() {
        tokenizer.set_state(State::Data);
    }
    let is_whole = page.written <= MOST;
    (page.finish(), is_whole)
}

/// The beginning of a text in HTML without the pictures that stand in it (`data:image/png;base64,…`): they have no words, and each may
/// be longer than what is read of any text. It has at most one byte more than `most`.
pub fn without_pictures(html: &[u8], most: usize) -> Vec<u8> {
    let mark = b";base64,";
    let (mut kept, mut rest) = (Vec::new(), html);
    while kept.len() <= most && !rest.is_empty() {
        let at = rest.windows(mark.len()).position(|found| found.eq_ignore_ascii_case(mark));
        let (before, after) = rest.split_at(at.map_or(rest.len(), |at| at + mark.len()));
        kept.extend_from_slice(before.get(..most + 1).unwrap_or(before));
        let is_encoded = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=%\r\n".contains(byte);
        let length = after.iter().take_while(|byte| is_encoded(byte)).count();
        // A shorter word can't be a picture.
        let skipped = if length > 1_000 { length } else { 0 };
        rest = after.get(skipped..).unwrap_or_default();
    }
    kept.truncate(most + 1);
    kept
}

/// Adds the ids of the pictures that a text in HTML shows (`cid:…`).
pub fn pictures(html: &[u8], ids: &mut HashSet<Vec<u8>>) {
    let (mark, mut rest) = (b"cid:", html);
    while let Some(at) = rest.windows(mark.len()).position(|found| found.eq_ignore_ascii_case(mark)) {
        rest = rest.get(at + mark.len()..).unwrap_or_default();
        let is_id = |byte: &u8| !byte.is_ascii_whitespace() && !b"\"'<>)&".contains(byte);
        let length = rest.iter().take(bounds::NAME).take_while(|byte| is_id(byte)).count();
        if ids.len() < 500 {
            ids.extend(rest.get(..length).map(|id| percent(id, b'%')));
        }
    }
}

/// The charset that a text in HTML names at its beginning (`<meta charset=…>`).
pub fn charset(html: &[u8]) -> Option<&str> {
    let beginning = html.get(..1_024).unwrap_or(html);
    let word = b"charset=";
    let at = beginning.windows(word.len()).position(|found| found.eq_ignore_ascii_case(word))?;
    let rest = beginning.get(at + word.len()..)?;
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_:.".contains(byte);
    let name = rest.get(..rest.iter().take_while(|byte| is_name(byte)).count())?;
    let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty())?;
    // In UTF-16, these words would not have been found.
    let is_wide = ["utf-16", "unicode"].iter().any(|wide| name.to_ascii_lowercase().starts_with(wide));
    (!is_wide).then_some(name)
}

/// An element that is open.
#[derive(Default)]
struct Open {
    name: String,
    /// The lines that it is apart from others by. 0: it stands in a line.
    gap: usize,
    is_hidden: bool,
    /// Whether its words are not visible, which elements in it may be again.
    is_veiled: bool,
    keeps_blanks: bool,
    /// Whether its letters are signs.
    is_wingdings: bool,
    /// Whether it strikes its words, by its style or as what it is.
    is_struck: bool,
    /// How many `<s>` were open when it began.
    strikes: usize,
    /// Whether it has a frame of its own.
    has_frame: bool,
    /// Where its words begin, and its address.
    link: Option<(usize, String)>,
    /// Whether a picture without words stands in it.
    has_picture: bool,
    /// Whether it is quoted as another mail, with all that follows, if it is that mail's header.
    may_quote: bool,
    /// How many columns and rows a cell stands in.
    spans: (usize, usize),
    /// Of a table: in how many rows more each column has a cell from above.
    covered: Vec<usize>,
    /// The number of its next item. `None`: it counts none.
    next: Option<u32>,
    count: Count,
}

struct Page {
    open: Vec<Open>,
    /// The first one is the page itself.
    frames: Vec<Frame>,
    tag: Tag,
    /// What is not shown now.
    unseen: Option<Unseen>,
    /// How many of the open ones are hidden, strike their words, are formulas, keep blanks, stand in a line, are paragraphs.
    hidden: usize,
    struck: usize,
    formulas: usize,
    kept: usize,
    inlines: usize,
    paragraphs: usize,
    /// How many `<s>` are open. They strike what follows also where another element ends before them.
    strikes: usize,
    /// How many more are open that are not kept.
    deeper: usize,
    written: usize,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            frames: vec![Frame::new(Holds::Lines)],
            tag: Tag::default(),
            unseen: None,
            hidden: 0,
            struck: 0,
            formulas: 0,
            kept: 0,
            inlines: 0,
            paragraphs: 0,
            strikes: 0,
            deeper: 0,
            written: 0,
        }
    }
}

impl Page {
    /// Takes what the tokenizer found.
    fn see(&mut self, event: &CallbackEvent<'_>) -> Option<Next> {
        let mut next = None;
        match event {
            CallbackEvent::OpenStartTag { name } => self.tag = Tag::named(name),
            CallbackEvent::AttributeName { name } => self.tag.attribute(name),
            CallbackEvent::AttributeValue { value } => self.tag.value(value),
            CallbackEvent::CloseStartTag { self_closing } => {
                let tag = std::mem::take(&mut self.tag);
                let is_foreign = self.is_foreign() || matches!(&*tag.name, "svg" | "math");
                // Only elements of foreign kinds may have no end, and no other kind of words than markup. Mail programs run no scripts.
                if !(*self_closing && is_foreign && !look::is_void(&tag.name)) {
                    self.begin(&tag);
                }
                if is_foreign || tag.name == "noscript" {
                    next = Some(Next::Markup);
                }
            }
            CallbackEvent::EndTag { name } => self.end(&String::from_utf8_lossy(name)),
            CallbackEvent::String { value } => self.say(&String::from_utf8_lossy(value)),
            CallbackEvent::Comment { .. } | CallbackEvent::Doctype { .. } | CallbackEvent::Error(_) => {}
        }
        if self.written > MOST { Some(Next::Nothing) } else { next }
    }

    /// Whether a new element is one of a drawing or a formula.
    fn is_foreign(&self) -> bool {
        match &self.unseen {
            Some(unseen) => unseen.is_foreign(),
            None => {
                let in_formula = self.open.iter().rev().find(|open| look::is_formula(&open.name));
                self.formulas > 0 && in_formula.is_some_and(|open| open.name == "math")
            }
        }
    }

    fn finish(mut self) -> String {
        while self.pop() {}
        self.frames.pop().map(Frame::text).unwrap_or_default()
    }

    fn say(&mut self, text: &str) {
        if self.is_wingdings() {
            let signs: String = text.chars().map(look::wingding).collect();
            self.put(&signs, self.kept > 0);
        } else {
            self.put(text, self.kept > 0);
        }
    }

    /// Adds words to the present frame, if they are seen.
    fn put(&mut self, words: &str, keeps_blanks: bool) {
        if self.is_out_of_sight() {
            return;
        }
        let is_struck = self.is_struck();
        let lines = if keeps_blanks { words.matches('\n').count() + 1 } else { 1 };
        self.written += words.len() + if is_struck { 2 * look::STRUCK.len() * lines } else { 0 };
        if let Some(frame) = self.frames.last_mut() {
            frame.strike(is_struck);
            if keeps_blanks { frame.lines(words) } else { frame.words(words) }
        }
    }

    /// Whether what comes now is not seen.
    fn is_out_of_sight(&self) -> bool {
        self.hidden > 0 || self.unseen.is_some() || self.is_veiled()
    }

    fn is_veiled(&self) -> bool {
        self.open.last().is_some_and(|open| open.is_veiled)
    }

    const fn is_struck(&self) -> bool {
        self.struck > 0 || self.strikes > 0
    }

    /// Whether the letters that come now are signs.
    fn is_wingdings(&self) -> bool {
        self.open.last().is_some_and(|open| open.is_wingdings)
    }

    fn gap(&mut self, gap: usize) {
        if let Some(frame) = self.frames.last_mut().filter(|_| self.hidden == 0) {
            frame.gap(gap);
        }
    }

    fn begin(&mut self, tag: &Tag) {
        if let Some(unseen) = &mut self.unseen {
            let in_table = self.open.iter().any(|open| open.name == "table");
            if !unseen.is_ended_by(&tag.name, in_table) {
                return unseen.begin(&tag.name);
            }
            self.unseen = None;
            if tag.name == "select" {
                return;
            }
        }
        if self.is_foreign()
            && look::ends_drawing(&tag.name)
            && let Some(at) = self.open.iter().rposition(|open| open.name == "math")
        {
            self.close(at);
        }
        if look::is_void(&tag.name) {
            return self.stand(tag);
        }
        if look::hides(&tag.name) {
            self.unseen = Some(Unseen::new(&tag.name));
            return;
        }
        self.imply(tag);
        let gap = self.gap_of(tag);
        self.gap(gap);
        let is_hidden = tag.is_hidden();
        let keeps_blanks = tag.keeps_blanks();
        let is_inline = gap == 0 && !look::is_block(&tag.name);
        let has_address = tag.name == "a" && tag.get("href").is_some();
        if let Some(sign) = look::sign(&tag.name) {
            self.say(sign);
        }
        self.strikes += usize::from(look::strikes(&tag.name));
        let is_struck = tag.is_struck();
        let is_wingdings = tag.is_wingdings().unwrap_or_else(|| self.is_wingdings());
        let is_veiled = tag.is_veiled().unwrap_or_else(|| self.is_veiled());
        let is_formula = tag.name == "math";
        let changes = is_hidden
            || keeps_blanks
            || is_struck
            || is_formula
            || is_wingdings != self.is_wingdings()
            || is_veiled != self.is_veiled();
        if is_inline && self.inlines == 0 && !(changes || has_address) {
            return;
        }
        if self.open.len() >= DEPTH {
            self.deeper += 1;
            return self.say(" ");
        }
        let quotes = self.hidden == 0 && tag.quotes_the_rest() && self.quote_the_rest();
        let holds = if self.hidden > 0 || is_hidden { None } else { self.holds(tag) };
        let from = self.frames.last().map_or(0, Frame::len);
        if matches!(holds, Some(Holds::Cell)) {
            self.cover_columns();
        }
        let link = tag.get("href").filter(|_| has_address).map(|href| (from, href.to_owned()));
        self.hidden += usize::from(is_hidden);
        self.struck += usize::from(is_struck);
        self.formulas += usize::from(is_formula);
        self.kept += usize::from(keeps_blanks);
        self.inlines += usize::from(is_inline);
        self.paragraphs += usize::from(tag.name == "p");
        let has_frame = holds.is_some();
        self.frames.extend(holds.map(Frame::new));
        let name = tag.name.clone();
        let next = if name == "ol" { Some(tag.number("start").unwrap_or(1)) } else { None };
        self.open.push(Open {
            name,
            gap,
            is_hidden,
            is_veiled,
            keeps_blanks,
            is_wingdings,
            is_struck,
            strikes: self.strikes,
            has_frame,
            link,
            next,
            count: tag.count(),
            may_quote: quotes && tag.may_quote_the_rest(),
            spans: tag.spans(),
            ..Open::default()
        });
    }

    /// Ends what a new element ends by beginning.
    fn imply(&mut self, tag: &Tag) {
        let (ended, within): (&[&str], &[&str]) = match &*tag.name {
            "a" => return self.end("a"),
            "li" => (&["li"], &["ul", "ol", "menu"]),
            "dt" | "dd" => (&["dt", "dd"], &["dl"]),
            "tr" => (&["tr"], &["table"]),
            "td" | "th" => (&["td", "th"], &["table", "tr"]),
            name if look::is_block(name) && self.paragraphs > 0 => {
                (&["p"], &["td", "th", "li", "blockquote", "div", "table"])
            }
            _ => return,
        };
        let open = self.open.iter().rposition(|open| within.contains(&&*open.name)).map_or(0, |at| at + 1);
        let ends = |open: &Open| ended.contains(&&*open.name);
        if let Some(at) = self.open.iter().skip(open).position(ends) {
            self.close(open + at);
        }
    }

    fn gap_of(&self, tag: &Tag) -> usize {
        let is_list = |name: &str| matches!(name, "ul" | "ol" | "menu" | "dl");
        if is_list(&tag.name) && self.open.iter().any(|open| is_list(&open.name)) {
            return 1;
        }
        tag.gap()
    }

    /// What the frame of an element holds, if it has one.
    fn holds(&mut self, tag: &Tag) -> Option<Holds> {
        match &*tag.name {
            "tr" => Some(Holds::Row(Vec::new())),
            "td" | "th" => {
                let in_row = self.frames.last().is_some_and(Frame::is_row);
                if !in_row {
                    self.frames.push(Frame::new(Holds::Row(Vec::new())));
                    self.open.push(Open {
                        name: "tr".to_owned(),
                        gap: 1,
                        has_frame: true,
                        is_veiled: self.is_veiled(),
                        is_wingdings: self.is_wingdings(),
                        ..Open::default()
                    });
                }
                Some(Holds::Cell)
            }
            "li" => {
                let list = self.open.iter_mut().rfind(|open| matches!(&*open.name, "ul" | "ol" | "menu"));
                let sign = list.and_then(|list| {
                    let number = tag.number("value").or(list.next);
                    list.next = list.next.and(number).map(|number| number.saturating_add(1));
                    list.next.and(number).map(|number| list.count.sign(number))
                });
                Some(Holds::Item(sign.unwrap_or_else(|| "- ".to_owned())))
            }
            _ => tag.quotes().then_some(Holds::Quote),
        }
    }

    /// All that follows is quoted, up to the end of the frame: programs such as Outlook write answers above what they answer, and put
    /// it in no element. A mail may have several signs of that; between them is nothing. Returns whether this is the first of them.
    fn quote_the_rest(&mut self) -> bool {
        if self.frames.last().is_some_and(Frame::is_new_quote) {
            return false;
        }
        let at = self.open.iter().rposition(|open| open.has_frame).map_or(0, |at| at + 1);
        self.open.insert(at, Open { has_frame: true, gap: 1, ..Open::default() });
        self.frames.push(Frame::new(Holds::Quote));
        true
    }

    /// Adds the empty cells before a new one where cells from above stand.
    fn cover_columns(&mut self) {
        let Some(row) = self.frames.last_mut().filter(|frame| frame.is_row()) else { return };
        let Some(table) = self.open.iter().rfind(|open| open.name == "table") else { return };
        let at = row.fill_row(0);
        let empty = table.covered.iter().skip(at).take_while(|rows| **rows > 0).count();
        row.fill_row(empty);
        self.written += empty;
    }

    /// A cell has ended: it stands in other columns and rows, too.
    fn span(&mut self, (columns, rows): (usize, usize)) {
        let Some(row) = self.frames.last_mut().filter(|frame| frame.is_row()) else { return };
        let end = row.fill_row(columns - 1);
        self.written += columns - 1;
        let Some(table) = self.open.iter_mut().rfind(|open| open.name == "table") else { return };
        if rows > 1 && end <= bounds::LIST {
            table.covered.resize(table.covered.len().max(end), 0);
            table.covered.iter_mut().take(end).skip(end - columns).for_each(|left| *left = rows);
        }
    }

    /// A row has ended.
    fn end_row(&mut self) {
        if let Some(table) = self.open.iter_mut().rfind(|open| open.name == "table") {
            table.covered.iter_mut().for_each(|left| *left = left.saturating_sub(1));
        }
    }

    /// An element without an end.
    fn stand(&mut self, tag: &Tag) {
        if self.hidden > 0 || tag.is_hidden() {
            return;
        }
        let is_veiled = tag.is_veiled().unwrap_or_else(|| self.is_veiled());
        if is_veiled && tag.name != "br" {
            return;
        }
        if tag.name == "hr" && tag.quotes_the_rest() && self.open.len() < DEPTH {
            self.quote_the_rest();
            return;
        }
        self.written += 1;
        if let Some(words) = tag.words() {
            return self.put(&words, false);
        }
        let Some(frame) = self.frames.last_mut() else { return };
        match &*tag.name {
            "br" => frame.line_break(),
            "hr" => frame.rule(),
            "img" => {
                if !tag.is_dot()
                    && let Some(link) = self.open.iter_mut().rfind(|open| open.link.is_some())
                {
                    link.has_picture = true;
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        if let Some(unseen) = &mut self.unseen {
            let is_around = |name: &str| self.open.iter().any(|open| open.name == name);
            let Some(is_own) = unseen.end(name, is_around) else { return };
            self.unseen = None;
            if is_own {
                return;
            }
        }
        if name == "br" {
            return self.stand(&Tag::named(b"br"));
        }
        let is_inline = !look::is_block(name);
        if look::strikes(name) {
            // A cell does not end what began outside.
            let cell = self.open.iter().rfind(|open| matches!(&*open.name, "td" | "th"));
            self.strikes = self.strikes.saturating_sub(1).max(cell.map_or(0, |cell| cell.strikes));
        }
        if is_inline && self.inlines == 0 {
            return;
        }
        if self.deeper > 0 {
            self.deeper -= 1;
            return;
        }
        let mut found = None;
        for (at, open) in self.open.iter().enumerate().rev() {
            if open.name == name {
                found = Some(at);
                break;
            }
            if name != "a" && is_inline && look::is_block(&open.name) || look::holds_in(&open.name, name) {
                break;
            }
        }
        match found {
            // A link may end inside of what it began around.
            Some(at) if name == "a" => {
                let open = self.open.remove(at);
                self.ended(&open);
            }
            Some(at) => self.close(at),
            None => {}
        }
    }

    /// Ends all elements from this one on.
    fn close(&mut self, at: usize) {
        while self.open.len() > at && self.pop() {}
    }

    fn pop(&mut self) -> bool {
        let Some(open) = self.open.pop() else { return false };
        self.ended(&open);
        true
    }

    fn ended(&mut self, open: &Open) {
        self.struck -= usize::from(open.is_struck);
        let is_struck = self.is_struck();
        if let Some((from, href)) = open.link.as_ref().filter(|_| self.hidden == 0)
            && let Some(frame) = self.frames.last_mut()
        {
            self.written += href.len();
            frame.strike(is_struck);
            frame.link(*from, href, open.has_picture);
        }
        if open.may_quote
            && let Some(frame) = self.frames.last_mut()
        {
            frame.check_header();
        }
        if open.has_frame
            && self.frames.len() > 1
            && let Some(frame) = self.frames.pop()
        {
            let depth = self.frames.iter().filter(|around| around.marks_like(&frame)).count();
            if let Some(around) = self.frames.last_mut() {
                around.take(frame, depth < MARKS);
            }
            match &*open.name {
                "td" | "th" => {
                    self.strikes = open.strikes;
                    self.span(open.spans);
                }
                "tr" => self.end_row(),
                _ => {}
            }
        }
        self.gap(open.gap);
        self.hidden -= usize::from(open.is_hidden);
        self.formulas -= usize::from(open.name == "math");
        self.kept -= usize::from(open.keeps_blanks);
        self.inlines -= usize::from(open.gap == 0 && !look::is_block(&open.name));
        self.paragraphs -= usize::from(open.name == "p");
    }
}

#[cfg(test)]
mod tests;
