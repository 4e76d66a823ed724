//! `muster token …`.

use clap::Subcommand;
use secrecy::ExposeSecret;
use serde_json::json;

use super::{Cli, Failure, Output};
use crate::{
    access::{Permission, Scope},
    clock::Timestamp,
    orgs,
    people::{self, NewToken},
};

/// Service tokens of organizations
#[derive(Debug, Subcommand)]
pub enum Token {
    /// Issue a service token
    Create(Create),
}

/// What `muster token create` takes.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["all", "permission"])))]
pub struct Create {
    /// The organization: its id or its name
    #[arg(long)]
    org: String,
    /// What it is for
    #[arg(long)]
    name: String,
    /// Everything that the policy allows a service token
    #[arg(long)]
    all: bool,
    /// A permission, such as agent.view; several times for several
    #[arg(long, value_name = "PERMISSION")]
    permission: Vec<Permission>,
    /// When it ends: 2027-01-31T08:00:00Z [default: never]
    #[arg(long, value_name = "TIME")]
    expires_at: Option<Timestamp>,
}

impl Token {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        match self {
            Self::Create(command) => command.run(cli).await,
        }
    }
}

impl Create {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let app = cli.open().await?;
        let org = orgs::find(&app, &self.org).await?;
        let permissions = if self.all { app.policy.token_cap().iter().collect() } else { self.permission };
        let new = NewToken { name: self.name, permissions, expires_at: self.expires_at };
        let (id, token) = people::create_token(&Scope::system(&app, org), new).await?;
        app.shut_down().await;
        Ok(Output::of(json!({ "token": token.expose_secret(), "id": id, "organization_id": org })))
    }
}
