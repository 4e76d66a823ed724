//! The network: hosts that agents may reach through their host's proxy, and refused connections.
//!
//! The list of allowed hosts is the organization's. Besides them, an agent reaches only its model and its MCP servers;
//! destinations of its credentials must be on the list too. Permissions: `organization.view` reads, `network.edit`
//! changes.

mod blocked_hosts;
mod entity;
mod host;
mod input;
mod queries;

use muster_protocol::plan::Destination;
use sea_orm::{ActiveModelTrait, ColumnTrait, NotSet, PaginatorTrait, QueryFilter, QueryOrder, Set};
use serde_json::{Value, json};

use self::entity::allowed_hosts;
pub use self::{
    blocked_hosts::record_unreached,
    host::{covers, reaches},
    input::AllowHostInput,
};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::{AllowedHostId, ApprovalId},
        permission::Permission,
        problem::{Problem, Result},
    },
    core::{
        access::Scope,
        audit,
        handlers::{DomainEvent, emit},
        store::Tx,
    },
    domain::{agents, orgs},
};

/// A host was allowed.
#[derive(Debug)]
pub struct Allowed {
    /// As it is on the list.
    pub host: String,
    pub port: i64,
    /// The agent's request for it.
    pub approval: Option<ApprovalId>,
}

impl DomainEvent for Allowed {}

/// The maximum number of entries of a list, because hosts receive all of them in one frame of the protocol.
const MOST: u64 = 500;

/// Allows agents to reach a host, and approves the request for it. If the host is on the list, only approves the
/// request.
///
/// # Errors
/// `VALIDATION_FAILED` for an invalid name, for a full list, and for an approval that asks for something else;
/// `NOT_FOUND`, `APPROVAL_NOT_PENDING`, `PERMISSION_DENIED` for the approval.
pub async fn allow(scope: &Scope, input: AllowHostInput) -> Result<()> {
    let host = host::normalize("/host", &input.host)?;
    if input.approval_id.is_some() {
        scope.require(Permission::ApprovalResolve)?;
    }
    let tx = scope.begin().await?;
    orgs::lock(&tx).await?;
    if !is_listed(&tx, &host, input.port).await? {
        insert_entry(&tx, &host, input.port).await?;
    }
    emit(&tx, Allowed { host, port: input.port, approval: input.approval_id }).await?;
    tx.commit().await
}

async fn insert_entry(tx: &Tx, host: &str, port: i64) -> Result<()> {
    if tx.scope.find::<allowed_hosts::Entity>().count(tx.connection()).await? >= MOST {
        let detail = format!("The list has {MOST} hosts already. Remove one first.");
        return Err(Problem::invalid_at("/host", "TOO_MANY", detail));
    }
    let caller = &tx.scope.request.caller;
    let row = allowed_hosts::ActiveModel {
        organization_id: Set(tx.scope.org),
        id: NotSet,
        host: Set(host.to_owned()),
        port: Set(port),
        created_by: Set(caller.user()),
        created_by_name: Set(caller.name().to_owned()),
        created_at: Set(tx.now),
    };
    row.insert(tx.connection()).await?;
    record_change(tx, "allowHost", json!({ "allowed_host": [Value::Null, format!("{host}:{port}")] })).await
}

/// Removes an entry of the list.
pub async fn remove(scope: &Scope, id: AllowedHostId) -> Result<()> {
    let tx = scope.begin().await?;
    orgs::lock(&tx).await?;
    let found = scope.find::<allowed_hosts::Entity>().filter(allowed_hosts::Column::Id.eq(id));
    let found = found.one(tx.connection()).await?;
    let found = found.ok_or_else(|| Problem::not_found("allowed host", id))?;
    let gone = scope.delete::<allowed_hosts::Entity>().filter(allowed_hosts::Column::Id.eq(id));
    gone.exec(tx.connection()).await?;
    let entry = format!("{}:{}", found.host, found.port);
    record_change(&tx, "removeAllowedHost", json!({ "allowed_host": [entry, Value::Null] })).await?;
    tx.commit().await
}

async fn record_change(tx: &Tx, operation: &'static str, changes: Value) -> Result<()> {
    let (op, kind, id) = (ChangeOp::Updated, RecordKind::Organization, tx.scope.org.0);
    audit::record(tx, audit::Entry { operation, op, kind, id, changes });
    agents::mark_all(tx).await
}

async fn is_listed(tx: &Tx, host: &str, port: i64) -> Result<bool> {
    let found = tx.scope.find::<allowed_hosts::Entity>().filter(allowed_hosts::Column::Host.eq(host));
    let found = found.filter(allowed_hosts::Column::Port.eq(port));
    Ok(found.count(tx.connection()).await? > 0)
}

/// The list in the form that hosts receive.
pub async fn allowed(tx: &Tx) -> Result<Vec<Destination>> {
    let found = tx.scope.find::<allowed_hosts::Entity>();
    let found = found.order_by_asc(allowed_hosts::Column::Host).order_by_asc(allowed_hosts::Column::Port);
    let found = found.all(tx.connection()).await?;
    let entry = |row: allowed_hosts::Model| {
        let port = u16::try_from(row.port).map_err(Problem::internal)?;
        Ok(Destination { host: row.host, port })
    };
    found.into_iter().map(entry).collect()
}
