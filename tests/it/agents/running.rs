//! Agents that really run: the service, a host, a shim and the reference agent, each a process of its own.

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{
    Actor, Address, Crew, Machine, Program, Serving, Tenant, copied, empty_database, found, is_postgres,
    model::Model,
};

pub const EDIT_AGENT: &str =
    "mutation($o: Id!, $a: Id!, $i: UpdateAgentInput!) { updateAgent(orgId: $o, id: $a, input: $i) { id } }";

/// A service that can die and come back under the same address, and an organization in it.
pub struct House {
    pub program: Program,
    serving: Option<Serving>,
    pub tenant: Tenant,
    pub actor: Actor,
    /// No one else gets it while the service is away.
    _address: Address,
    /// Lives as long as the database in it.
    folder: TempDir,
}

impl House {
    pub async fn open() -> Self {
        Self::open_with(&[]).await
    }

    /// The same, with more of the service's variables.
    pub async fn open_with(variables: &[(&str, &str)]) -> Self {
        let (address, folder) = (Address::free(), tempfile::tempdir().unwrap());
        let program = Self::designed(&address, &folder, variables).await;
        let tenant = program.tenant();
        Self::inhabited(program, tenant, address, folder)
    }

    /// One with what `fill` adds by commands: on SQLite a copy of the first of this name.
    pub async fn furnished(name: &str, fill: fn(&Program, &Tenant)) -> Self {
        let (address, folder) = (Address::free(), tempfile::tempdir().unwrap());
        let program = Self::designed(&address, &folder, &[]).await;
        let tenant = if is_postgres() {
            let tenant = program.tenant();
            fill(&program, &tenant);
            tenant
        } else {
            copied(&program, folder.path(), name, fill).await
        };
        Self::inhabited(program, tenant, address, folder)
    }

    async fn designed(address: &Address, folder: &TempDir, variables: &[(&str, &str)]) -> Program {
        let url = empty_database(folder.path()).await;
        let own = [("MUSTER_LISTEN", address.as_str()), ("MUSTER_DATABASE_URL", url.as_str())];
        Program::new(&[&own[..], variables].concat())
    }

    fn inhabited(program: Program, tenant: Tenant, address: Address, folder: TempDir) -> Self {
        let serving = program.serve();
        let actor = serving.actor(&tenant);
        Self { program, serving: Some(serving), tenant, actor, _address: address, folder }
    }

    /// A house with a crew whose agent runs.
    pub async fn with_crew(name: &str) -> (Self, Crew) {
        let house = Self::open().await;
        let crew = house.crew(name).await;
        house.starts(&crew).await;
        (house, crew)
    }

    /// Ends the service without warning.
    pub fn falls(&mut self) {
        self.serving = None;
    }

    /// Starts the service again.
    pub fn rises(&mut self) {
        self.serving = Some(self.program.serve());
    }

    /// The organization's owner, signed in.
    pub fn owner(&self) -> Actor {
        let session = self.program.json(&["session", "create", "--email", "a@example.org"]);
        self.actor.with_bearer(session["access_token"].as_str().unwrap())
    }

    /// Puts this backup in the place of the database. The service is away.
    pub fn restores(&self, backup: &str) {
        for file in std::fs::read_dir(self.folder.path()).unwrap() {
            std::fs::remove_file(file.unwrap().path()).unwrap();
        }
        self.program.json(&["restore", backup]);
    }

    /// Ends the service without warning, and starts it again.
    pub fn falls_and_rises(&mut self) {
        self.falls();
        self.rises();
    }

    pub async fn gql(&self, query: &str, mut variables: Value) -> Value {
        variables["o"] = self.tenant.org.into();
        self.actor.gql(query, variables).await.data()
    }

    /// A machine with a running host, and a stopped reference agent on it.
    pub async fn crew(&self, name: &str) -> Crew {
        self.crew_with(name, None, &[]).await
    }

