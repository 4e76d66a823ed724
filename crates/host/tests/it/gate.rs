//! The complete gate: an agent in a sandbox, its model and MCP servers outside, and a key that never enters.

use std::{
    fs,
    io::{Read, Seek, SeekFrom},
    path::Path,
    sync::{Arc, Mutex},
};

use muster_protocol::{
    Command, HostEvent,
    event::{McpReport, McpState, TurnOutcome},
    plan::{
        Decision, Judgement, LaunchPlan, McpServer, McpTransport, ModelAccess, PlanResponse, Skill, Variable,
    },
    spending::{Lease, ModelCall},
};
use muster_shim::isolate::{Bubblewrap, isolation};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::watch,
};

use crate::support::{Host, Plane, State, within};

const KEY: &str = "CANARY-1f6b0c";

/// Options of a sandboxed host. `None` without a working sandbox.
fn options() -> Option<[&'static str; 4]> {
    if !matches!(isolation().bubblewrap, Bubblewrap::Works(_)) {
        assert!(std::env::var_os("CI").is_none(), "bubblewrap is missing");
        eprintln!("skipped: no bubblewrap");
        return None;
    }
    Some(["--isolation", "bubblewrap", "--allow-net", "127.0.0.1/32"])
}

/// A model with OpenAI's interface: answers "fine", and records the request heads.
async fn model() -> (u16, Arc<Mutex<Vec<String>>>) {
    model_that_may_end(watch::channel(usize::MAX).1).await
}

/// The same, with a limit on completed answers.
#[expect(clippy::disallowed_methods, reason = "what is spawned ends with the test")]
async fn model_that_may_end(may_end: watch::Receiver<usize>) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&heads);
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let (kept, mut may_end) = (Arc::clone(&kept), may_end.clone());
            tokio::spawn(async move {
                let mut read = Vec::new();
                let number = loop {
                    let mut piece = [0; 4096];
                    let count = client.read(&mut piece).await.unwrap_or(0);
                    read.extend_from_slice(&piece[..count]);
                    let text = String::from_utf8_lossy(&read).into_owned();
                    let Some((head, body)) = text.split_once("\r\n\r\n") else {
                        if count == 0 {
                            return;
                        }
                        continue;
                    };
                    let length = head.lines().find_map(|line| {
                        let (name, value) = line.split_once(':')?;
                        name.eq_ignore_ascii_case("content-length")
                            .then(|| value.trim().parse::<usize>().ok())?
                    });
                    if body.len() >= length.unwrap_or(0) {
                        let mut kept = kept.lock().unwrap();
                        kept.push(head.to_owned());
                        break kept.len();
                    }
                };
                let begins = "data: {\"choices\":[{\"delta\":{\"content\":\"fine\"}}]}\n\n";
                let ends = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":2}}\n\n\
                    data: [DONE]\n\n";
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{begins}",
                    begins.len() + ends.len()
                );
                let _ = client.write_all(answer.as_bytes()).await;
                may_end.wait_for(|answers| *answers >= number).await.unwrap();
                let _ = client.write_all(ends.as_bytes()).await;
            });
        }
    });
    (port, heads)
}

fn with_model(plane: &Plane, port: u16, is_metered: bool) {
    plane.set(|state| {
        let plan = state.plans.entry(7).or_default();
        plan.model = Some("large".to_owned());
        plan.metered = is_metered;
        plan.model_access = Some(ModelAccess {
            credential_id: None,
            provider: "openai".to_owned(),
            base_url: Some(format!("http://127.0.0.1:{port}/v1")),
            key: KEY.to_owned().into(),
        });
    });
}

/// The processes of this host's agents: all with the agent's home as their own.
fn processes(home: &Path) -> Vec<i32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_here = |process: &i32| {
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == format!("HOME={}", home.display()).as_bytes())
    };
    all.filter(is_here).collect()
}

