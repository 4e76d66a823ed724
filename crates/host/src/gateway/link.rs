//! A connection. Reading never waits for writing: output has its own queue.

use std::{error::Error, sync::Arc, time::Duration};

use futures::{SinkExt, StreamExt, stream::SplitStream};
use http::HeaderValue;
use muster_protocol::{
    Event, FromHost, LARGEST_FRAME, PATH, Secret, ToHost, VERSIONS,
    frame::{Hello, LogBatch, RefusedCode, Welcome},
};
use rustls::ClientConfig;
use tokio::{
    net::TcpStream,
    sync::mpsc::{self, Permit},
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep_until, timeout},
};
use tokio_tungstenite::{
    Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config,
    tungstenite::{self, Message, client::IntoClientRequest, protocol::WebSocketConfig},
};

use super::{AgentRequest, Gateway, LinkError, frame_limit::text};
use crate::{
    bounds::{NETWORK_WAIT, PORTION},
    clock,
    join::root_cause,
    journal::Closed,
    machine,
};

/// Silence after which the connection is given up: a network may drop all packets. Pings are sent three times as often.
const SILENCE: Duration = Duration::from_secs(45);
/// Pending commands beyond which the host confirms no more, so that the control plane keeps the others. Frames are
/// still read: the answers that pending commands wait for arrive on the same connection.
const MAX_PENDING_COMMANDS: usize = 4096;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

pub struct Link {
    from: SplitStream<Socket>,
    to: mpsc::Sender<Message>,
    writer: JoinSet<String>,
}

