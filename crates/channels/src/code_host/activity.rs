//! What happened at a code host, in the same words for all hosts, and the message that comes of it.

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{
    host::{Target, is_repository},
    text::{MARKER, take_mentions},
};
use crate::{
    contract::{Attention, CodeHostRules, Content, Inbound, OneLine, Origin, Proof, RemoteFile, Thread},
    quoting::{bracket_name, escape_notes, join_paragraphs, quote},
};

/// Something that a person did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    Asked,
    Assigned,
    Closed,
    Deleted,
    Edited,
    Labelled,
    /// An action of a usual event, which a channel may list by its name.
    Rare,
    Reopened,
    /// Also opened, submitted.
    Said,
    /// Another event, which a channel may list.
    Other,
}

/// An issue, a pull request or a discussion.
#[derive(Debug, Default)]
pub struct Subject {
    pub mark: char,
    pub number: u64,
    pub title: String,
    pub body: String,
    pub author: String,
    /// Whose turn it is: assignees, and those who are asked for a review.
    pub concerned: Vec<String>,
    pub labels: Vec<String>,
}

/// An event with what it is about.
#[derive(Debug)]
pub struct Activity {
    pub event: String,
    pub action: String,
    pub deed: Deed,
    pub repo: String,
    pub repo_id: u64,
    pub sender: Person,
    pub subject: Subject,
    /// The thread of a review.
    pub thread: Option<String>,
    /// The path of what was written, below the host's root.
    pub vendor_id: Option<String>,
    /// The id of what was written or changed. `None`: each event is another one.
    pub id: Option<String>,
    pub text: String,
    pub context: String,
    /// Who was assigned, asked or named by a label: a login, or the label.
    pub whom: Vec<String>,
    pub updated: String,
}

#[derive(Debug, Default)]
pub struct Person {
    pub id: String,
    pub login: String,
    pub is_bot: bool,
    /// The App by which it was done.
    pub app: Option<String>,
}

impl Activity {
    /// The message of an event, if a channel with these rules wants it.
    pub fn into_message(self, rules: &CodeHostRules, payload: &Value) -> Option<Inbound> {
        let is_edit = matches!(self.deed, Deed::Deleted | Deed::Edited);
        // A version of something without an id has no place.
        if !self.is_wanted(rules) || (is_edit && self.vendor_id.is_none()) {
            return None;
        }
        let login = rules.login.as_deref();
        let is_us = |name: &String| login.is_some_and(|login| is_login(name, login));
        let whole = self.whole_text();
        // Other agents of Muster may have accounts like people's.
        let is_program = self.sender.is_bot || whole.contains(MARKER);
        let (text, is_mentioned) = take_mentions(&whole, login);
        let is_asked = match self.deed {
            Deed::Labelled => true,
            Deed::Asked | Deed::Assigned => self.whom.iter().any(is_us),
            Deed::Said | Deed::Edited => is_mentioned,
            _ => false,
        };
        let is_ours = is_us(&self.subject.author) || self.subject.concerned.iter().any(is_us);
        let is_addressed = match rules.attention {
            Attention::All => true,
            Attention::Involved => is_asked || is_ours,
            Attention::Mentions => is_mentioned || self.deed == Deed::Labelled,
        };
        let target = self.target();
        let key = format!("{}{}", self.repo_id, &target[self.repo.len()..]);
        let mut text = escape_notes(text.trim());
        if self.deed == Deed::Deleted {
            text.clear();
        } else if text.is_empty() {
            text = format!("@{}", login.unwrap_or_default());
        }
        let whom = self.whom.join(",");
        let id = self.id.unwrap_or_else(|| hex::encode(Sha256::digest(payload.to_string())));
        let authors = [Some(self.sender.login.clone()), self.sender.app];
        Some(Inbound {
            key: Some(format!("{}:{}:{id}:{}:{whom}", self.event, self.action, self.updated)),
            answers: None,
            album: None,
            is_edit,
            authors: authors.into_iter().flatten().collect(),
            is_automatic: is_program,
            // A program needs an entry of its own on the whitelist: that of its repository admits only people.
            origin: Origin {
                place: (!is_program).then(|| self.repo.clone()),
                name: OneLine::name(&self.sender.login),
                id: self.sender.id,
            },
            proof: Proof::Signed,
            thread: Thread {
                key,
                refs: self.vendor_id.iter().filter(|_| is_edit).cloned().collect(),
                readers: Vec::new(),
                title: OneLine::title(&format!("{} {}", short(&target), self.subject.title)),
                target,
                is_private: false,
            },
            is_addressed,
            labels: self.subject.labels,
            context: if is_edit { String::new() } else { self.context },
            text,
            files: if rules.has_payload && !is_edit { vec![payload_file(payload)] } else { Vec::new() },
            at: self.updated.parse().unwrap_or(Timestamp::UNIX_EPOCH),
            source: None,
            vendor_id: self.vendor_id,
        })
    }

