//! A host's connection from its first frame to its last: several loops in parallel. It ends when the first of them
//! ends.
//!
//! ```text
//!          ┌─ read ──► events ──► store ──► acks ─────┐
//!  host ──►│      ├──► asks ────► answer ──┐          ├─► write ──► host
//!          │      └──► received ► command ─┴─► frames ┘
//! ```
//!
//! `watch_logs` requests watched logs, and `watch_epoch` checks at each wake-up whether the connection is still the
//! current one.
//!
//! Every queue is bounded. While events wait for the database, nothing more is read from the host; while the host
//! doesn't read, nothing more is prepared for it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU32, Ordering},
    },
    time::Duration,
};

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures::{
    FutureExt, SinkExt, StreamExt,
    stream::{self, FuturesUnordered, SplitSink, SplitStream},
};
use muster_protocol::{
    Event, ToHost,
    frame::{Hello, RefusedCode},
    plan::{PlanRequest, PlanResponse},
};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc, watch},
    time::{MissedTickBehavior, interval, sleep, timeout},
};

use super::{
    reading,
    sending::{self, Outlet},
};
use crate::{
    base::{bounds, problem::Problem},
    core::{
        access::Scope,
        hosts::{HostConnection, WakeUps},
        resource_limits::{Held, Holder, Resource},
        telemetry,
    },
    domain::hosts::{self, Ended, Identity, Link, PlanAnswer, Refusal, WatchedLogs},
};

/// How many of a host's questions are answered at a time, and how many more may wait.
const ANSWERS: usize = 4;
/// The number of offences of one kind at which a host's connection is closed.
const MAX_OFFENCES: u32 = 3;

pub(super) struct Connection {
    pub link: Link,
    pub frames: mpsc::Sender<ToHost>,
    pub events: mpsc::Sender<PendingEvent>,
    /// Number of the last stored event.
    pub acks: watch::Sender<i64>,
    pub asks: mpsc::Sender<PlanQuestion>,
    /// Number of the last command in the host's journal.
    pub received: watch::Sender<i64>,
    /// Number of the last command sent.
    pub sent: AtomicI64,
    pub logs: WatchedLogs,
    malformed: AtomicU32,
    foreign: AtomicU32,
}

/// An event that waits to be stored.
pub(super) struct PendingEvent {
    pub event: Event,
    /// The reservation of the event's bytes in the host's window and, unless the event is small, in the resource
    /// limits.
    pub held: (OwnedSemaphorePermit, Option<Held>),
}

/// A question of the host.
pub(super) struct PlanQuestion {
    pub id: i64,
    pub agent: i64,
    pub generation: i64,
    pub request: PlanRequest,
}

/// Serves a connection until it ends.
pub(super) async fn serve(scope: Scope, who: Identity, socket: WebSocket) {
    let _working = scope.core.tasks.hold_shutdown();
    let (mut sink, mut stream) = socket.split();
    let ended = Box::pin(run_connection(&scope, &who, &mut sink, &mut stream)).await;
    if let Some(ended) = ended {
        let refusal = refusal_of(&scope, &who, ended);
        // A connection that broke unnoticed is superseded by its own host's next one. Then nothing is wrong, and the
        // refusal reaches no one.
        let may_be_lost = refusal.code == RefusedCode::Superseded;
        if !may_be_lost {
            store_refusal(&scope, &who, &refusal).await;
        }
        let is_heard = timeout(bounds::BRIEF_WAIT, farewell(sink, stream, refusal.clone())).await.is_ok();
        if may_be_lost && is_heard {
            store_refusal(&scope, &who, &refusal).await;
        }
    }
}

/// Stores why the host was refused, for `Server.refusal`.
async fn store_refusal(scope: &Scope, who: &Identity, refusal: &Refusal) {
    if let Err(problem) = hosts::record_refusal(scope, who.server, refusal).await {
        tracing::warn!(org = scope.org.0, server = who.server.0, %problem, "host.refusal_not_shown");
    }
}

/// Why a connection ended, as the refusal to send. Logs it.
fn refusal_of(scope: &Scope, who: &Identity, ended: Ended) -> Refusal {
    let refusal = match ended {
        Ended::Refused(refusal) => refusal,
        Ended::Failed(problem) => {
            telemetry::problem(&problem, &scope.request.id);
            Refusal::new(RefusedCode::Unavailable, problem.detail).retry(5)
        }
    };
    let code = serde_json::to_value(refusal.code).unwrap_or_default();
    tracing::info!(org = scope.org.0, server = who.server.0, %code, "host.refused");
    refusal
}

async fn farewell(
    mut sink: SplitSink<WebSocket, Message>,
    mut stream: SplitStream<WebSocket>,
    refusal: Refusal,
) {
    let _ = sink.send(Message::Text(sending::text(&refusal.into()).into())).await;
    let _ = sink.send(Message::Close(Some(CloseFrame { code: 1000, reason: "".into() }))).await;
    // Waits until the host has closed too, or it might not see the frame.
    while let Some(Ok(_)) = stream.next().await {}
}

