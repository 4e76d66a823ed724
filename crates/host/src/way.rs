//! The gate as programs in a sandbox see it: an address of the machine's own, and the variables that point to it.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
};

use muster_protocol::plan::{Injected, LaunchPlan, Limits, ModelAccess, Variable};
use muster_shim::{
    args::{Gate, Step},
    isolate::{Sandbox, shows},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::{
    agent::{may_be_set, passed},
    programs::{self, ProgramError, SYSTEM_PATH},
    shared::Shared,
};

/// What stands in for a key. It has the form that programs expect.
pub const PLACEHOLDER: &str = "sk-muster-placeholder";

/// What a part of a path may not have.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
/// The socket's name, among the launch's sockets.
const SOCKET: &str = "gate";
/// The variable that names the agent's home to a server that may read it.
const WORKSPACE: &str = "MUSTER_WORKSPACE";
/// How the variables begin by which interpreters, and libraries that programs are linked with, load code.
const LOADING: &[&str] = &[
    "_JAVA_OPTIONS",
    "BUNDLE_",
    "BUN_",
    "CLASSPATH",
    "DENO_",
    "DOTNET_",
    "GEM_",
    "GIT_CONFIG",
    "GIT_EXEC_PATH",
    "GIT_SSH",
    "JAVA_",
    "JDK_JAVA_OPTIONS",
    "LUA_",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NPM_CONFIG_",
    "OPENSSL_",
    "PERL",
    "PHPRC",
    "PHP_INI_",
    "PYTHON",
    "RUBY",
];
/// The file that keeps the port of a launch without a network of its own.
const PORT: &str = "gate-port";

/// A way to the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The host's socket.
    pub socket: PathBuf,
    /// The port of 127.0.0.1 that leads to it.
    pub port: u16,
}

impl Way {
    /// The way out of a launch.
    pub fn of(dir: &Path) -> Self {
        let kept = muster_shim::folder::open(&dir.join(PORT)).and_then(std::io::read_to_string).ok();
        let port = kept.and_then(|port| port.parse().ok()).unwrap_or(Gate::PORT);
        Self { socket: dir.join("mcp").join(SOCKET), port }
    }

    /// The way out of MCP servers beside the agent: to other hosts, and neither to its model nor to its credentials' addresses.
    pub fn of_servers(dir: &Path) -> Self {
        Self { socket: dir.join("servers").join(SOCKET), ..Self::of(dir) }
    }

    /// The way out of a launch that shares the machine's network: on a port that is free, and that a host which adopts the
    /// launch finds again.
    pub fn on_free_port(dir: &Path) -> io::Result<Self> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        std::fs::write(dir.join(PORT), port.to_string())?;
        Ok(Self { port, ..Self::of(dir) })
    }

    /// As the shim wants it.
    pub fn gate(&self) -> Gate {
        Gate { socket: self.socket.clone(), port: self.port }
    }

    /// The same, for a shim that sees the launch's sockets elsewhere.
    pub fn gate_in(&self, sockets: &Path) -> Gate {
        Gate { socket: sockets.join(SOCKET), port: self.port }
    }

    /// The address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The address of the model.
    pub fn model_url(&self) -> String {
        format!("{}/model", self.url())
    }

    /// The address behind which a credential's headers are added.
    pub fn credential(&self, name: &str) -> String {
        format!("{}/c/{}/", self.url(), utf8_percent_encode(name, PART))
    }

    /// Variables that lead requests to the gate.
    fn proxies(&self) -> impl Iterator<Item = (&'static str, String)> {
        let own = ["NO_PROXY", "no_proxy"].map(|name| (name, "127.0.0.1,localhost,::1".to_owned()));
        let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
        // Node takes the others into account only then.
        let node = ("NODE_USE_ENV_PROXY", "1".to_owned());
        let url = self.url();
        proxies.map(|name| (name, url.clone())).into_iter().chain(own).chain([node])
    }

    /// Everything that an agent's environment says about the way out.
    pub fn environment(&self, plan: &LaunchPlan) -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> =
            self.proxies().map(|(name, value)| (name.to_owned(), value)).collect();
        all.extend(plan.model_access.iter().flat_map(|access| self.model(access)));
        all.extend(self.git(&plan.injected));
        all
    }

    /// The model, as most libraries look for it.
    fn model(&self, access: &ModelAccess) -> [(String, String); 3] {
        let prefix = access.provider.to_uppercase();
        let prefix: String = prefix.chars().filter(char::is_ascii_alphanumeric).collect();
        [
            ("MUSTER_AGENT_PROVIDER".to_owned(), access.provider.clone()),
            (format!("{prefix}_API_KEY"), PLACEHOLDER.to_owned()),
            (format!("{prefix}_BASE_URL"), self.model_url()),
        ]
    }

    /// Git uses the credential's address by itself.
    fn git(&self, injected: &[Injected]) -> Vec<(String, String)> {
        let mut all = vec![("GIT_CONFIG_COUNT".to_owned(), injected.len().to_string())];
        for (at, Injected { name, url, .. }) in injected.iter().enumerate() {
            all.push((format!("GIT_CONFIG_KEY_{at}"), format!("url.{}.insteadOf", self.credential(name))));
            all.push((format!("GIT_CONFIG_VALUE_{at}"), format!("{}/", url.trim_end_matches('/'))));
        }
        if injected.is_empty() { Vec::new() } else { all }
    }
}

