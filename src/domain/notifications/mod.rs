//! Notifications: mails to people about approvals and failed agents. Each member chooses which ones to get, and when.
//!
//! - `notify.rs`: the recipients and times of notifications, stored in the transaction of the event.
//! - `collect.rs`: collects a person's due notifications into one mail.
//! - `content.rs`: the content at that time, if the person may still see it.
//! - `letter.rs`: writes the mail; `delivery.rs` sends it, and all other mails.
//! - `settings.rs`: the members' choices.
//! - `queries.rs`: SQL.
//!
//! A notification decides nothing: it links to the panel. Its rows belong to people, who may be members of several
//! organizations, so they are read without a scope; every statement names the organization or the person.

mod collect;
mod content;
mod delivery;
mod letter;
mod notify;
mod queries;
mod settings;

pub use self::{
    collect::collect_due,
    delivery::deliver_due,
    notify::{agent_failed, approval_assigned, approval_expiring, approval_raised, forget_raised},
    queries::TO_COLLECT,
    settings::{Choice, Paces, effective_paces, update_settings},
};
use crate::core::Core;

/// Whether notifications are sent at all: mail is set up.
#[must_use]
pub fn are_on(core: &Core) -> bool {
    core.mailer.is_on()
}
