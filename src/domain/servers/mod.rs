//! Servers: the hosts that agents run on, and the images they run from.
//!
//! A server is PENDING until its host first connects, then ONLINE, DEGRADED or OFFLINE, depending on the connection. A
//! provisioning token lets a host join once. It is shown when issued and stored as a hash; issuing a new one
//! invalidates the old one and cuts off the host that used it. A host gets secrets once it is confirmed
//! (`confirming.rs`). Permissions: `server.*`, `image.*`.

mod confirming;
mod entity;
mod events;
mod images;
mod input;
mod rows;

use async_graphql::MaybeUndefined;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, IntoActiveModel, NotSet, PaginatorTrait, QueryFilter, QuerySelect, Set,
    Unchanged,
};
use secrecy::SecretString;
use serde_json::json;

pub use self::{
    confirming::{confirm_host, is_unconfirmed},
    events::{CountAgents, Deleted, ImageChanged},
    images::{
        LaunchedImage, add_first_image, archive_image, create_image, image_of, restore_image, update_image,
    },
    input::{CreateImageInput, CreateServerInput, Labels, UpdateImageInput, UpdateServerInput},
    rows::{image_is_usable, lock_existing},
};
use self::{entity::servers, rows::not_deleted};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind, ServerStatus},
        ids::ServerId,
        problem::{Code, Problem, Result},
    },
    core::{
        access::{
            Scope,
            token::{Token, TokenKind},
        },
        audit,
        handlers::{ask, emit},
        store::{Tx, for_update},
    },
    domain::{
        commands, edits,
        orgs::{self, Limit},
        patch::{patch, patch_required},
    },
};

/// How long a provisioning token is valid, because with a stolen one another host could join.
const PROVISIONING_TOKEN_TTL: std::time::Duration = std::time::Duration::from_hours(24);

/// Creates a server (specification, operation 2). The token in the answer is shown only once.
///
/// # Errors
/// `PLAN_LIMIT_REACHED`, `NAME_TAKEN`.
pub async fn create(scope: &Scope, new: CreateServerInput) -> Result<(ServerId, SecretString)> {
    let tx = scope.begin().await?;
    orgs::check_limit(&tx, Limit::Servers).await?;
    let name = new.name.trim().to_owned();
    require_free_name(&tx, &name, None).await?;
    let (token, hash) = Token::generate(TokenKind::Provisioning);
    let mut server = servers::ActiveModel {
        organization_id: Set(scope.org),
        id: NotSet,
        name: Set(name.clone()),
        description: Set(new.description),
        hostname: Set(new.hostname),
        address: Set(new.address),
        region: Set(new.region),
        labels: Set(json!(new.labels.unwrap_or_default().0)),
        status: Set(ServerStatus::Pending),
        provisioning_token_hash: Set(Some(hash.as_bytes().to_vec())),
        provisioning_token_expires_at: Set(Some(tx.now.plus(PROVISIONING_TOKEN_TTL))),
        created_by: Set(scope.request.caller.user()),
        created_at: Set(tx.now),
        updated_at: Set(tx.now),
        ..Default::default()
    };
    confirming::set_provisioning_author(&tx, &mut server);
    let server = server.insert(tx.connection()).await?;
    record(&tx, (ChangeOp::Created, "createServer"), server.id, json!({ "name": name }));
    tx.commit().await?;
    Ok((server.id, token))
}

/// Edits a server. An edit that changes nothing does nothing.
///
/// # Errors
/// `NOT_FOUND`, `NAME_TAKEN`.
pub async fn update(scope: &Scope, id: ServerId, edit: UpdateServerInput) -> Result<()> {
    let tx = scope.begin().await?;
    let before = load(&tx, id).await?;
    let mut server = before.clone().into_active_model();
    if let MaybeUndefined::Value(name) = &edit.name {
        require_free_name(&tx, name.trim(), Some(id)).await?;
    }
    patch_required(&mut server.name, edit.name.map_value(|name| name.trim().to_owned()));
    patch(&mut server.description, edit.description);
    patch(&mut server.hostname, edit.hostname);
    patch(&mut server.address, edit.address);
    patch(&mut server.region, edit.region);
    patch_required(&mut server.labels, edit.labels.map_value(|labels| json!(labels.0)));
    if !server.is_changed() {
        return Ok(());
    }
    server.updated_at = Set(tx.now);
    let changed = audit::changed(&before, &server);
    server.update(tx.connection()).await?;
    edits::raise(&tx, RecordKind::Server, id).await?;
    record(&tx, (ChangeOp::Updated, "updateServer"), id, changed);
    tx.commit().await
}

