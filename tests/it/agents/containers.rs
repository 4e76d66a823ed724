//! Agents in containers: the real control plane, the real host and a real engine, which `tests/containers` starts.
//!
//! `MUSTER_FAULT_TURNS` (20) and `MUSTER_FAULT_SEED` (1) change how long the last test is, and in which order things
//! die.

use std::{
    fs,
    io::{self, Read, Seek, SeekFrom},
    net::TcpListener,
    ops::{Deref, DerefMut, Range},
    process::Command,
    time::Duration,
};

use muster_corpus::Random;
use serde_json::{Value, json};

use crate::{
    agents::{
        backups::{BACK_UP, RESTORE, until},
        opencode,
        running::{EDIT_AGENT, House},
        running_faults::{demo, nothing_is_lost, number},
    },
    harness::{self, Crew, model::Model},
};
use muster_testing::engine_client::{
    Own, PROBE, as_agent, clean, containers, docker, kind, processes, says, variable, volumes,
};

/// The key that the model requires. The host adds it; the agent never holds it.
const KEY: &str = "sk-canary-contained-5d20";
/// OpenCode, git and a shell, as `tests/containers` packs them.
const CODER: &str = "muster-test/opencode";

/// A machine that runs its agent in a container. What it has made in the engine goes with it.
struct Contained {
    crew: Crew,
    socket: String,
}

impl Deref for Contained {
    type Target = Crew;

    fn deref(&self) -> &Crew {
        &self.crew
    }
}

impl DerefMut for Contained {
    fn deref_mut(&mut self) -> &mut Crew {
        &mut self.crew
    }
}

impl Contained {
    /// With an agent of the image that has a shell besides.
    async fn hired(house: &House, socket: &str) -> Self {
        let input = json!({ "name": "Probe", "reference": PROBE, "defaultModel": "here" });
        Self::of_image(house, socket, house.image(input).await).await
    }

    async fn of_image(house: &House, socket: &str, image: Option<i64>) -> Self {
        let (kind, shim) = (kind(), variable("MUSTER_SHIM"));
        let variables =
            [("MUSTER_HOST_RUNTIME", &kind[..]), ("MUSTER_HOST_ENGINE", socket), ("MUSTER_SHIM", &shim[..])];
        let crew = house.crew_with("boxes", image, &variables).await;
        Self { crew, socket: socket.to_owned() }
    }

    fn host(&self) -> String {
        host_of(&self.crew)
    }

    /// The agent's container. Beside it there may be one that removes the home from before a restore.
    fn name(&self) -> String {
        let mut all = containers(&self.socket, &self.host());
        all.retain(|name| !name.ends_with("-drop"));
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].clone()
    }

    /// Runs a script in the container, as its agent but without the agent's environment, and returns its output.
    fn runs(&self, script: &str) -> String {
        let words = ["/busybox", "sh", "-c", script];
        let ran = as_agent(&self.socket, &self.name(), self.agent, &words);
        String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned()
    }

    /// Where bytes are that should be nowhere: the agent's volume, memory and environment, and what the engine was told.
    fn finds(&self, what: &str) -> Vec<String> {
        let mut found = self.machine.find(what);
        for process in processes(&self.socket, &self.name()) {
            if remembers(process, what) {
                let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
                found.push(format!("the memory of {}", name.trim()));
            }
        }
        for volume in volumes(&self.socket, &self.host()) {
            let folder = says(&self.socket, &["volume", "inspect", "--format", "{{.Mountpoint}}", &volume]);
            let files = Command::new("grep").args(["-rlI", what, &folder]).output().unwrap();
            found.extend(String::from_utf8_lossy(&files.stdout).lines().map(str::to_owned));
        }
        if says(&self.socket, &["inspect", &self.name()]).contains(what) {
            found.push("the engine".to_owned());
        }
        found
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        self.crew.machine.kill();
        clean(&self.socket, &self.host());
    }
}

/// The host's id, which its containers bear.
fn host_of(crew: &Crew) -> String {
    let identity = fs::read(crew.machine.folder().join("identity.json")).unwrap();
    let identity: Value = serde_json::from_slice(&identity).unwrap();
    identity["machine_id"].as_str().unwrap().to_owned()
}

