//! Events too large for a frame are sent with less content, since an oversized one would end every connection.

use muster_protocol::{
    Event, FromHost, HostEvent, LARGEST_FRAME,
    event::{Content, McpReport, McpTest, McpTool, McpToolReport, Message, Offer, TurnEnd},
    plan::Destination,
    spending::ModelCall,
};
use tokio_tungstenite::tungstenite;

use crate::bounds::TEXT;

pub fn text(frame: &FromHost) -> tungstenite::Message {
    // Frames consist of texts, numbers and JSON, so they can always be written.
    let written = |frame: &FromHost| serde_json::to_string(frame).unwrap_or_default();
    let whole = written(frame);
    tungstenite::Message::text(match frame {
        FromHost::Event(event) if whole.len() > LARGEST_FRAME => {
            written(&FromHost::Event(Event { what: trim_event(&event.what), ..*event }))
        }
        _ => whole,
    })
}

/// An event with less content. Every field is named, so that a new text can't be forgotten. Ids are numbers or made by
/// the host; an agent's own ids are cut like other texts, and then stand for nothing.
fn trim_event(what: &HostEvent) -> HostEvent {
    match what {
        HostEvent::Started { container_id, program, model } => HostEvent::Started {
            container_id: cut(container_id),
            program: program.as_deref().map(cut),
            model: model.as_deref().map(cut),
        },
        HostEvent::EngineAway { detail } => HostEvent::EngineAway { detail: cut(detail) },
        HostEvent::Ended { reason, code, signal, detail } => HostEvent::Ended {
            reason: *reason,
            code: *code,
            signal: *signal,
            detail: detail.as_deref().map(cut),
        },
        HostEvent::Lacks { what } => HostEvent::Lacks { what: cut(what) },
        // A session under another name could not be opened.
        HostEvent::Session { conversation_id, session: _ } => {
            HostEvent::Session { conversation_id: *conversation_id, session: None }
        }
        HostEvent::Offered { models, modes } => {
            HostEvent::Offered { models: offers(models), modes: offers(modes) }
        }
        HostEvent::Message(message) => HostEvent::Message(without_content(message)),
        HostEvent::TurnEnded(TurnEnd { turn_id, outcome, error, model, usage, context_tokens }) => {
            HostEvent::TurnEnded(TurnEnd {
                turn_id: *turn_id,
                outcome: *outcome,
                error: error.as_deref().map(cut),
                model: model.as_deref().map(cut),
                usage: *usage,
                context_tokens: *context_tokens,
            })
        }
        // An unreadable request can't be decided.
        HostEvent::Asked(request) => HostEvent::Withdrawn { request: cut(&request.request) },
        HostEvent::Withdrawn { request } => HostEvent::Withdrawn { request: cut(request) },
        HostEvent::AuthRequired { detail } => HostEvent::AuthRequired { detail: cut(detail) },
        HostEvent::ModelCalled(call) => HostEvent::ModelCalled(trim_call(call)),
        HostEvent::Limited { credential_id, model, until, detail } => HostEvent::Limited {
            credential_id: *credential_id,
            model: cut(model),
            until: *until,
            detail: cut(detail),
        },
        HostEvent::Unreached { destination: Destination { host, port }, reason, count } => {
            HostEvent::Unreached {
                destination: Destination { host: cut(host), port: *port },
                reason: cut(reason),
                count: *count,
            }
        }
        HostEvent::CredentialsUsed { credential_ids } => {
            HostEvent::CredentialsUsed { credential_ids: credential_ids.iter().copied().take(32).collect() }
        }
        HostEvent::McpServer(McpReport { server_id, state, error, stderr, tools }) => {
            HostEvent::McpServer(McpReport {
                server_id: *server_id,
                state: *state,
                error: error.as_deref().map(cut),
                stderr: stderr.as_deref().map(cut),
                tools: tools.iter().take(32).map(|tool| short(tool, 256)).collect(),
            })
        }
        HostEvent::McpTools(McpToolReport { server_id, is_first, tools }) => {
            HostEvent::McpTools(McpToolReport {
                server_id: *server_id,
                is_first: *is_first,
                tools: tools.iter().take(32).map(without_definition).collect(),
            })
        }
        HostEvent::McpTested(McpTest { server_id, listed: _, protocol, program, error }) => {
            HostEvent::McpTested(McpTest {
                server_id: *server_id,
                listed: None,
                protocol: protocol.as_deref().map(cut),
                program: program.as_deref().map(cut),
                error: error.as_deref().map(cut),
            })
        }
        HostEvent::BackedUp { backup_id, bytes, sha256, error } => HostEvent::BackedUp {
            backup_id: *backup_id,
            bytes: *bytes,
            sha256: sha256.as_deref().map(cut),
            error: error.as_deref().map(cut),
        },
        HostEvent::Restored { backup_id, error } => {
            HostEvent::Restored { backup_id: *backup_id, error: error.as_deref().map(cut) }
        }
        HostEvent::Synced
        | HostEvent::TurnStarted { turn_id: _ }
        | HostEvent::Delivered { approval_id: _, without_text: _ }
        | HostEvent::NotWaiting { approval_id: _ }
        | HostEvent::LeaseReturned { lease_id: _ }
        | HostEvent::Refused { command_id: _, reason: _ } => what.clone(),
    }
}

