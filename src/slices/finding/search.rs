//! `search`: records by name, title, short code or id, best first: what is named exactly so, what begins so, what contains it.
//!
//! One statement with a part for each kind. The work is bounded: ids, short codes and exact names of contacts have indexes;
//! all else is looked for among the newest [`SCANNED`] of each kind. Each part yields no more than the answer holds.

use sea_orm::Value;

use super::graphql::SearchHit;
use crate::{
    base::{
        enums::RecordKind,
        folding,
        ids::{AgentId, Id},
        permission::Permission,
        problem::Result,
    },
    core::{
        access::Scope,
        store::{holding, starting},
    },
    read::id_of,
    slices::channels::contacts,
};

/// Among how many records of a kind a part of a name is looked for.
const SCANNED: u32 = 20_000;

/// Where and how a kind is searched. Everything is SQL over `t`.
struct Place {
    kind: RecordKind,
    permission: Permission,
    from: &'static str,
    /// A condition that rows must meet.
    living: &'static str,
    /// A condition on what matches: the columns of the organization and of the id to the SQL. It costs too much for all.
    is_found: fn(&str, &str) -> String,
    id: &'static str,
    /// What is shown as the name.
    name: &'static str,
    /// What else identifies it, through an index.
    exact: &'static str,
    /// Texts, folded, in which the words are looked for.
    folded: &'static [&'static str],
    detail: &'static str,
    reference: &'static str,
    agent: &'static str,
    /// The newest first.
    newest: &'static str,
}

const PLACE: Place = Place {
    kind: RecordKind::Agent,
    permission: Permission::AgentView,
    from: "agents t",
    living: "t.archived_at IS NULL",
    is_found: |_, _| "1 = 1".to_owned(),
    id: "t.id",
    name: "t.name",
    exact: "1 = 0",
    folded: &["t.name_folded"],
    detail: "t.role",
    reference: "NULL",
    agent: "NULL",
    newest: "t.id DESC",
};

/// SQL for the name of the record's agent.
const AGENT_NAME: &str =
    "(SELECT a.name FROM agents a WHERE a.organization_id = t.organization_id AND a.id = t.agent_id)";

/// Every kind that can be found. In the order of hits that are equally good.
const PLACES: &[Place] = &[
    PLACE,
    Place {
        kind: RecordKind::Conversation,
        permission: Permission::AgentOutputView,
        from: "conversations t",
        living: "",
        name: "COALESCE(t.title, t.ref)",
        exact: "t.ref = $6",
        folded: &["t.title_folded"],
        detail: AGENT_NAME,
        reference: "t.ref",
        agent: "t.agent_id",
        newest: "t.last_activity_at DESC, t.id DESC",
        ..PLACE
    },
    Place {
        kind: RecordKind::Contact,
        permission: Permission::ContactView,
        from: "contacts t",
        exact: "t.name_folded = $2",
        is_found: contacts::is_reached,
        detail: "t.note",
        ..PLACE
    },
    Place {
        kind: RecordKind::Channel,
        from: "channels t",
        detail: "t.transport",
        agent: "t.agent_id",
        ..PLACE
    },
    Place {
        kind: RecordKind::Server,
        permission: Permission::ServerView,
        from: "servers t",
        detail: "t.hostname",
        ..PLACE
    },
    Place {
        kind: RecordKind::Image,
        permission: Permission::ImageView,
        from: "images t",
        detail: "t.reference",
        ..PLACE
    },
    Place {
        kind: RecordKind::Credential,
        permission: Permission::CredentialView,
        from: "credentials t",
        detail: "t.kind",
        ..PLACE
    },
    Place {
        kind: RecordKind::McpServer,
        permission: Permission::McpView,
        from: "mcp_servers t",
        detail: "t.transport",
        ..PLACE
    },
    Place {
        kind: RecordKind::Skill,
        permission: Permission::SkillView,
        from: "skills t",
        detail: "t.description",
        ..PLACE
    },
    Place {
        kind: RecordKind::Member,
        permission: Permission::MemberView,
        from: "members t JOIN users u ON u.id = t.user_id",
        living: "",
        id: "t.user_id",
        name: "u.name",
        folded: &["u.name_folded", "u.email_folded"],
        detail: "u.email",
        newest: "t.user_id DESC",
        ..PLACE
    },
    Place {
        kind: RecordKind::Invitation,
        permission: Permission::MemberView,
        from: "invitations t",
        living: "t.accepted_at IS NULL AND t.revoked_at IS NULL",
        name: "t.email",
        folded: &["t.email_folded"],
        detail: "t.role",
        ..PLACE
    },
    Place {
        kind: RecordKind::ServiceToken,
        permission: Permission::TokenView,
        from: "service_tokens t",
        living: "t.revoked_at IS NULL",
        detail: "t.hint",
        ..PLACE
    },
    Place {
        kind: RecordKind::Approval,
        permission: Permission::ApprovalView,
        from: "approvals t",
        living: "",
        name: "t.title",
        folded: &["t.title_folded"],
        detail: AGENT_NAME,
        agent: "t.agent_id",
        ..PLACE
    },
];