    /// The same, with another image, and variables for the host.
    pub async fn crew_with(&self, name: &str, image: Option<i64>, variables: &[(&str, &str)]) -> Crew {
        // A person joins the host, so that it may hold secrets.
        Crew::hired(&self.owner(), self.tenant.org, name, image, variables).await
    }

    /// Presses start, and waits until the agent runs.
    pub async fn starts(&self, crew: &Crew) {
        crew.started(&self.actor, self.tenant.org).await;
    }

    /// Presses stop, and waits until the agent has stopped.
    pub async fn stops(&self, crew: &Crew) {
        let stop = "mutation($o: Id!, $a: Id!) { stopAgent(orgId: $o, id: $a) { id } }";
        self.gql(stop, json!({ "a": crew.agent })).await;
        crew.until(&self.actor, self.tenant.org, "STOPPED").await;
    }

    pub async fn edits(&self, agent: i64, input: Value) {
        self.gql(EDIT_AGENT, json!({ "a": agent, "i": input })).await;
    }

    /// A new image.
    pub async fn image(&self, input: Value) -> Option<i64> {
        let create = "mutation($o: Id!, $i: CreateImageInput!) { createImage(orgId: $o, input: $i) { id } }";
        self.gql(create, json!({ "i": input })).await["createImage"]["id"].as_i64()
    }

    /// Only a person starts the agent.
    pub async fn stays_down(&self, agent: i64) {
        self.edits(agent, json!({ "restartPolicy": "NEVER" })).await;
    }

    /// Starts a conversation. Returns its id.
    pub async fn says(&self, crew: &Crew, text: &str) -> i64 {
        let start = "mutation($o: Id!, $a: Id!, $t: String) { startConversation(orgId: $o, input: { agentId: $a, text: $t }) { id } }";
        let started = self.gql(start, json!({ "a": crew.agent, "t": text })).await;
        started["startConversation"]["id"].as_i64().unwrap()
    }

    /// Writes to a conversation.
    pub async fn adds(&self, conversation: i64, text: &str) {
        let post = "mutation($o: Id!, $c: Id!, $t: String!) { postMessage(orgId: $o, conversationId: $c, input: { text: $t }) { id } }";
        self.gql(post, json!({ "c": conversation, "t": text })).await;
    }

    /// The messages of a conversation: role, kind, and text.
    pub async fn thread(&self, crew: &Crew, conversation: i64) -> Vec<(String, String, String)> {
        let (org, agent) = (self.tenant.org, crew.agent);
        let (mut list, mut after) = (Vec::new(), 0);
        loop {
            let path = format!(
                "/v1/org/{org}/agent/{agent}/conversation/{conversation}/message?after_seq={after}&limit=200"
            );
            let page = self.actor.get(&path).await.expect(200);
            let page = page["data"].as_array().expect("a list of messages").clone();
            list.extend(page.iter().map(|message| {
                let text = message["content"]["text"].as_str().unwrap_or_default().to_owned();
                let word = |field: &str| message[field].as_str().unwrap().to_owned();
                (message["seq"].as_i64().unwrap(), (word("role"), word("kind"), text))
            }));
            after = list.iter().map(|(seq, _)| *seq).max().unwrap_or_default();
            if page.len() < 200 {
                break;
            }
        }
        list.sort_by_key(|(seq, _)| *seq);
        list.into_iter().map(|(_, message)| message).collect()
    }

    /// Waits until a message of the agent contains this text, and returns the thread.
    pub async fn hears(&self, crew: &Crew, conversation: i64, text: &str) -> Vec<(String, String, String)> {
        let heard =
            async || Some(self.thread(crew, conversation).await).filter(|thread| times(thread, text) > 0);
        if let Some(thread) = found(heard).await {
            return thread;
        }
        let thread = self.thread(crew, conversation).await;
        panic!(
            "no message says {text:?}: {thread:#?}\n{:#}\n{}",
            self.turns(conversation).await,
            crew.machine.log()
        );
    }

