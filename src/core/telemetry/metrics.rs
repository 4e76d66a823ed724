//! Metrics, for Prometheus: what is counted while the service works, and what is asked when it is scraped.
//!
//! Nothing is measured unless `metrics.listen` is set: [`on`] is then one load of a pointer. What is measured on a
//! request's path has its handle made before: a route's at its first request, a field's with the schema. Labels are
//! routes, methods, fields, codes and names of ours: nothing that a caller sends becomes a label.
//!
//! A process has one set of metrics, as it has one log. `scrape.rs` asks for what need not be counted (pools, outbox,
//! memory) and serves the page; [`FAMILIES`] is the table of everything, which the documentation repeats.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use arc_swap::ArcSwap;
use http::{Method, StatusCode};
use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use crate::base::problem::Code;

/// One kind of measurement.
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it tells.
    pub about: &'static str,
}

/// Writes the table: a family a line.
macro_rules! families {
    ($($constant:ident = $name:literal, $kind:literal, [$($label:literal),*], $about:literal;)+) => {
        $(#[doc = $about]
        pub const $constant: &str = $name;)+
        /// Everything that is measured.
        pub const FAMILIES: &[Family] =
            &[$(Family { name: $name, kind: $kind, labels: &[$($label),*], about: $about },)+];
    };
}

families! {
    HTTP_REQUESTS = "muster_http_requests_total", "counter", ["route", "method", "status"],
        "Requests answered; `status` is the class (2xx), `route` the pattern, `none` where no route fits.";
    HTTP_SECONDS = "muster_http_request_duration_seconds", "histogram", ["route", "method"],
        "How long answers took.";
    OPERATIONS = "muster_graphql_operations_total", "counter", ["type"],
        "GraphQL operations run, over HTTP, WebSocket and server-sent events.";
    FIELD_SECONDS = "muster_graphql_root_field_duration_seconds", "histogram", ["type", "field"],
        "How long root fields took, whichever face asked (`/v1` runs root fields too).";
    SUBSCRIPTIONS = "muster_graphql_subscriptions", "gauge", [], "Subscriptions that are open.";
    PROBLEMS = "muster_problems_total", "counter", ["code"],
        "Errors shown to callers, of both faces, by code: `SIGN_IN_FAILED` are refused sign-ins.";
    RATE_LIMITED = "muster_rate_limited_total", "counter", ["class"],
        "Requests refused by a rate limit, or because a caller or all together held too much: `class` is the line of the ledger.";
    HELD = "muster_held", "gauge", ["what"], "What callers hold now, by line of the ledger.";
    HELD_MAX = "muster_held_max", "gauge", ["what"], "The most that all of them may hold together.";
    SQL_SECONDS = "muster_sql_statement_duration_seconds", "histogram", ["pool"],
        "How long statements took, commits among them.";
    SQL_FAILED = "muster_sql_statements_failed_total", "counter", ["pool"], "Statements that the database refused.";
    ROUNDS = "muster_job_runs_total", "counter", ["job", "outcome"], "Rounds of recurring work.";
    ROUND_SECONDS = "muster_job_duration_seconds", "histogram", ["job"], "How long rounds took.";
    POOL_CONNECTIONS = "muster_db_pool_connections", "gauge", ["pool", "state"], "Connections, `idle` or `used`.";
    POOL_MAX = "muster_db_pool_max_connections", "gauge", ["pool"], "The most connections of a pool.";
    OUTBOX_DEPTH = "muster_outbox_depth", "gauge", ["kind"],
        "What waits in the outbox: `MAIL` to leave, all others (commands) to be acknowledged by a host.";
    OUTBOX_AGE = "muster_outbox_oldest_seconds", "gauge", ["kind"], "How long the oldest of them has waited.";
    OUTBOX_ATTEMPTS = "muster_outbox_attempts_total", "counter", ["kind", "outcome"],
        "Attempts to send what waits in the outbox: `done`, `over` (no longer needed), `put_off` (tried again later), `given_up`, `unreadable` (tried again later, too).";
    AUDIT_UNSEALED = "muster_audit_unsealed", "gauge", [],
        "Lines of the audit log that wait to be sealed, counted up to 100,000.";
    AUDIT_CHECKPOINT_AGE = "muster_audit_checkpoint_age_seconds", "gauge", [],
        "How old the last checkpoint of a chain is that has grown since, the oldest of all.";
    UP = "muster_database_up", "gauge", [], "Whether the database answered this scrape.";
    POLICY_INFO = "muster_policy_info", "gauge", ["version"], "1; the policy in force.";
    POLICY_LOADED = "muster_policy_loaded_timestamp_seconds", "gauge", [], "Since when that policy is in force.";
    POLICY_PROBLEMS = "muster_policy_problems", "gauge", [],
        "What is wrong with the policy files, and with organizations' rules in the database.";
    POLICY_READS = "muster_policy_reloads_total", "counter", ["outcome"],
        "Readings of policy files that were changed: `taken`, or `refused` where anything was wrong.";
    POLICY_DIFFERING = "muster_policy_replicas_differing", "gauge", [],
        "Other replicas whose policy folder is not this replica's.";
    BUILD_INFO = "muster_build_info", "gauge", ["version", "database"], "1; what runs.";
    CPU = "process_cpu_seconds_total", "counter", [], "Time that the process has computed.";
    RESIDENT = "process_resident_memory_bytes", "gauge", [], "Memory that the process holds.";
    VIRTUAL = "process_virtual_memory_bytes", "gauge", [], "Addresses that the process has reserved.";
    OPEN_FDS = "process_open_fds", "gauge", [], "Files and connections that are open.";
    MAX_FDS = "process_max_fds", "gauge", [], "How many may be open.";
    STARTED = "process_start_time_seconds", "gauge", [], "When the process began to measure.";
}

