//! Lines in the instance's log: about people's own accounts, which belong to no organization (sign-ins, passwords,
//! second factors), and about the operator's changes to the installation (keys, every organization's policy).

use std::{net::IpAddr, sync::Arc};

use serde_json::Value;

use super::line::{self, AuditLine};
use crate::{
    base::{
        enums::{ActorKind, CredentialUsed},
        ids::{OrgId, SessionId, UserId},
        problem::Result,
    },
    core::{Core, Request, access::Caller, store::Transaction},
};

/// An event of an account.
#[derive(Clone, Debug)]
pub struct PersonalEntry<'a> {
    /// The root field of the schema: `changePassword`.
    pub operation: &'static str,
    pub user: UserId,
    /// The name of the person, if a link or a password in the request identified them rather than the request itself.
    pub proven: Option<&'a str>,
    /// The session that was opened or ended, if the request was not made through one.
    pub session: Option<SessionId>,
    pub organization: Option<OrgId>,
    /// The changes: an object.
    pub changes: Value,
}

impl<'a> PersonalEntry<'a> {
    /// An action of the request's caller on an account, outside any organization.
    #[must_use]
    pub fn done(operation: &'static str, user: UserId, changes: Value) -> Self {
        Self { operation, user, proven: None, session: None, organization: None, changes }
    }

    /// Adds the name of the person whom a link or a password in the request identified.
    #[must_use]
    pub fn by(self, name: &'a str) -> Self {
        Self { proven: Some(name), ..self }
    }

    /// Adds the session that was opened or ended: the account's owner is the actor, regardless of the caller.
    #[must_use]
    pub fn through(self, session: SessionId) -> Self {
        Self { session: Some(session), ..self }
    }

    #[must_use]
    pub fn in_org(self, org: OrgId) -> Self {
        Self { organization: Some(org), ..self }
    }
}

/// Where an action comes from: usually a request.
#[derive(Clone, Copy)]
pub struct Origin<'a> {
    pub core: &'a Core,
    pub caller: &'a Caller,
    pub ip: Option<IpAddr>,
    /// The request's id, or empty.
    pub request_id: &'a str,
}

impl<'a> Origin<'a> {
    /// The operator, at the command line or through files.
    #[must_use]
    pub fn operator(core: &'a Core) -> Self {
        Self { core, caller: &Caller::System, ip: None, request_id: "" }
    }

    /// Writes a line about the installation when the transaction commits.
    pub fn record(
        self,
        tx: &Transaction,
        operation: &'static str,
        (target_kind, target_id): (&'static str, Option<i64>),
        changes: Value,
    ) {
        let line = AuditLine {
            target_kind: Some(target_kind.into()),
            target_id,
            changes,
            ..AuditLine::new(operation, self.core.clock.now())
        };
        line::write(tx, [line.by(self.caller).from(self.ip, self.request_id)]);
    }

    /// The same after a change to files, which has no transaction.
    ///
    /// # Errors
    /// The database can't be reached; the change remains.
    pub async fn record_after(
        self,
        operation: &'static str,
        target: (&'static str, Option<i64>),
        changes: Value,
    ) -> Result<()> {
        let tx = self.core.db.begin().await?;
        self.record(&tx, operation, target, changes);
        Ok(tx.commit().await?)
    }
}

impl<'a> From<&'a Request> for Origin<'a> {
    fn from(request: &'a Request) -> Self {
        Self { core: &request.core, caller: &request.caller, ip: request.ip, request_id: &request.id }
    }
}

impl<'a> From<&'a Arc<Request>> for Origin<'a> {
    fn from(request: &'a Arc<Request>) -> Self {
        Self::from(&**request)
    }
}

/// Writes a line when the transaction commits.
pub fn record_personal<'a>(tx: &Transaction, origin: impl Into<Origin<'a>>, entry: PersonalEntry<'_>) {
    let origin = origin.into();
    let line = AuditLine {
        organization_id: entry.organization.map(|org| org.0),
        target_kind: Some("user".into()),
        target_id: Some(entry.user.0),
        changes: entry.changes,
        ..AuditLine::new(entry.operation, origin.core.clock.now())
    };
    let line = line.from(origin.ip, origin.request_id);
    let is_theirs = matches!(origin.caller, Caller::Anonymous) || entry.session.is_some();
    let line = match entry.proven.filter(|_| is_theirs) {
        Some(name) => AuditLine {
            actor_kind: ActorKind::User.as_str().into(),
            actor_id: Some(entry.user.0),
            actor_name: Some(name.to_owned()),
            credential_kind: entry.session.map(|_| CredentialUsed::Session.as_str().into()),
            credential_id: entry.session.map(|id| id.0),
            ..line
        },
        None => line.by(origin.caller),
    };
    line::write(tx, [line]);
}
