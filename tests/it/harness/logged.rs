//! The log of the service under test.

use std::{
    io::Write,
    sync::{Arc, Mutex},
};

use muster::core::{
    config::{Log, LogFormat},
    telemetry,
};

/// All that this process has logged.
#[derive(Clone, Default)]
pub struct Logged(Arc<Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Logged {
    /// Captures the lines that pass the filter. Each test has its own process, and so its own log.
    pub fn capture(filter: &str) -> Self {
        let (logged, log) = (Self::default(), Log { filter: filter.to_owned(), format: LogFormat::Json });
        let writer = logged.clone();
        let subscriber = telemetry::subscriber(&log, move || writer.clone(), false).unwrap();
        tracing::subscriber::set_global_default(subscriber)
            .expect("run with cargo-nextest: one process per test");
        logged
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}
