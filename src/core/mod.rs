//! What every slice may hold: one value, made once at start, and the rooms that it is made of.
//!
//! - [`config`], [`telemetry`]: settings in; log, metrics and traces out
//! - [`store`]: the database, always in the scope of one organization
//! - [`policy`]: who may do what, as casbin reads it from the policy files
//! - [`access`]: who is asking, and what may they do here · [`replicas`]: which others serve, with which policy folder
//! - [`sealing`], [`keys`]: secrets at rest, and the keys that seal and sign, with their rotation
//! - [`audit`]: a line for what was changed and for what was refused
//! - [`events`], [`outbox`], [`mail`]: what leaves a change: news for subscribers, work for others, letters
//! - [`limits`], [`ledger`]: how often a caller may ask, and how much they may hold meanwhile
//! - [`request`]: who asks, from where, and how · [`outbound`]: calls to others over HTTP
//!
//! Nothing here knows a resource of the product, the schema or a transport.

pub mod access;
pub mod audit;
pub mod config;
pub mod events;
pub mod keys;
pub mod ledger;
pub mod limits;
pub mod mail;
pub mod outbound;
pub mod outbox;
pub mod policy;
pub mod replicas;
pub mod request;
pub mod sealing;
pub mod store;
pub mod tasks;
pub mod telemetry;

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::Context;

use self::{
    access::{Access, CREDENTIALS_KEPT, Permits, decisions, password::Cost},
    config::Config,
    events::Hub,
    ledger::Ledger,
    limits::Limits,
    mail::Mailer,
    outbox::Wakers,
    policy::Policy,
    replicas::Replicas,
    sealing::LiveRing,
    store::Db,
    tasks::Tasks,
    telemetry::{metrics, traces},
};
pub use self::{
    events::{Event, News},
    request::{ContextExt, Request},
};
use crate::base::time::{Clock, Timestamp};

/// What every slice may hold.
pub struct Core {
    /// Settings.
    pub config: Config,
    /// Time.
    pub clock: Clock,
    /// The database.
    pub db: Db,
    /// Who may do what.
    pub policy: Policy,
    /// Who is asking: credentials, and what is known of them.
    pub access: Access,
    /// Seals secrets.
    pub keys: LiveRing,
    /// Sends mail.
    pub mailer: Mailer,
    /// How many requests callers may send; none if nothing is limited.
    pub limits: Option<Limits>,
    /// What callers hold at a time.
    pub ledger: Ledger,
    /// What the audit log needs: what was refused lately, and the key of its checkpoints.
    pub audit: audit::Recorder,
    /// Tells subscribers of changes.
    pub events: Arc<Hub>,
    /// Wakes those who send what waits in the outbox.
    pub outbox: Wakers,
    /// Work beside requests.
    pub tasks: Tasks,
    /// This replica, and those whose policy folder differs.
    pub replicas: Replicas,
    /// When the service was made.
    pub started_at: Timestamp,
}

/// What differs between the service, its tests and its benchmarks.
#[derive(Clone, Debug)]
pub struct Options {
    /// Time.
    pub clock: Clock,
    /// What hashing a password costs.
    pub password_cost: Cost,
    /// How long what is known of a credential or a membership is kept before the database is asked again.
    pub credentials_kept: Duration,
    /// Whether changes have their lines in the audit log. No setting turns that off: it is here to measure what the
    /// log costs.
    pub audited: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Clock::system(),
            password_cost: Cost::STANDARD,
            credentials_kept: CREDENTIALS_KEPT,
            audited: true,
        }
    }
}

impl Core {
    /// Opens the database, with a new key file where nothing is sealed yet. Does not migrate. `permits` are what the
    /// schema's root fields demand.
    ///
    /// # Errors
    /// Whatever is wrong with the configuration, the keys, the policy files or the database.
    pub async fn start(config: Config, options: Options, permits: Permits) -> anyhow::Result<Arc<Self>> {
        if config.metrics.listen.is_some() {
            metrics::begin();
        }
        let db = Db::open(&config.database).await?;
        keys::require_presence(&config, &db).await?;
        let keys = config.keys().context("key file")?;
        let dir = config.policy_dir().map(Path::to_owned);
        let policy = tokio::task::spawn_blocking(move || load_policy(dir.as_deref())).await??;
        Ok(Arc::new(Self {
            policy,
            access: Access::new(&config, &keys, &options, permits)?,
            keys: LiveRing::new(keys.ring().clone()),
            mailer: Mailer::new(&config).context("mail")?,
            limits: Limits::new(&config.rate_limits, &options.clock),
            ledger: Ledger::new(&config),
            audit: audit::Recorder::new(&keys, options.audited),
            events: Arc::default(),
            outbox: Wakers::default(),
            tasks: Tasks::default(),
            replicas: Replicas::default(),
            started_at: options.clock.now(),
            clock: options.clock,
            config,
            db,
        }))
    }

    /// Finishes what was begun, and closes the database.
    pub async fn shut_down(&self) {
        self.tasks.finish(self.config.shutdown_grace()).await;
        // What was refused until now; nothing can be refused any more.
        if let Err(problem) = audit::write_refusals(self, true).await {
            tracing::error!(%problem, "audit.refusals_not_written");
        }
        if let Err(problem) = decisions::flush(self).await {
            tracing::error!(%problem, "decisions.not_written");
        }
        if let Err(problem) = replicas::leave(self).await {
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
        anyhow::anyhow!("the policy is refused:\n{}", lines.join("\n"))
    })
}
