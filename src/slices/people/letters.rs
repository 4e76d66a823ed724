//! What people are told by mail, and what their links lead to.
//!
//! The links lead to pages of the panel: `/confirm-email`, `/reset-password` and `/accept-invitation`, each with
//! `#token=…`, which the page hands to the mutation of the same name.

use sea_orm::ConnectionTrait;
use secrecy::ExposeSecret;
use serde_json::json;

use super::{Client, entity::users, invitations, links};
use crate::{
    base::{problem::Result, time::Timestamp},
    core::{
        Core,
        mail::{self, Kind, Letter, Outgoing, Row, Template},
    },
};

/// How long a notice is worth sending.
const NOTICE_LIFETIME: std::time::Duration = std::time::Duration::from_hours(72);

/// The letter for a mail that is just being sent; none if what it is about is over.
///
/// # Errors
/// The database is out of reach.
pub async fn compose(core: &Core, row: &Row) -> Result<Option<Letter>> {
    let token = match (row.kind, row.subject_id) {
        (Kind::Notice, _) => None,
        (_, None) => return Ok(None),
        (Kind::Invitation, Some(id)) => Some(invitations::mint(core, id).await?),
        (_, Some(id)) => Some(links::mint(core, id).await?),
    };
    let token = match token {
        Some(None) => return Ok(None),
        Some(Some(token)) => Some(token),
        None => None,
    };
    let (template, page) = match row.kind {
        Kind::ConfirmEmail => (Template::ConfirmEmail, "confirm-email"),
        Kind::ResetPassword => (Template::ResetPassword, "reset-password"),
        Kind::Invitation => (Template::Invitation, "accept-invitation"),
        Kind::Notice => (Template::Notice, ""),
    };
    let link = token.map(|token| core.mailer.link(page, token.expose_secret())).unwrap_or_default();
    let expires = readable(row.expires_at);
    let mut values = vec![("site", core.mailer.site()), ("link", &link), ("expires", &expires)];
    let parts = row.parts.as_object().into_iter().flatten();
    values.extend(parts.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))));
    Ok(Some(Letter::write(template, &values)))
}

/// What has happened to an account that its owner should know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    PasswordChanged,
    EmailChanged,
    SecondFactorOn,
    SecondFactorOff,
    SecondFactorReset,
    PasswordReset,
    RecoveryCodeUsed,
    RecoveryCodesRenewed,
    RefreshTokenReused,
    AccountLinked,
    AccountUnlinked,
}

impl Notice {
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::PasswordChanged => (
                "Your password was changed",
                "The password of your account was changed. Other sessions were ended.",
            ),
            Self::EmailChanged => (
                "Your e-mail address was changed",
                "Your account has another e-mail address now; this one no longer belongs to it.",
            ),
            Self::SecondFactorOn => {
                ("A second factor was set up", "Signing in to your account now takes a code from your app.")
            }
            Self::SecondFactorOff => (
                "The second factor was removed",
                "Signing in to your account no longer takes a code from your app.",
            ),
            Self::SecondFactorReset => (
                "The second factor was reset",
                "The operator of this installation has removed your second factor and its recovery codes: signing in no \
                 longer takes a code. Your sessions were ended.",
            ),
            Self::PasswordReset => (
                "Your password was reset",
                "The operator of this installation has removed your password and made a link that sets a new one. Your \
                 sessions were ended.",
            ),
            Self::RecoveryCodeUsed => (
                "A recovery code was used",
                "Somebody signed in to your account with a recovery code. Each works once; renew them when few are left.",
            ),
            Self::RecoveryCodesRenewed => (
                "Recovery codes were renewed",
                "Your account has new recovery codes; the old ones no longer work.",
            ),
            Self::RefreshTokenReused => (
                "A session was ended for safety",
                "One of your sessions was used from two places, which happens when it was copied. It was ended; sign in again.",
            ),
            Self::AccountLinked => (
                "Another way to sign in",
                "An account with another provider can now sign in to your account.",
            ),
            Self::AccountUnlinked => (
                "A way to sign in was removed",
                "An account with another provider is no longer linked to your account.",
            ),
        }
    }
}

/// Tells a person what has happened to their account, at `recipient`.
pub(super) async fn notify(
    core: &Core,
    db: &impl ConnectionTrait,
    user: &users::Model,
    recipient: &str,
    notice: Notice,
    from: &Client,
) -> Result<()> {
    let from = from.ip.map_or_else(|| "unknown".to_owned(), |ip| ip.to_string());
    post(core, db, (user, recipient), notice, &from).await
}

/// Tells a person what the operator has done to their account.
pub(super) async fn notify_by_operator(
    core: &Core,
    db: &impl ConnectionTrait,
    user: &users::Model,
    notice: Notice,
) -> Result<()> {
    post(core, db, (user, &user.email), notice, "the operator of this installation").await
}

async fn post(
    core: &Core,
    db: &impl ConnectionTrait,
    (user, recipient): (&users::Model, &str),
    notice: Notice,
    from: &str,
) -> Result<()> {
    let now = core.clock.now();
    let (subject, what) = notice.words();
    let parts = json!({
        "name": user.name, "subject": subject, "what": what, "when": readable(now), "from": from,
    });
    let mail = Outgoing {
        kind: Kind::Notice,
        recipient: recipient.to_owned(),
        subject_id: None,
        parts,
        expires_at: now.plus(NOTICE_LIFETIME),
    };
    mail::enqueue(core, db, mail).await
}

/// `2026-06-01 12:00 UTC`.
pub(super) fn readable(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{} UTC", text.get(..16).unwrap_or(&text).replace('T', " "))
}
