//! The control plane's side of a connection: `POST /gateway/join`, and the WebSocket.

use std::sync::{Arc, Mutex};

use futures::{SinkExt, StreamExt};
use muster_protocol::{
    FromHost, HostEvent, ToHost,
    frame::Welcome,
    join::{Join, Joined},
    plan::{ActionOutcome, Judgement, PlanRequest, PlanResponse},
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Notify,
    time::{Duration, timeout},
};
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async,
    tungstenite::{
        Message,
        handshake::server::{ErrorResponse, Request, Response},
    },
};

use super::State;

type Shared = Arc<Mutex<State>>;

pub async fn serve(client: TcpStream, state: Shared, changed: Arc<Notify>) {
    if !state.lock().unwrap().is_online {
        return;
    }
    let mut start = [0; 4];
    client.peek(&mut start).await.unwrap_or_default();
    if &start == b"POST" {
        join(client, &state).await;
    } else {
        gateway(client, &state, &changed).await;
    }
    changed.notify_waiters();
}

async fn join(mut client: TcpStream, state: &Shared) {
    let mut bytes = Vec::new();
    let (head, body) = loop {
        let mut more = [0; 4096];
        let count = client.read(&mut more).await.unwrap();
        bytes.extend_from_slice(&more[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                break (head.to_owned(), body.to_owned());
            }
        }
    };
    let (status, kind, answer) = {
        let mut state = state.lock().unwrap();
        let bearer =
            head.lines().find_map(|line| line.strip_prefix("authorization: Bearer ")).unwrap_or_default();
        let request: Join = serde_json::from_str(&body).unwrap();
        let host = (request.host_token.expose().to_owned(), request.machine.id);
        let is_again = state.host.as_ref() == Some(&host);
        if !state.tokens.contains(bearer) || (state.host.is_some() && !is_again) {
            let problem = json!({ "title": "Token used", "detail": "The token was used by another machine.", "code": "X" });
            (409, "application/problem+json", problem)
        } else {
            state.host = Some(host);
            let joined =
                Joined { organization_id: 1, server_id: 2, server_name: "tests".to_owned(), known: None };
            (200, "application/json", serde_json::to_value(joined).unwrap())
        }
    };
    if std::mem::take(&mut state.lock().unwrap().loses_responses) {
        return;
    }
    let answer = answer.to_string();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        answer.len()
    );
    client.write_all(format!("{head}{answer}").as_bytes()).await.unwrap();
}

async fn gateway(client: TcpStream, state: &Shared, changed: &Notify) {
    let token = state.lock().unwrap().host.as_ref().map(|(token, _)| format!("Bearer {token}"));
    let check = |request: &Request, response: Response| {
        let shown = request.headers().get("authorization").and_then(|value| value.to_str().ok());
        if shown.is_some() && shown == token.as_deref() {
            return Ok(response);
        }
        let mut refused = ErrorResponse::new(Some(json!({ "detail": "Unknown token." }).to_string()));
        *refused.status_mut() = http::StatusCode::UNAUTHORIZED;
        Err(refused)
    };
    let Ok(mut socket) = accept_hdr_async(client, check).await else { return };
    let Some(FromHost::Hello(hello)) = hear(&mut socket).await else { return };
    let refuses = state.lock().unwrap().refuses;
    if let Some((code, retry_after)) = refuses {
        let reason = "The test says so.".to_owned();
        say(&mut socket, &ToHost::Refused { code, reason, retry_after }).await;
        state.lock().unwrap().hellos.push(hello);
        return;
    }
    let (welcome, epoch) = {
        let mut state = state.lock().unwrap();
        state.epoch += 1;
        let hello_commands = hello.commands;
        state.received = hello_commands;
        state.hellos.push(hello);
        let welcome = Welcome {
            version: 1,
            epoch: state.epoch,
            events: state.events.len() as i64,
            window: state.window,
            time: now(),
            agents: state.launched(hello_commands),
        };
        (welcome, state.epoch)
    };
    say(&mut socket, &ToHost::Welcome(welcome)).await;
    changed.notify_waiters();
    talk(&mut socket, state, changed, epoch).await;
}

