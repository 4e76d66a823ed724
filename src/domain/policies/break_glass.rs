//! Break glass: restores access, on the machine itself, when no one in an organization can edit its policy any longer.
//!
//! It bypasses the policy, so it is conspicuous: a warning in the log and an entry in the organization's audit log. Not
//! reachable by requests. An OWNER can always edit the rules: rules that would prevent this never come into force.

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
    domain::{orgs, people},
};

/// The result of [`break_glass`].
#[derive(Clone, Debug, serde::Serialize)]
pub struct BreakGlassResult {
    pub organization_id: OrgId,
    /// The new OWNER.
    pub user_id: UserId,
    /// The person's previous role. None if they weren't a member.
    pub was: Option<Role>,
    /// Whether the organization's own rules in the database were dropped.
    pub rules_dropped: bool,
}

/// Makes a user OWNER of an organization and, if `drop_rules`, stores a version without any rules: both or neither.
/// Never changes the organization's file.
///
/// # Errors
/// `CONFLICT` for a disabled account; the database is unreachable.
pub async fn break_glass(
    core: &Arc<Core>,
    org: OrgId,
    user: UserId,
    reason: &str,
    drop_rules: bool,
) -> Result<BreakGlassResult> {
    let scope = Scope::system(core, org);
    let tx = scope.begin().await?;
    orgs::lock(&tx).await?;
    let was = people::make_owner(&tx, user).await?;
    let before = versions::newest_in(&tx).await?.and_then(|newest| newest.text);
    let rules_dropped = drop_rules && before.is_some();
    if rules_dropped {
        versions::add(&tx, None, Author::from_caller(&scope, reason)).await?;
    }
    let changes = json!({
        "reason": reason, "user": user, "role": audit::from_to(was, Role::Owner), "rules_dropped": rules_dropped,
        "from": version_of(before.as_deref()),
    });
    let operation = "breakGlass";
    let entry =
        audit::Entry { operation, op: ChangeOp::Updated, kind: RecordKind::Policy, id: org.0, changes };
    audit::record(&tx, entry);
    core.access.cache.invalidate_after(tx.connection());
    tx.commit().await?;
    tracing::warn!(org = org.0, user = user.0, reason, "policy.break_glass");
    Ok(BreakGlassResult { organization_id: org, user_id: user, was, rules_dropped })
}
