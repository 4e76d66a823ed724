//! Whether the author of a chat message may decide. Reads the database each time, not a cache.

use std::sync::Arc;

use super::queries::{Linker, linker, linker_of_origin};
use crate::{
    base::{
        enums::DecidedVia,
        ids::{ChannelId, OrgId, UserId},
        permission::Permission,
        problem::Result,
    },
    core::{
        Core, Request,
        access::{Caller, LinkedChat, Membership, Scope},
        store::Tx,
    },
};

/// The scope of the member who has linked this vendor id. `None`: there is none, or the member may not decide, which is
/// recorded in the audit log.
pub(super) async fn scope_of_origin(
    core: &Arc<Core>,
    (org, channel): (OrgId, ChannelId),
    origin: &str,
) -> Result<Option<Scope>> {
    let found = linker_of_origin(&Scope::system(core, org), channel, origin).await?;
    let theirs = found.map(|linker| chat_scope(core, (org, channel), linker));
    Ok(theirs.filter(|scope| scope.require(Permission::ApprovalResolve).is_ok()))
}

/// The scope of a member in a linked chat. `None`: the member has none, or may not decide.
pub(super) async fn scope_of_member(
    system: &Scope,
    channel: ChannelId,
    user: UserId,
) -> Result<Option<Scope>> {
    let found = linker(system, channel, user).await?;
    let theirs = found.map(|linker| chat_scope(&system.core, (system.org, channel), linker));
    Ok(theirs.filter(|scope| scope.may(Permission::ApprovalResolve)))
}

/// The scope of the member who has linked this vendor id, as seen in the transaction and regardless of permissions.
pub(super) async fn scope_in_transaction(tx: &Tx, channel: ChannelId, origin: &str) -> Result<Option<Scope>> {
    let found = linker_of_origin(tx, channel, origin).await?;
    Ok(found.map(|linker| chat_scope(&tx.scope.core, (tx.scope.org, channel), linker)))
}

/// A refusal to this scope is recorded in the audit log, as in the panel.
fn chat_scope(core: &Arc<Core>, (org, channel): (OrgId, ChannelId), linker: Linker) -> Scope {
    let role = linker.role;
    let person = LinkedChat { id: linker.id, name: linker.name, channel };
    let mut request = Request::new(core, Caller::LinkedChat(Arc::new(person)));
    request.via = DecidedVia::Channel;
    let permissions = core.policy.role_permissions(org, role);
    let membership = Membership { role: Some(role), permissions };
    let operation = core.access.permits.name("answerApproval");
    Scope::new(&Arc::new(request), org, membership, operation)
}
