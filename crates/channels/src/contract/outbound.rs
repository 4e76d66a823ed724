//! Output to the vendor.

use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

/// One message for the vendor: a whole answer, or one part of a long one.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// The delivery's id: the same for every attempt. Letters, digits, `-` and `_`.
    pub id: &'a str,
    /// The conversation's reference, as shown to people.
    pub conversation: &'a str,
    /// The participants. `None` outside of a conversation.
    pub scene: Option<&'a Participants>,
    /// The destination: [`Thread::target`](super::Thread::target).
    pub target: &'a str,
    /// The text, rendered in the vendor's dialect and short enough.
    pub text: &'a Rendered,
    /// The speaker, if a person speaks instead of the agent.
    pub speaker: Option<&'a str>,
    /// The vendor id of the message being replied to.
    pub reply_to: Option<&'a str>,
    /// Vendor ids of earlier messages of the conversation, oldest first.
    pub refs: &'a [String],
    /// The conversation's title.
    pub title: Option<&'a str>,
    /// Choices below the text.
    pub buttons: &'a [Button],
    /// The attached files.
    pub files: &'a [Attachment],
    /// The vendor id of the message to replace.
    pub replaces: Option<&'a str>,
    /// When the message was written.
    pub written_at: Timestamp,
}

/// A call of an [`Action`](super::Action).
#[derive(Clone, Copy, Debug)]
pub struct ActionCall<'a> {
    /// The delivery's id, as in [`Part::id`].
    pub id: &'a str,
    /// The action's name.
    pub name: &'a str,
    /// The checked arguments.
    pub arguments: &'a Value,
    /// The conversation's [`Thread::target`](super::Thread::target).
    pub target: &'a str,
    /// Vendor ids of the messages received before it in the conversation, newest first.
    pub received: &'a [String],
}

/// The participants of a conversation, by which programs on the other side tell conversations apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Participants {
    /// The conversation's id.
    pub conversation: i64,
    pub channel: NamedId,
    pub agent: NamedId,
    /// The person on the other side, if known.
    pub contact: Option<NamedId>,
    /// The last author's [`Origin::id`](super::Origin::id).
    pub origin: Option<String>,
}

/// An id with a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedId {
    pub id: i64,
    pub name: String,
}

/// A text in one dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// With the dialect's markup.
    pub text: String,
    /// Without markup, as a fallback or an alternative.
    pub plain: String,
}

/// A choice below a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Button {
    /// The text on the button.
    pub label: String,
    /// Returned in [`ButtonPress::value`](super::ButtonPress::value). At most 64 bytes.
    pub value: String,
}

/// A file to send.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// The file name.
    pub name: String,
    pub media_type: String,
    pub content: Bytes,
}

/// Confirmation by the vendor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// The vendor's id of the message or of the action's result, for replies and bounces.
    pub vendor_id: Option<String>,
    /// The new target, if it differs from the part's: replies come from there.
    pub target: Option<String>,
}