/// Whether a process has this anywhere in the memory that it may write.
fn remembers(process: i32, what: &str) -> bool {
    let wanted = regex::bytes::Regex::new(&regex::escape(what)).unwrap();
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let ranges = maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|may| may.starts_with("rw")));
    let ranges = ranges.filter_map(|line| line.split(' ').next()?.split_once('-'));
    let number = |text| u64::from_str_radix(text, 16).unwrap();
    let mut used = ranges.flat_map(|(from, to)| used_pages(process, number(from)..number(to)));
    used.any(|pages| {
        let bytes = part(&format!("/proc/{process}/mem"), pages.start, pages.end - pages.start);
        bytes.is_ok_and(|bytes| wanted.is_match(&bytes))
    })
}

/// Which parts of a range of addresses are in memory: a program may reserve a hundred times what it uses.
fn used_pages(process: i32, range: Range<u64>) -> Vec<Range<u64>> {
    // As large as they are where containers are tested.
    const PAGE: u64 = 4096;
    let pages = (range.end - range.start) / PAGE;
    let map =
        part(&format!("/proc/{process}/pagemap"), range.start / PAGE * 8, pages * 8).unwrap_or_default();
    let mut used: Vec<Range<u64>> = Vec::new();
    for (address, entry) in (range.start..).step_by(4096).zip(map.chunks_exact(8)) {
        let is_used = entry[7] & 0b1100_0000 != 0;
        match used.last_mut() {
            _ if !is_used => {}
            Some(last) if last.end == address => last.end += PAGE,
            _ => used.push(address..address + PAGE),
        }
    }
    used
}

