//! Access tokens of channels' accounts: opened, and refreshed before they lapse.
//!
//! One process refreshes at a time, under a lease in the channel's row: a vendor that rotates refresh tokens takes each
//! only once, and may end the authorization at the second use. The new tokens are stored in one transaction. If the
//! vendor refuses the refresh token, the authorization has ended: the tokens are deleted, the channel says so, and an
//! active one is switched off.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::join_all};
use muster_channels::{Failure, oauth};
use sea_orm::{ActiveModelTrait, ColumnTrait, Condition, IntoActiveModel, QueryFilter, Set, sea_query::Expr};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};

use super::{
    authorization::{server, show_authorized, show_end},
    entity::channels::{ActiveModel, Column, Entity, Model},
    outbound::switch_off,
    queries::channels_to_refresh,
    rows::{connected, lock},
};
use crate::{
    base::{
        bounds,
        enums::{ChangeOp, InactiveReason, RecordKind},
        ids::{ChannelId, OrgId},
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::{Core, Event, access::Scope, sealing::SealContext, store::Tx},
};

/// How long before its end a token is refreshed, so that it does not lapse during a call.
const AHEAD: Duration = Duration::from_mins(5);

const ACCESS: &str = "oauth_access_token";
const REFRESH: &str = "oauth_refresh_token";

type Answer = std::result::Result<SecretString, Failure>;

/// Returns access tokens of a channel's account, for a transport.
#[must_use]
pub fn token_source(core: &Arc<Core>, org: OrgId, id: ChannelId) -> oauth::TokenSource {
    let scope = Scope::system(core, org);
    Arc::new(move || {
        let scope = scope.clone();
        let found = async move {
            let found = access_token(&scope, id).await;
            found.unwrap_or_else(|problem| Err(Failure::NotSent(problem.to_string().into())))
        };
        found.boxed()
    })
}

/// A valid access token of a channel's account.
///
/// # Errors
/// Its tokens can't be opened.
pub async fn access_token(scope: &Scope, id: ChannelId) -> Result<Answer> {
    let patience = Instant::now() + bounds::NETWORK_WAIT;
    loop {
        let found = connected(scope).filter(Column::Id.eq(id)).one(scope.core.db.read()).await?;
        let Some(channel) = found else { return Ok(Err(not_connected())) };
        let (Some(access), refresh) = open_tokens(&scope.core, &channel)? else {
            return Ok(Err(not_connected()));
        };
        let now = scope.core.clock.now();
        let due = now.plus(if refresh.is_some() { AHEAD } else { Duration::ZERO });
        let Some(until) = channel.oauth_access_until.filter(|until| *until <= due) else {
            return Ok(Ok(access));
        };
        let is_valid = until > now;
        match refresh_in_task(scope, id, until).await? {
            Some(Ok(fresh)) => return Ok(Ok(fresh)),
            Some(Err(ended @ Failure::Credentials(_))) => return Ok(Err(ended)),
            _ if is_valid => return Ok(Ok(access)),
            Some(Err(failure)) => return Ok(Err(failure)),
            None if Instant::now() > patience => {
                return Ok(Err(Failure::NotSent("The access token is still being refreshed.".into())));
            }
            // Another process refreshes it.
            None => sleep(bounds::POLL).await,
        }
    }
}

/// Refreshes the tokens that lapse soon. Returns how many channels have a valid one.
pub async fn refresh_tokens(core: &Arc<Core>) -> Result<u64> {
    let due = channels_to_refresh(core, core.clock.now().plus(AHEAD)).await?;
    let mut valid = 0;
    for some in due.chunks(bounds::BATCH as usize) {
        if core.tasks.stopping.is_cancelled() {
            break;
        }
        let refreshed =
            some.iter().map(|place| check_one(Scope::system(core, place.organization_id), place.id));
        for (place, answer) in some.iter().zip(join_all(refreshed).await) {
            let why = match answer {
                Ok(Ok(_)) => {
                    valid += 1;
                    continue;
                }
                Ok(Err(failure)) => failure.to_string(),
                Err(problem) => problem.to_string(),
            };
            let (org, channel) = (place.organization_id.0, place.id.0);
            tracing::warn!(org, channel, why, "channel.token_not_refreshed");
        }
    }
    Ok(valid)
}

async fn check_one(scope: Scope, id: ChannelId) -> Result<Answer> {
    access_token(&scope, id).await
}

/// Opens a channel's access token and refresh token.
pub(super) fn open_tokens(
    core: &Core,
    channel: &Model,
) -> Result<(Option<SecretString>, Option<SecretString>)> {
    let open = |sealed: &Option<Vec<u8>>, field: &str| {
        let Some(sealed) = sealed else { return Ok(None) };
        let place = SealContext::new(channel.organization_id, "channels", channel.id.0, field);
        core.sealing.open(sealed, &place).map(Some).map_err(Problem::internal)
    };
    Ok((
        open(&channel.oauth_access_token_sealed, ACCESS)?,
        open(&channel.oauth_refresh_token_sealed, REFRESH)?,
    ))
}

/// Seals tokens into a channel's row. Without a new refresh token, the earlier one stays.
pub(super) fn seal_tokens(tx: &Tx, id: ChannelId, row: &mut ActiveModel, tokens: &oauth::Tokens) {
    let seal = |token: &SecretString, field: &str| {
        let place = SealContext::new(tx.scope.org, "channels", id.0, field);
        Some(tx.scope.core.sealing.seal(token, &place))
    };
    row.oauth_access_token_sealed = Set(seal(&tokens.access, ACCESS));
    row.oauth_access_until = Set(tokens.lifetime.map(|lifetime| tx.now.plus(lifetime)));
    if let Some(refresh) = &tokens.refresh {
        row.oauth_refresh_token_sealed = Set(seal(refresh, REFRESH));
    }
}

pub(super) fn forget_tokens(row: &mut ActiveModel) {
    row.oauth_access_token_sealed = Set(None);
    row.oauth_access_until = Set(None);
    row.oauth_refresh_token_sealed = Set(None);
    row.oauth_refreshing_until = Set(None);
}

fn not_connected() -> Failure {
    Failure::Credentials("No account is connected.".into())
}

/// Refreshes in a task of its own: if the caller went away before the vendor's answer, its new refresh token would be
/// lost. `None`: another process refreshes or has refreshed the token that lapses at `until`.
async fn refresh_in_task(scope: &Scope, id: ChannelId, until: Timestamp) -> Result<Option<Answer>> {
    let (send, answer) = oneshot::channel();
    let own = scope.clone();
    scope.core.tasks.spawn(async move { drop(send.send(refresh(&own, id, until).await)) });
    answer.await.unwrap_or(Ok(None))
}

async fn refresh(scope: &Scope, id: ChannelId, until: Timestamp) -> Result<Option<Answer>> {
    let Some(channel) = take_lease(scope, id, until).await? else { return Ok(None) };
    let (_, token) = open_tokens(&scope.core, &channel)?;
    let refreshed = match (&token, server(scope, &channel).await) {
        (None, _) => Err(Failure::Credentials("The authorization has expired.".into())),
        (Some(token), Ok(server)) => server.refresh(token).await,
        (Some(_), Err(problem)) => Err(Failure::NotSent(problem.to_string().into())),
    };
    store(scope, id, token.as_ref(), refreshed).await
}

/// Takes the lease to refresh the token that lapses at `until`. Returns the channel. A process that died has the lease
/// for as long as well.
async fn take_lease(scope: &Scope, id: ChannelId, until: Timestamp) -> Result<Option<Model>> {
    let tx = scope.begin().await?;
    let free = Condition::any()
        .add(Column::OauthRefreshingUntil.is_null())
        .add(Column::OauthRefreshingUntil.lte(tx.now));
    let lease = tx.scope.update::<Entity>().filter(Column::Id.eq(id));
    let lease = lease.filter(Column::OauthAccessUntil.eq(until)).filter(free);
    // Longer than a vendor may take to answer.
    let end = tx.now.plus(Duration::from_mins(1));
    let lease = lease.col_expr(Column::OauthRefreshingUntil, Expr::value(end));
    let taken = lease.exec_with_returning(tx.connection()).await?.pop();
    tx.commit().await?;
    Ok(taken)
}

/// Stores the vendor's answer to this refresh token, and gives up the lease. Not an edit: `updated_at` stays, by which
/// listeners notice changed settings.
async fn store(
    scope: &Scope,
    id: ChannelId,
    sent: Option<&SecretString>,
    refreshed: std::result::Result<oauth::Tokens, Failure>,
) -> Result<Option<Answer>> {
    let tx = scope.begin().await?;
    let Some(channel) = lock(&tx, id).await? else { return Ok(None) };
    let text = |token: Option<&SecretString>| token.map(|token| token.expose_secret().to_owned());
    if text(open_tokens(&scope.core, &channel)?.1.as_ref()) != text(sent) {
        return Ok(None);
    }
    let mut row = channel.clone().into_active_model();
    row.oauth_refreshing_until = Set(None);
    let answer = match refreshed {
        Ok(tokens) => {
            seal_tokens(&tx, id, &mut row, &tokens);
            if let Some(lifetime) = tokens.refresh_lifetime {
                show_end(&mut row, channel.transport, Some(tx.now.plus(lifetime)));
            }
            Ok(tokens.access)
        }
        Err(failure) => Err(failure),
    };
    let ended = match &answer {
        Err(Failure::Credentials(cause)) => Some(format!("{cause} Connect the account again.")),
        _ => None,
    };
    if let Some(why) = &ended {
        forget_tokens(&mut row);
        show_authorized(&mut row, channel.transport, false);
        row.warnings = Set(json!([why]));
    }
    row.update(tx.connection()).await?;
    if let Some(why) = &ended {
        tx.announce(Event::new(tx.scope.org, ChangeOp::Updated, RecordKind::Channel, id));
        switch_off(&tx, id, channel.updated_at, InactiveReason::AuthFailed, why).await?;
    }
    tx.commit().await?;
    Ok(Some(answer))
}
