//! `muster serve` without audit lines, metrics or traces: the load script measures their cost against it.

use std::io::{self, Write};

use anyhow::Context;
use clap::Parser;
use muster::{
    cli::{Cli, serve},
    core::{Options, keys, telemetry},
};
use tokio::net::TcpListener;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    cli: Cli,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let said = |failure: muster::cli::Failure| anyhow::anyhow!("{failure:?}");
    let mut config = Arguments::parse().cli.settings().map_err(said)?;
    (config.metrics.listen, config.traces.endpoint) = (None, None);
    telemetry::init(&config).context("telemetry")?;
    let app = muster::service::open(config, Options { audited: false, ..Options::default() }).await?;
    keys::load(&app).await.map_err(|problem| anyhow::anyhow!("{problem:?}"))?;
    let listener = TcpListener::bind(app.config.listen).await?;
    let on_ready = || {
        let _ = writeln!(io::stdout(), "Muster is serving on …");
    };
    serve(app, listener, on_ready, std::future::ready(())).await.map_err(said)
}
