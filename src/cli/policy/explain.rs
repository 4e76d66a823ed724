//! `muster policy explain`.

use std::{fmt::Write, path::PathBuf};

use super::{Cli, Failure, Output};
use crate::{
    base::{
        ids::OrgId,
        permission::{Permission, Role},
        plain::plain,
    },
    core::policy::{Explanation, Subject},
    slices::people,
};

/// What `muster policy explain` takes.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("who").required(true).args(["role", "token_cap", "user"])))]
pub struct Explain {
    /// The permission, such as agent.edit [default: every one]
    permission: Option<Permission>,
    /// The organization: its id or its name [default: any that has no file of its own]
    #[arg(long)]
    org: Option<String>,
    /// What a member with this role may do
    #[arg(long)]
    role: Option<Role>,
    /// What a service token may carry at most
    #[arg(long)]
    token_cap: bool,
    /// What this member may do: an e-mail address
    #[arg(long, value_name = "EMAIL", requires = "org")]
    user: Option<String>,
    /// The folder [default: the setting policy_dir, or the built-in policy]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Ask what is published, as the database has it, in place of a folder
    #[arg(long, conflicts_with = "dir")]
    live: bool,
}

impl Explain {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let org = match &self.org {
            Some(org) if self.live => Some(super::live_organization(cli, org).await?),
            Some(org) => Some(cli.organization(org).await?),
            None => None,
        };
        let subject = match (self.role, &self.user, org) {
            (Some(role), ..) => Subject::Role(role),
            (None, Some(email), Some(org)) => Subject::Role(role_of(cli, org, email).await?),
            _ => Subject::ServiceToken,
        };
        let policy = if self.live {
            super::live(cli).await?
        } else {
            super::load(super::folder(cli, self.dir)?.as_deref())?
        };
        let asked = match self.permission {
            Some(permission) => vec![permission],
            None => Permission::ALL.to_vec(),
        };
        let answers: Vec<Explanation> =
            asked.into_iter().map(|permission| policy.explain(org, subject, permission)).collect();
        let json = match (&answers[..], self.permission) {
            ([one], Some(_)) => serde_json::to_value(one)?,
            _ => serde_json::json!({ "explanations": answers }),
        };
        let mut text = String::new();
        for answer in &answers {
            let _ = writeln!(text, "{}", plain(&answer.reason));
        }
        Ok(Output::with_text(json, text))
    }
}

async fn role_of(cli: &Cli, org: OrgId, email: &str) -> Result<Role, Failure> {
    let db = cli.database().await?;
    let role = people::find_role_in(&db, org, email).await;
    db.close().await;
    role?.ok_or_else(|| Failure::new(format!("{email} is no member of organization {org}")))
}
