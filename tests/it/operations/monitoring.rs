//! `release/monitoring/` with a real Prometheus, which reads a service and a host: each query runs and finds what it
//! asks for, and each alert says what to do.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use regex::Regex;
use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Address, ChildProcess, Machine, PATIENCE, Program, found};

/// What the rules ask for and a service shows only once it has happened.
const RARE: [&str; 1] = ["muster_queue_attempts_total"];

fn released(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("release/monitoring").join(name)
}

/// Prometheus, which reads these addresses once a second.
struct Prometheus {
    _process: ChildProcess,
    base: String,
    client: Client,
    _address: Address,
    _folder: TempDir,
}

impl Prometheus {
    /// With the released configuration and rules.
    fn start(service: &str, host: &str) -> Self {
        let (folder, address) = (tempfile::tempdir().unwrap(), Address::free());
        let config = fs::read_to_string(released("prometheus.yml")).unwrap();
        assert!(config.contains("127.0.0.1:9464") && config.contains("127.0.0.1:9465"), "{config}");
        let config = config.replace("127.0.0.1:9464", service).replace("127.0.0.1:9465", host);
        let file = folder.path().join("prometheus.yml");
        fs::write(&file, config.replace("15s", "1s")).unwrap();
        fs::copy(released("alerts.yml"), folder.path().join("alerts.yml")).unwrap();
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", file.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
        command.arg(format!("--web.listen-address={}", address.as_str())).arg("--log.level=warn");
        let spawned = ChildProcess::spawn(command.stdin(Stdio::null()).stdout(Stdio::null()));
        let process = spawned.expect("prometheus is installed (tests/install)");
        muster::core::outbound::install_tls_provider();
        let client = Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        let base = format!("http://{}", address.as_str());
        Self { _process: process, base, client, _address: address, _folder: folder }
    }

    /// The data of an answer of its API. `Err` is the whole answer.
    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, Value> {
        let asked = self.client.get(format!("{}{path}", self.base)).query(query).send().await;
        let answer: Value = match asked {
            Ok(answer) => answer.json().await.unwrap_or_default(),
            Err(error) => return Err(json!(error.to_string())),
        };
        if answer["status"] == "success" { Ok(answer["data"].clone()) } else { Err(answer) }
    }

    /// How many series a query finds. 0 before Prometheus is up.
    async fn count(&self, query: &str) -> usize {
        let data = self.get("/api/v1/query", &[("query", query)]).await.unwrap_or_else(|answer| {
            assert!(answer["status"] != "error", "{query}: {answer}");
            Value::Null
        });
        data["result"].as_array().map_or(0, Vec::len)
    }

    /// Waits until a query finds something.
    async fn finds(&self, query: &str) {
        let found = found(async || (self.count(query).await > 0).then_some(())).await;
        assert!(found.is_some(), "nothing is found by {query}");
    }

    /// The rules, once each has been evaluated.
    async fn rules(&self) -> Vec<Value> {
        let evaluated = async || {
            let data = self.get("/api/v1/rules", &[]).await.ok()?;
            let groups = data["groups"].as_array()?.clone();
            let rules =
                groups.iter().flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default());
            let rules: Vec<Value> = rules.collect();
            (!rules.is_empty() && rules.iter().all(|rule| rule["health"] != "unknown")).then_some(rules)
        };
        found(evaluated).await.expect("Prometheus evaluates the rules")
    }
}

/// The queries of the dashboard's panels.
fn panels() -> Vec<String> {
    let text = fs::read_to_string(released("grafana-dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().clone();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default());
    targets.map(|target| target["expr"].as_str().unwrap().replace("$__rate_interval", "1m")).collect()
}

/// What a query reads: its selectors, without ranges.
fn selectors(query: &str) -> Vec<String> {
    let selector = Regex::new(r"\b(?:muster_\w+|process_\w+|up)(?:\{[^}]*\})?").unwrap();
    selector.find_iter(query).map(|found| found.as_str().to_owned()).collect()
}

/// The anchors of the headings in a page of the documentation.
fn anchors(page: &str) -> Vec<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap();
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        heading.chars().filter(|c| c.is_alphanumeric() || *c == '-').collect::<String>()
    };
    headings.map(anchor).collect()
}

fn check_alert(rule: &Value) {
    let name = rule["name"].as_str().unwrap();
    assert_eq!((rule["type"].as_str(), rule["health"].as_str()), (Some("alerting"), Some("ok")), "{rule}");
    let annotation = |key: &str| rule["annotations"][key].as_str().unwrap_or_default().to_owned();
    assert!(annotation("summary").ends_with('.') && annotation("action").len() > 20, "{rule}");
    assert!(["critical", "warning"].contains(&rule["labels"]["severity"].as_str().unwrap()), "{rule}");
    let runbook = annotation("runbook");
    let (page, anchor) = runbook.split_once('#').unwrap_or_else(|| panic!("{name} names no section"));
    assert!(anchors(page).iter().any(|known| known == anchor), "{name}: there is no {runbook}");
}

#[test]
fn once_promtool_accepts_rules_and_configuration() {
    for (what, name) in [("rules", "alerts.yml"), ("config", "prometheus.yml")] {
        let mut promtool = Command::new("promtool");
        let ran = promtool.args(["check", what]).arg(released(name)).output();
        let ran = ran.expect("promtool is installed (tests/install)");
        assert!(ran.status.success(), "{name}: {}", String::from_utf8_lossy(&ran.stderr));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn once_dashboard_and_alerts_work_in_prometheus() {
    let (service, host) = (Address::free(), Address::free());
    let program = Program::new(&[("MUSTER_METRICS_LISTEN", service.as_str())]);
    let tenant = program.tenant();
    let serving = program.serve();
    let actor = serving.actor(&tenant);
    let made = actor.post(&format!("/v1/org/{}/server", tenant.org), json!({ "name": "rack" })).await;
    let made = made.expect(201);
    let mut machine = Machine::new();
    machine.join(actor.base(), made["provisioning_token"].as_str().unwrap());
    machine.options(&["--metrics", host.as_str()]);
    machine.run();

    let prometheus = Prometheus::start(service.as_str(), host.as_str());
    prometheus.finds(r#"muster_hosts{status="ONLINE"} == 1"#).await;
    prometheus.finds("muster_host_connected == 1").await;
    // A job has run twice, so that there are rates.
    prometheus.finds(r#"rate(muster_job_runs_total{outcome="done"}[1m]) > 0"#).await;
    for query in panels() {
        prometheus.finds(&query).await;
    }
    let rules = prometheus.rules().await;
    assert!(rules.len() > 20, "{rules:#?}");
    for rule in &rules {
        check_alert(rule);
        let query = rule["query"].as_str().unwrap();
        for selector in selectors(query) {
            if !RARE.iter().any(|rare| selector.starts_with(rare)) {
                prometheus.finds(&selector).await;
            }
        }
    }
    // An alert fires: the service is gone.
    drop(serving);
    prometheus.finds(r#"ALERTS{alertname="MusterDown"}"#).await;
}

#[test]
fn the_selectors_of_a_query_are_found() {
    let query =
        r#"max by (state) (muster_channels{state=~"A|B"}) > 0 and up == 1 or increase(process_x[5m]) > 2"#;
    assert_eq!(selectors(query), [r#"muster_channels{state=~"A|B"}"#, "up", "process_x"]);
}
