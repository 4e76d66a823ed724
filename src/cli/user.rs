//! `muster user …`.

use clap::Subcommand;
use secrecy::SecretString;
use serde_json::json;

use super::{Cli, Failure, Output};
use crate::people::{self, NewUser};

/// Persons who can sign in
#[derive(Debug, Subcommand)]
pub enum User {
    /// Make a user, or give one who has no password yet a name and a password
    Create(Create),
}

/// What `muster user create` takes.
#[derive(Debug, clap::Args)]
pub struct Create {
    /// The address to sign in with
    #[arg(long)]
    email: String,
    /// The name, as it is shown
    #[arg(long)]
    name: String,
    /// The password: at least 8 characters
    #[arg(long)]
    password: SecretString,
    /// The address is known to be theirs
    #[arg(long)]
    confirmed: bool,
}

impl User {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        match self {
            Self::Create(command) => command.run(cli).await,
        }
    }
}

impl Create {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let app = cli.open().await?;
        let new = NewUser {
            email: self.email,
            name: self.name,
            password: self.password,
            confirmed: self.confirmed,
        };
        let id = people::create_user(&app, new).await?;
        let user = people::user(&app, id).await?;
        app.shut_down().await;
        Ok(Output::of(json!({
            "id": id, "email": user.email, "name": user.name, "email_confirmed": user.email_confirmed,
        })))
    }
}
