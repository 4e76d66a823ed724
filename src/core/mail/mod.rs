//! Mail: what the service tells people outside of a panel.
//!
//! A mail waits in the [outbox](crate::core::outbox) as what it is about, without link or token. Its letter is written in the
//! moment of sending, by the slice that knows what it is about, and only then is the token of its link made: neither the
//! database nor a copy of it ever holds a link that works. Each further try has a new link.
//!
//! - `transport.rs`: how mail leaves: SMTP, a folder, the demonstration's log, or not at all.
//! - `letter.rs`: from a template to the two forms of a mail, text and HTML.

mod letter;
mod transport;

pub use self::{
    letter::{Letter, Template},
    transport::{LOG, Mailer, SendError, can_be_sent_to, check_url},
};
