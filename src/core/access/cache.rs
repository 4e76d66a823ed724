//! Caches credentials and memberships briefly, so that a burst of requests asks the database once.

use std::time::Duration;

use moka::sync::Cache;
use tokio::sync::watch;

use super::{Caller, token::TokenHash};
use crate::{
    base::{
        bounds::CACHE_ENTRIES,
        ids::{OrgId, UserId},
        permission::Role,
    },
    core::store::Transaction,
};

/// How long results are cached by default.
pub const CREDENTIALS_KEPT: Duration = Duration::from_secs(2);

/// A cached membership.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedMembership {
    pub role: Role,
    /// The organization requires a second factor, and the person has none.
    pub lacks_second_factor: bool,
}

/// Caches credentials and memberships. Cheap to clone.
#[derive(Clone)]
pub struct CredentialCache {
    pub(super) callers: Cache<TokenHash, Caller>,
    /// Tokens that the database refused recently. They are refused again without a query.
    pub(super) refused: Cache<TokenHash, ()>,
    /// Tokens that the database accepted in the last day and has not refused since: not made up, though perhaps revoked.
    proven: Cache<TokenHash, ()>,
    pub(super) roles: Cache<(UserId, OrgId), Option<CachedMembership>>,
    /// Signals long-lived connections that something was dropped.
    invalidated: watch::Sender<u64>,
}

impl CredentialCache {
    /// An empty cache that keeps results for this long.
    #[must_use]
    pub fn kept_for(kept: Duration) -> Self {
        Self {
            callers: Cache::builder().max_capacity(CACHE_ENTRIES).time_to_live(kept).build(),
            refused: Cache::builder()
                .max_capacity(CACHE_ENTRIES)
                .time_to_live(kept.min(CREDENTIALS_KEPT))
                .build(),
            proven: Cache::builder()
                .max_capacity(2 * CACHE_ENTRIES)
                .time_to_live(Duration::from_hours(24))
                .build(),
            roles: Cache::builder().max_capacity(CACHE_ENTRIES).time_to_live(kept).build(),
            invalidated: watch::Sender::default(),
        }
    }

    /// Drops everything, because a credential or a membership changed.
    pub fn invalidate_all(&self) {
        self.callers.invalidate_all();
        self.refused.invalidate_all();
        self.roles.invalidate_all();
        self.invalidated.send_modify(|times| *times += 1);
    }

    /// Drops a caller's membership of an organization.
    pub fn invalidate_member(&self, caller: &Caller, org: OrgId) {
        if let Some(user) = caller.user() {
            self.roles.invalidate(&(user, org));
        }
    }

    /// Whether this token was valid here within the last day, so that it is not made up.
    #[must_use]
    pub fn is_proven(&self, token: &TokenHash) -> bool {
        self.proven.contains_key(token)
    }

    /// Records that this token is valid.
    pub fn note_proven(&self, token: TokenHash) {
        self.proven.insert(token, ());
    }

    /// Records that the database refused this token.
    pub(super) fn forget_proven(&self, token: &TokenHash) {
        self.proven.invalidate(token);
    }

    /// Drops everything once `tx` has committed, even if its caller has gone away by then.
    pub(crate) fn invalidate_after(&self, tx: &Transaction) {
        let cache = self.clone();
        tx.after_commit(move || cache.invalidate_all());
    }

    /// Signals every future [`CredentialCache::invalidate_all`], so that long-lived connections check their callers
    /// again ([`require_valid`](super::authn::require_valid)).
    #[must_use]
    pub fn invalidated(&self) -> watch::Receiver<u64> {
        self.invalidated.subscribe()
    }
}
