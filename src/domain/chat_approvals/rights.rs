//! Whether someone who writes in a chat may decide: asked of the database each time, not of a cache.

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
        access::{Caller, Chatting, Membership, Scope},
        store::Tx,
    },
};

/// The scope of the member who has linked this id of the vendor, and decides. `None`: no one, or no one who may, which has a line in the
/// audit log.
pub(super) async fn of_origin(
    core: &Arc<Core>,
    (org, channel): (OrgId, ChannelId),
    origin: &str,
) -> Result<Option<Scope>> {
    let found = linker_of_origin(&Scope::system(core, org), channel, origin).await?;
    let theirs = found.map(|linker| scope_of(core, (org, channel), linker));
    Ok(theirs.filter(|scope| scope.require(Permission::ApprovalResolve).is_ok()))
}

/// The scope of a member in the chat that they have linked. `None`: they have none, or may not decide.
pub(super) async fn of_member(system: &Scope, channel: ChannelId, user: UserId) -> Result<Option<Scope>> {
    let found = linker(system, channel, user).await?;
    let theirs = found.map(|linker| scope_of(&system.core, (system.org, channel), linker));
    Ok(theirs.filter(|scope| scope.may(Permission::ApprovalResolve)))
}

/// The same, whatever they may do, as the transaction sees it.
pub(super) async fn in_transaction(tx: &Tx, channel: ChannelId, origin: &str) -> Result<Option<Scope>> {
    let found = linker_of_origin(tx, channel, origin).await?;
    Ok(found.map(|linker| scope_of(&tx.scope.core, (tx.scope.org, channel), linker)))
}

/// What this scope is refused has a line in the audit log, like a decision in the panel.
fn scope_of(core: &Arc<Core>, (org, channel): (OrgId, ChannelId), linker: Linker) -> Scope {
    let role = linker.role;
    let person = Chatting { id: linker.id, name: linker.name, channel };
    let mut request = Request::new(core, Caller::Chatting(Arc::new(person)));
    request.via = DecidedVia::Channel;
    let permissions = core.policy.role_permissions(org, role);
    let membership = Membership { role: Some(role), permissions };
    let operation = core.access.permits.name("answerApproval");
    Scope::new(&Arc::new(request), org, membership, operation)
}
