//! Members of an organization and their roles.
//!
//! Two rules hold regardless of the policy: no one gives, takes, or changes a role above their own, and an
//! organization keeps at least one OWNER who can sign in (only the operator may disable the last one). For the
//! second rule, each change locks the organization while counting, so that the last two owners can't remove
//! each other at the same time.

use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder, Set};
use serde_json::{Value, json};

use super::rows::{enabled, find};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::UserId,
        permission::Role,
        problem::{Code, Problem, Result},
    },
    core::{
        access::{Caller, Scope},
        audit,
        handlers::{DomainEvent, emit},
        store::Tx,
    },
    domain::{
        orgs::{self, Limit},
        people::{accounts::users::lock_user, entity::members},
    },
};

/// A member is about to be removed: the rows that the database deletes with them still exist.
#[derive(Debug)]
pub struct MemberLeaving {
    pub user: UserId,
}

impl DomainEvent for MemberLeaving {}

/// A member was removed from the organization.
#[derive(Debug)]
pub struct MemberRemoved {
    pub user: UserId,
}

impl DomainEvent for MemberRemoved {}

/// Adds a member.
///
/// # Errors
/// `NAME_TAKEN` for an existing member; `PERMISSION_DENIED` for a role above the caller's own;
/// `PLAN_LIMIT_REACHED`.
pub async fn add_member(scope: &Scope, user: UserId, role: Role) -> Result<()> {
    let tx = scope.begin().await?;
    add_to(&tx, user, role).await?;
    scope.core.access.cache.invalidate_after(tx.connection());
    tx.commit().await?;
    Ok(())
}

/// [`add_member`] inside the caller's transaction. The caller runs `cache.invalidate_after` before committing.
///
/// # Errors
/// As [`add_member`].
pub async fn add_to(tx: &Tx, user: UserId, role: Role) -> Result<()> {
    require_reach(tx, role)?;
    orgs::check_limit(tx, Limit::Members).await?;
    if find(tx, user).await?.is_some() {
        return Err(Problem::new(Code::NameTaken, "This user is already a member."));
    }
    let member = members::ActiveModel {
        organization_id: Set(tx.scope.org),
        user_id: Set(user),
        role: Set(role),
        created_at: Set(tx.now),
    };
    member.insert(tx.connection()).await?;
    record(tx, (ChangeOp::Created, "addMember"), user, json!({ "role": role }));
    Ok(())
}

/// Changes a member's role.
///
/// # Errors
/// `NOT_FOUND`; `PERMISSION_DENIED` for a role above the caller's own, before or after; `LAST_OWNER`.
pub async fn update_member(scope: &Scope, user: UserId, role: Role) -> Result<()> {
    let tx = scope.begin().await?;
    orgs::lock(&tx).await?;
    let member = load(&tx, user).await?;
    require_reach(&tx, role)?;
    require_reach(&tx, member.role)?;
    if member.role == Role::Owner && role != Role::Owner {
        require_another_owner(&tx, user).await?;
    }
    set_role(&tx, member, role).await?;
    scope.core.access.cache.invalidate_after(tx.connection());
    tx.commit().await?;
    Ok(())
}

/// Makes a user an OWNER and returns their previous role. Runs in the caller's transaction; the caller locks
/// the organization and runs `cache.invalidate_after` before committing.
///
/// # Errors
/// As [`add_member`]; `CONFLICT` for a disabled account, which could not sign in.
pub async fn make_owner(tx: &Tx, user: UserId) -> Result<Option<Role>> {
    let account = lock_user(tx.connection(), user).await?;
    if account.disabled_at.is_some() {
        let email = account.email;
        let detail =
            format!("The account {email} is disabled. Enable it first: `muster user enable {email}`.");
        return Err(Problem::new(Code::Conflict, detail));
    }
    let Some(member) = find(tx, user).await? else {
        add_to(tx, user, Role::Owner).await?;
        return Ok(None);
    };
    let was = member.role;
    if was != Role::Owner {
        set_role(tx, member, Role::Owner).await?;
    }
    Ok(Some(was))
}

