//! Ingest: the path in, from the vendors of channels to conversations.
//!
//! ```text
//! request ──▶ verify (transport) ──▶ wanted? ──no──▶ counted in memory, written once a second
//!                                      │yes
//!                                      ▼
//!                       admitter: many in one commit ──▶ the vendor is answered
//! ```
//!
//! - `writer.rs`: the one task of a process that writes what came in; `messages.rs`: what it writes for messages.
//! - `chat_replies.rs`: what people say and tap where they are asked something, which is not a message for an agent.
//! - `files.rs`: files that come with messages; `source.rs`: messages as they came; `rejections.rs`: what was refused; `skipped.rs`: what can't be read.
//! - `listening.rs`: asking vendors; `lease.rs`: of all processes one does; `typing_indicator.rs`: "is writing", meanwhile.
//! - `queries.rs`: the SQL of all of them; `entity.rs`: rows of what was refused.

mod chat_replies;
mod entity;
mod files;
mod lease;
mod listening;
mod messages;
mod queries;
mod rejections;
mod side_events;
mod skipped;
mod source;
mod typing_indicator;
mod writer;

use std::{borrow::Cow, mem, sync::Arc};

use bytes::Bytes;
use http::HeaderMap;
use moka::sync::Cache;
use muster_channels::{Event, Inbound, Kind, RawRequest, Refusal, Reply, Transport};

use self::{
    lease::Position,
    listening::Listening,
    rejections::Refused,
    writer::{Admitter, Load, must_come_again},
};
pub use self::{messages::Admitted, rejections::forget_refusal};
use crate::{
    base::{
        bounds,
        enums::{self, ChannelDirection},
        ids::{AgentId, ChannelId, OrgId},
        problem::{Code, Problem, Result},
    },
    core::{
        Core,
        access::Scope,
        resource_limits::{Holder, SMALL},
    },
    domain::{
        channels::{self, Channel, FilterDecision, FilterRules, kind_of, open},
        conversations::{self, Source, Upload},
    },
};

/// Where everything that vendors send comes in. One per process.
pub struct Door {
    core: Arc<Core>,
    admitter: Admitter,
    refused: Arc<Refused>,
    listening: Listening,
    /// Slugs to which someone has sent what was verified, and from where.
    proven: Cache<(String, Holder), ()>,
}

/// A channel that a request was sent to.
pub struct Addressed(Channel);

/// What became of a request.
#[derive(Debug)]
pub enum Outcome {
    /// The transport's own answer.
    Replied(Reply),
    /// For webhooks: the message is stored.
    Taken(Admitted),
    /// For webhooks: it is not, and need not come again.
    Ignored(Ignored),
}

/// Why a message is not stored, though nothing is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// It is the channel's own.
    Echo,
    /// It was stored before.
    Duplicate,
    /// Its origin, or its labels, are not on the channel's lists; or it was written to others.
    NotWhitelisted,
    /// The channel is inactive, or its agent was deleted.
    Inactive,
}

impl Ignored {
    /// As the answer says it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Duplicate => "duplicate",
            Self::NotWhitelisted => "not_whitelisted",
            Self::Inactive => "inactive",
        }
    }
}

/// A message on its way into the database.
struct Arrived {
    channel: ChannelId,
    agent: AgentId,
    transport: enums::Transport,
    /// Whether it makes a turn.
    is_answered: bool,
    message: Box<Inbound>,
    /// What came with it.
    files: Vec<Upload>,
    /// As it came, if that is kept.
    source: Option<Source>,
}

impl Addressed {
    /// The channel in the resource limits.
    #[must_use]
    pub const fn holder(&self) -> Holder {
        Holder::Channel(self.0.organization_id.0, self.0.id.0)
    }
}

