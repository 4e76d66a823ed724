//! The way back in, on the machine itself: when nobody in an organization can edit its policy any more.
//!
//! It goes past the policy, so it is loud: a warning in the log, a line in the organization's audit log, a version in
//! the history. No request leads here.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::json;

use super::{
    place, sync,
    versions::{self, Author, version_of},
};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::{OrgId, UserId},
        permission::{Permission, Role},
        problem::Result,
    },
    core::{Core, access::Scope, audit, policy},
    slices::{orgs, people},
};

/// What becomes of the organization's own file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aside {
    /// It goes out of force if an OWNER could not edit the policy otherwise.
    IfNeeded,
    /// It goes out of force.
    Always,
    /// It has been renamed already ([`set_aside`]).
    Done,
}

/// What breaking the glass came to.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Broken {
    /// The organization.
    pub organization_id: OrgId,
    /// Who is its OWNER now.
    pub user_id: UserId,
    /// What the person was before; none if no member.
    pub was: Option<Role>,
    /// Whether the organization's own file was taken out of force.
    pub file_set_aside: bool,
}

/// Makes a user OWNER of an organization, and takes the organization's own file out of force where `aside` says so.
///
/// # Errors
/// The database is out of reach; `POLICY_NOT_WRITABLE`.
pub async fn break_glass(
    core: &Arc<Core>,
    org: OrgId,
    user: UserId,
    reason: &str,
    aside: Aside,
) -> Result<Broken> {
    tracing::warn!(organization = org.0, user = user.0, reason, "policy.break_glass");
    // A file that was renamed a moment ago would be taken for a hand edit.
    if aside != Aside::Done {
        sync::now(core).await?;
    }
    let scope = Scope::system(core, org);
    // The same for every role that somebody may have had.
    let edits = core.policy.allows(org, Role::Owner, Permission::PolicyEdit);
    let goes = aside != Aside::IfNeeded || !edits;
    // A folder that can't be written is told before anything is changed.
    let prepared = if goes { Some(place::prepare(core, org, None).await?) } else { None };
    let was = people::role_of(&scope, user).await?;
    match was {
        Some(Role::Owner) => {}
        Some(_) => people::update_member(&scope, user, Role::Owner).await?,
        None => people::add_member(&scope, user, Role::Owner).await?,
    }
    let tx = scope.begin().await?;
    orgs::lock(&tx).await?;
    let before = versions::newest(&tx).await?.and_then(|newest| newest.text);
    let prepared = prepared.filter(|_| before.is_some());
    let has_version = prepared.is_some();
    let file_set_aside = has_version || aside == Aside::Done;
    if has_version {
        versions::add(&tx, None, Author::caller(&scope, reason)).await?;
    }
    let changes = json!({
        "reason": reason, "user": user, "role": Role::Owner, "was": was, "file_set_aside": file_set_aside,
        "from": version_of(before.as_deref()),
    });
    let (operation, target_id) = ("breakGlass", org.0);
    audit::record(
        &tx,
        audit::Entry { operation, op: ChangeOp::Updated, kind: RecordKind::Policy, id: target_id, changes },
    );
    tx.commit().await?;
    if let Some(prepared) = prepared {
        place::publish(core, prepared).await;
    }
    Ok(Broken { organization_id: org, user_id: user, was, file_set_aside })
}

/// Renames an organization's file that keeps the whole folder from being taken, so that the service starts again.
/// Answers where it is now; none if that file is not what is wrong.
///
/// # Errors
/// The folder can't be written.
pub fn set_aside(dir: &Path, org: OrgId) -> io::Result<Option<PathBuf>> {
    let file = dir.join("orgs").join(format!("{org}.csv"));
    let name = file.display().to_string();
    if !policy::check(dir).problems.iter().any(|problem| problem.file == name) {
        return Ok(None);
    }
    let aside = (1..1_000)
        .map(|n| dir.join("orgs").join(format!(".{org}.csv.aside-{n}")))
        .find(|path| !path.exists());
    let Some(aside) = aside else { return Ok(None) };
    std::fs::rename(&file, &aside)?;
    Ok(Some(aside))
}
