//! The foundation of all features: one value, created once at start, and its parts.
//!
//! - [`config`], [`telemetry`]: settings in; log, metrics and traces out
//! - [`store`]: the database, always in the scope of one organization
//! - [`policy`]: the rules for permissions, as casbin reads them from the policy files
//! - [`access`]: callers and their rights · [`replicas`]: the other serving processes and their policy folders
//! - [`sealing`], [`keys`]: secrets at rest, and the keys that seal and sign, with their rotation
//! - [`audit`]: a line for every change and every refusal
//! - [`handlers`]: events and questions from a feature to those above it, inside a transaction
//! - [`events`], [`queue`], [`hosts`], [`mail`]: the effects of a change: news for subscribers, jobs, commands for
//!   hosts, letters
//! - [`rate_limits`], [`resource_limits`]: how often a caller may ask, and how much they may hold at a time ·
//!   [`storage`]: the organizations whose storage is full
//! - [`request`], [`request_notes`]: who is asking, from where, and how · [`outbound`]: HTTP calls to other services
//! - [`tasks`]: background work that a shutdown waits for · [`job_counts`]: the result of a job over all organizations
//!
//! Nothing here knows a resource of the product, the schema or a transport.

pub mod access;
pub mod audit;
pub mod config;
pub mod events;
pub mod handlers;
pub mod hosts;
pub mod job_counts;
pub mod keys;
pub mod mail;
pub mod outbound;
pub mod policy;
pub mod queue;
pub mod rate_limits;
pub mod replicas;
pub mod request;
pub mod request_notes;
pub mod resource_limits;
pub mod sealing;
pub mod storage;
pub mod store;
pub mod tasks;
pub mod telemetry;

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::Context;
use http::Extensions;
use muster_channels::Network;
use muster_profiles::Profiles;

use self::{
    access::{Access, CREDENTIALS_KEPT, Permits, decisions, password::Cost},
    config::{Config, Prices, RiskRules},
    events::Hub,
    hosts::HostConnections,
    mail::Mailer,
    policy::Policy,
    queue::Queue,
    rate_limits::RateLimiter,
    replicas::Replicas,
    resource_limits::ResourceLimits,
    sealing::LiveRing,
    storage::FullStorage,
    store::Db,
    tasks::{CpuPool, Tasks},
    telemetry::{metrics, traces},
};
pub use self::{
    events::{Event, News},
    request::Request,
};
use crate::base::{
    bounds::ANSWER_WAIT,
    time::{Clock, Timestamp},
};

/// The foundation of all features.
pub struct Core {
    pub config: Config,
    pub clock: Clock,
    pub db: Db,
    pub policy: Policy,
    /// Credentials, and their callers.
    pub access: Access,
    /// How risky agents' actions are.
    pub risk: RiskRules,
    /// How third-party programs are run as agents.
    pub profiles: Profiles,
    pub prices: Prices,
    /// Seals and opens secrets.
    pub sealing: LiveRing,
    pub mailer: Mailer,
    /// The network, as transports of channels use it.
    pub network: Network,
    /// Rate limits; `None` if requests are not limited.
    pub rate_limits: Option<RateLimiter>,
    /// Limits on the memory and connections that callers hold.
    pub resource_limits: ResourceLimits,
    /// The state of the audit log: recent refusals, and the key of its checkpoints.
    pub audit: audit::Recorder,
    /// Notifies subscribers of changes.
    pub events: Arc<Hub>,
    /// The [`handlers`] of domain events and questions, by type.
    pub handlers: Extensions,
    pub hosts: HostConnections,
    /// The lanes of jobs, and how they are woken.
    pub queue: Queue,
    pub tasks: Tasks,
    /// The organizations whose storage is full.
    pub full: FullStorage,
    /// CPU work on tenants' texts.
    pub cpu_pool: CpuPool,
    /// This replica, and those with a different policy folder.
    pub replicas: Replicas,
    pub started_at: Timestamp,
}

/// Options that differ between the service, its commands, its tests and its benchmarks.
#[derive(Clone, Debug)]
pub struct Options {
    pub clock: Clock,
    pub password_cost: Cost,
    /// How long credentials and memberships are cached.
    pub credential_cache_ttl: Duration,
    /// Whether changes are written to the audit log. No setting turns this off; it exists to measure what the log
    /// costs.
    pub audited: bool,
    /// Whether PostgreSQL ends a read that takes longer than any request may. The reads of a command may take as long
    /// as they need.
    pub has_read_timeout: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Clock::system(),
            password_cost: Cost::STANDARD,
            credential_cache_ttl: CREDENTIALS_KEPT,
            audited: true,
            has_read_timeout: true,
        }
    }
}

impl Core {
    /// Opens the database, and creates a key file if nothing is sealed yet. Does not migrate. `permits` holds the
    /// requirements of the schema's root fields, `handlers` the handlers of domain events.
    ///
    /// # Errors
    /// Anything wrong with the configuration, the keys, the policy files or the database.
    pub async fn start(
        config: Config,
        options: Options,
        permits: Permits,
        handlers: Extensions,
    ) -> anyhow::Result<Arc<Self>> {
        if config.metrics.listen.is_some() {
            metrics::start();
        }
        // PostgreSQL ends a read this long after the request's deadline.
        let longest = config.limits.request_timeout() + ANSWER_WAIT;
        let db = Db::open_with(&config.database, options.has_read_timeout.then_some(longest)).await?;
        let (risk, prices, profiles) = (config.risk()?, config.prices()?, config.profiles()?);
        keys::require_presence(&config, &db).await?;
        let keys = config.keys().context("key file")?;
        let dir = config.policy_dir().map(Path::to_owned);
        let policy = tokio::task::spawn_blocking(move || load_policy(dir.as_deref())).await??;
        Ok(Arc::new(Self {
            policy,
            risk,
            profiles,
            prices,
            access: Access::new(&config, &keys, &options, permits)?,
            sealing: LiveRing::new(keys.ring().clone()),
            mailer: Mailer::new(&config).context("mail")?,
            network: outbound::network(&config).context("channels")?,
            rate_limits: RateLimiter::new(&config.rate_limits, &options.clock),
            resource_limits: ResourceLimits::new(&config),
            audit: audit::Recorder::new(&keys, options.audited),
            events: Arc::default(),
            handlers,
            hosts: HostConnections::default(),
            queue: Queue::default(),
            tasks: Tasks::default(),
            full: FullStorage::default(),
            cpu_pool: CpuPool::default(),
            replicas: Replicas::default(),
            started_at: options.clock.now(),
            clock: options.clock,
            config,
            db,
        }))
    }

    /// Finishes pending work, and closes the database.
    pub async fn shut_down(&self) {
        self.tasks.finish(self.config.shutdown_grace()).await;
        events::send_rest(self).await;
        // The last refusals; no more can follow.
        if let Err(problem) = audit::write_refusals(self, true).await {
            tracing::error!(%problem, "audit.refusals_not_written");
        }
        if let Err(problem) = decisions::flush(self).await {
            tracing::error!(%problem, "decisions.not_written");
        }
        if let Err(problem) = replicas::delete_row(self).await {
            tracing::warn!(%problem, "replica.not_signed_off");
        }
        self.db.close().await;
        traces::finish().await;
    }
}

fn load_policy(dir: Option<&Path>) -> anyhow::Result<Policy> {
    let loaded = match dir {
        Some(dir) => Policy::load(dir),
        None => Policy::embedded(),
    };
    loaded.map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("the policy is invalid:\n{}", lines.join("\n"))
    })
}
