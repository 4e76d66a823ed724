//! The mail that an endpoint was switched off: to each member who can switch it on again.

use super::{page_link, queries};
use crate::{
    base::{
        ids::{EventEndpointId, OrgId, UserId},
        permission::Permission,
        problem::Result,
    },
    core::{
        Core,
        mail::{Letter, Template},
        store::Tx,
    },
    domain::mails::{self, Mail, NOTICE_LIFETIME},
};

/// Enqueues the mails.
pub(super) async fn notify_people(tx: &Tx, id: EventEndpointId) -> Result<()> {
    let (core, org) = (&tx.scope.core, tx.scope.org);
    if !core.mailer.is_on() {
        return Ok(());
    }
    for member in queries::members(tx).await? {
        if core.policy.allows(org, member.role, Permission::OrganizationEdit) {
            let mail = Mail::EventEndpointOff { org, id, user_id: member.user_id };
            mails::enqueue(core, tx.connection(), &mail, tx.now.plus(NOTICE_LIFETIME));
        }
    }
    Ok(())
}

/// Writes the letter. Returns it with the recipient's address. `None` if the endpoint is on again, or the person may no
/// longer switch it on.
pub async fn compose_letter(
    core: &Core,
    org: OrgId,
    id: EventEndpointId,
    user: UserId,
) -> Result<Option<(String, Letter)>> {
    let Some(off) = queries::off_endpoint(core, (org, user), id).await? else { return Ok(None) };
    if !core.policy.allows(org, off.role, Permission::OrganizationEdit) {
        return Ok(None);
    }
    let reason = if off.is_gone {
        "its receiver says that it no longer exists."
    } else {
        "it has accepted nothing for five days."
    };
    let endpoint = mails::safe_name(Some(&off.name), "an event endpoint");
    let link = page_link(core, org, "settings?tab=events");
    let values = [
        ("endpoint", endpoint),
        ("name", &off.person),
        ("organization", &off.organization),
        ("reason", reason),
        ("why", off.inactive_detail.as_deref().unwrap_or("none")),
        ("link", &link),
        ("site", core.mailer.site()),
    ];
    let letter = Letter::write(Template::EventEndpointOff, &values);
    Ok(Some((off.email, letter)))
}
