//! An element of which nothing is shown, and where it ends: people and programs forget the ends of what stands in it, and its own.

use super::{DEPTH, look};

pub struct Unseen {
    name: String,
    /// The elements that are open in it.
    inner: Vec<String>,
    /// How many more are open that are not kept.
    deeper: usize,
}

impl Unseen {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), inner: Vec::new(), deeper: 0 }
    }

    /// Whether a new element in it would be one of a drawing, or of Outlook's data. Some of a drawing hold HTML.
    pub fn is_foreign(&self) -> bool {
        let holds_html = |name: &&String| matches!(&***name, "foreignobject" | "desc" | "title" | "svg");
        let within = self.inner.iter().rev().find(holds_html);
        matches!(&*self.name, "svg" | "xml") && within.is_none_or(|name| name == "svg")
    }

    /// Whether a new element ends it, because it can't stand in it.
    pub fn is_ended_by(&self, name: &str, in_table: bool) -> bool {
        match (&*self.name, name) {
            ("template", _) => false,
            ("select", "select" | "input" | "textarea") => true,
            (_, "td" | "th" | "tr" | "tbody" | "thead" | "tfoot" | "caption") => {
                in_table && !self.inner.iter().any(|inner| inner == "table")
            }
            _ => self.is_foreign() && look::ends_drawing(name),
        }
    }

    /// An element begins in it.
    pub fn begin(&mut self, name: &str) {
        if look::is_void(name) {
            return;
        }
        if self.inner.len() < DEPTH {
            self.inner.push(name.to_owned());
        } else {
            self.deeper += 1;
        }
    }

    /// An element ends. `Some`: this one does, too; and whether it is the element itself, and not one around it.
    pub fn end(&mut self, name: &str, is_around: impl Fn(&str) -> bool) -> Option<bool> {
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
            look::is_block(name)
                && !matches!(name, "html" | "body")
                && self.name != "template"
                && is_around(name)
        };
        (is_own || ends_around()).then_some(is_own)
    }
}