    fn is_wanted(&self, rules: &CodeHostRules) -> bool {
        let is_same = |listed: &String| listed.eq_ignore_ascii_case(&self.repo);
        if !is_repository(&self.repo) || !(rules.repos.is_empty() || rules.repos.iter().any(is_same)) {
            return false;
        }
        let action = format!("{}.{}", self.event, self.action);
        let is_listed = rules.events.iter().any(|event| *event == self.event || *event == action);
        let is_label = |label: &String| rules.labels.iter().any(|one| one.eq_ignore_ascii_case(label));
        match self.deed {
            Deed::Other => is_listed,
            Deed::Rare => rules.events.contains(&action),
            // Others are not worth a turn.
            Deed::Labelled => self.whom.iter().any(is_label) && (rules.events.is_empty() || is_listed),
            _ => rules.events.is_empty() || is_listed,
        }
    }

    /// Where answers go.
    fn target(&self) -> String {
        let Subject { mark, number, .. } = self.subject;
        let thread = self.thread.as_ref().map(|thread| format!("/{thread}")).unwrap_or_default();
        let target = format!("{}{mark}{number}{thread}", self.repo);
        // An unusable thread must not lose the message.
        if Target::parse(&target).is_some() { target } else { format!("{}{mark}{number}", self.repo) }
    }

    fn whole_text(&self) -> String {
        let names = self.whom.join(", ");
        match self.deed {
            Deed::Said | Deed::Edited => self.text.clone(),
            Deed::Asked => format!("Asked for a review: {names}"),
            Deed::Assigned => format!("Assigned: {names}"),
            Deed::Labelled => format!("Labelled: {names}"),
            Deed::Closed if self.text.is_empty() => "Closed.".to_owned(),
            Deed::Closed => self.text.clone(),
            Deed::Reopened if self.action == "ready_for_review" => "Ready for review.".to_owned(),
            Deed::Reopened => "Reopened.".to_owned(),
            Deed::Deleted => String::new(),
            Deed::Other | Deed::Rare => {
                join_paragraphs(&[&format!("{} {}", self.event, self.action), &self.text])
            }
        }
    }
}

impl Subject {
    /// Quotes it, for messages that say nothing about it.
    pub fn quoted(&self) -> String {
        quote(&format!("In answer to {}", bracket_name(&self.title)), &self.body)
    }
}

/// The thread of the issue to which a review's thread belongs.
pub fn thread_root(key: &str) -> &str {
    key.split_once('/').map_or(key, |(root, _)| root)
}

/// Whether a name is that of an account, or of a GitHub App's bot.
fn is_login(name: &str, login: &str) -> bool {
    name.strip_suffix("[bot]").unwrap_or(name).eq_ignore_ascii_case(login)
}

/// `name#12` of `owner/name#12/7`.
fn short(target: &str) -> &str {
    let end = target.find(['#', '!', '~']).and_then(|mark| target[mark..].find('/').map(|at| mark + at));
    let whole = &target[..end.unwrap_or(target.len())];
    whole.rsplit_once('/').map_or(whole, |(_, name)| name)
}

/// A file's path in the head of a quote, which it must not end.
pub fn quoted_path(path: &Value) -> String {
    path.as_str().unwrap_or_default().replace(|c: char| c.is_control() || matches!(c, '[' | ']'), "_")
}

fn payload_file(payload: &Value) -> RemoteFile {
    let bytes = Bytes::from(payload.to_string());
    RemoteFile {
        name: "payload.json".to_owned(),
        media_type: "application/json".to_owned(),
        size: Some(bytes.len() as u64),
        content: Content::Here(bytes),
    }
}
