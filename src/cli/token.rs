//! `muster token …`.

use std::time::Duration;

use async_graphql::MaybeUndefined;
use clap::Subcommand;
use secrecy::ExposeSecret;
use serde_json::json;

use super::{Cli, Failure, Output};
use crate::{
    base::{
        ids::{OrgId, TokenId},
        permission::Permission,
        plain::without_controls,
        time::Timestamp,
    },
    core::access::Scope,
    domain::{
        orgs,
        service_tokens::{self, NewToken, OVERLAP},
    },
};

/// Manage an organization's service tokens
#[derive(Debug, Subcommand)]
pub enum Token {
    /// Issue a service token
    Create(Create),
    /// List an organization's tokens, and show which replaced secrets are still used
    List(List),
    /// Give a token a new secret; the old one works until the overlap ends
    Rotate(Rotate),
    /// Revoke a token, immediately and permanently
    Revoke(Revoke),
}

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["all", "permission"])))]
pub struct Create {
    /// The organization's id or name
    #[arg(long)]
    org: String,
    /// A name that says what it is for
    #[arg(long)]
    name: String,
    /// Grant every permission that the policy allows a service token
    #[arg(long)]
    all: bool,
    /// A permission, such as agent.view; may be repeated
    #[arg(long, value_name = "PERMISSION")]
    permission: Vec<Permission>,
    /// When it expires: 2027-01-31T08:00:00Z [default: service_tokens.default_days from now]
    #[arg(long, value_name = "TIME", value_parser = super::instant)]
    expires_at: Option<Timestamp>,
}

#[derive(Debug, clap::Args)]
pub struct List {
    /// The organization's id or name
    #[arg(long)]
    org: String,
}

#[derive(Debug, clap::Args)]
pub struct Rotate {
    /// The organization's id or name
    #[arg(long)]
    org: String,
    /// The token's id
    #[arg(long, value_parser = super::read_id)]
    id: i64,
    /// How many seconds the old secret keeps working; 0: not at all
    #[arg(long, value_name = "SECONDS", default_value_t = OVERLAP.as_secs(), value_parser = clap::value_parser!(u64).range(..=2_592_000))]
    overlap: u64,
}

#[derive(Debug, clap::Args)]
pub struct Revoke {
    /// The organization's id or name
    #[arg(long)]
    org: String,
    /// The token's id
    #[arg(long, value_parser = super::read_id)]
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
        let (id, token) = service_tokens::create(&Scope::system(&core, org), new).await?;
        core.shut_down().await;
        let made = json!({ "token": token.expose_secret(), "id": id, "organization_id": org });
        Ok(Output::from_json(made).if_lost(lost(id, org)))
    }
}

impl List {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open().await?;
        let org = orgs::find(&core, &self.org).await?;
        let tokens = service_tokens::list(&Scope::system(&core, org)).await?;
        core.shut_down().await;
        let mut text: String = tokens.iter().map(in_words).collect();
        if text.is_empty() {
            text.push_str("None yet.");
        }
        Ok(Output::with_text(json!({ "organization_id": org, "tokens": tokens }), text))
    }
}

/// A token as text for people.
fn in_words(token: &serde_json::Value) -> String {
    let text = |key: &str| without_controls(token[key].as_str().unwrap_or("never"));
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
        let token = service_tokens::rotate(&scope, TokenId(self.id), overlap).await?;
        core.shut_down().await;
        let rotated = json!({ "token": token.expose_secret(), "id": self.id, "organization_id": org });
        Ok(Output::from_json(rotated).if_lost(lost(TokenId(self.id), org)))
    }
}

/// What to do about a token whose secret was not printed.
fn lost(id: TokenId, org: OrgId) -> String {
    format!(
        "Token {id} exists, but its secret is lost. Get another one with `muster token rotate --org {org} --id {id}`, \
         or revoke it with `muster token revoke --org {org} --id {id}`."
    )
}

impl Revoke {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open().await?;
        let org = orgs::find(&core, &self.org).await?;
        service_tokens::revoke(&Scope::system(&core, org), TokenId(self.id)).await?;
        core.shut_down().await;
        Ok(Output::from_json(json!({ "id": self.id, "organization_id": org, "revoked": true })))
    }
}