/// Upper bounds of the histograms, in seconds.
const BUCKETS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

static ON: OnceLock<Meters> = OnceLock::new();

/// The meters, if anything is measured.
#[inline]
pub fn on() -> Option<&'static Meters> {
    ON.get()
}

/// Begins to measure. Asking twice changes nothing.
pub fn begin() -> &'static Meters {
    ON.get_or_init(Meters::new)
}

/// The handles of everything that is counted.
pub struct Meters {
    recorder: PrometheusRecorder,
    page: PrometheusHandle,
    routes: Table<Route>,
    fields: Table<Histogram>,
    rounds: Table<Round>,
    problems: Vec<Counter>,
    operations: [Counter; 3],
    /// Subscriptions that are open.
    pub subscriptions: Gauge,
    limited: Table<Counter>,
    outbox: Table<Counter>,
    sql: [Sql; 2],
}

/// Which kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It reads.
    Query = 0,
    /// It changes.
    Mutation = 1,
    /// It watches.
    Subscription = 2,
}

/// Which connections a statement went through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Those to read with.
    Read = 0,
    /// Those to write with: transactions and notes.
    Write = 1,
}

const POOLS: [&str; 2] = ["read", "write"];
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
const METHODS: [&str; 8] = ["GET", "POST", "PATCH", "PUT", "DELETE", "HEAD", "OPTIONS", "other"];

/// What is counted of a route, by method; made when a method is first met.
struct Route([OnceLock<Answers>; METHODS.len()]);

struct Answers {
    by_class: [Counter; CLASSES.len()],
    seconds: Histogram,
}

struct Round {
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
            rounds: Table::default(),
            limited: Table::default(),
            outbox: Table::default(),
            page: recorder.handle(),
            recorder,
        }
    }

    /// A request was answered.
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

    /// A root field was resolved. `owner` and `field` are of the schema.
    pub fn resolved(&self, owner: &str, field: &str, took: Duration) {
        let labels = [("type", owner), ("field", field)];
        let made = || Registry(&self.recorder).histogram(FIELD_SECONDS, &labels);
        self.fields.get(field, made).record(took.as_secs_f64());
    }

    /// An operation begins.
    pub fn operation(&self, operation: Operation) {
        self.operations[operation as usize].increment(1);
    }

    /// A caller is shown an error.
    pub fn problem(&self, code: Code) {
        self.problems[code as usize].increment(1);
    }

    /// A rate limit refuses a request.
    pub fn limited(&self, class: &'static str) {
        self.limited
            .get(class, || Registry(&self.recorder).counter(RATE_LIMITED, &[("class", class)]))
            .increment(1);
    }

    /// An attempt to send something that waits in the outbox has ended.
    pub fn attempted(&self, kind: &'static str, outcome: &'static str) {
        let labels = [("kind", kind), ("outcome", outcome)];
        let made = || Registry(&self.recorder).counter(OUTBOX_ATTEMPTS, &labels);
        self.outbox.get(&format!("{kind} {outcome}"), made).increment(1);
    }

    /// A statement has ended.
    pub fn statement(&self, pool: Pool, took: Duration, failed: bool) {
        let meters = &self.sql[pool as usize];
        meters.seconds.record(took.as_secs_f64());
        if failed {
            meters.failed.increment(1);
        }
    }

    /// A round of recurring work has ended.
    pub fn round(&self, job: &'static str, took: Duration, failed: bool) {
        let to = Registry(&self.recorder);
        let round = self.rounds.get(job, || Round {
            done: to.counter(ROUNDS, &[("job", job), ("outcome", "done")]),
            failed: to.counter(ROUNDS, &[("job", job), ("outcome", "failed")]),
            seconds: to.histogram(ROUND_SECONDS, &[("job", job)]),
        });
        let counter = if failed { &round.failed } else { &round.done };
        counter.increment(1);
        round.seconds.record(took.as_secs_f64());
    }

    /// What was counted until now, in Prometheus' text format.
    #[must_use]
    pub fn render(&self) -> String {
        self.page.render()
    }

    /// Takes in what histograms have been told; they keep every single value until then.
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

/// Makes handles.
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

/// Handles by a name of ours. Few, and nearly always there: a reader compares lengths before texts and never waits.
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
        // What another was faster to insert has the same name, and with it the same counters.
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
