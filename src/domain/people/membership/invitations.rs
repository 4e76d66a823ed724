//! Invitations to join an organization.
//!
//! An invitation is for one address, whether or not it has an account; its link proves the address. It is valid
//! for a week, works once, and only while its sender could still send it: a member who has left, or whose role
//! is now below the one the invitation gives, has no open invitations. A person who already has an account must
//! prove that it is theirs, by being signed in or by its password: a link alone never adds an existing account.

use std::{sync::Arc, time::Duration};

use async_graphql::SimpleObject;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, NotSet, QueryFilter, Set,
    sea_query::Expr,
};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::{
    members::{add_to, require_reach},
    queries,
};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        folding,
        ids::{InvitationId, OrgId, UserId},
        permission::Role,
        plain::{NAME_RULE, is_name},
        problem::{Code, Problem, Result},
    },
    core::{
        Core, Request,
        access::{
            Scope,
            token::{Token, TokenHash, TokenKind},
        },
        audit::{self, PersonalEntry, record_personal},
        mail::{Letter, Template},
        sealing::random_bytes,
        store::Tx,
    },
    domain::{
        mails::{self, Mail},
        orgs::{self, Limit},
        people::{
            accounts::{
                credentials::check_password,
                letters::with_link,
                links,
                users::{blank, by_email, by_id, is_email},
            },
            entity::{invitations, members, users},
            signing_in::{
                identities,
                throttle::{self, Key},
            },
        },
    },
};

/// How long an invitation is valid. Limited, because others may read the mail later.
const LIFETIME: Duration = Duration::from_hours(7 * 24);

/// How an invitation reaches the person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// By mail.
    Mail,
    /// The caller passes it on: the answer contains its token, which is shown only once.
    ByHand,
}

/// Invites an e-mail address. By hand, this replaces an open invitation of the address: its link and mail become
/// invalid.
///
/// # Errors
/// `PERMISSION_DENIED` for a role higher than the caller's own; `NAME_TAKEN` for a member, or by mail for an address
/// with an open invitation; `PLAN_LIMIT_REACHED`; `RATE_LIMITED`.
pub async fn invite(
    scope: &Scope,
    email: &str,
    role: Role,
    delivery: Delivery,
) -> Result<(InvitationId, Option<SecretString>)> {
    let email = email.trim();
    if !is_email(email) {
        let detail = format!("`{email}` is not a valid e-mail address.");
        return Err(Problem::invalid_at("/email", "NOT_ALLOWED", detail));
    }
    if delivery == Delivery::Mail {
        throttle::charge(&scope.core, &[Key::mail(email)]).await?;
    }
    let tx = scope.begin().await?;
    require_reach(&tx, role)?;
    orgs::lock(&tx).await?;
    check_new(&tx, email, delivery).await?;
    let (token, hash) = Token::generate(TokenKind::Link);
    let hash = match delivery {
        Delivery::ByHand => hash,
        // The real token is created when the mail is sent.
        Delivery::Mail => TokenHash(random_bytes()),
    };
    let row = invitations::ActiveModel {
        organization_id: Set(scope.org),
        id: NotSet,
        email: Set(email.to_owned()),
        email_folded: NotSet,
        role: Set(role),
        token_hash: Set(hash.as_bytes().to_vec()),
        invited_by: Set(scope.request.caller.user()),
        created_at: Set(tx.now),
        expires_at: Set(tx.now.plus(LIFETIME)),
        accepted_at: Set(None),
        accepted_by: Set(None),
        revoked_at: Set(None),
        sent_at: Set(None),
    };
    let row = row.insert(tx.connection()).await?;
    if delivery == Delivery::Mail {
        enqueue_mail(&tx, &row);
    }
    record(&tx, (ChangeOp::Created, "inviteMember"), row.id, json!({ "email": email, "role": role }));
    tx.commit().await?;
    Ok((row.id, (delivery == Delivery::ByHand).then_some(token)))
}

