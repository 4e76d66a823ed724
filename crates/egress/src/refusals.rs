//! Refused connections, counted and reported: the first at once, repetitions together.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use muster_protocol::{HostEvent, plan::Destination};
use parking_lot::Mutex;

use crate::{bounds, host_services::HostServices};

pub struct Refusals {
    services: Arc<dyn HostServices>,
    counted: Mutex<BTreeMap<Destination, RefusalCount>>,
}

struct RefusalCount {
    reason: String,
    reported: Instant,
    since: i64,
}

impl Refusals {
    pub fn new(services: Arc<dyn HostServices>) -> Self {
        Self { services, counted: Mutex::default() }
    }

    pub fn count(&self, host: &str, port: u16, reason: &str) {
        let destination = Destination { host: host.chars().take(253).collect(), port };
        let mut counted = self.counted.lock();
        if let Some(known) = counted.get_mut(&destination) {
            known.since += 1;
            return;
        }
        // An agent can invent any number of hosts.
        if counted.len() >= bounds::LIST {
            return;
        }
        let known = RefusalCount { reason: reason.to_owned(), reported: Instant::now(), since: 0 };
        counted.insert(destination.clone(), known);
        drop(counted);
        self.services.report(HostEvent::Unreached { destination, reason: reason.to_owned(), count: 1 });
    }

    /// Reports new repetitions, and forgets hosts without any.
    pub fn flush(&self) {
        let mut counted = self.counted.lock();
        let mut due = Vec::new();
        counted.retain(|destination, known| {
            if known.reported.elapsed() < bounds::WAIT {
                return true;
            }
            let (reason, count) = (known.reason.clone(), std::mem::take(&mut known.since));
            known.reported = Instant::now();
            if count > 0 {
                due.push(HostEvent::Unreached { destination: destination.clone(), reason, count });
            }
            count > 0
        });
        drop(counted);
        for event in due {
            self.services.report(event);
        }
    }
}
