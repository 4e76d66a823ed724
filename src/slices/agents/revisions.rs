//! Revisions: what an agent was at a time. A launch and a turn name theirs, and one can go back to an earlier one.
//!
//! A revision has everything that an edit of the agent can set, the ids of its credentials and MCP servers and the
//! versions of its skills; never a secret. It is written in the transaction of the change by whoever changes the agent
//! or what it works with ([`follow`]), unless nothing differs. The numbers of an agent's revisions are 1, 2, 3, ….

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, NotSet, QueryFilter, QuerySelect, Set, Statement, Value,
    sea_query::Expr,
};
use serde_json::{Value as Json, json};

use super::{
    UpdateAgentInput,
    entity::{agent_revisions, agents},
};
use crate::{
    base::{
        ids::AgentId,
        problem::{Code, Problem, Result},
    },
    core::store::Tx,
    slices::versions::{Author, Content, fields_of, settings},
};

/// How many revisions of an agent are kept, besides the one it was launched with.
const KEPT: i64 = 200;
/// How many agents are looked at together: a change of all their skills takes the same few statements for each lot.
const LOT: usize = 200;

/// Names of fields in a revision's content besides those of [`UpdateAgentInput`].
pub(super) const SKILLS: &str = "skills";
pub(super) const MCP_SERVERS: &str = "mcpServers";
pub(super) const CREDENTIALS: &str = "credentials";
const HAS_MODEL_CREDENTIAL: &str = "hasModelCredential";

static SETTINGS: LazyLock<BTreeSet<String>> = LazyLock::new(fields_of::<UpdateAgentInput>);

/// The number of the agent's newest revision. 0: it has none yet.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn current(tx: &Tx, agent: AgentId) -> Result<i64> {
    let found = tx.scope.find::<agents::Entity>().select_only().column(agents::Column::Revision);
    let found = found.filter(agents::Column::Id.eq(agent)).into_tuple().one(tx.connection()).await?;
    found.ok_or_else(|| Problem::not_found("agent", agent))
}

/// A revision of an agent that may be deleted.
///
/// # Errors
/// `NOT_FOUND`.
pub(super) async fn load(tx: &Tx, agent: AgentId, number: i64) -> Result<agent_revisions::Model> {
    let found = tx.scope.find::<agent_revisions::Entity>();
    let found = found.filter(agent_revisions::Column::AgentId.eq(agent));
    let found = found.filter(agent_revisions::Column::Number.eq(number)).one(tx.connection()).await?;
    match found {
        Some(revision) => Ok(revision),
        None => {
            let newest = current(tx, agent).await?;
            let detail =
                format!("The agent has no revision {number}. The newest is {newest}; only some are kept.");
            Err(Problem::new(Code::NotFound, detail))
        }
    }
}

/// Writes a revision of each of these agents that differs from its newest one. They are as changed, and locked.
/// `reverts_to` is the number of the revision that the change restores.
///
/// # Errors
/// The database rejects a statement.
pub(super) async fn follow(tx: &Tx, agents: &[agents::Model], reverts_to: Option<i64>) -> Result<()> {
    for lot in agents.chunks(LOT) {
        follow_lot(tx, lot, reverts_to).await?;
    }
    Ok(())
}

