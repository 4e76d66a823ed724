//! Comments on Google's documents: <https://developers.google.com/workspace/drive/api/reference/rest/v3/comments>.

use std::mem;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::{
    files::{File, PLACE},
    google::Me,
};
use crate::{
    contract::{Event, Inbound, OneLine, Origin, Proof, Refusal, Thread},
    quoting::{bracket_name, escape_notes, quote, short_name},
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Comment {
    #[serde(flatten)]
    said: Said,
    quoted_file_content: Option<Quoted>,
    #[serde(default)]
    replies: Vec<Said>,
}

#[derive(Deserialize)]
struct Quoted {
    #[serde(default)]
    value: String,
}

/// A comment or a reply.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said {
    id: String,
    #[serde(default)]
    content: String,
    created_time: Timestamp,
    #[serde(default)]
    author: Author,
    #[serde(default)]
    deleted: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Author {
    #[serde(default)]
    display_name: String,
    #[serde(default)]
    me: bool,
}

impl Said {
    /// Whether it names our account.
    fn names(&self, me: &Me) -> bool {
        let content = self.content.to_lowercase();
        let is_part = |c: char| c.is_alphanumeric();
        let is_apart = |at: usize, name: &str| {
            !content[..at].ends_with(is_part) && !content[at + name.len()..].starts_with(is_part)
        };
        [&me.address, &me.name].into_iter().any(|name| {
            let name = name.to_lowercase();
            !name.is_empty() && content.match_indices(&name).any(|(at, found)| is_apart(at, found))
        })
    }
}

/// Decodes a comment with its replies: what others wrote after `since`, in order.
pub fn decode(
    comment: &Value,
    file: &File,
    me: &Me,
    since: Timestamp,
) -> Result<Vec<(Timestamp, Event)>, Refusal> {
    let malformed =
        |error| Refusal::Malformed(format!("This is not a comment of Google Drive: {error}").into());
    let mut comment = Comment::deserialize(comment).map_err(malformed)?;
    let replies = mem::take(&mut comment.replies);
    // Replies in a thread are for us once we take part in it.
    let mut is_ours = false;
    let mut events = Vec::new();
    for (nth, said) in [&comment.said].into_iter().chain(&replies).enumerate() {
        let was_ours = is_ours;
        is_ours |= said.author.me || said.names(me);
        // Resolving a thread is a reply without a text.
        let is_new = said.created_time > since && !said.deleted && !said.content.trim().is_empty();
        if is_new && !said.author.me {
            let mut event = message(&comment, said, nth > 0, file);
            event.is_addressed = is_ours;
            if !was_ours {
                event.context = context(&comment, nth > 0);
            }
            events.push((said.created_time, Event::Message(Box::new(event))));
        }
    }
    Ok(events)
}

/// What the agent has not received yet: the text of the document, and for a reply the comment.
fn context(Comment { said, quoted_file_content, .. }: &Comment, is_reply: bool) -> String {
    let quoted = quoted_file_content.as_ref().map(|quoted| quoted.value.trim()).unwrap_or_default();
    let mut context = Vec::new();
    if !quoted.is_empty() {
        context.push(quote("A text of the document came with this message", quoted));
    }
    if is_reply {
        context
            .push(quote(&format!("In answer to {}", bracket_name(&said.author.display_name)), &said.content));
    }
    context.join("\n\n")
}

fn message(comment: &Comment, said: &Said, is_reply: bool, file: &File) -> Inbound {
    let root = &comment.said;
    let key = if is_reply { format!("{}/{}", root.id, said.id) } else { root.id.clone() };
    let thread = format!("{}/{}", file.id, root.id);
    Inbound {
        key: Some(key.clone()),
        vendor_id: Some(key),
        album: None,
        is_edit: false,
        answers: is_reply.then(|| root.id.clone()),
        // Google tells nothing about the authors of comments but their names, which anyone can choose.
        origin: Origin {
            id: format!("name:{}", short_name(&said.author.display_name)),
            place: Some(PLACE.to_owned()),
            name: OneLine::name(&said.author.display_name),
        },
        authors: Vec::new(),
        is_automatic: false,
        proof: Proof::None,
        thread: Thread {
            key: thread.clone(),
            refs: vec![root.id.clone()],
            readers: Vec::new(),
            target: thread,
            title: OneLine::title(&file.name),
            is_private: false,
        },
        is_addressed: false,
        labels: Vec::new(),
        context: String::new(),
        text: escape_notes(said.content.trim()),
        files: Vec::new(),
        at: said.created_time,
        source: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::summarize;

    fn read(comment: &Value) -> Result<Vec<(Timestamp, Event)>, Refusal> {
        let file = File { id: "F1".to_owned(), name: "Plan.md".to_owned(), ..File::default() };
        let me = Me { id: None, name: "Agent".to_owned(), address: "agent@example.test".to_owned() };
        decode(comment, &file, &me, "2026-11-30T10:00:00Z".parse().unwrap())
    }

    #[test]
    fn samples() {
        muster_samples::check("drive", |bytes| match read(&muster_json::from_slice(bytes).unwrap()) {
            Ok(events) => events.into_iter().map(|(_, event)| summarize(&Ok(Some(event)))).collect(),
            Err(refusal) => summarize(&Err(refusal)),
        });
    }
}
