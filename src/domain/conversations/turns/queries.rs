//! SQL of turns.

use muster_protocol::event::Usage;
use sea_orm::Value;

use crate::{
    base::{
        enums::TurnWait,
        ids::{AgentId, ApprovalId, ConversationId, OrgId, TurnId},
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        access::Scope,
        store::{
            Tx,
            sql::{RunSql as _, RunWritingSql as _, every_org_sql, row, sql},
        },
    },
};

/// SQL on `turns`: queued and ready to be sent. The conversation has no open turn, and no person answers or has
/// answered in it. The literal states make the partial indexes apply.
pub(super) const DUE: &str = "turns.ended_at IS NULL AND turns.state = 'QUEUED' AND NOT turns.held \
    AND NOT EXISTS (SELECT 1 FROM turns o WHERE o.organization_id = turns.organization_id \
    AND o.conversation_id = turns.conversation_id AND o.state IN ('RUNNING', 'WAITING_APPROVAL', 'WAITING_LIMIT')) \
    AND NOT EXISTS (SELECT 1 FROM conversations c WHERE c.organization_id = turns.organization_id \
    AND c.id = turns.conversation_id AND c.taken_over_by IS NOT NULL)";

/// SQL on `turns`: without a host, to be sent again when the agent may call its model.
const PARKED: &str = "turns.state = 'WAITING_LIMIT' AND turns.limited = 'PARKED'";

/// SQL that extends the messages of a turn to the positions `$3` to `$4`. Null: no change.
const REACH: &str = "first_seq = CASE WHEN first_seq < $3 THEN first_seq ELSE COALESCE($3, first_seq) END, \
    last_seq = CASE WHEN last_seq > $4 THEN last_seq ELSE COALESCE($4, last_seq) END";

/// Extends the conversation's queued turn to these positions, and no longer holds it. Returns it if there is one.
pub(super) async fn join_queued(
    tx: &Tx,
    conversation: ConversationId,
    (first, last): (Option<i64>, Option<i64>),
) -> Result<Option<TurnId>> {
    let sql = sql!(
        "UPDATE turns SET held = FALSE, updated_at = $5, ",
        REACH,
        " WHERE organization_id = $org AND conversation_id = $2 AND state = 'QUEUED' RETURNING id"
    );
    tx.scalar(sql, [conversation.into(), first.into(), last.into(), tx.now.into()]).await
}

/// Whether there is such a turn that has not ended.
pub async fn is_under_way(scope: &Scope, turn: TurnId) -> Result<bool> {
    let sql = sql!("SELECT id FROM turns WHERE organization_id = $org AND id = $2 AND ended_at IS NULL");
    Ok(scope.scalar::<TurnId>(sql, [turn.into()]).await?.is_some())
}

/// Extends a turn to these positions.
pub(super) async fn extend_reach(tx: &Tx, turn: TurnId, (first, last): (i64, i64)) -> Result<()> {
    let sql = sql!("UPDATE turns SET ", REACH, " WHERE organization_id = $org AND id = $2");
    tx.execute(sql, [turn.into(), first.into(), last.into()]).await?;
    Ok(())
}

row! {
    /// An agent with turns that could be sent but wait.
    #[derive(Clone, Copy)]
    pub(super) struct LeftAgent { organization_id: OrgId, agent_id: AgentId }
}

/// At most `most` agents of all organizations, after `after`, with turns that have waited since `before` and could be
/// sent.
pub(super) async fn left_agents(
    core: &Core,
    before: Timestamp,
    after: LeftAgent,
    most: u64,
) -> Result<Vec<LeftAgent>> {
    let sql = every_org_sql!(
        "SELECT DISTINCT turns.organization_id, turns.agent_id FROM turns \
         JOIN agents a ON a.organization_id = turns.organization_id AND a.id = turns.agent_id \
         JOIN organizations o ON o.id = turns.organization_id \
         WHERE turns.ended_at IS NULL AND turns.updated_at <= $1 AND a.status = 'RUNNING' AND a.archived_at IS NULL \
         AND o.stopped_at IS NULL AND o.letting_go_at IS NULL AND NOT EXISTS (SELECT 1 FROM agent_limits l \
         WHERE l.organization_id = turns.organization_id AND l.agent_id = turns.agent_id) AND ((",
        DUE,
        " AND (turns.generation IS NULL OR turns.generation < a.launch_generation)) OR (",
        PARKED,
        ")) AND (turns.organization_id, turns.agent_id) > ($2, $3) \
         ORDER BY turns.organization_id, turns.agent_id LIMIT $4"
    );
    let values = [before.into(), after.organization_id.into(), after.agent_id.into(), most.into()];
    core.db.every_org().all(sql, values).await
}