/// Whether a process has these bytes anywhere in its memory.
fn remembers(process: i32, what: &[u8]) -> bool {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let Ok(mut memory) = fs::File::open(format!("/proc/{process}/mem")) else { return false };
    let ranges = maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|may| may.starts_with("rw")));
    for range in ranges.filter_map(|line| line.split(' ').next()?.split_once('-')) {
        let (from, to) =
            (u64::from_str_radix(range.0, 16).unwrap(), u64::from_str_radix(range.1, 16).unwrap());
        let mut bytes = Vec::new();
        if memory.seek(SeekFrom::Start(from)).is_ok() {
            let _ = Read::by_ref(&mut memory).take(to - from).read_to_end(&mut bytes);
        }
        if bytes.windows(what.len()).any(|window| window == what) {
            return true;
        }
    }
    false
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_is_used_and_never_comes_in() {
    let Some(options) = options() else { return };
    let (plane, (port, heads)) = (Plane::start().await, model().await);
    let mut host = Host::start(&plane, &options);
    with_model(&plane, port, false);
    plane.launch(7, 1).await;
    let turn = plane.turn(7, 1, 70, "Hello");
    let end = plane.end_of(turn).await;
    assert_eq!(
        (end.outcome, plane.lock().texts(turn)),
        (TurnOutcome::Done, vec!["fine".to_owned()]),
        "{end:?}"
    );
    assert!(
        heads.lock().unwrap()[0]
            .to_lowercase()
            .contains(&format!("authorization: bearer {}", KEY.to_lowercase()))
    );
    let call = plane.wait("the call is counted", |state| counted(state).first().cloned()).await;
    assert_eq!((call.usage.input, call.usage.output, call.status), (Some(11), Some(2), Some(200)));
    // After a restart of the host, the gate gets its rules again.
    host.kill();
    host.run();
    assert_eq!(plane.say(7, 1, 70, "Again").await.outcome, TurnOutcome::Done);
    let processes = processes(&host.home(7));
    for process in &processes {
        assert!(!remembers(*process, KEY.as_bytes()), "in the memory of {process}");
    }
    // Some may have ended meanwhile, such as relays of reopened sessions.
    let searched = processes.iter().filter(|process| remembers(**process, b"HTTPS_PROXY=")).count();
    assert!(searched >= 2, "the search finds what is there: {searched} of {processes:?}");
    let found = std::process::Command::new("grep").args(["-rl", KEY]).arg(host.path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    assert!(!host.log().contains(KEY));
}

/// The counted calls.
fn counted(state: &State) -> Vec<ModelCall> {
    let calls = state.events_of(7).filter_map(|what| match what {
        HostEvent::ModelCalled(call) => Some(call.clone()),
        _ => None,
    });
    calls.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_a_cancelled_turn_is_not_counted_for_the_next_one() {
    let Some(options) = options() else { return };
    let (may_end, answers) = watch::channel(0);
    let (plane, (port, heads)) = (Plane::start().await, model_that_may_end(answers).await);
    let _host = Host::start(&plane, &options);
    with_model(&plane, port, false);
    plane.launch(7, 1).await;
    let first = plane.turn(7, 1, 70, "Hello");
    plane.wait("it hears the model", |state| state.deltas.first().map(drop)).await;
    plane.order(7, 1, Command::Cancel { turn_id: first });
    assert_eq!(plane.end_of(first).await.outcome, TurnOutcome::Cancelled);
    let second = plane.turn(7, 1, 70, "Again");
    plane.wait("it asks again", |_| (heads.lock().unwrap().len() == 2).then_some(())).await;
    may_end.send_replace(1);
    let late = plane.wait("the first call is counted", |state| counted(state).first().cloned()).await;
    assert_eq!((late.turn_id, late.usage.output), (None, Some(2)), "it was heard out");
    may_end.send_replace(2);
    let own = plane.wait("the second call is counted", |state| counted(state).get(1).cloned()).await;
    assert_eq!((own.turn_id, plane.end_of(second).await.outcome), (Some(second), TurnOutcome::Done));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_closes_the_gate_and_the_next_plan_opens_it() {
    let Some(options) = options() else { return };
    let (plane, (port, heads)) = (Plane::start().await, model().await);
    let host = Host::start(&plane, &options);
    with_model(&plane, port, false);
    let skill =
        Skill { name: "tea".to_owned(), description: None, content: "Make it.".to_owned(), version: 1 };
    plane.set(|state| state.plans.entry(7).or_default().skills.push(skill));
    plane.launch(7, 1).await;
    let asked = || heads.lock().unwrap().len();
    assert_eq!(plane.say(7, 1, 70, "Hello").await.outcome, TurnOutcome::Done);
    let sync = async |times: usize| {
        plane.order(7, 1, Command::Sync);
        let is_synced = |state: &State| {
            let synced = state.events_of(7).filter(|what| **what == HostEvent::Synced);
            (synced.count() == times).then_some(())
        };
        plane.wait("it is synced", is_synced).await;
    };
    let (whole, before) = (plane.lock().plans[&7].clone(), asked());
    let stop = LaunchPlan { stopped: true, ..LaunchPlan::default() };
    plane.set(|state| _ = state.plans.insert(7, stop));
    sync(1).await;
    assert_ne!(plane.say(7, 1, 70, "Hello").await.outcome, TurnOutcome::Done);
    assert_eq!(asked(), before, "nothing gets out");
    assert!(host.home(7).join("skills/tea/SKILL.md").exists(), "its skills stay");
    plane.set(|state| _ = state.plans.insert(7, whole));
    sync(2).await;
    assert_eq!(plane.say(7, 1, 70, "Hello").await.outcome, TurnOutcome::Done);
    assert!(asked() > before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_lease_nothing_is_spent() {
    let Some(options) = options() else { return };
    let (plane, (port, heads)) = (Plane::start().await, model().await);
    let _host = Host::start(&plane, &options);
    with_model(&plane, port, true);
    plane.launch(7, 1).await;
    let end = plane.say(7, 1, 70, "Hello").await;
    assert_eq!(end.outcome, TurnOutcome::Failed);
    assert!(end.error.unwrap().contains("The budget of this month is spent."));
    assert!(heads.lock().unwrap().is_empty());
    let lease = Lease { id: 4, cost_micro: None, tokens: Some(1_000_000), until: i64::MAX };
    plane.set(|state| state.leases.push(PlanResponse::Lease(lease)));
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    assert_eq!(plane.say(7, 1, 70, "Hello").await.outcome, TurnOutcome::Done);
    plane.order(7, 1, Command::Stop);
    let returned = plane.wait("the lease is given back", |state| {
        state.events_of(7).find(|what| **what == HostEvent::LeaseReturned { lease_id: 4 }).map(drop)
    });
    returned.await;
}

/// A shell MCP server, with one tool that returns its secret's length.
const SERVER: &str = r#"while read -r line; do
id=$(printf %s "$line" | sed -n 's/.*"id":\([^,}]*\).*/\1/p')
case "$line" in
*'"initialize"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}";;
*'"tools/list"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"count\",\"inputSchema\":{\"type\":\"object\"}}]}}";;
*'"tools/call"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"it has ${#SECRET} letters\"}]}}";;
esac
done"#;

/// The output of a turn.
async fn said(plane: &Plane, text: &str) -> String {
    let turn = plane.turn(7, 1, 70, text);
    plane.end_of(turn).await;
    let state = plane.lock();
    let all = state
        .events
        .iter()
        .filter(|event| format!("{:?}", event.what).contains(&format!("turn_id: Some({turn})")));
    all.map(|event| format!("{:?}", event.what)).collect::<String>()
}

fn shell(script: &str, environment: Vec<Variable>) -> McpTransport {
    McpTransport::Stdio {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned()],
        environment,
    }
}

fn server(id: i64, name: &str, transport: McpTransport) -> McpServer {
    McpServer {
        id,
        name: name.to_owned(),
        transport,
        reads_workspace: false,
        credential_ids: Vec::new(),
        tools: None,
    }
}

/// Waits for a matching report of a server.
async fn is_reported(plane: &Plane, server_id: i64, is_it: impl Fn(&McpReport) -> bool) -> McpReport {
    let newest = |state: &State| {
        let reports = state.events_of(7).filter_map(|what| match what {
            HostEvent::McpServer(report) if report.server_id == server_id => Some(report.clone()),
            _ => None,
        });
        reports.last().filter(&is_it)
    };
    plane.wait("the server's state is reported", newest).await
}

async fn synced(plane: &Plane) {
    let count = |state: &State| state.events_of(7).filter(|what| **what == HostEvent::Synced).count();
    let before = count(&plane.lock());
    plane.order(7, 1, Command::Sync);
    plane.wait("it is synced", |state| (count(state) > before).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_in_the_sandbox_is_judged_and_shown() {
    let Some(options) = options() else { return };
    let plane = Plane::start().await;
    let _host = Host::start(&plane, &options);
    let absent = McpTransport::Stdio {
        command: "/srv/no-such-program".to_owned(),
        args: Vec::new(),
        environment: Vec::new(),
    };
    let loud = shell("echo the key is $TOKEN >&2; exit 3", Vec::new());
    plane.set(|state| {
        let plan = state.plans.entry(7).or_default();
        plan.environment = vec![Variable { name: "TOKEN".to_owned(), value: KEY.to_owned().into() }];
        plan.mcp_servers = vec![
            server(5, "counter", shell(SERVER, vec![])),
            server(6, "absent", absent),
            server(8, "loud", loud),
        ];
    });
    plane.launch(7, 1).await;
    let call = "call counter__count {\"a\": 1}";
    let refused = said(&plane, call).await;
    assert!(refused.contains("The rules say no."), "{refused}");
    plane.set(|state| _ = state.judgements.insert("counter.count".to_owned(), Judgement::Allowed));
    let made = said(&plane, call).await;
    assert!(made.contains("it has 0 letters"), "{made}");
    let works =
        is_reported(&plane, 5, |report| report.state == McpState::Running && !report.tools.is_empty()).await;
    assert_eq!((works.tools, works.error), (vec!["count".to_owned()], None));
    plane.order(7, 1, Command::TestMcp { server_id: 5 });
    let result = |state: &State| {
        state.events_of(7).find_map(|what| match what {
            HostEvent::McpTested(test) => Some(test.clone()),
            _ => None,
        })
    };
    let tested = plane.wait("its connection is tested", result).await;
    assert_eq!((tested.program.as_deref(), tested.error), (Some("s 1"), None));
    let absent = is_reported(&plane, 6, |report| report.state == McpState::Failed).await;
    assert!(absent.stderr.as_deref().unwrap_or_default().contains("/srv/no-such-program"), "{absent:?}");
    let loud = is_reported(&plane, 8, |report| report.state == McpState::Failed).await;
    let (error, stderr) = (loud.error.clone().unwrap(), loud.stderr.clone().unwrap_or_default());
    assert!(error.contains("code 3") && stderr.contains("the key is"), "{loud:?}");
    assert!(!format!("{loud:?}").contains(KEY), "{loud:?}");
    plane.set(|state| state.plans.entry(7).or_default().disabled_tool_groups = vec!["Counter".to_owned()]);
    synced(&plane).await;
    assert!(!said(&plane, call).await.contains("letters"));
    plane.set(|state| {
        let plan = state.plans.entry(7).or_default();
        (plan.disabled_tool_groups, plan.mcp_servers) = (Vec::new(), Vec::new());
    });
    synced(&plane).await;
    assert!(!said(&plane, call).await.contains("letters"));
}

/// A server in a folder of its own: prints the content of the folder and of the agent's home.
const INSTALLED: &str = r#"#!/bin/sh
word=$(cat "$(dirname "$0")/word") || exit 1
note=$(cat "$MUSTER_WORKSPACE/note" 2>/dev/null)
touch "$MUSTER_WORKSPACE/x" 2>/dev/null && note="$note, which it can change"
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_sees_a_listed_folder_and_the_home_if_it_may() {
    let Some(options) = options() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (program, list) = (folder.path().join("tools/run"), folder.path().join("programs.toml"));
    fs::create_dir(folder.path().join("tools")).unwrap();
    fs::write(folder.path().join("tools/word"), "beans").unwrap();
    let script =
        format!("{INSTALLED}{}", SERVER.replace("it has ${#SECRET} letters", "it has $word, $note."));
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(&list, "").unwrap();
    let plane = Plane::start().await;
    let options: Vec<&str> = options.into_iter().chain(["--programs", list.to_str().unwrap()]).collect();
    let host = Host::start(&plane, &options);
    let installed = |environment| McpTransport::Stdio {
        command: program.to_str().unwrap().to_owned(),
        args: Vec::new(),
        environment,
    };
    let secret = vec![Variable { name: "SECRET".to_owned(), value: KEY.to_owned().into() }];
    plane.set(|state| {
        state.judgements.insert("counter.count".to_owned(), Judgement::Allowed);
        let own = McpServer { reads_workspace: true, ..server(5, "counter", installed(secret.clone())) };
        state.plans.entry(7).or_default().mcp_servers = vec![own];
    });
    plane.launch(7, 1).await;
    fs::write(host.home(7).join("note"), "a note").unwrap();
    let call = "call counter__count {\"a\": 1}";
    assert!(!said(&plane, call).await.contains("beans"), "its folder is not listed");
    let refused = is_reported(&plane, 5, |report| report.state == McpState::Failed).await;
    let reason = refused.error.unwrap();
    assert!(reason.contains("shows no") && reason.contains(list.to_str().unwrap()), "{reason}");
    let listed = json!({ "mcp": { (program.to_str().unwrap()): { "readable": [program.parent()] } } });
    fs::write(&list, toml::to_string(&listed).unwrap()).unwrap();
    synced(&plane).await;
    let found = said(&plane, call).await;
    assert!(found.contains("it has beans, a note."), "{found}");
    // The host's owner decides what such a program may read. A tenant's variable can't make an interpreter read it.
    plane.set(|state| {
        let loading = Variable { name: "PERL5OPT".to_owned(), value: "-Mx".to_owned().into() };
        let own = server(7, "counter", installed(vec![loading]));
        state.plans.entry(7).or_default().mcp_servers = vec![own];
    });
    synced(&plane).await;
    assert!(!said(&plane, call).await.contains("beans"));
    let refused = is_reported(&plane, 7, |report| report.state == McpState::Failed).await;
    assert!(refused.error.as_deref().unwrap_or_default().contains("may not set PERL5OPT"), "{refused:?}");
    // Without secrets it runs in the agent's sandbox, which shows the folder from the next launch on.
    plane.set(|state| {
        state.plans.entry(7).or_default().mcp_servers = vec![server(6, "counter", installed(Vec::new()))];
    });
    synced(&plane).await;
    let lacks = |state: &State| {
        let lacks = state.events_of(7).find(|what| matches!(what, HostEvent::Lacks { .. }));
        lacks.map(|lacks| format!("{lacks:?}"))
    };
    let lacks = plane.wait("the sandbox lacks it", lacks).await;
    assert!(lacks.contains("does not show the folder"), "{lacks}");
    assert!(!said(&plane, call).await.contains("beans"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_beside_the_agent_have_nothing_of_each_other() {
    let Some(options) = options() else { return };
    let plane = Plane::start().await;
    let host = Host::start(&plane, &options);
    let look = "it sees $(cat /proc/self/mountinfo | cut -d' ' -f5 | while read -r path; do \
                find \"$path\" -maxdepth 1 -type s 2>/dev/null; done | sort -u | tr '\\n' ' ')and has $(ls ~)$(touch ~/$SECRET)";
    let script = SERVER.replace("it has ${#SECRET} letters", look);
    // Names with a common prefix, in letters whose ASCII form is long.
    let name = "данные".repeat(20);
    plane.set(|state| {
        let secret =
            |value: &str| vec![Variable { name: "SECRET".to_owned(), value: value.to_owned().into() }];
        let named = |id, name: &str, value| server(id, name, shell(&script, secret(value)));
        state.plans.entry(7).or_default().mcp_servers =
            vec![named(5, &name, "one"), named(6, &format!("{name}2"), "two"), named(8, "counter", "three")];
        state.judgements.insert("counter.count".to_owned(), Judgement::Allowed);
    });
    plane.launch(7, 1).await;
    let call = "call counter__count {\"a\": 1}";
    let found = said(&plane, call).await;
    let own = host.launch(7, 1).join("servers/gate");
    assert!(found.contains(&format!("it sees {} and has ", own.display())), "{found}");
    // Each session has started each server, with a home for it.
    let homes = host.path().join("agents/7/servers");
    let mut names: Vec<_> = fs::read_dir(&homes).unwrap().map(|home| home.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["5", "6", "8"]);
    // A new server with an old one's name starts with an empty home.
    plane.set(|state| {
        let secret = vec![Variable { name: "SECRET".to_owned(), value: "four".to_owned().into() }];
        state.plans.entry(7).or_default().mcp_servers = vec![server(9, "counter", shell(&script, secret))];
    });
    assert!(homes.join("8/three").exists());
    synced(&plane).await;
    let found = said(&plane, call).await;
    assert!(found.contains("and has ") && !found.contains("three"), "{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_servers_secret_stays_outside_and_its_tools_are_judged() {
    let Some(options) = options() else { return };
    let plane = Plane::start().await;
    let options: Vec<&str> = options.into_iter().chain(["--ask-seconds", "2"]).collect();
    let host = Host::start(&plane, &options);
    plane.set(|state| {
        let secret = vec![Variable { name: "SECRET".to_owned(), value: KEY.to_owned().into() }];
        state.plans.entry(7).or_default().mcp_servers = vec![server(5, "counter", shell(SERVER, secret))];
    });
    plane.launch(7, 1).await;
    let said = async |text: &str| said(&plane, text).await;
    let refused = said("call counter__count {\"a\": 1}").await;
    assert!(refused.contains("The rules say no."), "{refused}");
    let judge =
        |judgement| plane.set(|state| _ = state.judgements.insert("counter.count".to_owned(), judgement));
    judge(Judgement::Allowed);
    let made = said("call counter__count {\"a\": 1}").await;
    assert!(made.contains(&format!("it has {} letters", KEY.len())), "{made}");
    // No answer in time. After a late approval the same call passes.
    judge(Judgement::Asked);
    let asked = said("call counter__count {\"a\": 1}").await;
    assert!(asked.contains("End your turn now"), "{asked}");
    let request = plane.lock().asked(70).remove(0).request;
    let approval = plane.answer(7, 1, &request, Decision::Approved { comment: None });
    let told = |state: &State| {
        state.events_of(7).find(|what| **what == HostEvent::NotWaiting { approval_id: approval }).map(drop)
    };
    plane.wait("the answer comes with a turn", told).await;
    let made = said("call counter__count {\"a\": 1}").await;
    assert!(made.contains("letters"), "{made}");
    let again = said("call counter__count {\"a\": 1}").await;
    assert!(again.contains("End your turn now"), "once: {again}");
    for process in processes(&host.home(7)) {
        assert!(!remembers(process, KEY.as_bytes()), "in the memory of {process}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_with_secrets_has_the_limits_of_its_agent() {
    let Some(options) = options() else { return };
    let plane = Plane::start().await;
    let _host = Host::start(&plane, &options);
    plane.set(|state| {
        state.judgements.insert("counter.count".to_owned(), Judgement::Allowed);
        let secret = vec![Variable { name: "SECRET".to_owned(), value: KEY.to_owned().into() }];
        let script = SERVER
            .replace("it has ${#SECRET} letters", "it may have $(ulimit -d) KiB and $(ulimit -n) files");
        let plan = state.plans.entry(7).or_default();
        (plan.limits.memory_mb, plan.mcp_servers) =
            (Some(96), vec![server(5, "counter", shell(&script, secret))]);
    });
    plane.launch(7, 1).await;
    let made = said(&plane, "call counter__count {\"a\": 1}").await;
    assert!(made.contains("it may have 98304 KiB and 8192 files"), "{made}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_whose_long_names_differ_at_their_ends_share_no_home() {
    let Some(options) = options() else { return };
    let plane = Plane::start().await;
    let _host = Host::start(&plane, &options);
    let tools = [(5, "first"), (6, "second")];
    let name = |tool: &str| format!("{}{tool}", "й".repeat(70));
    plane.set(|state| {
        for (id, tool) in tools {
            state.judgements.insert(format!("{}.{tool}", name(tool)), Judgement::Allowed);
            let secret = vec![Variable { name: "SECRET".to_owned(), value: KEY.to_owned().into() }];
            let script = SERVER.replace("it has ${#SECRET} letters", "it finds [$(ls $HOME | tr '\\n' ' ')]");
            let script = script
                .replace("\\\"count\\\"", &format!("\\\"{tool}\\\""))
                .replace("while", &format!("touch $HOME/{tool}\nwhile"));
            let server = server(id, &name(tool), shell(&script, secret));
            state.plans.entry(7).or_default().mcp_servers.push(server);
        }
    });
    plane.launch(7, 1).await;
    for (_, tool) in tools {
        let made = said(&plane, &format!("call {tool} {{\"a\": 1}}")).await;
        assert!(made.contains(&format!("it finds [{tool} ]")), "{made}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs bubblewrap"]
async fn bwrap_agents_start_in_a_folder_behind_a_link() {
    let (plane, mut host) = (Plane::start().await, Host::empty());
    let disk = host.path().with_file_name("disk");
    fs::create_dir(&disk).unwrap();
    std::os::unix::fs::symlink(&disk, host.path()).unwrap();
    host.options = ["--isolation", "bubblewrap", "--grace-ms", "500"].map(str::to_owned).to_vec();
    let token = plane.token();
    let url = plane.lock().url.clone();
    let joined = within(|| host.join(&url, &token));
    assert!(joined.status.success(), "{joined:?}");
    let said = within(|| host.command("doctor").output().unwrap());
    assert!(String::from_utf8_lossy(&said.stdout).contains("bubblewrap works"), "{said:?}");
    host.run();
    plane.launch(7, 1).await;
    assert_eq!(plane.say(7, 1, 70, "Hello").await.outcome, TurnOutcome::Done);
}
