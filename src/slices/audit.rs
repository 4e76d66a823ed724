//! The audit log in the schema.

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

/// A line of the audit log.
pub struct AuditEntry;

impl Record for AuditEntry {
    fn spec() -> &'static Spec {
        static SPEC: LazyLock<Spec> = LazyLock::new(|| {
            let about = "A line of the audit log: who did what, through which credential, to what.";
            Spec::new("AuditEntry", "audit_log t", about)
                .permission(Permission::AuditView)
                .column::<AuditId>("id", "Identifies the line.")
                .column::<OrgId>("organization_id", "The organization in which it was done.")
                .column::<Timestamp>("at", "When.")
                .column::<ActorKind>(
                    "actor_kind",
                    "Whether a person did it, a service token, or the service.",
                )
                .column::<Option<Id>>("actor_id", "The user or the service token.")
                .column::<Option<String>>("actor_name", "The name at that time.")
                .column::<Option<CredentialUsed>>(
                    "credential_kind",
                    "What the actor showed to be who they are.",
                )
                .column::<Option<Id>>("credential_id", "Which session or service token.")
                .column::<Option<String>>("credential_hint", "The last characters of the service token.")
                .column::<String>("operation", "What was done: the name of the schema's root field.")
                .column::<Option<String>>("permission", "The permission that it took.")
                .column::<Option<String>>(
                    "decided_by",
                    "The line of the policy that decided: the file, the line's number and its text.",
                )
                .column::<AuditOutcome>("outcome", "How it ended.")
                .column::<Option<String>>("code", "Of what was refused: the problem's code.")
                .column::<i64>("count", "How often: a burst of the same refusal is one line.")
                .column::<Option<Timestamp>>(
                    "last_at",
                    "When the last of a burst was; null where there was one.",
                )
                .column::<Option<String>>("target_kind", "The kind of record that it concerns.")
                .column::<Option<Id>>("target_id", "Which one.")
                .column::<Json<serde_json::Value>>("changes", "What changed. Of secrets, only that they did.")
                .column::<Option<String>>(
                    "request_id",
                    "The request, as in the response and the service's log.",
                )
                .column::<Option<String>>("ip", "Where it came from.")
                .column::<i64>("chain_seq", "The line's place in the organization's hash chain.")
        });
        &SPEC
    }
}

/// Reading the audit log.
#[derive(Default)]
pub struct AuditQuery;

#[Object]
impl AuditQuery {
    /// What was done in the organization and what was refused, newest first. A line is shown when it has its place in the
    /// chain, a moment after its change.
    #[graphql(directive = permit::apply(Permission::AuditView))]
    #[expect(clippy::too_many_arguments, reason = "each is a filter of its own in the schema")]
    async fn audit_log(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        #[graphql(directive = bounds::apply(at_least(1)))] page: i64,
        #[graphql(directive = bounds::apply(range(1, 200)))] limit: i64,
        #[graphql(desc = "Only this root field.", directive = bounds::apply(name(80)))] operation: Option<
            String,
        >,
        #[graphql(desc = "Only records of this kind.", directive = bounds::apply(name(80)))]
        target_kind: Option<String>,
        #[graphql(desc = "Only the record with this id.")] target_id: Option<Id>,
        #[graphql(desc = "Only people, only service tokens, ….")] actor_kind: Option<ActorKind>,
        #[graphql(desc = "Only the user or service token with this id.")] actor_id: Option<Id>,
        #[graphql(desc = "Only what was done, only what was refused, ….")] outcome: Option<AuditOutcome>,
        #[graphql(desc = "Only what took this permission.")] permission: Option<Permission>,
        #[graphql(desc = "Only from this instant on.")] from: Option<Timestamp>,
        #[graphql(desc = "Only before this instant.")] to: Option<Timestamp>,
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