    pub async fn turns(&self, conversation: i64) -> Value {
        let query = "query($o: Id!, $c: Id!, $page: Int!) { turns(orgId: $o, conversationId: $c, page: $page, limit: 200) \
                     { data { id state error firstSeq } } }";
        let mut turns = Vec::new();
        for page in 1.. {
            let answer = self.gql(query, json!({ "c": conversation, "page": page })).await;
            let found = answer["turns"]["data"].as_array().unwrap();
            turns.extend(found.iter().cloned());
            if found.len() < 200 {
                break;
            }
        }
        Value::Array(turns)
    }

    /// Waits until no turn of the conversation is open.
    pub async fn rests(&self, conversation: i64) -> Vec<String> {
        let resting = async || {
            let turns = self.turns(conversation).await;
            let turns = turns.as_array().unwrap();
            let states = turns.iter().map(|turn| turn["state"].as_str().unwrap().to_owned());
            (!turns.iter().any(is_open)).then(|| states.collect::<Vec<_>>())
        };
        if let Some(states) = found(resting).await {
            return states;
        }
        panic!("turns are still open: {:#}", self.turns(conversation).await);
    }

    /// Waits until a turn of the conversation was given to the host. The agent may not have its prompt yet.
    async fn begins(&self, conversation: i64) {
        let begun = async || {
            let turns = self.turns(conversation).await;
            turns.as_array().unwrap().iter().any(|turn| turn["state"] != "QUEUED").then_some(())
        };
        found(begun).await.expect("a turn begins");
    }

    /// The pending approval of a conversation: its id and kind.
    pub async fn pending(&self, conversation: i64) -> Option<(i64, String)> {
        let path = format!("/v1/org/{}/approval?only_pending=true&page=1&limit=50", self.tenant.org);
        let page = self.actor.get(&path).await.expect(200);
        let mut pending = page["data"].as_array().unwrap().iter();
        let found = pending.find(|it| it["conversation_id"] == conversation)?;
        Some((found["id"].as_i64().unwrap(), found["kind"].as_str().unwrap().to_owned()))
    }

    /// Waits for it.
    pub async fn asked(&self, crew: &Crew, conversation: i64) -> (i64, String) {
        if let Some(found) = found(async || self.pending(conversation).await).await {
            return found;
        }
        panic!("nothing is asked: {:#?}\n{}", self.thread(crew, conversation).await, crew.machine.log());
    }

    /// Answers everything that the conversation asks, and starts the agent again if it ends, until no turn is open.
    pub async fn settles(&self, crew: &Crew, conversation: i64) {
        let path = format!("/v1/org/{}/approval?only_pending=true&page=1&limit=50", self.tenant.org);
        let is_settled = async || {
            let page = self.actor.get(&path).await.expect(200);
            for asked in page["data"].as_array().unwrap() {
                // It may have been withdrawn meanwhile.
                let path = format!("/v1/org/{}/approval/{}/answer", self.tenant.org, asked["id"]);
                self.actor.patch(&path, json!({ "options": ["red"] })).await;
            }
            crew.is_up_again(&self.actor, self.tenant.org).await;
            let turns = self.turns(conversation).await;
            (!turns.as_array().unwrap().iter().any(is_open)).then_some(())
        };
        let is_settled = found(is_settled).await.is_some();
        assert!(is_settled, "turns are still open: {:#}", self.turns(conversation).await);
    }

    pub async fn answers(&self, approval: i64, answer: Value) {
        let path = format!("/v1/org/{}/approval/{approval}/answer", self.tenant.org);
        self.actor.patch(&path, answer).await.expect(200);
    }
}

fn is_open(turn: &Value) -> bool {
    matches!(turn["state"].as_str(), Some("QUEUED" | "RUNNING" | "WAITING_APPROVAL"))
}

