//! The audit log in the GraphQL schema.

use std::sync::LazyLock;

use async_graphql::{Context, Json, Object};

use crate::{
    base::{
        enums::{ActorKind, AuditOutcome, CredentialUsed},
        ids::{AuditId, Id, OrgId},
        permission::Permission,
        time::Timestamp,
    },
    fields::{
        Answer, Enter, answer,
        bounds::{bounds, from as at_least, name, range},
        permit::permit,
    },
    read::{Page, Record, Rows, Spec},
};

/// An entry of the audit log.
pub struct AuditEntry;

impl Record for AuditEntry {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let about = "An entry of the audit log: who did what, with which credential, to which record.";
            Spec::new("AuditEntry", "audit_log t", about)
                .permission(Permission::AuditView)
                .column::<AuditId>("id", "Identifies the entry.")
                .column::<OrgId>("organization_id", "The organization it happened in.")
                .column::<Timestamp>("at", "When it happened.")
                .column::<ActorKind>(
                    "actor_kind",
                    "Whether a person, a service token, or the service itself acted.",
                )
                .column::<Option<Id>>("actor_id", "The user or service token that acted.")
                .column::<Option<String>>("actor_name", "The name at the time.")
                .column::<Option<CredentialUsed>>("credential_kind", "The kind of credential the actor used.")
                .column::<Option<Id>>("credential_id", "The session or service token that was used.")
                .column::<Option<String>>("credential_hint", "The last characters of the service token.")
                .column::<String>("operation", "The operation: the name of the root field in the schema.")
                .column::<Option<String>>("permission", "The permission it required.")
                .column::<Option<String>>(
                    "decided_by",
                    "The policy line that decided: file, line number, and text.",
                )
                .column::<AuditOutcome>("outcome", "How it ended.")
                .column::<Option<String>>("code", "The error code, if the operation was refused.")
                .column::<i64>(
                    "count",
                    "How many times it happened. Repeated refusals are combined into one entry.",
                )
                .column::<Option<Timestamp>>(
                    "last_at",
                    "When the last of several refusals happened. Null for a single event.",
                )
                .column::<Option<String>>("target_kind", "The kind of record it concerns.")
                .column::<Option<Id>>("target_id", "The id of that record.")
                .column::<Json<serde_json::Value>>(
                    "changes",
                    "What changed. For secrets, only that they changed.",
                )
                .column::<Option<String>>(
                    "request_id",
                    "The request id, as in the response and the service's log.",
                )
                .column::<Option<String>>("ip", "The IP address it came from.")
                .column::<i64>("chain_seq", "The entry's position in the organization's hash chain.")
        });
        &SPEC
    }
}

/// Queries for the audit log.
#[derive(Default)]
pub struct AuditQuery;

#[Object]
impl AuditQuery {
    /// What was done in the organization and what was refused, newest first. An entry appears once it has its
    /// position in the hash chain, a moment after the change.
    #[graphql(directive = permit::apply(Permission::AuditView))]
    #[expect(clippy::too_many_arguments, reason = "each is a separate filter in the schema")]
    async fn audit_log(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(at_least(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
        #[graphql(desc = "Only this operation, named by its root field.", directive = bounds::apply(name(80)))]
        operation: Option<String>,
        #[graphql(desc = "Only records of this kind.", directive = bounds::apply(name(80)))]
        target_kind: Option<String>,
        #[graphql(desc = "Only the record with this id.")] target_id: Option<Id>,
        #[graphql(desc = "Only this kind of actor.")] actor_kind: Option<ActorKind>,
        #[graphql(desc = "Only the user or service token with this id.")] actor_id: Option<Id>,
        #[graphql(desc = "Only this outcome.")] outcome: Option<AuditOutcome>,
        #[graphql(desc = "Only operations that required this permission.")] permission: Option<Permission>,
        #[graphql(desc = "Only entries at or after this time.")] from: Option<Timestamp>,
        #[graphql(desc = "Only entries before this time.")] to: Option<Timestamp>,
    ) -> Answer<Page<AuditEntry>> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            let rows = Rows::of(&scope)
                .filter_if("t.operation = ?", operation)
                .filter_if("t.target_kind = ?", target_kind)
                .filter_if("t.target_id = ?", target_id.map(|id| id.0))
                .filter_if("t.actor_kind = ?", actor_kind)
                .filter_if("t.actor_id = ?", actor_id.map(|id| id.0))
                .filter_if("t.outcome = ?", outcome)
                .filter_if("t.permission = ?", permission.map(Permission::as_str))
                .filter_if("t.at >= ?", from)
                .filter_if("t.at < ?", to)
                .order_by("t.at DESC, t.id DESC");
            Ok(Page::numbered(rows, page, limit))
        })
        .await
    }
}
