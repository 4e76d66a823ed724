//! The metrics page: counters, and gauges read at the moment of the scrape.

use std::sync::Arc;

use axum::{Router, extract::State, response::IntoResponse, routing::get};
use http::header;
use muster_printing::metrics::{MEDIA_TYPE, Page};

use crate::core::telemetry::metrics::{
    AGENTS, APPROVALS, APPROVALS_AGE, AUDIT_CHECKPOINT_AGE, AUDIT_REFUSED, AUDIT_UNSEALED, BUILD_INFO,
    CHANNELS, CPU, DELIVERIES, FAMILIES, HELD, HELD_MAX, HOSTS, LOG_LOST, MAX_FDS, Meters, OPEN_FDS,
    POLICY_DIFFERING, POLICY_INFO, POLICY_LOADED, POLICY_PROBLEMS, POLICY_READS, POOL_CONNECTIONS, POOL_MAX,
    QUEUE_AGE, QUEUE_DEPTH, RESIDENT, SPENDING, STARTED, TURNS, UP, VIRTUAL, start,
};
use crate::{
    base::{bounds, problem::Result, time::Timestamp},
    core::{Core, audit, queue::Depth},
    domain::{chat_approvals, commands, dashboard, deliveries, event_endpoints, mails},
};

pub fn router(core: Arc<Core>) -> Router {
    Router::new().route("/metrics", get(show)).with_state(core)
}

async fn show(State(core): State<Arc<Core>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], page(&core, start()).await)
}

/// All metrics, in Prometheus's text format.
pub async fn page(core: &Core, meters: &Meters) -> String {
    let mut page = Page::new(meters.render(), FAMILIES);
    for (pool, size, idle, _) in core.db.pools() {
        page.value(POOL_CONNECTIONS, &[("pool", pool), ("state", "idle")], idle as f64);
        page.value(POOL_CONNECTIONS, &[("pool", pool), ("state", "used")], size.saturating_sub(idle) as f64);
    }
    for (pool, _, _, most) in core.db.pools() {
        page.value(POOL_MAX, &[("pool", pool)], most as f64);
    }
    let held = core.resource_limits.totals();
    for (what, now, _) in &held {
        page.value(HELD, &[("what", what)], *now as f64);
    }
    for (what, most) in held.iter().filter_map(|(what, _, most)| Some((what, (*most)?))) {
        page.value(HELD_MAX, &[("what", what)], most as f64);
    }
    queue(core, &mut page).await;
    totals(core, &mut page).await;
    audit_log(core, &mut page).await;
    let policy = core.policy.status();
    page.value(POLICY_INFO, &[("version", &policy.version)], 1.0);
    page.value(POLICY_LOADED, &[], seconds(policy.loaded_at));
    page.value(POLICY_PROBLEMS, &[], policy.problems.len() as f64);
    let (taken, refused) = core.policy.readings();
    for (outcome, count) in [("taken", taken), ("refused", refused)] {
        page.value(POLICY_READS, &[("outcome", outcome)], count as f64);
    }
    page.value(POLICY_DIFFERING, &[], core.replicas.differing().len() as f64);
    let database = if core.config.database.is_sqlite() { "sqlite" } else { "postgres" };
    page.value(BUILD_INFO, &[("version", env!("CARGO_PKG_VERSION")), ("database", database)], 1.0);
    page.value(LOG_LOST, &[], muster_printing::lost() as f64);
    process(&mut page);
    page.value(STARTED, &[], seconds(core.started_at));
    page.into_text()
}

async fn queue(core: &Core, page: &mut Page) {
    match tokio::time::timeout(bounds::BRIEF_WAIT, waiting(core)).await {
        Ok(Ok(waiting)) => {
            page.value(UP, &[], 1.0);
            for of in &waiting {
                page.value(QUEUE_DEPTH, &[("kind", &of.kind)], of.depth as f64);
            }
            for of in &waiting {
                let age = of.oldest.map_or(0, |oldest| (core.clock.now().0 - oldest.0).max(0));
                page.value(QUEUE_AGE, &[("kind", &of.kind)], age as f64 / 1000.0);
            }
        }
        _ => page.value(UP, &[], 0.0),
    }
}

async fn waiting(core: &Core) -> Result<Vec<Depth>> {
    let mut waiting = commands::waiting(core).await?;
    waiting.extend(mails::waiting(core).await?);
    waiting.extend(deliveries::waiting(core).await?);
    waiting.extend(chat_approvals::waiting(core).await?);
    waiting.extend(event_endpoints::waiting(core).await?);
    Ok(waiting)
}

/// What there is of each state, in all organizations together.
async fn totals(core: &Core, page: &mut Page) {
    let Ok(Ok(totals)) = tokio::time::timeout(bounds::BRIEF_WAIT, dashboard::totals(core)).await else {
        return;
    };
    for (family, label, counts) in [
        (AGENTS, "status", &totals.agents),
        (HOSTS, "status", &totals.hosts),
        (TURNS, "state", &totals.turns),
        (APPROVALS, "severity", &totals.approvals),
        (DELIVERIES, "state", &totals.deliveries),
        (CHANNELS, "state", &totals.channels),
        (SPENDING, "currency", &totals.spending),
    ] {
        for (state, count) in counts {
            page.value(family, &[(label, state)], *count);
        }
    }
    page.value(APPROVALS_AGE, &[], totals.oldest_approval_seconds);
}

async fn audit_log(core: &Core, page: &mut Page) {
    page.value(AUDIT_REFUSED, &[], core.audit.refused() as f64);
    if let Ok(Ok(lag)) = tokio::time::timeout(bounds::BRIEF_WAIT, audit::lag(core)).await {
        page.value(AUDIT_UNSEALED, &[], lag.unsealed as f64);
        let age = lag.unsigned_since.map_or(0, |since| (core.clock.now().0 - since.0).max(0));
        page.value(AUDIT_CHECKPOINT_AGE, &[], age as f64 / 1000.0);
    }
}

fn seconds(at: Timestamp) -> f64 {
    at.0 as f64 / 1000.0
}

/// Metrics of the process from `/proc`. None outside Linux.
fn process(page: &mut Page) {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
    let stat = read("stat");
    // The second field is the program's name, which may contain anything. The times are fields 14 and 15.
    let mut times =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).map(str::parse::<f64>);
    if let (Some(Ok(user)), Some(Ok(system))) = (times.next(), times.next()) {
        // Ticks per second, the same on every Linux.
        page.value(CPU, &[], (user + system) / 100.0);
    }
    let status = read("status");
    for (family, field) in [(RESIDENT, "VmRSS:"), (VIRTUAL, "VmSize:")] {
        if let Some(kilobytes) = number_after(&status, field) {
            page.value(family, &[], kilobytes * 1024.0);
        }
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        page.value(OPEN_FDS, &[], open.count() as f64);
    }
    if let Some(most) = number_after(&read("limits"), "Max open files") {
        page.value(MAX_FDS, &[], most);
    }
}

/// The first number on the line that begins with `field`.
fn number_after(text: &str, field: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}
