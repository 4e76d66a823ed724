//! Plausible data in bulk for one organization: for trying out, for benchmarks, for the demo.
//!
//! Deterministic: the same arguments on the same database give the same rows. The data is consistent: counts, last
//! messages, search index, states, and instants in order. Secrets are left out, because anyone could compute them.
//!
//! - `fleet.rs`: servers, images, agents, channels, contacts · `people.rs`: members · `asked.rs`: approvals
//! - `talk.rs`: the messages of a conversation · `threads.rs`: conversations with everything in them
//! - `bulk.rs`: bulk inserts

mod asked;
mod bulk;
mod fleet;
mod people;
mod talk;
mod threads;
mod turns;

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
    core::{access::Scope, audit, store::sql::installation_sql},
};

/// How much data to create.
#[derive(Clone, Copy, Debug)]
pub struct Volume {
    /// Agents, with a server for every 25 of them and one or two channels each.
    pub agents: u64,
    pub conversations: u64,
    /// Messages in all of them. The first conversation is the longest, the second half as long, and so on.
    pub messages: u64,
    /// Approvals; one in three is pending, and the first two are a question and an action.
    pub approvals: u64,
    /// Members, who can't sign in.
    pub members: u64,
    /// Puts all messages into the first conversation, except for up to eight in each other one.
    pub one_conversation: bool,
    /// Whether everything is at rest: agents are stopped, and the hosts of servers are away. For a service in use,
    /// where any other state would be untrue.
    pub at_rest: bool,
    /// The instant of the newest row; everything else is earlier.
    pub until: Timestamp,
}

/// The number of records created.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Seeded {
    pub servers: u64,
    pub agents: u64,
    pub channels: u64,
    pub contacts: u64,
    pub conversations: u64,
    pub messages: u64,
    pub approvals: u64,
    pub members: u64,
    /// The agent of the longest conversation.
    pub first_agent: Option<i64>,
    pub first_conversation: Option<i64>,
}

/// Adds data to the scope's organization. Conversations need agents, and messages need conversations: if the volume has
/// none of one, none of the other are created.
///
/// Messages are committed in batches, so that no reader waits for the end. An interrupted run leaves complete messages
/// and correct counts behind.
///
/// # Errors
/// The database refused, or the connection was lost.
pub async fn run(scope: &Scope, volume: Volume) -> anyhow::Result<Seeded> {
    let random = Random::new(&[volume.agents, volume.conversations, volume.messages, volume.approvals]);
    let mut bulk = Bulk::begin(&scope.core.db).await?;
    let fleet = fleet::create(&mut bulk, scope.org, &volume, random.clone()).await?;
    let members = people::create(&mut bulk, scope.org, &volume, random.clone()).await?;
    bulk.commit().await?;
    let mut seeded = threads::create(&scope.core.db, scope.org, &volume, &fleet, random).await?;
    seeded.members = members;
    seeded.servers = fleet.servers;
    seeded.agents = fleet.agents.len() as u64;
    seeded.channels = fleet.channels.len() as u64;
    seeded.contacts = fleet.contacts.len() as u64;
    let mut bulk = Bulk::begin(&scope.core.db).await?;
    // Otherwise the query planner would notice the new sizes much later.
    bulk.run(installation_sql!("ANALYZE"), []).await?;
    if scope.core.db.backend() == DbBackend::Sqlite {
        // As the job `search.merge` would do soon.
        let merge = installation_sql!("INSERT INTO messages_fts (messages_fts) VALUES ('optimize')");
        bulk.run(merge, []).await?;
    }
    bulk.commit().await?;
    record_seed(scope, &seeded).await.map_err(|problem| anyhow::anyhow!(problem.detail))?;
    Ok(seeded)
}

async fn record_seed(scope: &Scope, seeded: &Seeded) -> crate::base::problem::Result<()> {
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
