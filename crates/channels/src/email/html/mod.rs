//! Converts HTML mails to visible text.
//!
//! A line per block, row and item; tabs between cells; `> ` before quotes; `text (address)` for links. Hidden content
//! is left out. The tokenizer scans each byte once, and the walker keeps only the open elements instead of a tree, so
//! that depth, memory and time are bounded.
//!
//! - `element.rs`: elements and their style; `hidden.rs`: hidden elements; `frame.rs`: lines, cells, items and quotes.

mod element;
mod frame;
mod hidden;

use std::collections::HashSet;

use html5gum::{
    Span, State, Tokenizer,
    emitters::callback::{CallbackEmitter, CallbackEvent},
};

use self::{
    element::{Numbering, Tag},
    frame::{Frame, FrameKind},
    hidden::HiddenElement,
};
use super::encoded_words::decode_escapes;
use crate::bounds;

/// Maximum open elements; deeper ones become text. Each end tag searches them, and a stranger may write millions.
const MAX_DEPTH: usize = 200;
/// Maximum nesting of quote and item marks: more would multiply a stranger's text.
const MAX_MARKS: usize = 6;
/// Maximum output in bytes, above what is kept of any text.
const MAX_OUTPUT: usize = 2 << 20;

/// The tokenizer's next step, if not the usual one.
enum Next {
    /// Parse markup, even inside of an element without any.
    Markup,
    /// Stop.
    Nothing,
}

/// The visible text of HTML, and whether it is complete.
pub fn to_text(html: &str) -> (String, bool) {
    let mut page = Page::default();
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| page.handle_token(&event));
    emitter.naively_switch_states(true);
    let mut tokenizer = Tokenizer::new_with_emitter(html, emitter);
    while let Some(Ok(Next::Markup)) = tokenizer.next() {
        tokenizer.set_state(State::Data);
    }
    let is_whole = page.written <= MAX_OUTPUT;
    (page.finish(), is_whole)
}

/// The beginning of HTML without inline pictures (`data:image/png;base64,…`): they have no text, and each may exceed
/// the limit of a text. At most one byte longer than `most`.
pub fn strip_inline_pictures(html: &[u8], most: usize) -> Vec<u8> {
    let mark = b";base64,";
    let (mut kept, mut rest) = (Vec::new(), html);
    while kept.len() <= most && !rest.is_empty() {
        let at = rest.windows(mark.len()).position(|found| found.eq_ignore_ascii_case(mark));
        let (before, after) = rest.split_at(at.map_or(rest.len(), |at| at + mark.len()));
        kept.extend_from_slice(before.get(..most + 1).unwrap_or(before));
        let is_encoded = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=%\r\n".contains(byte);
        let length = after.iter().take_while(|byte| is_encoded(byte)).count();
        // Shorter runs aren't pictures.
        let skipped = if length > 1_000 { length } else { 0 };
        rest = after.get(skipped..).unwrap_or_default();
    }
    kept.truncate(most + 1);
    kept
}

/// Collects the ids of embedded pictures (`cid:…`).
pub fn collect_picture_ids(html: &[u8], ids: &mut HashSet<Vec<u8>>) {
    let (mark, mut rest) = (b"cid:", html);
    while let Some(at) = rest.windows(mark.len()).position(|found| found.eq_ignore_ascii_case(mark)) {
        rest = rest.get(at + mark.len()..).unwrap_or_default();
        let is_id = |byte: &u8| !byte.is_ascii_whitespace() && !b"\"'<>)&".contains(byte);
        let length = rest.iter().take(bounds::NAME).take_while(|byte| is_id(byte)).count();
        if ids.len() < 500 {
            ids.extend(rest.get(..length).map(|id| decode_escapes(id, b'%')));
        }
    }
}

