//! What a host is told to launch an agent with, and what its sessions get. The answer holds secrets, opened for the host that
//! runs the agent and nobody else: it is never stored or logged.
//!
//! `instructions.rs`: what the agent is told in words; `access.rs`: credentials as variables and headers.

mod access;
mod instructions;

use muster_protocol::{
    LARGEST_FRAME, Secret,
    plan::{LaunchPlan, Limits, ModelAccess, Skill},
};
use sea_orm::{ColumnTrait, QueryFilter, sea_query::Expr};
use secrecy::ExposeSecret;

use self::instructions::Manner;
use super::{entity::agents, load, standing::texts};
use crate::{
    base::{
        enums::{AgentStatus, CredentialChoice},
        ids::AgentId,
        problem::{Code, Problem, Result},
    },
    core::{access::Scope, config::folded, sealing::SealContext, store::Tx},
    slices::{credentials, mcp_servers, servers, skills},
};

/// How much of a frame a plan may take, in bytes of JSON.
const PLAN_BYTES: usize = LARGEST_FRAME - 4 * 1024;

/// How to launch the agent, and what its sessions get. Also asked for when its skills, MCP servers or credentials have changed.
///
/// # Errors
/// `NOT_FOUND`; `AGENT_NOT_RUNNING` for a launch that is not the agent's present one, or should not run; `PAYLOAD_TOO_LARGE` if
/// the agent's skills don't fit into one answer.
pub async fn launch(scope: &Scope, agent: AgentId, generation: i64) -> Result<LaunchPlan> {
    let tx = scope.begin().await?;
    let agent = load(&tx, agent).await?;
    require_wanted(&agent, generation)?;
    let (image, default_model) = servers::image_of(&tx, agent.image_id).await?;
    let opened = credentials::of_agent(&tx, agent.id).await?;
    let skills = skills::of_agent(&tx, agent.id).await?.into_iter().map(|skill| Skill {
        name: skill.name,
        description: skill.description,
        content: skill.content,
        version: skill.version,
    });
    let mcp_servers = mcp_servers::of_agent(&tx, agent.id).await?;
    let enforced = scope.core.risk.categories();
    let plan = LaunchPlan {
        name: agent.name.clone(),
        image,
        revision: agent.launched_revision.unwrap_or(agent.revision),
        instructions: instructions::of(
            &manner(&agent),
            &not_enforced(&texts(&agent.approval_categories), &enforced),
        ),
        model: agent.model_override.clone().or(default_model),
        model_access: model_access(&tx, &agent)?,
        environment: access::variables(&opened),
        skills: skills.collect(),
        mcp_servers: mcp_servers.into_iter().map(|server| access::mcp_server(server, &opened)).collect(),
        limits: Limits { memory_mb: agent.memory_mb_override, cpus: agent.cpu_override, start_seconds: None },
    };
    require_fitting(&plan)?;
    remember(&tx, &agent).await?;
    tx.commit().await?;
    Ok(plan)
}

fn manner(agent: &agents::Model) -> Manner<'_> {
    Manner {
        name: &agent.name,
        role: agent.role.as_deref(),
        description: agent.description.as_deref(),
        language: agent.language.as_deref(),
        style: agent.response_style,
        format: agent.response_format,
        single_message: agent.single_message,
        no_emoji: agent.no_emoji,
    }
}

fn require_wanted(agent: &agents::Model, generation: i64) -> Result<()> {
    use AgentStatus::{Paused, Running, Spawning};
    let detail = if agent.launch_generation != generation {
        format!("Launch {generation} is not the agent's present one.")
    } else if matches!(agent.status, Spawning | Running | Paused) {
        return Ok(());
    } else {
        format!("The agent is {}.", agent.status)
    };
    Err(Problem::new(Code::AgentNotRunning, detail).with("status", agent.status.as_str()))
}

fn require_fitting(plan: &LaunchPlan) -> Result<()> {
    let bytes = serde_json::to_string(plan).map_err(Problem::internal)?.len();
    if bytes <= PLAN_BYTES {
        return Ok(());
    }
    let detail = format!(
        "What the agent is launched with takes {bytes} bytes, and at most {PLAN_BYTES} fit. Shorten or remove skills: they take {}.",
        plan.skills.iter().map(|skill| skill.content.len()).sum::<usize>()
    );
    Err(Problem::new(Code::PayloadTooLarge, detail).with("limit", PLAN_BYTES))
}

/// The host now knows of all changes so far. Once it reports that they are in place, the agent is no longer marked.
async fn remember(tx: &Tx, agent: &agents::Model) -> Result<()> {
    let told = tx.scope.update::<agents::Entity>().filter(agents::Column::Id.eq(agent.id));
    told.col_expr(agents::Column::SyncGiven, Expr::value(agent.sync_version)).exec(tx.connection()).await?;
    Ok(())
}

/// Access to the model, if the agent has its own.
fn model_access(tx: &Tx, agent: &agents::Model) -> Result<Option<ModelAccess>> {
    let Some(sealed) = &agent.model_credential_sealed else { return Ok(None) };
    if agent.credential_choice != CredentialChoice::Own {
        return Ok(None);
    }
    let place = SealContext::new(tx.scope.org, "agents", agent.id.0, "model_credential");
    let key = tx.scope.core.keys.open(sealed, &place).map_err(Problem::internal)?;
    Ok(Some(ModelAccess {
        provider: agent.model_credential_provider.clone().unwrap_or_default(),
        base_url: agent.model_credential_base_url.clone(),
        key: Secret::from(key.expose_secret().to_owned()),
    }))
}

/// The categories that no risk rule knows. The agent is told them in words.
fn not_enforced(wanted: &[String], enforced: &[String]) -> Vec<String> {
    let is_enforced = |category: &String| enforced.contains(&folded(category));
    wanted.iter().filter(|category| !is_enforced(category)).cloned().collect()
}
