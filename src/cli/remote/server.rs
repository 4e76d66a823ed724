//! `muster server …`.

use clap::Subcommand;
use serde_json::Value;

use super::{
    Target,
    named::{found, id},
    shown,
};
use crate::cli::{Cli, Failure, Output};

#[derive(Debug, clap::Args)]
pub struct Server {
    #[command(flatten)]
    target: Target,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the organization's servers
    List,
    /// Show a server
    Show(One),
    /// Issue a new provisioning token, with which a host joins as this server; cuts off the host that has joined
    Token(One),
}

#[derive(Debug, clap::Args)]
struct One {
    /// The server's name or id
    server: String,
}

impl Server {
    pub(in crate::cli) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let remote = self.target.connect(cli).await?;
        let servers = remote.list("Servers").await?;
        match self.what {
            What::List => Ok(list(&servers)),
            What::Show(One { server }) => {
                let server = remote.call("Server", id(found(&servers, "server", &server)?)).await?;
                Ok(shown::whole(&server["server"]))
            }
            What::Token(One { server }) => {
                let server = found(&servers, "server", &server)?;
                let issued = remote.change("regenerateProvisioningToken", id(server)).await?;
                let lost = "The token is lost, and the one before no longer works: issue another one.";
                Ok(shown::whole(&issued).if_lost(lost))
            }
        }
    }
}

fn list(servers: &[Value]) -> Output {
    let fields = [
        ("id", "/id"),
        ("name", "/name"),
        ("status", "/status"),
        ("agents", "/agentCount"),
        ("running", "/agentsRunning"),
        ("version", "/version"),
        ("last seen", "/lastSeenAt"),
    ];
    shown::listed("servers", fields, servers)
}
