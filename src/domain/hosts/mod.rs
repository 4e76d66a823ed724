//! Hosts: the programs on servers that run agents. This feature has the state of their connections; the sockets are in
//! `api/gateway`.
//!
//! - `join.rs`: exchanges a provisioning token for the host's own. `rejoin.rs`: a host rejoins from its folder after a
//!   restore.
//! - `handshake.rs`: accepts a connection. It gets an epoch, which is counted in the database, and **every write on its
//!   behalf names that epoch**. So an older connection, on any replica, writes nothing.
//! - `commands.rs`: numbers commands, and sends them until they are in the host's journal.
//! - `events.rs`: stores a host's reports, each once; `apply.rs` dispatches them.
//! - `plan_requests.rs`: answers a host's requests for plans; `turn_plan.rs`: the prompt of a turn.
//! - `refusals.rs`: shows people why a host is refused.
//! - `load_alerts.rs`: the machine's load, and alerts. `load_history.rs`: the load over time.
//! - `delta_stream.rs`: text that is being written, for live viewers. `log_stream.rs`: lines of agents' logs.
//! - `presence.rs`: jobs that find ended connections, connected hosts and lost hosts.
//! - `queries.rs`: SQL.
//!
//! Organization and server come from the connection's token, never from a frame. A host's report about an agent counts
//! only if the agent is on its server and the launch is the current one; costs of an earlier launch on its server count
//! too.

mod apply;
mod commands;
mod delta_stream;
mod events;
mod handshake;
mod join;
mod load_alerts;
mod load_history;
mod load_history_queries;
mod log_stream;
mod plan_requests;
mod presence;
mod queries;
mod refusals;
mod rejoin;
mod turn_plan;

use muster_protocol::{ToHost, frame::RefusedCode};

pub use self::{
    apply::apply,
    commands::{MAX_UNACKNOWLEDGED, acknowledge_commands, next_commands},
    delta_stream::Viewing,
    events::{MAX_EVENTS, gap, store_events},
    handshake::{WINDOW, accept_connection},
    join::join,
    load_alerts::Readings,
    load_history::{ServerLoad, delete_load_history, load_history},
    log_stream::{LOG_LEASE, WatchedLogs},
    plan_requests::answer,
    presence::{SILENT, mark_offline, record_disconnect, refresh_presence, wake_connections},
    refusals::record_refusal,
    turn_plan::turn_plan,
};
use crate::{
    base::{
        ids::{OrgId, ServerId},
        plain,
        problem::{Code, Problem, Result},
    },
    core::{
        Core,
        access::{
            Scope,
            token::{Token, TokenHash, TokenKind},
        },
    },
};

/// A host, as its token identifies it.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    pub org: OrgId,
    pub server: ServerId,
    token: TokenHash,
}

/// An accepted connection.
#[derive(Clone)]
pub struct Link {
    /// The service's scope in the host's organization.
    pub scope: Scope,
    pub server: ServerId,
    /// Counts the server's connections. Writes of older ones are refused.
    pub epoch: i64,
    token: TokenHash,
}

/// Why a connection is refused or ends, with the content of the frame REFUSED.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub code: RefusedCode,
    /// The reason, and what to do.
    pub reason: String,
    /// When to come back, in seconds.
    pub retry_after: Option<i64>,
}

/// Why a connection ends.
#[derive(Clone, Debug)]
pub enum Ended {
    /// The host learns the reason.
    Refused(Refusal),
    /// The service failed. The host may come back.
    Failed(Problem),
}

impl Refusal {
    /// A refusal that needs a person.
    pub fn new(code: RefusedCode, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), retry_after: None }
    }

    /// The host may come back after this many seconds.
    #[must_use]
    pub fn retry(self, seconds: i64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// An invalid frame.
    pub fn malformed(reason: impl Into<String>) -> Self {
        Self::new(RefusedCode::Malformed, reason)
    }
}

impl From<Refusal> for ToHost {
    fn from(refusal: Refusal) -> Self {
        let Refusal { code, reason, retry_after } = refusal;
        Self::Refused { code, reason, retry_after }
    }
}

impl From<Refusal> for Ended {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Problem> for Ended {
    fn from(problem: Problem) -> Self {
        Self::Failed(problem)
    }
}

impl From<sea_orm::DbErr> for Ended {
    fn from(error: sea_orm::DbErr) -> Self {
        Self::Failed(error.into())
    }
}

/// Parses a host's token, without the database.
///
/// # Errors
/// `UNAUTHENTICATED` for any other text.
pub fn parse_host_token(token: &str) -> Result<TokenHash> {
    Ok(Token::parse_kind(TokenKind::Host, token).ok_or_else(unknown_host)?.hash)
}

fn unknown_host() -> Problem {
    let detail = "This is not, or no longer, the token of a host. Regenerate the server's provisioning token, and give it to \
                  `muster host rejoin --token-stdin` on its machine.";
    Problem::new(Code::Unauthenticated, detail)
}

/// The host that this token identifies.
///
/// # Errors
/// `UNAUTHENTICATED` for a token that is no longer a host's.
pub async fn identify(core: &Core, token: TokenHash) -> Result<Identity> {
    let found = queries::server_of_host(core, token).await?.ok_or_else(unknown_host)?;
    core.access.cache.note_proven(token);
    Ok(Identity { org: found.organization_id, server: found.id, token })
}

impl Link {
    /// Requires that the connection is still the server's current one.
    ///
    /// # Errors
    /// SUPERSEDED, or TOKEN if the host's token is no longer valid.
    pub async fn fence(&self) -> Result<(), Ended> {
        let current = queries::connection(self).await?;
        let current = current.ok_or_else(|| Problem::not_found("server", self.server))?;
        if current.host_epoch == self.epoch {
            return Ok(());
        }
        Err(if current.host_token_hash.as_deref() == Some(self.token.as_bytes()) {
            let reason = "A newer connection of this host has taken over. If it is not this program's own, a copy of \
                          its folder is running elsewhere: stop one of them.";
            Refusal::new(RefusedCode::Superseded, reason).into()
        } else {
            let reason = "The server was deleted, or its provisioning token was regenerated. Join again with the new \
                          token to go on.";
            Refusal::new(RefusedCode::Token, reason).into()
        })
    }

    /// The reason why a write on behalf of this connection affected nothing.
    async fn fencing_error(&self) -> Ended {
        match self.fence().await {
            Err(ended) => ended,
            Ok(()) => Problem::internal(anyhow::anyhow!("a fenced write of the current epoch")).into(),
        }
    }
}

/// A host's text in a form that people can read: one line of at most `most` characters, without control characters.
fn readable(text: &str, most: usize) -> Option<String> {
    let text: String = plain::one_line(text).chars().take(most).collect();
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