/// Refuses an address that belongs to a member or has an open invitation. Ends one that has expired, or is replaced by
/// hand.
async fn check_new(tx: &Tx, email: &str, delivery: Delivery) -> Result<()> {
    if let Some(user) = by_email(tx.connection(), email).await?
        && super::rows::find(tx, user.id).await?.is_some()
    {
        return Err(Problem::new(Code::NameTaken, "This person is already a member."));
    }
    for row in find_open(tx).await? {
        let is_same = row.email_folded == folding::address(email);
        if row.expires_at <= tx.now {
            mark_revoked(tx, row).await?;
        } else if is_same && delivery == Delivery::ByHand {
            withdraw(tx, row).await?;
        } else if is_same {
            let detail = "This address already has an open invitation. Send that invitation again.";
            return Err(Problem::new(Code::NameTaken, detail).with("invitation_id", row.id.0));
        }
    }
    orgs::check_limit(tx, Limit::OpenInvitations).await
}

async fn find_open(tx: &Tx) -> Result<Vec<invitations::Model>> {
    let open = tx.scope.find::<invitations::Entity>().filter(is_open());
    Ok(open.all(tx.connection()).await?)
}

fn is_open() -> sea_orm::Condition {
    sea_orm::Condition::all()
        .add(invitations::Column::AcceptedAt.is_null())
        .add(invitations::Column::RevokedAt.is_null())
}

async fn mark_revoked(tx: &Tx, row: invitations::Model) -> Result<()> {
    let mut row = row.into_active_model();
    row.revoked_at = Set(Some(tx.now));
    row.update(tx.connection()).await?;
    Ok(())
}

fn enqueue_mail(tx: &Tx, row: &invitations::Model) {
    let mail = Mail::Invitation { id: row.id };
    mails::enqueue(&tx.scope.core, tx.connection(), &mail, row.expires_at);
}

/// Sends an invitation again. It is valid for another week, and its earlier links stop working.
///
/// # Errors
/// `NOT_FOUND`, also for one that has ended; `PERMISSION_DENIED` for a role higher than the caller's own;
/// `RATE_LIMITED`.
pub async fn resend(scope: &Scope, id: InvitationId) -> Result<()> {
    let email = load(scope, scope.core.db.read(), id).await?.email;
    throttle::charge(&scope.core, &[Key::mail(&email)]).await?;
    let tx = scope.begin().await?;
    // Keeps it from being accepted between the two statements.
    orgs::lock(&tx).await?;
    let row = load(scope, tx.connection(), id).await?;
    require_reach(&tx, row.role)?;
    let mut row = row.into_active_model();
    let nothing: [u8; 32] = random_bytes();
    row.token_hash = Set(nothing.to_vec());
    row.expires_at = Set(tx.now.plus(LIFETIME));
    // From now on, the invitation depends on the role of the person who sent it again.
    row.invited_by = Set(scope.request.caller.user());
    let row = row.update(tx.connection()).await?;
    enqueue_mail(&tx, &row);
    record(&tx, (ChangeOp::Updated, "resendInvitation"), id, json!({ "expires_at": row.expires_at }));
    tx.commit().await
}

/// Revokes an invitation.
///
/// # Errors
/// `NOT_FOUND`, also for one that has ended; `PERMISSION_DENIED` for a role higher than the caller's own.
pub async fn revoke(scope: &Scope, id: InvitationId) -> Result<()> {
    let tx = scope.begin().await?;
    // Keeps it from being accepted between the two statements.
    orgs::lock(&tx).await?;
    let row = load(scope, tx.connection(), id).await?;
    withdraw(&tx, row).await?;
    tx.commit().await
}

async fn withdraw(tx: &Tx, row: invitations::Model) -> Result<()> {
    require_reach(tx, row.role)?;
    let id = row.id;
    mark_revoked(tx, row).await?;
    record(tx, (ChangeOp::Deleted, "revokeInvitation"), id, json!({ "revoked_at": tx.now }));
    Ok(())
}

async fn load(scope: &Scope, db: &impl ConnectionTrait, id: InvitationId) -> Result<invitations::Model> {
    let found = scope.find::<invitations::Entity>().filter(invitations::Column::Id.eq(id)).filter(is_open());
    found.one(db).await?.ok_or_else(|| Problem::not_found("open invitation", id))
}

