//! An agent's permissions, from its launch plan.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use http::StatusCode;
use muster_protocol::{
    Secret,
    plan::{Destination, Injected, LaunchPlan, Limits, McpServer, McpTransport, ModelAccess},
    spending::Price,
};
use parking_lot::Mutex;

use crate::bounds;

/// The tool of connections.
pub const NETWORK_TOOL: &str = "network";
/// The tool kind of connections.
pub const NETWORK_KIND: &str = "fetch";

/// Refusal for an agent without network.
pub const NETWORK_IS_OFF: &str =
    "This agent's tool group `fetch` is switched off, so it can't connect to any host.";
/// Refusal for a stopped agent.
pub const STOPPED: &str = "This agent was stopped: nothing leaves its sandbox until the stop is released.";

/// Hosts that people have allowed without listing them.
#[derive(Debug, Default)]
pub struct Crossings(Mutex<BTreeMap<(String, u16), Instant>>);

impl Crossings {
    /// Whether a person allowed this host in the last ten minutes: tools connect many times.
    pub fn has(&self, host: &str, port: u16) -> bool {
        let mut approved = self.0.lock();
        approved.retain(|_, since| since.elapsed() < Duration::from_secs(600));
        approved.contains_key(&(host.to_owned(), port))
    }

    pub fn remember(&self, host: &str, port: u16) {
        let mut approved = self.0.lock();
        if approved.len() < bounds::LIST {
            approved.insert((host.to_owned(), port), Instant::now());
        }
    }
}

/// The rules of one launch. They contain secrets.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Whether nothing may leave: an emergency stop.
    pub stopped: bool,
    /// Access to the agent's model.
    pub model: Option<ModelAccess>,
    pub allowed: Vec<Destination>,
    /// Credentials added to requests.
    pub injected: Vec<Injected>,
    /// The agent's MCP servers.
    pub mcp_servers: Vec<McpServer>,
    /// Disabled MCP servers by name, and disabled kinds of tools.
    pub disabled: BTreeSet<String>,
    /// All secrets of the agent, its gate and its MCP servers, removed from reports.
    pub secrets: Vec<Secret>,
    /// Limits of the agent's programs.
    pub limits: Limits,
    /// Prices of model calls.
    pub prices: Vec<Price>,
    /// Whether each model call needs a lease.
    pub metered: bool,
    /// Status of a call without budget: one that makes the agent stop instead of retrying.
    pub stop_status: StatusCode,
}

impl Rules {
    /// The rules in a launch plan.
    pub fn from_plan(plan: &LaunchPlan) -> Self {
        Self {
            stopped: plan.stopped,
            model: plan.model_access.clone(),
            allowed: plan.network.allowed.clone(),
            injected: plan.injected.clone(),
            mcp_servers: plan.mcp_servers.clone(),
            disabled: plan.disabled_tool_groups.iter().map(|group| group.trim().to_lowercase()).collect(),
            secrets: secrets(plan),
            limits: plan.limits,
            prices: plan.prices.clone(),
            metered: plan.metered,
            stop_status: stop_status(plan),
        }
    }

    /// Whether this destination is listed. The name must be normalized by [`name`].
    pub fn allows(&self, host: &str, port: u16) -> bool {
        self.allowed.iter().any(|entry| entry.port == port && covers(&entry.host, host))
    }

    /// An MCP server of the agent.
    pub fn mcp_server(&self, id: i64) -> Option<&McpServer> {
        self.mcp_servers.iter().find(|server| server.id == id)
    }

    /// Whether a tool group is disabled: an MCP server's name, or a kind of tool.
    pub fn is_disabled(&self, group: &str) -> bool {
        self.disabled.contains(&group.trim().to_lowercase())
    }
}

fn secrets(plan: &LaunchPlan) -> Vec<Secret> {
    let servers = plan.mcp_servers.iter().flat_map(|server| match &server.transport {
        McpTransport::Stdio { environment: values, .. }
        | McpTransport::Http { headers: values, .. }
        | McpTransport::Sse { headers: values, .. } => values,
    });
    let variables = plan.environment.iter().chain(servers);
    let variables = variables.chain(plan.injected.iter().flat_map(|injected| &injected.headers));
    let files = plan.files.iter().map(|file| &file.content);
    let keys = plan.model_access.iter().map(|access| &access.key);
    variables.map(|variable| &variable.value).chain(files).chain(keys).cloned().collect()
}

/// From the agent's profile; many agents stop at the default.
fn stop_status(plan: &LaunchPlan) -> StatusCode {
    let status = plan.profile.as_ref().map(|profile| profile.stop_status);
    status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(StatusCode::PAYMENT_REQUIRED)
}

/// Whether a list entry covers a host. `*.example.org` covers all names below example.org, but not itself.
fn covers(entry: &str, host: &str) -> bool {
    match entry.strip_prefix("*.") {
        Some(parent) => {
            let Some(parent) = name(parent).filter(|parent| parent.contains('.')) else { return false };
            host.strip_suffix(parent.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        }
        None => name(entry).is_some_and(|entry| entry == host),
    }
}

/// Normalizes a host name: lower case, no final dot. `None` if it is not a name: an address in any notation, or a name
/// that no resolver should see.
pub fn name(host: &str) -> Option<String> {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    // As in URLs: a name whose last label is a number is an address.
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    (host.len() <= 253 && host.split('.').all(is_label) && !is_number).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names_and_never_digits() {
        assert_eq!(name("Example.ORG.").as_deref(), Some("example.org"));
        for digits in ["1.2.3.4", "2130706433", "0x7f.1", "0x7f000001", "127.1", "[::1]", "::1", "1.2.3.4."] {
            assert_eq!(name(digits), None, "{digits}");
        }
        for wrong in ["", ".", "a..b", "a b", "a/b", "a@b", "ä.example", &"a".repeat(64), "a.example:443"] {
            assert_eq!(name(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_wildcard_entry_covers_subdomains_only() {
        let entry = |host: &str, port| Destination { host: host.to_owned(), port };
        let plan = LaunchPlan {
            network: muster_protocol::plan::Network {
                privileged: false,
                allowed: vec![
                    entry("Example.org", 443),
                    entry("*.pypi.example", 443),
                    entry("*.org", 443),
                    entry("db.example", 5432),
                ],
            },
            ..LaunchPlan::default()
        };
        let rules = Rules::from_plan(&plan);
        assert!(rules.allows("example.org", 443));
        assert!(!rules.allows("www.example.org", 443));
        assert!(!rules.allows("example.org", 80));
        assert!(rules.allows("files.pypi.example", 443));
        assert!(rules.allows("a.b.pypi.example", 443));
        assert!(!rules.allows("pypi.example", 443));
        assert!(!rules.allows("evilpypi.example", 443));
        assert!(!rules.allows("other.org", 443), "one label is too few");
        assert!(rules.allows("db.example", 5432));
    }
}
