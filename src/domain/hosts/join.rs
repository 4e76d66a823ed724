//! Joining: a server's provisioning token is exchanged, once, for a token that its host has generated.
//!
//! The author of the provisioning token decides whether the host is confirmed (`domain/servers/confirming.rs`). If it
//! is not, joining ends the launches with secrets that the previous host ran.

use std::net::IpAddr;
use std::sync::Arc;

use muster_protocol::join::{Join, Joined, Machine};
use serde_json::json;

use super::{
    parse_host_token,
    queries::{self, MachineFacts},
    readable, rejoin,
};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::ServerId,
        problem::{Code, Problem, Result},
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
    domain::{backups, launch},
};

/// Lets a host join the server of this provisioning token. The same host may ask again and gets the same answer. A host
/// that rejoins from its folder may present its own token instead.
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
    if let (Some(again), Ok(own)) = (&join.again, parse_host_token(token)) {
        return rejoin::rejoin_with_own_token(core, own, (join, again), (ip, request_id)).await;
    }
    let token = Token::parse_kind(TokenKind::Provisioning, token).ok_or_else(unknown_token)?.hash;
    let own = check_request(join)?;
    let found = queries::server_of_provisioning(core, token).await?.ok_or_else(unknown_token)?;
    let (org, server) = (found.organization_id, found.id);
    let scope = Scope::host(core, org, ip, request_id);
    let tx = scope.begin().await?;
    // Of two machines that join at once, only one wins.
    let before = queries::lock_server(&tx, server, token).await?.ok_or_else(unknown_token)?;
    let server_name = before.name.clone();
    let mut joined = Joined { organization_id: org.0, server_id: server.0, server_name, known: None };
    let is_same_machine = before.machine_id.as_deref() == Some(&join.machine.id);
    if let Some(taken_by) = before.host_token_hash.as_deref().and_then(TokenHash::from_slice) {
        let is_same = taken_by == own && is_same_machine;
        if !is_same || join.again.is_none() {
            tx.rollback().await?;
            return if is_same { Ok(joined) } else { Err(token_already_used(before.hostname.as_deref())) };
        }
    }
    if before.provisioning_token_expires_at.is_none_or(|at| at <= tx.now) {
        let detail =
            "The provisioning token has expired. Regenerate the server's token, and join with the new one.";
        return Err(Problem::new(Code::TokenExpired, detail));
    }
    let confirms = before.provisioning_confirms;
    store_joining(&tx, server, own, confirms).await?;
    store_host(&tx, server, own, &join.machine).await?;
    if let Some(again) = &join.again {
        joined.known = Some(rejoin::restart_numbering(&tx, server, again).await?);
    }
    if !is_same_machine {
        queries::reset_numbers(&tx, server).await?;
        if before.machine_id.is_some() {
            // Homes and backups stay on the previous machine, so their pending tasks fail.
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
            "host_confirmed": [false, confirms],
        }),
    };
    audit::record(&tx, entry);
    tx.commit().await?;
    if !confirms {
        launch::plans::withhold_all(&scope, server).await?;
    }
    Ok(joined)
}

/// Checks the request. Returns the hash of the host's own token.
pub(super) fn check_request(join: &Join) -> Result<TokenHash> {
    let id = &join.machine.id;
    let is_id = (1..=64).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if !is_id {
        let detail = "`machine.id` must be 1 to 64 letters, digits, `-` or `_`.";
        return Err(Problem::invalid_at("/machine/id", "NOT_ALLOWED", detail));
    }
    let token = Token::parse_kind(TokenKind::Host, join.host_token.expose());
    let token = token.ok_or_else(|| {
        let detail = "`host_token` must be a token of the form `mst_host_…`, with its checksum.";
        Problem::invalid_at("/host_token", "NOT_ALLOWED", detail)
    })?;
    Ok(token.hash)
}

/// Stores the host's token and its machine.
async fn store_host(tx: &Tx, server: ServerId, token: TokenHash, machine: &Machine) -> Result<()> {
    let hostname = readable(&machine.hostname, 255);
    queries::store_host(tx, server, token, (&machine.id, hostname), facts(machine)).await
}

/// Stores the address from which the host joins, and whether it is confirmed. A host that keeps its token keeps its
/// confirmation.
async fn store_joining(tx: &Tx, server: ServerId, token: TokenHash, confirms: bool) -> Result<()> {
    let from = tx.scope.request.ip.map(|ip| ip.to_string());
    queries::store_joining(tx, server, token, (from, confirms.then_some(tx.now))).await
}

/// A machine's facts as they are stored.
pub(super) fn facts(machine: &Machine) -> MachineFacts {
    // The schema shows them as `Int`.
    let size = |size: i64| Some(size).filter(|size| (1..=i64::from(i32::MAX)).contains(size));
    MachineFacts {
        os: readable(&machine.os, 64),
        arch: readable(&machine.arch, 64),
        cpu_cores: size(machine.cpu_cores),
        memory_mb: size(machine.memory_mb),
        disk_mb: size(machine.disk_mb),
        version: readable(&machine.version, 64),
    }
}

fn unknown_token() -> Problem {
    let detail = "This is not a valid provisioning token: it is mistyped, was regenerated, or its server was deleted. \
                  Regenerate the server's token, and join with the new one.";
    Problem::new(Code::Unauthenticated, detail)
}

fn token_already_used(hostname: Option<&str>) -> Problem {
    let hostname = hostname.unwrap_or("another machine");
    let detail = format!(
        "{hostname} has already joined with this token, which works once. To replace that machine, regenerate the \
         server's token, and join with the new one."
    );
    Problem::new(Code::Conflict, detail).with("hostname", hostname)
}
