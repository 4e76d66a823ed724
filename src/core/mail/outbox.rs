//! The outbox: mail waits in the database until it has left.
//!
//! Any number of replicas look for what is due. Whoever takes a mail counts its attempts up and puts it off in one
//! statement that only one of them can win; should that replica die, the mail is due again after [`LEASE`].

use std::{sync::Arc, time::Duration};

use sea_orm::{ConnectionTrait, QueryResult, Statement, Value};
use tokio::time::timeout;

use super::{Letter, transport::SendError};
use crate::{
    base::{problem::Result, time::Timestamp},
    core::Core,
    slices::people,
};

/// How long a replica has for one mail.
const LEASE: Duration = Duration::from_mins(2);
/// How long a mail that could not be sent waits, by its attempts.
const WAITS: [Duration; 6] = [
    Duration::from_secs(15),
    Duration::from_mins(1),
    Duration::from_mins(5),
    Duration::from_mins(15),
    Duration::from_mins(30),
    Duration::from_hours(1),
];
/// How many are taken at a time.
const BATCH: u64 = 20;

/// What a mail is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A link that confirms an address; `subject_id` is the row of `email_tokens`.
    ConfirmEmail,
    /// A link that leads to a new password; `subject_id` is the row of `email_tokens`.
    ResetPassword,
    /// A link into an organization; `subject_id` is the invitation.
    Invitation,
    /// Something has happened to an account; `parts` says what.
    Notice,
}

impl Kind {
    const ALL: [Self; 4] = [Self::ConfirmEmail, Self::ResetPassword, Self::Invitation, Self::Notice];

    const fn as_str(self) -> &'static str {
        match self {
            Self::ConfirmEmail => "CONFIRM_EMAIL",
            Self::ResetPassword => "RESET_PASSWORD",
            Self::Invitation => "INVITATION",
            Self::Notice => "NOTICE",
        }
    }
}

/// A mail to send.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// What it is about.
    pub kind: Kind,
    /// To whom.
    pub recipient: String,
    /// The row that its link is for.
    pub subject_id: Option<i64>,
    /// What its text names: an object of texts. Never a secret.
    pub parts: serde_json::Value,
    /// From when on it is of no use.
    pub expires_at: Timestamp,
}

/// A mail that waits.
#[derive(Clone, Debug)]
pub struct Row {
    /// Identifies it.
    pub id: i64,
    /// What it is about.
    pub kind: Kind,
    /// To whom.
    pub recipient: String,
    /// The row that its link is for.
    pub subject_id: Option<i64>,
    /// What its text names.
    pub parts: serde_json::Value,
    /// From when on it is of no use.
    pub expires_at: Timestamp,
    attempts: i64,
}

/// Puts a mail into the outbox, in the transaction of what causes it.
///
/// # Errors
/// The database refused; then what causes the mail does not happen either.
pub async fn enqueue(core: &Core, db: &impl ConnectionTrait, mail: Outgoing) -> Result<()> {
    let now = core.clock.now().0;
    let sql = "INSERT INTO mail_outbox (kind, recipient, subject_id, parts, attempts, created_at, available_at, expires_at) \
               VALUES ($1, $2, $3, $4, 0, $5, $5, $6)";
    let values: Vec<Value> = vec![
        mail.kind.as_str().into(),
        mail.recipient.into(),
        mail.subject_id.into(),
        mail.parts.into(),
        now.into(),
        mail.expires_at.0.into(),
    ];
    db.execute_raw(Statement::from_sql_and_values(core.db.backend(), sql, values)).await?;
    Ok(())
}

/// Sends what is due; how many have left.
///
/// # Errors
/// The database is out of reach.
pub async fn deliver_due(core: &Arc<Core>) -> Result<u64> {
    let now = core.clock.now();
    core.db.sweep("mail_outbox", "expires_at <= $1", now.0).await?;
    if !core.mailer.is_on() {
        return Ok(0);
    }
    let mut sent = 0;
    for row in due(core, now).await? {
        sent += u64::from(claim(core, &row).await? && deliver(core, &row).await?);
    }
    Ok(sent)
}

async fn due(core: &Core, now: Timestamp) -> Result<Vec<Row>> {
    let sql = format!(
        "SELECT id, kind, recipient, subject_id, parts, expires_at, attempts FROM mail_outbox \
         WHERE available_at <= $1 ORDER BY available_at, id LIMIT {BATCH}"
    );
    let rows = core.db.all(sql, vec![now.0.into()]).await?;
    rows.iter().map(read).collect()
}

fn read(row: &QueryResult) -> Result<Row> {
    let kind: String = row.try_get_by(1)?;
    Ok(Row {
        id: row.try_get_by(0)?,
        kind: Kind::ALL.into_iter().find(|known| known.as_str() == kind).unwrap_or(Kind::Notice),
        recipient: row.try_get_by(2)?,
        subject_id: row.try_get_by(3)?,
        parts: row.try_get_by(4)?,
        expires_at: row.try_get_by(5)?,
        attempts: row.try_get_by(6)?,
    })
}

/// Takes a mail, unless somebody else was faster.
async fn claim(core: &Core, row: &Row) -> Result<bool> {
    let sql =
        "UPDATE mail_outbox SET attempts = attempts + 1, available_at = $1 WHERE id = $2 AND attempts = $3";
    let until = core.clock.now().plus(LEASE).0;
    Ok(core.db.execute(sql, vec![until.into(), row.id.into(), row.attempts.into()]).await? == 1)
}

/// Sends a mail that was taken; whether it has left.
async fn deliver(core: &Arc<Core>, row: &Row) -> Result<bool> {
    let Some(letter) = people::compose(core, row).await? else {
        // What it is about is over: the link was used, the invitation taken back.
        remove(core, row).await?;
        return Ok(false);
    };
    match send(core, row, letter).await {
        Ok(()) => {
            remove(core, row).await?;
            Ok(true)
        }
        Err(SendError::Never(error)) => {
            tracing::warn!(mail = row.id, kind = row.kind.as_str(), error, "mail.given_up");
            remove(core, row).await?;
            Ok(false)
        }
        Err(SendError::Later(error)) => {
            let attempts = usize::try_from(row.attempts).unwrap_or(usize::MAX).min(WAITS.len() - 1);
            tracing::warn!(mail = row.id, kind = row.kind.as_str(), error, "mail.not_sent");
            let sql = "UPDATE mail_outbox SET available_at = $1 WHERE id = $2";
            let at = core.clock.now().plus(WAITS[attempts]).0;
            core.db.execute(sql, vec![at.into(), row.id.into()]).await?;
            Ok(false)
        }
    }
}

async fn send(core: &Core, row: &Row, letter: Letter) -> Result<(), SendError> {
    // Half of the lease: who takes longer than all of it would send the mail twice.
    match timeout(LEASE / 2, core.mailer.send(row.id, &row.recipient, letter)).await {
        Ok(sent) => sent,
        Err(_) => Err(SendError::Later("the mail server does not answer in time".to_owned())),
    }
}

async fn remove(core: &Core, row: &Row) -> Result<()> {
    core.db.execute("DELETE FROM mail_outbox WHERE id = $1", vec![row.id.into()]).await?;
    Ok(())
}
