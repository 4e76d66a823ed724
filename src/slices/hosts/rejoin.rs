//! A host begins again in its folder: a backup was restored on either side, so that one of both has forgotten what the other
//! knows. The host's operator decides it, with the host's own token or a new provisioning token (`join.rs`). It stays the same
//! host, with its homes and backups; commands and events are counted from one again, and what was under way is over.

use std::{net::IpAddr, sync::Arc};

use muster_protocol::join::{Again, Join, Joined, Known, KnownAgent, MOST_AGENTS};
use serde_json::json;

use super::{identify, join, rows, unknown, write};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::ServerId,
        problem::{Problem, Result},
    },
    core::{
        Core,
        access::{Scope, token::TokenHash},
        audit, outbox,
        store::Tx,
    },
    slices::backups,
};

/// Lets the host that has this token begin again. Asked twice, it begins again twice, which changes nothing more.
///
/// # Errors
/// `UNAUTHENTICATED` for a token that is not, or no longer, this host's; `VALIDATION_FAILED`.
pub(super) async fn by_own_token(
    core: &Arc<Core>,
    token: TokenHash,
    (asked, again): (&Join, &Again),
    (ip, request_id): (Option<IpAddr>, &str),
) -> Result<Joined> {
    join::check(asked)?;
    let who = identify(core, token).await?;
    let tx = Scope::host(core, who.org, ip, request_id).begin().await?;
    // The connection that it has is over.
    let sql = "UPDATE servers SET host_epoch = host_epoch + 1, host_replica = NULL, refused_code = NULL, \
               refused_reason = NULL, refused_at = NULL WHERE organization_id = $1 AND id = $2 AND host_token_hash = $3 \
               AND machine_id = $4 AND archived_at IS NULL RETURNING name";
    let values = vec![
        who.org.into(),
        who.server.into(),
        token.as_bytes().to_vec().into(),
        asked.machine.id.clone().into(),
    ];
    let held = rows(&tx, sql, values).await?;
    let server_name = held.first().ok_or_else(unknown)?.try_get_by("name")?;
    let known = begin(&tx, who.server, again).await?;
    outbox::wake_host(&tx, who.server);
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

/// Begins again, and says what was known of the host until now. Its server is held.
///
/// # Errors
/// `VALIDATION_FAILED` for a folder with too many agents.
pub(super) async fn begin(tx: &Tx, server: ServerId, again: &Again) -> Result<Known> {
    if again.agents.len() > MOST_AGENTS {
        let detail = format!("`again.agents` may have at most {MOST_AGENTS} items.");
        return Err(Problem::invalid_at("/again/agents", "TOO_LONG", detail));
    }
    let sql = "SELECT command_seq, event_seq FROM servers WHERE organization_id = $1 AND id = $2";
    let found = rows(tx, sql, vec![tx.scope.org.into(), server.into()]).await?;
    let numbers = found.first().ok_or_else(unknown)?;
    let (commands, events) = (numbers.try_get_by("command_seq")?, numbers.try_get_by("event_seq")?);
    let agents = agents(tx, server, &again.agents).await?;
    begin_again(tx, server).await?;
    backups::host_begins_again(tx, server).await?;
    Ok(Known { agents, commands, events })
}

/// Those of these agents that the organization has or had, wherever they are now. Names are of agents on this server only: the
/// host need not be confirmed.
async fn agents(tx: &Tx, server: ServerId, ids: &[i64]) -> Result<Vec<KnownAgent>> {
    let db = &tx.scope.core.db;
    let sql = format!(
        "SELECT id, created_at, CASE WHEN server_id = $3 THEN name END AS name, launch_generation FROM agents \
         WHERE organization_id = $1 AND id {} ORDER BY id",
        db.is_among()
    );
    let found = rows(tx, &sql, vec![tx.scope.org.into(), db.keys(ids), server.into()]).await?;
    let known = found.iter().map(|row| {
        Ok(KnownAgent {
            agent_id: row.try_get_by("id")?,
            created_at: row.try_get_by("created_at")?,
            name: row.try_get_by("name")?,
            generation: row.try_get_by("launch_generation")?,
        })
    });
    known.collect()
}

/// The journal is an empty one: commands and events are counted from one again, and what was not received yet is sent once more.
///
/// # Errors
/// The database rejects a statement.
pub(super) async fn begin_again(tx: &Tx, server: ServerId) -> Result<()> {
    let own = || vec![tx.scope.org.into(), server.into()];
    let sql = "UPDATE servers SET command_seq = 0, command_ack = 0, event_seq = 0 WHERE organization_id = $1 AND id = $2";
    write(tx, sql, own()).await?;
    let sql = "UPDATE outbox SET host_seq = NULL WHERE organization_id = $1 AND server_id = $2 AND acknowledged_at IS NULL";
    write(tx, sql, own()).await?;
    Ok(())
}
