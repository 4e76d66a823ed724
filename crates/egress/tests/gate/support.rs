//! A gate and its environment.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use muster_addresses::Resolve;
use muster_egress::{CrossingDecision, CrossingRequest, Gate, HostServices, LeaseOutcome, Reach, Rules};
use muster_protocol::{
    HostEvent,
    plan::{Destination, LaunchPlan, Limits, McpServer, McpTransport, ModelAccess},
    spending::{LeaseAsked, ModelCall},
};
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use tempfile::TempDir;
use tokio::{
    net::{UnixListener, UnixStream},
    sync::watch,
};

use crate::servers::authority;

/// Trusts only the tests' own authority.
pub fn roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority().root.as_bytes()).unwrap()).unwrap();
    roots
}

/// Names for tests. Several answers of a name are returned in turn.
#[derive(Debug, Default)]
pub struct Names {
    answers: Mutex<BTreeMap<String, VecDeque<Vec<IpAddr>>>>,
    pub asked: AtomicUsize,
}

impl Names {
    pub fn set(&self, name: &str, answers: &[&[&str]]) {
        let parse = |list: &&[&str]| list.iter().map(|address| address.parse().unwrap()).collect();
        self.answers.lock().unwrap().insert(name.to_owned(), answers.iter().map(parse).collect());
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut answers = self.answers.lock().unwrap();
        let found = answers
            .get_mut(host)
            .and_then(|list| if list.len() > 1 { list.pop_front() } else { list.front().cloned() });
        Box::pin(std::future::ready(found.ok_or_else(|| io::ErrorKind::NotFound.into())))
    }
}

/// The host's services.
#[derive(Default)]
pub struct Host {
    pub verdicts: Mutex<BTreeMap<String, CrossingDecision>>,
    pub judged: Mutex<Vec<CrossingRequest>>,
    pub leases: Mutex<VecDeque<LeaseOutcome>>,
    pub questions: Mutex<Vec<LeaseAsked>>,
    pub reports: Mutex<Vec<HostEvent>>,
    /// Whether the queue of reports is full. Waiting calls watch this.
    pub is_full: watch::Sender<bool>,
}

impl Host {
    pub fn calls(&self) -> Vec<ModelCall> {
        let reports = self.reports.lock().unwrap();
        let calls = reports.iter().filter_map(|report| match report {
            HostEvent::ModelCalled(call) => Some(call.clone()),
            _ => None,
        });
        calls.collect()
    }

    /// The credentials whose use was reported.
    pub fn used(&self) -> Vec<i64> {
        let reports = self.reports.lock().unwrap();
        let all = reports.iter().filter_map(|report| match report {
            HostEvent::CredentialsUsed { credential_ids } => Some(credential_ids.clone()),
            _ => None,
        });
        all.flatten().collect()
    }

    pub fn unreached(&self) -> Vec<(String, u16)> {
        let reports = self.reports.lock().unwrap();
        let all = reports.iter().filter_map(|report| match report {
            HostEvent::Unreached { destination, .. } => Some((destination.host.clone(), destination.port)),
            _ => None,
        });
        all.collect()
    }
}

impl HostServices for Host {
    fn judge(&self, asking: CrossingRequest) -> BoxFuture<'_, CrossingDecision> {
        let verdict = self.verdicts.lock().unwrap().get(&asking.crossing.tool).cloned();
        self.judged.lock().unwrap().push(asking);
        Box::pin(async move {
            // A decision takes a moment.
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            verdict.unwrap_or(CrossingDecision::Refused { reason: "The rules say no.".to_owned() })
        })
    }

    fn lease(&self, asked: LeaseAsked) -> BoxFuture<'_, LeaseOutcome> {
        self.questions.lock().unwrap().push(asked);
        let next = self.leases.lock().unwrap().pop_front();
        Box::pin(async move {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            next.unwrap_or(LeaseOutcome::Refused { reason: "The budget of this month is spent.".to_owned() })
        })
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        let mut full = self.is_full.subscribe();
        Box::pin(async move { _ = full.wait_for(|is_full| !is_full).await })
    }

    fn report(&self, event: HostEvent) {
        self.reports.lock().unwrap().push(event);
    }

    fn now(&self) -> i64 {
        1_700_000_000_000
    }

    fn program(&self, server: &McpServer, _: Limits) -> io::Result<tokio::process::Command> {
        let McpTransport::Stdio { command, args, environment } = &server.transport else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut program = tokio::process::Command::new(command);
        program.args(args).envs(environment.iter().map(|variable| (&variable.name, variable.value.expose())));
        Ok(program)
    }
}

/// A gate with its environment.
pub struct World {
    pub dir: TempDir,
    pub names: Arc<Names>,
    pub host: Arc<Host>,
    pub gate: Gate,
    pub plan: LaunchPlan,
}

impl World {
    /// The host's owner allows only 127.0.0.1.
    pub fn new() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = TempDir::new().unwrap();
        std::fs::create_dir(dir.path().join("gate")).unwrap();
        let (names, host) = (Arc::new(Names::default()), Arc::new(Host::default()));
        let networks = vec!["127.0.0.1/32".parse().unwrap()];
        let reach = Reach::with(networks, Arc::clone(&names) as Arc<dyn Resolve>, roots());
        let listener = UnixListener::bind(dir.path().join("gate/gate")).unwrap();
        let gate = Gate::serve(listener, Arc::new(reach), Arc::clone(&host) as Arc<dyn HostServices>);
        Self { dir, names, host, gate, plan: LaunchPlan::default() }
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("gate/gate")
    }

    /// Allows a destination, and resolves its name to this machine.
    pub fn allow(&mut self, host: &str, port: u16) -> &mut Self {
        self.names.set(host, &[&["127.0.0.1"]]);
        self.plan.network.allowed.push(Destination { host: host.to_owned(), port });
        self
    }

    /// Sets the model server.
    pub fn model(&mut self, provider: &str, port: u16, key: &str) -> &mut Self {
        self.plan.model_access = Some(ModelAccess {
            credential_id: Some(7),
            provider: provider.to_owned(),
            base_url: Some(format!("http://127.0.0.1:{port}")),
            key: key.to_owned().into(),
        });
        self
    }

    /// Applies the plan's rules.
    pub fn apply(&self) {
        self.gate.set_rules(Rules::from_plan(&self.plan));
    }

    pub async fn ask(&self, request: Request<Full<Bytes>>) -> (StatusCode, String) {
        let answer = send(&self.socket(), request).await;
        let status = answer.status();
        let bytes =
            answer.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        (status, String::from_utf8_lossy(&bytes).into_owned())
    }

    pub async fn get(&self, path: &str) -> (StatusCode, String) {
        self.ask(Request::get(path).body(Full::default()).unwrap()).await
    }

    pub async fn post(&self, path: &str, json: &serde_json::Value) -> (StatusCode, String) {
        let request = Request::post(path).header("content-type", "application/json");
        self.ask(request.body(Full::from(json.to_string())).unwrap()).await
    }
}

/// Sends a request on its own connection.
pub async fn send(socket: &Path, request: Request<Full<Bytes>>) -> Response<Incoming> {
    let stream = UnixStream::connect(socket).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(async move { _ = connection.with_upgrades().await });
    sender.send_request(request).await.unwrap()
}
