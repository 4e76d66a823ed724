//! `muster policy simulate`.

use std::fmt::Write;

use super::{Cli, Failure, Output, candidate::Candidate};
use crate::{
    base::{bounds, numerals::with_noun, plain::without_controls},
    core::{Core, policy::NO_LINE},
    domain::{
        orgs,
        policies::{self, Simulation},
    },
};

#[derive(Debug, clap::Args)]
pub struct Simulate {
    #[command(flatten)]
    candidate: Candidate,
    /// How many days to look back, including today
    #[arg(long, default_value_t = 14, value_parser = clap::value_parser!(i64).range(1..=3650))]
    days: i64,
    /// Only this organization, by id or name [default: all]
    #[arg(long)]
    org: Option<String>,
    /// Show every unused line, not only the first ones
    #[arg(long)]
    unused: bool,
}

impl Simulate {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open().await?;
        let found = self.tried(&core).await;
        core.shut_down().await;
        let found = found?;
        let mut text = String::new();
        for flip in &found.flips {
            let sign = if flip.allowed { '+' } else { '-' };
            let by = flip.decided_by.as_ref().map_or_else(|| NO_LINE.to_owned(), ToString::to_string);
            let (count, operation, subject, org) =
                (flip.count, &flip.operation, &flip.subject, flip.organization_id);
            let (operation, by, permission) =
                (without_controls(operation), without_controls(&by), flip.permission);
            let _ = writeln!(
                text,
                "{sign} {count} × {operation} by {subject} in organization {org}: {permission}   ({by})"
            );
        }
        let (flipped, calls, days) = (found.flipped, found.calls, with_noun(found.days, "day"));
        if calls == 0 {
            let text = format!(
                "No call was recorded in {days}, so there is nothing to simulate. (A running service records calls.)"
            );
            return Ok(Output::with_text(serde_json::to_value(&found)?, text));
        }
        let shown = if self.unused { found.unused_lines.len() } else { bounds::LISTED_IN_TEXT };
        for line in found.unused_lines.iter().take(shown) {
            let _ = writeln!(text, "unused: {}", without_controls(&line.to_string()));
        }
        if let Some(more) = found.unused_lines.len().checked_sub(shown).filter(|more| *more > 0) {
            let _ = writeln!(text, "unused: {} (--unused lists them)", with_noun(more, "more line"));
        }
        let _ =
            write!(text, "{flipped} of {} in {days} would be decided differently", with_noun(calls, "call"));
        Ok(Output::with_text(serde_json::to_value(&found)?, text))
    }

    async fn tried(&self, core: &Core) -> Result<Simulation, Failure> {
        let (_, candidate) = self.candidate.read(Some(&core.db), core.config.policy_dir()).await?;
        let org = match &self.org {
            Some(org) => Some(orgs::find(core, org).await?),
            None => None,
        };
        Ok(policies::simulate(core, candidate, org, self.days).await?)
    }
}
