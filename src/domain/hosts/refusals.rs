//! The last refusal of a host that needs a person. The host writes it to its own log, which users of the panel don't
//! see, so its server's record shows it until the host is accepted again or replaced.

use muster_protocol::frame::RefusedCode;

use super::{Refusal, handshake, queries};
use crate::{
    base::{enums::HostRefusal, ids::ServerId, problem::Result},
    core::access::Scope,
};

/// The refusal as people see it. `None` for a temporary one, for a token that was replaced, and for errors that only a
/// broken host makes.
const fn needs_person(code: RefusedCode) -> Option<HostRefusal> {
    Some(match code {
        RefusedCode::Version => HostRefusal::Version,
        RefusedCode::JournalLost => HostRefusal::JournalLost,
        RefusedCode::Restored => HostRefusal::Restored,
        RefusedCode::Superseded => HostRefusal::Superseded,
        RefusedCode::Token
        | RefusedCode::Malformed
        | RefusedCode::Foreign
        | RefusedCode::Gap
        | RefusedCode::Stopping
        | RefusedCode::Unavailable => return None,
    })
}

/// Records that the server's host was refused, if that needs a person.
pub async fn record_refusal(scope: &Scope, server: ServerId, refusal: &Refusal) -> Result<()> {
    let Some(code) = needs_person(refusal.code) else { return Ok(()) };
    let tx = scope.begin().await?;
    if queries::store_refusal(&tx, server, code, &refusal.reason).await? {
        handshake::announce(&tx, server);
    }
    tx.commit().await
}
