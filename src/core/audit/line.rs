//! A line that is to be written, and the one place that writes lines.
//!
//! They are put into `audit_unsealed`, beside what they tell of and in its transaction, each as one JSON object with the names of
//! the log's columns; `seal.rs` takes them from there.

use std::{borrow::Cow, net::IpAddr, sync::Arc};

use serde::{Serialize, Serializer};

use super::{actor, credential};
use crate::{
    base::{
        enums::{ActorKind, AuditOutcome, CredentialUsed},
        ids::OrgId,
        permission::Permission,
        time::Timestamp,
    },
    core::{
        access::Caller,
        store::{NewRows, Transaction},
    },
};

/// Who did what, or was refused it. It holds names as they were, and refers to nothing that may be deleted.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Line {
    /// None: concerns the whole instance.
    pub organization_id: Option<OrgId>,
    #[serde(serialize_with = "milliseconds")]
    pub at: Timestamp,
    /// When the last of a burst was; none where there was one.
    #[serde(serialize_with = "some_milliseconds")]
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
    pub code: Option<&'static str>,
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
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn milliseconds<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    at.0.serialize(serializer)
}

#[expect(clippy::ref_option, reason = "serde calls it so")]
fn some_milliseconds<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(|at| at.0).serialize(serializer)
}

/// Writes lines with the commit of what they tell of.
pub(super) fn write(tx: &Transaction, lines: impl IntoIterator<Item = Line>) {
    // Texts and numbers can always be written as JSON.
    let value = |line: Line| vec![serde_json::to_string(&line).unwrap_or_default().into()];
    let (sql, postgres) = ("INSERT INTO audit_unsealed (line) VALUES", "CALL write_audit_line");
    tx.insert_last(NewRows { sql, postgres, values: lines.into_iter().map(value).collect() });
}
