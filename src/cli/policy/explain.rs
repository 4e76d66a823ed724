//! `muster policy explain`.

use std::fmt::Write;

use super::{
    Cli, Failure, Output,
    source::{Source, shown_problems},
};
use crate::{
    base::{
        ids::OrgId,
        permission::{Permission, Role},
        plain::without_controls,
    },
    core::policy::{Explanation, Subject},
    domain::people,
};

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("who").required(true).args(["role", "token_cap", "user"])))]
pub struct Explain {
    /// The permission, such as agent.edit [default: all]
    permission: Option<Permission>,
    #[command(flatten)]
    source: Source,
    /// Explain what this role allows
    #[arg(long)]
    role: Option<Role>,
    /// Explain the most that a service token can have
    #[arg(long)]
    token_cap: bool,
    /// Explain what this member may do; an e-mail address
    #[arg(long, value_name = "EMAIL", requires = "org")]
    user: Option<String>,
}

impl Explain {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let org = self.source.organization(cli).await?;
        let subject = match (self.role, &self.user, org) {
            (Some(role), ..) => Subject::Role(role),
            (None, Some(email), Some(org)) => Subject::Role(role_of(cli, org, email).await?),
            _ => Subject::ServiceToken,
        };
        let policy = self.source.policy(cli, org).await?;
        let permissions = match self.permission {
            Some(permission) => vec![permission],
            None => Permission::ALL.to_vec(),
        };
        let answers: Vec<Explanation> =
            permissions.into_iter().map(|permission| policy.explain(org, subject, permission)).collect();
        let json = match (&answers[..], self.permission) {
            ([one], Some(_)) => serde_json::to_value(one)?,
            _ => serde_json::json!({ "explanations": answers }),
        };
        let mut text = String::new();
        for answer in &answers {
            let _ = writeln!(text, "{}", without_controls(&answer.reason));
        }
        text.push_str(&shown_problems(&policy, org));
        Ok(Output::with_text(json, text))
    }
}

async fn role_of(cli: &Cli, org: OrgId, email: &str) -> Result<Role, Failure> {
    let db = cli.database().await?;
    let role = people::find_role_in(&db, org, email).await;
    db.close().await;
    role?.ok_or_else(|| Failure::not_found(format!("{email} is not a member of organization {org}")))
}