async fn talk(socket: &mut WebSocketStream<TcpStream>, state: &Shared, changed: &Notify, epoch: i64) {
    let mut sent = state.lock().unwrap().received;
    let mut acknowledged = 0;
    loop {
        let (orders, ack, told) = {
            let mut state = state.lock().unwrap();
            if !state.is_online || state.epoch != epoch {
                return;
            }
            let orders: Vec<_> = state.orders.iter().filter(|order| order.seq > sent).cloned().collect();
            let orders: Vec<_> = orders.iter().flat_map(|order| vec![order.clone(); state.times]).collect();
            let last = state.events.len() as i64;
            let held = if state.holds_answers { Vec::new() } else { std::mem::take(&mut state.held) };
            let told: Vec<_> = held.into_iter().map(|asked| told(&mut state, asked)).collect();
            (orders, Some(last).filter(|last| state.acknowledges && *last > acknowledged), told)
        };
        for order in orders {
            sent = order.seq;
            say(socket, &ToHost::Command(order)).await;
        }
        if let Some(through) = ack {
            acknowledged = through;
            say(socket, &ToHost::Ack { through }).await;
        }
        for answer in told {
            say(socket, &answer).await;
        }
        let frame = match timeout(Duration::from_millis(10), socket.next()).await {
            Err(_) => continue,
            Ok(Some(Ok(Message::Text(text)))) => serde_json::from_str(&text).unwrap(),
            Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) => return,
            Ok(Some(Ok(_))) => continue,
        };
        let answer = heard(&mut state.lock().unwrap(), frame);
        changed.notify_waiters();
        if let Some(answer) = answer {
            say(socket, &answer).await;
        }
    }
}

fn heard(state: &mut State, frame: FromHost) -> Option<ToHost> {
    match frame {
        FromHost::Hello(_) => panic!("a second HELLO"),
        FromHost::Received { through } => state.received = state.received.max(through),
        FromHost::Event(event) => {
            let last = state.events.len() as i64;
            assert!(event.seq <= last + 1, "event {} comes after {last}", event.seq);
            if event.seq <= last {
                state.repeated += 1;
                let known = &state.events[event.seq as usize - 1];
                assert_eq!(known, &event, "a number stands for one event");
            } else {
                state.events.push(event);
            }
        }
        FromHost::Delta(delta) => state.deltas.push(delta),
        FromHost::Load(load) => state.loads.push(load),
        FromHost::Log(_) => {}
        FromHost::Ask { id, agent_id, wanted, .. } => {
            if !state.holds_answers {
                return Some(told(state, (id, agent_id, wanted)));
            }
            state.held.push((id, agent_id, wanted));
        }
    }
    None
}

fn told(state: &mut State, (id, agent_id, wanted): (i64, i64, PlanRequest)) -> ToHost {
    let refused = || PlanResponse::Refused { reason: "Not found.".to_owned() };
    ToHost::Told { id, given: given(state, agent_id, wanted).unwrap_or_else(refused) }
}

fn given(state: &mut State, agent_id: i64, wanted: PlanRequest) -> Option<PlanResponse> {
    Some(match wanted {
        PlanRequest::Launch => {
            state.asked_plans += 1;
            PlanResponse::Launch(Box::new(state.plans.get(&agent_id)?.clone()))
        }
        PlanRequest::Turn { turn_id } => {
            let mut plan = state.turns.get(&turn_id)?.clone();
            plan.session = state
                .events_of(agent_id)
                .filter_map(|what| match what {
                    HostEvent::Session { conversation_id, session }
                        if *conversation_id == plan.conversation_id =>
                    {
                        Some(session.clone())
                    }
                    _ => None,
                })
                .last()
                .flatten();
            PlanResponse::Turn(plan)
        }
        PlanRequest::Answer { approval_id } => PlanResponse::Answer(state.answers.get(&approval_id)?.clone()),
        PlanRequest::Judgement(crossing) => {
            let refused = Judgement::Refused { reason: "The rules say no.".to_owned() };
            PlanResponse::Judgement(state.judgements.get(&crossing.tool).cloned().unwrap_or(refused))
        }
        PlanRequest::Lease(_) => state.leases.pop().unwrap_or(PlanResponse::Spent {
            reason: "The budget of this month is spent.".to_owned(),
            until: None,
        }),
        PlanRequest::Actions { .. } => PlanResponse::Actions { actions: state.actions.clone() },
        PlanRequest::Act(call) => {
            state.acted.push((call.name, call.arguments));
            let done = ActionOutcome::Done { vendor_id: None };
            PlanResponse::Acted(state.outcomes.pop_front().unwrap_or(done))
        }
    })
}

async fn hear(socket: &mut WebSocketStream<TcpStream>) -> Option<FromHost> {
    match socket.next().await {
        Some(Ok(Message::Text(text))) => Some(serde_json::from_str(&text).unwrap()),
        _ => None,
    }
}

async fn say(socket: &mut WebSocketStream<TcpStream>, frame: &ToHost) {
    // The host may be gone.
    let _ = socket.send(Message::text(serde_json::to_string(frame).unwrap())).await;
}

fn now() -> i64 {
    i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap()
}
