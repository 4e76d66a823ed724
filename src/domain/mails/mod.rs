//! The queue of mails: a table of references to their subjects, without links and tokens.
//!
//! A mail is enqueued in the transaction of the change that causes it. The feature that owns its subject writes the
//! letter when it is sent, and creates the token of its link only then: neither the database nor a backup ever contains
//! a valid link. Mails with the same order key are sent one after the other. They are [jobs](crate::core::queue): each
//! is tried again until it expires.

mod queries;

use std::time::Duration;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::json;
use tokio::time::timeout;

pub use self::queries::{DUE, Queued, due, waiting};
use crate::{
    base::{
        enums::NotificationKind,
        ids::{AgentId, ApprovalId, EventEndpointId, InvitationId, OrgId, UserId},
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        queue::{self, Outcome, backoff},
        store::Transaction,
    },
};

/// How long sending a mail may take.
const LONGEST_SEND: Duration = Duration::from_secs(90);

/// How long a notice is worth sending.
pub const NOTICE_LIFETIME: Duration = Duration::from_hours(72);

/// A mail whose letter has not been written yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "letter", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Mail {
    /// A link that confirms an address or sets a new password.
    Link {
        /// The row of `email_tokens`.
        id: i64,
    },
    /// A link that accepts an invitation.
    Invitation { id: InvitationId },
    /// A notice that something happened to an account.
    Notice {
        user_id: UserId,
        /// The account's address at the time: an intruder who changes the address must not receive the warning.
        to: String,
        what: Notice,
        /// The origin: an IP address, or a description.
        from: String,
    },
    /// An event endpoint was switched off.
    EventEndpointOff { org: OrgId, id: EventEndpointId, user_id: UserId },
    /// Notifications of a person about approvals and agents.
    Notifications {
        user_id: UserId,
        about: Vec<About>,
        /// The number of further notifications, which the mail does not list.
        more: usize,
    },
}

impl Mail {
    /// Mails with the same key are sent one after the other.
    fn order_key(&self) -> Option<String> {
        match self {
            Self::Notifications { user_id, .. } => Some(format!("notifications:{user_id}")),
            Self::Link { .. }
            | Self::Invitation { .. }
            | Self::Notice { .. }
            | Self::EventEndpointOff { .. } => None,
        }
    }
}

/// One notification of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    pub org: OrgId,
    pub what: NotificationKind,
    /// The approval, unless it is about an agent.
    pub approval: Option<ApprovalId>,
    /// The agent that has failed.
    pub agent: Option<AgentId>,
}

/// An event of an account that its owner should know about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Notice {
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
    ChatUnlinked,
    DeletionScheduled,
    DeletionBegun,
    ErasureScheduled,
    ErasureCancelled,
}

/// A name, unless it contains a URL that a mail program would turn into a link.
#[must_use]
pub fn safe_name<'a>(name: Option<&'a str>, default: &'a str) -> &'a str {
    name.filter(|name| !name.contains("://")).unwrap_or(default)
}

/// Enqueues a mail in the transaction. It is not sent after `expires_at`.
pub fn enqueue(core: &Core, tx: &Transaction, mail: &Mail, expires_at: Timestamp) {
    queries::insert(tx, json!(mail), mail.order_key(), (core.clock.now(), expires_at));
    queue::wake_after(core, tx);
}

/// Enqueues a notice to the owner of an account.
pub fn enqueue_notice(
    core: &Core,
    tx: &Transaction,
    (user_id, to): (UserId, String),
    what: Notice,
    from: String,
) {
    let expires_at = core.clock.now().plus(NOTICE_LIFETIME);
    enqueue(core, tx, &Mail::Notice { user_id, to, what, from }, expires_at);
}

/// Claims a mail, sends it with `send`, and stores the outcome. `None`: another replica has claimed it.
///
/// # Errors
/// The database is unreachable; a claimed mail is due again when its claim ends.
pub async fn attempt<M: DeserializeOwned, F: Future<Output = Result<Outcome>>>(
    core: &Core,
    queued: &Queued,
    send: impl FnOnce(M) -> F,
) -> Result<Option<Outcome>> {
    let lease = LONGEST_SEND.saturating_add(queue::CLAIM_MARGIN);
    if !queries::claim(core, queued, lease).await? {
        return Ok(None);
    }
    let outcome = send_claimed(core, queued, send).await;
    if matches!(outcome, Outcome::Done | Outcome::Obsolete | Outcome::GivenUp(_)) {
        queries::delete(core, queued.id).await?;
    } else {
        let wait = backoff::after(queued.attempts + 1).unwrap_or(backoff::LONGEST);
        queries::put_off(core, queued, wait).await?;
    }
    Ok(Some(outcome))
}

async fn send_claimed<M: DeserializeOwned, F: Future<Output = Result<Outcome>>>(
    core: &Core,
    queued: &Queued,
    send: impl FnOnce(M) -> F,
) -> Outcome {
    if queued.expires_at <= core.clock.now() {
        return Outcome::GivenUp("It expired before it could be sent.".to_owned());
    }
    let mail = match M::deserialize(&queued.payload) {
        Ok(mail) => mail,
        Err(error) => return Outcome::Unreadable(error.to_string()),
    };
    match timeout(LONGEST_SEND, send(mail)).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(problem)) => Outcome::Later(problem.to_string()),
        Err(_) => Outcome::Later("The mail server did not answer in time.".to_owned()),
    }
}