fn record(tx: &Tx, (op, operation): (ChangeOp, &'static str), id: InvitationId, changes: Value) {
    audit::record(tx, audit::Entry { operation, op, kind: RecordKind::Invitation, id: id.0, changes });
}

/// Writes the mail for an invitation with a new token, at the moment of sending. Returns it with its recipient,
/// or None if the invitation has ended.
#[expect(clippy::disallowed_methods, reason = "a mail names one invitation of any organization")]
pub async fn compose(core: &Core, id: InvitationId) -> Result<Option<(String, Letter)>> {
    let (token, hash) = Token::generate(TokenKind::Link);
    let now = core.clock.now().0;
    let minted = invitations::Entity::update_many()
        .col_expr(invitations::Column::TokenHash, Expr::value(hash.as_bytes().to_vec()))
        .col_expr(invitations::Column::SentAt, Expr::value(now))
        .filter(invitations::Column::Id.eq(id))
        .filter(is_open())
        .filter(invitations::Column::ExpiresAt.gt(now))
        .exec_with_returning(core.db.writer())
        .await?;
    let Some(row) = minted.into_iter().next() else { return Ok(None) };
    let names = queries::names(core, row.organization_id, row.invited_by).await?;
    let Some(names) = names else { return Ok(None) };
    let inviter = names.inviter.as_deref().unwrap_or("An administrator");
    let role = row.role.to_string();
    let values = [("organization", &*names.organization), ("inviter", inviter), ("role", &role)];
    let form = (Template::Invitation, "accept-invitation");
    Ok(Some((row.email, with_link(core, form, (&token, row.expires_at), &values))))
}

/// The invitation that a link belongs to, for its holder to recognize before accepting it.
#[derive(Clone, Debug, SimpleObject)]
pub struct InvitationOffer {
    /// The organization's name.
    pub organization: String,
    /// The name of the person who sent it. Null if the operator did.
    pub inviter: Option<String>,
    /// The invited address.
    pub email: String,
    /// The role that it gives.
    pub role: Role,
}

/// Reads the invitation that a link belongs to. The link stays valid.
///
/// # Errors
/// `LINK_INVALID`.
pub async fn offer(core: &Core, token: &SecretString) -> Result<InvitationOffer> {
    let row = by_token(core, token).await?;
    let names = queries::names(core, row.organization_id, row.invited_by).await?;
    let queries::Names { organization, inviter } = names.ok_or_else(links::invalid)?;
    Ok(InvitationOffer { organization, inviter, email: row.email, role: row.role })
}

/// The data that accepts an invitation.
#[derive(Clone, Debug, Default)]
pub struct Acceptance {
    /// The name, for a new account.
    pub name: Option<String>,
    /// The password for a new account, or the current one of an account the caller isn't signed in to.
    pub password: Option<SecretString>,
}

/// The membership that accepting created.
#[derive(Clone, Copy, Debug)]
pub struct Accepted {
    pub org: OrgId,
    pub user: UserId,
    pub role: Role,
}

/// Makes the holder of the link a member, creating an account if there is none.
///
/// # Errors
/// `LINK_INVALID`; `SIGN_IN_FAILED`, with the address as `email` in its details, if the address has an account and
/// neither session nor password proves that it is the caller's; `VALIDATION_FAILED` for a new account's name or
/// password; `NAME_TAKEN` for a member; `RATE_LIMITED`.
pub async fn accept(request: &Arc<Request>, token: &SecretString, said: &Acceptance) -> Result<Accepted> {
    let core = &request.core;
    let address = Key::address(request.ip);
    throttle::charge(core, std::slice::from_ref(&address)).await?;
    let row = by_token(core, token).await?;
    let user = by_email(core.db.read(), &row.email).await?;
    // Hashing is slow, so it happens before the transaction.
    let hash = require_own_account(request, &row, user.as_ref(), said).await?;
    let scope = Scope::system_for(request, row.organization_id);
    let tx = scope.begin().await?;
    orgs::lock(&tx).await?;
    require_inviter(&tx, &row).await?;
    let user = match user {
        Some(user) => confirm_account(&tx, user, said, hash).await?,
        None => open_account(&tx, &row.email, said, hash).await?,
    };
    mark_accepted(&tx, row.id, token, user.id).await?;
    add_to(&tx, user.id, row.role).await?;
    throttle::refund(tx.connection(), &address).await?;
    let entry = PersonalEntry::done(
        "acceptInvitation",
        user.id,
        json!({ "invitation_id": row.id, "role": row.role }),
    )
    .by(&user.name)
    .in_org(scope.org);
    record_personal(tx.connection(), request, entry);
    core.access.cache.invalidate_after(tx.connection());
    tx.commit().await?;
    Ok(Accepted { org: row.organization_id, user: user.id, role: row.role })
}

#[expect(clippy::disallowed_methods, reason = "the link's token names one invitation of one organization")]
async fn by_token(core: &Core, token: &SecretString) -> Result<invitations::Model> {
    let hash = links::hash_of(token).ok_or_else(links::invalid)?;
    let found = invitations::Entity::find()
        .filter(invitations::Column::TokenHash.eq(hash.as_bytes().to_vec()))
        .filter(invitations::Column::ExpiresAt.gt(core.clock.now()))
        .filter(is_open())
        .one(core.db.read())
        .await?;
    found.ok_or_else(links::invalid)
}

/// Requires proof that the account is the caller's. Returns the hash of the password to be set, if any.
async fn require_own_account(
    request: &Request,
    row: &invitations::Model,
    user: Option<&users::Model>,
    said: &Acceptance,
) -> Result<Option<String>> {
    let core = &request.core;
    if user.is_some_and(|user| user.disabled_at.is_some()) {
        return Err(links::invalid());
    }
    if user.is_some_and(|user| request.caller.user() == Some(user.id)) {
        return Ok(None);
    }
    let theirs = || {
        let detail = format!(
            "{} already has an account. Sign in to it, or send its password with the request.",
            row.email
        );
        Problem::new(Code::SignInFailed, detail).with("email", row.email.as_str())
    };
    match user {
        Some(user) if user.password_hash.is_some() => {
            let password = said.password.as_ref().ok_or_else(theirs)?;
            let pair = [Key::pair(&row.email, request.ip)];
            throttle::charge(core, &pair).await?;
            let stored = user.password_hash.as_deref();
            if !core.access.passwords.verify(password, stored).await.map_err(Problem::internal)? {
                return Err(theirs());
            }
            throttle::forgive(&core.db.installation(), &pair).await?;
            Ok(None)
        }
        // The account signs in through a provider.
        Some(user) if identities::has_any(core, user.id).await? => Err(theirs()),
        _ => {
            let needed = |name: &str| {
                let detail = format!("A new account requires `{name}`.");
                Problem::invalid_parameter(name, "REQUIRED", detail)
            };
            if user.is_none() && said.name.as_deref().is_none_or(|name| name.trim().is_empty()) {
                return Err(needed("name"));
            }
            if said.name.as_deref().is_some_and(|name| !is_name(name.trim())) {
                return Err(Problem::invalid_parameter("name", "NOT_ALLOWED", NAME_RULE));
            }
            let password = said.password.as_ref().ok_or_else(|| needed("password"))?;
            check_password(password, &row.email, "password")?;
            Ok(Some(core.access.passwords.hash(password).await.map_err(Problem::internal)?))
        }
    }
}

/// Refuses an invitation that its sender could no longer send.
async fn require_inviter(tx: &Tx, row: &invitations::Model) -> Result<()> {
    let Some(inviter) = row.invited_by else { return Ok(()) };
    let member: Option<members::Model> = super::rows::find(tx, inviter).await?;
    let is_enabled = by_id(tx.connection(), inviter).await?.disabled_at.is_none();
    let holds = is_enabled && member.is_some_and(|member| !row.role.is_above(member.role));
    if holds { Ok(()) } else { Err(links::invalid()) }
}

/// Confirms the address of an existing account, which the link has proved, and sets its first password.
async fn confirm_account(
    tx: &Tx,
    user: users::Model,
    said: &Acceptance,
    hash: Option<String>,
) -> Result<users::Model> {
    let now = by_id(tx.connection(), user.id).await?;
    if now.disabled_at.is_some() {
        return Err(links::invalid());
    }
    let mut row = now.into_active_model();
    row.email_confirmed_at = Set(Some(user.email_confirmed_at.unwrap_or(tx.now)));
    if let Some(hash) = hash {
        row.password_hash = Set(Some(hash));
        if let Some(name) = said.name.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
            row.name = Set(name.to_owned());
        }
    }
    row.updated_at = Set(tx.now);
    Ok(row.update(tx.connection()).await?)
}

