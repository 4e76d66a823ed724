//! Connections that were refused, counted and reported: the first at once, its repetitions together.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use muster_protocol::{Happening, plan::Destination};
use parking_lot::Mutex;

use crate::{bounds, outside::Outside};

/// What was refused.
pub struct Refusals {
    outside: Arc<dyn Outside>,
    counted: Mutex<BTreeMap<Destination, Counted>>,
}

struct Counted {
    reason: String,
    reported: Instant,
    since: i64,
}

impl Refusals {
    pub fn new(outside: Arc<dyn Outside>) -> Self {
        Self { outside, counted: Mutex::default() }
    }

    /// Counts a refusal.
    pub fn count(&self, host: &str, port: u16, reason: &str) {
        let destination = Destination { host: host.chars().take(253).collect(), port };
        let mut counted = self.counted.lock();
        if let Some(known) = counted.get_mut(&destination) {
            known.since += 1;
            return;
        }
        // An agent may invent as many as it likes.
        if counted.len() >= bounds::LIST {
            return;
        }
        let known = Counted { reason: reason.to_owned(), reported: Instant::now(), since: 0 };
        counted.insert(destination.clone(), known);
        drop(counted);
        self.outside.report(Happening::Unreached { destination, reason: reason.to_owned(), count: 1 });
    }

    /// Reports what has come since, and forgets what has not.
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
                due.push(Happening::Unreached { destination: destination.clone(), reason, count });
            }
            count > 0
        });
        drop(counted);
        for happening in due {
            self.outside.report(happening);
        }
    }
}
