//! Uses of credentials, reported so that people see which of them are needed.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use muster_protocol::HostEvent;
use parking_lot::Mutex;

use crate::host_services::HostServices;

pub struct CredentialUses {
    services: Arc<dyn HostServices>,
    /// When each was last reported.
    reported: Mutex<BTreeMap<i64, Instant>>,
}

impl CredentialUses {
    pub fn new(services: Arc<dyn HostServices>) -> Self {
        Self { services, reported: Mutex::default() }
    }

    /// Reports that these credentials are used, except those reported within the last hour: each request would otherwise
    /// be an event.
    pub fn note(&self, credentials: &[i64]) {
        let mut reported = self.reported.lock();
        let is_due = |id: &i64| reported.get(id).is_none_or(|at| at.elapsed() >= Duration::from_hours(1));
        let due: Vec<i64> = credentials.iter().copied().filter(is_due).collect();
        let now = Instant::now();
        reported.extend(due.iter().map(|id| (*id, now)));
        drop(reported);
        if !due.is_empty() {
            self.services.report(HostEvent::CredentialsUsed { credential_ids: due });
        }
    }
}
