//! Prometheus metrics: those counted during operation, and those collected at each scrape.
//!
//! Nothing is measured unless `metrics.listen` is set: then [`on`] is one load of a pointer. The handles used on a
//! request's path are created in advance: a route's at its first request, a field's with the schema. Labels are routes,
//! methods, fields, codes and our own names: nothing that a caller sends becomes a label.
//!
//! A process has one set of metrics, as it has one log. `scrape.rs` collects what need not be counted (pools, queue,
//! memory) and serves the page; [`FAMILIES`] is the table of all metrics, which the documentation repeats.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use arc_swap::ArcSwap;
use http::{Method, StatusCode};
use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use muster_printing::families;

use crate::base::{enums::TurnState, problem::Code};

families! {
    HTTP_REQUESTS = "muster_http_requests_total", "counter", ["route", "method", "status"],
        "Requests answered; `status` is the class (2xx), `route` the pattern, or `none` if no route matches.";
    HTTP_SECONDS = "muster_http_request_duration_seconds", "histogram", ["route", "method"],
        "Time to answer a request.";
    OPERATIONS = "muster_graphql_operations_total", "counter", ["type"],
        "GraphQL operations run, over HTTP, WebSocket and server-sent events.";
    FIELD_SECONDS = "muster_graphql_root_field_duration_seconds", "histogram", ["type", "field"],
        "Time to resolve a root field, from any interface (`/v1` runs root fields as well).";
    SUBSCRIPTIONS = "muster_graphql_subscriptions", "gauge", [], "Open subscriptions.";
    PROBLEMS = "muster_problems_total", "counter", ["code"],
        "Errors returned to callers, on any interface, by code: `SIGN_IN_FAILED` counts refused sign-ins.";
    RATE_LIMITED = "muster_rate_limited_total", "counter", ["class"],
        "Requests refused by a rate limit, or because one caller or all together held too much; then `class` is the resource limit.";
    HELD = "muster_held", "gauge", ["what"], "What callers currently hold, by resource limit.";
    HELD_MAX = "muster_held_max", "gauge", ["what"], "The most that all callers together may hold.";
    SQL_SECONDS = "muster_sql_statement_duration_seconds", "histogram", ["pool"],
        "Time to run a statement, including commits.";
    SQL_FAILED = "muster_sql_statements_failed_total", "counter", ["pool"], "Statements refused by the database.";
    JOB_RUNS = "muster_job_runs_total", "counter", ["job", "outcome"], "Runs of periodic jobs.";
    JOB_SECONDS = "muster_job_duration_seconds", "histogram", ["job"], "Time to run a periodic job.";
    POOL_CONNECTIONS = "muster_db_pool_connections", "gauge", ["pool", "state"], "Connections, `idle` or `used`.";
    POOL_MAX = "muster_db_pool_max_connections", "gauge", ["pool"], "The most connections of a pool.";
    QUEUE_DEPTH = "muster_queue_depth", "gauge", ["kind"],
        "Waiting jobs (`MAIL`, `DELIVERY`, `APPROVAL`, `EVENT`), and commands for hosts that are not acknowledged (all other kinds).";
    QUEUE_AGE = "muster_queue_oldest_seconds", "gauge", ["kind"], "How long the oldest of these has waited.";
    QUEUE_ATTEMPTS = "muster_queue_attempts_total", "counter", ["kind", "outcome"],
        "Attempts to run jobs: `done`, `obsolete` (no longer needed), `later` (failed, retried later), `given_up`, `unreadable` (also retried later).";
    AGENTS = "muster_agents", "gauge", ["status"], "Agents by status. Deleted ones do not count.";
    HOSTS = "muster_hosts", "gauge", ["status"],
        "Servers by the status of their host: `ONLINE`, `DEGRADED` (connected, under high load), `OFFLINE` (no longer connected), `PENDING` (never connected).";
    TURNS = "muster_turns", "gauge", ["state"], "Turns that have not ended, by state.";
    TURNS_ENDED = "muster_turns_ended_total", "counter", ["state"], "Turns that have ended, by their last state.";
    APPROVALS = "muster_approvals_pending", "gauge", ["severity"], "Approvals that wait for a person, by severity.";
    APPROVALS_AGE = "muster_approvals_oldest_seconds", "gauge", [], "How long the oldest of these has waited.";
    DELIVERIES = "muster_deliveries", "gauge", ["state"],
        "Messages to channels: `WAITING`, or `FAILED` within the last seven days and not sent again.";
    CHANNELS = "muster_channels", "gauge", ["state"],
        "Channels: `ACTIVE`, `FAILING` (active, but nothing could be sent lately), or why they are inactive.";
    SPENDING = "muster_spending_month_micro", "gauge", ["currency"],
        "Spent in the current month, in millionths, by currency. Only currencies in the list of prices.";
    AUDIT_UNSEALED = "muster_audit_unsealed", "gauge", [],
        "Lines of the audit log waiting to be sealed, counted up to 100,000.";
    AUDIT_CHECKPOINT_AGE = "muster_audit_checkpoint_age_seconds", "gauge", [],
        "Age of the oldest last checkpoint among chains that have grown since.";
    AUDIT_REFUSED = "muster_audit_refused", "gauge", [],
        "Chains of the audit log that this process does not sign, because they do not continue what was signed.";
    UP = "muster_database_up", "gauge", [], "1 if the database answered during this scrape.";
    POLICY_INFO = "muster_policy_info", "gauge", ["version"], "1; the policy in force.";
    POLICY_LOADED = "muster_policy_loaded_timestamp_seconds", "gauge", [], "When that policy came into force.";
    POLICY_PROBLEMS = "muster_policy_problems", "gauge", [],
        "Problems in the policy files and in organizations' rules in the database.";
    POLICY_READS = "muster_policy_reloads_total", "counter", ["outcome"],
        "Readings of changed policy files: `taken`, or `refused` if there were problems.";
    POLICY_DIFFERING = "muster_policy_replicas_differing", "gauge", [],
        "Other replicas with a different policy folder.";
    BUILD_INFO = "muster_build_info", "gauge", ["version", "database"], "1; the running version.";
    LOG_LOST = "muster_log_lines_lost_total", "counter", [],
        "Lines of the log that were not written, because standard error was full, gone or not read.";
    CPU = "process_cpu_seconds_total", "counter", [], "CPU time used by the process.";
    RESIDENT = "process_resident_memory_bytes", "gauge", [], "Resident memory of the process.";
    VIRTUAL = "process_virtual_memory_bytes", "gauge", [], "Virtual memory of the process.";
    OPEN_FDS = "process_open_fds", "gauge", [], "Open file descriptors.";
    MAX_FDS = "process_max_fds", "gauge", [], "Maximum number of open file descriptors.";
    STARTED = "process_start_time_seconds", "gauge", [], "When the process started to measure.";
}

