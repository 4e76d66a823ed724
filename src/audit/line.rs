//! A line that is to be written, and the one place that writes lines.
//!
//! They are put into `audit_waiting`, beside what they tell of and in its transaction; `seal.rs` takes them from there.

use std::{borrow::Cow, net::IpAddr, sync::Arc};

use sea_orm::Value;

use super::{actor, credential};
use crate::{
    access::{Caller, Permission},
    clock::Timestamp,
    enums::{ActorKind, AuditOutcome, CredentialUsed},
    error::Code,
    ids::OrgId,
    store::{NewRows, Transaction},
};

/// Who did what, or was refused it. It holds names as they were, and refers to nothing that may be deleted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    /// None: concerns the whole instance.
    pub organization_id: Option<OrgId>,
    pub at: Timestamp,
    /// When the last of a burst was; none where there was one.
    pub last_at: Option<Timestamp>,
    /// How often: a burst of the same refusal is one line.
    pub count: i64,
    pub actor_kind: ActorKind,
    pub actor_id: Option<i64>,
    pub actor_name: Option<String>,
    pub credential_kind: Option<CredentialUsed>,
    pub credential_id: Option<i64>,
    pub credential_hint: Option<String>,
    /// The root field of the schema: `createServer`.
    pub operation: Cow<'static, str>,
    pub permission: Option<Permission>,
    /// The deciding line of the policy.
    pub decided_by: Option<Arc<str>>,
    pub outcome: AuditOutcome,
    /// The problem's code, where something was refused.
    pub code: Option<Code>,
    pub target_kind: Option<&'static str>,
    pub target_id: Option<i64>,
    /// What changed: an object.
    pub changes: serde_json::Value,
    pub request_id: Option<String>,
    pub ip: Option<IpAddr>,
}

impl Line {
    /// A line of which nothing else is known: the service did it.
    pub fn of(operation: impl Into<Cow<'static, str>>, at: Timestamp) -> Self {
        Self {
            organization_id: None,
            at,
            last_at: None,
            count: 1,
            actor_kind: ActorKind::System,
            actor_id: None,
            actor_name: None,
            credential_kind: None,
            credential_id: None,
            credential_hint: None,
            operation: operation.into(),
            permission: None,
            decided_by: None,
            outcome: AuditOutcome::Allowed,
            code: None,
            target_kind: None,
            target_id: None,
            changes: serde_json::Value::Object(serde_json::Map::new()),
            request_id: None,
            ip: None,
        }
    }

    /// The same with its actor and the credential.
    pub fn by(self, caller: &Caller) -> Self {
        let (credential_kind, credential_id) = credential(caller);
        Self {
            actor_kind: caller.kind(),
            actor_id: actor(caller),
            actor_name: Some(caller.name().to_owned()).filter(|name| !name.is_empty()),
            credential_kind,
            credential_id,
            credential_hint: caller.hint().map(str::to_owned),
            ..self
        }
    }

    /// The same with where it came from.
    pub fn from(self, ip: Option<IpAddr>, request_id: &str) -> Self {
        Self { ip, request_id: Some(request_id.to_owned()).filter(|id| !id.is_empty()), ..self }
    }

    /// What stands in [`COLUMNS`].
    fn values(self) -> Vec<Value> {
        vec![
            self.organization_id.into(),
            self.at.into(),
            self.last_at.into(),
            self.count.into(),
            self.actor_kind.into(),
            self.actor_id.into(),
            self.actor_name.into(),
            self.credential_kind.into(),
            self.credential_id.into(),
            self.credential_hint.into(),
            self.operation.into_owned().into(),
            self.permission.map(Permission::as_str).into(),
            self.decided_by.as_deref().into(),
            self.outcome.into(),
            self.code.map(Code::as_str).into(),
            self.target_kind.into(),
            self.target_id.into(),
            self.changes.into(),
            self.request_id.into(),
            self.ip.map(|ip| ip.to_string()).into(),
        ]
    }
}

/// The columns of a line but its id, which the database gives.
pub(super) const COLUMNS: &str = "organization_id, at, last_at, count, actor_kind, actor_id, actor_name, credential_kind, \
     credential_id, credential_hint, operation, permission, decided_by, outcome, code, target_kind, target_id, changes, \
     request_id, ip";

/// Writes lines with the commit of what they tell of.
pub(super) fn write(tx: &Transaction, lines: impl IntoIterator<Item = Line>) {
    let values = lines.into_iter().map(Line::values).collect();
    tx.insert_last(NewRows { table: "audit_waiting", columns: COLUMNS, values });
}
