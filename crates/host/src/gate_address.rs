//! The gate as programs in a sandbox see it: a local address, and the variables that point to it.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
};

use muster_protocol::plan::{Injected, LaunchPlan, Limits, ModelAccess, Variable};
use muster_shim::{
    args::{Gate, ProgramSpec},
    isolate::{Sandbox, shows},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::{
    environment::{inherited_variables, may_be_set},
    programs::{self, ProgramError, SYSTEM_PATH},
    shared::Shared,
};

/// The placeholder for a key, in the format that programs expect.
pub const PLACEHOLDER: &str = "sk-muster-placeholder";

/// Escaped characters of a path segment.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
/// The socket's name in the launch's socket folder.
const SOCKET: &str = "gate";
/// The variable with the agent's home, for a server that may read it.
const WORKSPACE: &str = "MUSTER_WORKSPACE";
/// Prefixes of variables that make interpreters and linked libraries load code.
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
/// The file with the port of a launch without its own network.
const PORT: &str = "gate-port";

/// A gate's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateAddress {
    /// The host's socket.
    pub socket: PathBuf,
    /// The port of 127.0.0.1 that leads to the socket.
    pub port: u16,
}

impl GateAddress {
    /// The address for a launch.
    pub fn new(dir: &Path) -> Self {
        let kept = muster_shim::folder::open(&dir.join(PORT)).and_then(std::io::read_to_string).ok();
        let port = kept.and_then(|port| port.parse().ok()).unwrap_or(Gate::PORT);
        Self { socket: dir.join("mcp").join(SOCKET), port }
    }

    /// The address for MCP servers next to the agent: other hosts only, without its model and credentials.
    pub fn of_servers(dir: &Path) -> Self {
        Self { socket: dir.join("servers").join(SOCKET), ..Self::new(dir) }
    }

    /// The address for a launch in the machine's network: a free port, stored for a host that adopts the launch.
    pub fn on_free_port(dir: &Path) -> io::Result<Self> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        std::fs::write(dir.join(PORT), port.to_string())?;
        Ok(Self { port, ..Self::new(dir) })
    }

    /// In the shim's format.
    pub fn gate(&self) -> Gate {
        Gate { socket: self.socket.clone(), port: self.port }
    }

    /// In the shim's format, with the launch's sockets in another folder.
    pub fn gate_in(&self, sockets: &Path) -> Gate {
        Gate { socket: sockets.join(SOCKET), port: self.port }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn model_url(&self) -> String {
        format!("{}/model", self.url())
    }

    /// The address of a credential, whose headers the gate adds.
    pub fn credential(&self, name: &str) -> String {
        format!("{}/c/{}/", self.url(), utf8_percent_encode(name, PART))
    }

    /// The proxy variables.
    fn proxies(&self) -> impl Iterator<Item = (&'static str, String)> {
        let own = ["NO_PROXY", "no_proxy"].map(|name| (name, "127.0.0.1,localhost,::1".to_owned()));
        let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
        // Node reads the other variables only with this one.
        let node = ("NODE_USE_ENV_PROXY", "1".to_owned());
        let url = self.url();
        proxies.map(|name| (name, url.clone())).into_iter().chain(own).chain([node])
    }

    /// All variables about the gate in an agent's environment.
    pub fn environment(&self, plan: &LaunchPlan) -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> =
            self.proxies().map(|(name, value)| (name.to_owned(), value)).collect();
        all.extend(plan.model_access.iter().flat_map(|access| self.model(access)));
        all.extend(self.git(&plan.injected));
        all
    }

    /// The model's variables, as most libraries expect them.
    fn model(&self, access: &ModelAccess) -> [(String, String); 3] {
        let prefix = access.provider.to_uppercase();
        let prefix: String = prefix.chars().filter(char::is_ascii_alphanumeric).collect();
        [
            ("MUSTER_AGENT_PROVIDER".to_owned(), access.provider.clone()),
            (format!("{prefix}_API_KEY"), PLACEHOLDER.to_owned()),
            (format!("{prefix}_BASE_URL"), self.model_url()),
        ]
    }

    /// Makes git use the credentials' addresses.
    fn git(&self, injected: &[Injected]) -> Vec<(String, String)> {
        let mut all = vec![("GIT_CONFIG_COUNT".to_owned(), injected.len().to_string())];
        for (at, Injected { name, url, .. }) in injected.iter().enumerate() {
            all.push((format!("GIT_CONFIG_KEY_{at}"), format!("url.{}.insteadOf", self.credential(name))));
            all.push((format!("GIT_CONFIG_VALUE_{at}"), format!("{}/", url.trim_end_matches('/'))));
        }
        if injected.is_empty() { Vec::new() } else { all }
    }
}

