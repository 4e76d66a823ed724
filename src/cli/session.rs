//! `muster session …`.

use clap::Subcommand;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use super::{Cli, Failure, Output};
use crate::{
    core::Core,
    domain::people::{self, SignInOrigin},
};

/// Manage sessions
#[derive(Debug, Subcommand)]
pub enum Session {
    /// Open a session for a user without their password
    Create(Create),
}

#[derive(Debug, clap::Args)]
pub struct Create {
    /// The user's e-mail address
    #[arg(long)]
    email: String,
    /// Print a link that signs the user in to the panel, once and within ten minutes, instead of tokens
    #[arg(long)]
    link: bool,
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
        if self.link {
            let (code, expires_at) = people::create_link(&core, user).await?;
            let link = sign_in_link(&core, &code);
            core.shut_down().await;
            let made = json!({ "link": link, "expires_at": expires_at, "user_id": user });
            let lost = format!("The link is lost. It expires at {expires_at}.");
            return Ok(Output::from_json(made).if_lost(lost));
        }
        let client =
            SignInOrigin { user_agent: Some("muster session create".to_owned()), ..SignInOrigin::default() };
        let session = people::create_session(&core, user, client).await?;
        core.shut_down().await;
        Ok(Output::from_json(json!({
            "access_token": session.access_token.expose_secret(),
            "access_token_expires_at": session.access_token_expires_at,
            "refresh_token": session.refresh_token.expose_secret(),
            "refresh_token_expires_at": session.refresh_token_expires_at,
            "user_id": user,
        }))
        .if_lost(format!(
            "A session of user {user} exists, but its tokens are lost. End it in the account's list of sessions in the panel."
        )))
    }
}

/// The panel's address that exchanges the code. The code is in the fragment, which browsers send to no server: fetching
/// the link, as a preview does, signs no one in.
pub(super) fn sign_in_link(core: &Core, code: &SecretString) -> String {
    format!("{}/sign-in#code={}", core.config.links(), code.expose_secret())
}
