//! `muster policy explain`.

use std::{fmt::Write, path::PathBuf};

use super::{Cli, Failure, Output, candidate::whole};
use crate::{
    base::{
        ids::OrgId,
        permission::{Permission, Role},
        plain::without_controls,
    },
    core::policy::{Explanation, Given, Subject},
    domain::people,
};

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("who").required(true).args(["role", "token_cap", "user"])))]
pub struct Explain {
    /// The permission, such as agent.edit [default: all]
    permission: Option<Permission>,
    /// The organization's id or name [default: any without its own rules]
    #[arg(long)]
    org: Option<String>,
    /// Explain what this role allows
    #[arg(long)]
    role: Option<Role>,
    /// Explain the most that a service token can have
    #[arg(long)]
    token_cap: bool,
    /// Explain what this member may do; an e-mail address
    #[arg(long, value_name = "EMAIL", requires = "org")]
    user: Option<String>,
    /// Use only the files of this folder [default: what is in force, from files and database]
    #[arg(long)]
    dir: Option<PathBuf>,
}

impl Explain {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let org = match &self.org {
            Some(org) => Some(cli.organization(org).await?),
            None => None,
        };
        let subject = match (self.role, &self.user, org) {
            (Some(role), ..) => Subject::Role(role),
            (None, Some(email), Some(org)) => Subject::Role(role_of(cli, org, email).await?),
            _ => Subject::ServiceToken,
        };
        let policy = match &self.dir {
            Some(dir) => whole(Some(dir), &Given::new())?,
            None => super::in_force(cli, org).await?,
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
            let _ = writeln!(text, "{}", without_controls(&answer.reason));
        }
        for problem in policy.problems().iter().filter(|problem| problem.org == org) {
            let _ = writeln!(
                text,
                "{} (so only the denials in these rules apply)",
                without_controls(&problem.to_string())
            );
        }
        Ok(Output::with_text(json, text))
    }
}

async fn role_of(cli: &Cli, org: OrgId, email: &str) -> Result<Role, Failure> {
    let db = cli.database().await?;
    let role = people::find_role_in(&db, org, email).await;
    db.close().await;
    role?.ok_or_else(|| Failure::not_found(format!("{email} is not a member of organization {org}")))
}