async fn open_account(tx: &Tx, email: &str, said: &Acceptance, hash: Option<String>) -> Result<users::Model> {
    let name = said.name.as_deref().unwrap_or_default().trim().to_owned();
    let row = users::ActiveModel {
        name: Set(name),
        password_hash: Set(hash),
        email_confirmed_at: Set(Some(tx.now)),
        ..blank(email, tx.now)
    };
    Ok(row.insert(tx.connection()).await?)
}

/// If two requests accept an invitation at once, only one succeeds.
async fn mark_accepted(tx: &Tx, id: InvitationId, token: &SecretString, user: UserId) -> Result<()> {
    let hash = links::hash_of(token).ok_or_else(links::invalid)?;
    let taken = tx
        .scope
        .update::<invitations::Entity>()
        .col_expr(invitations::Column::AcceptedAt, Expr::value(tx.now.0))
        .col_expr(invitations::Column::AcceptedBy, Expr::value(user.0))
        .filter(invitations::Column::Id.eq(id))
        .filter(invitations::Column::TokenHash.eq(hash.as_bytes().to_vec()))
        .filter(invitations::Column::ExpiresAt.gt(tx.now))
        .filter(is_open())
        .exec(tx.connection())
        .await?;
    if taken.rows_affected == 1 { Ok(()) } else { Err(links::invalid()) }
}

