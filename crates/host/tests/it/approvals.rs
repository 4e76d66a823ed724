//! Agents' requests: permissions, questions, and Muster's own tools. Each answer either reaches the agent, or is
//! reported as not waited for.

use std::{fs, pin::pin, time::Duration};

use futures::future::join;
use muster_protocol::{
    Command, HostEvent,
    event::{Asked, Content, TurnOutcome},
    plan::{Action, ActionOutcome, Decision, Judgement, Skill},
};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
    time::timeout,
};

use crate::support::{Host, Plane, action};

fn delivered(plane: &Plane, approval_id: i64) -> impl Future<Output = bool> {
    let plane = plane.clone();
    async move {
        let found = plane.wait("the decision is reported", |state| {
            state.events.iter().find_map(|event| match event.what {
                HostEvent::Delivered { approval_id: id, .. } if id == approval_id => Some(true),
                HostEvent::NotWaiting { approval_id: id } if id == approval_id => Some(false),
                _ => None,
            })
        });
        found.await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permission_is_asked_and_the_answer_decides() {
    let plane = Plane::start().await;
    let _host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    let turn = plane.turn(7, 1, 70, "do execute Clean up {\"command\": \"rm -r x\"}");
    let asked = plane.wait("it asks", |state| state.asked(70).first().cloned()).await;
    assert_eq!((action(&asked), asked.turn_id), ("Clean up", Some(turn)));
    let Asked::Action { tool_kind, input, .. } = &asked.asked else { panic!("{asked:?}") };
    assert_eq!((tool_kind.as_str(), &input["command"]), ("execute", &"rm -r x".into()));
    let approval = plane.answer(7, 1, &asked.request, Decision::Approved { comment: None });
    assert!(delivered(&plane, approval).await);
    assert_eq!(plane.end_of(turn).await.outcome, TurnOutcome::Done);
    let again = plane.answer(7, 1, &asked.request, Decision::Approved { comment: None });
    assert!(!delivered(&plane, again).await, "nothing waits");
    let refused = plane.turn(7, 1, 70, "do delete Remove it");
    let asked = plane.wait("it asks again", |state| state.asked(70).get(1).cloned()).await;
    plane.order(7, 1, Command::Verdict { request: asked.request, allowed: false });
    plane.end_of(refused).await;
    let state = plane.lock();
    assert_eq!(state.texts(turn), ["I was allowed to: Clean up"]);
    assert_eq!(state.texts(refused), ["I was not allowed to: Remove it"]);
    let kinds: Vec<&str> = state
        .messages(70)
        .iter()
        .filter(|message| message.turn_id == Some(turn))
        .map(|message| match message.content {
            Content::ToolCall { .. } => "call",
            Content::ToolResult { .. } => "result",
            _ => "text",
        })
        .collect();
    assert_eq!(kinds, ["call", "result", "text"]);
    state.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_answered_by_choice_or_in_words() {
    let plane = Plane::start().await;
    let _host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    let turn = plane.turn(7, 1, 70, "ask Which? | red | blue");
    let asked = plane.wait("it asks", |state| state.asked(70).first().cloned()).await;
    let Asked::Question { options, allow_text: true, .. } = &asked.asked else { panic!("{asked:?}") };
    let decision = Decision::Answered { options: vec![options[1].id.clone()], text: None };
    let approval = plane.answer(7, 1, &asked.request, decision);
    assert!(delivered(&plane, approval).await);
    plane.end_of(turn).await;
    assert_eq!(plane.lock().texts(turn), ["The answer is: blue"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_a_turn_withdraws_what_it_asked() {
    let plane = Plane::start().await;
    let _host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    let turn = plane.turn(7, 1, 70, "do execute Wait");
    let asked = plane.wait("it asks", |state| state.asked(70).first().cloned()).await;
    plane.order(7, 1, Command::Cancel { turn_id: turn });
    assert_eq!(plane.end_of(turn).await.outcome, TurnOutcome::Cancelled);
    let state = plane.lock();
    let withdrawn = state
        .events_of(7)
        .filter(|what| matches!(what, HostEvent::Withdrawn { request } if *request == asked.request));
    assert_eq!(withdrawn.count(), 1);
    state.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_call_returns_the_answer_of_a_person_who_is_quick() {
    let plane = Plane::start().await;
    let _host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    let turn =
        plane.turn(7, 1, 70, "call ask_person {\"question\": \"Which?\", \"options\": [\"a\", \"b\"]}");
    let asked = plane.wait("it asks", |state| state.asked(70).first().cloned()).await;
    let decision = Decision::Answered { options: vec!["b".to_owned()], text: Some("soon".to_owned()) };
    let approval = plane.answer(7, 1, &asked.request, decision);
    assert!(delivered(&plane, approval).await);
    plane.end_of(turn).await;
    let text = plane.lock().texts(turn).join("");
    assert!(
        text.contains("answered") && text.contains("\"b\"") && text.contains("soon") && text.contains("Ada"),
        "{text}"
    );
    let turn = plane.turn(7, 1, 70, "call request_approval {\"title\": \"Go\", \"kind\": \"execute\"}");
    let asked = plane.wait("it asks again", |state| state.asked(70).get(1).cloned()).await;
    plane.order(7, 1, Command::Verdict { request: asked.request, allowed: true });
    plane.end_of(turn).await;
    assert!(plane.lock().texts(turn).join("").contains("approved"));
    // Rewritten it is longer than the agent's text: 1e15 has 18 characters.
    let numbers = vec!["1e15"; 20_000].join(",");
    let words =
        format!("call request_approval {{\"title\": \"Go\", \"kind\": \"execute\", \"input\": [{numbers}]}}");
    let turn = plane.turn(7, 1, 70, &words);
    plane.end_of(turn).await;
    let state = plane.lock();
    assert!(state.texts(turn).join("").contains("longer than 200 KiB"), "{:?}", state.texts(turn));
    assert_eq!(state.asked(70).len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answer_of_a_slow_person_is_not_waited_for() {
    let plane = Plane::start().await;
    let _host = Host::start(&plane, &["--ask-seconds", "0"]);
    plane.launch(7, 1).await;
    let turn = plane.turn(7, 1, 70, "call ask_person {\"question\": \"Which?\"}");
    plane.end_of(turn).await;
    assert!(
        plane.lock().texts(turn).join("").contains("End your turn now"),
        "{:?}",
        plane.lock().texts(turn)
    );
    let asked = plane.wait("it has asked", |state| state.asked(70).first().cloned()).await;
    let decision = Decision::Answered { options: Vec::new(), text: Some("late".to_owned()) };
    let approval = plane.answer(7, 1, &asked.request, decision);
    assert!(!delivered(&plane, approval).await);
    let state = plane.lock();
    assert!(
        !state.events_of(7).any(|what| matches!(what, HostEvent::Withdrawn { .. })),
        "people may still answer"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_action_of_a_channel_is_judged_performed_and_answered() {
    let plane = Plane::start().await;
    let _host = Host::start(&plane, &[]);
    plane.set(|state| {
        state.actions = vec![Action {
            name: "react".to_owned(),
            title: "React".to_owned(),
            description: "Puts an emoji on a message.".to_owned(),
            schema: json!({ "type": "object", "properties": { "emoji": { "type": "string" } } }),
        }];
    });
    plane.launch(7, 1).await;
    let words = "call react {\"emoji\": \"eyes\"}";
    let answer = async || {
        let turn = plane.turn(7, 1, 70, words);
        plane.end_of(turn).await;
        plane.lock().texts(turn).join("")
    };
    let judge = |judgement: Judgement| {
        plane.set(|state| _ = state.judgements.insert("muster.react".to_owned(), judgement));
    };
    let refused = answer().await;
    assert!(refused.contains("The rules say no.") && plane.lock().acted.is_empty(), "{refused}");
    judge(Judgement::Allowed);
    let reason = "Slack has no such emoji.".to_owned();
    plane.set(|state| {
        state.outcomes.push_back(ActionOutcome::Done { vendor_id: Some("E1".to_owned()) });
        state.outcomes.push_back(ActionOutcome::Queued { delivery_id: 4 });
        state.outcomes.push_back(ActionOutcome::Failed { reason });
    });
    for expected in ["Done. Its id is E1.", "Queued, as delivery 4.", "Slack has no such emoji."] {
        let answer = answer().await;
        assert!(answer.contains(expected), "{expected}: {answer}");
    }
    judge(Judgement::Asked);
    let turn = plane.turn(7, 1, 70, words);
    let asked = plane.wait("it asks", |state| state.asked(70).first().cloned()).await;
    let Asked::Action { tool, input, .. } = &asked.asked else { panic!("{asked:?}") };
    assert_eq!((tool.as_deref(), input), (Some("muster.react"), &json!({ "emoji": "eyes" })));
    assert_eq!(plane.lock().acted.len(), 3, "a person has not decided yet");
    let approval = plane.answer(7, 1, &asked.request, Decision::Approved { comment: None });
    assert!(delivered(&plane, approval).await);
    plane.end_of(turn).await;
    assert!(plane.lock().texts(turn).join("").contains("Done."));
    // The channel has been switched off meanwhile.
    plane.set(|state| state.actions.clear());
    let unknown = answer().await;
    assert!(unknown.contains("Unknown tool: react."), "{unknown}");
    let call = ("react".to_owned(), json!({ "emoji": "eyes" }));
    assert_eq!(plane.lock().acted, vec![call; 4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_reads_no_answers_is_no_longer_read() {
    let requests = 2000;
    let plane = Plane::start().await;
    let host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    plane.say(7, 1, 70, "call ask_person {}").await;
    let client = UnixStream::connect(host.launch(7, 1).join("mcp/70")).await.unwrap();
    let (read, mut write) = client.into_split();
    let params = json!({ "cursor": "x".repeat(1000) });
    let request = |id: usize| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params });
    let lines: String = (0..requests).map(|id| format!("{}\n", request(id))).collect();
    let mut writing = pin!(write.write_all(lines.as_bytes()));
    let stuck = timeout(Duration::from_secs(2), &mut writing).await;
    assert!(stuck.is_err(), "it can write no more than its socket holds");
    let reading = async {
        let mut answers = BufReader::new(read).lines();
        for _ in 0..requests {
            assert!(answers.next_line().await.unwrap().is_some());
        }
    };
    let (written, ()) = timeout(Duration::from_secs(60), join(writing, reading)).await.unwrap();
    written.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_sent_from_the_home_and_from_nowhere_else() {
    let plane = Plane::start().await;
    let host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    fs::write(host.home(7).join("report.csv"), "a,b").unwrap();
    plane.say(7, 1, 70, "call send_file {\"path\": \"report.csv\", \"caption\": \"Here\"}").await;
    plane.say(7, 1, 70, "file notes.txt Some notes").await;
    let outside = plane.turn(7, 1, 70, "call send_file {\"path\": \"/etc/passwd\"}");
    plane.end_of(outside).await;
    let state = plane.lock();
    let files: Vec<_> = state
        .messages(70)
        .into_iter()
        .filter_map(|message| match message.content {
            Content::File { filename, mime_type, base64, caption } => {
                Some((filename, mime_type, base64, caption))
            }
            _ => None,
        })
        .collect();
    let file = |name: &str, kind: &str, base64: &str, caption: Option<&str>| {
        (name.to_owned(), kind.to_owned(), base64.to_owned(), caption.map(str::to_owned))
    };
    assert_eq!(
        files,
        [
            file("report.csv", "text/csv", "YSxi", Some("Here")),
            file("notes.txt", "text/plain", "U29tZSBub3Rlcw==", None),
        ]
    );
    assert!(state.texts(outside).join("").contains("out of your home"), "{:?}", state.texts(outside));
    state.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_assignments_reach_a_running_agent() {
    let plane = Plane::start().await;
    let _host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    plane.say(7, 1, 70, "remember a").await;
    let skill =
        Skill { name: "mend".to_owned(), description: None, content: "Mend it.".to_owned(), version: 1 };
    plane.set(|state| state.plans.get_mut(&7).unwrap().skills.push(skill));
    plane.order(7, 1, Command::Sync);
    plane
        .wait("the sync is reported", |state| {
            state.events_of(7).any(|what| *what == HostEvent::Synced).then_some(())
        })
        .await;
    let turn = plane.turn(7, 1, 70, "Hello\nrecall");
    plane.end_of(turn).await;
    let state = plane.lock();
    let text = state.texts(turn).join(" ");
    assert!(text.contains("Skills: mend.") && text.contains("I remember: a."), "{text}");
    let sessions = state.events_of(7).filter(|what| matches!(what, HostEvent::Session { .. })).count();
    assert_eq!(sessions, 1, "the session was closed and resumed");
}
