//! How several parts belong together, and which of them are read.

use super::{DEPTH, Head, Kind, TooMuch};
use crate::email::content_type::ContentType;

/// How parts belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Several {
    #[default]
    Mixed,
    Alternative,
    Related,
    Digest,
    /// Pictures and texts that a phone shows one after the other (MMS).
    Slides,
}

impl Several {
    fn of(kind: &ContentType, inner: &[Inner]) -> Self {
        match &*kind.subtype {
            "alternative" => Self::Alternative,
            "digest" => Self::Digest,
            _ if inner.iter().any(|part| part.kind == "application/smil") => Self::Slides,
            "related" => Self::Related,
            _ => Self::Mixed,
        }
    }
}

/// What is known of a part from its headers, before it is split.
struct Inner {
    id: String,
    /// `text/plain`
    kind: String,
}

impl Inner {
    fn of(entity: &[u8]) -> Self {
        let head = Head::read(entity).unwrap_or_default();
        let id = head.last("Content-ID").map(|field| String::from_utf8_lossy(field.value()).into_owned());
        let kind = head.content_type().map(|kind| format!("{}/{}", kind.kind, kind.subtype));
        Self { id: plain_id(&id.unwrap_or_default()).to_owned(), kind: kind.unwrap_or_default() }
    }
}

/// An id without its brackets.
pub fn plain_id(id: &str) -> &str {
    id.trim().trim_start_matches('<').trim_end_matches('>')
}

/// Which of related parts is the one that the others belong to (RFC 2387): the one that `start` names, else the first one of `type`, else
/// the first text. Counted from 1.
fn root(kind: &ContentType, inner: &[Inner]) -> usize {
    let is_text = |part: &Inner| {
        part.kind.is_empty() || part.kind.starts_with("text/") || part.kind.starts_with("multipart/")
    };
    let start = kind.param("start").map(plain_id).filter(|start| !start.is_empty());
    let own = kind.param("type").map(str::to_ascii_lowercase);
    let find = |is: &dyn Fn(&Inner) -> bool| inner.iter().position(|part| is_text(part) && is(part));
    let found = start.and_then(|start| find(&|part: &Inner| part.id == start));
    let found = found.or_else(|| own.and_then(|own| find(&|part: &Inner| part.kind == own.trim())));
    found.or_else(|| find(&|_: &Inner| true)).map_or(1, |at| at + 1)
}

/// What a part stands in.
pub struct Around {
    pub kind: Several,
    depth: usize,
    /// How many parts have come.
    pub parts: usize,
    /// Which of related parts is read.
    pub root: usize,
    in_alternative: bool,
    pub needs_html: bool,
    pub needs_text: bool,
    /// The alternative that is neither plain nor HTML.
    pub other: Vec<usize>,
}

impl Default for Around {
    fn default() -> Self {
        Self {
            kind: Several::Mixed,
            depth: 0,
            parts: 0,
            root: 1,
            in_alternative: false,
            needs_html: true,
            needs_text: true,
            other: Vec::new(),
        }
    }
}

impl Around {
    /// What the parts inside parts of this type stand in.
    pub fn within(&self, kind: &ContentType, inner: &[&[u8]]) -> Result<Self, TooMuch> {
        if self.depth == DEPTH {
            return Err(TooMuch::Depth);
        }
        let inner: Vec<_> = inner.iter().map(|entity| Inner::of(entity)).collect();
        let (root, kind) = (root(kind, &inner), Several::of(kind, &inner));
        let in_alternative = self.in_alternative || kind == Several::Alternative;
        let (needs_html, needs_text) = (self.needs_html, self.needs_text);
        let (depth, other) = (self.depth + 1, Vec::new());
        Ok(Self { kind, depth, parts: 0, root, in_alternative, needs_html, needs_text, other })
    }

    /// Whether a text counts as HTML, and as plain: the first kind that comes inside an alternative stands for itself only.
    pub fn wants(&mut self, kind: Kind) -> (bool, bool) {
        if self.in_alternative && (self.needs_html || self.needs_text) {
            match kind {
                Kind::Html => self.needs_text = false,
                _ => self.needs_html = false,
            }
        }
        (self.needs_html, self.needs_text)
    }
}