fn trim_call(call: &ModelCall) -> ModelCall {
    let ModelCall { turn_id, provider, model, started_at, millis, status, usage, cache_hour, lease_id } =
        call;
    ModelCall {
        turn_id: *turn_id,
        provider: cut(provider),
        model: cut(model),
        started_at: *started_at,
        millis: *millis,
        status: *status,
        usage: *usage,
        cache_hour: *cache_hour,
        lease_id: *lease_id,
    }
}

fn without_content(Message { conversation_id, turn_id, key, content: _ }: &Message) -> Message {
    let text =
        format!("Something that the agent said is left out: it is larger than {} KiB.", LARGEST_FRAME / 1024);
    let content = Content::Error { code: "TOO_LARGE".to_owned(), text };
    Message { conversation_id: *conversation_id, turn_id: *turn_id, key: cut(key), content }
}

fn without_definition(McpTool { name, digest, definition: _ }: &McpTool) -> McpTool {
    McpTool { name: short(name, 1024), digest: short(digest, 256), definition: None }
}

fn offers(all: &[Offer]) -> Vec<Offer> {
    let shown = all.iter().take(32).map(|Offer { id, name, description, current }| Offer {
        id: short(id, 256),
        name: short(name, 256),
        description: description.as_deref().map(|text| short(text, 256)),
        current: *current,
    });
    shown.collect()
}

fn cut(text: &str) -> String {
    short(text, TEXT)
}

