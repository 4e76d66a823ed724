//! Authorization: a person grants a channel access to an account at its vendor (OAuth 2, authorization code with PKCE).
//!
//! [`authorize`] returns the vendor's page. The vendor sends the browser back to the panel's page `/oauth/channel`,
//! which calls [`complete`] with the code and the state. A state counts once, for ten minutes, for the channel and the
//! session that began. The verifier (PKCE) is derived from the state and the key file, so that neither the browser nor
//! the database has it.
//!
//! The application is the organization's own (`provider_oauth_client_id`), or the installation's.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use muster_channels::{Failure, oauth};
use openidconnect::{PkceCodeChallenge, PkceCodeVerifier};
use sea_orm::{ActiveModelTrait, ColumnTrait, IntoActiveModel, QueryFilter, Set, sea_query::Expr};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    access_tokens::{forget_tokens, open_tokens, seal_tokens},
    edit::Edited,
    entity::channels::{ActiveModel, Column, Entity, Model},
    open::is_github,
    outbound::is_open,
    queries::shares_account,
    rows::{connected, finish, load},
};
use crate::{
    base::{
        bounds,
        enums::{ChangeOp, InactiveReason, Transport},
        ids::{ChannelId, SessionId},
        plain::truncated,
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{Core, access::Scope, handlers::emit, sealing::random_bytes},
    domain::orgs,
};

/// An authorization that has begun.
pub struct Authorization {
    /// The vendor's page.
    pub url: String,
    pub expires_at: Timestamp,
}

/// Begins an authorization, and ends an earlier one of the channel that was not completed.
///
/// # Errors
/// `NOT_FOUND`; `PERMISSION_DENIED` for a service token; `NOT_SUPPORTED` for a channel without an account, and without
/// an application at its vendor.
pub async fn authorize(scope: &Scope, id: ChannelId) -> Result<Authorization> {
    let (core, session) = (&scope.core, scope.person()?.session);
    let server = server(scope, &find(scope, id).await?).await?;
    let state = format!("{}.{id}.{}", scope.org, URL_SAFE_NO_PAD.encode(random_bytes::<32>()));
    let challenge =
        PkceCodeChallenge::from_code_verifier_sha256(&PkceCodeVerifier::new(verifier(core, &state)));
    let url = server.authorization_url(&redirect(core), &state, challenge.as_str()).map_err(refused)?;
    let tx = scope.begin().await?;
    let channel = load(&tx, id).await?;
    let (agent, expires_at) = (channel.agent_id, tx.now.plus(bounds::AWAY));
    let mut row = channel.into_active_model();
    row.oauth_state_hash = Set(Some(hash(&state)));
    row.oauth_state_session = Set(Some(session));
    row.oauth_state_until = Set(Some(expires_at));
    row.update(tx.connection()).await?;
    finish(tx, (ChangeOp::Updated, "authorizeChannel"), id, agent, json!({})).await?;
    Ok(Authorization { url: url.into(), expires_at })
}

/// Completes an authorization with what the vendor's page sent back.
///
/// # Errors
/// `NOT_FOUND`; `LINK_INVALID` for a state that is used, expired, or another session's, and for a code that the vendor
/// refuses; `UNAVAILABLE` if the vendor can't be reached.
pub async fn complete(scope: &Scope, id: ChannelId, code: &SecretString, state: &SecretString) -> Result<()> {
    let (core, session, state) = (&scope.core, scope.person()?.session, state.expose_secret());
    let server = server(scope, &find(scope, id).await?).await?;
    take_state(scope, id, session, state).await?;
    let tokens = server.exchange(code, &verifier(core, state), &redirect(core)).await.map_err(refused)?;
    let account = server.account(&tokens.access).await.map_err(refused)?;
    let account = truncated(&account, bounds::NAME);
    let tx = scope.begin().await?;
    let channel = load(&tx, id).await?;
    let (agent, transport, is_open) = (channel.agent_id, channel.transport, is_open(&channel));
    let mut row = channel.into_active_model();
    forget_tokens(&mut row);
    seal_tokens(&tx, id, &mut row, &tokens);
    // A refresh token without an end lasts until it is revoked.
    let lifetime = tokens.refresh_lifetime.or(tokens.lifetime.filter(|_| tokens.refresh.is_none()));
    let ends_at = lifetime.map(|lifetime| tx.now.plus(lifetime));
    show_account(&mut row, transport, Some(account.clone()), ends_at);
    show_authorized(&mut row, transport, true);
    row.warnings = Set(json!([]));
    row.updated_at = Set(tx.now);
    row.update(tx.connection()).await?;
    emit(&tx, Edited { channel: id, is_new: true, is_open }).await?;
    let changes = json!({ "account": account });
    finish(tx, (ChangeOp::Updated, "completeChannelAuthorization"), id, agent, changes).await
}

/// Disconnects a channel's account: deletes the tokens, and revokes them at the vendor if it answers.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn disconnect(scope: &Scope, id: ChannelId) -> Result<()> {
    let tx = scope.begin().await?;
    let channel = load(&tx, id).await?;
    let mut row = channel.clone().into_active_model();
    forget_account(&mut row, channel.transport);
    if channel.is_active && is_github(&channel) {
        row.is_active = Set(false);
        row.inactive_reason = Set(Some(InactiveReason::AuthFailed));
    }
    row.updated_at = Set(tx.now);
    row.update(tx.connection()).await?;
    finish(tx, (ChangeOp::Updated, "disconnectChannel"), id, channel.agent_id, json!({})).await?;
    revoke(scope, &channel).await;
    Ok(())
}

