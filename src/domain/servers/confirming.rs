//! Confirmation of hosts: only a confirmed host may hold secrets.
//!
//! A host is confirmed if its provisioning token was created by the operator (command line, demo, the service itself),
//! or by a person with the [`NEEDED`] permissions. Any other host waits until such a person confirms it. Service tokens
//! confirm nothing, and a host's facts about itself prove nothing. A host that keeps its token keeps its confirmation.

use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, PaginatorTrait, QueryFilter, Set};
use serde_json::json;

use super::{
    entity::servers::{self, ActiveModel},
    load, record,
    rows::not_deleted,
};
use crate::{
    base::{
        enums::ChangeOp,
        ids::ServerId,
        permission::Permission,
        problem::{Code, Problem, Result},
    },
    core::{
        access::{Caller, Scope},
        store::Tx,
    },
    domain::versions::Author,
};

/// The permissions of a person who confirms hosts.
const NEEDED: [Permission; 2] = [Permission::ServerEdit, Permission::CredentialEdit];

/// Stores the author of the server's provisioning token, and whether the token confirms its host.
pub(super) fn set_provisioning_author(tx: &Tx, server: &mut ActiveModel) {
    let author = Author::from_caller(tx);
    server.provisioned_by_kind = Set(Some(author.kind));
    server.provisioned_by_id = Set(author.id);
    server.provisioned_by_name = Set(Some(author.name));
    server.provisioning_confirms = Set(may_confirm(&tx.scope));
    server.host_confirmed_at = Set(None);
}

fn may_confirm(scope: &Scope) -> bool {
    let is_person_or_system = matches!(scope.request.caller, Caller::Person(_) | Caller::System);
    is_person_or_system && NEEDED.iter().all(|permission| scope.may(*permission))
}

/// Confirms the host that joined as the `join`th of this server. Does nothing if it is confirmed already.
/// [`launch::confirm_host`](crate::domain::launch::confirm_host) also starts the agents that waited for it.
///
/// # Errors
/// `PERMISSION_DENIED` for a service token, or without `credential.edit`; `NOT_FOUND`; `CONFLICT` if the server has
/// another host by now, or none.
pub async fn confirm_host(scope: &Scope, id: ServerId, join: i64) -> Result<()> {
    scope.person()?;
    for permission in NEEDED {
        scope.require(permission)?;
    }
    let tx = scope.begin().await?;
    let server = load(&tx, id).await?;
    if server.host_token_hash.is_none() || server.joins != join {
        let detail = "This host is no longer the server's. Review the one that has joined since.";
        return Err(Problem::new(Code::Conflict, detail).with("joins", server.joins));
    }
    if server.host_confirmed_at.is_none() {
        store_confirmation(tx, server).await?;
    } else {
        tx.rollback().await?;
    }
    Ok(())
}

async fn store_confirmation(tx: Tx, server: servers::Model) -> Result<()> {
    let id = server.id;
    let host = json!({ "hostname": server.hostname, "machine_id": server.machine_id, "joined_from": server.joined_from });
    let mut server = server.into_active_model();
    server.host_confirmed_at = Set(Some(tx.now));
    server.update(tx.connection()).await?;
    record(
        &tx,
        (ChangeOp::Updated, "confirmHost"),
        id,
        json!({ "host_confirmed": [false, true], "host": host }),
    );
    tx.commit().await
}

/// Whether the server has a host that is not confirmed.
pub async fn is_unconfirmed(tx: &Tx, id: ServerId) -> Result<bool> {
    use servers::Column::{HostConfirmedAt, HostTokenHash, Id};
    let found = not_deleted(&tx.scope).filter(Id.eq(id));
    let found = found.filter(HostTokenHash.is_not_null()).filter(HostConfirmedAt.is_null());
    Ok(found.count(tx.connection()).await? > 0)
}
