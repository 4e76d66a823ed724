//! The machine that the demo's agents run on: this one, with a host in the demo's folder.

use std::{fs, path::Path, process::Stdio, sync::Arc, time::Duration};

use secrecy::{ExposeSecret, SecretString};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, Command},
    time::sleep,
};

use super::Failure;
use crate::{
    base::{
        enums::AgentStatus,
        ids::{AgentId, ServerId},
        problem::{Problem, Result},
    },
    core::{
        Core,
        access::Scope,
        store::sql::{RunSql as _, row, sql},
    },
    domain::{launch, servers},
};

/// The server whose host is this machine.
pub const SERVER: &str = "frankfurt-1";

/// A container engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    /// Docker Engine
    Docker,
    /// Podman
    Podman,
}

impl Engine {
    /// As `muster host` knows it.
    const fn word(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }
}

/// The host's folder in the demo's folder. Agents' homes are in that folder or in an engine's volumes, so each engine
/// has its own.
const fn folder(engine: Option<Engine>) -> &'static str {
    match engine {
        None => "host",
        Some(Engine::Docker) => "host-docker",
        Some(Engine::Podman) => "host-podman",
    }
}

/// The demo's host, as a process of its own.
pub struct Machine {
    scope: Scope,
    server: ServerId,
    host: Child,
}

impl Machine {
    /// Joins, unless this folder has joined before, and starts the host and the agents of its server. The service must
    /// be listening at `base`.
    pub async fn start(
        core: &Arc<Core>,
        scope: Scope,
        base: &str,
        engine: Option<Engine>,
    ) -> std::result::Result<Self, Failure> {
        let dir = core.config.data_dir.join(folder(engine));
        // The server has one host.
        for other in [None, Some(Engine::Docker), Some(Engine::Podman)] {
            let other = core.config.data_dir.join(folder(other));
            if other != dir && other.exists() {
                fs::remove_dir_all(&other)?;
            }
        }
        let server = server(&scope).await?;
        if !dir.join("joined.json").exists() {
            join(&dir, base, servers::regenerate_token(&scope, server).await?).await?;
        }
        let mut run = host("run", &dir)?;
        // A terminal's Ctrl-C goes to its whole process group, so the host leaves the group: it must run until its
        // agents have stopped. If the demo is killed, the host sees the end of its stdin and exits, so that the next
        // demo can use the folder.
        let runtime = engine.map_or("process", Engine::word);
        // The shop's MCP server, and perhaps the agents' model, are on this machine.
        let local = ["--allow-net", "127.0.0.1/32"];
        let run = run.args(["--url", base, "--while-stdin", "--runtime", runtime]).args(local);
        let run = run.stdin(Stdio::piped());
        let host = run.kill_on_drop(true).spawn()?;
        wait_for_stopping(&scope, server).await?;
        for Agent { id, status } in agents_of(&scope, server).await? {
            if status.is_at_rest() {
                launch::start(&scope, id).await?;
            }
        }
        Ok(Self { scope, server, host })
    }

    /// Stops the agents, then the host, so that the demo leaves no process behind.
    pub async fn stop(mut self) {
        if let Err(problem) = self.stop_agents().await {
            tracing::warn!(%problem, "demo.agents_not_stopped");
        }
        let _ = self.host.start_kill();
        let _ = self.host.wait().await;
    }

    async fn stop_agents(&self) -> Result<()> {
        let stops =
            |status| matches!(status, AgentStatus::Spawning | AgentStatus::Running | AgentStatus::Paused);
        for Agent { id, status } in agents_of(&self.scope, self.server).await? {
            if stops(status) {
                launch::stop(&self.scope, id).await?;
            }
        }
        wait_for_stopping(&self.scope, self.server).await
    }
}

/// Waits until no agent is stopping, for eight seconds at most.
async fn wait_for_stopping(scope: &Scope, server: ServerId) -> Result<()> {
    for _ in 0..80 {
        let agents = agents_of(scope, server).await?;
        if !agents.iter().any(|agent| agent.status == AgentStatus::Stopping) {
            break;
        }
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

async fn server(scope: &Scope) -> Result<ServerId> {
    let sql = sql!("SELECT id FROM servers WHERE organization_id = $org AND name = $2");
    scope.scalar(sql, [SERVER.into()]).await?.ok_or_else(|| Problem::not_found("server", SERVER))
}

row! {
    struct Agent {
        id: AgentId,
        status: AgentStatus,
    }
}

async fn agents_of(scope: &Scope, server: ServerId) -> Result<Vec<Agent>> {
    let sql = sql!(
        "SELECT id, status FROM agents WHERE organization_id = $org AND server_id = $2 AND archived_at IS NULL ORDER BY id"
    );
    scope.all(sql, [server.into()]).await
}

async fn join(dir: &Path, base: &str, token: SecretString) -> std::result::Result<(), Failure> {
    let mut join = host("join", dir)?;
    let join = join.args(["--url", base, "--token-stdin"]).stdin(Stdio::piped());
    let mut joining = join.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut input) = joining.stdin.take() {
        input.write_all(token.expose_secret().as_bytes()).await?;
    }
    let joined = joining.wait_with_output().await?;
    if joined.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&joined.stderr).trim().to_owned();
    Err(Failure::new(format!("the demo's host could not join: {said}")))
}

/// Builds the image of the demo's agents, or says what is missing for it.
pub async fn build_image(engine: Engine) -> std::result::Result<(), Failure> {
    let mut build = Command::new(std::env::current_exe()?);
    let built = build.args(["host", "build-image", "--runtime", engine.word()]).output().await?;
    if built.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&built.stderr).trim().to_owned();
    Err(Failure::new(format!("the demo can't run agents in containers: {said}")))
}

/// `muster host …`, run by this same executable.
fn host(what: &str, dir: &Path) -> std::result::Result<Command, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["host", what, "--dir"]).arg(dir).env("RUST_LOG", "warn");
    Ok(command)
}