/// Runs the connection up to its farewell. `None`: the host has gone.
async fn run_connection(
    scope: &Scope,
    who: &Identity,
    sink: &mut SplitSink<WebSocket, Message>,
    stream: &mut SplitStream<WebSocket>,
) -> Option<Ended> {
    let core = &scope.core;
    let stopping = &core.tasks.stopping;
    let hello = timeout(core.config.limits.socket_init(), reading::hello(stream));
    let hello = match stopping.run_until_cancelled(hello).await {
        None => return Some(stopping_refusal()),
        Some(Err(_)) => return Some(Refusal::malformed("No HELLO came in time.").retry(5).into()),
        Some(Ok(hello)) => match hello? {
            Ok(hello) => hello,
            Err(refusal) => return Some(refusal.into()),
        },
    };
    let (link, welcome) = match hosts::accept_connection(scope, who, &hello).await {
        Ok(accepted) => accepted,
        Err(ended) => return Some(ended),
    };
    // From here on the connection is woken. It finds earlier changes when it first looks.
    let registration = core.hosts.open(link.server, link.epoch);
    tracing::info!(org = link.scope.org.0, server = link.server.0, epoch = link.epoch, "host.connected");
    let events = welcome.events;
    let first = Message::Text(sending::text(&ToHost::Welcome(welcome)).into());
    let ended = match sink.send(first).await {
        Ok(()) => Box::pin(run(&link, &hello, events, &registration, sink, stream)).await,
        Err(_) => None,
    };
    tracing::info!(org = link.scope.org.0, server = link.server.0, epoch = link.epoch, "host.disconnected");
    if let Err(problem) = hosts::record_disconnect(&link).await {
        tracing::warn!(org = link.scope.org.0, server = link.server.0, %problem, "host.not_signed_off");
    }
    ended
}

fn stopping_refusal() -> Ended {
    Refusal::new(RefusedCode::Stopping, "This replica is stopping.").retry(1).into()
}

async fn run(
    link: &Link,
    hello: &Hello,
    stored: i64,
    registration: &HostConnection,
    sink: &mut SplitSink<WebSocket, Message>,
    stream: &mut SplitStream<WebSocket>,
) -> Option<Ended> {
    let (frames, frames_out) = mpsc::channel(4);
    let (events, events_out) = mpsc::channel(hosts::MAX_EVENTS);
    let (asks, asks_out) = mpsc::channel(ANSWERS);
    let connection = Connection {
        link: link.clone(),
        frames,
        events,
        acks: watch::Sender::new(stored),
        asks,
        received: watch::Sender::new(hello.commands),
        sent: AtomicI64::new(hello.commands),
        logs: WatchedLogs::default(),
        malformed: AtomicU32::new(0),
        foreign: AtomicU32::new(0),
    };
    let outlet = Outlet {
        limit: Arc::clone(link.scope.core.resource_limits.limit(Resource::Answers)),
        holder: holder(link),
    };
    tokio::select! {
        ended = connection.read(stream, stored) => ended,
        ended = connection.store_events(events_out) => Some(ended),
        ended = connection.send_commands(registration.woken()) => Some(ended),
        ended = connection.watch_epoch(registration.woken()) => Some(ended),
        ended = connection.watch_logs() => Some(ended),
        ended = connection.answer_asks(asks_out) => Some(ended),
        ended = outlet.write(sink, frames_out, connection.acks.subscribe()) => ended,
        () = link.scope.core.tasks.stopping.cancelled() => Some(stopping_refusal()),
    }
}

/// The holder for the resource limits.
pub(super) fn holder(link: &Link) -> Holder {
    Holder::Server(link.scope.org.0, link.server.0)
}

impl Connection {
    /// Stores events as they arrive: all waiting ones in one transaction.
    async fn store_events(&self, mut events: mpsc::Receiver<PendingEvent>) -> Ended {
        let mut waiting = Vec::with_capacity(hosts::MAX_EVENTS);
        while events.recv_many(&mut waiting, hosts::MAX_EVENTS).await > 0 {
            let (batch, held): (Vec<Event>, Vec<_>) =
                waiting.drain(..).map(|PendingEvent { event, held }| (event, held)).unzip();
            let foreign = match hosts::store_events(&self.link, &batch).await {
                Ok(foreign) => foreign,
                Err(ended) => return ended,
            };
            drop(held);
            self.acks.send_replace(batch.last().map_or(0, |last| last.seq));
            if let Err(refusal) = self.count_foreign(foreign) {
                return refusal.into();
            }
        }
        loop_ended("events")
    }

