//! `muster policy explain`.

use std::{fmt::Write, path::PathBuf};

use super::{Cli, Failure, Output};
use crate::{
    access::{
        Permission, Role,
        policy::{Explanation, Subject},
    },
    ids::OrgId,
    people,
};

/// What `muster policy explain` takes.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("who").required(true).args(["role", "token_cap", "user"])))]
pub struct Explain {
    /// The permission, such as agent.edit [default: every one]
    permission: Option<Permission>,
    /// The organization's id [default: any that has no file of its own]
    #[arg(long)]
    org: Option<i64>,
    /// What a member with this role may do
    #[arg(long)]
    role: Option<Role>,
    /// What a service token may carry at most
    #[arg(long)]
    token_cap: bool,
    /// What this member may do: an e-mail address
    #[arg(long, value_name = "EMAIL", requires = "org")]
    user: Option<String>,
    /// The folder [default: the setting policy_dir, or ./policies]
    #[arg(long)]
    dir: Option<PathBuf>,
}

impl Explain {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let org = self.org.map(OrgId);
        let subject = match (self.role, &self.user, org) {
            (Some(role), ..) => Subject::Role(role),
            (None, Some(email), Some(org)) => Subject::Role(role_of(cli, org, email).await?),
            _ => Subject::ServiceToken,
        };
        let policy = super::load(&super::folder(cli, self.dir)?)?;
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
            let _ = writeln!(text, "{}", answer.reason);
        }
        Ok(Output::with_text(json, text))
    }
}

async fn role_of(cli: &Cli, org: OrgId, email: &str) -> Result<Role, Failure> {
    let app = cli.open_as_is().await?;
    let user = people::find_user(&app, email).await?;
    let memberships = people::memberships(&app, user).await?;
    app.shut_down().await;
    let membership = memberships.into_iter().find(|membership| membership.organization_id == org);
    let role = membership.map(|membership| membership.role);
    role.ok_or_else(|| Failure::new(format!("{email} is no member of organization {org}")))
}