row! {
    pub(super) struct PastWait { kind: TurnWait, from_at: Timestamp, until_at: Timestamp }
}

/// The turn's waits until now, by time.
pub(super) async fn past_waits(tx: &Tx, turn: TurnId) -> Result<Vec<PastWait>> {
    let sql = sql!(
        "SELECT kind, from_at, until_at FROM turn_waits WHERE organization_id = $org AND turn_id = $2 ORDER BY from_at"
    );
    tx.all(sql, [turn.into()]).await
}

/// Records a wait since `since` for all turns of the agent that could not continue, or all turns of the organization
/// that could not be sent.
pub(super) async fn add_waits(
    tx: &Tx,
    agent: Option<AgentId>,
    wait: TurnWait,
    since: Timestamp,
) -> Result<()> {
    const ADD: &str = "INSERT INTO turn_waits (organization_id, turn_id, kind, from_at, until_at) \
        SELECT organization_id, id, $2, CASE WHEN created_at < $3 THEN $3 ELSE created_at END, $4 FROM turns \
        WHERE turns.organization_id = $org AND created_at < $4 AND $3 < $4 AND ";
    // Turns that also wait for a person or for another turn don't count.
    let of_agent = sql!(
        ADD,
        "(turns.state = 'WAITING_LIMIT' OR ",
        DUE,
        ") AND turns.agent_id = $5 ON CONFLICT DO NOTHING"
    );
    let of_all = sql!(ADD, DUE, " ON CONFLICT DO NOTHING");
    let mut values: Vec<Value> = vec![wait.into(), since.into(), tx.now.into()];
    values.extend(agent.map(Value::from));
    tx.execute(if agent.is_some() { of_agent } else { of_all }, values).await?;
    Ok(())
}

row! {
    /// The usage of several calls.
    pub(super) struct Sum {
        input_tokens: Option<i64>,
        output_tokens: Option<i64>,
        cache_read_tokens: Option<i64>,
        cache_write_tokens: Option<i64>,
        /// None if the cost of one call is unknown.
        cost_micro: Option<i64>,
        /// The last one called. None: there were no calls.
        model: Option<String>,
    }
}

impl Sum {
    pub(super) const fn usage(&self) -> Usage {
        Usage {
            input: self.input_tokens,
            output: self.output_tokens,
            cache_read: self.cache_read_tokens,
            cache_write: self.cache_write_tokens,
            cost_micro: self.cost_micro,
        }
    }
}

/// The usage of a turn's calls.
pub(super) async fn sum_of_turn(tx: &Tx, turn: TurnId) -> Result<Option<Sum>> {
    let sql = sql!(
        "SELECT CAST(SUM(input_tokens) AS BIGINT) AS input_tokens, CAST(SUM(output_tokens) AS BIGINT) AS output_tokens, \
         CAST(SUM(cache_read_tokens) AS BIGINT) AS cache_read_tokens, \
         CAST(SUM(cache_write_tokens) AS BIGINT) AS cache_write_tokens, \
         CASE WHEN COUNT(cost_micro) = COUNT(*) THEN CAST(SUM(cost_micro) AS BIGINT) END AS cost_micro, \
         (SELECT m.model FROM model_calls m WHERE m.organization_id = $org AND m.turn_id = $2 \
         ORDER BY m.started_at DESC, m.id DESC LIMIT 1) AS model \
         FROM model_calls WHERE organization_id = $org AND turn_id = $2"
    );
    tx.one(sql, [turn.into()]).await
}

/// Whether the agent has made a call since then.
pub(super) async fn has_call(tx: &Tx, agent: AgentId, since: Timestamp) -> Result<bool> {
    let sql = sql!(
        "SELECT started_at FROM model_calls WHERE organization_id = $org AND agent_id = $2 AND started_at >= $3 LIMIT 1"
    );
    Ok(tx.scalar::<Timestamp>(sql, [agent.into(), since.into()]).await?.is_some())
}

