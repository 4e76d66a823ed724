//! `muster serve`.

use std::{
    io::{self, Write},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use secrecy::ExposeSecret;
use serde_json::json;
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    time::{interval, timeout},
};

use super::{Cli, Failure, Output, doctor, listen, load, open};
use crate::{
    api::middleware::{self, scrape},
    core::{
        Core,
        access::org_policies,
        config::{Config, LogFormat},
        events, keys,
        store::Owner,
        telemetry::metrics,
    },
    domain::people,
    jobs::{self, PERIODIC_JOBS},
    service::Service,
};

/// How to choose another address to serve on.
const LISTEN: &str = "MUSTER_LISTEN={} (listen)";
/// The same, if the command line has chosen one.
const LISTEN_ARGUMENT: &str = "muster serve --listen {}";
/// How to choose another address for the metrics.
const METRICS: &str = "MUSTER_METRICS_LISTEN={} (metrics.listen)";

/// Run the service.
#[derive(Debug, clap::Args)]
#[command(after_help = "`muster config defaults` describes every setting.")]
pub struct Serve {
    /// The address and port to serve on [default: the setting listen]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Do not change the database's tables
    #[arg(long)]
    no_migrate: bool,
}

impl Serve {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let config = self.settings(cli)?;
        let hint = if self.listen.is_some() { LISTEN_ARGUMENT } else { LISTEN };
        doctor::require_good_files(&config)?;
        // Another process that serves this database is reported first: it most likely has the address as well.
        Owner::check(&config)?;
        let bound = listen::bind(config.listen, hint)?;
        if self.no_migrate {
            open::require_file(&config)?;
        } else {
            open::make_folder(&config)?;
        }
        let mut owner = Owner::acquire(&config, "muster serve")?;
        let core = if self.no_migrate {
            open::as_is(config, true).await?
        } else {
            open::owned(config, &owner, true).await?.0
        };
        let core = load(core).await?;
        let listener = bound.listen(hint)?;
        let address = listener.local_addr()?;
        owner.serves_at(&format!("http://{address}"))?;
        // Programs that read both streams expect one format.
        let in_json = cli.json || core.config.log.format == LogFormat::Json;
        let ready = if in_json {
            json!({ "address": address }).to_string()
        } else {
            format!("Muster is serving on http://{address}")
        };
        let on_ready = || {
            let _ = writeln!(io::stdout(), "{ready}");
        };
        invite_first_person(&core, address).await;
        serve(core, listener, on_ready, std::future::ready(())).await?;
        Ok(Output::none())
    }

    fn settings(&self, cli: &Cli) -> Result<Config, Failure> {
        let config = cli.settings()?;
        Ok(match self.listen {
            Some(address) => config.serving_on(address)?,
            None => config,
        })
    }
}

/// Logs the address of the page that makes the first person and organization, while no user exists. The code is in the
/// fragment, which browsers send to no server.
async fn invite_first_person(core: &Core, address: SocketAddr) {
    match people::renew_first_code(core).await {
        Ok(Some(code)) => {
            let page = format!("{}/first-start#code={}", base_url(core, address), code.expose_secret());
            tracing::warn!(
                %page,
                "first_start.open: there are no users yet; this page makes the first one, and works once"
            );
        }
        Ok(None) => {}
        Err(problem) => {
            let why = problem.cause().map(|cause| format!("{cause:#}"));
            tracing::error!(%problem, why, "first_start.not_prepared");
        }
    }
}

/// The URL under which a person who reads the log most likely reaches the service.
fn base_url(core: &Core, address: SocketAddr) -> String {
    core.config.public_url.clone().unwrap_or_else(|| {
        if address.ip().is_unspecified() {
            format!("http://localhost:{}", address.port())
        } else {
            format!("http://{address}")
        }
    })
}

