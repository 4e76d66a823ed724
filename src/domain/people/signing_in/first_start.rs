//! The first start: the first person and organization of an installation are created in the panel.
//!
//! `muster serve` writes a one-time code to its log while no user exists: access to the log proves that this is
//! the operator. The database has only the code's hash, so every replica accepts it. Each start replaces it, and
//! adding the first user in any way deletes it. Of two who complete it at once, the one who deletes the row succeeds.

use sea_orm::{ActiveModelTrait, Set};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use super::{
    queries,
    sign_in::{SignInResult, admit},
    throttle::{self, Key},
};
use crate::{
    base::{
        enums::{Plan, SessionKind},
        problem::{Code, Problem, Result, Violation},
    },
    core::{
        Core, Request,
        access::token::{Token, TokenHash, TokenKind},
        audit::{PersonalEntry, record_personal},
        store::Transaction,
    },
    domain::{
        orgs::{self, NewOrganization},
        people::{
            accounts::users::{self, blank},
            entity,
        },
    },
};

/// The first person and organization, and the code that permits creating them.
#[derive(Clone, Debug)]
pub struct Founding {
    pub code: SecretString,
    pub name: String,
    pub email: String,
    pub password: SecretString,
    pub organization: String,
}

/// Whether the installation has no user, and a code to begin with.
pub async fn is_open(core: &Core) -> Result<bool> {
    Ok(queries::open_first_start(&core.db.installation()).await?.is_some())
}

/// Replaces the code. Returns the new one. `None`: there is a user.
pub async fn renew_code(core: &Core) -> Result<Option<SecretString>> {
    let (code, hash) = Token::generate(TokenKind::Code);
    let written = queries::replace_first_code(core, hash, core.clock.now()).await?;
    Ok((written == 1).then_some(code))
}

/// Creates the first person and their organization, and signs the person in. Reading the log vouches for the address.
///
/// # Errors
/// `VALIDATION_FAILED`; `LINK_INVALID` for a wrong code; `CONFLICT` if there is a user; `RATE_LIMITED`.
pub async fn complete(request: &Request, kind: SessionKind, founding: &Founding) -> Result<SignInResult> {
    let core = &request.core;
    check(founding)?;
    let guesses = Key::first_start(request.ip);
    throttle::charge(core, std::slice::from_ref(&guesses)).await?;
    let hash = known_code(core, &founding.code).await?;
    // Hashing is slow, so it happens before the transaction.
    let password = core.access.passwords.hash(&founding.password).await.map_err(Problem::internal)?;
    let tx = request.begin().await?;
    take_code(&tx, hash).await?;
    let now = core.clock.now();
    let row = entity::users::ActiveModel {
        name: Set(founding.name.trim().to_owned()),
        password_hash: Set(Some(password)),
        email_confirmed_at: Set(Some(now)),
        ..blank(founding.email.trim(), now)
    };
    let user = row.insert(&tx).await?;
    throttle::forgive(&tx, &[guesses]).await?;
    let changes = json!({ "email": user.email, "password": "changed", "email_confirmed": true });
    let entry = PersonalEntry::done("completeFirstStart", user.id, changes).by(&user.name);
    record_personal(&tx, request, entry);
    core.access.cache.invalidate_after(&tx);
    // As `muster org create` does by default.
    let new = NewOrganization { name: founding.organization.clone(), plan: Plan::Enterprise, owner: user.id };
    let tx = Box::pin(orgs::create_in(tx, request, new)).await?;
    tx.commit().await?;
    admit(request, kind, &user).await
}

/// Lists every invalid value, before the code counts as tried.
fn check(founding: &Founding) -> Result<()> {
    let Founding { name, email, password, organization, .. } = founding;
    let mut errors = Vec::new();
    if let Err(problem) = users::check(email.trim(), name.trim(), Some(password)) {
        errors.extend(problem.errors);
    }
    if let Err(problem) = orgs::check_name(organization) {
        let there = |wrong: Violation| Violation::at("/organization_name", wrong.code, wrong.detail);
        errors.extend(problem.errors.into_iter().map(there));
    }
    Problem::fail_if_any(errors)
}

/// The hash of the code, if the first start is open to it.
async fn known_code(core: &Core, code: &SecretString) -> Result<TokenHash> {
    let Some(known) = queries::open_first_start(&core.db.installation()).await? else { return Err(closed()) };
    let given = Token::parse_kind(TokenKind::Code, code.expose_secret().trim()).ok_or_else(wrong)?;
    if TokenHash::from_slice(&known) == Some(given.hash) { Ok(given.hash) } else { Err(wrong()) }
}

/// Uses up the code. Another transaction that adds the first user waits for this one.
async fn take_code(tx: &Transaction, hash: TokenHash) -> Result<()> {
    let taken = queries::take_first_code(tx, hash).await?;
    if queries::has_users(tx).await? {
        return Err(closed());
    }
    if taken == 1 { Ok(()) } else { Err(wrong()) }
}

fn closed() -> Problem {
    Problem::new(Code::Conflict, "This installation has its first person already. Sign in.")
}

fn wrong() -> Problem {
    let detail =
        "This is not the code. Each start of the service makes a new one: take the newest from its log.";
    Problem::new(Code::LinkInvalid, detail)
}
