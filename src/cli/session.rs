//! `muster session …`.

use clap::Subcommand;
use secrecy::ExposeSecret;
use serde_json::json;

use super::{Cli, Failure, Output};
use crate::slices::people::{self, SignInOrigin};

/// Manage sessions
#[derive(Debug, Subcommand)]
pub enum Session {
    /// Open a session for a user without their password
    Create(Create),
}

/// Arguments of `muster session create`.
#[derive(Debug, clap::Args)]
pub struct Create {
    /// The user's e-mail address
    #[arg(long)]
    email: String,
}

impl Session {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        match self {
            Self::Create(command) => command.run(cli).await,
        }
    }
}

impl Create {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open().await?;
        let user = people::find_user(&core, &self.email).await?;
        let client =
            SignInOrigin { user_agent: Some("muster session create".to_owned()), ..SignInOrigin::default() };
        let session = people::create_session(&core, user, client).await?;
        core.shut_down().await;
        Ok(Output::of(json!({
            "access_token": session.access_token.expose_secret(),
            "access_token_expires_at": session.access_token_expires_at,
            "refresh_token": session.refresh_token.expose_secret(),
            "refresh_token_expires_at": session.refresh_token_expires_at,
            "user_id": user,
        })))
    }
}
