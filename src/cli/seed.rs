//! `muster seed`.

use serde_json::json;

use super::{Cli, Failure, Output};
use crate::{
    base::time::Timestamp,
    core::access::Scope,
    seed::{self, Volume},
    slices::orgs,
};

/// Add plenty of plausible data to an organization: the same for the same numbers
///
/// The first conversation is the longest, the second half as long, and so on. Agents come first: without them
/// there are no conversations, and without conversations no messages.
#[derive(Debug, clap::Args)]
pub struct Seed {
    /// The organization: its id or its name
    #[arg(long)]
    org: String,
    /// How many agents, with servers, images, channels and contacts around them
    #[arg(long, value_name = "N", default_value_t = 0)]
    agents: u64,
    /// How many conversations
    #[arg(long, value_name = "N", default_value_t = 0)]
    conversations: u64,
    /// How many messages, in all conversations together
    #[arg(long, value_name = "N", default_value_t = 0)]
    messages: u64,
    /// How many approvals, questions and actions among them; one in three waits
    #[arg(long, value_name = "N", default_value_t = 0)]
    approvals: u64,
    /// Give all messages to the first conversation, but for up to eight in each other one
    #[arg(long)]
    one_conversation: bool,
    /// The instant that all of it happened before
    #[arg(long, value_name = "TIMESTAMP", default_value = "2026-01-01T00:00:00Z")]
    until: Timestamp,
}

impl Seed {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        if self.agents == 0 && (self.conversations > 0 || self.approvals > 0) {
            return Err(Failure::new("conversations and approvals need agents: add --agents"));
        }
        if self.conversations == 0 && self.messages > 0 {
            return Err(Failure::new("messages need conversations: add --conversations"));
        }
        let core = cli.open().await?;
        let scope = Scope::system(&core, orgs::find(&core, &self.org).await?);
        let volume = Volume {
            agents: self.agents,
            conversations: self.conversations,
            messages: self.messages,
            approvals: self.approvals,
            one_conversation: self.one_conversation,
            until: self.until,
        };
        let seeded = seed::run(&scope, volume).await?;
        core.shut_down().await;
        Ok(Output::of(json!(seeded)))
    }
}
