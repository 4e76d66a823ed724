//! `muster policy break-glass`.

use super::{Cli, Failure, Output};
use crate::{
    ids::OrgId,
    orgs, people,
    policies::{self, Aside},
};

/// What `muster policy break-glass` takes.
#[derive(Debug, clap::Args)]
pub struct BreakGlass {
    /// The organization: its id, or its name
    #[arg(long)]
    org: String,
    /// Who becomes its OWNER: the e-mail address of a user
    #[arg(long, value_name = "EMAIL")]
    user: String,
    /// Why: the audit log and the history show it
    #[arg(long)]
    reason: String,
    /// Take the organization's own file out of force in any case
    #[arg(long)]
    set_file_aside: bool,
}

impl BreakGlass {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let reason = self.reason.trim();
        if reason.is_empty() {
            return Err(Failure::new("--reason: say why; the audit log shows it"));
        }
        // A file that the folder is refused for keeps everything else from starting, this command too.
        let mut aside = if self.set_file_aside { Aside::Always } else { Aside::IfNeeded };
        if let (Some(dir), Ok(org)) = (cli.settings()?.policy_dir, self.org.parse())
            && let Some(kept) = policies::set_aside(&dir, OrgId(org))?
        {
            aside = Aside::Done;
            tracing::warn!(organization = org, kept = %kept.display(), "policy.file_set_aside");
        }
        let app = cli.open().await?;
        let org = orgs::find(&app, &self.org).await?;
        let user = people::find_user(&app, &self.user).await?;
        let broken = policies::break_glass(&app, org, user, reason, aside).await;
        app.shut_down().await;
        Ok(Output::of(serde_json::to_value(broken?)?))
    }
}