/// Serves on `listener` until the process is asked to stop. It then accepts no more connections, finishes requests in
/// progress (within the configured grace period), and closes everything. A second signal ends it at once. `before_stop`
/// runs first, while it still serves.
///
/// # Errors
/// The listener fails.
pub async fn serve(
    core: Arc<Core>,
    listener: TcpListener,
    on_ready: impl FnOnce(),
    before_stop: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    start_background_work(&core);
    show_metrics(&core)?;
    let address = listener.local_addr()?;
    let stopping = core.tasks.stopping.clone();
    let service = Service::build(Arc::clone(&core))?;
    service.ingest.listen();
    let router = service.router();
    let serving = middleware::serve(listener, router, &core, stopping.clone());
    let mut serving = std::pin::pin!(serving);
    tracing::info!(%address, version = env!("CARGO_PKG_VERSION"), "serve.ready");
    on_ready();
    tokio::select! {
        () = &mut serving => return Ok(()),
        name = signals.next() => tracing::info!(signal = name, "serve.stopping"),
    }
    tokio::select! {
        () = &mut serving => return Ok(()),
        () = before_stop => {}
        name = signals.next() => tracing::warn!(signal = name, "serve.stopping_at_once"),
    }
    stopping.cancel();
    let finish = async {
        if timeout(core.config.shutdown_grace(), &mut serving).await.is_err() {
            tracing::warn!("serve.requests_left_unfinished");
        }
        core.shut_down().await;
    };
    tokio::select! {
        () = finish => tracing::info!("serve.stopped"),
        name = signals.next() => tracing::warn!(signal = name, "serve.stopped_at_once"),
    }
    Ok(())
}

/// Serves the metrics on their own listener, if the settings name one, for as long as the service runs.
fn show_metrics(core: &Arc<Core>) -> Result<(), Failure> {
    let Some(address) = core.config.metrics.listen else { return Ok(()) };
    let listener = listen::bind(address, METRICS)?.listen(METRICS)?;
    tracing::info!(address = %listener.local_addr()?, "metrics.ready");
    let (router, stopping) = (scrape::router(Arc::clone(core)), core.tasks.stopping.clone());
    core.tasks.spawn(async move {
        let serving = axum::serve(listener, router).with_graceful_shutdown(stopping.cancelled_owned());
        if let Err(error) = serving.await {
            tracing::error!(%error, "metrics.failed");
        }
    });
    let stopping = core.tasks.stopping.clone();
    core.tasks.spawn(async move {
        // Histograms absorb their samples.
        let mut tick = interval(Duration::from_secs(5));
        while stopping.run_until_cancelled(tick.tick()).await.is_some() {
            metrics::start().upkeep();
        }
    });
    Ok(())
}

/// Starts the work besides requests: watching policies and keys, and the periodic jobs.
fn start_background_work(core: &Arc<Core>) {
    let follower = Arc::clone(core);
    let policy = core.policy.clone().watch(move || {
        let core = Arc::clone(&follower);
        Box::pin(async move {
            if let Err(problem) = org_policies::follow(&core).await {
                tracing::error!(%problem, "policy.versions_not_read");
            }
        })
    });
    let stopping = core.tasks.stopping.clone();
    core.tasks.spawn(async move {
        let _ = stopping.run_until_cancelled(policy).await;
    });
    let (keys, stopping) = (keys::watch(Arc::clone(core)), core.tasks.stopping.clone());
    core.tasks.spawn(async move {
        let _ = stopping.run_until_cancelled(keys).await;
    });
    core.tasks.spawn_last(events::relay(Arc::clone(core)));
    if core.config.is_in_clear() {
        tracing::warn!(
            listen = %core.config.listen,
            "serve.in_clear: passwords and tokens reach this address unencrypted; put a proxy with TLS in front, and set public_url (https://…) or trusted_proxies"
        );
    }
    if !core.mailer.is_on() {
        tracing::warn!(
            "mail.off: mail.url is not set; invitations and password resets can't be sent by mail, and no one is notified of approvals"
        );
    }
    jobs::start(core, PERIODIC_JOBS);
}

/// The two signals that ask a process to stop.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