fn short(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use muster_protocol::event::{
        Asked, Choice, EndReason, McpState, RefusedReason, Request, TurnOutcome, Usage,
    };
    use serde_json::{Value, json};

    use super::*;

    fn told(what: HostEvent) -> HostEvent {
        let event = Event { seq: 4, agent_id: 7, generation: 3, at: 1, what };
        let text = text(&FromHost::Event(event)).into_text().unwrap();
        assert!(text.len() <= LARGEST_FRAME, "{} bytes: {}", text.len(), &text[..200]);
        match muster_json::from_str(&text).unwrap() {
            FromHost::Event(event) => {
                assert_eq!((event.seq, event.agent_id, event.generation), (4, 7, 3));
                event.what
            }
            other => panic!("{other:?}"),
        }
    }

    /// Each kind of event, with this text in each text field, and this many entries in each list.
    fn each(text: &str, entries: usize) -> Vec<HostEvent> {
        let owned = || text.to_owned();
        let some = || Some(owned());
        let message = |content| {
            HostEvent::Message(Message { conversation_id: 1, turn_id: Some(5), key: owned(), content })
        };
        let asked = |asked| {
            HostEvent::Asked(Request { request: owned(), conversation_id: 1, turn_id: Some(5), asked })
        };
        let choice = Choice { id: owned(), label: owned(), description: some() };
        let offers = vec![Offer { id: owned(), name: owned(), description: some(), current: true }; entries];
        vec![
            HostEvent::Started { container_id: owned(), program: some(), model: some() },
            HostEvent::EngineAway { detail: owned() },
            HostEvent::Ended { reason: EndReason::Exited, code: Some(1), signal: None, detail: some() },
            HostEvent::Synced,
            HostEvent::Lacks { what: owned() },
            HostEvent::Session { conversation_id: 1, session: some() },
            HostEvent::Offered { models: offers.clone(), modes: offers },
            HostEvent::TurnStarted { turn_id: 5 },
            message(Content::Text { text: owned() }),
            message(Content::Thinking { text: owned() }),
            message(Content::ToolCall { tool: owned(), call_id: owned(), input: json!(text) }),
            message(Content::ToolResult {
                call_id: owned(),
                output: json!({ (text): text }),
                is_error: true,
            }),
            message(Content::Error { code: owned(), text: owned() }),
            message(Content::File {
                filename: owned(),
                mime_type: owned(),
                base64: owned(),
                caption: some(),
            }),
            HostEvent::TurnEnded(TurnEnd {
                turn_id: 5,
                outcome: TurnOutcome::Failed,
                error: some(),
                model: some(),
                usage: Usage::default(),
                context_tokens: None,
            }),
            asked(Asked::Action { tool: some(), tool_kind: owned(), title: owned(), input: json!([text]) }),
            asked(Asked::Question {
                text: owned(),
                options: vec![choice; entries],
                multiple: false,
                allow_text: true,
            }),
            HostEvent::Withdrawn { request: owned() },
            HostEvent::Delivered { approval_id: 8, without_text: true },
            HostEvent::NotWaiting { approval_id: 8 },
            HostEvent::AuthRequired { detail: owned() },
            HostEvent::ModelCalled(ModelCall {
                turn_id: Some(5),
                provider: owned(),
                model: owned(),
                started_at: 1,
                millis: 2,
                status: Some(200),
                usage: Usage::default(),
                cache_hour: Some(3),
                lease_id: Some(9),
            }),
            HostEvent::LeaseReturned { lease_id: 9 },
            HostEvent::Limited { credential_id: None, model: owned(), until: None, detail: owned() },
            HostEvent::Unreached {
                destination: Destination { host: owned(), port: 443 },
                reason: owned(),
                count: 3,
            },
            HostEvent::CredentialsUsed { credential_ids: vec![1; entries] },
            HostEvent::McpServer(McpReport {
                server_id: 5,
                state: McpState::Failed,
                error: some(),
                stderr: some(),
                tools: vec![owned(); entries],
            }),
            HostEvent::McpTools(McpToolReport {
                server_id: 5,
                is_first: true,
                tools: vec![
                    McpTool { name: owned(), digest: owned(), definition: Some(json!([text])) };
                    entries
                ],
            }),
            HostEvent::McpTested(McpTest {
                server_id: 5,
                listed: Some(vec![owned(); entries]),
                protocol: some(),
                program: some(),
                error: some(),
            }),
            HostEvent::BackedUp { backup_id: 1, bytes: Some(2), sha256: some(), error: some() },
            HostEvent::Restored { backup_id: 1, error: some() },
            HostEvent::Refused { command_id: 1, reason: RefusedReason::Stale },
        ]
    }

    fn kind(what: &HostEvent) -> String {
        serde_json::to_value(what).unwrap()["kind"].as_str().unwrap().to_owned()
    }

    /// The connection survives any event, and the event keeps its identity.
    #[test]
    fn an_event_of_each_kind_fits_however_much_is_in_it() {
        let frames: Value = muster_json::from_str(include_str!("../../../../schema/gateway.json")).unwrap();
        let kinds = frames["$defs"]["HostEvent"]["oneOf"].as_array().unwrap().iter();
        let kinds = kinds.map(|kind| &kind["properties"]["kind"]["const"]);
        let kinds: BTreeSet<String> = kinds.map(|kind| kind.as_str().unwrap().to_owned()).collect();
        let tried: BTreeSet<String> = each("", 1).iter().map(kind).collect();
        assert_eq!(tried, kinds, "each kind has an example here");
        // Six times as long when written.
        let (long, control) = ("x".repeat(2 * 1024 * 1024), "\u{1}".repeat(512 * 1024));
        for (text, entries) in
            [(long.as_str(), 1), (&control, 1), (&"\u{1}".repeat(300), 1000), ("é", 100_000)]
        {
            for what in each(text, entries) {
                let (before, after) = (kind(&what), kind(&told(what)));
                assert!(before == after || (before, after) == ("ASKED".to_owned(), "WITHDRAWN".to_owned()));
            }
        }
    }

    #[test]
    fn an_oversized_event_is_sent_without_its_content() {
        let file = Content::File {
            filename: "a.png".to_owned(),
            mime_type: "image/png".to_owned(),
            base64: "\u{1}".repeat(512 * 1024),
            caption: None,
        };
        let message = |content| {
            let key = "3.9.f".to_owned();
            HostEvent::Message(Message { conversation_id: 1, turn_id: Some(5), key, content })
        };
        let HostEvent::Message(shown) = told(message(file)) else { panic!("no message") };
        assert_eq!((shown.conversation_id, shown.turn_id, shown.key.as_str()), (1, Some(5), "3.9.f"));
        assert!(matches!(shown.content, Content::Error { code, .. } if code == "TOO_LARGE"));
        let input = Value::from("x".repeat(LARGEST_FRAME));
        let asked =
            Asked::Action { tool: None, tool_kind: "other".to_owned(), title: "Run".to_owned(), input };
        let request = Request { request: "3.h1".to_owned(), conversation_id: 1, turn_id: Some(5), asked };
        let withdrawn = HostEvent::Withdrawn { request: "3.h1".to_owned() };
        assert_eq!(told(HostEvent::Asked(request)), withdrawn);
        let small = message(Content::Text { text: "Hi".to_owned() });
        assert_eq!(told(small.clone()), small);
    }
}
