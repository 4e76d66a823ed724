//! The way back in, on the machine itself: when nobody in an organization can edit its policy any more.
//!
//! It goes past the policy, so it is loud: a warning in the log, a line in the organization's audit log. No request leads
//! here. Whatever the rules are, an OWNER can edit them: none that takes this from an OWNER comes into force.

use std::sync::Arc;

use serde_json::json;

use super::versions::{self, Author, version_of};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::{OrgId, UserId},
        permission::Role,
        problem::Result,
    },
    core::{Core, access::Scope, audit},
    slices::{orgs, people},
};

/// What breaking the glass came to.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Broken {
    /// The organization.
    pub organization_id: OrgId,
    /// Who is its OWNER now.
    pub user_id: UserId,
    /// What the person was before; none if no member.
    pub was: Option<Role>,
    /// Whether the organization's rules in the database were taken out of force.
    pub rules_dropped: bool,
}

/// Makes a user OWNER of an organization and, if `drop_rules`, stores a version without any rules of its own: both or
/// neither. A file of the organization is left alone, like every file.
///
/// # Errors
/// The database is out of reach.
pub async fn break_glass(
    core: &Arc<Core>,
    org: OrgId,
    user: UserId,
    reason: &str,
    drop_rules: bool,
) -> Result<Broken> {
    tracing::warn!(organization = org.0, user = user.0, reason, "policy.break_glass");
    let scope = Scope::system(core, org);
    let tx = scope.begin().await?;
    orgs::lock(&tx).await?;
    let was = people::make_owner(&tx, user).await?;
    let before = versions::newest_in(&tx).await?.and_then(|newest| newest.text);
    let rules_dropped = drop_rules && before.is_some();
    if rules_dropped {
        versions::add(&tx, None, Author::caller(&scope, reason)).await?;
    }
    let changes = json!({
        "reason": reason, "user": user, "role": Role::Owner, "was": was, "rules_dropped": rules_dropped,
        "from": version_of(before.as_deref()),
    });
    let operation = "breakGlass";
    let entry =
        audit::Entry { operation, op: ChangeOp::Updated, kind: RecordKind::Policy, id: org.0, changes };
    audit::record(&tx, entry);
    core.access.cache.invalidate_after(tx.connection());
    tx.commit().await?;
    Ok(Broken { organization_id: org, user_id: user, was, rules_dropped })
}