/// The charset declared at the beginning (`<meta charset=…>`).
pub fn declared_charset(html: &[u8]) -> Option<&str> {
    let beginning = html.get(..1_024).unwrap_or(html);
    let word = b"charset=";
    let at = beginning.windows(word.len()).position(|found| found.eq_ignore_ascii_case(word))?;
    let rest = beginning.get(at + word.len()..)?;
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_:.".contains(byte);
    let name = rest.get(..rest.iter().take_while(|byte| is_name(byte)).count())?;
    let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty())?;
    // In UTF-16 the declaration would not have been found.
    let is_wide = ["utf-16", "unicode"].iter().any(|wide| name.to_ascii_lowercase().starts_with(wide));
    (!is_wide).then_some(name)
}

/// An open element.
#[derive(Default)]
struct Open {
    name: String,
    /// Line ends around it. 0: inline.
    gap: usize,
    is_hidden: bool,
    /// Whether its text is invisible; inner elements may be visible again.
    is_invisible: bool,
    preserves_blanks: bool,
    /// Whether its letters are symbols.
    is_wingdings: bool,
    /// Whether its style or name strikes its text.
    is_struck: bool,
    /// Open `<s>` elements at its beginning.
    strikes: usize,
    has_frame: bool,
    /// The beginning of its text, and its address.
    link: Option<(usize, String)>,
    /// Whether it contains a picture without text.
    has_picture: bool,
    /// Whether it and the rest are a quote, provided that it is a mail's header.
    may_quote: bool,
    /// A cell's columns and rows.
    spans: (usize, usize),
    /// A table's columns: remaining rows of a cell from above.
    covered: Vec<usize>,
    /// The next item's number. `None`: unnumbered.
    next: Option<u32>,
    count: Numbering,
}

struct Page {
    open: Vec<Open>,
    /// The first one is the page.
    frames: Vec<Frame>,
    tag: Tag,
    /// The current hidden element.
    hidden_element: Option<HiddenElement>,
    /// Open elements that are hidden, strike, are formulas, preserve blanks, are inline, are paragraphs.
    hidden: usize,
    struck: usize,
    formulas: usize,
    kept: usize,
    inlines: usize,
    paragraphs: usize,
    /// Open `<s>` elements. They strike the following text even after another element has ended.
    strikes: usize,
    /// Open elements beyond the maximum.
    deeper: usize,
    written: usize,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            frames: vec![Frame::new(FrameKind::Lines)],
            tag: Tag::default(),
            hidden_element: None,
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
    fn handle_token(&mut self, event: &CallbackEvent<'_>) -> Option<Next> {
        let mut next = None;
        match event {
            CallbackEvent::OpenStartTag { name } => self.tag = Tag::named(name),
            CallbackEvent::AttributeName { name } => self.tag.attribute(name),
            CallbackEvent::AttributeValue { value } => self.tag.value(value),
            CallbackEvent::CloseStartTag { self_closing } => {
                let tag = std::mem::take(&mut self.tag);
                let is_foreign = self.is_foreign() || matches!(&*tag.name, "svg" | "math");
                // Only foreign elements may be self-closing, and always contain markup. Mail programs run no scripts.
                if !(*self_closing && is_foreign && !element::is_void(&tag.name)) {
                    self.open_element(&tag);
                }
                if is_foreign || tag.name == "noscript" {
                    next = Some(Next::Markup);
                }
            }
            CallbackEvent::EndTag { name } => self.close_element(&String::from_utf8_lossy(name)),
            CallbackEvent::String { value } => self.add_text(&String::from_utf8_lossy(value)),
            CallbackEvent::Comment { .. } | CallbackEvent::Doctype { .. } | CallbackEvent::Error(_) => {}
        }
        if self.written > MAX_OUTPUT { Some(Next::Nothing) } else { next }
    }

    /// Whether a new element belongs to a drawing or formula.
    fn is_foreign(&self) -> bool {
        match &self.hidden_element {
            Some(hidden_element) => hidden_element.is_foreign(),
            None => {
                let in_formula = || self.open.iter().rev().find(|open| element::is_formula(&open.name));
                self.formulas > 0 && in_formula().is_some_and(|open| open.name == "math")
            }
        }
    }

    fn finish(mut self) -> String {
        while self.close_last() {}
        self.frames.pop().map(Frame::text).unwrap_or_default()
    }