    /// Sends commands as they are queued, and removes those that the host has journalled.
    async fn send_commands(&self, mut woken: WakeUps) -> Ended {
        let mut received = self.received.subscribe();
        loop {
            // Not marked as seen, so that later receipts are handled below even if something else wakes the loop first.
            let through = *received.borrow();
            let commands = async {
                let sent = self.sent.load(Ordering::Relaxed);
                hosts::next_commands(&self.link, sent, through).await
            };
            let commands = match commands.await {
                Ok(commands) => commands,
                Err(ended) => return ended,
            };
            for command in commands {
                self.sent.store(command.seq, Ordering::Relaxed);
                if self.frames.send(ToHost::Command(command)).await.is_err() {
                    return loop_ended("frames");
                }
            }
            tokio::select! {
                () = woken.next() => {}
                _ = received.changed() => {
                    let through = *received.borrow();
                    if let Err(ended) = hosts::acknowledge_commands(&self.link, through).await {
                        return ended;
                    }
                }
            }
        }
    }

    /// Waits until the connection is no longer the current one.
    async fn watch_epoch(&self, mut woken: WakeUps) -> Ended {
        loop {
            woken.next().await;
            if let Err(ended) = self.link.fence().await {
                return ended;
            }
        }
    }

    /// Requests logs from the host while they are watched.
    async fn watch_logs(&self) -> Ended {
        let Link { scope, .. } = &self.link;
        let mut viewers = scope.core.events.logs.arrivals();
        let mut tick = interval(hosts::LOG_LEASE / 3);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let mut new = Vec::new();
            tokio::select! {
                viewer = viewers.next(scope.org) => new.push(viewer),
                _ = tick.tick() => {}
            }
            while let Some(viewer) = viewers.next(scope.org).now_or_never() {
                new.push(viewer);
            }
            if new.contains(&None) {
                self.logs.forget();
            }
            let Ok(frames) = self.logs.renew(&self.link, &new).await else {
                // The database can't be reached. The next renewal serves the new viewers, too.
                self.logs.forget();
                continue;
            };
            for frame in frames {
                if self.frames.send(frame).await.is_err() {
                    return loop_ended("frames");
                }
            }
            // A caller may open viewers continually, and each requires the end of a log.
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Answers the host's questions, a few at a time. Outcomes of actions are awaited apart.
    async fn answer_asks(&self, mut asks: mpsc::Receiver<PlanQuestion>) -> Ended {
        let asks = stream::poll_fn(|cx| asks.poll_recv(cx));
        let mut answering = asks.map(|ask| self.answer_one(ask)).buffer_unordered(ANSWERS);
        // A vendor that hangs delays no other answer, unless a host asks for any number of actions.
        let mut acting = FuturesUnordered::new();
        loop {
            let told = tokio::select! {
                answer = answering.next(), if acting.len() < bounds::LIST => match answer {
                    Some(Ok((id, PlanAnswer::Now(given)))) => ToHost::Told { id, given },
                    Some(Ok((id, PlanAnswer::Later(outcome)))) => {
                        acting.push(async move { ToHost::Told { id, given: outcome.await } });
                        continue;
                    }
                    Some(Err(ended)) => return ended,
                    None => break,
                },
                Some(told) = acting.next() => told,
            };
            if self.frames.send(told).await.is_err() {
                break;
            }
        }
        loop_ended("asks")
    }

    async fn answer_one(&self, ask: PlanQuestion) -> Result<(i64, PlanAnswer), Ended> {
        let PlanQuestion { id, agent, generation, request } = ask;
        let answer = match Box::pin(hosts::answer(&self.link, agent, generation, request)).await? {
            Some(answer) => answer,
            None => {
                self.count_foreign(1)?;
                PlanAnswer::Now(PlanResponse::Refused {
                    reason: "The agent is not on this server.".to_owned(),
                })
            }
        };
        Ok((id, answer))
    }

    /// Counts frames about another host's agents.
    pub(super) fn count_foreign(&self, frames: u32) -> Result<(), Refusal> {
        if frames == 0 || self.count(&self.foreign, frames, "foreign") {
            return Ok(());
        }
        let reason = "The host has reported several times about agents that are not on its server.";
        Err(Refusal::new(RefusedCode::Foreign, reason))
    }

    /// Counts a frame that is invalid.
    pub(super) fn count_malformed(&self, what: &str) -> Result<(), Refusal> {
        if self.count(&self.malformed, 1, "malformed") { Ok(()) } else { Err(Refusal::malformed(what)) }
    }

    /// Counts offences. Returns false if there are too many.
    fn count(&self, so_far: &AtomicU32, more: u32, what: &'static str) -> bool {
        let before = so_far.fetch_add(more, Ordering::Relaxed);
        let (org, server, count) = (self.link.scope.org.0, self.link.server.0, before + more);
        tracing::warn!(org, server, what, count, "host.offence");
        before + more < MAX_OFFENCES
    }
}

/// A loop ended before the others, which is a bug.
fn loop_ended(what: &'static str) -> Ended {
    Problem::internal(anyhow::anyhow!("the queue of {what} was closed")).into()
}
