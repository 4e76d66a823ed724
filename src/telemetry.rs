//! What the process says about itself: the log here, to standard error; [`metrics`] beside it.
//!
//! Nothing secret may reach it. Secrets are `secrecy` types, whose `Debug` prints nothing; request headers and
//! bodies are never fields of a span; SQL is logged without its values. The test with known secrets searches
//! what [`subscriber`] writes.

use std::io::IsTerminal;

use tracing::Subscriber;
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

use crate::config::{Log, LogFormat};

pub mod metrics;

/// A statement has ended.
pub fn statement(pool: metrics::Pool, ended: &sea_orm::metric::Info<'_>) {
    if let Some(meters) = metrics::on() {
        meters.statement(pool, ended.elapsed, ended.failed);
    }
}

/// Runs one round of the recurring work `job`, measured.
pub async fn round<T, E>(job: &'static str, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let Some(meters) = metrics::on() else { return work.await };
    let began = std::time::Instant::now();
    let done = work.await;
    meters.round(job, began.elapsed(), done.is_err());
    done
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter does not parse (a loaded configuration's does).
    #[error("log.filter: {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// Something else in the process has set it up already.
    #[error("logging is set up already")]
    AlreadySet(#[from] tracing::subscriber::SetGlobalDefaultError),
}

/// Sets up the logging of this process. Once, at the start.
///
/// # Errors
/// See [`TelemetryError`].
pub fn init(log: &Log) -> Result<(), TelemetryError> {
    let colored = std::io::stderr().is_terminal();
    tracing::subscriber::set_global_default(subscriber(log, std::io::stderr, colored)?)?;
    Ok(())
}

/// A subscriber that writes to `writer`, so that a test can read what was logged.
///
/// # Errors
/// When the filter does not parse.
pub fn subscriber<W>(
    log: &Log,
    writer: W,
    colored: bool,
) -> Result<Box<dyn Subscriber + Send + Sync>, TelemetryError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let filter = EnvFilter::try_new(&log.filter)?;
    let base = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    Ok(match log.format {
        LogFormat::Text => Box::new(base.with_ansi(colored).finish()),
        LogFormat::Json => Box::new(base.json().flatten_event(true).with_span_list(false).finish()),
    })
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
    fn json_is_an_object_a_line_and_secrets_print_nothing() {
        let text = logged("info", LogFormat::Json);
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
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
