//! `muster key …`: docs/keys.md is the runbook.

use std::time::{Duration, SystemTime};

use clap::Subcommand;
use serde_json::json;

use super::{Cli, Failure, Output};
use crate::{
    base::numerals::with_noun,
    core::{
        Core,
        keys::{self, Pace, Rotated},
    },
};

/// Manage the keys that seal secrets and sign access tokens
#[derive(Debug, Subcommand)]
pub enum Key {
    /// List the keys and their states
    List,
    /// Replace a key; the old one remains valid for what it was used for
    Rotate(Rotate),
    /// Reseal everything with the active sealing key, while the service runs
    Rewrap(Rewrap),
    /// Remove a key that is no longer needed
    Retire(Retire),
}

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("which").required(true).args(["signing", "encryption"])))]
pub struct Rotate {
    /// The key that signs access tokens: publish the next one, which becomes active by itself
    #[arg(long)]
    signing: bool,
    /// The key that seals secrets: add one to the key file and seal with it from now on
    #[arg(long)]
    encryption: bool,
    /// With --signing: use the new key immediately
    #[arg(long, conflicts_with = "encryption")]
    now: bool,
    /// With --encryption: only add the key, so that replicas with their own key files can load it first
    #[arg(long, conflicts_with = "signing")]
    prepare: bool,
}

#[derive(Debug, clap::Args)]
pub struct Rewrap {
    /// Values per batch
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    batch: u64,
    /// Milliseconds to pause between batches
    #[arg(long, default_value_t = 20)]
    rest: u64,
}

#[derive(Debug, clap::Args)]
pub struct Retire {
    /// A sealing key's number, or a signing key's name
    key: String,
    /// Do not wait for requests that may still seal with the old key
    #[arg(long)]
    no_wait: bool,
}

impl Key {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open_for_key_repair().await?;
        let output = match self {
            Self::List => list(&core).await,
            Self::Rotate(command) => command.run(&core).await,
            Self::Rewrap(command) => command.run(&core, cli.json).await,
            Self::Retire(command) => command.run(&core, cli.json).await,
        };
        core.shut_down().await;
        output
    }
}

async fn list(core: &Core) -> Result<Output, Failure> {
    let (ring, signing) = (core.sealing.current(), keys::list(core).await?);
    let (mut sealing, mut text) = (Vec::new(), String::from("sealing keys\n"));
    for id in ring.ids() {
        let used: i64 = keys::in_use(core, id).await?.iter().map(|(_, count)| count).sum();
        let state = match id.cmp(&ring.active_id()) {
            std::cmp::Ordering::Less => "older",
            std::cmp::Ordering::Equal => "active",
            std::cmp::Ordering::Greater => "prepared",
        };
        text.push_str(&format!("  {id:<18}{state:<10}{}\n", with_noun(used, "value")));
        sealing.push(json!({ "id": id, "state": state, "values": used }));
    }
    text.push_str("signing keys\n");
    for key in &signing {
        let state = json!(key.state);
        let state = state.as_str().unwrap_or_default();
        let when = match (key.verify_until, key.activates_at) {
            (Some(until), _) => format!("verifies until {until}"),
            (None, Some(at)) => format!("signs from {at}"),
            (None, None) => String::new(),
        };
        text.push_str(&format!("  {:<18}{state:<10}{when}\n", key.kid));
    }
    Ok(Output::with_text(json!({ "sealing": sealing, "signing": signing }), text))
}

impl Rotate {
    async fn run(self, core: &Core) -> Result<Output, Failure> {
        if self.encryption {
            return self.encryption(core).await;
        }
        Ok(match keys::rotate(core, self.now).await? {
            Rotated::Active(kid) => {
                let text = format!(
                    "Signing key {kid} is active. Tokens signed with the old one remain valid until they expire."
                );
                Output::with_text(json!({ "kid": kid, "state": "active" }), text)
            }
            Rotated::Planned(kid, at) => {
                let text =
                    format!("Signing key {kid} is published and will become active by itself at {at}.");
                Output::with_text(json!({ "kid": kid, "state": "next", "activates_at": at }), text)
            }
        })
    }

    async fn encryption(&self, core: &Core) -> Result<Output, Failure> {
        let (id, active) = keys::rotate_sealing(core, self.prepare).await?;
        let text = if active {
            format!(
                "Sealing key {id} is active; a running service uses it within a second. Back up the key file, then \
                 run: muster key rewrap"
            )
        } else {
            format!(
                "Sealing key {id} is in the key file but is not used yet. Once every replica has the file, run: muster key rotate --encryption"
            )
        };
        Ok(Output::with_text(json!({ "id": id, "active": active }), text))
    }
}

impl Rewrap {
    async fn run(self, core: &std::sync::Arc<Core>, json: bool) -> Result<Output, Failure> {
        let pace = Pace { batch: self.batch, rest: Duration::from_millis(self.rest) };
        let done = keys::rewrap(core, pace, |column, now| {
            if !json {
                muster_printing::print_error(&format!(
                    "{}.{}: {} moved",
                    column.table, column.column, now.moved
                ));
            }
        })
        .await?;
        let mut text =
            format!("{} moved to sealing key {}.", with_noun(done.moved, "value"), core.sealing.active_id());
        if done.broken > 0 {
            text.push_str(&format!(" {} could not be opened; see the log.", done.broken));
        }
        Ok(Output::with_text(json!(done), text).failed_if(done.broken > 0))
    }
}

impl Retire {
    async fn run(self, core: &Core, json: bool) -> Result<Output, Failure> {
        let sealing =
            self.key.parse().ok().filter(|id| core.sealing.current().ids().any(|known| known == *id));
        let Some(id) = sealing else {
            keys::retire_signing_key(core, &self.key).await?;
            let text = format!("Signing key {} no longer verifies tokens.", self.key);
            return Ok(Output::with_text(json!({ "kid": self.key, "retired": true }), text));
        };
        if !self.no_wait {
            // Checked before the wait, which would not change the result.
            keys::require_unused(core, &core.sealing.current(), id).await?;
            wait_for_old_requests(core, json).await;
        }
        keys::retire(core, id).await?;
        let text = format!(
            "Sealing key {id} is no longer in the key file. Database backups from before the rewrap need the old file."
        );
        Ok(Output::with_text(json!({ "id": id, "retired": true }), text))
    }
}

/// Waits for requests that may have begun to seal before the key file changed.
async fn wait_for_old_requests(core: &Core, json: bool) {
    let needed = core.config.limits.request_timeout() + Duration::from_secs(2);
    let changed = std::fs::metadata(&core.config.keys_file).and_then(|about| about.modified());
    let age = changed.ok().and_then(|at: SystemTime| at.elapsed().ok()).unwrap_or_default();
    let Some(left) = needed.checked_sub(age) else { return };
    if !json {
        let seconds = left.as_secs() + 1;
        muster_printing::print_error(&format!("waiting {seconds} s for requests that may still use the key"));
    }
    tokio::time::sleep(left).await;
}
