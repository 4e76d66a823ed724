//! Ingest: the inbound path, from the vendors of channels to conversations.
//!
//! ```text
//! request ──▶ verify (transport) ──▶ accepted? ──no──▶ counted in memory, written once a second
//!                                      │yes
//!                                      ▼
//!                       writer: many in one commit ──▶ respond to the vendor
//! ```
//!
//! - `writer.rs`: the single writer task of a process; `messages.rs`: how it writes messages.
//! - `chat_replies.rs`: replies to approvals in chats, which are not messages for an agent.
//! - `files.rs`: attached files; `source.rs`: the raw form of messages; `rejections.rs`: refused messages;
//!   `skipped.rs`: unreadable messages; `side_events.rs`: events other than messages.
//! - `listening.rs`: polling vendors; `lease.rs`: which process does; `typing_indicator.rs`: "is typing" in chats.
//! - `queries.rs`: SQL; `entity.rs`: rows of refused messages.

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
    rejections::RejectionCounter,
    writer::{Load, Writer, must_come_again},
};
pub use self::{messages::Admitted, rejections::forget_refusal};
use crate::{
    base::{
        bounds,
        enums::{self, ChannelDirection, ListenScope},
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

/// The entry point of everything that vendors send. One per process.
pub struct Ingest {
    core: Arc<Core>,
    writer: Writer,
    rejections: Arc<RejectionCounter>,
    listening: Listening,
    /// Slugs with the sender addresses from which a verified request came.
    proven: Cache<(String, Holder), ()>,
}

/// Stands for the slug of the path to which GitHub sends: no slug is so short.
pub const GITHUB: &str = "github";

/// The channel that a request was sent to.
pub struct AddressedChannel(Channel);

/// The outcome of a request.
#[derive(Debug)]
pub enum Outcome {
    /// The response that the transport defines.
    Replied(Reply),
    /// For webhooks: the message was stored.
    Stored(Admitted),
    /// For webhooks: the message was not stored, and need not be sent again.
    Ignored(Ignored),
}

/// Why a valid message was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// The channel's own account sent it.
    Echo,
    /// It was stored before.
    Duplicate,
    /// The channel's filter refused it.
    Refused,
    /// The channel is inactive, or its agent was deleted.
    Inactive,
}

impl Ignored {
    /// The value in the response.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Duplicate => "duplicate",
            Self::Refused => "not_whitelisted",
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
    files: Vec<Upload>,
    /// The raw message, if the settings keep it.
    source: Option<Source>,
}

impl AddressedChannel {
    /// The channel as a holder of resources.
    #[must_use]
    pub const fn holder(&self) -> Holder {
        Holder::Channel(self.0.organization_id.0, self.0.id.0)
    }
}

impl Ingest {
    /// Starts the background tasks.
    #[must_use]
    pub fn open(core: &Arc<Core>) -> Arc<Self> {
        let rejections = RejectionCounter::start(core);
        let (core, writer) = (Arc::clone(core), Writer::start(core));
        let listening = Listening::default();
        Arc::new(Self { core, writer, rejections, listening, proven: Cache::new(bounds::CACHE_ENTRIES) })
    }

    /// Whether a request to this slug from this address was verified before: then the request is not a guess at slugs.
    #[must_use]
    pub fn is_proven(&self, slug: &str, from: Holder) -> bool {
        self.proven.contains_key(&(slug.to_owned(), from))
    }

    /// Finds the channel of an inbound path.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub async fn find(&self, transport: &str, slug: &str) -> Result<AddressedChannel> {
        channels::find(&self.core, slug)
            .await?
            .filter(|channel| channel.transport.as_str().eq_ignore_ascii_case(transport))
            .map(AddressedChannel)
            .ok_or_else(|| Problem::new(Code::NotFound, "Nothing listens here."))
    }

    /// Finds the channels that a request of GitHub is for: GitHub sends those of all installations of the App to one
    /// address.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`, `MALFORMED_REQUEST`; `NOT_FOUND`: the installation has none.
    pub async fn find_installation(
        &self,
        from: Holder,
        (headers, body): (&HeaderMap, &Bytes),
    ) -> Result<Vec<AddressedChannel>> {
        let secret = self.core.config.channels.github_webhook_secret.as_ref();
        let secret = secret.ok_or_else(|| Problem::new(Code::NotFound, "Nothing listens here."))?;
        let installation = muster_channels::read_installation(secret, &RawRequest { headers, body });
        let installation = installation.map_err(to_problem)?;
        self.proven.insert((GITHUB.to_owned(), from), ());
        let Some(installation) = installation else { return Ok(Vec::new()) };
        let found = channels::of_installation(&self.core, installation).await?;
        Ok(found.into_iter().map(AddressedChannel).collect())
    }

    /// Handles a request from this address. Returns once its events are committed. Calls `charge` after the request is
    /// verified and before anything is stored.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`, `MALFORMED_REQUEST`, `NOT_FOUND`: the transport refuses it. `UNAVAILABLE`: too much is
    /// waiting, or the database can't be reached; `RATE_LIMITED`; nothing was taken.
    pub async fn receive(
        &self,
        AddressedChannel(channel): &AddressedChannel,
        from: Holder,
        (headers, body): (&HeaderMap, Bytes),
        charge: impl FnOnce() -> Result<()>,
    ) -> Result<Outcome> {
        let nothing = || Problem::new(Code::NotFound, "Nothing listens here.");
        // After this error, Telegram keeps its updates until the channel is active again.
        if channel.transport == enums::Transport::Telegram && !channel.is_active {
            return Err(nothing());
        }
        let transport = open(&self.core, channel)?.ok_or_else(nothing)?;
        let now = jiff::Timestamp::from_millisecond(self.core.clock.now().0).unwrap_or_default();
        let received = transport.receive(&RawRequest { headers, body: &body }, now).map_err(to_problem)?;
        // Frees the body's share of the resource limits for the files.
        drop(body);
        if let Some(slug) = &channel.inbound_slug {
            self.proven.insert((slug.clone(), from), ());
        }
        charge()?;
        let last = self.store_events(channel, &*transport, received.events, None).await?.transpose()?;
        Ok(match (kind_of(channel.transport), last) {
            (Some(Kind::Webhook), Some(Ok(admitted))) => Outcome::Stored(admitted),
            (Some(Kind::Webhook), Some(Err(ignored))) => Outcome::Ignored(ignored),
            _ => Outcome::Replied(received.reply),
        })
    }

    /// Stores accepted new messages and other events, together with the position. Returns the outcome of the last
    /// message.
    async fn store_events(
        &self,
        channel: &Channel,
        transport: &dyn Transport,
        events: Vec<Event>,
        position: Option<Position>,
    ) -> Result<Option<writer::Outcome>> {
        let mut channel = Cow::Borrowed(channel);
        let (mut load, mut last) = (Load::for_channel(&channel), None);
        for event in events {
            let Some(event) = chat_replies::handle_reply(&self.core, &channel, transport, event).await?
            else {
                continue;
            };
            let is_moved = matches!(event, Event::Moved { .. });
            // A load has the files of at most one message, or the limit would refuse all of them. Parts and edits of a
            // message depend on the stored message.
            let is_full = matches!(&event, Event::Message(message) if
                (load.has_files() && !message.files.is_empty())
                || (!load.messages.is_empty() && (message.album.is_some() || message.is_edit)));
            if is_full {
                let full = mem::replace(&mut load, Load::for_channel(&channel));
                last = self.admit(full).await?.or(last);
            }
            match event {
                Event::Message(message) => {
                    match self.filter_message(&channel, transport, message, &mut load).await? {
                        Ok(arrived) => load.messages.push(arrived),
                        Err(ignored) => last = Some(Ok(Err(ignored))),
                    }
                }
                event => load.beside.push(event),
            }
            // Later events need the lists with the chat's new id.
            if is_moved {
                let full = mem::replace(&mut load, Load::for_channel(&channel));
                last = self.admit(full).await?.or(last);
                channel = Cow::Owned(self.reload_channel(channel.organization_id, channel.id).await?);
            }
        }
        load.position = position;
        if !load.is_empty() {
            last = self.admit(load).await?.or(last);
        }
        Ok(last)
    }

    async fn reload_channel(&self, org: OrgId, id: ChannelId) -> Result<Channel> {
        let over = || Problem::new(Code::Conflict, "The channel is no longer active.");
        channels::active(&Scope::system(&self.core, org), id).await?.ok_or_else(over)
    }

    /// Stores a load. Returns the outcome of its last message. Fails if the vendor must send the load again. A message
    /// that can never be stored is not an error: it would block all later messages.
    async fn admit(&self, load: Load) -> Result<Option<writer::Outcome>> {
        let mut outcomes = match self.writer.admit(load).await {
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

    /// Applies the channel's filter. Fetches the files of an accepted message into the load, and counts a refused
    /// message.
    async fn filter_message(
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
            // A deletion of a message that was never stored.
            if !has_earlier && conversations::is_deletion(&message) {
                return Ok(Err(Ignored::Duplicate));
            }
            message.is_addressed |= has_earlier;
        }
        // An issue in which the agent takes part involves it.
        let is_code = channel.transport == enums::Transport::CodeHost;
        if is_code && channel.code_host_listen_scope == ListenScope::Involved && !message.is_addressed {
            let place = (channel.organization_id, channel.id);
            message.is_addressed = conversations::has_thread(&self.core, place, &message.thread).await?;
        }
        let scope = Scope::system(&self.core, channel.organization_id);
        let listed = channels::look_up_origin(&scope, channel.id, &message.origin).await?;
        let is_answered = match FilterRules::from_channel(channel).decide(&message, listed) {
            FilterDecision::Wanted { is_answered } => is_answered,
            FilterDecision::Echo => return Ok(Err(Ignored::Echo)),
            FilterDecision::Refused(reason) => {
                self.rejections.count((channel.organization_id, channel.id), &message.origin, reason);
                return Ok(Err(Ignored::Refused));
            }
        };
        // The text waits in memory for the files and the commit. As for bodies, a few bytes are not counted.
        let words = message.text.len()
            + message.context.len()
            + message.thread.readers.iter().map(String::len).sum::<usize>();
        if words > SMALL {
            load.reserve(&self.core, words)?;
        }
        let read = message.text.len();
        let files = files::fetch(&self.core, transport, &mut message, load).await?;
        Ok(Ok(Arrived {
            channel: channel.id,
            agent: channel.agent_id,
            transport: channel.transport,
            is_answered,
            source: source::take_source(&self.core, &mut message, read, load),
            message,
            files,
        }))
    }
}

/// The error for a transport's refusal.
#[expect(clippy::needless_pass_by_value, reason = "maps an error")]
fn to_problem(refusal: Refusal) -> Problem {
    let code = match refusal {
        Refusal::NotConfigured => Code::NotFound,
        Refusal::Unsigned | Refusal::BadSignature | Refusal::Stale => Code::Unauthenticated,
        Refusal::Malformed(_) => Code::MalformedRequest,
    };
    Problem::new(code, refusal.to_string())
}
