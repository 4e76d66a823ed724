//! State shared by all requests of a gate.

use std::sync::Arc;

use tokio::{
    sync::{Semaphore, watch},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    bounds,
    client::Client,
    credential_uses::CredentialUses,
    host_services::HostServices,
    mcp,
    memory::MemoryBudget,
    model,
    model::LeasePool,
    reach::Reach,
    refusals::Refusals,
    rules::{Crossings, Rules},
    secrets::Secrets,
};

/// Answers read in parallel without the agent. Calls paid by a budget take their permit at the start: an agent that
/// hangs up on all its calls gets no further one.
pub const MAX_HEARD_OUT: usize = 64;

pub(crate) struct Shared {
    pub rules: watch::Receiver<Option<Arc<Rules>>>,
    pub services: Arc<dyn HostServices>,
    pub reach: Arc<Reach>,
    pub client: Client,
    pub leases: Arc<LeasePool>,
    pub refusals: Refusals,
    pub uses: CredentialUses,
    pub crossings: Crossings,
    /// Removed from all reports.
    pub secrets: Secrets,
    pub states: Arc<mcp::ServerStates>,
    /// Limits the programs of MCP servers.
    pub programs: mcp::StartLimit,
    pub refusal_reports: model::RefusalReports,
    pub memory: MemoryBudget,
    /// Permits to read answers after the agent hung up.
    pub heard_out: Arc<Semaphore>,
    pub closing: CancellationToken,
    pub tasks: TaskTracker,
}

impl Shared {
    /// The rules, once known: after a restart of the host they take a while.
    pub async fn rules(&self) -> Option<Arc<Rules>> {
        let mut rules = self.rules.clone();
        let found = timeout(bounds::WAIT, rules.wait_for(Option::is_some)).await.ok()?.ok()?;
        found.clone()
    }

    /// Whether the current rules list a destination.
    pub fn is_listed(&self, host: &str, port: u16) -> bool {
        self.rules.borrow().as_ref().is_some_and(|rules| rules.allows(host, port))
    }
}