async fn set_role(tx: &Tx, member: members::Model, role: Role) -> Result<()> {
    let (user, was) = (member.user_id, member.role);
    let mut member = member.into_active_model();
    member.role = Set(role);
    member.update(tx.connection()).await?;
    record(tx, (ChangeOp::Updated, "updateMember"), user, json!({ "role": audit::from_to(was, role) }));
    Ok(())
}

/// Removes a member from the organization. Records that they created stay, including their service tokens.
///
/// # Errors
/// `NOT_FOUND`; `PERMISSION_DENIED` for a member above the caller; `LAST_OWNER`.
pub async fn remove_member(scope: &Scope, user: UserId) -> Result<()> {
    remove(scope, user, "removeMember").await
}

/// Removes the caller from the organization.
///
/// # Errors
/// `PERMISSION_DENIED` for a service token; `LAST_OWNER`.
pub async fn leave(scope: &Scope) -> Result<()> {
    let user = scope.person()?.id;
    remove(scope, user, "leaveOrganization").await
}

async fn remove(scope: &Scope, user: UserId, operation: &'static str) -> Result<()> {
    let tx = scope.begin().await?;
    orgs::lock(&tx).await?;
    let member = load(&tx, user).await?;
    require_reach(&tx, member.role)?;
    if member.role == Role::Owner {
        require_another_owner(&tx, user).await?;
    }
    take_out(&tx, &member, operation).await?;
    tx.commit().await?;
    Ok(())
}

/// Removes one of the members of an organization that is being deleted, even the last OWNER. False: there is none.
pub async fn remove_next(scope: &Scope) -> Result<bool> {
    let tx = scope.begin().await?;
    orgs::lock(&tx).await?;
    let next = scope.find::<members::Entity>().order_by_asc(members::Column::UserId);
    let Some(member) = next.one(tx.connection()).await? else { return Ok(false) };
    take_out(&tx, &member, "removeMember").await?;
    tx.commit().await?;
    Ok(true)
}

async fn take_out(tx: &Tx, member: &members::Model, operation: &'static str) -> Result<()> {
    let user = member.user_id;
    emit(tx, MemberLeaving { user }).await?;
    let rows = tx.scope.delete::<members::Entity>().filter(members::Column::UserId.eq(user));
    rows.exec(tx.connection()).await?;
    emit(tx, MemberRemoved { user }).await?;
    let changes = json!({ "role": audit::from_to(member.role, Value::Null) });
    record(tx, (ChangeOp::Deleted, operation), user, changes);
    tx.scope.core.access.cache.invalidate_after(tx.connection());
    Ok(())
}

/// Refuses a role above the caller's own. The operator is above all roles, a service token below.
pub fn require_reach(tx: &Tx, role: Role) -> Result<()> {
    let reaches = match (&tx.scope.request.caller, tx.scope.membership.role) {
        (Caller::System, _) => true,
        (_, Some(own)) => !role.is_above(own),
        (_, None) => false,
    };
    if reaches {
        return Ok(());
    }
    let detail = format!("The role {role} is higher than your own.");
    Err(tx.scope.refused(Problem::new(Code::PermissionDenied, detail)))
}

async fn require_another_owner(tx: &Tx, user: UserId) -> Result<()> {
    let others = enabled(tx, &[Role::Owner]).filter(members::Column::UserId.ne(user));
    if others.count(tx.connection()).await? > 0 {
        return Ok(());
    }
    Err(Problem::new(
        Code::LastOwner,
        "An organization needs at least one OWNER who can sign in. Make another member an OWNER first.",
    ))
}

async fn load(tx: &Tx, user: UserId) -> Result<members::Model> {
    find(tx, user).await?.ok_or_else(|| Problem::not_found("member", user))
}

fn record(tx: &Tx, (op, operation): (ChangeOp, &'static str), user: UserId, changes: Value) {
    audit::record(tx, audit::Entry { operation, op, kind: RecordKind::Member, id: user.0, changes });
}
