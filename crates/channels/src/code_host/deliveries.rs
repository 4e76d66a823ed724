//! Requests of GitHub that did not arrive: GitHub keeps them for three days, and does not repeat them by itself. So
//! nothing is lost while the service is down, and without an address that GitHub can reach, messages come this way.
//! <https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries>

use std::{collections::HashMap, convert::Infallible, mem, time::Duration};

use http::Method;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{api::Api, decode, installation::Installation};
use crate::{
    backoff::Backoff,
    contract::{CodeHostRules, Cursor, Event, Failure, Link, Sink, Software},
    network::Page,
};

/// The position of a listener: all deliveries before have been read. Some after it, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Position {
    since: Timestamp,
}

struct Listener<'a> {
    installation: &'a Installation,
    api: &'a Api,
    rules: &'a CodeHostRules,
    sink: &'a dyn Sink,
    position: Position,
    stored: Option<Position>,
    /// Our deliveries since the position that have been read.
    read: HashMap<u64, Timestamp>,
}

/// Listens until dropped, or until the installation ends.
pub async fn listen(
    installation: &Installation,
    api: &Api,
    rules: &CodeHostRules,
    cursor: Option<Cursor>,
    sink: &dyn Sink,
) -> Result<Infallible, Failure> {
    let stored = cursor.and_then(|cursor| muster_json::from_str(&cursor.0).ok());
    let position = stored.unwrap_or(Position { since: installation.app().memory.github_time(api.now()) });
    let mut listener = Listener { installation, api, rules, sink, position, stored, read: HashMap::new() };
    let (mut backoff, mut is_up) = (Backoff::new(), false);
    loop {
        match listener.poll().await {
            Ok(()) => {
                backoff.reset();
                if !mem::replace(&mut is_up, true) {
                    sink.link(Link::Up);
                }
                tokio::time::sleep(Duration::from_secs(15)).await;
            }
            Err(Ended::Stopped(failure)) => return Err(failure),
            Err(Ended::Failed(failure @ Failure::Credentials(_))) => return Err(failure),
            Err(Ended::Failed(failure)) => {
                is_up = false;
                sink.link(Link::Down(failure.to_string().into()));
                let wait = if let Failure::RateLimited { wait, .. } = failure { Some(wait) } else { None };
                backoff.wait(wait).await;
            }
        }
    }
}

enum Ended {
    Failed(Failure),
    Stopped(Failure),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Listener<'_> {
    async fn poll(&mut self) -> Result<(), Ended> {
        let mut new = Vec::new();
        let app = self.installation.app();
        let mut page = app.latest_deliveries().await?;
        let latest = page.deliveries.first().and_then(delivered_at);
        while let Some(next) = self.collect(page, &mut new) {
            page = app.deliveries(&next).await?;
        }
        // The oldest first.
        for (id, at, delivery) in new.into_iter().rev() {
            self.take(id, &delivery).await?;
            self.read.insert(id, at);
        }
        // Deliveries appear when they have ended, and thus not always in order.
        if let Some(before) = latest.and_then(|at| Timestamp::from_second(at.as_second() - 60).ok()) {
            self.position.since = before.max(self.position.since);
        }
        let since = self.position.since;
        self.read.retain(|_, at| *at >= since);
        // The position of others' deliveries is not worth a write each time.
        let is_due = self.stored.is_none_or(|stored| since.as_second() - stored.since.as_second() > 300);
        if is_due { self.store(Vec::new()).await } else { Ok(()) }
    }

    /// Collects ours that have not been read. Returns the path of the next page, if there may be more on it.
    fn collect(&self, page: Page, new: &mut Vec<(u64, Timestamp, Value)>) -> Option<String> {
        for delivery in page.deliveries {
            let (Some(id), Some(at)) = (delivery["id"].as_u64(), delivered_at(&delivery)) else { continue };
            if at < self.position.since {
                return None;
            }
            let is_ours = delivery["installation_id"].as_i64() == Some(self.installation.id());
            if is_ours && !self.read.contains_key(&id) {
                new.push((id, at, delivery));
            }
        }
        page.next
    }

    /// Reads a delivery that GitHub could not make.
    async fn take(&mut self, id: u64, delivery: &Value) -> Result<(), Ended> {
        let event = delivery["event"].as_str().unwrap_or_default();
        if matches!(event, "installation" | "installation_repositories") {
            return self.check_installation().await;
        }
        if delivery["status_code"].as_u64().is_some_and(|status| (200..300).contains(&status)) {
            return Ok(());
        }
        let path = format!("app/hook/deliveries/{id}");
        let found = match self.installation.app().call(Method::GET, &path).await {
            // GitHub keeps it no longer.
            Err(Failure::TargetGone(_)) => return Ok(()),
            found => found?,
        };
        match decode(Software::Github, event, &found["request"]["payload"], self.rules) {
            Some(event) => self.store(vec![event]).await,
            None => Ok(()),
        }
    }

    /// Checks whether the channel may still use the installation, which was changed. Asks GitHub, since a suspension in
    /// the list may have ended.
    async fn check_installation(&self) -> Result<(), Ended> {
        let (app, id) = (self.installation.app(), self.installation.id());
        app.memory.forget_token(id);
        app.installation_token(id).await?;
        self.installation.identify(self.api, self.rules).await?;
        Ok(())
    }

    /// Stores events with the position.
    async fn store(&mut self, events: Vec<Event>) -> Result<(), Ended> {
        let cursor = serde_json::to_string(&self.position).ok().map(Cursor);
        let stored = self.sink.admit(events, cursor).await;
        stored.map_err(|stopped| Ended::Stopped(Failure::NotSent(stopped.to_string().into())))?;
        self.stored = Some(self.position);
        Ok(())
    }
}

fn delivered_at(delivery: &Value) -> Option<Timestamp> {
    delivery["delivered_at"].as_str()?.parse().ok()
}
