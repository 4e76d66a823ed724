//! Logs of agents, which their hosts keep.

use async_graphql::{Context, SimpleObject, Subscription};
use futures::{Stream, stream};
use muster_protocol::frame;

use crate::{
    base::{
        enums::LogSource,
        ids::{AgentId, OrgId},
        permission::Permission,
        problem::Result,
        time::Timestamp,
    },
    core::events::LogLines,
    domain::agents,
    resolvers::{Enter, permit::permit, while_permitted},
};

/// Consecutive lines of an agent's log.
#[derive(SimpleObject)]
pub struct AgentLogBatch {
    /// When the log was begun, by the host's clock. Another time is another log, as after a move to another server.
    pub begun_at: Timestamp,
    /// The lines. None in an answer about an empty log.
    pub lines: Vec<AgentLogLine>,
    /// The number of the first line in its log: 1, 2, 3, ….
    pub position: i64,
}

/// A line of an agent's log.
#[derive(SimpleObject)]
pub struct AgentLogLine {
    /// Where it comes from.
    pub source: LogSource,
    /// The text, at most 2 KiB; a longer line is several. Known secrets are replaced by `•••`.
    pub text: String,
    /// When it was read or written, by the host's clock.
    pub time: Timestamp,
}

impl From<&LogLines> for AgentLogBatch {
    fn from(batch: &LogLines) -> Self {
        let lines = batch.lines.iter().map(|line| AgentLogLine {
            source: match line.source {
                frame::LogSource::Stderr => LogSource::Stderr,
                frame::LogSource::Launch => LogSource::Launch,
                frame::LogSource::Gate => LogSource::Gate,
                frame::LogSource::Mcp => LogSource::Mcp,
            },
            text: line.text.clone(),
            time: Timestamp(line.time),
        });
        Self { begun_at: Timestamp(batch.begun_at), lines: lines.collect(), position: batch.position }
    }
}

#[derive(Default)]
pub struct LogSubscription;

#[Subscription]
impl LogSubscription {
    /// Sends the last 256 KiB of an agent's log, and then new lines, while the agent's host is connected. A missing
    /// number is a lost line; a line may come again when another viewer arrives, or the host reconnects.
    #[graphql(directive = permit::apply(Permission::AgentOutputView))]
    async fn agent_logs(
        &self,
        ctx: &Context<'_>,
        org_id: OrgId,
        id: AgentId,
    ) -> Result<impl Stream<Item = Result<AgentLogBatch>> + use<>> {
        let scope = ctx.enter(org_id).await?;
        agents::require_agent(&scope, id).await?;
        let watching = scope.core.events.logs.watch(org_id, id);
        let batches = stream::unfold(watching, |mut watching| async move {
            let batch = watching.next().await?;
            Some((AgentLogBatch::from(&*batch), watching))
        });
        while_permitted(&scope, Permission::AgentOutputView, batches)
    }
}
