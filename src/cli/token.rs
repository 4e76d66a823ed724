//! `muster token …`.

use std::time::Duration;

use async_graphql::MaybeUndefined;
use clap::Subcommand;
use secrecy::ExposeSecret;
use serde_json::json;

use super::{Cli, Failure, Output};
use crate::{
    base::{ids::TokenId, permission::Permission, plain::plain, time::Timestamp},
    core::access::Scope,
    slices::{
        orgs,
        people::{self, NewToken, OVERLAP},
    },
};

/// Service tokens of organizations
#[derive(Debug, Subcommand)]
pub enum Token {
    /// Issue a service token
    Create(Create),
    /// The tokens of an organization, and who still uses a replaced secret
    List(List),
    /// Give a token a new secret; the old one works until the overlap ends
    Rotate(Rotate),
    /// Revoke a token, at once and for good
    Revoke(Revoke),
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
    /// When it ends: 2027-01-31T08:00:00Z [default: service_tokens.default_days from now]
    #[arg(long, value_name = "TIME", value_parser = super::instant)]
    expires_at: Option<Timestamp>,
}

/// What `muster token list` takes.
#[derive(Debug, clap::Args)]
pub struct List {
    /// The organization: its id or its name
    #[arg(long)]
    org: String,
}

/// What `muster token rotate` takes.
#[derive(Debug, clap::Args)]
pub struct Rotate {
    /// The organization: its id or its name
    #[arg(long)]
    org: String,
    /// The token
    #[arg(long)]
    id: i64,
    /// For how many seconds the old secret works as well; 0: no longer
    #[arg(long, value_name = "SECONDS", default_value_t = OVERLAP.as_secs(), value_parser = clap::value_parser!(u64).range(..=2_592_000))]
    overlap: u64,
}

/// What `muster token revoke` takes.
#[derive(Debug, clap::Args)]
pub struct Revoke {
    /// The organization: its id or its name
    #[arg(long)]
    org: String,
    /// The token
    #[arg(long)]
    id: i64,
}

impl Token {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        match self {
            Self::Create(command) => command.run(cli).await,
            Self::List(command) => command.run(cli).await,
            Self::Rotate(command) => command.run(cli).await,
            Self::Revoke(command) => command.run(cli).await,
        }
    }
}

impl Create {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open().await?;
        let org = orgs::find(&core, &self.org).await?;
        let permissions = if self.all { core.policy.token_cap().iter().collect() } else { self.permission };
        let expires_at = self.expires_at.map_or(MaybeUndefined::Undefined, MaybeUndefined::Value);
        let new = NewToken { name: self.name, permissions, expires_at };
        let (id, token) = people::create_token(&Scope::system(&core, org), new).await?;
        core.shut_down().await;
        Ok(Output::of(json!({ "token": token.expose_secret(), "id": id, "organization_id": org })))
    }
}

impl List {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open().await?;
        let org = orgs::find(&core, &self.org).await?;
        let tokens = people::tokens(&Scope::system(&core, org)).await?;
        core.shut_down().await;
        let mut text: String = tokens.iter().map(in_words).collect();
        if text.is_empty() {
            text.push_str("None yet.");
        }
        Ok(Output::with_text(json!({ "organization_id": org, "tokens": tokens }), text))
    }
}

/// A token as lines for people.
fn in_words(token: &serde_json::Value) -> String {
    let text = |key: &str| plain(token[key].as_str().unwrap_or("never"));
    let mut lines = format!(
        "{}  {}  …{}  expires {}, last used {}\n",
        token["id"],
        text("name"),
        text("hint"),
        text("expires_at"),
        text("last_used_at"),
    );
    if !token["previous_hint"].is_null() {
        let (hint, until, used) =
            (text("previous_hint"), text("previous_expires_at"), text("previous_last_used_at"));
        lines.push_str(&format!("    before: …{hint}  works until {until}, last used {used}\n"));
    }
    lines
}

impl Rotate {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open().await?;
        let org = orgs::find(&core, &self.org).await?;
        let (scope, overlap) = (Scope::system(&core, org), Duration::from_secs(self.overlap));
        let token = people::rotate_token(&scope, TokenId(self.id), overlap).await?;
        core.shut_down().await;
        Ok(Output::of(json!({ "token": token.expose_secret(), "id": self.id, "organization_id": org })))
    }
}

impl Revoke {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open().await?;
        let org = orgs::find(&core, &self.org).await?;
        people::revoke_token(&Scope::system(&core, org), TokenId(self.id)).await?;
        core.shut_down().await;
        Ok(Output::of(json!({ "id": self.id, "organization_id": org, "revoked": true })))
    }
}
