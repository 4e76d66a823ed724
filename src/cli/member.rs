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
    domain::{
        orgs,
        people::{self, Delivery},
    },
};

/// Manage the members of an organization
#[derive(Debug, Subcommand)]
pub enum Member {
    /// Add a user to an organization
    Add(Add),
    /// Change a member's role
    Update(Update),
    /// Remove a member from an organization
    Remove(Remove),
    /// Invite someone to an organization, by mail or with a link
    Invite(Invite),
}

/// The organization, the person and the role.
#[derive(Debug, clap::Args)]
pub struct MemberArgs {
    /// The organization's id or name
    #[arg(long)]
    org: String,
    /// The person's e-mail address
    #[arg(long)]
    email: String,
    /// OWNER, ADMIN, OPERATOR or VIEWER
    #[arg(long)]
    role: Role,
}

#[derive(Debug, clap::Args)]
pub struct Add {
    #[command(flatten)]
    member: MemberArgs,
}

#[derive(Debug, clap::Args)]
pub struct Update {
    #[command(flatten)]
    member: MemberArgs,
}

#[derive(Debug, clap::Args)]
pub struct Remove {
    /// The organization's id or name
    #[arg(long)]
    org: String,
    /// The person's e-mail address
    #[arg(long)]
    email: String,
}

#[derive(Debug, clap::Args)]
pub struct Invite {
    #[command(flatten)]
    member: MemberArgs,
    /// Print the link, only this once, and send no mail. Replaces an open invitation of the address
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

/// Opens the service, and resolves the organization and the person.
async fn resolve(cli: &Cli, org: &str, email: &str) -> Result<(Arc<Core>, OrgId, UserId), Failure> {
    let core = cli.open().await?;
    let org = orgs::find(&core, org).await?;
    let user = people::find_user(&core, email).await?;
    Ok((core, org, user))
}

impl Add {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let MemberArgs { org, email, role } = self.member;
        let (core, org, user) = resolve(cli, &org, &email).await?;
        people::add_member(&Scope::system(&core, org), user, role).await?;
        core.shut_down().await;
        Ok(Output::from_json(json!({ "organization_id": org, "user_id": user, "role": role })))
    }
}

impl Update {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let MemberArgs { org, email, role } = self.member;
        let (core, org, user) = resolve(cli, &org, &email).await?;
        people::update_member(&Scope::system(&core, org), user, role).await?;
        core.shut_down().await;
        Ok(Output::from_json(json!({ "organization_id": org, "user_id": user, "role": role })))
    }
}

impl Remove {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let (core, org, user) = resolve(cli, &self.org, &self.email).await?;
        people::remove_member(&Scope::system(&core, org), user).await?;
        core.shut_down().await;
        Ok(Output::from_json(json!({ "organization_id": org, "user_id": user, "removed": true })))
    }
}

impl Invite {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let (core, MemberArgs { org, email, role }) = (cli.open().await?, self.member);
        if !self.link && !core.mailer.is_on() {
            return Err(Failure::invalid(
                "mail.url is not set, so no mail can be sent: set it, or print the link with --link",
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
                super::user::send_mail(&core).await;
            }
        }
        core.shut_down().await;
        let lost = format!(
            "Invitation {} exists. Without its link, revoke it in the panel and invite again.",
            invited.0
        );
        Ok(Output::from_json(answer).if_lost(lost))
    }
}