/// Upper bounds of the histograms, in seconds.
const BUCKETS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

static ON: OnceLock<Meters> = OnceLock::new();

/// The meters, if metrics are on.
#[inline]
pub fn on() -> Option<&'static Meters> {
    ON.get()
}

/// Starts to measure. Calling it again has no effect.
pub fn start() -> &'static Meters {
    ON.get_or_init(Meters::new)
}

/// The handles of all counters.
pub struct Meters {
    recorder: PrometheusRecorder,
    page: PrometheusHandle,
    routes: Table<Route>,
    fields: Table<Histogram>,
    jobs: Table<JobMeters>,
    problems: Vec<Counter>,
    operations: [Counter; 3],
    pub subscriptions: Gauge,
    limited: Table<Counter>,
    queue: Table<Counter>,
    turns: [Counter; TURN_ENDS.len()],
    sql: [Sql; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Query = 0,
    Mutation = 1,
    Subscription = 2,
}

/// The pool that ran a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Connections for reading.
    Read = 0,
    /// Connections for writing: transactions and notes.
    Write = 1,
}

const TURN_ENDS: [TurnState; 4] =
    [TurnState::Done, TurnState::Failed, TurnState::Cancelled, TurnState::Interrupted];
const POOLS: [&str; 2] = ["read", "write"];
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
const METHODS: [&str; 8] = ["GET", "POST", "PATCH", "PUT", "DELETE", "HEAD", "OPTIONS", "other"];

