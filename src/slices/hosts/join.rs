//! Joining: a server's provisioning token is exchanged, once, for the token that its host has made.
//!
//! Who made the provisioning token decides whether the host is confirmed (`slices/servers/confirming.rs`). If it is not, the launches
//! whose secrets the host before it had end here.

use std::net::IpAddr;
use std::sync::Arc;

use muster_protocol::join::{Join, Joined, Machine};
use sea_orm::Value;
use serde_json::json;

use super::{readable, recognize, rejoin, rows, write};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::{OrgId, ServerId},
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{
        Core,
        access::{
            Scope,
            token::{Token, TokenHash, TokenKind},
        },
        audit,
        store::Tx,
    },
    slices::{agents, backups},
};

/// The longest name of a host's folder.
const LONGEST_ID: usize = 64;

/// Lets a host join the server of this provisioning token. The same host may ask again and gets the same answer. One that
/// begins again in its folder may show its own token instead.
///
/// # Errors
/// `UNAUTHENTICATED` for an unknown or replaced token, `TOKEN_EXPIRED`, `VALIDATION_FAILED`; `CONFLICT` if another
/// machine has joined with it.
pub async fn join(
    core: &Arc<Core>,
    token: &str,
    join: &Join,
    (ip, request_id): (Option<IpAddr>, &str),
) -> Result<Joined> {
    if let (Some(again), Ok(own)) = (&join.again, recognize(token)) {
        return rejoin::by_own_token(core, own, (join, again), (ip, request_id)).await;
    }
    let token = Token::parse_kind(TokenKind::Provisioning, token).ok_or_else(unknown)?.hash;
    let own = check(join)?;
    let sql =
        "SELECT organization_id, id FROM servers WHERE provisioning_token_hash = $1 AND archived_at IS NULL";
    let found =
        core.db.one(sql.to_owned(), vec![token.as_bytes().to_vec().into()]).await?.ok_or_else(unknown)?;
    let (org, server): (OrgId, ServerId) = (found.try_get_by("organization_id")?, found.try_get_by("id")?);
    let scope = Scope::host(core, org, ip, request_id);
    let tx = scope.begin().await?;
    let before = Before::hold(&tx, server, token).await?.ok_or_else(unknown)?;
    let server_name = before.server_name.clone();
    let mut joined = Joined { organization_id: org.0, server_id: server.0, server_name, known: None };
    let is_same_machine = before.machine_id.as_deref() == Some(&join.machine.id);
    if let Some(taken_by) = &before.host_token {
        let is_same = *taken_by == own && is_same_machine;
        if !is_same || join.again.is_none() {
            tx.rollback().await?;
            return if is_same { Ok(joined) } else { Err(taken(before.hostname.as_deref())) };
        }
    }
    if before.expires_at.is_none_or(|at| at <= tx.now) {
        let detail =
            "The provisioning token has expired. Regenerate the server's token, and join with the new one.";
        return Err(Problem::new(Code::TokenExpired, detail));
    }
    vouch(&tx, server, own, before.confirms).await?;
    take(&tx, server, own, &join.machine).await?;
    if let Some(again) = &join.again {
        joined.known = Some(rejoin::begin(&tx, server, again).await?);
    }
    if !is_same_machine {
        rejoin::begin_again(&tx, server).await?;
        if before.machine_id.is_some() {
            // Homes and backups stay on the machine before, and so does what was to be done with them.
            backups::machine_replaced(&tx, server).await?;
        }
    }
    let hostname = readable(&join.machine.hostname, 255);
    let entry = audit::Entry {
        operation: "joinServer",
        op: ChangeOp::Updated,
        kind: RecordKind::Server,
        id: server.0,
        changes: json!({
            "hostname": [before.hostname, hostname], "machine_id": [before.machine_id, join.machine.id],
            "host_confirmed": [false, before.confirms],
        }),
    };
    audit::record(&tx, entry);
    tx.commit().await?;
    if !before.confirms {
        agents::plans::withhold_all(&scope, server).await?;
    }
    Ok(joined)
}

/// The hash of the host's own token, if the request makes sense.
pub(super) fn check(join: &Join) -> Result<TokenHash> {
    let id = &join.machine.id;
    let is_id = (1..=LONGEST_ID).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if !is_id {
        let detail = format!("`machine.id` must be 1 to {LONGEST_ID} letters, digits, `-` or `_`.");
        return Err(Problem::invalid_at("/machine/id", "NOT_ALLOWED", detail));
    }
    let token = Token::parse_kind(TokenKind::Host, join.host_token.expose());
    let token = token.ok_or_else(|| {
        let detail = "`host_token` must be a token of the form `mst_host_…`, with its checksum.";
        Problem::invalid_at("/host_token", "NOT_ALLOWED", detail)
    })?;
    Ok(token.hash)
}