async fn follow_lot(tx: &Tx, agents: &[agents::Model], reverts_to: Option<i64>) -> Result<()> {
    let newest = newest(tx, agents).await?;
    let mut equipment = equipment(tx, agents).await?;
    let author = Author::of(tx);
    let mut rows = Vec::new();
    for agent in agents {
        let content = content(agent, equipment.remove(&agent.id).unwrap_or_default());
        let before = newest.get(&agent.id);
        if before.is_none_or(|before| before.content_hash != content.hash) {
            rows.push(row(tx, agent, before, (content, reverts_to), &author));
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    let changed: Vec<AgentId> = rows.iter().filter_map(|row| row.agent_id.try_as_ref().copied()).collect();
    let has_many = rows.iter().any(|row| row.number.try_as_ref().is_some_and(|number| *number > KEPT));
    agent_revisions::Entity::insert_many(rows).exec_without_returning(tx.connection()).await?;
    let next = Expr::cust("revision + 1");
    let raised = tx.scope.update::<agents::Entity>().col_expr(agents::Column::Revision, next);
    raised.filter(agents::Column::Id.is_in(changed.iter().copied())).exec(tx.connection()).await?;
    if has_many {
        forget(tx, &changed).await?;
    }
    Ok(())
}

fn row(
    tx: &Tx,
    agent: &agents::Model,
    before: Option<&agent_revisions::Model>,
    (content, reverts_to): (Content, Option<i64>),
    author: &Author,
) -> agent_revisions::ActiveModel {
    agent_revisions::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        agent_id: Set(agent.id),
        number: Set(agent.revision + 1),
        changes: Set(content.changes_from(before.map(|before| before.content.as_str()))),
        content_hash: Set(content.hash),
        content: Set(content.text),
        reverts_to: Set(reverts_to),
        author_kind: Set(author.kind),
        author_id: Set(author.id),
        author_name: Set(author.name.clone()),
        operation: Set(author.operation.clone()),
        reason: Set(author.reason.clone()),
        created_at: Set(tx.now),
    }
}

fn content(agent: &agents::Model, equipment: BTreeMap<String, Vec<Json>>) -> Content {
    let mut fields = settings(agent, &SETTINGS);
    fields.insert(HAS_MODEL_CREDENTIAL.to_owned(), agent.model_credential_sealed.is_some().into());
    for kind in [SKILLS, MCP_SERVERS, CREDENTIALS] {
        fields.insert(kind.to_owned(), json!([]));
    }
    fields.extend(equipment.into_iter().map(|(kind, ids)| (kind, ids.into())));
    Content::of(fields)
}

/// The newest revision of each agent that has one.
async fn newest(tx: &Tx, agents: &[agents::Model]) -> Result<BTreeMap<AgentId, agent_revisions::Model>> {
    let ids = agents.iter().map(|agent| agent.id);
    let is_newest = Expr::cust(
        "number = (SELECT a.revision FROM agents a \
         WHERE a.organization_id = agent_revisions.organization_id AND a.id = agent_revisions.agent_id)",
    );
    let found = tx.scope.find::<agent_revisions::Entity>();
    let found = found.filter(agent_revisions::Column::AgentId.is_in(ids)).filter(is_newest);
    let found = found.all(tx.connection()).await?;
    Ok(found.into_iter().map(|revision| (revision.agent_id, revision)).collect())
}

/// What each agent works with, by kind, ordered by id. Nothing archived.
async fn equipment(
    tx: &Tx,
    agents: &[agents::Model],
) -> Result<BTreeMap<AgentId, BTreeMap<String, Vec<Json>>>> {
    let places: Vec<String> = (2..agents.len() + 2).map(|place| format!("${place}")).collect();
    let part = |kind: &str, table: &str, one: &str, version: &str| {
        format!(
            "SELECT j.agent_id, '{kind}' AS kind, x.id AS id, {version} AS version FROM {one}_agents j \
             JOIN {table} x ON x.organization_id = j.organization_id AND x.id = j.{one}_id \
             WHERE j.organization_id = $1 AND j.agent_id IN ({}) AND x.archived_at IS NULL",
            places.join(", ")
        )
    };
    let sql = [
        part(SKILLS, "skills", "skill", "x.version"),
        part(MCP_SERVERS, "mcp_servers", "mcp_server", "CAST(0 AS BIGINT)"),
        part(CREDENTIALS, "credentials", "credential", "CAST(0 AS BIGINT)"),
    ];
    let sql = format!("{} ORDER BY kind, id", sql.join(" UNION ALL "));
    let mut values: Vec<Value> = vec![tx.scope.org.into()];
    values.extend(agents.iter().map(|agent| Value::from(agent.id)));
    let statement = Statement::from_sql_and_values(tx.scope.core.db.backend(), sql, values);
    let mut found: BTreeMap<AgentId, BTreeMap<String, Vec<Json>>> = BTreeMap::new();
    for row in tx.connection().query_all_raw(statement).await? {
        let (agent, kind): (AgentId, String) = (row.try_get_by(0)?, row.try_get_by(1)?);
        let (id, version): (i64, i64) = (row.try_get_by(2)?, row.try_get_by(3)?);
        let shown = if kind == SKILLS { json!({ "id": id, "version": version }) } else { id.into() };
        found.entry(agent).or_default().entry(kind).or_default().push(shown);
    }
    Ok(found)
}

/// Removes the oldest revisions of agents that have many.
async fn forget(tx: &Tx, agents: &[AgentId]) -> Result<()> {
    let old = Expr::cust(format!(
        "number <= (SELECT a.revision - {KEPT} FROM agents a WHERE a.organization_id = agent_revisions.organization_id \
         AND a.id = agent_revisions.agent_id AND agent_revisions.number <> COALESCE(a.launched_revision, 0))"
    ));
    let gone = tx.scope.delete::<agent_revisions::Entity>();
    let gone = gone.filter(agent_revisions::Column::AgentId.is_in(agents.iter().copied())).filter(old);
    gone.exec(tx.connection()).await?;
    Ok(())
}