impl Link {
    /// Connects with the token.
    pub async fn open(url: &str, token: &Secret, tls: &Arc<ClientConfig>) -> Result<Self, LinkError> {
        let unreachable = |error: &(dyn Error + 'static)| LinkError::Unreachable(root_cause(error));
        let mut request = url.into_client_request().map_err(|error| unreachable(&error))?;
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
            .map_err(|error| unreachable(&error))?;
        bearer.set_sensitive(true);
        request.headers_mut().insert(http::header::AUTHORIZATION, bearer);
        let limits = WebSocketConfig::default()
            .max_message_size(Some(LARGEST_FRAME))
            .max_frame_size(Some(LARGEST_FRAME))
            .max_write_buffer_size(8 * LARGEST_FRAME);
        let tls = Some(Connector::Rustls(Arc::clone(tls)));
        let connecting = connect_async_tls_with_config(request, Some(limits), true, tls);
        let connecting = timeout(NETWORK_WAIT, connecting).await;
        let connected = connecting.map_err(|_| LinkError::Unreachable("it doesn't answer".to_owned()))?;
        let (socket, _) = connected.map_err(|error| match error {
            tungstenite::Error::Http(response) => LinkError::Handshake {
                status: response.status().as_u16(),
                text: detail(response.body().as_deref().unwrap_or_default()),
            },
            error => unreachable(&error),
        })?;
        let (mut sink, from) = socket.split();
        let (to, mut waiting) = mpsc::channel::<Message>(32);
        let mut writer = JoinSet::new();
        writer.spawn(async move {
            while let Some(message) = waiting.recv().await {
                if let Err(error) = sink.send(message).await {
                    return root_cause(&error);
                }
            }
            let _ = sink.close().await;
            String::new()
        });
        Ok(Self { from, to, writer })
    }

    async fn send(&self, frame: &FromHost) -> Result<(), LinkError> {
        self.to.send(text(frame)).await.map_err(|_| LinkError::Broken("it can't be written to".to_owned()))
    }

    /// Sends HELLO, and waits for the answer.
    async fn greet(&mut self, hello: Hello) -> Result<Welcome, LinkError> {
        self.send(&FromHost::Hello(hello)).await?;
        let until = Instant::now() + NETWORK_WAIT;
        loop {
            let frame = tokio::time::timeout_at(until, next(&mut self.from))
                .await
                .map_err(|_| LinkError::Silent)??;
            match frame {
                Some(ToHost::Welcome(welcome)) => return Ok(welcome),
                Some(ToHost::Refused { code, reason, retry_after }) => {
                    return Err(refused(code, reason, retry_after));
                }
                Some(other) => return Err(LinkError::Malformed(format!("{other:?} before WELCOME"))),
                None => {}
            }
        }
    }
}

/// The next frame. The library answers pings.
async fn next(from: &mut SplitStream<Socket>) -> Result<Option<ToHost>, LinkError> {
    match from.next().await {
        Some(Ok(Message::Text(text))) => {
            let frame = muster_json::from_str(&text);
            frame.map(Some).map_err(|error| LinkError::Malformed(error.to_string()))
        }
        Some(Ok(Message::Close(_))) | None => Err(LinkError::Broken("it was closed".to_owned())),
        Some(Ok(_)) => Ok(None),
        Some(Err(error)) => Err(LinkError::Broken(root_cause(&error))),
    }
}

/// Tests a token: connects, and leaves without a HELLO.
pub async fn probe(url: &str, token: &Secret, tls: &Arc<ClientConfig>) -> Result<(), LinkError> {
    Link::open(url, token, tls).await.map(drop)
}

fn refused(code: RefusedCode, reason: String, retry_after: Option<i64>) -> LinkError {
    let retry_after = retry_after.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
    LinkError::Refused { code, reason, retry_after }
}

/// The detail of a problem document.
fn detail(body: &[u8]) -> String {
    let problem: serde_json::Value = muster_json::from_slice(body).unwrap_or_default();
    let text = problem.get("detail").and_then(|detail| detail.as_str());
    text.map(|text| format!(": {}", crate::acp::short(text, 500))).unwrap_or_default()
}

/// Progress of a connection's output.
struct OutputProgress {
    /// The last written event.
    sent: i64,
    events: std::collections::VecDeque<Event>,
    /// Commands to confirm, up to this one.
    receipt: Option<i64>,
    /// Whether too many commands are pending to confirm any.
    is_full: bool,
    /// Questions not yet sent on this connection.
    unasked: std::collections::VecDeque<i64>,
    is_load_due: bool,
    is_ping_due: bool,
    /// Lines of a log.
    log: Option<LogBatch>,
}

enum LinkEvent {
    Frame(Result<Option<ToHost>, LinkError>),
    Progress,
    Broken(String),
    Silent,
}

impl Gateway {
    /// Serves a connection until it ends. Returns whether both sides accepted it, and why it ended.
    pub(super) async fn serve(&mut self, mut link: Link) -> (bool, LinkError) {
        let position = *self.shared.journal.position().borrow();
        let (runtime, runtime_version) = self.shared.runtime.describe().await;
        let hello = Hello {
            versions: VERSIONS,
            machine: machine::describe(&self.machine_id, self.shared.folder.root()),
            runtime,
            runtime_version,
            commands: position.commands,
            events: position.events,
            acknowledged: position.acknowledged,
            agents: self.shared.running(),
        };
        let welcome = match self.questions.collect(link.greet(hello)).await {
            Ok(welcome) => welcome,
            Err(error) => return (false, error),
        };
        tracing::info!(epoch = welcome.epoch, "connected to {PATH}");
        if welcome.events > position.events {
            let reason =
                format!("it has event {}, and this journal ends with {}", welcome.events, position.events);
            return (false, LinkError::Refused { code: RefusedCode::JournalLost, reason, retry_after: None });
        }
        if welcome.events < position.acknowledged {
            let reason =
                format!("it has event {}, and had acknowledged {}", welcome.events, position.acknowledged);
            return (false, LinkError::Refused { code: RefusedCode::Restored, reason, retry_after: None });
        }
        match self.welcome(&welcome).await {
            Ok(()) => self.shared.counts.connected(),
            Err(Closed) => return (true, Closed.into()),
        }
        match self.exchange_frames(link, welcome.events).await {
            Ok(never) => match never {},
            Err(error) => (true, error),
        }
    }

    async fn welcome(&mut self, welcome: &Welcome) -> Result<(), Closed> {
        let ahead = clock::learn(welcome.time);
        if let Some(text) = clock::difference(ahead) {
            tracing::warn!("{text}");
        }
        self.shared.journal.acknowledge(welcome.events, Some(u64::from(welcome.window))).await?;
        self.agent_requests.send(AgentRequest::Wanted(welcome.agents.clone())).map_err(|_| Closed)
    }

