//! Accounts as the operator sees them: across all organizations, with the details needed to investigate an
//! attack or a complaint. No request leads here.

use sea_orm::Value;
use serde::Serialize;

use super::users::Membership;
use crate::{
    base::{
        ids::{OrgId, TokenId, UserId},
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{Core, store::Db},
    slices::people::signing_in::{
        identities::{self, LinkedAccount},
        listed::{self, OpenSession},
        oidc::Providers,
    },
};

/// Which accounts to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// All accounts.
    All,
    /// Those of an organization's members.
    MembersOf(OrgId),
    /// One person's account.
    One(UserId),
}

impl Whose {
    /// The SQL condition on a column that holds a person's id.
    fn condition(self, column: &str) -> (String, Vec<Value>) {
        match self {
            Self::All => ("TRUE".to_owned(), Vec::new()),
            Self::MembersOf(org) => {
                let sql = format!("{column} IN (SELECT user_id FROM members WHERE organization_id = $1)");
                (sql, vec![org.0.into()])
            }
            Self::One(user) => (format!("{column} = $1"), vec![user.0.into()]),
        }
    }
}

/// An account as the operator sees it.
#[derive(Clone, Debug, Serialize)]
pub struct Account {
    /// Identifies the person.
    pub id: UserId,
    /// The e-mail address used to sign in.
    pub email: String,
    /// The name.
    pub name: String,
    /// Whether the address has been confirmed.
    pub email_confirmed: bool,
    /// When the account was disabled. Null if it is enabled.
    pub disabled_at: Option<Timestamp>,
    /// Whether it has a password. Without one, the person signs in through a provider, or can't sign in yet.
    pub has_password: bool,
    /// Whether signing in requires a second factor.
    pub has_second_factor: bool,
    /// When the account was created.
    pub created_at: Timestamp,
    /// The person's organizations and roles, ordered by organization id.
    pub memberships: Vec<Membership>,
}

/// An active service token that a person created.
#[derive(Clone, Debug, Serialize)]
pub struct MadeToken {
    /// The organization that it belongs to.
    pub organization_id: OrgId,
    /// Its id.
    pub id: TokenId,
    /// What the token is for.
    pub name: String,
}

/// An account with every way to sign in to it.
#[derive(Clone, Debug, Serialize)]
pub struct Details {
    /// The account.
    #[serde(flatten)]
    pub account: Account,
    /// The number of unused recovery codes.
    pub recovery_codes: i64,
    /// The open sessions, newest first.
    pub sessions: Vec<OpenSession>,
    /// The accounts at other providers that can sign in to it.
    pub linked_accounts: Vec<LinkedAccount>,
    /// The active service tokens that the person created.
    pub service_tokens: Vec<MadeToken>,
}

/// Accounts, ordered by id.
///
/// # Errors
/// The database is unreachable.
pub async fn accounts(db: &Db, whose: Whose) -> Result<Vec<Account>> {
    let (condition, values) = whose.condition("id");
    let sql = format!(
        "SELECT id, email, name, email_confirmed_at, disabled_at, (password_hash IS NOT NULL), \
         (totp_confirmed_at IS NOT NULL), created_at FROM users WHERE {condition} ORDER BY id"
    );
    let mut memberships = memberships(db, whose).await?.into_iter().peekable();
    let mut accounts = Vec::new();
    for row in db.all(sql, values).await? {
        let id = row.try_get_by(0)?;
        // Both lists are ordered by id. Skip memberships of people added or removed between the two reads.
        while memberships.next_if(|(user, _)| *user < id).is_some() {}
        let theirs = std::iter::from_fn(|| memberships.next_if(|(user, _)| *user == id));
        accounts.push(Account {
            id,
            email: row.try_get_by(1)?,
            name: row.try_get_by(2)?,
            email_confirmed: row.try_get_by::<Option<Timestamp>, _>(3)?.is_some(),
            disabled_at: row.try_get_by(4)?,
            has_password: row.try_get_by(5)?,
            has_second_factor: row.try_get_by(6)?,
            created_at: row.try_get_by(7)?,
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
    let account = accounts(&core.db, Whose::One(user)).await?.pop();
    let account = account.ok_or_else(|| Problem::new(Code::NotFound, "The user no longer exists."))?;
    let sql = "SELECT COUNT(*) FROM recovery_codes WHERE user_id = $1 AND used_at IS NULL";
    let codes = core.db.one(sql.to_owned(), vec![user.0.into()]).await?;
    Ok(Details {
        account,
        recovery_codes: codes.map_or(Ok(0), |row| row.try_get_by(0))?,
        sessions: listed::open_of(core, user, None).await?,
        linked_accounts: identities::of(core, providers, core.db.read(), user).await?,
        service_tokens: made_tokens(core, user).await?,
    })
}

/// Memberships, ordered by person and organization.
pub async fn memberships(db: &Db, whose: Whose) -> Result<Vec<(UserId, Membership)>> {
    let (condition, values) = whose.condition("m.user_id");
    let sql = format!(
        "SELECT m.user_id, m.organization_id, o.name, m.role, m.created_at, o.require_second_factor FROM members m \
         JOIN organizations o ON o.id = m.organization_id WHERE {condition} ORDER BY m.user_id, m.organization_id"
    );
    let read = |row: &sea_orm::QueryResult| -> Result<(UserId, Membership)> {
        let membership = Membership {
            organization_id: row.try_get_by(1)?,
            organization_name: row.try_get_by(2)?,
            role: row.try_get_by::<String, _>(3)?.parse().map_err(Problem::internal)?,
            created_at: row.try_get_by(4)?,
            requires_second_factor: row.try_get_by(5)?,
        };
        Ok((row.try_get_by(0)?, membership))
    };
    db.all(sql, values).await?.iter().map(read).collect()
}

/// The active service tokens that a person created. They belong to organizations and outlive the account.
pub async fn made_tokens(core: &Core, user: UserId) -> Result<Vec<MadeToken>> {
    let sql = "SELECT organization_id, id, name FROM service_tokens WHERE created_by = $1 AND revoked_at IS NULL \
               AND (expires_at IS NULL OR expires_at > $2) ORDER BY organization_id, id";
    let rows = core.db.all(sql.to_owned(), vec![user.0.into(), core.clock.now().0.into()]).await?;
    let read = |row: &sea_orm::QueryResult| -> Result<MadeToken> {
        Ok(MadeToken {
            organization_id: row.try_get_by(0)?,
            id: row.try_get_by(1)?,
            name: row.try_get_by(2)?,
        })
    };
    rows.iter().map(read).collect()
}
