//! The mails to people about their accounts, and the targets of their links.
//!
//! Links lead to pages of the panel: `/confirm-email`, `/reset-password`, and `/accept-invitation`, each with
//! `#token=…`, which the page passes to the mutation of the same name.

use secrecy::{ExposeSecret, SecretString};

use super::users::by_id;
use crate::{
    base::{ids::UserId, problem::Result, time::Timestamp},
    core::{
        Core,
        mail::{Letter, Template},
        store::Transaction,
    },
    domain::{
        mails,
        people::{SignInOrigin, entity::users},
    },
};

pub use crate::domain::mails::Notice;

fn write(core: &Core, template: Template, values: &[(&str, &str)]) -> Letter {
    Letter::write(template, &[values, &[("site", core.mailer.site())]].concat())
}

/// A letter with a link to a page of the panel.
pub fn with_link(
    core: &Core,
    (template, page): (Template, &str),
    (token, expires_at): (&SecretString, Timestamp),
    values: &[(&str, &str)],
) -> Letter {
    let (link, expires) = (core.mailer.link(page, token.expose_secret()), readable(expires_at));
    write(core, template, &[values, &[("link", &link), ("expires", &expires)]].concat())
}

/// The letter that notifies a person of an event of their account.
///
/// # Errors
/// `NOT_FOUND`; the database is unreachable.
pub async fn compose_notice(
    core: &Core,
    user: UserId,
    what: Notice,
    (at, from): (Timestamp, &str),
) -> Result<Letter> {
    let name = by_id(core.db.read(), user).await?.name;
    Ok(write_notice(core, &name, what, (at, from)))
}

fn write_notice(core: &Core, name: &str, what: Notice, (at, from): (Timestamp, &str)) -> Letter {
    let ((subject, what), when) = (notice_texts(what), readable(at));
    write(
        core,
        Template::Notice,
        &[("name", name), ("subject", subject), ("what", what), ("when", &when), ("from", from)],
    )
}

/// The subject of a notice, and its text.
const fn notice_texts(what: Notice) -> (&'static str, &'static str) {
    match what {
        Notice::PasswordChanged => (
            "Your password was changed",
            "The password of your account was changed. Your other sessions were ended.",
        ),
        Notice::EmailChanged => (
            "Your e-mail address was changed",
            "Your account now has a different e-mail address. This one no longer belongs to it.",
        ),
        Notice::SecondFactorOn => {
            ("A second factor was set up", "Signing in to your account now requires a code from your app.")
        }
        Notice::SecondFactorOff => (
            "The second factor was removed",
            "Signing in to your account no longer requires a code from your app.",
        ),
        Notice::SecondFactorReset => (
            "The second factor was reset",
            "The operator of this installation has removed your second factor and its recovery codes. Signing in no \
             longer requires a code. Your sessions were ended.",
        ),
        Notice::PasswordReset => (
            "Your password was reset",
            "The operator of this installation has removed your password and created a link for setting a new one. Your \
             sessions were ended.",
        ),
        Notice::RecoveryCodeUsed => (
            "A recovery code was used",
            "Someone signed in to your account with a recovery code. Each code works once. Get new ones when you are running low.",
        ),
        Notice::RecoveryCodesRenewed => (
            "Your recovery codes were replaced",
            "Your account has new recovery codes. The old ones no longer work.",
        ),
        Notice::RefreshTokenReused => (
            "A session was ended for your security",
            "One of your sessions was used from two places, which can mean that it was stolen. It was ended. Please sign in again.",
        ),
        Notice::AccountLinked => {
            ("Another way to sign in", "An account with another provider can now sign in to your account.")
        }
        Notice::AccountUnlinked => (
            "A way to sign in was removed",
            "An account with another provider is no longer linked to your account.",
        ),
        Notice::ChatUnlinked => (
            "A chat is no longer linked",
            "The channel below now has another bot, or was deleted, so your linked chat can no longer be used for decisions. \
             Link it again in the panel if you expected the change.",
        ),
        Notice::DeletionScheduled => (
            "Your organization will be deleted",
            "The organization below will be deleted with all its data. Until then an OWNER can cancel this in the panel's \
             settings, and export the data.",
        ),
        Notice::DeletionBegun => (
            "Your organization is being deleted",
            "The organization below is being deleted. Its members no longer have access, its agents are stopped and its \
             data is removed.",
        ),
        Notice::ErasureScheduled => (
            "A person will be erased",
            "A member or a contact of the organization below will be erased: their name and addresses are replaced in its \
             records. Until then an OWNER can cancel this in the panel's settings.",
        ),
        Notice::ErasureCancelled => (
            "An erasure was cancelled",
            "The deletion of the organization below, or the erasure of a person in it, was cancelled.",
        ),
    }
}

/// Notifies a person, at `recipient`, of an event of their account.
pub fn notify(
    core: &Core,
    tx: &Transaction,
    user: &users::Model,
    recipient: &str,
    notice: Notice,
    from: &SignInOrigin,
) {
    let from = from.ip.map_or_else(|| "unknown".to_owned(), |ip| ip.to_string());
    mails::enqueue_notice(core, tx, (user.id, recipient.to_owned()), notice, from);
}

/// Notifies a person of an operation by the operator on their account.
pub fn notify_by_operator(core: &Core, tx: &Transaction, user: &users::Model, notice: Notice) {
    let from = "the operator of this installation".to_owned();
    mails::enqueue_notice(core, tx, (user.id, user.email.clone()), notice, from);
}

/// `2026-06-01 12:00 UTC`.
pub fn readable(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{} UTC", text.get(..16).unwrap_or(&text).replace('T', " "))
}
