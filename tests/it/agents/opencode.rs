//! An unchanged third-party coding agent on a host: it answers, asks before it runs a command, runs the command when a
//! person allows it, resumes its session after it was killed, and does one whole job.

use std::{fs, path::Path, time::Duration};

use serde_json::{Value, json};

use crate::{
    agents::running::House,
    harness::{
        Crew, GitServer,
        model::{Act, Asked, Model, Seen},
    },
};

const PROGRAM: &str = "tests/peers/node_modules/opencode-linux-x64/bin/opencode";
/// The secrets that the model and the git server require. The host adds them; the agent never holds them.
const KEY: &str = "sk-canary-model-3b1f";
const PASSWORD: &str = "canary-git-9c2e";
/// The secrets known only to the host.
pub const CANARIES: [&str; 2] = [KEY, PASSWORD];
/// The placeholder that the agent holds instead.
pub const PLACEHOLDER: &str = "sk-muster-placeholder";

/// A host that lists OpenCode, and an agent of its profile whose model this is.
async fn coder(house: &House, model: &Model, folder: &Path) -> Crew {
    let program = std::path::absolute(PROGRAM).unwrap();
    let list = folder.join("programs.toml");
    let listed = json!({ "opencode": { "command": program, "readable": [program] } });
    fs::write(&list, toml::to_string(&listed).unwrap()).unwrap();
    let image = image(house, "opencode").await;
    let crew = house.crew_with("coding", image, &[("MUSTER_HOST_PROGRAMS", list.to_str().unwrap())]).await;
    thinks_with(house, &crew, model).await;
    crew
}

/// An image of OpenCode's profile.
pub async fn image(house: &House, reference: &str) -> Option<i64> {
    let input =
        json!({ "name": "OpenCode", "reference": reference, "profile": "opencode", "defaultModel": "here" });
    house.image(input).await
}