    fn add_text(&mut self, text: &str) {
        if self.is_wingdings() {
            let signs: String = text.chars().map(element::wingding).collect();
            self.add_visible(&signs, self.kept > 0);
        } else {
            self.add_visible(text, self.kept > 0);
        }
    }

    /// Adds text to the current frame, if it is visible.
    fn add_visible(&mut self, words: &str, preserves_blanks: bool) {
        if self.is_out_of_sight() {
            return;
        }
        let is_struck = self.is_struck();
        let lines = if preserves_blanks { words.matches('\n').count() + 1 } else { 1 };
        self.written += words.len() + if is_struck { 2 * element::STRUCK.len() * lines } else { 0 };
        if let Some(frame) = self.frames.last_mut() {
            frame.strike(is_struck);
            if preserves_blanks { frame.add_lines(words) } else { frame.add_words(words) }
        }
    }

    fn is_out_of_sight(&self) -> bool {
        self.hidden > 0 || self.hidden_element.is_some() || self.is_invisible()
    }

    fn is_invisible(&self) -> bool {
        self.open.last().is_some_and(|open| open.is_invisible)
    }

    const fn is_struck(&self) -> bool {
        self.struck > 0 || self.strikes > 0
    }

    /// Whether letters are symbols here.
    fn is_wingdings(&self) -> bool {
        self.open.last().is_some_and(|open| open.is_wingdings)
    }

    fn gap(&mut self, gap: usize) {
        if let Some(frame) = self.frames.last_mut().filter(|_| self.hidden == 0) {
            frame.gap(gap);
        }
    }

