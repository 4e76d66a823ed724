//! `doctor`: this machine's isolation of agents, and problems. It changes nothing, and tests the connection without a
//! HELLO, so that a running host is not disturbed.

use std::{
    fmt::{self, Display},
    sync::Arc,
};

use muster_shim::isolate::{Bubblewrap, Isolation, isolation, isolation_in};
use rustls::ClientConfig;

use crate::{
    address, clock,
    config::Config,
    folder::{Folder, FolderError},
    gateway, join, machine,
    runtime::{Bounds, Choice, Runtime},
    trust::Trust,
    unit::ROOT_REMEDY,
};

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Fine,
    /// Worth knowing.
    Note,
    /// Prevents the host from working.
    Bad,
}

#[derive(Debug)]
pub struct Finding {
    pub level: Level,
    /// The finding, and advice.
    pub text: String,
}

impl Display for Finding {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.level {
            Level::Fine => "ok  ",
            Level::Note => "note",
            Level::Bad => "BAD ",
        };
        write!(to, "{mark}  {}", self.text)
    }
}

/// Rights of agents without a sandbox.
const WITHOUT: &str = "agents run without a sandbox: they can read and change what the host's user can, and can go around \
                       their gate to the network";
/// The alternative.
const CONTAINERS: &str = "or run agents in containers (`--runtime docker` or `podman`)";

/// Runs all checks.
pub async fn examine(folder: &Folder, choice: &Choice) -> Vec<Finding> {
    let mut found = connection(folder).await;
    found.extend(folder.require_own().err().map(|error| note(error.to_string())));
    let joined = folder.joined().ok().flatten();
    let (kept, ran) = joined.map_or((None, None), |joined| (joined.runtime, joined.sandbox));
    found.extend(choice.in_folder(folder, kept.as_ref()).err().map(|error| bad(error.to_string())));
    if let Ok(runtime) = choice.or_saved(kept.as_ref()) {
        match runtime.build("", Bounds::default()) {
            Err(error) => found.push(bad(error.to_string())),
            Ok(Runtime::Process) => found.extend(sandbox(&isolation_in(folder.root()), ran)),
            Ok(Runtime::Engine(engine)) => {
                found.extend(engine.examine().await);
                found.push(servers());
            }
        }
    }
    found.extend(rustix::process::geteuid().is_root().then(|| note(format!("this is root. {ROOT_REMEDY}"))));
    found.push(networks(folder));
    found.extend(disk(folder));
    found
}

pub(crate) fn fine(text: impl Into<String>) -> Finding {
    Finding { level: Level::Fine, text: text.into() }
}

pub(crate) fn note(text: impl Into<String>) -> Finding {
    Finding { level: Level::Note, text: text.into() }
}

pub(crate) fn bad(text: impl Into<String>) -> Finding {
    Finding { level: Level::Bad, text: text.into() }
}

async fn connection(folder: &Folder) -> Vec<Finding> {
    let (joined, identity) = match (folder.joined(), folder.identity()) {
        (Ok(Some(joined)), Ok(Some(identity))) => (joined, identity),
        (Err(error), _) | (_, Err(error)) => return vec![bad(error.to_string())],
        _ => {
            let path = folder.root().display();
            return vec![bad(format!(
                "{path} has not joined a control plane. Run `muster host join` with a server's provisioning token."
            ))];
        }
    };
    let mut found = vec![fine(format!("joined {} as {:?}", joined.url, joined.server_name))];
    if joined.insecure_http && joined.url.starts_with("http:") {
        found.push(note("the connection is not encrypted: anyone on the way can read the host's token"));
    }
    match folder.lock() {
        Ok(_) => found.push(note("no host runs in this folder")),
        Err(FolderError::InUse { pid, .. }) => {
            found.push(fine(format!("a host runs in this folder (process {pid})")));
        }
        Err(error) => found.push(bad(error.to_string())),
    }
    let base = match address::read(&joined.url, joined.insecure_http) {
        Ok(base) => base,
        Err(error) => {
            found.push(bad(error.to_string()));
            return found;
        }
    };
    let tls = match Trust::read(folder, None) {
        Ok(trust) => trust.tls,
        Err(error) => {
            found.push(bad(error.to_string()));
            return found;
        }
    };
    if folder.authorities().exists() {
        found.push(note(format!(
            "the authorities in {} vouch for the control plane, beside the system's",
            folder.authorities().display()
        )));
    }
    match gateway::probe(&address::socket(&base), &identity.token, &tls).await {
        Ok(()) => found.push(fine("the control plane can be reached and accepts the host's token")),
        Err(error) => found.push(bad(format!("{error}. {}", gateway::advice(&error)).trim().to_owned())),
    }
    found.extend(clocks(&base, &tls).await);
    found
}

/// Compares the clocks by the `Date` of any response.
async fn clocks(base: &url::Url, tls: &Arc<ClientConfig>) -> Option<Finding> {
    let client = join::http_client(tls).ok()?;
    let response = client.get(address::below(base, "/health")).send().await.ok()?;
    let date = response.headers().get("date")?.to_str().ok()?;
    let theirs = jiff::fmt::rfc2822::parse(date).ok()?.timestamp();
    let ahead = theirs.as_millisecond() - clock::now();
    Some(clock::difference(ahead).map_or_else(|| fine("the clocks agree"), note))
}

