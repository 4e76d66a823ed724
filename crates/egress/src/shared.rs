//! What all requests of a gate share.

use std::sync::Arc;

use tokio::{
    sync::{Semaphore, watch},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    bounds,
    client::Client,
    mcp, model,
    model::Purse,
    outside::Outside,
    reach::Reach,
    refusals::Refusals,
    room::Room,
    rules::{Crossings, Rules},
    secrets::Secrets,
};

/// How many answers are heard out at the same time. Calls that a budget pays for take their places as they begin: an agent which
/// hangs up on all of its calls gets no further one.
pub const MOST_HEARD_OUT: usize = 64;

/// What all requests of a gate share.
pub(crate) struct Shared {
    pub rules: watch::Receiver<Option<Arc<Rules>>>,
    pub outside: Arc<dyn Outside>,
    pub reach: Arc<Reach>,
    pub client: Client,
    pub purse: Arc<Purse>,
    pub refusals: Refusals,
    pub crossings: Crossings,
    /// What is reported has none of these.
    pub secrets: Secrets,
    /// How MCP servers are doing.
    pub states: Arc<mcp::States>,
    /// Room for programs of MCP servers, and how often they start.
    pub programs: mcp::Starts,
    pub told: model::Told,
    pub room: Room,
    /// Answers that are heard out after the agent has hung up.
    pub heard_out: Arc<Semaphore>,
    pub closing: CancellationToken,
    pub tasks: TaskTracker,
}

impl Shared {
    /// The rules, once there are some: after a restart of the host they take a while.
    pub async fn rules(&self) -> Option<Arc<Rules>> {
        let mut rules = self.rules.clone();
        let found = timeout(bounds::WAIT, rules.wait_for(Option::is_some)).await.ok()?.ok()?;
        found.clone()
    }

    /// Whether the present rules list a host.
    pub fn is_listed(&self, host: &str, port: u16) -> bool {
        self.rules.borrow().as_ref().is_some_and(|rules| rules.allows(host, port))
    }
}
