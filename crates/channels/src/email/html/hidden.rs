//! A hidden element and its end: inner end tags, and its own, may be missing.

use super::{MAX_DEPTH, element};

pub struct HiddenElement {
    name: String,
    /// Open inner elements.
    inner: Vec<String>,
    /// Open inner elements beyond the maximum.
    deeper: usize,
}

impl HiddenElement {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), inner: Vec::new(), deeper: 0 }
    }

    /// Whether a new inner element belongs to a drawing or to Outlook's data. Some elements of drawings contain HTML.
    pub fn is_foreign(&self) -> bool {
        let holds_html = |name: &&String| matches!(&***name, "foreignobject" | "desc" | "title" | "svg");
        let within = self.inner.iter().rev().find(holds_html);
        matches!(&*self.name, "svg" | "xml") && within.is_none_or(|name| name == "svg")
    }

    /// Whether a new element ends this one, because it can't be inside.
    pub fn is_ended_by(&self, name: &str, in_table: bool) -> bool {
        match (&*self.name, name) {
            ("template", _) => false,
            ("select", "select" | "input" | "textarea") => true,
            (_, "td" | "th" | "tr" | "tbody" | "thead" | "tfoot" | "caption") => {
                in_table && !self.inner.iter().any(|inner| inner == "table")
            }
            _ => self.is_foreign() && element::ends_drawing(name),
        }
    }

    pub fn open_element(&mut self, name: &str) {
        if element::is_void(name) {
            return;
        }
        if self.inner.len() < MAX_DEPTH {
            self.inner.push(name.to_owned());
        } else {
            self.deeper += 1;
        }
    }

    /// Handles an end tag. `Some`: this element ends, too; `true` if the tag is its own.
    pub fn close_element(&mut self, name: &str, is_around: impl Fn(&str) -> bool) -> Option<bool> {
        let is_own = name == self.name;
        if self.deeper > 0 && !is_own {
            self.deeper -= 1;
            return None;
        }
        if let Some(at) = self.inner.iter().rposition(|inner| inner == name) {
            self.inner.truncate(at);
            self.deeper = 0;
            return None;
        }
        let ends_around = || {
            element::is_block(name)
                && !matches!(name, "html" | "body")
                && self.name != "template"
                && is_around(name)
        };
        (is_own || ends_around()).then_some(is_own)
    }
}