    async fn exchange_frames(
        &mut self,
        link: Link,
        acknowledged: i64,
    ) -> Result<std::convert::Infallible, LinkError> {
        let Link { mut from, to, mut writer } = link;
        let mut position = self.shared.journal.position();
        position.mark_changed();
        let mut progress = OutputProgress {
            sent: acknowledged,
            events: std::collections::VecDeque::new(),
            receipt: None,
            is_full: false,
            unasked: self.questions.open(),
            is_load_due: false,
            is_ping_due: false,
            log: None,
        };
        let (mut load, mut ping) = (interval(Duration::from_secs(5)), interval(SILENCE / 3));
        load.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heard = Instant::now();
        loop {
            if progress.events.is_empty() && position.borrow().events > progress.sent {
                progress.events = self.shared.journal.events_after(progress.sent, PORTION)?.into();
            }
            progress.is_full = position.borrow().pending_commands >= MAX_PENDING_COMMANDS;
            let has_outgoing = progress.has_outgoing();
            let step = tokio::select! {
                frame = next(&mut from) => LinkEvent::Frame(frame),
                permit = to.reserve(), if has_outgoing => match permit {
                    Ok(permit) => {
                        self.send_next(permit, &mut progress);
                        LinkEvent::Progress
                    }
                    Err(_) => LinkEvent::Broken("it can't be written to".to_owned()),
                },
                changed = position.changed() => {
                    changed.map_err(|_| Closed)?;
                    LinkEvent::Progress
                }
                Some(id) = self.questions.next() => {
                    progress.unasked.push_back(id);
                    LinkEvent::Progress
                }
                Some(delta) = self.deltas.recv() => {
                    // Dropped if the connection is busy.
                    let _ = to.try_send(text(&FromHost::Delta(delta)));
                    LinkEvent::Progress
                }
                // Waits while the connection is busy; overflow is dropped earlier.
                Some(batch) = self.logs.recv(), if progress.log.is_none() => {
                    progress.log = Some(batch);
                    LinkEvent::Progress
                }
                _ = load.tick() => {
                    progress.is_load_due = true;
                    LinkEvent::Progress
                }
                _ = ping.tick() => {
                    progress.is_ping_due = true;
                    LinkEvent::Progress
                }
                Some(Ok(error)) = writer.join_next() => LinkEvent::Broken(error),
                () = sleep_until(heard + SILENCE) => LinkEvent::Silent,
            };
            match step {
                LinkEvent::Frame(frame) => {
                    heard = Instant::now();
                    if let Some(frame) = frame? {
                        self.handle_frame(frame, &mut progress).await?;
                    }
                }
                LinkEvent::Broken(error) => return Err(LinkError::Broken(error)),
                LinkEvent::Silent => return Err(LinkError::Silent),
                LinkEvent::Progress => {}
            }
        }
    }

    async fn handle_frame(&mut self, frame: ToHost, progress: &mut OutputProgress) -> Result<(), LinkError> {
        match frame {
            ToHost::Command(envelope) => {
                let seq = envelope.seq;
                for envelope in self.shared.journal.receive(vec![envelope]).await? {
                    self.agent_requests.send(AgentRequest::Command(envelope)).map_err(|_| Closed)?;
                }
                progress.receipt = progress.receipt.max(Some(seq));
            }
            ToHost::Ack { through } => self.shared.journal.acknowledge(through, None).await?,
            ToHost::Told { id, given } => self.questions.answer(id, given),
            ToHost::WatchLog { agent_id, until, tail } => self.shared.logs.watch(agent_id, until, tail),
            ToHost::Refused { code, reason, retry_after } => return Err(refused(code, reason, retry_after)),
            ToHost::Welcome(_) => return Err(LinkError::Malformed("a second WELCOME".to_owned())),
        }
        Ok(())
    }

    /// Sends the most urgent output.
    fn send_next(&mut self, permit: Permit<'_, Message>, progress: &mut OutputProgress) {
        if let Some(through) = progress.receipt.take_if(|_| !progress.is_full) {
            return permit.send(text(&FromHost::Received { through }));
        }
        while let Some(id) = progress.unasked.pop_front() {
            if let Some(ask) = self.questions.get(id) {
                let (agent_id, generation, wanted) = (ask.agent_id, ask.generation, ask.wanted.clone());
                return permit.send(text(&FromHost::Ask { id, agent_id, generation, wanted }));
            }
        }
        if std::mem::take(&mut progress.is_ping_due) {
            return permit.send(Message::Ping(Vec::new().into()));
        }
        if let Some(event) = progress.events.pop_front() {
            progress.sent = event.seq;
            return permit.send(text(&FromHost::Event(event)));
        }
        if std::mem::take(&mut progress.is_load_due) {
            return permit.send(text(&FromHost::Load(self.meter.load())));
        }
        if let Some(batch) = progress.log.take() {
            permit.send(text(&FromHost::Log(batch)));
        }
    }
}

impl OutputProgress {
    fn has_outgoing(&self) -> bool {
        (self.receipt.is_some() && !self.is_full)
            || !self.unasked.is_empty()
            || !self.events.is_empty()
            || self.is_load_due
            || self.is_ping_due
            || self.log.is_some()
    }
}
