//! Revisions: the past and present settings of an agent. Launches and turns name their revision, and an agent can be
//! reverted to an earlier one.
//!
//! A revision has everything that an edit of the agent can set, the ids of its credentials and MCP servers, and the ids
//! and versions of its skills; never a secret. The transaction that changes the agent or its assignments writes it
//! ([`record_revisions`]), unless nothing differs. The numbers of an agent's revisions are 1, 2, 3, ….

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use sea_orm::{ColumnTrait, EntityTrait, NotSet, QueryFilter, QuerySelect, Set, sea_query::Expr};
use serde_json::{Value as Json, json};

use super::{
    UpdateAgentInput,
    entity::{agent_revisions, agents},
    queries,
};
use crate::{
    base::{
        bounds::BATCH,
        ids::AgentId,
        problem::{Code, Problem, Result},
    },
    core::store::Tx,
    domain::versions::{Author, Content, fields_of, settings},
};

/// How many revisions of an agent are kept besides that of its last launch, because a script could fill the disk with
/// edits.
const KEPT_REVISIONS: i64 = 200;

/// Names of fields in a revision's content besides those of [`UpdateAgentInput`].
pub(super) const SKILLS: &str = "skills";
pub(super) const MCP_SERVERS: &str = "mcpServers";
pub(super) const CREDENTIALS: &str = "credentials";
const HAS_MODEL_CREDENTIAL: &str = "hasModelCredential";

static SETTINGS: LazyLock<BTreeSet<String>> = LazyLock::new(fields_of::<UpdateAgentInput>);

/// The number of the agent's newest revision. 0: none yet.
pub async fn current(tx: &Tx, agent: AgentId) -> Result<i64> {
    let found = tx.scope.find::<agents::Entity>().select_only().column(agents::Column::Revision);
    let found = found.filter(agents::Column::Id.eq(agent)).into_tuple().one(tx.connection()).await?;
    found.ok_or_else(|| Problem::not_found("agent", agent))
}

/// Loads a revision of an agent, even a deleted one.
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

/// Writes a revision of each of these agents that differs from its newest one. The caller has locked them, and passes
/// their rows after the change. `reverts_to` is the number of the revision that the change restores.
pub(in crate::domain) async fn record_revisions(
    tx: &Tx,
    agents: &[agents::Model],
    reverts_to: Option<i64>,
) -> Result<()> {
    for batch in agents.chunks(BATCH as usize) {
        record_batch(tx, batch, reverts_to).await?;
    }
    Ok(())
}

async fn record_batch(tx: &Tx, agents: &[agents::Model], reverts_to: Option<i64>) -> Result<()> {
    let newest = newest_revisions(tx, agents).await?;
    let mut assigned = assigned_records(tx, agents).await?;
    let author = Author::from_caller(tx);
    let mut rows = Vec::new();
    for agent in agents {
        let content = content_of(agent, assigned.remove(&agent.id).unwrap_or_default());
        let before = newest.get(&agent.id);
        if before.is_none_or(|before| before.content_hash != content.hash) {
            rows.push(new_row(tx, agent, before, (content, reverts_to), &author));
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    let changed: Vec<AgentId> = rows.iter().filter_map(|row| row.agent_id.try_as_ref().copied()).collect();
    let exceeds_limit =
        rows.iter().any(|row| row.number.try_as_ref().is_some_and(|number| *number > KEPT_REVISIONS));
    agent_revisions::Entity::insert_many(rows).exec_without_returning(tx.connection()).await?;
    let next = Expr::cust("revision + 1");
    let raised = tx.scope.update::<agents::Entity>().col_expr(agents::Column::Revision, next);
    raised.filter(agents::Column::Id.is_in(changed.iter().copied())).exec(tx.connection()).await?;
    if exceeds_limit {
        queries::delete_old_revisions(tx, &changed, KEPT_REVISIONS).await?;
    }
    Ok(())
}

fn new_row(
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

fn content_of(agent: &agents::Model, assigned: BTreeMap<String, Vec<Json>>) -> Content {
    let mut fields = settings(agent, &SETTINGS);
    fields.insert(HAS_MODEL_CREDENTIAL.to_owned(), agent.model_credential_sealed.is_some().into());
    for kind in [SKILLS, MCP_SERVERS, CREDENTIALS] {
        fields.insert(kind.to_owned(), json!([]));
    }
    fields.extend(assigned.into_iter().map(|(kind, ids)| (kind, ids.into())));
    Content::from_fields(fields)
}

/// The newest revision of each agent, if it has one.
async fn newest_revisions(
    tx: &Tx,
    agents: &[agents::Model],
) -> Result<BTreeMap<AgentId, agent_revisions::Model>> {
    let ids = agents.iter().map(|agent| agent.id);
    let is_newest = Expr::cust(queries::IS_NEWEST_REVISION);
    let found = tx.scope.find::<agent_revisions::Entity>();
    let found = found.filter(agent_revisions::Column::AgentId.is_in(ids)).filter(is_newest);
    let found = found.all(tx.connection()).await?;
    Ok(found.into_iter().map(|revision| (revision.agent_id, revision)).collect())
}

/// The credentials, MCP servers and skills of each agent that aren't archived, by kind, ordered by id.
async fn assigned_records(
    tx: &Tx,
    agents: &[agents::Model],
) -> Result<BTreeMap<AgentId, BTreeMap<String, Vec<Json>>>> {
    let agents: Vec<AgentId> = agents.iter().map(|agent| agent.id).collect();
    let mut found: BTreeMap<AgentId, BTreeMap<String, Vec<Json>>> = BTreeMap::new();
    for record in queries::assigned_records(tx, &agents).await? {
        let (id, version) = (record.id, record.version);
        let shown = if record.kind == SKILLS { json!({ "id": id, "version": version }) } else { id.into() };
        found.entry(record.agent_id).or_default().entry(record.kind).or_default().push(shown);
    }
    Ok(found)
}