/// A part of a file.
fn part(path: &str, from: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut file = fs::File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an engine: tests/containers"]
async fn an_agent_answers_without_a_network_or_a_key() {
    let (house, model) = (House::open().await, Model::start().await);
    let crew = Contained::hired(&house, &variable("MUSTER_TEST_SOCKET")).await;
    let access = json!({
        "credentialChoice": "OWN", "modelCredential": KEY, "modelCredentialProvider": "openai",
        "modelCredentialBaseUrl": format!("{}/v1", model.url),
    });
    house.edits(crew.agent, access).await;
    house.starts(&crew).await;
    let conversation = house.says(&crew, "Hello from the box").await;
    house.hears(&crew, conversation, "Hello from the box").await;
    assert_eq!(house.rests(conversation).await, ["DONE"]);
    let asked = model.asked();
    assert_eq!(asked[0].path, "/v1/chat/completions");
    assert!(asked[0].body.to_string().contains("Hello from the box"));
    assert_eq!(asked[0].headers["authorization"], format!("Bearer {KEY}"), "the host has added it");

    assert_eq!(crew.runs("ls /sys/class/net").trim(), "lo");
    let model_port = model.url.rsplit(':').next().unwrap();
    let tries = [
        // The model itself, past the gate.
        format!("nc -w 3 127.0.0.1 {model_port} </dev/null"),
        "nc -w 3 198.51.100.1 443 </dev/null".to_owned(),
        "nc -w 3 2001:db8::1 443 </dev/null".to_owned(),
        "nslookup example.org 198.51.100.1".to_owned(),
    ];
    for attempt in tries {
        let said = crew.runs(&format!("{attempt} && echo REACHED"));
        assert!(
            said.contains("can't connect to remote host") && !said.contains("REACHED"),
            "{attempt}: {said}"
        );
    }
    let said = crew.runs("http_proxy=http://127.0.0.1:3128 wget -O - http://10.0.0.1/");
    assert!(said.contains("403"), "the gate answers, and says no: {said}");
    assert_eq!(model.asked().len(), asked.len());

    assert_eq!(crew.finds(KEY), Vec::<String>::new());
    assert!(!crew.finds(opencode::PLACEHOLDER).is_empty(), "who looks, finds");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an engine: tests/containers"]
async fn opencode_does_one_whole_job_in_its_container() {
    let (house, model) = (House::open().await, Model::deciding(opencode::fixes).await);
    let image = opencode::image(&house, CODER).await;
    let crew = Contained::of_image(&house, &variable("MUSTER_TEST_SOCKET"), image).await;
    opencode::thinks_with(&house, &crew, &model).await;
    let said = opencode::does_one_whole_job(&house, &crew).await;
    for canary in opencode::CANARIES {
        assert_eq!(crew.finds(canary), Vec::<String>::new());
        assert!(!said.contains(canary), "no message contains it");
    }
    assert!(!crew.finds(opencode::PLACEHOLDER).is_empty(), "who looks, finds");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an engine: tests/containers"]
async fn a_home_in_a_container_comes_back_from_its_backup() {
    let house = House::open().await;
    let crew = Contained::hired(&house, &variable("MUSTER_TEST_SOCKET")).await;
    house.starts(&crew).await;
    let conversation = house.says(&crew, "remember the blue jacket").await;
    house.rests(conversation).await;
    crew.runs("echo first > /home/agent/notes");
    house.gql(BACK_UP, json!({ "i": crew.agent })).await;
    let backup = until(&house, &crew, "state").await;
    assert_eq!(backup["state"], "DONE", "{backup}");
    crew.runs("echo second > /home/agent/notes");
    house.stops(&crew).await;
    house.gql(RESTORE, json!({ "i": backup["id"] })).await;
    let backup = until(&house, &crew, "restoreState").await;
    assert_eq!(backup["restoreState"], "DONE", "{backup}");
    house.starts(&crew).await;
    house.adds(conversation, "recall").await;
    house.hears(&crew, conversation, "I remember: the blue jacket.").await;
    assert_eq!(crew.runs("cat /home/agent/notes"), "first\n");
    // The restored files belong to the agent.
    assert_eq!(crew.runs("echo third > /home/agent/notes && cat /home/agent/notes"), "third\n");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an engine: tests/containers"]
async fn the_demo_runs_its_agents_in_containers() {
    // A short path, for sockets below it.
    let folder = tempfile::Builder::new().prefix("md").tempdir_in("/tmp").unwrap();
    let address = harness::Address::free();
    let (kind, socket) = (kind(), variable("MUSTER_TEST_SOCKET"));
    let (shim, agent) = (variable("MUSTER_SHIM"), variable("MUSTER_AGENT"));
    let variables =
        [("MUSTER_HOST_ENGINE", &socket[..]), ("MUSTER_SHIM", &shim[..]), ("MUSTER_AGENT", &agent[..])];
    let option = format!("--containers={kind}");
    let (demo, _) = demo(folder.path(), address.as_str(), &[&option], &variables);
    let identity = folder.path().join(format!("host-{kind}/identity.json"));
    let host = async || {
        let identity: Value = serde_json::from_slice(&fs::read(&identity).ok()?).ok()?;
        identity["machine_id"].as_str().map(str::to_owned)
    };
    let host = harness::found(host).await.expect("its host joins");
    let are_up = async || containers(&socket, &host).len() == 2;
    harness::until("two agents have a container each", are_up).await;
    drop(demo);
    clean(&socket, &host);
}

/// Waits until the agent works on the first turn of a conversation.
async fn until_it_works(house: &House, conversation: i64) {
    let works = async || house.turns(conversation).await[0]["state"] == "RUNNING";
    harness::until("it works", works).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an engine: tests/containers"]
async fn a_killed_host_adopts_its_containers() {
    let mut house = House::open().await;
    let mut crew = Contained::hired(&house, &variable("MUSTER_TEST_SOCKET")).await;
    house.starts(&crew).await;
    let before = says(&crew.socket, &["inspect", "--format", "{{.Id}}", &crew.name()]);
    let conversation = house.says(&crew, "slowly 30 100\nThe end of it").await;
    until_it_works(&house, conversation).await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    crew.machine.kill();
    house.falls_and_rises();
    crew.machine.run();
    let thread = house.hears(&crew, conversation, "The end of it").await;
    let said = thread.iter().filter(|(role, _, text)| role == "ASSISTANT" && text.contains("The end of it"));
    assert_eq!(said.count(), 1, "{thread:#?}");
    assert_eq!(house.rests(conversation).await, ["DONE"]);

    let acting = house.says(&crew, r#"do execute Deploy {"command":"make deploy"}"#).await;
    let (approval, kind) = house.asked(&crew, acting).await;
    assert_eq!(kind, "ACTION");
    crew.machine.kill();
    house.answers(approval, json!({ "options": ["approve"] })).await;
    crew.machine.run();
    house.hears(&crew, acting, "I was allowed to: Deploy").await;
    assert_eq!(house.rests(acting).await, ["DONE"]);
    let after = says(&crew.socket, &["inspect", "--format", "{{.Id}}", &crew.name()]);
    assert_eq!(before, after, "it is the same container");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an engine: tests/containers"]
async fn an_archived_agent_leaves_its_volume_and_nothing_else() {
    let house = House::open().await;
    let mut crew = Contained::hired(&house, &variable("MUSTER_TEST_SOCKET")).await;
    house.starts(&crew).await;
    crew.runs("echo beans >/home/agent/list.txt");
    house.stops(&crew).await;
    let archive = "mutation($o: Id!, $a: Id!) { deleteAgent(orgId: $o, id: $a) }";
    house.gql(archive, json!({ "a": crew.agent })).await;
    // As if a host had died before it could remove the container.
    let label = format!("muster.host={}", crew.host());
    let (agent, name) =
        (format!("muster.agent={}", crew.agent), format!("muster-{}-{}-g1", &crew.host()[..12], crew.agent));
    let made = [
        "create",
        "--name",
        &name,
        "--label",
        &label,
        "--label",
        &agent,
        "--label",
        "muster.generation=1",
        PROBE,
    ];
    crew.machine.kill();
    let is_left = || containers(&crew.socket, &crew.host()) == [name.as_str()];
    // The container may have died before. Podman keeps a name for a moment after it no longer lists the container.
    let mut patience = 1_200;
    while !is_left() && !docker(&crew.socket, &made).status.success() {
        patience -= 1;
        assert!(patience > 0, "none can be made");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    crew.machine.run();
    let mut patience = 1_200;
    while !containers(&crew.socket, &crew.host()).is_empty() {
        patience -= 1;
        assert!(patience > 0, "it is swept\n{}", crew.machine.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Anyone who restores the agent wants its home back.
    let volumes = volumes(&crew.socket, &crew.host());
    assert_eq!(volumes.len(), 1, "{volumes:?}");
    let restore = "mutation($o: Id!, $a: Id!) { restoreAgent(orgId: $o, id: $a) { id } }";
    house.gql(restore, json!({ "a": crew.agent })).await;
    house.starts(&crew).await;
    assert_eq!(crew.runs("cat /home/agent/list.txt"), "beans\n");
}

/// A network of the engine. It goes with the test.
struct Network<'a> {
    socket: &'a str,
    name: String,
}

impl Drop for Network<'_> {
    fn drop(&mut self) {
        docker(self.socket, &["network", "rm", &self.name]);
    }
}

/// The container has an interface of its own, and reaches what the engine's network reaches: here, this machine.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an engine: tests/containers"]
async fn a_privileged_network_is_the_engines_and_needs_permission() {
    let house = House::open().await;
    let socket = variable("MUSTER_TEST_SOCKET");
    // Like that of no other run, which may have left its own behind.
    let folder = tempfile::Builder::new().prefix("muster-test-").tempdir().unwrap();
    let name = folder.path().file_name().unwrap().to_str().unwrap().to_owned();
    let made = docker(&socket, &["network", "create", "--driver", "bridge", &name]);
    if !made.status.success() {
        println!("skipped: {} makes no network here: {}", kind(), String::from_utf8_lossy(&made.stderr));
        return;
    }
    let network = Network { socket: &socket, name };
    let format = "{{(index .IPAM.Config 0).Gateway}}";
    let gateway = says(&socket, &["network", "inspect", "--format", format, &network.name]);
    let mut crew = Contained::hired(&house, &socket).await;
    crew.machine.kill();
    crew.machine.options(&["--container-network", &network.name]);
    crew.machine.run();
    house.starts(&crew).await;
    assert_eq!(crew.runs("ls /sys/class/net").trim(), "lo", "it was not allowed one");
    // Only a member with network.edit can set this; a service token never has it.
    let allow = json!({ "networkPrivileged": true });
    house.owner().gql(EDIT_AGENT, json!({ "o": house.tenant.org, "a": crew.agent, "i": allow })).await.data();
    house.stops(&crew).await;
    house.starts(&crew).await;
    let interfaces = crew.runs("ls /sys/class/net");
    assert!(interfaces.contains("eth0"), "{interfaces}");
    let listener = TcpListener::bind((gateway.as_str(), 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    // Every connection is accepted, and closed.
    let accepts = std::thread::spawn(move || listener.accept().map(drop));
    let said = crew.runs(&format!("timeout 60 nc {gateway} {port} </dev/null && echo REACHED"));
    assert_eq!(said, "REACHED\n");
    accepts.join().unwrap().unwrap();
    // All other restrictions stay in force.
    let of =
        |process: &i32, what: &str| fs::read_to_string(format!("/proc/{process}/{what}")).unwrap_or_default();
    let mut inside = processes(&socket, &crew.name()).into_iter();
    let agent = inside.find(|process| of(process, "comm").trim() == "muster-agent").unwrap();
    assert!(of(&agent, "status").contains("CapBnd:\t0000000000000000"));
    let conversation = house.says(&crew, "Still there?").await;
    house.hears(&crew, conversation, "Still there?").await;
}

/// The process or container that is killed.
#[derive(Clone, Copy, Debug)]
enum Death {
    Service,
    Host,
    HostAndService,
    Engine,
    HostAndEngine,
    Container,
    Agent,
}

const DEATHS: [Death; 8] = [
    Death::Service,
    Death::Host,
    Death::Host,
    Death::HostAndService,
    Death::Engine,
    Death::HostAndEngine,
    Death::Container,
    Death::Agent,
];

impl Death {
    fn strikes(self, house: &mut House, crew: &mut Crew, own: &mut Own) {
        let socket = own.socket();
        let container = || containers(&socket, &host_of(crew)).into_iter().next();
        match self {
            Self::Service => house.falls_and_rises(),
            Self::Host => {
                crew.machine.kill();
                crew.machine.run();
            }
            Self::HostAndService => {
                crew.machine.kill();
                house.falls_and_rises();
                crew.machine.run();
            }
            Self::Engine => {
                own.falls();
                own.rises();
            }
            Self::HostAndEngine => {
                own.falls();
                crew.machine.kill();
                crew.machine.run();
                own.rises();
            }
            // They may have ended meanwhile.
            Self::Container => drop(container().map(|name| docker(&socket, &["kill", &name]))),
            Self::Agent => {
                let words = ["/busybox", "killall", "-9", "muster-agent"];
                drop(container().map(|name| as_agent(&socket, &name, crew.agent, &words)));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an engine: tests/containers"]
async fn whatever_dies_nothing_is_said_twice_and_every_turn_ends() {
    let seed = number("MUSTER_FAULT_SEED", 1);
    let turns = number("MUSTER_FAULT_TURNS", 20);
    println!("MUSTER_FAULT_SEED={seed} MUSTER_FAULT_TURNS={turns}");
    let mut own = Own::start();
    let mut house = House::open().await;
    let mut crew = Contained::hired(&house, &own.socket()).await;
    let strike = |random: &mut Random, house: &mut House, crew: &mut Crew| {
        let death = random.pick(&DEATHS);
        println!("{death:?}");
        tokio::task::block_in_place(|| death.strikes(house, crew, &mut own));
    };
    nothing_is_lost(&mut house, &mut crew, Random::new(&[seed]), turns, strike).await;
    let left = containers(&crew.socket, &crew.host());
    assert!(left.len() <= 1, "{left:?}");
}
