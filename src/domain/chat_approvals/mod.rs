//! Asking people where they are: a member who has shown which chat is theirs gets there what agents ask, and answers there.
//!
//! - `linking.rs`: a code from the panel, said once in a private chat, makes a link of member, channel and the vendor's user id.
//! - `asking.rs`: who is asked what: rows, written in the transaction that raises or ends the request, which are
//!   [jobs](crate::core::queue); `sending.rs` sends them, and takes the buttons away when it is over.
//! - `wording.rs`: what is said, and what an answer means: pure.
//! - `deciding.rs`: what people tap and write; `rights.rs`: whether they may, at that moment.
//!
//! Only what the vendor itself vouches for, in a private chat, decides anything ([`muster_channels::Proof::Vendor`]).

mod asking;
mod deciding;
mod entity;
mod linking;
mod queries;
mod rights;
mod sending;
mod wording;

pub use self::{
    asking::{ask, over},
    deciding::{answered, pressed},
    linking::{Code, introduce, link, of, unlink, unlink_all},
    queries::{ASK_DUE, Linked, waiting},
    sending::send_due,
};

/// What a message was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Something else: it goes on its way.
    NotOurs,
    /// It is used up, and this is what to answer.
    Answer(String),
    /// It is used up, and no one answers.
    Nothing,
}
