//! `muster seed`.

use serde_json::json;

use super::{Cli, Failure, Output};
use crate::{
    base::time::Timestamp,
    core::access::Scope,
    domain::orgs,
    seed::{self, Volume},
};

/// Add plausible test data to an organization; the same options give the same data
///
/// The first conversation is the longest, the second half as long, and so on. Conversations need agents, and messages
/// need conversations.
#[derive(Debug, clap::Args)]
pub struct Seed {
    /// The organization's id or name
    #[arg(long)]
    org: String,
    /// Number of agents, with their servers, images, channels and contacts
    #[arg(long, value_name = "N", default_value_t = 0)]
    agents: u64,
    /// Number of conversations
    #[arg(long, value_name = "N", default_value_t = 0)]
    conversations: u64,
    /// Number of messages, in all conversations together
    #[arg(long, value_name = "N", default_value_t = 0)]
    messages: u64,
    /// Number of approvals, including questions and actions; one in three is pending
    #[arg(long, value_name = "N", default_value_t = 0)]
    approvals: u64,
    /// Number of members; no one can sign in as one of them
    #[arg(long, value_name = "N", default_value_t = 0)]
    members: u64,
    /// Put all messages into the first conversation, except for up to eight in each other one
    #[arg(long)]
    one_conversation: bool,
    /// All data lies before this instant
    #[arg(long, value_name = "TIMESTAMP", default_value = "2026-01-01T00:00:00Z")]
    until: Timestamp,
}

impl Seed {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        if self.agents == 0 && (self.conversations > 0 || self.approvals > 0) {
            return Err(Failure::invalid("conversations and approvals need agents: add --agents"));
        }
        if self.conversations == 0 && self.messages > 0 {
            return Err(Failure::invalid("messages need conversations: add --conversations"));
        }
        let core = cli.open().await?;
        let scope = Scope::system(&core, orgs::find(&core, &self.org).await?);
        let volume = Volume {
            agents: self.agents,
            conversations: self.conversations,
            messages: self.messages,
            approvals: self.approvals,
            members: self.members,
            one_conversation: self.one_conversation,
            at_rest: false,
            until: self.until,
        };
        let seeded = seed::run(&scope, volume).await?;
        core.shut_down().await;
        Ok(Output::from_json(json!(seeded)))
    }
}
