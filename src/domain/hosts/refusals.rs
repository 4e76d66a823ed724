//! The last refusal of a host that someone has to mend. The host says it in its own log, which those who look at the panel
//! don't see, so its server shows it until the host says hello again or is replaced.

use muster_protocol::frame::RefusedCode;

use super::{Refusal, handshake, queries};
use crate::{
    base::{enums::HostRefusal, ids::ServerId, problem::Result},
    core::access::Scope,
};

/// Whether this is for people to mend. What passes by itself is not, nor is a token that someone has replaced, nor what
/// only a host does that is broken.
const fn for_people(code: RefusedCode) -> Option<HostRefusal> {
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

/// Shows people that the server's host was refused, if they have to do something.
pub async fn refused(scope: &Scope, server: ServerId, refusal: &Refusal) -> Result<()> {
    let Some(code) = for_people(refusal.code) else { return Ok(()) };
    let tx = scope.begin().await?;
    if queries::store_refusal(&tx, server, code, &refusal.reason).await? {
        handshake::announce(&tx, server);
    }
    tx.commit().await
}
