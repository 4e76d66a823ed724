//! `muster member …`.

use std::sync::Arc;

use clap::Subcommand;
use serde_json::json;

use super::{Cli, Failure, Output};
use crate::{
    base::{
        ids::{OrgId, UserId},
        permission::Role,
    },
    core::{Core, access::Scope},
    slices::{
        orgs,
        people::{self, Delivery},
    },
};

/// Who belongs to an organization
#[derive(Debug, Subcommand)]
pub enum Member {
    /// Make a user a member of an organization
    Add(Add),
    /// Change what a member is
    Update(Update),
    /// Take a member out of an organization
    Remove(Remove),
    /// Invite somebody into an organization, by mail or by a link
    Invite(Invite),
}

/// Whom, where, and as what.
#[derive(Debug, clap::Args)]
pub struct Place {
    /// The organization: its id or its name
    #[arg(long)]
    org: String,
    /// The person's e-mail address
    #[arg(long)]
    email: String,
    /// OWNER, ADMIN, OPERATOR or VIEWER
    #[arg(long)]
    role: Role,
}

/// What `muster member add` takes.
#[derive(Debug, clap::Args)]
pub struct Add {
    #[command(flatten)]
    place: Place,
}

/// What `muster member update` takes.
#[derive(Debug, clap::Args)]
pub struct Update {
    #[command(flatten)]
    place: Place,
}

/// What `muster member remove` takes.
#[derive(Debug, clap::Args)]
pub struct Remove {
    /// The organization: its id or its name
    #[arg(long)]
    org: String,
    /// The person's e-mail address
    #[arg(long)]
    email: String,
}

/// What `muster member invite` takes.
#[derive(Debug, clap::Args)]
pub struct Invite {
    #[command(flatten)]
    place: Place,
    /// Print the link, this once, and send no mail
    #[arg(long)]
    link: bool,
}

impl Member {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        match self {
            Self::Add(command) => command.run(cli).await,
            Self::Update(command) => command.run(cli).await,
            Self::Remove(command) => command.run(cli).await,
            Self::Invite(command) => command.run(cli).await,
        }
    }
}

/// The service, the organization and the person that a command names.
async fn meant(cli: &Cli, org: &str, email: &str) -> Result<(Arc<Core>, OrgId, UserId), Failure> {
    let core = cli.open().await?;
    let org = orgs::find(&core, org).await?;
    let user = people::find_user(&core, email).await?;
    Ok((core, org, user))
}

impl Add {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let Place { org, email, role } = self.place;
        let (core, org, user) = meant(cli, &org, &email).await?;
        people::add_member(&Scope::system(&core, org), user, role).await?;
        core.shut_down().await;
        Ok(Output::of(json!({ "organization_id": org, "user_id": user, "role": role })))
    }
}

impl Update {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let Place { org, email, role } = self.place;
        let (core, org, user) = meant(cli, &org, &email).await?;
        people::update_member(&Scope::system(&core, org), user, role).await?;
        core.shut_down().await;
        Ok(Output::of(json!({ "organization_id": org, "user_id": user, "role": role })))
    }
}

impl Remove {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let (core, org, user) = meant(cli, &self.org, &self.email).await?;
        people::remove_member(&Scope::system(&core, org), user).await?;
        core.shut_down().await;
        Ok(Output::of(json!({ "organization_id": org, "user_id": user, "removed": true })))
    }
}

impl Invite {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let (core, Place { org, email, role }) = (cli.open().await?, self.place);
        if !self.link && !core.mailer.is_on() {
            return Err(Failure::new(
                "mail.url is not set, so no mail can be sent: set it, or ask for the link with --link",
            ));
        }
        let org = orgs::find(&core, &org).await?;
        let delivery = if self.link { Delivery::ByHand } else { Delivery::Mail };
        let invited = people::invite(&Scope::system(&core, org), &email, role, delivery).await?;
        let mut answer =
            json!({ "id": invited.0, "organization_id": org, "email": email.trim(), "role": role });
        match invited.1 {
            Some(token) => {
                answer["link"] = json!(super::link(&core, "accept-invitation", &token));
            }
            None => {
                people::deliver_due(&core).await?;
            }
        }
        core.shut_down().await;
        Ok(Output::of(answer))
    }
}