/// What the server's row said before.
struct Before {
    server_name: String,
    expires_at: Option<Timestamp>,
    host_token: Option<TokenHash>,
    machine_id: Option<String>,
    hostname: Option<String>,
    /// Whether the maker of the provisioning token vouches for the host.
    confirms: bool,
}

impl Before {
    /// Locks the row: of two machines that join at once, only one wins.
    async fn hold(tx: &Tx, server: ServerId, token: TokenHash) -> Result<Option<Self>> {
        let sql = "UPDATE servers SET host_epoch = host_epoch WHERE organization_id = $1 AND id = $2 \
                   AND provisioning_token_hash = $3 RETURNING name, provisioning_token_expires_at, host_token_hash, \
                   machine_id, hostname, provisioning_confirms";
        let values = vec![tx.scope.org.into(), server.into(), token.as_bytes().to_vec().into()];
        let Some(row) = rows(tx, sql, values).await?.into_iter().next() else { return Ok(None) };
        let host_token: Option<Vec<u8>> = row.try_get_by("host_token_hash")?;
        Ok(Some(Self {
            server_name: row.try_get_by("name")?,
            expires_at: row.try_get_by("provisioning_token_expires_at")?,
            host_token: host_token.and_then(|bytes| TokenHash::from_slice(&bytes)),
            machine_id: row.try_get_by("machine_id")?,
            hostname: row.try_get_by("hostname")?,
            confirms: row.try_get_by("provisioning_confirms")?,
        }))
    }
}

/// Stores the host's token and its machine.
async fn take(tx: &Tx, server: ServerId, token: TokenHash, machine: &Machine) -> Result<()> {
    let sql = "UPDATE servers SET host_token_hash = $3, machine_id = $4, hostname = $5, os = $6, arch = $7, \
               cpu_cores = $8, memory_mb = $9, disk_mb = $10, version = $11, provisioned_at = $12, updated_at = $12 \
               WHERE organization_id = $1 AND id = $2";
    let mut values: Vec<Value> = vec![tx.scope.org.into(), server.into(), token.as_bytes().to_vec().into()];
    values.extend([machine.id.clone().into(), readable(&machine.hostname, 255).into()]);
    values.extend(self::machine(machine));
    values.push(tx.now.into());
    write(tx, sql, values).await?;
    Ok(())
}

/// Notes from where the host joins, and whether it is confirmed. One that keeps its token keeps its confirmation.
async fn vouch(tx: &Tx, server: ServerId, token: TokenHash, confirms: bool) -> Result<()> {
    let sql = "UPDATE servers SET joins = joins + 1, joined_from = $3, host_confirmed_at = $4 \
               WHERE organization_id = $1 AND id = $2 AND (host_token_hash IS NULL OR host_token_hash <> $5)";
    let from = tx.scope.request.ip.map(|ip| ip.to_string());
    let confirmed = confirms.then_some(tx.now);
    let mut values: Vec<Value> = vec![tx.scope.org.into(), server.into(), from.into(), confirmed.into()];
    values.push(token.as_bytes().to_vec().into());
    write(tx, sql, values).await?;
    Ok(())
}

/// The values of os, arch, cpu_cores, memory_mb, disk_mb, version.
pub(super) fn machine(machine: &Machine) -> [Value; 6] {
    // The schema shows them as `Int`.
    let size = |size: i64| Some(size).filter(|size| (1..=i64::from(i32::MAX)).contains(size));
    [
        readable(&machine.os, 64).into(),
        readable(&machine.arch, 64).into(),
        size(machine.cpu_cores).into(),
        size(machine.memory_mb).into(),
        size(machine.disk_mb).into(),
        readable(&machine.version, 64).into(),
    ]
}

fn unknown() -> Problem {
    let detail = "This is not a valid provisioning token: it is mistyped, was regenerated, or its server was deleted. \
                  Regenerate the server's token, and join with the new one.";
    Problem::new(Code::Unauthenticated, detail)
}

fn taken(hostname: Option<&str>) -> Problem {
    let hostname = hostname.unwrap_or("another machine");
    let detail = format!(
        "{hostname} has already joined with this token, which works once. To replace that machine, regenerate the \
         server's token, and join with the new one."
    );
    Problem::new(Code::Conflict, detail).with("hostname", hostname)
}
