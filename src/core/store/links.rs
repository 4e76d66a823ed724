//! Join tables: which records of one kind belong to a record of another, set as a whole.

use sea_orm::{ColumnTrait, QueryFilter, Value};

use super::{TenantEntity, Tx};
use crate::base::{ids::OrgId, problem::Result, time::Timestamp};

/// An entity whose rows link one record, the owner, to its members.
pub trait Link: TenantEntity {
    type Owner: Copy + Into<Value> + Send + Sync;
    type Member: Copy + Ord + Into<Value> + Send + Sync;

    const OWNER: Self::Column;
    const MEMBER: Self::Column;

    fn member(row: &Self::Model) -> Self::Member;

    fn row(org: OrgId, owner: Self::Owner, member: Self::Member, at: Timestamp) -> Self::ActiveModel;
}

/// The changes to an owner's members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relinked<M> {
    pub added: Vec<M>,
    pub removed: Vec<M>,
}

impl<M: Copy> Relinked<M> {
    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }

    /// Every member whose link changed.
    #[must_use]
    pub fn touched(&self) -> Vec<M> {
        [self.added.as_slice(), self.removed.as_slice()].concat()
    }
}

/// The members of an owner, in order.
pub async fn linked<L: Link>(tx: &Tx, owner: L::Owner) -> Result<Vec<L::Member>> {
    let rows = tx.scope.find::<L>().filter(L::OWNER.eq(owner)).all(tx.connection()).await?;
    let mut members: Vec<_> = rows.iter().map(L::member).collect();
    members.sort_unstable();
    Ok(members)
}

/// Makes `wanted` the members of an owner: removes those not named, adds new ones, and keeps the link times of the
/// others. The caller holds a lock on the owner and has checked that the members exist.
pub async fn relink<L: Link>(tx: &Tx, owner: L::Owner, wanted: &[L::Member]) -> Result<Relinked<L::Member>> {
    let mut wanted = wanted.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    let present = linked::<L>(tx, owner).await?;
    let absent_from = |list: &[L::Member], member: &L::Member| list.binary_search(member).is_err();
    let added: Vec<_> = wanted.iter().copied().filter(|member| absent_from(&present, member)).collect();
    let removed: Vec<_> = present.iter().copied().filter(|member| absent_from(&wanted, member)).collect();
    if !removed.is_empty() {
        let gone = tx.scope.delete::<L>().filter(L::OWNER.eq(owner));
        gone.filter(L::MEMBER.is_in(removed.iter().copied())).exec(tx.connection()).await?;
    }
    if !added.is_empty() {
        let rows = added.iter().map(|member| L::row(tx.scope.org, owner, *member, tx.now));
        L::insert_many(rows).exec_without_returning(tx.connection()).await?;
    }
    Ok(Relinked { added, removed })
}
