//! `muster agent …`. Without more words, it is the reference agent: hosts start it so.

use clap::Subcommand;
use serde_json::{Map, Value};

use super::{
    Refusal, Remote, Target,
    named::{found, id},
    shown,
};
use crate::{
    base::enums::AgentStatus,
    cli::{Cli, Failure, Output},
};

#[derive(Debug, clap::Args)]
pub struct Agent {
    #[command(flatten)]
    target: Target,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the organization's agents
    List {
        /// Only agents with this status, such as ERROR
        #[arg(long, value_name = "STATUS", value_parser = read_status)]
        status: Option<AgentStatus>,
    },
    /// Show an agent
    Show(One),
    /// Show an agent's last launches: how each went, and the end of its program's error output
    Launches(One),
    /// Start agents
    Start(Several),
    /// Stop agents
    Stop(Several),
    /// Stop agents and start them again
    Restart(Several),
    /// Pause agents: they take no turns
    Pause(Several),
    /// Let paused agents take turns again
    Resume(Several),
}

#[derive(Debug, clap::Args)]
struct One {
    /// The agent's name or id
    agent: String,
}

#[derive(Debug, clap::Args)]
struct Several {
    /// The agents' names or ids
    #[arg(required = true, value_name = "AGENT")]
    agents: Vec<String>,
}

impl Agent {
    /// Whether the reference agent is meant.
    pub const fn is_program(&self) -> bool {
        self.what.is_none()
    }

    pub(in crate::cli) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let Some(what) = self.what else { return Ok(Output::none()) };
        let remote = self.target.connect(cli).await?;
        let agents = remote.list("Agents").await?;
        match what {
            What::List { status } => Ok(list(agents, status)),
            What::Show(One { agent }) => show(&remote, &agents, &agent).await,
            What::Launches(One { agent }) => launches(&remote, &agents, &agent).await,
            What::Start(named) => change(&remote, "startAgent", &agents, &named.agents).await,
            What::Stop(named) => change(&remote, "stopAgent", &agents, &named.agents).await,
            What::Restart(named) => change(&remote, "restartAgent", &agents, &named.agents).await,
            What::Pause(named) => change(&remote, "pauseAgent", &agents, &named.agents).await,
            What::Resume(named) => change(&remote, "resumeAgent", &agents, &named.agents).await,
        }
    }
}

fn read_status(text: &str) -> Result<AgentStatus, String> {
    text.to_uppercase().parse::<AgentStatus>().map_err(|error| error.to_string())
}

fn list(mut agents: Vec<Value>, status: Option<AgentStatus>) -> Output {
    agents.retain(|agent| status.is_none_or(|status| agent["status"] == status.as_str()));
    let fields = [
        ("id", "/id"),
        ("name", "/name"),
        ("status", "/status"),
        ("reason", "/statusReason"),
        ("server", "/serverId"),
        ("model", "/resolvedModel"),
        ("requests", "/pendingApprovals"),
    ];
    shown::listed("agents", fields, &agents)
}

async fn show(remote: &Remote, agents: &[Value], reference: &str) -> Result<Output, Failure> {
    let agent = remote.call("Agent", id(found(agents, "agent", reference)?)).await?;
    Ok(shown::whole(&agent["agent"]))
}

async fn launches(remote: &Remote, agents: &[Value], reference: &str) -> Result<Output, Failure> {
    let agent = found(agents, "agent", reference)?["id"].clone();
    let launches =
        remote.list_where("AgentLaunches", Map::from_iter([("agentId".to_owned(), agent)])).await?;
    let fields = [
        ("launch", "/generation"),
        ("started", "/startedAt"),
        ("by", "/startedByName"),
        ("up", "/upAt"),
        ("ended", "/endedAt"),
        ("reason", "/reason"),
        ("detail", "/detail"),
    ];
    Ok(shown::listed("launches", fields, &launches))
}

/// Changes one after another. All names are looked up first.
async fn change(
    remote: &Remote,
    operation: &str,
    agents: &[Value],
    references: &[String],
) -> Result<Output, Failure> {
    let named: Vec<&Value> =
        references.iter().map(|reference| found(agents, "agent", reference)).collect::<Result<_, _>>()?;
    let mut changed = Vec::new();
    for agent in named {
        match remote.change(operation, id(agent)).await {
            Ok(agent) => changed.push(agent),
            Err(refusal) => return Err(broken_off(agent, &changed, refusal)),
        }
    }
    Ok(shown::listed("agents", [("id", "/id"), ("name", "/name"), ("status", "/status")], &changed))
}

/// The failure of a command for several agents.
fn broken_off(agent: &Value, changed: &[Value], refusal: Refusal) -> Failure {
    let done: Vec<String> = changed.iter().map(|agent| agent["name"].to_string()).collect();
    let before = if done.is_empty() { String::new() } else { format!(" (done: {})", done.join(", ")) };
    Failure::from(refusal).reworded(|said| format!("{}: {said}{before}", agent["name"]))
}
