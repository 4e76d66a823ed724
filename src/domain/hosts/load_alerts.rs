//! The load of servers' machines. Readings are stored every few seconds; several in a row above one of the
//! organization's thresholds raise an alert and make the server DEGRADED. After as many low readings, the server is
//! ONLINE again. The alert stays until a person closes it.

use std::time::Duration;

use muster_protocol::frame::Load;

use super::{
    Ended, Link, handshake,
    load_history::{self, PeriodLoad},
    load_history_queries,
    queries::{self, LoadedServer},
};
use crate::{
    base::{
        bounds,
        enums::{ApprovalKind, ServerStatus, Severity},
        problem::Result,
    },
    core::store::Tx,
    domain::{
        approvals::{self, NewApproval},
        orgs::{self, AlertThresholds},
    },
};

/// How many consecutive readings change the status, because a short peak doesn't matter.
const IN_A_ROW: u32 = 3;

/// The recent readings of a connected host.
#[derive(Debug, Default)]
pub struct Readings {
    /// When the last one was stored.
    stored: Option<Duration>,
    /// For each kind of alert: the consecutive readings that were too high, and whether they have raised an alert.
    high: [(u32, bool); KINDS.len()],
    /// The consecutive readings without a high value.
    low: u32,
    /// The period of the history that has begun.
    period: Option<PeriodLoad>,
}

/// The kinds of alerts, as the category of the approval.
const KINDS: [&str; 3] = ["RAM", "CPU", "LOAD"];

/// A value, and its threshold.
type Reading = (Option<f64>, Option<f64>);

impl Readings {
    /// Records a reading. Most are dropped.
    ///
    /// # Errors
    /// The connection is not the current one.
    pub async fn record(&mut self, link: &Link, load: Load) -> Result<(), Ended> {
        let now = link.scope.core.clock.elapsed();
        if self.stored.is_some_and(|at| now.saturating_sub(at) < bounds::RECONCILE_INTERVAL) {
            return Ok(());
        }
        self.stored = Some(now);
        let load = clamp_load(load);
        let tx = link.scope.begin().await?;
        let Some(server) = queries::store_load(&tx, link, &load).await? else {
            tx.rollback().await?;
            return Err(link.fencing_error().await);
        };
        if let Some(closed) = load_history::add_reading(&mut self.period, tx.now, &load) {
            load_history_queries::store_period(&tx, link.server, &closed).await?;
        }
        let readings = compare_with_thresholds(&load, orgs::alert_thresholds(&tx).await?, server.cpu_cores);
        let alerts = self.count_reading(readings);
        for kind in alerts {
            raise_alert(&tx, link, &server, kind, readings[kind]).await?;
        }
        let status = match server.status {
            ServerStatus::Online if self.high.iter().any(|(count, _)| *count >= IN_A_ROW) => {
                ServerStatus::Degraded
            }
            ServerStatus::Degraded if self.low >= IN_A_ROW => ServerStatus::Online,
            status => status,
        };
        if status != server.status {
            queries::store_status(&tx, link, status).await?;
            handshake::announce(&tx, link.server);
        }
        Ok(tx.commit().await?)
    }

    /// Counts a reading. Returns the kinds of alerts that are due.
    fn count_reading(&mut self, readings: [Reading; KINDS.len()]) -> Vec<usize> {
        let is_high = |(value, most): Reading| value.zip(most).is_some_and(|(value, most)| value > most);
        self.low = if readings.into_iter().any(is_high) { 0 } else { self.low.saturating_add(1) };
        let mut due = Vec::new();
        for (kind, reading) in readings.into_iter().enumerate() {
            let (count, is_raised) = &mut self.high[kind];
            *count = if is_high(reading) { count.saturating_add(1) } else { 0 };
            if *count >= IN_A_ROW && !*is_raised {
                *is_raised = true;
                due.push(kind);
            }
        }
        if self.low >= IN_A_ROW {
            self.high = Default::default();
        }
        due
    }
}

/// Limits the values to what a machine can have measured.
fn clamp_load(load: Load) -> Load {
    let within = |value: Option<f64>, most: f64| {
        value.filter(|value| value.is_finite()).map(|value| value.clamp(0.0, most))
    };
    Load {
        cpu_pct: within(load.cpu_pct, 100.0),
        ram_pct: within(load.ram_pct, 100.0),
        load: load.load.map(|loads| loads.map(|load| within(Some(load), 1e6).unwrap_or_default())),
        uptime_seconds: load.uptime_seconds.filter(|seconds| *seconds >= 0),
    }
}

fn compare_with_thresholds(load: &Load, most: AlertThresholds, cores: Option<i64>) -> [Reading; KINDS.len()] {
    let cores = cores.unwrap_or(1).max(1) as f64;
    let per_core = load.load.map(|[minute, ..]| minute / cores);
    [(load.ram_pct, most.ram_pct), (load.cpu_pct, most.cpu_pct), (per_core, most.load_factor)]
}

/// Raises an alert, unless one of its kind is pending. The lock on the server's row keeps other transactions from
/// raising one.
async fn raise_alert(
    tx: &Tx,
    link: &Link,
    server: &LoadedServer,
    kind: usize,
    (value, most): Reading,
) -> Result<()> {
    if queries::pending_alert(tx, link.server, KINDS[kind]).await?.is_some() {
        return Ok(());
    }
    let (value, most) = (value.unwrap_or_default(), most.unwrap_or_default());
    let (what, unit) = [("memory in use", " %"), ("processors in use", " %"), ("load per core", "")][kind];
    let title = format!("{}: high load", server.name);
    let body = format!("{what}: {value:.1}{unit}, several times in a row. The threshold is {most:.1}{unit}.");
    let alert = NewApproval {
        body: Some(body),
        severity: Severity::High,
        category: Some(KINDS[kind].to_owned()),
        server_id: Some(link.server),
        ..NewApproval::new(ApprovalKind::ServerAlert, title)
    };
    approvals::raise(tx, alert).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_high_readings_are_one_alert_until_load_stays_low() {
        let mut readings = Readings::default();
        let mut count = |ram: f64| {
            readings.count_reading([(Some(ram), Some(90.0)), (None, Some(1.0)), (Some(9.0), None)])
        };
        let due: Vec<usize> =
            [95.0, 95.0, 50.0, 95.0, 95.0, 95.0, 95.0, 50.0, 50.0, 95.0, 95.0, 95.0, 50.0, 50.0, 50.0]
                .into_iter()
                .map(|ram| count(ram).len())
                .collect();
        assert_eq!(due, [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!([95.0, 95.0, 95.0].map(|ram| count(ram).len()), [0, 0, 1]);
    }

    #[test]
    fn impossible_measurements_are_corrected() {
        let load = Load {
            cpu_pct: Some(1e9),
            ram_pct: Some(-1.0),
            load: Some([f64::NAN, 2.0, 1e300]),
            uptime_seconds: Some(-5),
        };
        let expected = Load {
            cpu_pct: Some(100.0),
            ram_pct: Some(0.0),
            load: Some([0.0, 2.0, 1e6]),
            uptime_seconds: None,
        };
        assert_eq!(clamp_load(load), expected);
    }
}