/// What is looked for, as values of the statement.
struct Wanted {
    /// `$2`: the text, folded.
    exact: String,
    /// `$3`, `$4`: patterns.
    begins: String,
    contains: String,
    /// `$5`.
    id: Option<i64>,
    /// `$6`: as a short code.
    reference: String,
}

impl Wanted {
    fn of(q: &str) -> Option<Self> {
        let q = q.trim();
        Some(Self {
            exact: folding::name(q),
            begins: starting(q)?,
            contains: holding(q)?,
            id: id_of(q),
            reference: q.strip_prefix('#').unwrap_or(q).to_uppercase(),
        })
    }

    fn values(self, scope: &Scope, limit: i64) -> Vec<Value> {
        let Self { exact, begins, contains, id, reference } = self;
        vec![
            scope.org.0.into(),
            exact.into(),
            begins.into(),
            contains.into(),
            id.into(),
            reference.into(),
            limit.into(),
        ]
    }
}

impl Place {
    /// The part of the statement for this kind. `order` breaks ties between kinds.
    fn part(&self, order: usize) -> String {
        let Self { kind, from, id, name, exact, detail, reference, agent, newest, .. } = self;
        let living = if self.living.is_empty() { String::new() } else { format!(" AND {}", self.living) };
        let any = |test: &str| {
            let tests: Vec<String> = self.folded.iter().map(|text| format!("{text} {test}")).collect();
            tests.join(" OR ")
        };
        let is_known = format!("({id} = $5 OR {exact})");
        let is_exact = format!("({is_known} OR {})", any("= $2"));
        let begins = any(r"LIKE $3 ESCAPE '\'");
        let contains = any(r"LIKE $4 ESCAPE '\'");
        let columns = format!(
            "{id} AS id, {name} AS name, {detail} AS detail, CAST({reference} AS TEXT) AS reference, \
             CAST({agent} AS BIGINT) AS agent_id"
        );
        let rank = format!("CASE WHEN {is_exact} THEN 0 WHEN {begins} THEN 1 ELSE 2 END");
        let (this_is_found, one_is_found) = ((self.is_found)("$1", id), (self.is_found)("$1", "n.id"));
        // What is known by an index; and the newest of all, and of these the matching ones.
        let parts = format!(
            "SELECT '{kind}' AS kind, {order} AS place, 0 AS rank, {columns} FROM {from} \
             WHERE t.organization_id = $1 AND {is_known}{living} AND {this_is_found} \
             UNION SELECT '{kind}', {order}, n.rank, n.id, n.name, n.detail, n.reference, n.agent_id \
             FROM (SELECT {rank} AS rank, ({contains}) AS matches, {columns} FROM {from} \
             WHERE t.organization_id = $1{living} ORDER BY {newest} LIMIT {SCANNED}) n WHERE n.matches AND {one_is_found}"
        );
        format!("SELECT * FROM (SELECT * FROM ({parts}) e ORDER BY rank, id DESC LIMIT $7) p{order}")
    }
}

/// The records that `q` finds, best first: of all `kinds` that the caller may see.
///
/// # Errors
/// The database is unreachable.
pub async fn find(
    scope: &Scope,
    q: &str,
    kinds: Option<&[RecordKind]>,
    limit: i64,
) -> Result<Vec<SearchHit>> {
    let Some(wanted) = Wanted::of(q) else { return Ok(Vec::new()) };
    let parts: Vec<String> = PLACES
        .iter()
        .enumerate()
        .filter(|(_, place)| scope.may(place.permission))
        .filter(|(_, place)| kinds.is_none_or(|kinds| kinds.contains(&place.kind)))
        .map(|(order, place)| place.part(order))
        .collect();
    if parts.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT kind, id, name, detail, reference, agent_id FROM ({}) h ORDER BY rank, place, LENGTH(name), id DESC LIMIT $7",
        parts.join(" UNION ALL ")
    );
    let rows = scope.core.db.all(sql, wanted.values(scope, limit)).await?;
    rows.iter().map(hit).collect()
}

fn hit(row: &sea_orm::QueryResult) -> Result<SearchHit> {
    Ok(SearchHit {
        kind: row.try_get_by(0)?,
        id: Id(row.try_get_by(1)?),
        name: row.try_get_by(2)?,
        detail: row.try_get_by(3)?,
        reference: row.try_get_by(4)?,
        agent_id: row.try_get_by::<Option<i64>, _>(5)?.map(AgentId),
    })
}
