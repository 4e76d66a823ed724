//! `muster policy break-glass`.

use super::{Cli, Failure, Output};
use crate::{
    base::plain::is_line,
    cli::open,
    slices::{
        orgs, people,
        policies::{self, Aside},
    },
};

/// What `muster policy break-glass` takes.
#[derive(Debug, clap::Args)]
pub struct BreakGlass {
    /// The organization: its id or its name
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
        if !is_line(reason) {
            return Err(Failure::new("--reason: one line, without control characters"));
        }
        // Both before anything is touched. `muster migrate` would not start either.
        let db = cli.any_database().await?;
        open::migrate(&cli.settings()?, &db, None).await?;
        let (org, user) = (orgs::find_in(&db, &self.org).await, people::find_user_in(&db, &self.user).await);
        db.close().await;
        let (org, user) = (org?, user?);
        // A file that the folder is refused for keeps everything else from starting, this command too.
        let kept = match cli.settings()?.policy_dir {
            Some(dir) => policies::set_aside(&dir, org)?,
            None => None,
        };
        let core = cli.open().await?;
        let aside = match kept {
            Some(kept) => {
                tracing::warn!(organization = org.0, kept = %kept.display(), "policy.file_set_aside");
                Aside::Done
            }
            None if self.set_file_aside => Aside::Always,
            None => Aside::IfNeeded,
        };
        let broken = policies::break_glass(&core, org, user, reason, aside).await;
        core.shut_down().await;
        Ok(Output::of(serde_json::to_value(broken?)?))
    }
}
