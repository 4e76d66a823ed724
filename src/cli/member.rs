//! `muster member …`.

use clap::Subcommand;
use serde_json::json;

use super::{Cli, Failure, Output};
use crate::{
    access::{Role, Scope},
    orgs, people,
};

/// Who belongs to an organization
#[derive(Debug, Subcommand)]
pub enum Member {
    /// Make a user a member of an organization
    Add(Add),
}

/// What `muster member add` takes.
#[derive(Debug, clap::Args)]
pub struct Add {
    /// The organization: its id or its name
    #[arg(long)]
    org: String,
    /// The user
    #[arg(long)]
    email: String,
    /// OWNER, ADMIN, OPERATOR or VIEWER
    #[arg(long)]
    role: Role,
}

impl Member {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        match self {
            Self::Add(command) => command.run(cli).await,
        }
    }
}

impl Add {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let app = cli.open().await?;
        let org = orgs::find(&app, &self.org).await?;
        let user = people::find_user(&app, &self.email).await?;
        people::add_member(&Scope::system(&app, org), user, self.role).await?;
        app.shut_down().await;
        Ok(Output::of(json!({ "organization_id": org, "user_id": user, "role": self.role })))
    }
}
