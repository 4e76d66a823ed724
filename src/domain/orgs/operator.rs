//! The operator's commands on organizations: create, list, and find by name. Not reachable by requests.

use std::sync::Arc;

use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, QueryFilter, QueryOrder, Set};
use serde_json::json;

use super::{
    Created,
    entity::organizations,
    queries::{self, Overview},
};
use crate::{
    base::{
        enums::{ChangeOp, Plan, RecordKind},
        ids::{OrgId, UserId},
        plain::{NAME_RULE, is_name},
        problem::{Code, Problem, Result},
    },
    core::{
        Core, Request,
        access::Scope,
        audit,
        handlers::emit,
        store::{Db, Transaction, Tx},
    },
};

/// A new organization.
#[derive(Clone, Debug)]
pub struct NewOrganization {
    pub name: String,
    /// Its limits apply unless the contract overrides them.
    pub plan: Plan,
    /// The first OWNER.
    pub owner: UserId,
}

/// All organizations, ordered by id.
pub async fn all(db: &Db) -> Result<Vec<Overview>> {
    queries::overviews(db).await
}

/// Creates an organization with its owner and a default image, so that agents can be created at once.
///
/// # Errors
/// `VALIDATION_FAILED` for an invalid name.
pub async fn create(core: &Arc<Core>, new: NewOrganization) -> Result<OrgId> {
    let tx = create_in(core.db.begin().await?, &Request::system(core), new).await?;
    let org = tx.scope.org;
    tx.commit().await?;
    Ok(org)
}

/// [`create`] inside the caller's transaction, which continues in the organization. The caller commits it.
///
/// # Errors
/// As [`create`].
pub async fn create_in(transaction: Transaction, request: &Request, new: NewOrganization) -> Result<Tx> {
    let name = new.name.trim().to_owned();
    check_name(&name)?;
    let now = request.core.clock.now();
    let organization = organizations::ActiveModel {
        name: Set(name.clone()),
        plan: Set(new.plan),
        created_at: Set(now),
        updated_at: Set(now),
        ..Default::default()
    };
    let organization = organization.insert(&transaction).await?;
    let tx = Scope::system_for(request, organization.id).resume(transaction);
    emit(&tx, Created { owner: new.owner }).await?;
    let changes = json!({ "name": name, "plan": new.plan });
    audit::record(
        &tx,
        audit::Entry {
            operation: "createOrganization",
            op: ChangeOp::Created,
            kind: RecordKind::Organization,
            id: tx.scope.org.0,
            changes,
        },
    );
    Ok(tx)
}

/// Refuses an invalid organization name.
///
/// # Errors
/// `VALIDATION_FAILED`.
pub fn check_name(name: &str) -> Result<()> {
    match name.trim().chars().count() {
        1..=80 if is_name(name.trim()) => Ok(()),
        1..=80 => Err(Problem::invalid_at("/name", "NOT_ALLOWED", NAME_RULE)),
        _ => Err(Problem::invalid_at("/name", "NOT_ALLOWED", "A name must have 1 to 80 characters.")),
    }
}

/// Finds an organization by the operator's reference: an id or name.
///
/// # Errors
/// `NOT_FOUND`; `CONFLICT` if several organizations have the name.
pub async fn find(core: &Core, reference: &str) -> Result<OrgId> {
    find_in(&core.db, reference).await
}

/// [`find`] without a running service.
///
/// # Errors
/// As [`find`].
pub async fn find_in(db: &Db, reference: &str) -> Result<OrgId> {
    let by_id = match reference.trim().parse() {
        Ok(id) => matching(db, organizations::Column::Id.eq(OrgId(id))).await?,
        Err(_) => Vec::new(),
    };
    let found = if by_id.is_empty() {
        matching(db, organizations::Column::Name.eq(reference.trim())).await?
    } else {
        by_id
    };
    match found.as_slice() {
        [id] => Ok(*id),
        [] => Err(Problem::new(Code::NotFound, format!("There is no organization `{reference}`."))),
        several => {
            let ids: Vec<String> = several.iter().map(ToString::to_string).collect();
            let detail = format!(
                "Several organizations are named `{reference}`. Use the id instead ({}).",
                ids.join(", ")
            );
            Err(Problem::new(Code::Conflict, detail))
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the operator acts across organizations")]
async fn matching(db: &Db, condition: sea_orm::sea_query::SimpleExpr) -> Result<Vec<OrgId>> {
    let found = organizations::Entity::find().filter(condition).order_by_asc(organizations::Column::Id);
    Ok(found.all(db.read()).await?.into_iter().map(|organization| organization.id).collect())
}