/// The agent's model is this one, and it asks before it pushes.
pub async fn thinks_with(house: &House, crew: &Crew, model: &Model) {
    let edit = json!({
        "credentialChoice": "OWN", "modelCredential": KEY, "modelCredentialProvider": "openai",
        "modelCredentialBaseUrl": format!("{}/v1", model.url), "approvalAskThreshold": 55,
    });
    house.edits(crew.agent, edit).await;
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[tokio::test(flavor = "multi_thread")]
async fn opencode_answers_asks_and_goes_on() {
    let (house, model) = (House::open().await, Model::start().await);
    let folder = tempfile::tempdir().unwrap();
    let crew = coder(&house, &model, folder.path()).await;
    house.stays_down(crew.agent).await;
    house.starts(&crew).await;

    let conversation = house.says(&crew, "Hello there").await;
    house.hears(&crew, conversation, "Hello there").await;
    assert_eq!(house.rests(conversation).await, ["DONE"]);

    let push = r#"USE bash {"command":"echo out-of-the-shell # git push","description":"Says it"}"#;
    house.adds(conversation, push).await;
    let (approval, kind) = house.asked(&crew, conversation).await;
    assert_eq!(kind, "ACTION");
    house.answers(approval, json!({ "options": ["approve"] })).await;
    house.hears(&crew, conversation, "out-of-the-shell").await;
    assert_eq!(house.rests(conversation).await, ["DONE", "DONE"]);
    let said = model.asked();
    let is_chat = |asked: &Asked| asked.path == "/v1/chat/completions" && asked.body["stream"] == true;
    assert!(said.iter().any(is_chat));
    assert!(said.iter().all(|asked| asked.headers["authorization"] == format!("Bearer {KEY}")));

    crew.machine.kill_one("shim");
    crew.until(&house.actor, house.tenant.org, "ERROR").await;
    house.starts(&crew).await;
    house.adds(conversation, "Still there?").await;
    house.hears(&crew, conversation, "Still there?").await;
    let last = model.asked().into_iter().rfind(is_chat).unwrap().body.to_string();
    assert!(last.contains("Hello there"), "it goes on with its history");
}

/// Fixes what its test says is wrong: clones, tests, reads, changes, tests again, and pushes a branch once the test passes.
/// What it does next follows from what the last step said.
pub fn fixes(seen: &Seen) -> Act {
    let uses = |tool: &str, input: Value| Act::Use(vec![(tool.to_owned(), input.to_string())]);
    let runs =
        |command: &str| uses("bash", json!({ "command": command, "description": "Does the next step" }));
    let Some(url) = seen.said.lines().find_map(|line| line.strip_prefix("FIX ")) else {
        return Act::Say("A fix".to_owned());
    };
    let file = || {
        let line = seen
            .results
            .iter()
            .find_map(|result| result.lines().find_map(|line| line.strip_prefix("CLONED ")));
        format!("{}/work/greet.sh", line.unwrap_or_default().trim())
    };
    let last = seen.results.last().map(String::as_str).unwrap_or_default();
    match seen.results.len() {
        0 => runs(&format!("git clone --quiet \"{url}\" work && echo \"CLONED $(pwd)\"")),
        1 if last.contains("CLONED /") => runs("cd work && sh test.sh"),
        2 if last.contains("FAIL: the name is missing") => uses("read", json!({ "filePath": file() })),
        3 if last.contains("Hello, world") => {
            uses("edit", json!({ "filePath": file(), "oldString": "Hello, world", "newString": "Hello, $1" }))
        }
        4 => runs("cd work && sh test.sh"),
        5 if last.contains("PASS") => runs(
            "cd work && git switch --quiet --create fix && git -c user.name=Ada -c user.email=ada@example.org \
             commit --quiet --all --message='Greet by name' && git push --quiet origin fix && echo PUSHED",
        ),
        6 if last.contains("PUSHED") => Act::Say("The fix is pushed as a branch.".to_owned()),
        step => Act::Say(format!("Step {step} went wrong: {last}")),
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[tokio::test(flavor = "multi_thread")]
async fn opencode_does_one_whole_job_and_is_asked_once() {
    let house = House::open().await;
    let model = Model::deciding(fixes).await;
    let folder = tempfile::tempdir().unwrap();
    let crew = coder(&house, &model, folder.path()).await;
    let said = does_one_whole_job(&house, &crew).await;
    for canary in CANARIES {
        assert_eq!(
            crew.machine.find(canary),
            Vec::<String>::new(),
            "neither the sandbox nor the host's files have it"
        );
        assert!(!said.contains(canary), "no message contains it");
    }
    assert!(!crew.machine.find(PLACEHOLDER).is_empty(), "who looks, finds");
}

/// Clones from a git server, tests, changes, tests again and pushes a branch, for which it asks, once. Returns what was
/// said.
pub async fn does_one_whole_job(house: &House, crew: &Crew) -> String {
    let test = "[ \"$(sh greet.sh Ada)\" = 'Hello, Ada' ] && echo PASS || echo 'FAIL: the name is missing'\n";
    let files = [("greet.sh", "echo \"Hello, world\"\n"), ("test.sh", test)];
    let git = GitServer::start(&files, PASSWORD).await;
    let address = format!("http://localhost:{}/", git.port);
    may_reach(house, crew, &address, git.port).await;
    house.starts(crew).await;

    let conversation = house.says(crew, &format!("FIX {address}work.git")).await;
    let approval = awaited(house, crew, conversation).await;
    assert!(!git.git(&["branch"]).contains("fix"), "nothing is pushed before a person says so");
    house.answers(approval, json!({ "options": ["approve"] })).await;
    house.hears(crew, conversation, "The fix is pushed as a branch.").await;
    assert_eq!(house.rests(conversation).await, ["DONE"]);
    assert_eq!(git.git(&["show", "fix:greet.sh"]), "echo \"Hello, $1\"\n");
    assert_eq!(git.git(&["show", "main:greet.sh"]), "echo \"Hello, world\"\n");
    let thread = house.thread(crew, conversation).await;
    let asked = format!("/v1/org/{}/approval?only_pending=false&page=1&limit=50", house.tenant.org);
    assert_eq!(house.actor.get(&asked).await.expect(200)["data"].as_array().unwrap().len(), 1, "{thread:#?}");
    format!("{thread:?}")
}

/// The git server's password, which the host adds, and the server on the list of hosts.
async fn may_reach(house: &House, crew: &Crew, address: &str, port: u16) {
    let fields = json!([
        { "label": "user", "type": "text", "value": "x" },
        { "label": "password", "type": "secret", "value": PASSWORD },
    ]);
    let input = json!({ "name": "git", "kind": "basic-auth", "fields": fields, "destinations": [address] });
    let credential =
        "mutation($o: Id!, $i: CreateCredentialInput!) { createCredential(orgId: $o, input: $i) { id } }";
    let credential = house.gql(credential, json!({ "i": input })).await["createCredential"]["id"].clone();
    let assign = "mutation($o: Id!, $c: Id!, $a: [Id!]!) { setCredentialAgents(orgId: $o, id: $c, input: { agentIds: $a }) { id } }";
    house.gql(assign, json!({ "c": credential, "a": [crew.agent] })).await;
    let allow = "mutation($o: Id!, $p: Int!) { allowHost(orgId: $o, input: { host: \"localhost\", port: $p }) { id } }";
    house.owner().gql(allow, json!({ "o": house.tenant.org, "p": port })).await.data();
}

/// Waits until the conversation asks for approval, and returns the approval.
async fn awaited(house: &House, crew: &Crew, conversation: i64) -> i64 {
    for _ in 0..2400 {
        if let Some((approval, _)) = house.pending(conversation).await {
            return approval;
        }
        let open = house.turns(conversation).await.to_string();
        assert!(
            ["QUEUED", "RUNNING", "WAITING_APPROVAL"].iter().any(|state| open.contains(state)),
            "{:#?}",
            house.thread(crew, conversation).await
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("nothing is asked: {:#?}\n{}", house.thread(crew, conversation).await, crew.machine.log());
}
