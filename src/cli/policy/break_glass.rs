//! `muster policy break-glass`.

use super::{Cli, Failure, Output};
use crate::{
    base::plain::is_line,
    cli::open,
    domain::{orgs, people, policies},
};

#[derive(Debug, clap::Args)]
pub struct BreakGlass {
    /// The organization's id or name
    #[arg(long)]
    org: String,
    /// The e-mail address of the user to make OWNER
    #[arg(long, value_name = "EMAIL")]
    user: String,
    /// The reason, which the audit log records
    #[arg(long)]
    reason: String,
    /// Also take the organization's own rules in the database out of force
    #[arg(long)]
    drop_rules: bool,
}

impl BreakGlass {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let reason = self.reason.trim();
        if reason.is_empty() {
            return Err(Failure::invalid("--reason: give a reason; the audit log records it"));
        }
        if !is_line(reason) {
            return Err(Failure::invalid("--reason: must be one line without control characters"));
        }
        // Both are checked before anything changes. `muster migrate` might not start either.
        let db = cli.any_database().await?;
        open::migrate(&cli.settings()?, &db, None).await?;
        let (org, user) = (orgs::find_in(&db, &self.org).await, people::find_user_in(&db, &self.user).await);
        db.close().await;
        let (org, user) = (org?, user?);
        // Works with invalid policy files as well.
        let core = cli.open_unbound().await?;
        let broken = policies::break_glass(&core, org, user, reason, self.drop_rules).await;
        core.shut_down().await;
        let mut json = serde_json::to_value(broken?)?;
        let file = super::own_file(cli, org)?;
        json["owned_by_file"] = super::shown(file.as_deref());
        let output = Output::from_json(json);
        let Some(file) = file else { return Ok(output) };
        Ok(output.and(&format!(
            "The rules are in {}, which was not changed. If they are the problem, move that file out of the policy folder of \
             every replica now; then the newest version in `muster policy history --org {org}` is in force.\n",
            file.display()
        )))
    }
}
