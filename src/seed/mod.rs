//! Plenty of plausible data for one organization: for trying out, for measuring, for the demonstration.
//!
//! Deterministic: equal arguments on equal databases give equal rows. What belongs together fits together:
//! counts, last messages, search index, states, instants that follow each other. Secrets are left out, since
//! numbers that anybody can compute are none.
//!
//! - `fleet.rs`: servers, images, agents, channels, contacts · `asked.rs`: approvals
//! - `talk.rs`: what is said in a conversation · `threads.rs`: conversations with all that
//! - `bulk.rs`: rows into the database, many at once

mod asked;
mod bulk;
mod fleet;
mod talk;
mod threads;

use muster_corpus::Random;
use sea_orm::DbBackend;
use serde::Serialize;
use serde_json::json;

use self::bulk::Bulk;
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        time::Timestamp,
    },
    core::{access::Scope, audit},
};

/// How much data.
#[derive(Clone, Copy, Debug)]
pub struct Volume {
    /// Agents, with a server for each 25 of them and one or two channels each.
    pub agents: u64,
    /// Conversations.
    pub conversations: u64,
    /// Messages in all of them. The first conversation is the longest, the second half as long, and so on.
    pub messages: u64,
    /// Approvals; one in three waits, and the first two are a question and an action.
    pub approvals: u64,
    /// Gives all messages to the first conversation, but for up to eight in each other one.
    pub one_conversation: bool,
    /// When the youngest row was made; everything else lies before.
    pub until: Timestamp,
}

/// What was made.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Seeded {
    /// Servers.
    pub servers: u64,
    /// Agents.
    pub agents: u64,
    /// Channels.
    pub channels: u64,
    /// Contacts.
    pub contacts: u64,
    /// Conversations.
    pub conversations: u64,
    /// Messages.
    pub messages: u64,
    /// Approvals.
    pub approvals: u64,
    /// The agent of the longest conversation.
    pub first_agent: Option<i64>,
    /// The longest conversation.
    pub first_conversation: Option<i64>,
}

/// Adds data to the scope's organization. Needs agents for conversations, and conversations for messages: a
/// volume that has none of the one makes none of the other.
///
/// Messages are committed in parts, so that no reader waits for the end; a run that is interrupted leaves
/// whole messages and right counts behind.
///
/// # Errors
/// The database refused or was lost.
pub async fn run(scope: &Scope, volume: Volume) -> anyhow::Result<Seeded> {
    let random = Random::new(&[volume.agents, volume.conversations, volume.messages, volume.approvals]);
    let mut bulk = Bulk::begin(&scope.core.db).await?;
    let fleet = fleet::make(&mut bulk, scope.org, &volume, random.clone()).await?;
    bulk.commit().await?;
    let mut seeded = threads::make(&scope.core.db, scope.org, &volume, &fleet, random).await?;
    seeded.servers = fleet.servers;
    seeded.agents = fleet.agents.len() as u64;
    seeded.channels = fleet.channels.len() as u64;
    seeded.contacts = fleet.contacts.len() as u64;
    let mut bulk = Bulk::begin(&scope.core.db).await?;
    // The planner chooses by numbers that would otherwise be noticed much later.
    bulk.run("ANALYZE", vec![]).await?;
    if scope.core.db.backend() == DbBackend::Sqlite {
        // As the round `search.merge` would do it before long.
        bulk.run("INSERT INTO messages_fts (messages_fts) VALUES ('optimize')", vec![]).await?;
    }
    bulk.commit().await?;
    note(scope, &seeded).await.map_err(|problem| anyhow::anyhow!(problem.detail))?;
    Ok(seeded)
}

async fn note(scope: &Scope, seeded: &Seeded) -> crate::base::problem::Result<()> {
    let tx = scope.begin().await?;
    let entry = audit::Entry {
        operation: "seed",
        op: ChangeOp::Updated,
        kind: RecordKind::Organization,
        id: scope.org.0,
        changes: json!(seeded),
    };
    audit::record(&tx, entry);
    tx.commit().await
}
