//! The audit log in the GraphQL schema.

use std::sync::LazyLock;

use async_graphql::{Context, Json, Object, SimpleObject};
use serde_json::{Map, Value, json};

use crate::{
    base::{
        enums::{ActorKind, AuditOutcome, CredentialUsed, RecordKind},
        ids::{AuditId, Id, OrgId},
        permission::Permission,
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::{
        audit::CHANGED,
        store::{holding, holds},
    },
    domain::audit::{self, AuditSeal},
    read::{Page, Record, Rows, Spec, words},
    resolvers::{
        Answer, Enter, answer,
        bounds::{at_least, bounds, length, name, range},
        permit::permit,
    },
};

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
                .column::<Option<String>>(
                    "permission",
                    "The permission that was missing, or else the one that it required.",
                )
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
                .sql::<Option<String>>(
                    "target_name",
                    target_name(),
                    "The target's name, as it is now. Null if it is gone.",
                )
                .parts_made_by::<Vec<AuditField>>(
                    "fields",
                    "t.changes",
                    fields,
                    "What changed, field by field.",
                )
                .column::<Json<Value>>("changes", "What changed. For secrets, only that they changed.")
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

/// A field that was changed.
#[derive(SimpleObject)]
pub struct AuditField {
    /// Its name in the database.
    pub field: String,
    /// The value before, if the log has it.
    pub before: Option<Json<Value>>,
    /// The value after.
    pub after: Option<Json<Value>>,
    /// Whether the values are secret or too long, and not logged.
    pub secret: bool,
}

/// The changes of an entry, field by field, as JSON. A field has its value before if the changes have it.
fn fields(changes: &str) -> Result<String> {
    let changes: Map<String, Value> = muster_json::from_str(changes).map_err(Problem::internal)?;
    let mut fields = Vec::with_capacity(changes.len());
    for (field, value) in &changes {
        let none = &Value::Null;
        let (before, after, secret) = match (value, value.as_object()) {
            (_, Some(both))
                if both.len() == 2 && both.contains_key("before") && both.contains_key("after") =>
            {
                (&both["before"], &both["after"], false)
            }
            (Value::String(text), _) if text == CHANGED => (none, none, true),
            _ => (none, value, false),
        };
        fields.push(json!({ "field": field, "before": before, "after": after, "secret": secret }));
    }
    Ok(Value::from(fields).to_string())
}

/// A kind of target that has a name.
struct Target {
    kind: RecordKind,
    /// Its rows, with the alias `n`.
    from: &'static str,
    id: &'static str,
    name: &'static str,
    /// The folded name, if it can be searched for.
    folded: Option<&'static str>,
}

const fn plain(kind: RecordKind, from: &'static str) -> Target {
    Target { kind, from, id: "n.id", name: "n.name", folded: Some("n.name_folded") }
}

const TARGETS: &[Target] = &[
    plain(RecordKind::Agent, "agents n"),
    plain(RecordKind::Channel, "channels n"),
    plain(RecordKind::Contact, "contacts n"),
    plain(RecordKind::Credential, "credentials n"),
    plain(RecordKind::Image, "images n"),
    plain(RecordKind::McpServer, "mcp_servers n"),
    plain(RecordKind::Server, "servers n"),
    plain(RecordKind::ServiceToken, "service_tokens n"),
    plain(RecordKind::Skill, "skills n"),
    Target {
        id: "n.user_id",
        name: "u.name",
        folded: Some("u.name_folded"),
        ..plain(RecordKind::Member, "members n JOIN users u ON u.id = n.user_id")
    },
    Target {
        name: "COALESCE(n.title, n.ref)",
        folded: Some("n.title_folded"),
        ..plain(RecordKind::Conversation, "conversations n")
    },
    Target {
        name: "n.email",
        folded: Some("n.email_folded"),
        ..plain(RecordKind::Invitation, "invitations n")
    },
    Target { folded: None, ..plain(RecordKind::EventEndpoint, "event_endpoints n") },
    Target { folded: None, ..plain(RecordKind::ModelCredential, "model_credentials n") },
    Target { name: "n.title", folded: None, ..plain(RecordKind::Approval, "approvals n") },
    Target { name: "n.filename", folded: None, ..plain(RecordKind::Attachment, "attachments n") },
];

impl Target {
    /// SQL: the expression `what` of the target of an entry.
    fn look(&self, what: &str) -> String {
        let (from, id) = (self.from, self.id);
        format!(
            "(SELECT {what} FROM {from} WHERE n.organization_id = t.organization_id AND {id} = t.target_id)"
        )
    }
}

/// SQL: the current name of an entry's target.
fn target_name() -> String {
    let when = |target: &Target| format!(" WHEN '{}' THEN {}", target.kind.noun(), target.look(target.name));
    let own = " WHEN 'organization' THEN (SELECT n.name FROM organizations n WHERE n.id = t.organization_id)";
    format!("CASE t.target_kind{}{own} END", TARGETS.iter().map(when).collect::<String>())
}

/// Only entries whose operation, actor, or target contains `word`.
fn mentions(rows: Rows<AuditEntry>, word: &str) -> Rows<AuditEntry> {
    let Some(pattern) = holding(word) else { return rows.filter("1 = 0", []) };
    let when = |target: &Target| {
        Some(format!(" WHEN '{}' THEN {}", target.kind.noun(), target.look(target.folded?)))
    };
    let target = format!("CASE t.target_kind{} END", TARGETS.iter().filter_map(when).collect::<String>());
    let actor = "CASE t.actor_kind WHEN 'USER' THEN (SELECT u.name_folded FROM users u WHERE u.id = t.actor_id) \
                 WHEN 'SERVICE_TOKEN' THEN (SELECT k.name_folded FROM service_tokens k \
                 WHERE k.organization_id = t.organization_id AND k.id = t.actor_id) END";
    // Operations are ASCII, which both databases lower-case in the same way.
    let places = ["LOWER(t.operation)", actor, &target].map(holds);
    rows.filter(&format!("({})", places.join(" OR ")), vec![pattern.into(); 3])
}

#[derive(Default)]
pub struct AuditQuery;

#[Object]
impl AuditQuery {
    /// The changes and refusals in the organization, newest first. An entry appears once it has its position in the
    /// hash chain, a moment after the change.
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
        #[graphql(
            desc = "Words of the operation, of the actor's name, or of the target's name, as they are now. Case and accents don't matter.",
            directive = bounds::apply(length(1, 200))
        )]
        search: Option<String>,
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
            let rows = words(search.as_deref()).fold(rows, mentions);
            Ok(Page::numbered(rows, page, limit))
        })
        .await
    }

    /// The state of the audit log's hash chain.
    #[graphql(directive = permit::apply(Permission::AuditView))]
    async fn audit_seal(&self, ctx: &Context<'_>, org_id: OrgId) -> Answer<AuditSeal> {
        answer(async {
            let scope = ctx.enter(org_id).await?;
            Ok(audit::seal(&scope).await?.unwrap_or(AuditSeal { chain_seq: 0, sealed_at: None }))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields_of(changes: &Value) -> Value {
        muster_json::from_str(&fields(&changes.to_string()).unwrap()).unwrap()
    }

    fn field(field: &str, before: &Value, after: &Value, secret: bool) -> Value {
        json!({ "field": field, "before": before, "after": after, "secret": secret })
    }

    #[test]
    fn changes_are_told_field_by_field() {
        let none = Value::Null;
        assert_eq!(fields_of(&json!({})), json!([]));
        assert_eq!(
            fields_of(&json!({ "bot_token_sealed": "changed", "name": "new" })),
            json!([
                field("bot_token_sealed", &none, &none, true),
                field("name", &none, &json!("new"), false)
            ])
        );
        assert_eq!(
            fields_of(&json!({ "role": { "before": "VIEWER", "after": null } })),
            json!([field("role", &json!("VIEWER"), &none, false)])
        );
        assert_eq!(
            fields_of(&json!({ "name": { "before": "old", "after": "changed" } })),
            json!([field("name", &json!("old"), &json!("changed"), false)])
        );
        assert_eq!(
            fields_of(&json!({ "labels": ["a", "b"] })),
            json!([field("labels", &none, &json!(["a", "b"]), false)])
        );
    }
}