/// Networks that agents may reach in addition to the public internet.
fn networks(folder: &Folder) -> Finding {
    match Config::read(folder) {
        Ok(Config { allow_net }) if allow_net.is_empty() => fine(
            "host.toml lists no network: agents reach only the public internet, where their rules allow it",
        ),
        Ok(Config { allow_net }) => {
            let all: Vec<String> = allow_net.iter().map(ToString::to_string).collect();
            note(format!("host.toml lets agents reach {}, where their rules allow it", all.join(", ")))
        }
        Err(error) => bad(error.to_string()),
    }
}

/// MCP servers next to containers.
fn servers() -> Finding {
    match isolation().bubblewrap {
        Bubblewrap::Works(_) => {
            fine("bubblewrap works: MCP servers with secrets run in a sandbox next to the containers")
        }
        Bubblewrap::Fails { reason, .. } => note(format!(
            "bubblewrap can't make a sandbox here ({reason}): MCP servers with secrets, which are programs beside the \
             containers, are not started"
        )),
        Bubblewrap::Absent => note(
            "bubblewrap is not installed: MCP servers with secrets, which are programs beside the containers, are not \
             started",
        ),
    }
}

/// Isolation of plain processes here. `ran`: whether the host last started with a sandbox.
fn sandbox(isolation: &Isolation, ran: Option<bool>) -> Vec<Finding> {
    let mut found =
        vec![fine("agents get their own session, a clean environment, limits, and no core dumps")];
    if isolation.linux {
        found.push(fine("agents can't gain privileges, and leave no processes behind"));
    } else {
        found.push(note("agents can gain privileges and leave processes behind: only Linux prevents that"));
    }
    let works = matches!(isolation.bubblewrap, Bubblewrap::Works(_));
    found.push(match &isolation.bubblewrap {
        Bubblewrap::Works(_) if ran == Some(false) => note(format!(
            "{WITHOUT}. The host was started with `--isolation none`, or before bubblewrap worked here: start it again \
             with `--isolation bubblewrap`"
        )),
        Bubblewrap::Works(path) => fine(format!(
            "bubblewrap works ({}): agents see their home and the system, and have no network but their gate",
            path.display()
        )),
        Bubblewrap::Fails { path, reason } => note(format!(
            "bubblewrap ({}) can't make a sandbox here ({reason}): {WITHOUT}. Let users make user namespaces (on Ubuntu: \
             `sysctl kernel.apparmor_restrict_unprivileged_userns=0`), {CONTAINERS}",
            path.display()
        )),
        Bubblewrap::Absent => note(format!(
            "bubblewrap is not installed: {WITHOUT}. Install it (the package `bubblewrap`), {CONTAINERS}"
        )),
    });
    if isolation.root {
        found.push(note(if works && ran != Some(false) {
            "this is root: agents in the sandbox have root's user id. They see all of /usr, the public files of \
             /etc, and nothing of /opt"
        } else {
            "this is root: without a sandbox, agents can do everything"
        }));
    }
    found
        .push(note("not bounded for plain processes: memory, processors, and what agents write to the disk"));
    found
}

fn disk(folder: &Folder) -> Option<Finding> {
    let (_, free) = machine::disk(folder.root())?;
    // In MiB.
    Some(if free < 1024 {
        bad(format!("only {free} MiB of the disk are free: agents stop when it is full"))
    } else {
        fine(format!("{free} MiB of the disk are free"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(bubblewrap: Bubblewrap, root: bool, ran: Option<bool>) -> String {
        let found = sandbox(&Isolation { linux: true, bubblewrap, root }, ran);
        found.iter().map(|finding| format!("{finding}\n")).collect()
    }

    #[test]
    fn unsandboxed_agents_are_reported_with_advice() {
        let works = || Bubblewrap::Works("/usr/bin/bwrap".into());
        let fails = Bubblewrap::Fails { path: "/usr/bin/bwrap".into(), reason: "no map".to_owned() };
        for (bubblewrap, ran, remedy) in [
            (Bubblewrap::Absent, None, "Install it"),
            (fails, Some(true), "(no map)"),
            (works(), Some(false), "`--isolation bubblewrap`"),
        ] {
            let said = said(bubblewrap, false, ran);
            assert!(said.contains("agents run without a sandbox") && said.contains(remedy), "{said}");
        }
        for ran in [None, Some(true)] {
            let said = said(works(), false, ran);
            assert!(!said.contains("without a sandbox"), "{said}");
        }
    }

    #[test]
    fn root_is_warned_about_its_agents_rights() {
        let works = || Bubblewrap::Works("/usr/bin/bwrap".into());
        assert!(said(works(), true, Some(true)).contains("in the sandbox have root's user id"));
        for said in [said(works(), true, Some(false)), said(Bubblewrap::Absent, true, None)] {
            assert!(said.contains("without a sandbox, agents can do everything"), "{said}");
        }
        assert!(!said(works(), false, None).contains("root"));
    }
}
