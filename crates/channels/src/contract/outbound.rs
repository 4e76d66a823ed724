//! What goes to the vendor.

use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;

/// One message as the vendor will have it: a whole answer, or one part of a long one.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// The delivery's id: the same for every attempt. Letters, digits, `-` and `_`.
    pub id: &'a str,
    /// The conversation's reference, which people see.
    pub conversation: &'a str,
    /// Who speaks with whom, and where. `None` of what belongs to no conversation.
    pub scene: Option<&'a Scene>,
    /// Where it goes: [`Thread::target`](super::Thread::target).
    pub target: &'a str,
    /// The text, rendered for the vendor's dialect and short enough.
    pub text: &'a Rendered,
    /// Who speaks, if it is a person instead of the agent.
    pub speaker: Option<&'a str>,
    /// The vendor's id of the message that this one answers.
    pub reply_to: Option<&'a str>,
    /// Vendor ids of earlier messages of the conversation, the oldest first.
    pub refs: &'a [String],
    /// The conversation's title.
    pub title: Option<&'a str>,
    /// Choices below the text.
    pub buttons: &'a [Button],
    /// Files that go with it.
    pub files: &'a [Attachment],
    /// The vendor's id of the message that this one takes the place of.
    pub replaces: Option<&'a str>,
    /// When the message was written.
    pub written_at: Timestamp,
}

/// Who speaks with whom, and where: what programs on the other side tell conversations apart by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scene {
    /// Identifies the conversation.
    pub conversation: i64,
    /// The channel.
    pub channel: Named,
    /// The agent.
    pub agent: Named,
    /// The person on the other side, if it is known who that is.
    pub contact: Option<Named>,
    /// The [`Origin::id`](super::Origin::id) of who wrote last.
    pub origin: Option<String>,
}

/// Something with a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Named {
    /// Identifies it.
    pub id: i64,
    /// Its name.
    pub name: String,
}

/// A text, as one dialect writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// With the dialect's marks.
    pub text: String,
    /// Without any, for where the marks are refused, or both are sent.
    pub plain: String,
}

/// A choice below a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Button {
    /// What people read.
    pub label: String,
    /// What comes back in [`Press::value`](super::Press::value). At most 64 bytes.
    pub value: String,
}

/// A file that goes with a message.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// Its name.
    pub name: String,
    /// Its type.
    pub media_type: String,
    /// Its bytes.
    pub content: Bytes,
}

/// The vendor has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Its id at the vendor, which replies and bounces name.
    pub vendor_id: Option<String>,
    /// Where it is now, if that is another target than the part's: answers of people come from there.
    pub target: Option<String>,
}
