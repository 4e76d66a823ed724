//! Callers and their rights: authentication, membership, permissions.
//!
//! The order is fixed in `resolvers/context.rs`: authentication (`authn.rs`) yields a [`Caller`], membership of an
//! organization yields a [`Scope`], and the scope is asked for a permission. Casbin decides on the rights of roles,
//! from the policy files ([`policy`](crate::core::policy)); nothing here does.

pub mod authn;
mod browser;
mod cache;
mod caller;
mod cookie_jar;
pub mod decisions;
mod eddsa;
pub mod jwt;
pub mod org_policies;
pub mod password;
mod permits;
mod recheck;
mod scope;
pub mod token;

pub use self::{
    cache::{CREDENTIALS_KEPT, CredentialCache},
    caller::{Caller, CredentialKey, LinkedChat, Membership, Memberships, Person, ServiceToken},
    cookie_jar::{Jar, JarChange},
    permits::{Permit, Permits},
    recheck::load_memberships,
    scope::Scope,
};
use self::{decisions::Decisions, jwt::JwtKeys, org_policies::Rules, password::Passwords};
use super::{Options, config::Config, keys::Lookups, sealing::KeyFile};

/// Recognizes callers and decides what they may do.
pub struct Access {
    /// Known credentials and memberships.
    pub cache: CredentialCache,
    /// Signs and verifies access tokens.
    pub jwt: JwtKeys,
    /// Keeps tokens with made-up signing keys from querying the database.
    pub lookups: Lookups,
    pub passwords: Passwords,
    /// The requirements of the schema's root fields.
    pub permits: Permits,
    /// The versions of the organizations' own rules in force here.
    pub rules: Rules,
    pub decisions: Decisions,
}

impl Access {
    /// Starts with an empty cache.
    ///
    /// # Errors
    /// The keys can't sign.
    pub(super) fn new(
        config: &Config,
        keys: &KeyFile,
        options: &Options,
        permits: Permits,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            cache: CredentialCache::kept_for(options.credential_cache_ttl),
            jwt: JwtKeys::new(keys, config.issuer())?,
            lookups: Lookups::default(),
            passwords: Passwords::new(options.password_cost)?,
            permits,
            rules: Rules::default(),
            decisions: Decisions::default(),
        })
    }
}
