//! Notifications: people get mails about what waits for them, and choose which and when.
//!
//! - `notify.rs`: who is notified of an event, and when. Written in the transaction of the event.
//! - `collect.rs`: what a person is due to be told becomes one mail.
//! - `content.rs`: what there is to say about it by then, if the person may still see it.
//! - `letter.rs`: the medium mail; `delivery.rs` sends it, and all other mails.
//! - `settings.rs`: what each member has chosen.
//! - `queries.rs`: the SQL of all of them.
//!
//! Nothing here decides anything: a notification leads to the panel. Its rows belong to people, who may be members of
//! several organizations, so they are read without a scope; every statement names the organization or the person.

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
    queries::DUE,
    settings::{Choice, Paces, of, set},
};
use crate::core::Core;

/// Whether there are notifications at all: there is a medium.
#[must_use]
pub fn are_on(core: &Core) -> bool {
    core.mailer.is_on()
}