/// All open invitations for an address, in any organization. A provider that vouches for the address may accept
/// them.
#[expect(clippy::disallowed_methods, reason = "an address may be invited to several organizations")]
pub async fn open_for(core: &Core, email: &str) -> Result<Vec<invitations::Model>> {
    Ok(invitations::Entity::find()
        .filter(invitations::Column::EmailFolded.eq(folding::address(email)))
        .filter(invitations::Column::ExpiresAt.gt(core.clock.now()))
        .filter(is_open())
        .all(core.db.read())
        .await?)
}

/// Refuses an invitation that can't be accepted now: its sender could no longer send it, or the organization is full.
pub async fn require_acceptable(request: &Request, row: &invitations::Model) -> Result<()> {
    let tx = Scope::system_for(request, row.organization_id).begin().await?;
    require_inviter(&tx, row).await?;
    orgs::check_limit(&tx, Limit::Members).await
}

/// Accepts an invitation for a person whose address a provider vouches for.
pub async fn accept_vouched(request: &Arc<Request>, row: &invitations::Model, user: UserId) -> Result<()> {
    let scope = Scope::system_for(request, row.organization_id);
    let tx = scope.begin().await?;
    orgs::lock(&tx).await?;
    require_inviter(&tx, row).await?;
    let mut taken = load(&scope, tx.connection(), row.id).await?.into_active_model();
    taken.accepted_at = Set(Some(tx.now));
    taken.accepted_by = Set(Some(user));
    taken.update(tx.connection()).await?;
    add_to(&tx, user, row.role).await?;
    let person = by_id(tx.connection(), user).await?;
    let entry =
        PersonalEntry::done("acceptInvitation", user, json!({ "invitation_id": row.id, "role": row.role }))
            .by(&person.name)
            .in_org(scope.org);
    record_personal(tx.connection(), request, entry);
    request.core.access.cache.invalidate_after(tx.connection());
    tx.commit().await?;
    Ok(())
}
