//! Approvals in chats: a member who has linked a chat gets the requests of agents there, and answers them there.
//!
//! - `linking.rs`: a code from the panel, sent once in a private chat, links a member, a channel and the vendor's user
//!   id.
//! - `asking.rs`: rows of messages, written in the transaction that raises or closes an approval, which are
//!   [jobs](crate::core::queue); `sending.rs` sends them, and removes their buttons when the approval is closed.
//! - `wording.rs`: texts of messages, and the meaning of answers: pure.
//! - `deciding.rs`: handles taps and replies; `rights.rs`: checks the permission at that moment.
//!
//! Only messages in private chats whose author the vendor proves decide anything ([`muster_channels::Proof::Vendor`]).

mod asking;
mod deciding;
mod entity;
mod linking;
mod queries;
mod rights;
mod sending;
mod wording;

pub use self::{
    asking::{ask, close},
    deciding::{handle_answer, handle_press},
    linking::{LinkCode, create_code, list_linked, try_code, unlink, unlink_all},
    queries::{ASK_DUE, Linked, waiting},
    sending::send_due,
};

/// The outcome of handling a message as a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyOutcome {
    /// Not a reply to us: a message for the agent.
    NotOurs,
    /// Handled, with this answer.
    Answer(String),
    /// Handled, without an answer.
    Nothing,
}