/// Revokes a channel's tokens at the vendor, unless another channel is connected to the same account: vendors end the
/// authorization as a whole. The tokens have been deleted here, so a failure is only logged.
pub(super) async fn revoke(scope: &Scope, channel: &Model) {
    if let Err(problem) = revoke_at_vendor(scope, channel).await {
        tracing::warn!(org = scope.org.0, channel = channel.id.0, %problem, "channel.authorization_not_revoked");
    }
}

async fn revoke_at_vendor(scope: &Scope, channel: &Model) -> Result<()> {
    let (Some(access), refresh) = open_tokens(&scope.core, channel)? else { return Ok(()) };
    let account = channel.provider_email.as_ref().or(channel.code_host_oauth_user_login.as_ref());
    if let Some(account) = account
        && shares_account(scope, channel.id, account).await?
    {
        return Ok(());
    }
    server(scope, channel).await?.revoke(&access, refresh.as_ref()).await.map_err(refused)
}

/// Removes a channel's account, and any authorization that has begun.
pub(super) fn forget_account(row: &mut ActiveModel, transport: Transport) {
    forget_tokens(row);
    show_account(row, transport, None, None);
    show_authorized(row, transport, false);
    row.oauth_state_hash = Set(None);
    row.oauth_state_session = Set(None);
    row.oauth_state_until = Set(None);
}

fn show_account(
    row: &mut ActiveModel,
    transport: Transport,
    name: Option<String>,
    ends_at: Option<Timestamp>,
) {
    if transport == Transport::CodeHost {
        row.code_host_oauth_user_login = Set(name);
    } else {
        row.provider_email = Set(name);
    }
    show_end(row, transport, ends_at);
}

/// Shows when the authorization ends.
pub(super) fn show_end(row: &mut ActiveModel, transport: Transport, ends_at: Option<Timestamp>) {
    if transport == Transport::CodeHost {
        row.code_host_oauth_expires_at = Set(ends_at);
    } else {
        row.provider_expires_at = Set(ends_at);
    }
}

pub(super) fn show_authorized(row: &mut ActiveModel, transport: Transport, is_authorized: bool) {
    if transport == Transport::CodeHost {
        row.code_host_oauth_authorized = Set(is_authorized);
    } else {
        row.provider_connected = Set(is_authorized);
    }
}

