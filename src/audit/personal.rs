//! Lines about a person's own account, which belongs to no organization: signing in, passwords, second factors.

use sea_orm::{ActiveModelTrait, ConnectionTrait, Set};
use serde_json::Value;

use super::{blank, done_by, entity::audit_log};
use crate::{
    access::Caller,
    enums::ActorKind,
    error::Result,
    graphql::Request,
    ids::{OrgId, UserId},
};

/// What happened to an account.
#[derive(Clone, Debug)]
pub struct PersonalEntry<'a> {
    /// The root field of the schema: `changePassword`.
    pub operation: &'static str,
    /// Whose account.
    pub user: UserId,
    /// The name, where the request itself has not shown who asks, but a link or a password in it has.
    pub proven: Option<&'a str>,
    /// The organization, where it concerns one.
    pub organization: Option<OrgId>,
    /// What changed: an object.
    pub changes: Value,
}

impl<'a> PersonalEntry<'a> {
    /// Something that was done, by whoever the request shows, to an account and in no organization.
    #[must_use]
    pub fn done(operation: &'static str, user: UserId, changes: Value) -> Self {
        Self { operation, user, proven: None, organization: None, changes }
    }

    /// The same by somebody of this name, whom a link or a password in the request has shown.
    #[must_use]
    pub fn by(self, name: &'a str) -> Self {
        Self { proven: Some(name), ..self }
    }

    /// The same in an organization.
    #[must_use]
    pub fn in_org(self, org: OrgId) -> Self {
        Self { organization: Some(org), ..self }
    }
}

/// Writes a line beside the change, in its transaction.
///
/// # Errors
/// The database refused; then the change does not happen either.
pub async fn record_personal(
    db: &impl ConnectionTrait,
    request: &Request,
    entry: PersonalEntry<'_>,
) -> Result<()> {
    let row = audit_log::ActiveModel {
        organization_id: Set(entry.organization),
        operation: Set(entry.operation.to_owned()),
        target_kind: Set(Some("user".to_owned())),
        target_id: Set(Some(entry.user.0)),
        changes: Set(entry.changes),
        request_id: Set(Some(request.id.clone()).filter(|id| !id.is_empty())),
        ip: Set(request.ip.map(|ip| ip.to_string())),
        ..blank(request.app.clock.now())
    };
    let row = match (&request.caller, entry.proven) {
        (Caller::Anonymous, Some(name)) => audit_log::ActiveModel {
            actor_kind: Set(ActorKind::User),
            actor_id: Set(Some(entry.user.0)),
            actor_name: Set(Some(name.to_owned())),
            ..row
        },
        (caller, _) => done_by(row, caller),
    };
    row.insert(db).await?;
    Ok(())
}
