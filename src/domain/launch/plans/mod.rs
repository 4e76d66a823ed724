//! Launch plans: everything that a host needs to launch an agent and to serve its sessions. A plan holds secrets,
//! opened only for the host that runs the agent. It is never stored or logged.
//!
//! `instructions.rs`: the agent's instructions; `access.rs`: credentials as variables and headers; `model.rs`: the key
//! for its model; `restart.rs`: changes that need a new launch; `withheld.rs`: hosts that get no secrets.

mod access;
mod instructions;
mod model;
mod restart;
mod withheld;

use muster_protocol::{
    LARGEST_FRAME,
    plan::{LaunchPlan, Limits, McpServer, Network, Skill},
};
use sea_orm::{ColumnTrait, QueryFilter, sea_query::Expr};

use self::instructions::Persona;
pub use self::withheld::withhold_all;
pub(super) use self::withheld::{fail_until_confirmed, is_withheld, withhold};
use crate::{
    base::{
        enums::{AgentStatus, StatusReason},
        ids::AgentId,
        json::texts,
        problem::{Code, Problem, Result},
    },
    core::{access::Scope, config::folded, store::Tx},
    domain::{
        agents::{entity::agents, rows::load, set_status_reason},
        credentials, mcp_servers, network, orgs, servers, skills, spending,
    },
};

/// How much of a frame of the protocol a plan may take, in bytes of JSON.
const PLAN_BYTES: usize = LARGEST_FRAME - 4 * 1024;

/// The plan for launching the agent and serving its sessions. Hosts ask again when skills, MCP servers or credentials
/// change.
///
/// While the organization is stopped, the plan of an agent that is up contains only the stop, so that its gate closes
/// even if the rest of the plan can't be built. The release brings the rest.
///
/// # Errors
/// `NOT_FOUND`; `AGENT_NOT_RUNNING` for a launch that is not the agent's current one, or should not run;
/// `PERMISSION_DENIED` if the plan holds secrets that the host may not have; `PAYLOAD_TOO_LARGE` if the agent's skills
/// don't fit into one answer.
pub async fn launch(scope: &Scope, agent: AgentId, generation: i64) -> Result<LaunchPlan> {
    let tx = scope.begin().await?;
    let agent = load(&tx, agent).await?;
    require_wanted(&agent, generation)?;
    let stopped = orgs::is_stopped(&tx).await?;
    if stopped && agent.status != AgentStatus::Spawning {
        return Ok(LaunchPlan { stopped, ..LaunchPlan::default() });
    }
    let plan = LaunchPlan { stopped, ..build_plan(&tx, &agent).await? };
    if withheld::holds_secret(&plan) && servers::is_unconfirmed(&tx, agent.server_id).await? {
        withhold(&tx, &agent).await?;
        tx.commit().await?;
        return Err(withheld::refusal());
    }
    if let Err(problem) = require_fitting(&plan) {
        // A launch fails with this message. A running agent keeps its old plan, so its status must say so.
        if agent.status != AgentStatus::Spawning {
            set_status_reason(&tx, agent.id, Some((StatusReason::SyncFailed, &problem.detail))).await?;
            tx.commit().await?;
        }
        return Err(problem);
    }
    restart::store_changes(&tx, &agent, &plan).await?;
    mark_plan_given(&tx, &agent).await?;
    credentials::mark_given(&tx, agent.id).await?;
    tx.commit().await?;
    Ok(plan)
}

/// Builds the agent's plan, including its secrets.
async fn build_plan(tx: &Tx, agent: &agents::Model) -> Result<LaunchPlan> {
    let image = servers::image_of(tx, agent.image_id).await?;
    let opened = credentials::open_for_agent(tx, agent.id).await?;
    let skills = skills::of_agent(tx, agent.id).await?.into_iter().map(|skill| Skill {
        name: skill.name,
        description: skill.description,
        content: skill.content,
        version: skill.version,
    });
    let mcp_servers = mcp_servers::of_agent(tx, agent.id).await?;
    let mut pins = mcp_servers::tools::pins(tx, &mcp_servers).await?;
    let mcp_servers = mcp_servers.into_iter().map(|server| {
        let tools = pins.remove(&server.id);
        McpServer { tools, ..access::mcp_server(server, &opened) }
    });
    let mcp_servers: Vec<McpServer> = mcp_servers.collect();
    let allowed = network::allowed(tx).await?;
    let enforced = tx.scope.core.risk.categories();
    Ok(LaunchPlan {
        name: agent.name.clone(),
        created_at: agent.created_at.0,
        image: image.reference,
        digest: image.digest,
        revision: agent.launched_revision.unwrap_or(agent.revision),
        instructions: instructions::build(
            &persona(agent),
            &not_enforced(&texts(&agent.approval_categories), &enforced),
        ),
        model: agent.model_override.clone().or(image.default_model),
        mode: agent.mode_override.clone(),
        model_access: model::open_access(tx, agent).await?,
        environment: access::environment(opened.iter().filter(|credential| credential.agent_may_read)),
        files: access::files(opened.iter().filter(|credential| credential.agent_may_read)),
        injected: access::injected(&opened, &allowed),
        network: Network { privileged: agent.network_privileged, allowed },
        disabled_tool_groups: texts(&agent.disabled_tool_groups),
        prices: spending::prices_now(tx, agent.id).await?,
        metered: spending::is_metered(tx, agent.id).await?,
        skills: skills.collect(),
        mcp_servers,
        limits: Limits { memory_mb: agent.memory_mb_override, cpus: agent.cpu_override, start_seconds: None },
        profile: image.profile,
        stopped: false,
    })
}

fn persona(agent: &agents::Model) -> Persona<'_> {
    Persona {
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
        format!("Launch {generation} is not the agent's current one.")
    } else if matches!(agent.status, Spawning | Running | Paused) {
        return Ok(());
    } else {
        format!("The agent's status is {}.", agent.status)
    };
    Err(Problem::new(Code::AgentNotRunning, detail).with("status", agent.status.as_str()))
}

fn require_fitting(plan: &LaunchPlan) -> Result<()> {
    let bytes = serde_json::to_string(plan).map_err(Problem::internal)?.len();
    if bytes <= PLAN_BYTES {
        return Ok(());
    }
    let detail = format!(
        "The agent's launch plan has {bytes} bytes, but at most {PLAN_BYTES} fit. Shorten or remove skills, which take {}.",
        plan.skills.iter().map(|skill| skill.content.len()).sum::<usize>()
    );
    Err(Problem::new(Code::PayloadTooLarge, detail).with("limit", PLAN_BYTES))
}

/// Records that the host's plan includes all changes so far. Once the host reports that it has applied the plan, the
/// agent is no longer marked for synchronization.
async fn mark_plan_given(tx: &Tx, agent: &agents::Model) -> Result<()> {
    let given = tx.scope.update::<agents::Entity>().filter(agents::Column::Id.eq(agent.id));
    given.col_expr(agents::Column::SyncGiven, Expr::value(agent.sync_version)).exec(tx.connection()).await?;
    Ok(())
}

/// The categories that no risk rule covers. They are part of the agent's instructions.
fn not_enforced(wanted: &[String], enforced: &[String]) -> Vec<String> {
    let is_enforced = |category: &String| enforced.contains(&folded(category));
    wanted.iter().filter(|category| !is_enforced(category)).cloned().collect()
}