/// The authorization server of the channel's vendor.
///
/// # Errors
/// `NOT_SUPPORTED`.
pub(super) async fn server(scope: &Scope, channel: &Model) -> Result<oauth::Server> {
    let transport = channel.transport;
    let unsupported = |detail: String| Problem::new(Code::NotSupported, detail);
    let access = access(transport).filter(|_| channel.code_host_host.is_none());
    let access =
        access.ok_or_else(|| unsupported(format!("{transport} channels have no account to connect.")))?;
    let client = client(scope, transport).await?.ok_or_else(|| {
        let (vendor, remedy) = (access.vendor_name(), remedy(transport));
        unsupported(format!("Accounts at {vendor} can't be connected without an application there. {remedy}"))
    })?;
    Ok(oauth::Server::new(access, client, &scope.core.network))
}

/// The access that a transport needs. `None`: it has no account.
fn access(transport: Transport) -> Option<&'static oauth::Access> {
    match transport {
        Transport::Calendar => Some(&oauth::GOOGLE_CALENDAR),
        Transport::Drive => Some(&oauth::GOOGLE_DRIVE),
        Transport::CodeHost => Some(&oauth::GITHUB_USER),
        Transport::Discord
        | Transport::Email
        | Transport::Slack
        | Transport::Telegram
        | Transport::Webhook
        | Transport::Internal => None,
    }
}

/// Our application at the vendor. GitHub's is the installation's App.
async fn client(scope: &Scope, transport: Transport) -> Result<Option<oauth::Client>> {
    let settings = &scope.core.config.channels;
    let found = if transport == Transport::CodeHost {
        settings.github_client_id.clone().zip(settings.github_client_secret.clone())
    } else {
        let own = orgs::oauth_client(scope).await?;
        own.or_else(|| settings.google_client_id.clone().zip(settings.google_client_secret.clone()))
    };
    Ok(found.map(|(id, secret)| oauth::Client { id, secret }))
}

const fn remedy(transport: Transport) -> &'static str {
    match transport {
        Transport::CodeHost => {
            "The operator sets channels.github_client_id and channels.github_client_secret."
        }
        _ => {
            "Set the organization's client ID and secret, or let the operator set channels.google_client_id and \
             channels.google_client_secret."
        }
    }
}

async fn find(scope: &Scope, id: ChannelId) -> Result<Model> {
    let found = connected(scope).filter(Column::Id.eq(id)).one(scope.core.db.read()).await?;
    found.ok_or_else(|| Problem::not_found("channel", id))
}

/// Uses a state up.
async fn take_state(scope: &Scope, id: ChannelId, session: SessionId, state: &str) -> Result<()> {
    let tx = scope.begin().await?;
    let begun = tx.scope.update::<Entity>().filter(Column::Id.eq(id));
    let begun = begun
        .filter(Column::OauthStateHash.eq(hash(state)))
        .filter(Column::OauthStateSession.eq(session))
        .filter(Column::OauthStateUntil.gt(tx.now))
        .col_expr(Column::OauthStateHash, Expr::value(None::<Vec<u8>>));
    let taken = begun.exec(tx.connection()).await?;
    tx.commit().await?;
    if taken.rows_affected == 0 {
        let detail =
            "This authorization has expired, was used already, or was begun in another session. Begin again.";
        return Err(Problem::new(Code::LinkInvalid, detail));
    }
    Ok(())
}

/// The panel's page to which the vendor sends the browser back.
fn redirect(core: &Core) -> String {
    format!("{}/oauth/channel", core.config.links())
}

fn verifier(core: &Core, state: &str) -> String {
    let key = core.sealing.current().derive("verifier of an authorization", &[state.as_bytes()]).next();
    key.map(|key| hex::encode(&key[..])).unwrap_or_default()
}

fn hash(state: &str) -> Vec<u8> {
    Sha256::digest(state.as_bytes()).to_vec()
}

#[expect(clippy::needless_pass_by_value, reason = "maps an error")]
fn refused(failure: Failure) -> Problem {
    let code = match failure {
        Failure::Credentials(_) | Failure::Refused(_) => Code::LinkInvalid,
        _ => Code::Unavailable,
    };
    Problem::new(code, failure.to_string())
}