/// The command of an MCP server outside of the agent's sandbox: in a sandbox of its own, with the same way out.
pub fn server(
    shared: &Shared,
    (command, args, given): (&str, &[String], &[Variable]),
    limits: Limits,
    (home, workspace): (&Path, Option<PathBuf>),
    address: &GateAddress,
) -> Result<tokio::process::Command, ProgramError> {
    let (shim, command) = (shared.programs.shim(), programs::absolute(command));
    let listed = shared.programs.readable_by_mcp(&command)?;
    if !listed.is_empty()
        && let Some(variable) = given.iter().find(|variable| loads_code(&variable.name))
    {
        return Err(ProgramError::McpVariable { variable: variable.name.clone(), command });
    }
    let mut spec = ProgramSpec { program: command.clone().into(), ..ProgramSpec::default() };
    spec.args = args.iter().map(OsString::from).collect();
    spec.limits = shared.limits();
    // The agent's own limit, for each process separately: only a container can limit several together.
    let memory = limits.memory_mb.or(shared.runtime.memory_mb()).and_then(|mib| u64::try_from(mib).ok());
    spec.limits.data = memory.map(|mib| mib << 20);
    if shared.options.sandbox {
        if listed.is_empty() && command.is_absolute() && !shows(&command) {
            return Err(shared.programs.not_listed_for_mcp(command));
        }
        let mut readable: Vec<PathBuf> = address.socket.parent().map(Path::to_owned).into_iter().collect();
        readable.extend(Some(&shim.command).filter(|path| path.is_absolute()).cloned());
        readable.extend(listed);
        readable.extend(workspace.clone());
        spec.sandbox = Some(Sandbox { writable: vec![home.to_owned()], readable, no_network: true });
        spec.gate = Some(Gate { port: Gate::PORT, ..address.gate() });
    } else {
        spec.parent = i32::try_from(std::process::id()).ok();
    }
    let port = spec.gate.as_ref().map_or(address.port, |gate| gate.port);
    let mut environment: BTreeMap<OsString, OsString> = inherited_variables(&[]);
    let proxies = GateAddress { port, ..address.clone() };
    environment.extend(proxies.proxies().map(|(name, value)| (name.into(), value.into())));
    let given = given.iter().filter(|variable| may_be_set(&variable.name));
    environment.extend(given.map(|variable| (variable.name.clone().into(), variable.value.expose().into())));
    environment.insert("PATH".into(), std::env::var_os("PATH").unwrap_or_else(|| SYSTEM_PATH.into()));
    environment.insert("HOME".into(), home.into());
    environment.extend(workspace.map(|workspace| (WORKSPACE.into(), workspace.into())));
    let mut all = tokio::process::Command::new(&shim.command);
    all.args(&shim.args).arg("exec").args(spec.to_args()).env_clear().envs(environment).current_dir(home);
    Ok(all)
}

/// Whether a variable makes an owner's program run a tenant's code, with access to the program's files.
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
                credential_id: 7,
                name: "the forge".to_owned(),
                url: "https://git.example/org".to_owned(),
                headers: vec![Variable {
                    name: "authorization".to_owned(),
                    value: "canary".to_owned().into(),
                }],
            }],
            ..LaunchPlan::default()
        };
        let address = GateAddress { socket: "/s".into(), port: 81 };
        let all: BTreeMap<String, String> = address.environment(&plan).into_iter().collect();
        assert_eq!(all["HTTPS_PROXY"], "http://127.0.0.1:81");
        assert_eq!(all["ANTHROPIC_BASE_URL"], "http://127.0.0.1:81/model");
        assert_eq!(all["ANTHROPIC_API_KEY"], PLACEHOLDER);
        assert_eq!(all["GIT_CONFIG_KEY_0"], "url.http://127.0.0.1:81/c/the%20forge/.insteadOf");
        assert_eq!(all["GIT_CONFIG_VALUE_0"], "https://git.example/org/");
        assert!(!format!("{all:?}").contains("canary"));
    }
}