fn times(thread: &[(String, String, String)], text: &str) -> usize {
    thread.iter().filter(|(role, _, said)| role == "ASSISTANT" && said.contains(text)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_before_the_start_is_answered_after_it() {
    let house = House::open().await;
    let crew = house.crew("late").await;
    let conversation = house.says(&crew, "Are you awake?").await;
    house.adds(conversation, "Hello?").await;
    house.starts(&crew).await;
    let thread = house.hears(&crew, conversation, "Hello?").await;
    assert_eq!(thread[0].0, "USER");
    assert_eq!(house.rests(conversation).await, ["DONE"], "both messages are one turn");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_asks_and_goes_on_as_the_answer_says() {
    let (house, crew) = House::with_crew("asking").await;
    let conversation = house.says(&crew, "ask Which jacket? | green | blue").await;
    let (approval, kind) = house.asked(&crew, conversation).await;
    assert_eq!(kind, "QUESTION");
    house.answers(approval, json!({ "options": ["green"] })).await;
    house.hears(&crew, conversation, "green").await;
    house.rests(conversation).await;
    for verdict in ["deny", "approve"] {
        let conversation = house.says(&crew, r#"do execute Deploy {"command":"make deploy"}"#).await;
        let (approval, kind) = house.asked(&crew, conversation).await;
        assert_eq!(kind, "ACTION");
        house.answers(approval, json!({ "options": [verdict] })).await;
        assert_eq!(house.rests(conversation).await, ["DONE"]);
        let thread = house.thread(&crew, conversation).await;
        let results = thread.iter().filter(|(_, kind, _)| kind == "TOOL_RESULT").count();
        assert_eq!(results, 1, "{verdict}: {thread:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deeply_nested_input_holds_up_no_other_agent() {
    let (house, mut crew) = House::with_crew("deep").await;
    let input = format!(r#"{{"a":{}{}}}"#, "[".repeat(124), "]".repeat(124));
    let deep = house.says(&crew, &format!("do read Look {input}")).await;
    house.hears(&crew, deep, "I was not allowed to: Look").await;
    assert_eq!(house.rests(deep).await, ["DONE"]);
    crew.machine.kill();
    crew.machine.run();
    let first = "query($o: Id!, $a: Id!) { agent(orgId: $o, id: $a) { serverId } }";
    let first = house.gql(first, json!({ "a": crew.agent })).await["agent"].clone();
    let second = json!({ "name": "its neighbour", "server_id": first["serverId"], "image_id": null });
    let second = house.actor.post(&format!("/v1/org/{}/agent", house.tenant.org), second).await.expect(201);
    crew.agent = second["id"].as_i64().unwrap();
    house.starts(&crew).await;
    let conversation = house.says(&crew, "Good morning").await;
    house.hears(&crew, conversation, "Good morning").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mode_that_is_chosen_holds_from_the_next_turn_on() {
    let (house, crew) = House::with_crew("planning").await;
    let conversation = house.says(&crew, "Good morning").await;
    assert_eq!(house.rests(conversation).await, ["DONE"]);
    let shown = async || {
        let query = "query($o: Id!, $a: Id!) { agent(orgId: $o, id: $a) { \
                     syncPending restartPending modeProblem offeredModes { id current } } }";
        house.gql(query, json!({ "a": crew.agent })).await["agent"].clone()
    };
    let choose = async |mode: Value| {
        let edit = "mutation($o: Id!, $a: Id!, $m: String) { \
                    updateAgent(orgId: $o, id: $a, input: { modeOverride: $m }) { id } }";
        house.gql(edit, json!({ "a": crew.agent, "m": mode })).await;
        let is_known = async || (shown().await["syncPending"] == false).then_some(());
        found(is_known).await.expect("its host knows of the change");
    };
    choose(json!("plan")).await;
    let problem = shown().await["modeProblem"].clone();
    assert!(problem.as_str().unwrap().contains("another mode"), "{problem}");
    house.adds(conversation, "do delete Remove it").await;
    house.hears(&crew, conversation, "I would do this: Remove it").await;
    assert_eq!(house.rests(conversation).await, ["DONE", "DONE"]);
    let modes = json!([{ "id": "act", "current": false }, { "id": "plan", "current": true }]);
    let now =
        json!({ "syncPending": false, "restartPending": false, "modeProblem": null, "offeredModes": modes });
    assert_eq!(shown().await, now);
    choose(json!("fly")).await;
    assert_eq!(shown().await["modeProblem"], "Its sessions do not offer this mode.");
    house.adds(conversation, "Still there?").await;
    house.hears(&crew, conversation, "Still there?").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn instructions_reach_the_model_first_and_after_a_change() {
    let (house, model) = (House::open().await, Model::start().await);
    let crew = house.crew("instructed").await;
    let access = json!({
        "modelOverride": "fake", "credentialChoice": "OWN", "modelCredential": "sk-of-one",
        "modelCredentialProvider": "anthropic", "modelCredentialBaseUrl": model.url,
        "instructions": "Promise nothing.",
    });
    house.edits(crew.agent, access).await;
    house.starts(&crew).await;
    let conversation = house.says(&crew, "One").await;
    assert_eq!(house.rests(conversation).await, ["DONE"]);
    house.adds(conversation, "Two").await;
    house.rests(conversation).await;
    house.edits(crew.agent, json!({ "instructions": "Promise less." })).await;
    house.adds(conversation, "Three").await;
    house.rests(conversation).await;
    house.adds(conversation, "Four").await;
    let thread = house.hears(&crew, conversation, "Four").await;
    // The model repeats each prompt.
    let answers = thread.iter().filter(|(role, ..)| role == "ASSISTANT");
    let told: Vec<_> = answers
        .map(|(_, _, said)| (said.contains("Promise nothing."), said.contains("Promise less.")))
        .collect();
    assert_eq!(told, [(true, false), (false, false), (false, true), (false, false)], "{thread:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_survives_the_death_of_its_host_and_of_the_service() {
    let (mut house, mut crew) = House::with_crew("falling").await;
    for host_dies in [true, false] {
        let conversation = house.says(&crew, "slowly 20 100\nThe end of it").await;
        house.begins(conversation).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        if host_dies {
            crew.machine.kill();
            crew.machine.run();
        } else {
            house.falls_and_rises();
        }
        let thread = house.hears(&crew, conversation, "The end of it").await;
        assert_eq!(times(&thread, "The end of it"), 1);
        assert_eq!(house.rests(conversation).await, ["DONE"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_agent_has_a_reason_and_starts_again() {
    let house = House::open().await;
    let crew = house.crew("dying").await;
    house.stays_down(crew.agent).await;
    house.starts(&crew).await;
    let conversation = house.says(&crew, "exit 7").await;
    crew.until(&house.actor, house.tenant.org, "ERROR").await;
    assert_eq!(house.rests(conversation).await, ["INTERRUPTED"]);
    house.starts(&crew).await;
    let next = house.says(&crew, "Back again?").await;
    house.hears(&crew, next, "Back again?").await;
}

/// A script that tries to escape from an agent's sandbox. It reports each success and failure on stderr, and then
/// becomes the reference agent. The words that it searches for are in this script, not in its command line.
const TRIES: &str = r#"
try() { what=$1; shift; if "$@" >/dev/null 2>&1 </dev/null; then echo "CAN $what" >&2; else echo "CANNOT $what" >&2; fi; }
for file in identity.json joined.json journal.redb log lock; do try "read $file" cat "$HOSTDIR/$file"; done
try "see another's home" ls "$HOSTDIR/agents/$OTHER/home"
try "read another's home" cat "$HOSTDIR/agents/$OTHER/home/canary"
try "open its launch" ls "$HOSTDIR/agents/$OWN/1/spool"
try "write to the system" touch /usr/mine
try "write to its home" sh -c 'echo of-its-own >"$HOME/mine"'
try "find its own" grep -rqsE 'of[-]its-own' "$HOSTDIR" "$HOME"
try "find a secret" grep -rqsE --exclude="${PROGRAM##*/}" 'mst[_]host_|can[a]ry-of-another' "$HOSTDIR" "$HOME" /tmp /run /var /root \
    /proc/[0-9]*/environ /proc/[0-9]*/cmdline
echo "PROCESSES $(ls -d /proc/[0-9]* | wc -l)" >&2
exec "$PROGRAM" agent
"#;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs bubblewrap"]
async fn bwrap_an_agent_works_without_its_host_and_sees_no_other() {
    let house = House::open().await;
    let lists = tempfile::tempdir().unwrap();
    let list = lists.path().join("programs.toml");
    let org = house.tenant.org;
    let made =
        house.actor.post(&format!("/v1/org/{org}/server"), json!({ "name": "boxes" })).await.expect(201);
    // A sandbox has a /tmp of its own, where nothing of this machine would be seen anyhow.
    let mut machine = Machine::below("/var/tmp").with("MUSTER_HOST_PROGRAMS", list.to_str().unwrap());
    machine.join(house.actor.base(), made["provisioning_token"].as_str().unwrap());
    let image = json!(house.image(json!({ "name": "Tries", "reference": "example/tries" })).await);
    let hire = async |name: &str, image: Value| {
        let agent = json!({ "name": name, "server_id": made["id"], "image_id": image });
        house.actor.post(&format!("/v1/org/{org}/agent"), agent).await.expect(201)["id"].as_i64().unwrap()
    };
    let (other, own) = (hire("other", Value::Null).await, hire("own", image).await);
    let here = machine.folder().to_str().unwrap().to_owned();
    let set = json!({
        "HOSTDIR": here, "OTHER": other.to_string(), "OWN": own.to_string(), "PROGRAM": env!("CARGO_BIN_EXE_muster"),
    });
    let listed = json!({ "example/tries": { "command": "/bin/sh", "args": ["-c", TRIES], "set": set } });
    std::fs::write(&list, toml::to_string(&listed).unwrap()).unwrap();
    machine.options(&["--isolation", "bubblewrap"]);
    machine.run();
    let mut crew = Crew { machine, agent: other };
    house.starts(&crew).await;
    let home = crew.machine.folder().join(format!("agents/{other}/home"));
    std::fs::write(home.join("canary"), "canary-of-another").unwrap();
    crew.agent = own;
    house.starts(&crew).await;

    let stderr = crew.machine.folder().join(format!("agents/{own}/1/stderr"));
    let said = async || {
        let said = std::fs::read_to_string(&stderr).unwrap_or_default();
        said.contains("PROCESSES ").then_some(said)
    };
    let said = found(said).await.expect("it says what it could do");
    let can: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("CAN ")).collect();
    assert_eq!(can, ["write to its home", "find its own"], "{said}");
    assert_eq!(said.lines().filter(|line| line.starts_with("CANNOT ")).count(), 10, "{said}");
    let processes = said.lines().find_map(|line| line.strip_prefix("PROCESSES ")).unwrap();
    assert!(processes.parse::<u32>().unwrap() < 12, "only its own: {said}");
    for secret in ["mst_host_", "canary-of-another"] {
        assert!(!crew.machine.find(secret).is_empty(), "who is outside, finds {secret}");
    }

    let conversation = house.says(&crew, "Good morning").await;
    house.hears(&crew, conversation, "Good morning").await;
    house.adds(conversation, "ask Which jacket? | green | blue").await;
    let (approval, _) = house.asked(&crew, conversation).await;
    house.answers(approval, json!({ "options": ["green"] })).await;
    house.hears(&crew, conversation, "green").await;
    house.rests(conversation).await;
    let next = house.says(&crew, "slowly 20 100\nThe end of it").await;
    house.begins(next).await;
    crew.machine.kill();
    crew.machine.run();
    let thread = house.hears(&crew, next, "The end of it").await;
    assert_eq!(times(&thread, "The end of it"), 1);
    assert_eq!(house.rests(next).await, ["DONE"]);
    house.adds(conversation, "Still there?").await;
    house.hears(&crew, conversation, "Still there?").await;
}
