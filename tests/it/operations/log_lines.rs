//! A log that can't be written loses lines, which are counted, and nothing else. The same for what a command prints.

use std::{
    fs::File,
    io::{BufRead, BufReader, PipeReader, Read, pipe},
    process::Stdio,
    time::Duration,
};

use serde_json::{Value, json};

use crate::harness::{
    Actor, Address, Logged, Machine, Program, Serving, Tenant, TestApp, found, sources, until,
};

/// Macros and functions that panic or block if their reader is gone or stands still.
const PRINTS: [&str; 6] = ["print!(", "println!(", "eprint!(", "eprintln!(", "dbg!(", "io::stderr()"];

#[test]
fn once_only_the_modules_for_it_print() {
    let parts = [
        "addresses",
        "agent",
        "certificates",
        "channels",
        "corpus",
        "egress",
        "host",
        "profiles",
        "protocol",
        "shim",
    ];
    let folders = parts.map(|part| format!("crates/{part}/src"));
    let mut found = Vec::new();
    for folder in folders.iter().map(String::as_str).chain(["src"]) {
        for (file, code) in sources(folder) {
            let name = format!("{folder}/{file}");
            let is_own = ["agent/src/output.rs", "shim/src/output.rs"].iter().any(|own| name.ends_with(own));
            let prints =
                code.lines().filter(|line| !is_own && PRINTS.iter().any(|print| line.contains(print)));
            found.extend(prints.map(|line| format!("{name}: {line}")));
        }
    }
    assert!(
        found.is_empty(),
        "use tracing, muster-printing or the crate's own module for output: {found:#?}"
    );
}

#[tokio::test]
async fn a_request_line_names_its_caller_and_organization() {
    let logged = Logged::capture("info");
    let app = TestApp::start().await;
    let token = app.token(&["server.view"]).await;
    let path = format!("/v1/org/{}/server?page=1&limit=1", app.org);
    for actor in [&app.viewer, &token] {
        actor.get(&path).await.expect(200);
    }
    app.stranger.get(&path).await.expect(403);
    app.anonymous.get(&path).await.expect(401);
    let query = "query($o: Id!) { servers(orgId: $o, page: 1, limit: 1) { total } }";
    app.viewer.gql(query, json!({ "o": app.org })).await.data();
    let lines = logged.text();
    let lines = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let answered: Vec<Value> = lines.filter(|line| line["message"] == "request.answered").collect();
    let named: Vec<_> = answered
        .iter()
        .map(|line| {
            let span = &line["span"];
            (line["org"].as_i64(), span["user_id"].is_i64(), span["token_id"].is_i64())
        })
        .collect();
    let org = Some(app.org);
    let (person, service, stranger, anonymous) =
        ((org, true, false), (org, false, true), (None, true, false), (None, false, false));
    assert_eq!(named, [person, service, stranger, anonymous, person], "{answered:#?}");
}

/// A file on a disk that is full.
fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// A pipe that was read by a program that has ended.
fn gone() -> Stdio {
    pipe().unwrap().1.into()
}

/// An installation, and where it shows its metrics.
struct Installation {
    program: Program,
    tenant: Tenant,
    metrics: Address,
}

impl Installation {
    fn new() -> Self {
        let metrics = Address::free();
        let program = Program::new(&[("MUSTER_METRICS_LISTEN", metrics.as_str()), ("MUSTER_LOG", "trace")]);
        let quiet = |command: &[&str]| {
            let mut command = program.command(&[command, &["--json"]].concat());
            let ran = command.env("MUSTER_LOG", "off").output().unwrap();
            serde_json::from_slice::<Value>(&ran.stdout).unwrap()
        };
        let made =
            ["org", "create", "--name", "House", "--owner-email", "a@example.org", "--plan", "ENTERPRISE"];
        let org = quiet(&made)["id"].as_i64().unwrap();
        let id = org.to_string();
        let token = quiet(&["token", "create", "--org", &id, "--name", "t", "--all"]);
        let tenant = Tenant { org, token: token["token"].as_str().unwrap().to_owned() };
        Self { program, tenant, metrics }
    }

    async fn lost(&self) -> u64 {
        let page = reqwest::get(format!("http://{}/metrics", self.metrics.as_str())).await.unwrap();
        let page = page.text().await.unwrap();
        let line = page.lines().find_map(|line| line.strip_prefix("muster_log_lines_lost_total "));
        line.expect("it is counted").parse::<f64>().unwrap() as u64
    }

    /// Each answer comes, even if the log is lost.
    async fn works(&self, actor: &Actor, round: &str) {
        for n in 0..5 {
            let server = json!({ "name": format!("{round} {n}") });
            actor.post(&format!("/v1/org/{}/server", self.tenant.org), server).await.expect(201);
            actor.get(&format!("/v1/org/{}/server?page=1&limit=1", self.tenant.org)).await.expect(200);
            actor.get("/v1/nothing").await.expect(404);
        }
    }
}

