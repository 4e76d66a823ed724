//! The operator's view of accounts: across all organizations, with the details needed to investigate an attack or a
//! complaint. Not reachable by requests.

use serde::Serialize;

use super::{queries, users::Membership};
use crate::{
    base::{
        ids::{OrgId, TokenId, UserId},
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{
        Core,
        store::{Db, sql::row},
    },
    domain::people::signing_in::{
        identities::{self, LinkedAccount},
        listed::{self, OpenSession},
        oidc::Providers,
    },
};

/// The accounts to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountFilter {
    All,
    MembersOf(OrgId),
    One(UserId),
}

/// An account as the operator sees it.
#[derive(Clone, Debug, Serialize)]
pub struct Account {
    pub id: UserId,
    pub email: String,
    pub name: String,
    pub email_confirmed: bool,
    pub disabled_at: Option<Timestamp>,
    /// Without a password, the person signs in through a provider, or can't sign in yet.
    pub has_password: bool,
    pub has_second_factor: bool,
    pub created_at: Timestamp,
    /// Ordered by organization id.
    pub memberships: Vec<Membership>,
}

row! {
    /// An active service token that a person created.
    #[derive(Clone, Debug, Serialize)]
    pub struct MadeToken {
        organization_id: OrgId,
        id: TokenId,
        name: String,
    }
}

/// An account with every way to sign in to it.
#[derive(Clone, Debug, Serialize)]
pub struct Details {
    #[serde(flatten)]
    pub account: Account,
    /// The number of unused recovery codes.
    pub recovery_codes: i64,
    /// Open sessions, newest first.
    pub sessions: Vec<OpenSession>,
    /// The accounts at other providers that can sign in to it.
    pub linked_accounts: Vec<LinkedAccount>,
    /// The active service tokens that the person created.
    pub service_tokens: Vec<MadeToken>,
}

/// Accounts, ordered by id.
pub async fn accounts(db: &Db, filter: AccountFilter) -> Result<Vec<Account>> {
    let mut memberships = memberships(db, filter).await?.into_iter().peekable();
    let mut accounts = Vec::new();
    for found in queries::accounts(db, filter).await? {
        let id = found.id;
        // Both lists are ordered by id. Skip memberships of people added or removed between the two reads.
        while memberships.next_if(|(user, _)| *user < id).is_some() {}
        let theirs = std::iter::from_fn(|| memberships.next_if(|(user, _)| *user == id));
        accounts.push(Account {
            id,
            email: found.email,
            name: found.name,
            email_confirmed: found.email_confirmed_at.is_some(),
            disabled_at: found.disabled_at,
            has_password: found.has_password,
            has_second_factor: found.has_second_factor,
            created_at: found.created_at,
            memberships: theirs.map(|(_, membership)| membership).collect(),
        });
    }
    Ok(accounts)
}

/// One person's account with every way to sign in to it.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn details(core: &Core, providers: &Providers, user: UserId) -> Result<Details> {
    let account = accounts(&core.db, AccountFilter::One(user)).await?.pop();
    let account = account.ok_or_else(|| Problem::new(Code::NotFound, "The user no longer exists."))?;
    Ok(Details {
        account,
        recovery_codes: queries::unused_codes(core, user).await?,
        sessions: listed::open_of(core, user, None).await?,
        linked_accounts: identities::list_of(providers, &core.db.installation(), user).await?,
        service_tokens: queries::made_tokens(core, user).await?,
    })
}

/// Memberships, ordered by person and organization.
pub async fn memberships(db: &Db, filter: AccountFilter) -> Result<Vec<(UserId, Membership)>> {
    let show = |found: queries::FoundMembership| {
        let membership = Membership {
            organization_id: found.organization_id,
            organization_name: found.organization_name,
            role: found.role,
            created_at: found.created_at,
            requires_second_factor: found.require_second_factor,
        };
        (found.user_id, membership)
    };
    Ok(queries::memberships(db, filter).await?.into_iter().map(show).collect())
}
