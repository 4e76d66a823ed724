//! What people may demand of the data about them: that an organization is exported or deleted, and a person erased.
//!
//! - `tables.rs`: the list of all tables, and what becomes of their rows.
//! - this file: schedules an erasure, cancels it until it is due, and carries it out.
//! - `delete.rs`: deletes an organization; `erase.rs`: erases a person; `export.rs`: exports an organization.
//!
//! An erasure is a row: SCHEDULED until it is due, and for an organization ENDING (its members have lost access, its
//! agents stop) and DELETING. Every step can be repeated, so a process may end in the middle of one. Permission:
//! `organization.erase`; the operator erases accounts at the command line, at once.

mod delete;
mod erase;
mod export;
mod queries;
mod tables;

use std::{sync::Arc, time::Duration};

use serde_json::json;

pub use self::{
    erase::{ErasedPerson, ReplacedNames, erase_person},
    export::export,
    tables::{Deleted, ERASED, Erased, Exported, RIGHTS, SECRETS, TableRights},
};
use crate::{
    base::{
        enums::{ChangeOp, ErasureState, ErasureSubject, RecordKind},
        ids::{ContactId, ErasureId, UserId},
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{
        Core,
        access::{Caller, Scope},
        audit,
        job_counts::Tally,
        store::Tx,
    },
    domain::{
        mails::{self, Notice},
        people,
    },
};

/// What is to be erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Organization,
    Member(UserId),
    Contact(ContactId),
}

impl Subject {
    const fn kind(self) -> ErasureSubject {
        match self {
            Self::Organization => ErasureSubject::Organization,
            Self::Member(_) => ErasureSubject::Member,
            Self::Contact(_) => ErasureSubject::Contact,
        }
    }

    const fn user(self) -> Option<UserId> {
        match self {
            Self::Member(user) => Some(user),
            _ => None,
        }
    }

    const fn contact(self) -> Option<ContactId> {
        match self {
            Self::Contact(contact) => Some(contact),
            _ => None,
        }
    }

    const fn operation(self) -> &'static str {
        match self {
            Self::Organization => "scheduleDeletion",
            Self::Member(_) => "eraseMember",
            Self::Contact(_) => "eraseContact",
        }
    }
}

/// Schedules the deletion of the organization, whose name confirms it. Scheduling it again changes nothing.
///
/// # Errors
/// `VALIDATION_FAILED` for another name.
pub async fn schedule_deletion(scope: &Scope, name: &str) -> Result<()> {
    let tx = scope.begin().await?;
    if queries::name(&tx).await? != name.trim() {
        let detail = "Confirm the deletion with the organization's name, exactly as it is written.";
        return Err(Problem::invalid_parameter("name", "NOT_ALLOWED", detail));
    }
    let due = tx.now.plus(scope.core.config.erasure.grace());
    schedule(&tx, Subject::Organization, due).await?;
    tx.commit().await
}

/// Schedules the erasure of a member. Scheduling it again changes nothing.
///
/// # Errors
/// `NOT_FOUND`; `PERMISSION_DENIED` for a member above the caller.
pub async fn schedule_member(scope: &Scope, user: UserId) -> Result<()> {
    let role = people::role_of(scope, user).await?.ok_or_else(|| Problem::not_found("member", user))?;
    let tx = scope.begin().await?;
    people::require_reach(&tx, role)?;
    let due = tx.now.plus(scope.core.config.erasure.grace());
    schedule(&tx, Subject::Member(user), due).await?;
    tx.commit().await
}

/// Schedules the erasure of a contact. Scheduling it again changes nothing.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn schedule_contact(scope: &Scope, contact: ContactId) -> Result<()> {
    let tx = scope.begin().await?;
    if !queries::has_contact(&tx, contact).await? {
        return Err(Problem::not_found("contact", contact));
    }
    let due = tx.now.plus(scope.core.config.erasure.grace());
    schedule(&tx, Subject::Contact(contact), due).await?;
    tx.commit().await
}

/// Schedules the deletion of the organization on behalf of the operator, or brings it forward. Returns when it is due.
pub async fn schedule_by_operator(scope: &Scope, grace: Duration) -> Result<Timestamp> {
    let tx = scope.begin().await?;
    let due = tx.now.plus(grace);
    schedule(&tx, Subject::Organization, due).await?;
    queries::bring_forward(&tx, due).await?;
    tx.commit().await?;
    Ok(queries::deletion(scope).await?.map_or(due, |deletion| deletion.due_at))
}

