//! Rejoining: a backup was restored on one side, which no longer knows what the other side knows. The host's owner
//! decides to rejoin, with the host's own token or a new provisioning token (`join.rs`). It stays the same host, with
//! its homes and backups; commands and events are counted from one again, and pending backups and restores fail.

use std::{net::IpAddr, sync::Arc};

use muster_protocol::join::{FolderState, Join, Joined, KnownAgent, KnownState, MAX_AGENTS};
use serde_json::json;

use super::{identify, join, link::unknown_host, queries};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::ServerId,
        problem::{Problem, Result},
    },
    core::{
        Core,
        access::{Scope, token::TokenHash},
        audit,
        store::Tx,
    },
    domain::{backups, commands},
};

/// Lets the host that has this token rejoin. Repeating the request is harmless.
///
/// # Errors
/// `UNAUTHENTICATED` for a token that is not, or no longer, this host's; `VALIDATION_FAILED`.
pub(super) async fn rejoin_with_own_token(
    core: &Arc<Core>,
    token: TokenHash,
    (asked, again): (&Join, &FolderState),
    (ip, request_id): (Option<IpAddr>, &str),
) -> Result<Joined> {
    join::check_request(asked)?;
    let who = identify(core, token).await?;
    let tx = Scope::host(core, who.org, ip, request_id).begin().await?;
    // Its present connection ends.
    let server_name = queries::end_connection(&tx, who.server, token, &asked.machine.id).await?;
    let server_name = server_name.ok_or_else(unknown_host)?;
    let known = restart_numbering(&tx, who.server, again).await?;
    commands::wake_host(&tx, who.server);
    let entry = audit::Entry {
        operation: "rejoinServer",
        op: ChangeOp::Updated,
        kind: RecordKind::Server,
        id: who.server.0,
        changes: json!({
            "commands": [known.commands, again.commands], "events": [known.events, again.acknowledged],
        }),
    };
    audit::record(&tx, entry);
    tx.commit().await?;
    let (organization_id, server_id) = (who.org.0, who.server.0);
    Ok(Joined { organization_id, server_id, server_name, known: Some(known) })
}

/// Counts commands and events from one again, and returns what was known of the host before. The server is locked.
///
/// # Errors
/// `VALIDATION_FAILED` for a folder with too many agents.
pub(super) async fn restart_numbering(tx: &Tx, server: ServerId, again: &FolderState) -> Result<KnownState> {
    if again.agents.len() > MAX_AGENTS {
        let detail = format!("`again.agents` may have at most {MAX_AGENTS} items.");
        return Err(Problem::invalid_at("/again/agents", "TOO_LONG", detail));
    }
    let numbers = queries::numbers(tx, server).await?.ok_or_else(unknown_host)?;
    let agents = known_agents(tx, server, &again.agents).await?;
    queries::reset_numbers(tx, server).await?;
    backups::host_begins_again(tx, server).await?;
    Ok(KnownState { agents, commands: numbers.command_seq, events: numbers.event_seq })
}

/// Those of these agents that the organization has or had, on any server. Only agents on this server have a name,
/// because the host may not be confirmed.
async fn known_agents(tx: &Tx, server: ServerId, ids: &[i64]) -> Result<Vec<KnownAgent>> {
    let found = queries::known_agents(tx, server, ids).await?.into_iter();
    let known = found.map(|agent| KnownAgent {
        agent_id: agent.id,
        created_at: agent.created_at,
        name: agent.name,
        generation: agent.launch_generation,
    });
    Ok(known.collect())
}
