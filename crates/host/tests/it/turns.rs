//! Turns of the reference agent, from the command to the message.

use std::fs;

use muster_protocol::{
    HostEvent,
    event::TurnOutcome,
    plan::{McpServer, McpTransport, ModelAccess, Part, Variable},
};

use crate::support::{Host, Plane};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_is_answered() {
    let plane = Plane::start().await;
    let host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    let turn = plane.turn(7, 1, 70, "Hello");
    let end = plane.end_of(turn).await;
    assert_eq!(end.outcome, TurnOutcome::Done, "{end:?}");
    let state = plane.lock();
    assert_eq!(state.texts(turn), ["You said: Hello\n\nThis is turn 1 of this session. Skills: none."]);
    assert!(end.usage.input.is_some() && end.usage.output.is_some(), "{end:?}");
    state.check();
    drop(host);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_agent_offers_is_reported_once() {
    let plane = Plane::start().await;
    let _host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    for conversation in [70, 71] {
        plane.say(7, 1, conversation, "Hello").await;
    }
    let state = plane.lock();
    let offers = state.events_of(7).filter_map(|what| match what {
        HostEvent::Offered { models, modes } => Some((models.clone(), modes.clone())),
        _ => None,
    });
    let offers: Vec<_> = offers.collect();
    let [(models, modes)] = &offers[..] else { panic!("{offers:?}") };
    assert_eq!((models[0].id.as_str(), models[0].current, models.len(), modes.len()), ("words", true, 1, 2));
}

/// The relays to Muster's MCP server of this host's agents: one per open session.
fn relays(host: &Host) -> usize {
    let here = host.path().display().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let words = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    words.filter(|words| words.contains(" mcp ") && words.contains(&here)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_session_has_no_process_until_the_next_message() {
    let plane = Plane::start().await;
    let host = Host::start(&plane, &["--idle-seconds", "1"]);
    plane.launch(7, 1).await;
    plane.say(7, 1, 70, "call ask_person {}").await;
    plane.wait("its session is closed", |_| (relays(&host) == 0).then_some(())).await;
    let turn = plane.turn(7, 1, 70, "Hello\ntools");
    assert_eq!(plane.end_of(turn).await.outcome, TurnOutcome::Done);
    let said = plane.lock().texts(turn).concat();
    assert!(said.contains("turn 2 of this session") && said.contains("ask_person"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_unused_sessions_the_oldest_are_closed() {
    let plane = Plane::start().await;
    let host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    let turns: Vec<i64> = (70..90).map(|conversation| plane.turn(7, 1, conversation, "tools")).collect();
    for turn in turns {
        plane.end_of(turn).await;
    }
    plane.wait("some sessions are closed", |_| (relays(&host) == 16).then_some(())).await;
    assert_eq!(plane.say(7, 1, 70, "Hello").await.outcome, TurnOutcome::Done);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_kept_in_the_folder_or_in_the_log() {
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    let secret = |name: &str| Variable { name: name.to_owned(), value: format!("CANARY-{name}").into() };
    plane.set(|state| {
        let plan = state.plans.entry(7).or_default();
        plan.environment = vec![secret("TOKEN")];
        let (provider, base_url) = ("openai".to_owned(), None);
        plan.model_access = Some(ModelAccess {
            credential_id: None,
            provider,
            base_url,
            key: "CANARY-key".to_owned().into(),
        });
        let transport = McpTransport::Stdio {
            command: "false".to_owned(),
            args: Vec::new(),
            environment: vec![secret("MCP")],
        };
        plan.mcp_servers = vec![McpServer {
            id: 5,
            name: "broken".to_owned(),
            transport,
            reads_workspace: false,
            credential_ids: Vec::new(),
            tools: None,
        }];
    });
    plane.launch(7, 1).await;
    let turn = plane.turn(7, 1, 70, "env TOKEN");
    plane.end_of(turn).await;
    assert_eq!(plane.lock().texts(turn), ["TOKEN is set: 12 bytes."]);
    host.kill();
    host.run();
    plane.say(7, 1, 70, "Hello").await;
    assert!(plane.lock().asked_plans >= 2, "secrets are asked for again");
    let found =
        std::process::Command::new("grep").args(["-rl", "CANARY-"]).arg(host.path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    assert!(!host.log().contains("CANARY-"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_people_are_in_the_agents_home() {
    let plane = Plane::start().await;
    let host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    let turn = plane.plan_turn(70, "Look");
    let file = Part::File {
        filename: "../../notes.txt".to_owned(),
        mime_type: "text/plain".to_owned(),
        size_bytes: 3,
        base64: Some("YSxi".to_owned()),
    };
    plane.set(|state| state.turns.get_mut(&turn).unwrap().prompt.push(file));
    plane.order(7, 1, muster_protocol::Command::Turn { turn_id: turn });
    assert_eq!(plane.end_of(turn).await.outcome, TurnOutcome::Done);
    let inbox = host.home(7).join(format!("inbox/{turn}"));
    let files: Vec<_> = std::fs::read_dir(inbox).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    assert_eq!(std::fs::read_to_string(&files[0]).unwrap(), "a,b");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversations_are_answered_at_the_same_time() {
    let plane = Plane::start().await;
    let _host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    let slow = plane.turn(7, 1, 70, "hang");
    let next = plane.turn(7, 1, 70, "Later");
    assert_eq!(plane.say(7, 1, 71, "Hello").await.outcome, TurnOutcome::Done);
    assert!(plane.lock().end_of(slow).is_none() && plane.lock().end_of(next).is_none());
    plane.order(7, 1, muster_protocol::Command::Cancel { turn_id: slow });
    assert_eq!(plane.end_of(slow).await.outcome, TurnOutcome::Cancelled);
    assert_eq!(plane.end_of(next).await.outcome, TurnOutcome::Done);
    plane.wait("the load is reported", |state| state.loads.first().map(drop)).await;
    plane.lock().check();
}