async fn schedule(tx: &Tx, subject: Subject, due: Timestamp) -> Result<()> {
    if queries::insert(tx, subject, due).await? {
        let changes = json!({ "user_id": subject.user(), "contact_id": subject.contact(), "due_at": due });
        record(tx, subject.operation(), changes);
        let notice = match subject {
            Subject::Organization => Notice::DeletionScheduled,
            Subject::Member(_) | Subject::Contact(_) => Notice::ErasureScheduled,
        };
        tell_owners(tx, notice, Some(due)).await?;
    }
    Ok(())
}

/// Cancels an erasure that has not begun.
///
/// # Errors
/// `NOT_FOUND`; `CONFLICT` once it has begun.
pub async fn cancel(scope: &Scope, id: ErasureId) -> Result<()> {
    let tx = scope.begin().await?;
    let found = queries::lock(&tx, id).await?.ok_or_else(|| Problem::not_found("erasure", id))?;
    if found.state != ErasureState::Scheduled {
        return Err(Problem::new(Code::Conflict, "The erasure has begun, so it can no longer be cancelled."));
    }
    queries::delete(&tx, id).await?;
    let changes =
        json!({ "subject": found.subject, "user_id": found.user_id, "contact_id": found.contact_id });
    record(&tx, "cancelErasure", changes);
    tell_owners(&tx, Notice::ErasureCancelled, None).await?;
    tx.commit().await
}

/// Cancels the deletion of an organization on behalf of the operator. Returns whether one was scheduled.
///
/// # Errors
/// As [`cancel`].
pub async fn cancel_by_operator(scope: &Scope) -> Result<bool> {
    match queries::deletion(scope).await? {
        Some(deletion) => cancel(scope, deletion.id).await.map(|()| true),
        None => Ok(false),
    }
}

/// Takes each due erasure a step further. Returns how many moved.
pub async fn carry_out_due(core: &Arc<Core>) -> Result<u64> {
    let mut moved = Tally::default();
    for due in queries::due(core).await? {
        let scope = Scope::system(core, due.organization_id);
        moved.add(scope.org, carry_out(&scope, &due).await);
    }
    moved.close()
}

async fn carry_out(scope: &Scope, due: &queries::Erasure) -> Result<bool> {
    match (due.subject, due.state) {
        (ErasureSubject::Organization, ErasureState::Scheduled) => delete::begin(scope).await,
        (ErasureSubject::Organization, ErasureState::Ending) => {
            Box::pin(delete::end_work(scope, due.state_at)).await
        }
        (ErasureSubject::Organization, ErasureState::Deleting) => {
            delete::delete_rows(scope, due.state_at).await
        }
        (ErasureSubject::Member | ErasureSubject::Contact, _) => {
            if let Some(user) = due.user_id
                && !erase::erase_member(scope, user).await?
            {
                let tx = scope.begin().await?;
                queries::postpone(&tx, due.id, tx.now.plus(Duration::from_hours(1))).await?;
                tx.commit().await?;
                return Ok(false);
            }
            if let Some(contact) = due.contact_id {
                erase::erase_contact(scope, contact, &mut ReplacedNames::new()).await?;
            }
            let tx = scope.begin().await?;
            queries::delete(&tx, due.id).await?;
            tx.commit().await?;
            Ok(true)
        }
    }
}

/// Writes to all OWNERs.
async fn tell_owners(tx: &Tx, notice: Notice, due: Option<Timestamp>) -> Result<()> {
    let (core, org) = (&tx.scope.core, queries::name(tx).await?);
    let name = match &tx.scope.request.caller {
        Caller::System => "the operator of this installation",
        caller => caller.name(),
    };
    let due = due.map(|due| format!(", due {due}")).unwrap_or_default();
    for owner in queries::owners(tx).await? {
        let from = format!("{name}. Organization: {org}{due}");
        mails::enqueue_notice(core, tx.connection(), (owner.id, owner.email), notice, from);
    }
    Ok(())
}

fn record(tx: &Tx, operation: &'static str, changes: serde_json::Value) {
    let (op, kind, id) = (ChangeOp::Updated, RecordKind::Organization, tx.scope.org.0);
    audit::record(tx, audit::Entry { operation, op, kind, id, changes });
}
