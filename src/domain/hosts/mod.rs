//! Hosts: the programs on servers that run agents. This is their connection as data; the socket is in `api/gateway`.
//!
//! - `join.rs`: a provisioning token is exchanged for the host's own. `rejoin.rs`: a host begins again in its folder.
//! - `handshake.rs`: a connection is accepted. It gets an epoch, which is counted in the database, and **every write on its
//!   behalf names that epoch**. So an older connection, on any replica, writes nothing.
//! - `commands.rs`: numbers commands, and hands them out until they are in the host's journal.
//! - `events.rs`: stores a host's reports, each once; `apply.rs` says what each of them means.
//! - `plan_requests.rs`: what a host asks for just before it acts; `turn_plan.rs`: what to say in a turn.
//! - `refusals.rs`: what people are shown if a host is refused.
//! - `load_alerts.rs`: how busy the machine is, and when that is worth an alert.
//! - `delta_stream.rs`: text that is being written, for live viewers.
//! - `presence.rs`: the jobs: who is cut off, who is there, who is gone.
//! - `queries.rs`: the SQL of all of them.
//!
//! Organization and server come from the connection's token, never from a frame. What a host says about an agent counts
//! only if the agent is on its server and the launch is the current one; what an earlier launch on its server has spent counts,
//! too.

mod apply;
mod commands;
mod delta_stream;
mod events;
mod handshake;
mod join;
mod load_alerts;
mod plan_requests;
mod presence;
mod queries;
mod refusals;
mod rejoin;
mod turn_plan;

use muster_protocol::{ToHost, frame::RefusedCode};

pub use self::{
    apply::apply,
    commands::{MOST_UNACKNOWLEDGED, next, received},
    delta_stream::Viewing,
    events::{MOST_EVENTS, gap, store},
    handshake::{WINDOW, greet},
    join::join,
    load_alerts::Readings,
    plan_requests::answer,
    presence::{SILENT, leave, look, mark_offline, seen},
    refusals::refused,
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
    /// The service, in the host's organization.
    pub scope: Scope,
    pub server: ServerId,
    /// Counts the server's connections. What an older one writes is refused.
    pub epoch: i64,
    token: TokenHash,
}

/// Why a connection is refused or ends, in the words of the frame REFUSED.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub code: RefusedCode,
    /// Why, and what to do.
    pub reason: String,
    /// When to come back, in seconds.
    pub retry_after: Option<i64>,
}

/// Why a connection ends.
#[derive(Clone, Debug)]
pub enum Ended {
    /// The host is told why.
    Refused(Refusal),
    /// The service failed. The host may come back.
    Failed(Problem),
}

impl Refusal {
    /// A refusal that only a person can mend.
    pub fn new(code: RefusedCode, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), retry_after: None }
    }

    /// The host may come back after this many seconds.
    #[must_use]
    pub fn retry(self, seconds: i64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// A frame that makes no sense.
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

/// The token of a host, as far as that can be told without the database.
///
/// # Errors
/// `UNAUTHENTICATED` for anything else.
pub fn recognize(token: &str) -> Result<TokenHash> {
    Ok(Token::parse_kind(TokenKind::Host, token).ok_or_else(unknown)?.hash)
}

fn unknown() -> Problem {
    let detail = "This is not, or no longer, the token of a host. Regenerate the server's provisioning token, and give it to \
                  `muster host rejoin --token-stdin` on its machine.";
    Problem::new(Code::Unauthenticated, detail)
}

/// The host that this token identifies.
///
/// # Errors
/// `UNAUTHENTICATED` for a token that is not a host's any more.
pub async fn identify(core: &Core, token: TokenHash) -> Result<Identity> {
    let found = queries::server_of_host(core, token).await?.ok_or_else(unknown)?;
    core.access.cache.note_proven(token);
    Ok(Identity { org: found.organization_id, server: found.id, token })
}

impl Link {
    /// Whether the connection is still the server's current one.
    ///
    /// # Errors
    /// SUPERSEDED, or TOKEN if the host's token is not valid any more.
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

    /// Why a write in this connection's name affected nothing.
    async fn fenced(&self) -> Ended {
        match self.fence().await {
            Err(ended) => ended,
            Ok(()) => Problem::internal(anyhow::anyhow!("a fenced write of the current epoch")).into(),
        }
    }
}

/// A text of a host that people will read: on one line, without what a terminal would obey, and not longer than this.
fn readable(text: &str, most: usize) -> Option<String> {
    let text: String = plain::one_line(text).chars().take(most).collect();
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
