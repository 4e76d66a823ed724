//! Revisions: what an agent was at a time. A launch and a turn name theirs, and one can go back to an earlier one.
//!
//! A revision has everything that an edit of the agent can set, the ids of its credentials and MCP servers and the
//! versions of its skills; never a secret. It is written in the transaction of the change by whoever changes the agent
//! or what it works with ([`follow`]), unless nothing differs. The numbers of an agent's revisions are 1, 2, 3, ….

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

/// How many revisions of an agent are kept, besides the one it was launched with: a script could fill the disk with edits.
const KEPT: i64 = 200;

/// Names of fields in a revision's content besides those of [`UpdateAgentInput`].
pub(super) const SKILLS: &str = "skills";
pub(super) const MCP_SERVERS: &str = "mcpServers";
pub(super) const CREDENTIALS: &str = "credentials";
const HAS_MODEL_CREDENTIAL: &str = "hasModelCredential";

static SETTINGS: LazyLock<BTreeSet<String>> = LazyLock::new(fields_of::<UpdateAgentInput>);

/// The number of the agent's newest revision. 0: it has none yet.
pub async fn current(tx: &Tx, agent: AgentId) -> Result<i64> {
    let found = tx.scope.find::<agents::Entity>().select_only().column(agents::Column::Revision);
    let found = found.filter(agents::Column::Id.eq(agent)).into_tuple().one(tx.connection()).await?;
    found.ok_or_else(|| Problem::not_found("agent", agent))
}

/// A revision of an agent that may be deleted.
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
pub(in crate::domain) async fn follow(
    tx: &Tx,
    agents: &[agents::Model],
    reverts_to: Option<i64>,
) -> Result<()> {
    for lot in agents.chunks(BATCH as usize) {
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
        queries::forget_revisions(tx, &changed, KEPT).await?;
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
    let is_newest = Expr::cust(queries::IS_NEWEST_REVISION);
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
    let agents: Vec<AgentId> = agents.iter().map(|agent| agent.id).collect();
    let mut found: BTreeMap<AgentId, BTreeMap<String, Vec<Json>>> = BTreeMap::new();
    for thing in queries::equipment(tx, &agents).await? {
        let (id, version) = (thing.id, thing.version);
        let shown = if thing.kind == SKILLS { json!({ "id": id, "version": version }) } else { id.into() };
        found.entry(thing.agent_id).or_default().entry(thing.kind).or_default().push(shown);
    }
    Ok(found)
}
