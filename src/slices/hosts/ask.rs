//! What a host asks for just before it acts: how to launch an agent, what to say in a turn, what was decided.
//!
//! The answers hold secrets. Only the current connection of the agent's own server gets them, for the current launch,
//! and only while the agent should be running.

use muster_protocol::plan::{Given, LaunchPlan, Wanted};

use super::{Ended, Link};
use crate::base::{
    enums::AgentStatus,
    ids::AgentId,
    problem::{Code, Problem, Result},
};

/// Answers a host. `None`: the agent is not on its server.
///
/// # Errors
/// The connection is not the current one; the database can't be reached.
pub async fn answer(
    link: &Link,
    agent: i64,
    generation: i64,
    wanted: Wanted,
) -> Result<Option<Given>, Ended> {
    let sql = "SELECT a.status, a.launch_generation FROM servers s JOIN agents a \
               ON a.organization_id = s.organization_id AND a.server_id = s.id AND a.archived_at IS NULL \
               WHERE s.organization_id = $1 AND s.id = $2 AND s.host_epoch = $3 AND a.id = $4";
    let found = link.scope.core.db.one(sql.to_owned(), link.values([agent.into()])).await?;
    let Some(row) = found else {
        link.fence().await?;
        return Ok(None);
    };
    let (status, current): (AgentStatus, i64) = (row.try_get_by(0)?, row.try_get_by(1)?);
    if generation != current {
        return Ok(Some(refused(format!(
            "Launch {generation} of the agent is over; the current one is {current}."
        ))));
    }
    if !matches!(status, AgentStatus::Spawning | AgentStatus::Running | AgentStatus::Paused) {
        return Ok(Some(refused(format!("The agent is {status}: it should not be running."))));
    }
    match plan(link, AgentId(agent), wanted).await {
        Ok(given) => Ok(Some(given)),
        Err(problem) if matches!(problem.code, Code::Unavailable) => Err(problem.into()),
        Err(problem) => {
            if let Some(cause) = problem.cause() {
                tracing::error!(agent, generation, cause = format!("{cause:#}"), "hosts.no_answer");
            }
            Ok(Some(refused(problem.detail)))
        }
    }
}

fn refused(reason: String) -> Given {
    Given::Refused { reason }
}

async fn plan(link: &Link, agent: AgentId, wanted: Wanted) -> Result<Given> {
    let Wanted::Launch = wanted else {
        return Err(Problem::new(Code::NotFound, "It no longer exists."));
    };
    let sql = "SELECT a.name, i.reference FROM agents a JOIN images i ON i.organization_id = a.organization_id \
               AND i.id = a.image_id WHERE a.organization_id = $1 AND a.id = $2";
    let found = link.scope.core.db.one(sql.to_owned(), vec![link.scope.org.into(), agent.into()]).await?;
    let row = found.ok_or_else(|| Problem::not_found("agent", agent))?;
    let plan = LaunchPlan { name: row.try_get_by(0)?, image: row.try_get_by(1)?, ..LaunchPlan::default() };
    Ok(Given::Launch(Box::new(plan)))
}