/// An MCP server as a program outside of the agent's sandbox: in one of its own, with the same way out.
pub fn server(
    shared: &Shared,
    (command, args, given): (&str, &[String], &[Variable]),
    limits: Limits,
    (home, workspace): (&Path, Option<PathBuf>),
    way: &Way,
) -> Result<tokio::process::Command, ProgramError> {
    let (shim, command) = (shared.programs.shim(), programs::absolute(command));
    let listed = shared.programs.readable_by_mcp(&command)?;
    if !listed.is_empty()
        && let Some(variable) = given.iter().find(|variable| loads_code(&variable.name))
    {
        return Err(ProgramError::McpVariable { variable: variable.name.clone(), command });
    }
    let mut step = Step { program: command.clone().into(), ..Step::default() };
    step.args = args.iter().map(OsString::from).collect();
    step.limits = shared.limits();
    // As the agent's own, and each process by itself: nothing bounds several at once but a container.
    let memory = limits.memory_mb.or(shared.runtime.memory_mb()).and_then(|mib| u64::try_from(mib).ok());
    step.limits.data = memory.map(|mib| mib << 20);
    if shared.options.sandbox {
        if listed.is_empty() && command.is_absolute() && !shows(&command) {
            return Err(shared.programs.not_listed_for_mcp(command));
        }
        let mut readable: Vec<PathBuf> = way.socket.parent().map(Path::to_owned).into_iter().collect();
        readable.extend(Some(&shim.command).filter(|path| path.is_absolute()).cloned());
        readable.extend(listed);
        readable.extend(workspace.clone());
        step.sandbox = Some(Sandbox { writable: vec![home.to_owned()], readable, no_network: true });
        step.gate = Some(Gate { port: Gate::PORT, ..way.gate() });
    } else {
        step.parent = i32::try_from(std::process::id()).ok();
    }
    let port = step.gate.as_ref().map_or(way.port, |gate| gate.port);
    let mut environment: BTreeMap<OsString, OsString> = passed(&[]);
    let proxies = Way { port, ..way.clone() };
    environment.extend(proxies.proxies().map(|(name, value)| (name.into(), value.into())));
    let given = given.iter().filter(|variable| may_be_set(&variable.name));
    environment.extend(given.map(|variable| (variable.name.clone().into(), variable.value.expose().into())));
    environment.insert("PATH".into(), std::env::var_os("PATH").unwrap_or_else(|| SYSTEM_PATH.into()));
    environment.insert("HOME".into(), home.into());
    environment.extend(workspace.map(|workspace| (WORKSPACE.into(), workspace.into())));
    let mut all = tokio::process::Command::new(&shim.command);
    all.args(&shim.args).arg("exec").args(step.to_args()).env_clear().envs(environment).current_dir(home);
    Ok(all)
}

/// Whether a variable has an operator's program run what a tenant chooses, with what only that program may read.
fn loads_code(name: &str) -> bool {
    !may_be_set(name) || LOADING.iter().any(|loading| name.to_ascii_uppercase().starts_with(loading))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_points_to_the_gate_and_holds_no_secret() {
        let plan = LaunchPlan {
            model_access: Some(ModelAccess {
                credential_id: None,
                provider: "anthropic".to_owned(),
                base_url: Some("https://models.example".to_owned()),
                key: "canary".to_owned().into(),
            }),
            injected: vec![Injected {
                name: "the forge".to_owned(),
                url: "https://git.example/org".to_owned(),
                headers: vec![Variable {
                    name: "authorization".to_owned(),
                    value: "canary".to_owned().into(),
                }],
            }],
            ..LaunchPlan::default()
        };
        let way = Way { socket: "/s".into(), port: 81 };
        let all: BTreeMap<String, String> = way.environment(&plan).into_iter().collect();
        assert_eq!(all["HTTPS_PROXY"], "http://127.0.0.1:81");
        assert_eq!(all["ANTHROPIC_BASE_URL"], "http://127.0.0.1:81/model");
        assert_eq!(all["ANTHROPIC_API_KEY"], PLACEHOLDER);
        assert_eq!(all["GIT_CONFIG_KEY_0"], "url.http://127.0.0.1:81/c/the%20forge/.insteadOf");
        assert_eq!(all["GIT_CONFIG_VALUE_0"], "https://git.example/org/");
        assert!(!format!("{all:?}").contains("canary"));
    }
}