impl Door {
    /// Opens the door: starts the tasks behind it.
    #[must_use]
    pub fn open(core: &Arc<Core>) -> Arc<Self> {
        let refused = Refused::start(core);
        let (core, admitter) = (Arc::clone(core), Admitter::start(core));
        let listening = Listening::default();
        Arc::new(Self { core, admitter, refused, listening, proven: Cache::new(bounds::CACHE_ENTRIES) })
    }

    /// Whether a request to this slug from this address was verified before: then it exists, and looking for it is not a guess.
    #[must_use]
    pub fn is_proven(&self, slug: &str, from: Holder) -> bool {
        self.proven.contains_key(&(slug.to_owned(), from))
    }

    /// The channel of an inbound path.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub async fn find(&self, transport: &str, slug: &str) -> Result<Addressed> {
        channels::find(&self.core, slug)
            .await?
            .filter(|channel| channel.transport.as_str().eq_ignore_ascii_case(transport))
            .map(Addressed)
            .ok_or_else(|| Problem::new(Code::NotFound, "Nothing listens here."))
    }

    /// Takes a request from this address, its headers and body. Returns when what it brings is committed. What is signed is
    /// charged first.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`, `MALFORMED_REQUEST`, `NOT_FOUND`: the transport refuses it. `UNAVAILABLE`: too much is waiting, or
    /// the database can't be reached; `RATE_LIMITED`; nothing was taken.
    pub async fn receive(
        &self,
        Addressed(channel): &Addressed,
        from: Holder,
        (headers, body): (&HeaderMap, Bytes),
        charge: impl FnOnce() -> Result<()>,
    ) -> Result<Outcome> {
        let nothing = || Problem::new(Code::NotFound, "Nothing listens here.");
        // Telegram keeps what it can't bring, as if no one asked for it.
        if channel.transport == enums::Transport::Telegram && !channel.is_active {
            return Err(nothing());
        }
        let transport = open(&self.core, channel)?.ok_or_else(nothing)?;
        let now = jiff::Timestamp::from_millisecond(self.core.clock.now().0).unwrap_or_default();
        let received = transport.receive(&RawRequest { headers, body: &body }, now).map_err(refusal)?;
        // What it holds in the resource limits may be its files'.
        drop(body);
        if let Some(slug) = &channel.inbound_slug {
            self.proven.insert((slug.clone(), from), ());
        }
        charge()?;
        let last = self.take(channel, &*transport, received.events, None).await?.transpose()?;
        Ok(match (kind_of(channel.transport), last) {
            (Some(Kind::Webhook), Some(Ok(admitted))) => Outcome::Taken(admitted),
            (Some(Kind::Webhook), Some(Err(ignored))) => Outcome::Ignored(ignored),
            _ => Outcome::Replied(received.reply),
        })
    }

    /// Stores what is wanted and new, together with how far the vendor was read. Returns what became of the last message.
    async fn take(
        &self,
        channel: &Channel,
        transport: &dyn Transport,
        events: Vec<Event>,
        position: Option<Position>,
    ) -> Result<Option<writer::Outcome>> {
        let mut channel = Cow::Borrowed(channel);
        let (mut load, mut last) = (Load::of(&channel), None);
        for event in events {
            let Some(event) = chat_replies::heard(&self.core, &channel, transport, event).await? else {
                continue;
            };
            let is_moved = matches!(event, Event::Moved { .. });
            // No load has the files of several messages: it would be refused as a whole. Parts and versions of a message are
            // judged by it.
            let is_full = matches!(&event, Event::Message(message) if
                (load.has_files() && !message.files.is_empty())
                || (!load.messages.is_empty() && (message.album.is_some() || message.is_edit)));
            if is_full {
                let full = mem::replace(&mut load, Load::of(&channel));
                last = self.admit(full).await?.or(last);
            }
            match event {
                Event::Message(message) => match self.judge(&channel, transport, message, &mut load).await? {
                    Ok(arrived) => load.messages.push(arrived),
                    Err(ignored) => last = Some(Ok(Err(ignored))),
                },
                event => load.beside.push(event),
            }
            // What follows is judged by the lists on which the chat has its new id.
            if is_moved {
                let full = mem::replace(&mut load, Load::of(&channel));
                last = self.admit(full).await?.or(last);
                channel = Cow::Owned(self.fresh(channel.organization_id, channel.id).await?);
            }
        }
        load.position = position;
        if !load.is_empty() {
            last = self.admit(load).await?.or(last);
        }
        Ok(last)
    }

    /// The channel as it is now.
    async fn fresh(&self, org: OrgId, id: ChannelId) -> Result<Channel> {
        let over = || Problem::new(Code::Conflict, "The channel is no longer active.");
        channels::active(&Scope::system(&self.core, org), id).await?.ok_or_else(over)
    }

    /// Stores a load. Returns what became of its last message. What must come again is an error; what can never be stored is
    /// none, or it would keep all that follow from coming in.
    async fn admit(&self, load: Load) -> Result<Option<writer::Outcome>> {
        let mut outcomes = match self.admitter.admit(load).await {
            Err(problem) if problem.code == Code::Internal => return Ok(Some(Err(problem))),
            admitted => admitted?,
        };
        if let Some(at) = outcomes.iter().position(must_come_again)
            && let Err(problem) = outcomes.swap_remove(at)
        {
            return Err(problem);
        }
        Ok(outcomes.pop())
    }

    /// Whether a message is wanted, and its files, which count for the load. What is not is counted.
    async fn judge(
        &self,
        channel: &Channel,
        transport: &dyn Transport,
        mut message: Box<Inbound>,
        load: &mut Load,
    ) -> Result<std::result::Result<Arrived, Ignored>> {
        if !channel.is_active || channel.direction == ChannelDirection::Outbound {
            return Ok(Err(Ignored::Inactive));
        }
        if message.album.is_some() || message.is_edit {
            let place = (channel.organization_id, channel.id);
            let has_earlier = conversations::has_earlier(&self.core, place, &message).await?;
            // The deleted message was never stored.
            if !has_earlier && conversations::is_deletion(&message) {
                return Ok(Err(Ignored::Duplicate));
            }
            message.is_addressed |= has_earlier;
        }
        let scope = Scope::system(&self.core, channel.organization_id);
        let listed = channels::look_up_origin(&scope, channel.id, &message.origin).await?;
        let is_answered = match FilterRules::from_channel(channel).judge(&message, listed) {
            FilterDecision::Wanted { is_answered } => is_answered,
            FilterDecision::Echo => return Ok(Err(Ignored::Echo)),
            FilterDecision::Refused(reason) => {
                self.refused.count((channel.organization_id, channel.id), &message.origin, reason);
                return Ok(Err(Ignored::NotWhitelisted));
            }
        };
        // It waits for its files and for its turn. Like those of bodies, a few bytes are not counted.
        let words = message.text.len()
            + message.context.len()
            + message.thread.readers.iter().map(String::len).sum::<usize>();
        if words > SMALL {
            load.hold(&self.core, words)?;
        }
        let read = message.text.len();
        let files = files::fetch(&self.core, transport, &mut message, load).await?;
        Ok(Ok(Arrived {
            channel: channel.id,
            agent: channel.agent_id,
            transport: channel.transport,
            is_answered,
            source: source::take(&self.core, &mut message, read, load),
            message,
            files,
        }))
    }
}

/// A transport's refusal, as the answer says it.
#[expect(clippy::needless_pass_by_value, reason = "maps an error")]
fn refusal(refusal: Refusal) -> Problem {
    let code = match refusal {
        Refusal::NotConfigured => Code::NotFound,
        Refusal::Unsigned | Refusal::BadSignature | Refusal::Stale => Code::Unauthenticated,
        Refusal::Malformed(_) => Code::MalformedRequest,
    };
    Problem::new(code, refusal.to_string())
}
