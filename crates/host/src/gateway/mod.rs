//! The connection to the control plane: one WebSocket, reconnected forever.
//!
//! - `link.rs`: a connection, from HELLO to its end. `frame_limit.rs`: events too large for a frame.
//! - `questions.rs`: questions to the control plane.
//! - `retry.rs`: pauses between attempts.

mod frame_limit;
mod link;
mod questions;
mod retry;

use std::{sync::Arc, time::Duration};

use muster_protocol::{
    Secret,
    command::CommandEnvelope,
    frame::{Delta, LogBatch, RefusedCode, Running},
};
use rustls::ClientConfig;
use tokio::{sync::mpsc, time::sleep};
use url::Url;

pub use self::link::probe;
use self::{link::Link, questions::Questions, retry::Retry};
use crate::{
    address,
    journal::Closed,
    machine::Meter,
    shared::{Ask, Shared},
};

/// A request of the control plane for agents.
#[derive(Debug)]
pub enum AgentRequest {
    Command(CommandEnvelope),
    /// Only these agents should run here.
    Wanted(Vec<Running>),
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("the control plane can't be reached: {0}")]
    Unreachable(String),
    /// The handshake was refused.
    #[error("the control plane refuses the connection with status {status}{text}")]
    Handshake { status: u16, text: String },
    /// Refused by the control plane, with a reason.
    #[error("the control plane says {code:?}: {reason}")]
    Refused {
        code: RefusedCode,
        reason: String,
        /// When to come back.
        retry_after: Option<Duration>,
    },
    #[error("the connection broke: {0}")]
    Broken(String),
    #[error("the control plane has been silent for 45 seconds")]
    Silent,
    /// The control plane's message is invalid.
    #[error("the control plane sent an invalid frame: {0}")]
    Malformed(String),
    #[error(transparent)]
    Closed(#[from] Closed),
    #[error(transparent)]
    Store(#[from] crate::journal::StoreError),
}

/// The host's connection to the control plane.
pub struct Gateway {
    shared: Arc<Shared>,
    url: String,
    tls: Arc<ClientConfig>,
    token: Secret,
    machine_id: String,
    questions: Questions,
    deltas: mpsc::Receiver<Delta>,
    logs: mpsc::Receiver<LogBatch>,
    agent_requests: mpsc::UnboundedSender<AgentRequest>,
    meter: Meter,
}

impl Gateway {
    pub fn new(
        shared: Arc<Shared>,
        base: &Url,
        tls: Arc<ClientConfig>,
        identity: (Secret, String),
        from_agents: (mpsc::Receiver<Ask>, mpsc::Receiver<Delta>, mpsc::Receiver<LogBatch>),
        agent_requests: mpsc::UnboundedSender<AgentRequest>,
    ) -> Self {
        Self {
            shared,
            url: address::socket(base),
            tls,
            token: identity.0,
            machine_id: identity.1,
            questions: Questions::new(from_agents.0),
            deltas: from_agents.1,
            logs: from_agents.2,
            agent_requests,
            meter: Meter::default(),
        }
    }

    /// Connects forever. Returns when the journal is closed.
    pub async fn run(mut self) {
        let mut retry = Retry::default();
        loop {
            let opened =
                self.questions.collect(Box::pin(Link::open(&self.url, &self.token, &self.tls))).await;
            let (was_welcome, error) = match opened {
                Ok(link) => self.serve(link).await,
                Err(error) => (false, error),
            };
            self.shared.counts.disconnected();
            if let LinkError::Closed(_) = error {
                return;
            }
            if matches!(error, LinkError::Refused { code: RefusedCode::Token, .. }) {
                // A definite answer: this host no longer owns its agents.
                let _ = self.agent_requests.send(AgentRequest::Wanted(Vec::new()));
            }
            let pause = retry.after(was_welcome, &error);
            log_disconnect(&error, pause);
            // Live text and logs without viewers are dropped.
            self.shared.logs.unwatch();
            while self.deltas.try_recv().is_ok() {}
            while self.logs.try_recv().is_ok() {}
            self.questions.collect(sleep(pause)).await;
        }
    }
}

/// Logs why the connection ended.
fn log_disconnect(error: &LinkError, pause: Duration) {
    let (seconds, advice) = (tenths(pause), advice(error));
    tracing::warn!(%error, seconds, "not connected; trying again. {advice}");
}

/// Seconds with one decimal, for people.
fn tenths(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}

/// Advice about a connection that won't recover by itself.
pub fn advice(error: &LinkError) -> &'static str {
    match error {
        LinkError::Handshake { status: 401 | 403, .. }
        | LinkError::Refused { code: RefusedCode::Token, .. } => {
            "The host's token is no longer valid. Regenerate the server's token, stop this host, and give it to `muster host \
             rejoin --token-stdin`."
        }
        LinkError::Handshake { status: 404, .. } => {
            "No gateway answers at this address. Is it a Muster control plane?"
        }
        LinkError::Refused { code: RefusedCode::Version, .. } => {
            "The control plane doesn't speak this host's version of the protocol. Install the version that it names."
        }
        LinkError::Refused { code: RefusedCode::JournalLost, .. } => {
            "This folder lacks confirmed events, as after a restore from a backup. Stop this host, run \
             `muster host rejoin`, and start it."
        }
        LinkError::Refused { code: RefusedCode::Restored, .. } => {
            "The control plane was restored from a backup that is older than this folder's journal. Stop this host, run \
             `muster host rejoin`, and start it."
        }
        LinkError::Refused { code: RefusedCode::Superseded, .. } => {
            "Another host uses the same token. Is a copy of this folder in use somewhere? Stop one of them."
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_logged_in_tenths_of_a_second() {
        assert_eq!(tenths(Duration::from_secs_f32(3.4)).to_string(), "3.4");
        assert_eq!(tenths(Duration::from_millis(12_345)).to_string(), "12.3");
    }
}
