//! Tests of faults: the agent's deliberate ones, and those of its clients.

use serde_json::json;

use crate::client::{Agent, refusal};

#[tokio::test]
async fn a_turn_that_hangs_ends_when_it_is_cancelled() {
    let mut agent = Agent::start().await;
    let session = agent.session().await;
    let id = agent.say(&session, "hang").await;
    agent.cancel(&session).await;
    assert_eq!(agent.end(&session, id).await.reason(), "cancelled");
    let id = agent.say(&session, "slowly 1000 60000").await;
    agent.hears("1 ").await;
    agent.cancel(&session).await;
    let turn = agent.end(&session, id).await;
    assert_eq!((turn.reason(), turn.said().as_str()), ("cancelled", "1 "));
}

#[tokio::test]
async fn a_hard_hang_ignores_a_cancel() {
    let mut agent = Agent::start().await;
    let (stuck, other) = (agent.session().await, agent.session().await);
    agent.say(&stuck, "hang hard").await;
    agent.cancel(&stuck).await;
    // The cancel is processed before the next answer.
    assert_eq!(agent.prompt(&other, "Hello").await.reason(), "end_turn");
    let refused = agent.refused("session/prompt", json!({ "sessionId": stuck, "prompt": [] })).await;
    assert!(refused.1.contains("running"), "{refused:?}");
}

#[tokio::test]
async fn a_cancelled_turn_withdraws_its_permission_request() {
    let mut agent = Agent::start().await;
    let session = agent.session().await;
    let id = agent.say(&session, "do execute Run").await;
    let asked = agent.asked("session/request_permission").await;
    agent.cancel(&session).await;
    agent.reply(&asked, json!({ "outcome": { "outcome": "cancelled" } })).await;
    let turn = agent.end(&session, id).await;
    assert_eq!((turn.reason(), turn.calls()[0].1.as_str()), ("cancelled", "failed"));
    // The client can also answer with "cancelled".
    let id = agent.say(&session, "do execute Run\nnever said").await;
    let asked = agent.asked("session/request_permission").await;
    agent.reply(&asked, json!({ "outcome": { "outcome": "cancelled" } })).await;
    let turn = agent.end(&session, id).await;
    assert_eq!((turn.reason(), turn.messages().len()), ("cancelled", 0));
}

#[tokio::test]
async fn a_flood_waits_for_its_reader() {
    let mut agent = Agent::start().await;
    let session = agent.session().await;
    let id = agent.say(&session, "flood 2000").await;
    // The pipe is full and unread, and the agent must not buffer the other 32 MB.
    agent.hears("agent_message_chunk").await;
    let status = std::fs::read_to_string(format!("/proc/{}/status", agent.process.id().unwrap())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim();
    let peak: u64 = peak.strip_suffix(" kB").unwrap().parse().unwrap();
    assert!(peak < 40_000, "{peak} kB at its peak");
    let turn = agent.end(&session, id).await;
    assert_eq!(turn.said().len(), 2000 * 16 * 1024);
    assert!(agent.prompt(&session, "Still there?").await.said().contains("turn 2"));
}

#[tokio::test]
async fn garbage_and_long_lines_are_printed() {
    let mut agent = Agent::start().await;
    let session = agent.session().await;
    let turn = agent.prompt(&session, "garbage\nlongline 3000000").await;
    assert_eq!(turn.messages().len(), 2);
    assert_eq!(agent.garbage.len(), 6);
    assert_eq!(agent.garbage.last().unwrap().len(), 3_000_000);
}

#[tokio::test]
async fn exit_and_crash_end_the_process() {
    let mut agent = Agent::start().await;
    let session = agent.session().await;
    agent.say(&session, "Bye\nexit 3").await;
    agent.hears("You said: Bye").await;
    assert_eq!(agent.ended().await, 3);
    let mut agent = Agent::start().await;
    let session = agent.session().await;
    agent.say(&session, "Bye\ncrash").await;
    agent.hears("You said: Bye").await;
    assert_eq!(agent.ended().await, -6);
}

#[tokio::test]
async fn it_fills_its_disk() {
    let mut agent = Agent::start().await;
    let session = agent.session().await;
    assert_eq!(agent.prompt(&session, "fill 3").await.said(), "I have written 3 MiB into the file fill.");
    assert_eq!(agent.home.path().join("fill").metadata().unwrap().len(), 3 * 1024 * 1024);
    std::fs::remove_file(agent.home.path().join("fill")).unwrap();
    std::fs::create_dir(agent.home.path().join("fill")).unwrap();
    assert!(agent.prompt(&session, "fill 3").await.said().starts_with("I could not write 3 MiB: "));
}

#[tokio::test]
async fn invalid_input_lines_are_skipped() {
    let mut agent = Agent::start().await;
    agent.write(&"x".repeat(9 * 1024 * 1024)).await;
    agent.write("{\"jsonrpc\": \"2.0\", \"method\"").await;
    assert_eq!(
        refusal(&agent.answer(0).await).0,
        -32700,
        "it answers a line that is not a message, and drops one that is too long"
    );
    let session = agent.session().await;
    assert_eq!(agent.prompt(&session, "Hello").await.reason(), "end_turn");
}

#[tokio::test]
async fn a_session_whose_file_cannot_be_written_is_refused() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join(".muster-agent"), "in the way").unwrap();
    let mut agent = Agent::spawn(home, &[]);
    agent.call("initialize", json!({ "protocolVersion": 1 })).await;
    let refused = agent.refused("session/new", json!({ "cwd": "/", "mcpServers": [] })).await;
    assert!(refused.0 == -32603 && refused.1.contains("can't be stored"), "{refused:?}");
}

#[tokio::test]
async fn start_errors_are_reported() {
    let program = env!("CARGO_BIN_EXE_muster-agent");
    let run = async |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = tokio::process::Command::new(program);
        let output = command.args(args).env_clear().envs(variables.iter().copied()).output().await.unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = run(&[], &[]).await;
    assert!(code == Some(2) && said.contains("HOME is not set"), "{code:?} {said}");
    let model = [("HOME", "/tmp"), ("MUSTER_AGENT_MODEL", "m"), ("MUSTER_AGENT_PROVIDER", "acme")];
    let (code, said) = run(&[], &model).await;
    assert!(code == Some(2) && said.contains("set it to openai or anthropic"), "{code:?} {said}");
    let (code, said) = run(&["serve"], &[("HOME", "/tmp")]).await;
    assert!(code == Some(2) && said.contains("unknown argument serve"), "{code:?} {said}");
    assert_eq!(run(&["--help"], &[]).await.0, Some(0));
}
