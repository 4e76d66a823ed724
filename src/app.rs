//! The service as a value: everything that a request may need, made once at start.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::Context;
use tokio::sync::broadcast;
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

use crate::{
    access::{
        CREDENTIALS_KEPT, Sessions,
        jwt::JwtKeys,
        password::{Cost, Passwords},
        policy::Policy,
    },
    audit,
    clock::{Clock, Timestamp},
    config::Config,
    edge::{ledger::Ledger, limits::Limits},
    graphql::{Catalogue, Documents, Introspection, MusterSchema},
    ids::{AgentId, ApprovalId, ConversationId, MessageId, OrgId},
    keys::{self, Lookups},
    mail::Mailer,
    people::oidc::Providers,
    policies,
    rest::Routes,
    sealing::LiveRing,
    store::Db,
    telemetry::{metrics, traces},
};

/// A change that subscribers hear of after its commit. Ids only: what a subscriber may see is read for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An agent's record changed.
    Agent(OrgId, AgentId),
    /// A conversation of an agent began, or its record changed.
    Conversation(OrgId, AgentId, ConversationId),
    /// A message was added to a conversation or changed in it.
    Message(OrgId, ConversationId, MessageId),
    /// An approval was raised or decided.
    Approval(OrgId, ApprovalId),
}

/// The service.
pub struct App {
    /// Settings.
    pub config: Config,
    /// Time.
    pub clock: Clock,
    /// The database.
    pub db: Db,
    /// Who may do what.
    pub policy: Policy,
    /// What is known about credentials just now.
    pub sessions: Sessions,
    /// Signs and verifies access tokens.
    pub jwt: JwtKeys,
    /// Keeps tokens of made-up signing keys from asking the database.
    pub lookups: Lookups,
    /// Seals secrets.
    pub keys: LiveRing,
    /// Hashes passwords.
    pub passwords: Passwords,
    /// With whom people may sign in besides.
    pub oidc: Providers,
    /// Sends mail.
    pub mailer: Mailer,
    /// What the schema says about itself.
    pub catalogue: Catalogue,
    /// The schema.
    pub schema: MusterSchema,
    /// Documents that are kept parsed, validated and planned.
    pub documents: Documents,
    /// What the schema says about itself to those who ask.
    pub introspection: Introspection,
    /// The `/v1` operations.
    pub routes: Routes,
    /// How many requests callers may send; none if nothing is limited.
    pub limits: Option<Limits>,
    /// What callers hold at a time.
    pub ledger: Ledger,
    /// When the service was made.
    pub started_at: Timestamp,
    /// What the audit log needs: what was refused lately, and the key of its checkpoints.
    pub audit: audit::Recorder,
    /// What was decided lately, and what policy folder and database have in common.
    pub policies: policies::State,
    events: broadcast::Sender<Event>,
    tasks: TaskTracker,
    /// Cancelled when the service begins to shut down.
    pub stopping: CancellationToken,
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

impl App {
    /// Opens the database and makes the service, with a new key file where nothing is sealed yet. Does not migrate, and
    /// listens to nothing yet.
    ///
    /// # Errors
    /// Whatever is wrong with the configuration, the keys, the policy files or the database.
    pub async fn start(config: Config, options: Options) -> anyhow::Result<Arc<Self>> {
        if config.metrics.listen.is_some() {
            metrics::begin();
        }
        let db = Db::open(&config.database).await?;
        keys::require_presence(&config, &db).await?;
        Self::with_db(config, options, db)
    }

    fn with_db(config: Config, options: Options, db: Db) -> anyhow::Result<Arc<Self>> {
        let keys = config.keys().context("key file")?;
        let policy = load_policy(config.policy_dir())?;
        let catalogue = Catalogue::read()?;
        let schema = crate::graphql::build(&config);
        let documents = Documents::new(&config.limits);
        let routes = Routes::load(&catalogue)?;
        let (events, _) = broadcast::channel(1024);
        Ok(Arc::new(Self {
            jwt: JwtKeys::new(&keys, config.issuer())?,
            lookups: Lookups::default(),
            keys: LiveRing::new(keys.ring().clone()),
            passwords: Passwords::new(options.password_cost)?,
            sessions: Sessions::kept_for(options.credentials_kept),
            limits: Limits::new(&config.rate_limits, &options.clock),
            ledger: Ledger::new(&config),
            started_at: options.clock.now(),
            clock: options.clock,
            oidc: Providers::new(&config).context("oidc_file")?,
            mailer: Mailer::new(&config).context("mail")?,
            config,
            db,
            policy,
            catalogue,
            schema,
            documents,
            introspection: Introspection::default(),
            routes,
            audit: audit::Recorder::new(&keys, options.audited),
            policies: policies::State::default(),
            events,
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
        }))
    }

    /// Tells subscribers of a change.
    pub fn publish(&self, event: Event) {
        // Nobody listening is no failure.
        let _ = self.events.send(event);
    }

    /// Changes from now on.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    /// Work beside requests; a shutdown waits for it.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(work);
    }

    /// For as long as the token lives, a shutdown waits: for work that the HTTP server has spawned.
    pub fn working(&self) -> TaskTrackerToken {
        self.tasks.token()
    }

    /// Finishes what was begun, and closes the database.
    pub async fn shut_down(&self) {
        self.stopping.cancel();
        self.tasks.close();
        let grace = self.config.shutdown_grace();
        if tokio::time::timeout(grace, self.tasks.wait()).await.is_err() {
            tracing::warn!("shutdown.work_left_unfinished");
        }
        // What was refused until now; nothing can be refused any more.
        if let Err(problem) = audit::write_refusals(self, true).await {
            tracing::error!(%problem, "audit.refusals_not_written");
        }
        if let Err(problem) = policies::flush_decisions(self).await {
            tracing::error!(%problem, "decisions.not_written");
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
