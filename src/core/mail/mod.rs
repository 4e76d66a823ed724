//! Mail: messages to people outside the panel.
//!
//! A mail waits in a table as a reference to its subject matter, without link or token. The
//! responsible feature writes the letter when it is sent, and only then creates the token of its link: neither the
//! database nor a copy of it ever contains a working link. Each retry has a new link.
//!
//! - `transport.rs`: how mail is sent: by SMTP, to a folder, to the demo's log, or not at all.
//! - `server_url.rs`: the URL of the mail server, as the settings have it.
//! - `letter.rs`: from a template to the two forms of a mail, text and HTML.

mod letter;
mod server_url;
mod transport;

pub use self::{
    letter::{Letter, Paragraph, Template},
    server_url::{LOG, check_url},
    transport::{Mailer, SendError, can_be_sent_to},
};
