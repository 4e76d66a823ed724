//! Relations between parts of a multipart, and the choice of those to read.

use super::{DEPTH, Headers, Kind, LimitError};
use crate::email::content_type::ContentType;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MultipartKind {
    #[default]
    Mixed,
    Alternative,
    Related,
    Digest,
    /// Pictures and texts for display in sequence on a phone (MMS).
    Slides,
}

impl MultipartKind {
    fn of(kind: &ContentType, inner: &[PartHeaders]) -> Self {
        match &*kind.subtype {
            "alternative" => Self::Alternative,
            "digest" => Self::Digest,
            _ if inner.iter().any(|part| part.kind == "application/smil") => Self::Slides,
            "related" => Self::Related,
            _ => Self::Mixed,
        }
    }
}

/// A part's headers, before it is split.
struct PartHeaders {
    id: String,
    /// `text/plain`
    kind: String,
}

impl PartHeaders {
    fn of(entity: &[u8]) -> Self {
        let head = Headers::read(entity).unwrap_or_default();
        let id = head.last("Content-ID").map(|field| String::from_utf8_lossy(field.value()).into_owned());
        let kind = head.content_type().map(|kind| format!("{}/{}", kind.kind, kind.subtype));
        Self { id: plain_id(&id.unwrap_or_default()).to_owned(), kind: kind.unwrap_or_default() }
    }
}

pub fn plain_id(id: &str) -> &str {
    id.trim().trim_start_matches('<').trim_end_matches('>')
}

/// The main one of related parts (RFC 2387): the one named by `start`, else the first of `type`, else the first text.
/// Counted from 1.
fn root(kind: &ContentType, inner: &[PartHeaders]) -> usize {
    let is_text = |part: &PartHeaders| {
        part.kind.is_empty() || part.kind.starts_with("text/") || part.kind.starts_with("multipart/")
    };
    let start = kind.param("start").map(plain_id).filter(|start| !start.is_empty());
    let own = kind.param("type").map(str::to_ascii_lowercase);
    let find = |is: &dyn Fn(&PartHeaders) -> bool| inner.iter().position(|part| is_text(part) && is(part));
    let found = start.and_then(|start| find(&|part: &PartHeaders| part.id == start));
    let found = found.or_else(|| own.and_then(|own| find(&|part: &PartHeaders| part.kind == own.trim())));
    found.or_else(|| find(&|_: &PartHeaders| true)).map_or(1, |at| at + 1)
}

/// The multipart around a part.
pub struct MultipartContext {
    pub kind: MultipartKind,
    depth: usize,
    /// Parts so far.
    pub parts: usize,
    /// The main one of related parts.
    pub root: usize,
    in_alternative: bool,
    pub needs_html: bool,
    pub needs_text: bool,
    /// Alternatives other than plain text and HTML.
    pub other: Vec<usize>,
}

impl Default for MultipartContext {
    fn default() -> Self {
        Self {
            kind: MultipartKind::Mixed,
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

impl MultipartContext {
    /// The context inside of a nested multipart.
    pub fn within(&self, kind: &ContentType, inner: &[&[u8]]) -> Result<Self, LimitError> {
        if self.depth == DEPTH {
            return Err(LimitError::Depth);
        }
        let inner: Vec<_> = inner.iter().map(|entity| PartHeaders::of(entity)).collect();
        let (root, kind) = (root(kind, &inner), MultipartKind::of(kind, &inner));
        let in_alternative = self.in_alternative || kind == MultipartKind::Alternative;
        let (needs_html, needs_text) = (self.needs_html, self.needs_text);
        let (depth, other) = (self.depth + 1, Vec::new());
        Ok(Self { kind, depth, parts: 0, root, in_alternative, needs_html, needs_text, other })
    }

    /// Whether a text counts as HTML and as plain text: inside of an alternative, the first kind stands only for
    /// itself.
    pub fn choose_for(&mut self, kind: Kind) -> (bool, bool) {
        if self.in_alternative && (self.needs_html || self.needs_text) {
            match kind {
                Kind::Html => self.needs_text = false,
                _ => self.needs_html = false,
            }
        }
        (self.needs_html, self.needs_text)
    }
}