/// The counters of a route, by method; created at the method's first request.
struct Route([OnceLock<Answers>; METHODS.len()]);

struct Answers {
    by_class: [Counter; CLASSES.len()],
    seconds: Histogram,
}

struct JobMeters {
    done: Counter,
    failed: Counter,
    seconds: Histogram,
}

struct Sql {
    seconds: Histogram,
    failed: Counter,
}

impl Meters {
    fn new() -> Self {
        let builder = PrometheusBuilder::new().set_buckets(BUCKETS).unwrap_or_default();
        let recorder = builder.build_recorder();
        for family in FAMILIES {
            match family.kind {
                "counter" => recorder.describe_counter(family.name.into(), None, family.about.into()),
                "histogram" => recorder.describe_histogram(family.name.into(), None, family.about.into()),
                _ => recorder.describe_gauge(family.name.into(), None, family.about.into()),
            }
        }
        let to = Registry(&recorder);
        let problems =
            Code::ALL.iter().map(|code| to.counter(PROBLEMS, &[("code", code.as_str())])).collect();
        let operation = |ty| to.counter(OPERATIONS, &[("type", ty)]);
        let sql = |pool| Sql {
            seconds: to.histogram(SQL_SECONDS, &[("pool", pool)]),
            failed: to.counter(SQL_FAILED, &[("pool", pool)]),
        };
        Self {
            problems,
            operations: [operation("query"), operation("mutation"), operation("subscription")],
            subscriptions: to.gauge(SUBSCRIPTIONS, &[]),
            sql: POOLS.map(sql),
            routes: Table::default(),
            fields: Table::default(),
            jobs: Table::default(),
            limited: Table::default(),
            queue: Table::default(),
            turns: TURN_ENDS.map(|state| to.counter(TURNS_ENDED, &[("state", state.as_str())])),
            page: recorder.handle(),
            recorder,
        }
    }

    pub fn answered(&self, route: &str, method: &Method, status: StatusCode, took: Duration) {
        let name = if route.is_empty() { "none" } else { route };
        let meters = self.routes.get(name, || Route(std::array::from_fn(|_| OnceLock::new())));
        let method = method_index(method);
        let answers = meters.0[method].get_or_init(|| self.answers(name, METHODS[method]));
        let class = usize::from(status.as_u16() / 100).clamp(1, CLASSES.len()) - 1;
        answers.by_class[class].increment(1);
        answers.seconds.record(took.as_secs_f64());
    }

    fn answers(&self, route: &str, method: &str) -> Answers {
        let to = Registry(&self.recorder);
        let class =
            |class| to.counter(HTTP_REQUESTS, &[("route", route), ("method", method), ("status", class)]);
        Answers {
            by_class: CLASSES.map(class),
            seconds: to.histogram(HTTP_SECONDS, &[("route", route), ("method", method)]),
        }
    }

    /// A root field was resolved. `owner` and `field` come from the schema.
    pub fn resolved(&self, owner: &str, field: &str, took: Duration) {
        let labels = [("type", owner), ("field", field)];
        let made = || Registry(&self.recorder).histogram(FIELD_SECONDS, &labels);
        self.fields.get(field, made).record(took.as_secs_f64());
    }

    pub fn operation(&self, operation: Operation) {
        self.operations[operation as usize].increment(1);
    }

    /// A caller receives an error.
    pub fn problem(&self, code: Code) {
        self.problems[code as usize].increment(1);
    }

    /// A rate limit refused a request.
    pub fn limited(&self, class: &'static str) {
        self.limited
            .get(class, || Registry(&self.recorder).counter(RATE_LIMITED, &[("class", class)]))
            .increment(1);
    }

    /// An attempt to run a job has ended.
    pub fn attempted(&self, kind: &'static str, outcome: &'static str) {
        let labels = [("kind", kind), ("outcome", outcome)];
        let made = || Registry(&self.recorder).counter(QUEUE_ATTEMPTS, &labels);
        self.queue.get(&format!("{kind} {outcome}"), made).increment(1);
    }

