//! `muster message …`.

use std::collections::HashSet;

use clap::Subcommand;
use serde_json::json;

use super::{Cli, Failure, Output, output::table};
use crate::{
    base::{
        ids::{ChannelId, ConversationId, MessageId},
        numerals::with_noun,
    },
    domain::{
        conversations::{self, Reread, RereadFilter},
        orgs,
    },
};

/// Manage messages
#[derive(Debug, Subcommand)]
pub enum Message {
    /// Reread the mails whose source is kept (email.keep_source), and correct the text of those that were misread
    Reread(RereadArgs),
}

#[derive(Debug, clap::Args)]
pub struct RereadArgs {
    /// Only of the organization with this id or name
    #[arg(long)]
    org: Option<String>,
    /// Only messages from the channel with this id
    #[arg(long, value_name = "ID", value_parser = super::read_id)]
    channel: Option<i64>,
    /// Only in the conversation with this id
    #[arg(long, value_name = "ID", value_parser = super::read_id)]
    conversation: Option<i64>,
    /// Print the changes without making them
    #[arg(long)]
    dry_run: bool,
    /// The ids of messages [default: all that are kept]
    #[arg(value_name = "MESSAGE", value_parser = super::read_id)]
    messages: Vec<i64>,
}

impl Message {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        match self {
            Self::Reread(command) => command.run(cli).await,
        }
    }
}

impl RereadArgs {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let core = cli.open().await?;
        let org = match &self.org {
            Some(org) => Some(orgs::find(&core, org).await?),
            None => None,
        };
        let wanted = RereadFilter {
            org,
            channel: self.channel.map(ChannelId),
            conversation: self.conversation.map(ConversationId),
            messages: self.messages.iter().copied().map(MessageId).collect(),
        };
        let read = conversations::reread(&core, &wanted, self.dry_run).await?;
        core.shut_down().await;
        let found: HashSet<_> = read.iter().map(|message| message.id).collect();
        let missing: Vec<_> = wanted.messages.into_iter().filter(|id| !found.contains(id)).collect();
        Ok(report(&read, &missing, self.dry_run))
    }
}

/// The result for each message. Messages without a stored source are `missing`.
fn report(read: &[Reread], missing: &[MessageId], dry_run: bool) -> Output {
    let changed = read.iter().filter(|message| message.changed).count();
    let is_bad = !missing.is_empty() || read.iter().any(|message| message.error.is_some());
    let rows: Vec<_> = read.iter().map(|message| row(message, dry_run)).collect();
    let mut text = String::new();
    if !rows.is_empty() {
        text = table(["message", "conversation", "result", "before", "now"], &rows);
    }
    for id in missing {
        text.push_str(&format!("The source of message {id} is not kept.\n"));
    }
    let all = with_noun(i64::try_from(read.len()).unwrap_or(i64::MAX), "message");
    let verb = if dry_run { "would change" } else { "changed" };
    text.push_str(&format!("{all} read; {changed} {verb}."));
    let json = json!({ "messages": read, "changed": changed, "not_kept": missing, "dry_run": dry_run });
    Output::with_text(json, text).failed_if(is_bad)
}

fn row(message: &Reread, dry_run: bool) -> [String; 5] {
    let result = match &message.error {
        Some(why) => format!("not read: {why}"),
        None if message.changed && dry_run => "would change".to_owned(),
        None if message.changed => "changed".to_owned(),
        None => "same".to_owned(),
    };
    let now = if message.changed { shown(&message.after) } else { String::new() };
    [message.id.to_string(), message.conversation_id.to_string(), result, shown(&message.before), now]
}

/// The beginning of a text, as much as fits into a line of the table.
fn shown(words: &str) -> String {
    match words.char_indices().nth(48) {
        Some((end, _)) => format!("{}…", words[..end].trim_end_matches([' ', '…'])),
        None => words.to_owned(),
    }
}