async fn stops(mut serving: Serving) {
    serving.terminate();
    assert_eq!(serving.ended().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn once_a_service_works_without_a_reader_of_its_log() {
    let installation = Installation::new();
    for (name, log) in [("full", full().into()), ("gone", gone())] {
        let serving = installation.program.serve_logging_to(log);
        let actor = serving.actor(&installation.tenant);
        installation.works(&actor, name).await;
        let lost = installation.lost().await;
        assert!(
            (15..100_000).contains(&lost),
            "{name}: {lost}; each request logs something, and a lost line nothing"
        );
        stops(serving).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn once_a_service_works_while_its_log_is_not_read() {
    let installation = Installation::new();
    let (unread, log) = pipe().unwrap();
    let serving = installation.program.serve_logging_to(log);
    let actor = serving.actor(&installation.tenant);
    let mut round = 0;
    until("the pipe and the queue are full", async || {
        round += 1;
        installation.works(&actor, &round.to_string()).await;
        installation.lost().await > 0
    })
    .await;
    // The log is read again, and reports the lost lines.
    let reading = std::thread::spawn(move || says_what_is_missing(unread));
    found(async || {
        actor.get("/v1/nothing").await.expect(404);
        reading.is_finished().then_some(())
    })
    .await
    .expect("it says so");
    let unread = reading.join().unwrap();
    // The reader stands still again, until the end.
    let before = installation.lost().await;
    until("they are full again", async || {
        installation.works(&actor, &format!("again {round}")).await;
        round += 1;
        installation.lost().await > before
    })
    .await;
    stops(serving).await;
    drop(unread);
}

/// Reads until the log says that lines were lost.
fn says_what_is_missing(log: PipeReader) -> PipeReader {
    let mut log = BufReader::new(log);
    let mut line = String::new();
    while !line.contains("log.lines_lost") {
        line.clear();
        assert_ne!(log.read_line(&mut line).unwrap(), 0);
    }
    log.into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn once_a_log_is_whole_at_the_end() {
    let program = Program::new(&[("MUSTER_LOG", "info")]);
    let (mut log, written) = pipe().unwrap();
    let serving = program.serve_logging_to(written);
    stops(serving).await;
    let mut text = String::new();
    log.read_to_string(&mut text).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines.iter().any(|line| line.contains("serve.ready")), "{text}");
    assert!(lines.last().unwrap().contains("serve.stopped"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn once_a_host_works_without_a_reader_of_its_log() {
    let program = Program::new(&[("MUSTER_LOG", "off")]);
    let tenant = program.tenant();
    let address = Address::free();
    let mut serving = program.serve_at(address.as_str());
    let actor = serving.actor(&tenant);
    let made =
        actor.post(&format!("/v1/org/{}/server", tenant.org), json!({ "name": "m" })).await.expect(201);
    let mut machine = Machine::new().with("RUST_LOG", "trace");
    machine.join(&serving.base, made["provisioning_token"].as_str().unwrap());
    let path = format!("/v1/org/{}/server?page=1&limit=1", tenant.org);
    for log in [full().into(), gone()] {
        machine.run_logging_to(log);
        // The host connects, and reconnects after the service was away.
        for _ in 0..2 {
            let connected = async || actor.get(&path).await.body["data"][0]["status"] == "ONLINE";
            until("the host is connected", connected).await;
            stops(serving).await;
            serving = program.serve_at(address.as_str());
        }
        assert_eq!(machine.ends().await, Some(0));
    }
    tokio::time::timeout(Duration::from_secs(60), stops(serving)).await.unwrap();
}

#[test]
fn once_what_a_command_can_not_print_is_an_error() {
    let program = Program::new(&[("MUSTER_LOG", "off")]);
    let tenant = program.tenant();
    let org = tenant.org.to_string();
    let make = ["token", "create", "--org", &org, "--name", "lost", "--all"];
    let fails = |arguments: &[&str], log: bool| {
        let ran = program.command(arguments).stdout(full()).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(
            log || said.contains("Standard output can't be written: No space left"),
            "{arguments:?}: {said}"
        );
        // A reader that is gone has read all that it wanted, so the program must not panic.
        if arguments[0] != "token" {
            let ran = program.command(arguments).stdout(gone()).output().unwrap();
            assert_ne!(ran.status.code(), Some(101), "{arguments:?}");
        }
        said
    };
    for arguments in [
        &["org", "list"][..],
        &["org", "list", "--json"],
        &["doctor"],
        &["audit", "verify"],
        &["policy", "history", "--org", &org],
        &["key", "list"],
        &["--help"],
        &["--version"],
        &["version"],
        &["unit"],
        &["token", "--help"],
        &["host", "--help"],
        &["host", "doctor", "--dir", "/tmp/nowhere"],
    ] {
        fails(arguments, false);
    }
    fails(&["agent", "--help"], true);
    fails(&["shim", "--help"], true);
    // The error names the records that exist now, and how to remove them.
    let said = fails(&make, false);
    let said_json = fails(&[&make[..], &["--json"]].concat(), false);
    let tokens = program.json(&["token", "list", "--org", &org])["tokens"].clone();
    let lost = tokens.as_array().unwrap().iter().filter(|token| token["name"] == "lost");
    // The newest is listed first.
    for (said, token) in [said_json, said].iter().zip(lost) {
        let revoke = format!("muster token revoke --org {org} --id {}", token["id"]);
        assert!(said.contains(&revoke), "{said}\n{tokens}");
    }
    for (arguments, named) in [
        (&["org", "create", "--name", "Lost", "--owner-email", "b@example.org"][..], "Organization 2 exists"),
        (&["session", "create", "--email", "a@example.org", "--link"], "The link is lost"),
        (
            &["member", "invite", "--org", &org, "--email", "c@example.org", "--role", "VIEWER", "--link"],
            "Invitation",
        ),
    ] {
        let ran = program.command(arguments).stdout(full()).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(1) && said.contains(named), "{arguments:?}: {said}");
    }
}