    /// A turn has ended in this state.
    pub fn turn_ended(&self, state: TurnState) {
        if let Some(at) = TURN_ENDS.iter().position(|end| *end == state) {
            self.turns[at].increment(1);
        }
    }

    pub fn statement(&self, pool: Pool, took: Duration, failed: bool) {
        let meters = &self.sql[pool as usize];
        meters.seconds.record(took.as_secs_f64());
        if failed {
            meters.failed.increment(1);
        }
    }

    /// A job of recurring work has ended.
    pub fn job_run(&self, job: &'static str, took: Duration, failed: bool) {
        let to = Registry(&self.recorder);
        let meters = self.jobs.get(job, || JobMeters {
            done: to.counter(JOB_RUNS, &[("job", job), ("outcome", "done")]),
            failed: to.counter(JOB_RUNS, &[("job", job), ("outcome", "failed")]),
            seconds: to.histogram(JOB_SECONDS, &[("job", job)]),
        });
        let counter = if failed { &meters.failed } else { &meters.done };
        counter.increment(1);
        meters.seconds.record(took.as_secs_f64());
    }

    /// The current values, in Prometheus' text format.
    #[must_use]
    pub fn render(&self) -> String {
        self.page.render()
    }

    /// Lets histograms absorb their samples; until then they keep every single one.
    pub fn upkeep(&self) {
        self.page.run_upkeep();
    }
}

fn method_index(method: &Method) -> usize {
    match *method {
        Method::GET => 0,
        Method::POST => 1,
        Method::PATCH => 2,
        Method::PUT => 3,
        Method::DELETE => 4,
        Method::HEAD => 5,
        Method::OPTIONS => 6,
        _ => METHODS.len() - 1,
    }
}

struct Registry<'a>(&'a PrometheusRecorder);

impl Registry<'_> {
    fn key(name: &'static str, labels: &[(&'static str, &str)]) -> Key {
        let labels: Vec<_> =
            labels.iter().map(|(name, value)| Label::new(*name, (*value).to_owned())).collect();
        Key::from_parts(name, labels)
    }

    fn counter(&self, name: &'static str, labels: &[(&'static str, &str)]) -> Counter {
        self.0.register_counter(&Self::key(name, labels), &ABOUT)
    }

    fn gauge(&self, name: &'static str, labels: &[(&'static str, &str)]) -> Gauge {
        self.0.register_gauge(&Self::key(name, labels), &ABOUT)
    }

    fn histogram(&self, name: &'static str, labels: &[(&'static str, &str)]) -> Histogram {
        self.0.register_histogram(&Self::key(name, labels), &ABOUT)
    }
}

const ABOUT: Metadata<'static> = Metadata::new("muster", Level::INFO, None);

/// Handles by our own names. Few, and nearly always present: a lookup compares lengths before texts and never waits.
struct Table<T>(ArcSwap<Vec<(Box<str>, Arc<T>)>>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(ArcSwap::default())
    }
}

impl<T> Table<T> {
    fn get(&self, name: &str, make: impl FnOnce() -> T) -> Arc<T> {
        let find = |known: &[(Box<str>, Arc<T>)]| {
            known.binary_search_by(|(other, _)| (other.len(), &**other).cmp(&(name.len(), name)))
        };
        let known = self.0.load();
        if let Ok(at) = find(&known) {
            return Arc::clone(&known[at].1);
        }
        let made = Arc::new(make());
        let after = self.0.rcu(|known| {
            let mut known = Vec::clone(known);
            if let Err(at) = find(&known) {
                known.insert(at, (name.into(), Arc::clone(&made)));
            }
            known
        });
        // If another thread was faster, its entry has the same name and therefore the same counters.
        drop(after);
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_keeps_one_handle_a_name() {
        let table = Table::<usize>::default();
        for (n, name) in ["b", "a", "aaa", "", "bb"].iter().enumerate() {
            assert_eq!(*table.get(name, || n), n);
        }
        for (n, name) in ["b", "a", "aaa", "", "bb"].iter().enumerate() {
            assert_eq!(*table.get(name, || 99), n, "{name}");
        }
    }

    #[test]
    fn every_family_stands_once_in_the_table() {
        let mut names: Vec<_> = FAMILIES.iter().map(|family| family.name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