/// The maximum number of spans of one kind in a trace.
const MOST: &str = " LIMIT 500";

row! {
    pub(super) struct TracedTurn {
        /// The agent's.
        name: String,
        /// Whether the trace contains messages.
        trace_content: bool,
        model: Option<String>,
        started_at: Option<Timestamp>,
        ended_at: Option<Timestamp>,
        input_tokens: Option<i64>,
        output_tokens: Option<i64>,
        cache_read_tokens: Option<i64>,
        cache_write_tokens: Option<i64>,
        cost_micro: Option<i64>,
    }
}

pub(super) async fn traced(tx: &Tx, turn: TurnId) -> Result<Option<TracedTurn>> {
    let sql = sql!(
        "SELECT a.name, o.trace_content, t.model, t.started_at, t.ended_at, t.input_tokens, t.output_tokens, \
         t.cache_read_tokens, t.cache_write_tokens, t.cost_micro \
         FROM turns t JOIN agents a ON a.organization_id = t.organization_id AND a.id = t.agent_id \
         JOIN organizations o ON o.id = t.organization_id WHERE t.organization_id = $org AND t.id = $2"
    );
    tx.one(sql, [turn.into()]).await
}

row! {
    pub(super) struct TracedCall {
        provider: String,
        model: String,
        status: Option<i64>,
        started_at: Timestamp,
        millis: i64,
        input_tokens: Option<i64>,
        output_tokens: Option<i64>,
        cache_read_tokens: Option<i64>,
        cache_write_tokens: Option<i64>,
        cost_micro: Option<i64>,
    }
}

/// The turn's first model calls.
pub(super) async fn model_calls(tx: &Tx, turn: TurnId) -> Result<Vec<TracedCall>> {
    let sql = sql!(
        "SELECT provider, model, status, started_at, millis, input_tokens, output_tokens, cache_read_tokens, \
         cache_write_tokens, cost_micro FROM model_calls WHERE organization_id = $org AND turn_id = $2 \
         ORDER BY started_at",
        MOST
    );
    tx.all(sql, [turn.into()]).await
}

row! {
    /// The call of a tool, or its result.
    pub(super) struct ToolMessage {
        kind: String,
        /// JSON.
        content: String,
        created_at: Timestamp,
    }
}

/// The turn's first tool calls and results.
pub(super) async fn tool_messages(tx: &Tx, turn: TurnId) -> Result<Vec<ToolMessage>> {
    let sql = sql!(
        "SELECT kind, CAST(content AS TEXT) AS content, created_at FROM messages \
         WHERE organization_id = $org AND turn_id = $2 AND kind IN ('TOOL_CALL', 'TOOL_RESULT') ORDER BY seq",
        MOST
    );
    tx.all(sql, [turn.into()]).await
}

row! {
    pub(super) struct TextMessage {
        role: String,
        /// JSON.
        content: String,
    }
}

/// The turn's first text messages.
pub(super) async fn text_messages(tx: &Tx, turn: TurnId) -> Result<Vec<TextMessage>> {
    let sql = sql!(
        "SELECT role, CAST(content AS TEXT) AS content FROM messages \
         WHERE organization_id = $org AND turn_id = $2 AND kind = 'TEXT' ORDER BY seq",
        MOST
    );
    tx.all(sql, [turn.into()]).await
}

row! {
    pub(super) struct RaisedApproval {
        id: ApprovalId,
        kind: String,
        outcome: Option<String>,
        created_at: Timestamp,
        /// When the agent no longer waited for it.
        over_at: Option<Timestamp>,
    }
}

/// The first approvals raised in the turn.
pub(super) async fn approvals(tx: &Tx, turn: TurnId) -> Result<Vec<RaisedApproval>> {
    let sql = sql!(
        "SELECT id, kind, outcome, created_at, COALESCE(delivered_at, resolved_at) AS over_at FROM approvals \
         WHERE organization_id = $org AND turn_id = $2 ORDER BY id",
        MOST
    );
    tx.all(sql, [turn.into()]).await
}