    fn open_element(&mut self, tag: &Tag) {
        if let Some(hidden_element) = &mut self.hidden_element {
            let in_table = self.open.iter().any(|open| open.name == "table");
            if !hidden_element.is_ended_by(&tag.name, in_table) {
                return hidden_element.open_element(&tag.name);
            }
            self.hidden_element = None;
            if tag.name == "select" {
                return;
            }
        }
        if self.is_foreign()
            && element::ends_drawing(&tag.name)
            && let Some(at) = self.open.iter().rposition(|open| open.name == "math")
        {
            self.close_from(at);
        }
        if element::is_void(&tag.name) {
            return self.add_void(tag);
        }
        if element::hides_content(&tag.name) {
            self.hidden_element = Some(HiddenElement::new(&tag.name));
            return;
        }
        self.close_implied(tag);
        let gap = self.gap_of(tag);
        self.gap(gap);
        let is_hidden = tag.is_hidden();
        let preserves_blanks = tag.preserves_blanks();
        let is_inline = gap == 0 && !element::is_block(&tag.name);
        let has_address = tag.name == "a" && tag.get("href").is_some();
        if let Some(sign) = element::meaning_sign(&tag.name) {
            self.add_text(sign);
        }
        self.strikes += usize::from(element::strikes(&tag.name));
        let is_struck = tag.is_struck();
        let is_wingdings = tag.is_wingdings().unwrap_or_else(|| self.is_wingdings());
        let is_invisible = tag.is_invisible().unwrap_or_else(|| self.is_invisible());
        let is_formula = tag.name == "math";
        let changes = is_hidden
            || preserves_blanks
            || is_struck
            || is_formula
            || is_wingdings != self.is_wingdings()
            || is_invisible != self.is_invisible();
        if is_inline && self.inlines == 0 && !(changes || has_address) {
            return;
        }
        if self.open.len() >= MAX_DEPTH {
            self.deeper += 1;
            return self.add_text(" ");
        }
        let quotes = self.hidden == 0 && tag.quotes_the_rest() && self.quote_the_rest();
        let holds = if self.hidden > 0 || is_hidden { None } else { self.frame_kind(tag) };
        let from = self.frames.last().map_or(0, Frame::len);
        if matches!(holds, Some(FrameKind::Cell)) {
            self.cover_columns();
        }
        let link = tag.get("href").filter(|_| has_address).map(|href| (from, href.to_owned()));
        self.hidden += usize::from(is_hidden);
        self.struck += usize::from(is_struck);
        self.formulas += usize::from(is_formula);
        self.kept += usize::from(preserves_blanks);
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
            is_invisible,
            preserves_blanks,
            is_wingdings,
            is_struck,
            strikes: self.strikes,
            has_frame,
            link,
            next,
            count: tag.numbering(),
            may_quote: quotes && tag.may_quote_the_rest(),
            spans: tag.spans(),
            ..Open::default()
        });
    }

    /// Closes elements that a new one ends implicitly.
    fn close_implied(&mut self, tag: &Tag) {
        let (ended, within): (&[&str], &[&str]) = match &*tag.name {
            "a" => return self.close_element("a"),
            "li" => (&["li"], &["ul", "ol", "menu"]),
            "dt" | "dd" => (&["dt", "dd"], &["dl"]),
            "tr" => (&["tr"], &["table"]),
            "td" | "th" => (&["td", "th"], &["table", "tr"]),
            name if element::is_block(name) && self.paragraphs > 0 => {
                (&["p"], &["td", "th", "li", "blockquote", "div", "table"])
            }
            _ => return,
        };
        let open = self.open.iter().rposition(|open| within.contains(&&*open.name)).map_or(0, |at| at + 1);
        let ends = |open: &Open| ended.contains(&&*open.name);
        if let Some(at) = self.open.iter().skip(open).position(ends) {
            self.close_from(open + at);
        }
    }

    fn gap_of(&self, tag: &Tag) -> usize {
        let is_list = |name: &str| matches!(name, "ul" | "ol" | "menu" | "dl");
        if is_list(&tag.name) && self.open.iter().any(|open| is_list(&open.name)) {
            return 1;
        }
        tag.gap()
    }

    /// The kind of frame of an element, if it has one.
    fn frame_kind(&mut self, tag: &Tag) -> Option<FrameKind> {
        match &*tag.name {
            "tr" => Some(FrameKind::Row(Vec::new())),
            "td" | "th" => {
                let in_row = self.frames.last().is_some_and(Frame::is_row);
                if !in_row {
                    self.frames.push(Frame::new(FrameKind::Row(Vec::new())));
                    self.open.push(Open {
                        name: "tr".to_owned(),
                        gap: 1,
                        has_frame: true,
                        is_invisible: self.is_invisible(),
                        is_wingdings: self.is_wingdings(),
                        ..Open::default()
                    });
                }
                Some(FrameKind::Cell)
            }
            "li" => {
                let list = self.open.iter_mut().rfind(|open| matches!(&*open.name, "ul" | "ol" | "menu"));
                let sign = list.and_then(|list| {
                    let number = tag.number("value").or(list.next);
                    list.next = list.next.and(number).map(|number| number.saturating_add(1));
                    list.next.and(number).map(|number| list.count.sign(number))
                });
                Some(FrameKind::Item(sign.unwrap_or_else(|| "- ".to_owned())))
            }
            _ => tag.quotes().then_some(FrameKind::Quote),
        }
    }

    /// Quotes the rest of the frame: programs such as Outlook write replies above the original, without an element
    /// around it. A mail may have several such marks, with nothing between them. Returns whether this is the first.
    fn quote_the_rest(&mut self) -> bool {
        if self.frames.last().is_some_and(Frame::is_new_quote) {
            return false;
        }
        let at = self.open.iter().rposition(|open| open.has_frame).map_or(0, |at| at + 1);
        self.open.insert(at, Open { has_frame: true, gap: 1, ..Open::default() });
        self.frames.push(Frame::new(FrameKind::Quote));
        true
    }

    /// Fills columns that are covered by cells from above.
    fn cover_columns(&mut self) {
        let Some(row) = self.frames.last_mut().filter(|frame| frame.is_row()) else { return };
        let Some(table) = self.open.iter().rfind(|open| open.name == "table") else { return };
        let at = row.fill_row(0);
        let empty = table.covered.iter().skip(at).take_while(|rows| **rows > 0).count();
        row.fill_row(empty);
        self.written += empty;
    }

    /// Accounts for a finished cell's other columns and rows.
    fn span_cells(&mut self, (columns, rows): (usize, usize)) {
        let Some(row) = self.frames.last_mut().filter(|frame| frame.is_row()) else { return };
        let end = row.fill_row(columns - 1);
        self.written += columns - 1;
        let Some(table) = self.open.iter_mut().rfind(|open| open.name == "table") else { return };
        if rows > 1 && end <= bounds::LIST {
            table.covered.resize(table.covered.len().max(end), 0);
            table.covered.iter_mut().take(end).skip(end - columns).for_each(|left| *left = rows);
        }
    }

    fn end_row(&mut self) {
        if let Some(table) = self.open.iter_mut().rfind(|open| open.name == "table") {
            table.covered.iter_mut().for_each(|left| *left = left.saturating_sub(1));
        }
    }

    /// Handles a void element.
    fn add_void(&mut self, tag: &Tag) {
        if self.hidden > 0 || tag.is_hidden() {
            return;
        }
        let is_invisible = tag.is_invisible().unwrap_or_else(|| self.is_invisible());
        if is_invisible && tag.name != "br" {
            return;
        }
        if tag.name == "hr" && tag.quotes_the_rest() && self.open.len() < MAX_DEPTH {
            self.quote_the_rest();
            return;
        }
        self.written += 1;
        if let Some(words) = tag.replacement_text() {
            return self.add_visible(&words, false);
        }
        let Some(frame) = self.frames.last_mut() else { return };
        match &*tag.name {
            "br" => frame.add_line_break(),
            "hr" => frame.add_rule(),
            "img" => {
                if !tag.is_invisible_pixel()
                    && let Some(link) = self.open.iter_mut().rfind(|open| open.link.is_some())
                {
                    link.has_picture = true;
                }
            }
            _ => {}
        }
    }

    fn close_element(&mut self, name: &str) {
        if let Some(hidden_element) = &mut self.hidden_element {
            let is_around = |name: &str| self.open.iter().any(|open| open.name == name);
            let Some(is_own) = hidden_element.close_element(name, is_around) else { return };
            self.hidden_element = None;
            if is_own {
                return;
            }
        }
        if name == "br" {
            return self.add_void(&Tag::named(b"br"));
        }
        let is_inline = !element::is_block(name);
        if element::strikes(name) {
            // A cell doesn't end an outer strikethrough.
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
            if name != "a" && is_inline && element::is_block(&open.name)
                || element::stops_search(&open.name, name)
            {
                break;
            }
        }
        match found {
            // A link may end inside of an element that it surrounds.
            Some(at) if name == "a" => {
                let open = self.open.remove(at);
                self.finish_element(&open);
            }
            Some(at) => self.close_from(at),
            None => {}
        }
    }

    /// Closes all elements from this one on.
    fn close_from(&mut self, at: usize) {
        while self.open.len() > at && self.close_last() {}
    }

    fn close_last(&mut self) -> bool {
        let Some(open) = self.open.pop() else { return false };
        self.finish_element(&open);
        true
    }

    fn finish_element(&mut self, open: &Open) {
        self.struck -= usize::from(open.is_struck);
        let is_struck = self.is_struck();
        if let Some((from, href)) = open.link.as_ref().filter(|_| self.hidden == 0)
            && let Some(frame) = self.frames.last_mut()
        {
            self.written += href.len();
            frame.strike(is_struck);
            frame.add_link(*from, href, open.has_picture);
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
                around.insert(frame, depth < MAX_MARKS);
            }
            match &*open.name {
                "td" | "th" => {
                    self.strikes = open.strikes;
                    self.span_cells(open.spans);
                }
                "tr" => self.end_row(),
                _ => {}
            }
        }
        self.gap(open.gap);
        self.hidden -= usize::from(open.is_hidden);
        self.formulas -= usize::from(open.name == "math");
        self.kept -= usize::from(open.preserves_blanks);
        self.inlines -= usize::from(open.gap == 0 && !element::is_block(&open.name));
        self.paragraphs -= usize::from(open.name == "p");
    }
}

#[cfg(test)]
mod tests;
