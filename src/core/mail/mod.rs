//! Mail: what the service tells people outside of a panel.
//!
//! A mail is a row of `mail_outbox`, written in the transaction of what causes it ([`enqueue`]), so that there is none
//! without the other. The row says what kind of mail to whom; it holds no link and no token. Whoever sends it
//! ([`deliver_due`], a round) has the letter written in that moment ([`crate::slices::people::compose`]), and only then
//! is the token of its link made: neither the database nor a copy of it ever holds a link that works. A mail that
//! could not be sent is tried again, later each time, with a new link; one that comes too late to be of use goes.
//!
//! - `transport.rs`: how mail leaves: SMTP, a folder, the demonstration's log, or not at all.
//! - `letter.rs`: from a template to the two forms of a mail, text and HTML.
//! - `outbox.rs`: the rows, claimed by one replica at a time.

mod letter;
mod outbox;
mod transport;

pub use self::{
    letter::{Letter, Template},
    outbox::{Kind, Outgoing, Row, deliver_due, enqueue},
    transport::{LOG, Mailer, can_be_sent_to, check_url},
};
