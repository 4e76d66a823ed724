//! The content of a file, in either language, with the line of each value.

use serde_json::{Map, Value};

/// A value, and the line it is on, counted from 1.
#[derive(Clone, Debug)]
pub struct Node {
    pub line: usize,
    pub content: Content,
}

#[derive(Clone, Debug)]
pub enum Content {
    Scalar(Value),
    List(Vec<Node>),
    /// Keys in the order of the file.
    Map(Vec<(String, Node)>),
}

/// A mistake, and its line.
#[derive(Debug, PartialEq, Eq)]
pub struct Mistake {
    pub line: usize,
    pub what: String,
}

impl Mistake {
    pub fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

impl Node {
    /// The value without lines.
    pub fn value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => items.iter().map(Self::value).collect(),
            Content::Map(entries) => Value::Object(
                entries.iter().map(|(key, node)| (key.clone(), node.value())).collect::<Map<_, _>>(),
            ),
        }
    }

    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.content {
            Content::Map(entries) => entries.iter().find(|(known, _)| known == key).map(|(_, node)| node),
            _ => None,
        }
    }

    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The line of the value at a JSON pointer, or of the last part of it that is there.
    pub fn line_of(&self, pointer: &str) -> usize {
        let mut node = self;
        for part in pointer.split('/').skip(1) {
            let inner = match &node.content {
                Content::List(items) => part.parse().ok().and_then(|at: usize| items.get(at)),
                _ => node.get(part),
            };
            let Some(inner) = inner else { break };
            node = inner;
        }
        node.line
    }
}
