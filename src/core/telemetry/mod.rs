//! The process's reports about itself: the log, to standard error, in this file; [`metrics`] and [`traces`] next to it.
//! `muster-printing` writes the log's lines, so that a line that can't be written affects nothing else.
//!
//! No secret may get here, except for the code of an installation's first start (`src/cli/serve.rs`). Secrets are
//! `secrecy` types, whose `Debug` prints nothing; request headers and bodies are never fields of a span; SQL is logged
//! without its values. A test with known secrets searches the output of [`subscriber`].

use std::time::Duration;

use tracing::{Instrument, Subscriber};
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt::MakeWriter, layer::SubscriberExt};

use crate::{
    base::problem::Problem,
    core::config::{Config, Log, LogFormat},
};

pub mod metrics;
pub mod traces;

/// Records a statement that has ended.
pub fn statement(pool: metrics::Pool, sql: &str, took: Duration, failed: bool) {
    if let Some(meters) = metrics::on() {
        meters.statement(pool, took, failed);
    }
    if traces::on() {
        traces::statement(pool, sql, took, failed);
    }
}

/// Records that a request was refused or failed. Counts the problem, and logs the cause of an internal failure: once,
/// at the edge.
pub fn problem(problem: &Problem, request_id: &str) {
    if let Some(meters) = metrics::on() {
        meters.problem(problem.code);
    }
    let Some(cause) = problem.cause() else { return };
    // Errors that the caller can fix, such as a lost edit race, are not failures.
    if problem.code.status().is_server_error() {
        tracing::error!(
            request_id,
            code = problem.code.as_str(),
            cause = format!("{cause:#}"),
            "request.failed"
        );
    } else {
        tracing::debug!(
            request_id,
            code = problem.code.as_str(),
            cause = format!("{cause:#}"),
            "request.refused"
        );
    }
}

/// Runs one run of the recurring work `job`, measured and traced.
pub async fn job<T, E>(job: &'static str, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let began = std::time::Instant::now();
    let done = if traces::on() {
        let span = traces::job(job);
        let done = work.instrument(span.clone()).await;
        if done.is_err() {
            span.record("otel.status_code", "ERROR");
        }
        done
    } else {
        work.await
    };
    if let Some(meters) = metrics::on() {
        meters.job_run(job, began.elapsed(), done.is_err());
    }
    done
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter does not parse (a loaded configuration's always does).
    #[error("log.filter: {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// Something else in the process has already set it up.
    #[error("logging is already set up")]
    AlreadySet(#[from] tracing::subscriber::SetGlobalDefaultError),
    /// Traces can't be sent with these settings.
    #[error("traces.endpoint: {0}")]
    Traces(String),
}

/// Sets up this process's log, and its traces if the settings name a collector. Call it once, at start.
///
/// # Errors
/// See [`TelemetryError`].
pub fn init(config: &Config) -> Result<(), TelemetryError> {
    let (log, colored) = (muster_printing::to_stderr(), muster_printing::is_terminal());
    let subscriber = match &config.traces.endpoint {
        Some(endpoint) => traced_subscriber(config, endpoint, log, colored)?,
        None => subscriber(&config.log, log, colored)?,
    };
    tracing::subscriber::set_global_default(subscriber)?;
    muster_printing::log_panics();
    Ok(())
}

/// A subscriber that writes the log to `writer` and sends traces to `endpoint`.
///
/// # Errors
/// See [`TelemetryError`].
pub fn traced_subscriber<W>(
    config: &Config,
    endpoint: &str,
    writer: W,
    colored: bool,
) -> Result<Box<dyn Subscriber + Send + Sync>, TelemetryError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    // Keep exported spans out of the log.
    let filter = filter(&config.log)?.add_directive(format!("{}=off", traces::TARGET).parse()?);
    let base = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(colored);
    let base = base.log_internal_errors(false);
    let log: Box<dyn Layer<Registry> + Send + Sync> = match config.log.format {
        LogFormat::Text => base.boxed(),
        LogFormat::Json => base.json().flatten_event(true).with_span_list(false).boxed(),
    };
    let traced = traces::layer(config, endpoint)?;
    Ok(Box::new(tracing_subscriber::registry().with(log.with_filter(filter)).with(traced)))
}

/// A subscriber that writes to `writer`, so that a test can read the log.
///
/// # Errors
/// The filter does not parse.
pub fn subscriber<W>(
    log: &Log,
    writer: W,
    colored: bool,
) -> Result<Box<dyn Subscriber + Send + Sync>, TelemetryError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let base = tracing_subscriber::fmt().with_env_filter(filter(log)?).with_writer(writer);
    let base = base.log_internal_errors(false);
    Ok(match log.format {
        LogFormat::Text => Box::new(base.with_ansi(colored).finish()),
        LogFormat::Json => Box::new(base.json().flatten_event(true).with_span_list(false).finish()),
    })
}

fn filter(log: &Log) -> Result<EnvFilter, TelemetryError> {
    // Below a warning rmcp logs whole messages, and a tool's result may contain a token.
    Ok(EnvFilter::try_new(&log.filter)?.add_directive("rmcp=warn".parse()?))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{self, Write},
        sync::{Arc, Mutex},
    };

    use secrecy::SecretString;

    use super::*;

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(filter: &str, format: LogFormat) -> String {
        let captured = Captured::default();
        let writer = captured.clone();
        let log = Log { filter: filter.to_owned(), format };
        let subscriber = subscriber(&log, move || writer.clone(), false).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            let secret = SecretString::from("hunter2");
            let _span = tracing::info_span!("request", id = 7).entered();
            tracing::info!(?secret, agent = 3, "started");
            tracing::debug!("details");
        });
        let bytes = captured.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn only_failures_are_errors_in_the_log() {
        let log_of = |problem: &Problem| {
            let captured = Captured::default();
            let writer = captured.clone();
            let log = Log { filter: "debug".to_owned(), format: LogFormat::Text };
            let subscriber = subscriber(&log, move || writer.clone(), false).unwrap();
            tracing::subscriber::with_default(subscriber, || super::problem(problem, "r1"));
            String::from_utf8(captured.0.lock().unwrap().clone()).unwrap()
        };
        let conflict = log_of(&Problem::from(sea_orm::DbErr::RecordNotUpdated));
        assert!(conflict.contains("DEBUG") && conflict.contains("request.refused"), "{conflict}");
        let failure = log_of(&Problem::internal(anyhow::anyhow!("a bug")));
        assert!(failure.contains("ERROR") && failure.contains("request.failed"), "{failure}");
        let plain = log_of(&Problem::new(crate::base::problem::Code::Conflict, "no cause"));
        assert_eq!(plain, "");
    }

    #[test]
    fn json_is_an_object_a_line_and_secrets_print_nothing() {
        let text = logged("info", LogFormat::Json);
        let line: serde_json::Value = muster_json::from_str(&text).unwrap();
        assert_eq!((&line["message"], &line["agent"]), (&"started".into(), &3.into()));
        assert_eq!(line["span"]["id"], 7);
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[test]
    fn text_follows_the_filter() {
        let text = logged("debug", LogFormat::Text);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains("hunter2") && !text.contains('\u{1b}'), "{text}");
        assert_eq!(logged("warn", LogFormat::Text), "");
        let log = Log { filter: "muster=loud".to_owned(), format: LogFormat::Text };
        assert!(matches!(subscriber(&log, io::sink, false), Err(TelemetryError::Filter(_))));
    }
}