/// Issues a new provisioning token (specification, operation 3). The old one and the host's own token stop
/// working.
pub async fn regenerate_token(scope: &Scope, id: ServerId) -> Result<SecretString> {
    let tx = scope.begin().await?;
    let mut server = load(&tx, id).await?.into_active_model();
    let (token, hash) = Token::generate(TokenKind::Provisioning);
    server.provisioning_token_hash = Set(Some(hash.as_bytes().to_vec()));
    server.provisioning_token_expires_at = Set(Some(tx.now.plus(PROVISIONING_TOKEN_TTL)));
    confirming::set_provisioning_author(&tx, &mut server);
    cut_off(&tx, &mut server);
    server.updated_at = Set(tx.now);
    server.update(tx.connection()).await?;
    record(
        &tx,
        (ChangeOp::Updated, "regenerateProvisioningToken"),
        id,
        json!({ "provisioning_token": "changed" }),
    );
    tx.commit().await?;
    Ok(token)
}

/// Deletes a server that has no agents: hides it, frees its name, and locks its host out. The row stays, because
/// deleted agents and approvals refer to it. Pending commands for its host are dropped, and its alerts withdrawn.
///
/// # Errors
/// `NOT_FOUND`, `IN_USE`.
pub async fn delete(scope: &Scope, id: ServerId) -> Result<()> {
    let tx = scope.begin().await?;
    // The lock keeps agents from moving to the server: that locks it too ([`lock_existing`]).
    let found =
        not_deleted(scope).filter(servers::Column::Id.eq(id)).lock_exclusive().one(tx.connection()).await?;
    let server = found.ok_or_else(|| Problem::not_found("server", id))?;
    let agents = ask(&tx, CountAgents(id)).await?;
    if agents > 0 {
        let detail = format!("This server has agents ({agents}). Delete or move them first.");
        return Err(Problem::new(Code::InUse, detail).with("agents", agents));
    }
    commands::delete_of_server(&tx, id).await?;
    let name = server.name.clone();
    let mut server = server.into_active_model();
    // A name that starts with a space can't clash: names given by callers are trimmed.
    server.name = Set(format!(" {id}"));
    server.provisioning_token_hash = Set(None);
    server.provisioning_token_expires_at = Set(None);
    cut_off(&tx, &mut server);
    server.archived_at = Set(Some(tx.now));
    server.updated_at = Set(tx.now);
    server.update(tx.connection()).await?;
    emit(&tx, Deleted { server: id }).await?;
    record(&tx, (ChangeOp::Deleted, "deleteServer"), id, json!({ "name": name }));
    tx.commit().await
}

/// Invalidates the host's token and ends its connection on any replica: its epoch ends when the transaction commits.
fn cut_off(tx: &Tx, server: &mut servers::ActiveModel) {
    server.host_token_hash = Set(None);
    server.host_replica = Set(None);
    // The refusal was this host's.
    server.refused_code = Set(None);
    server.refused_reason = Set(None);
    server.refused_at = Set(None);
    if let (Unchanged(epoch), Unchanged(id)) = (&server.host_epoch, &server.id) {
        commands::wake_host(tx, *id);
        server.host_epoch = Set(epoch + 1);
    }
    if let Unchanged(ServerStatus::Online | ServerStatus::Degraded) = server.status {
        server.status = Set(ServerStatus::Offline);
    }
}

/// Loads the server and locks it until the transaction ends. After waiting for a deletion, it is not found.
async fn load(tx: &Tx, id: ServerId) -> Result<servers::Model> {
    let found = for_update(not_deleted(&tx.scope).filter(servers::Column::Id.eq(id)));
    found.one(tx.connection()).await?.ok_or_else(|| Problem::not_found("server", id))
}

async fn require_free_name(tx: &Tx, name: &str, except: Option<ServerId>) -> Result<()> {
    let mut same = not_deleted(&tx.scope).filter(servers::Column::Name.eq(name));
    if let Some(id) = except {
        same = same.filter(servers::Column::Id.ne(id));
    }
    if same.count(tx.connection()).await? == 0 { Ok(()) } else { Err(Problem::name_taken("server", name)) }
}

fn record(tx: &Tx, (op, operation): (ChangeOp, &'static str), id: ServerId, changes: serde_json::Value) {
    audit::record(tx, audit::Entry { operation, op, kind: RecordKind::Server, id: id.0, changes });
}
