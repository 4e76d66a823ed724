//! A control plane is restored from a backup, and its hosts begin again: the steps of docs/backups.md, as they stand there.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use serde_json::{Value, json};

use crate::{
    agents::running::House,
    harness::{
        Crew, Machine, TestApp, found,
        gateway::{Host, host_token, machine},
    },
};

/// Stand-ins for a service manager and `sudo`. The first one knows one unit, whose process is in a file.
const SYSTEMCTL: &str = r#"#!/bin/sh
case "$1 $2" in
"start muster-host") muster host run --dir DIR >>DIR/log 2>&1 </dev/null & echo $! >DIR/unit.pid ;;
"stop muster-host")
    pid=$(cat DIR/unit.pid)
    kill "$pid"
    while grep -qs '^State:[^Z]*$' "/proc/$pid/status"; do sleep 0.05; done ;;
*) echo "unknown: $*" >&2; exit 1 ;;
esac
"#;
const SUDO: &str = "#!/bin/sh\n[ \"$1\" = -u ] && shift 2\nexec \"$@\"\n";

/// The commands below a heading of the manual.
fn steps(heading: &str) -> String {
    let manual = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/backups.md")).unwrap();
    let (_, below) = manual.split_once(heading).unwrap_or_else(|| panic!("there is no {heading}"));
    let (_, block) = below.split_once("```sh\n").expect("it has commands");
    block.split_once("```").expect("they end").0.to_owned()
}

/// Types them, in a shell that finds `muster`, on a machine whose host's folder is this one's.
fn types(machine: &Machine, commands: &str) -> String {
    let (dir, bin) = (machine.folder().to_str().unwrap(), machine.folder().join("bin"));
    fs::create_dir_all(&bin).unwrap();
    for (name, text) in [("systemctl", SYSTEMCTL), ("sudo", SUDO)] {
        fs::write(bin.join(name), text.replace("DIR", dir)).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let program = Path::new(env!("CARGO_BIN_EXE_muster")).parent().unwrap();
    let path = format!("{}:{}:/usr/bin:/bin", bin.display(), program.display());
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", &commands.replace("/var/lib/muster-host", dir)]).env_clear().env("PATH", path);
    let ran = shell.output().unwrap();
    let said = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(ran.status.success(), "{}: {said}", ran.status);
    said
}

async fn server(house: &House) -> Value {
    let query = "query($o: Id!) { servers(orgId: $o, page: 1, limit: 1) { data { id status refusal { code reason } } } }";
    house.gql(query, json!({})).await["servers"]["data"][0].clone()
}

async fn another_agent(house: &House, server: &Value, name: &str) -> i64 {
    let agent = json!({ "name": name, "server_id": server["id"], "image_id": null });
    let path = format!("/v1/org/{}/agent", house.tenant.org);
    house.actor.post(&path, agent).await.expect(201)["id"].as_i64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_hosts_come_back_after_a_restore_as_the_manual_says() {
    let mut house = House::open().await;
    let mut crew = house.crew("remembering").await;
    crew.machine.kill();
    types(&crew.machine, "systemctl start muster-host");
    house.starts(&crew).await;
    let kept = house.says(&crew, "Before the backup").await;
    assert_eq!(house.rests(kept).await, ["DONE"]);
    let place = tempfile::tempdir().unwrap();
    let backup = place.path().join("backup.tar").display().to_string();
    house.program.json(&["backup", "--out", &backup]);

    // The restore will lose these: turns, a start, two agents with homes.
    for text in ["After it", "And once more"] {
        let lost = house.says(&crew, text).await;
        assert_eq!(house.rests(lost).await, ["DONE"]);
    }
    let restart = "mutation($o: Id!, $a: Id!) { restartAgent(orgId: $o, id: $a) { id } }";
    house.gql(restart, json!({ "a": crew.agent })).await;
    let known = crew.agent;
    let on = server(&house).await;
    let lost = [another_agent(&house, &on, "lost").await, another_agent(&house, &on, "lost, too").await];
    let folder = crew.machine.folder().to_owned();
    let home = |agent: i64| folder.join(format!("agents/{agent}/home"));
    for agent in lost {
        crew.agent = agent;
        house.starts(&crew).await;
        fs::write(home(agent).join("of-the-lost"), "canary").unwrap();
    }
    fs::write(home(known).join("of-the-known"), "canary").unwrap();
    crew.agent = known;
    crew.until(&house.actor, house.tenant.org, "RUNNING").await;
    house.falls();
    house.restores(&backup);
    house.rises();

    let refused = async || Some(server(&house).await).filter(|server| server["refusal"].is_object());
    let Some(refused) = found(refused).await else { panic!("nothing shows\n{}", crew.machine.log()) };
    assert_eq!(refused["refusal"]["code"], "RESTORED");
    let reason = refused["refusal"]["reason"].as_str().unwrap();
    let numbers: Vec<i64> = reason.split([' ', ',', '.']).filter_map(|word| word.parse().ok()).collect();
    assert!(matches!(numbers[..], [has, knows] if has > knows && knows > 0), "{reason}");
    assert!(reason.contains("older backup") && reason.contains("`muster host rejoin`"), "{reason}");
    let is_told = async || crew.machine.log().contains(reason).then_some(());
    assert!(found(is_told).await.is_some(), "{}", crew.machine.log());

    // The number of a lost agent is given to another one before its host begins again, that of the other one afterwards.
    let early = another_agent(&house, &refused, "early").await;
    assert_eq!(early, lost[0], "numbers begin where the backup ends");
    let said = types(&crew.machine, &steps("### After a restore, on each host"));
    for part in [
        "The control plane has forgotten ".to_owned(),
        format!("It has forgotten 1 start of agent {known} (agent of remembering)."),
        format!("It does not know the agent {} of this host; another one may have the number.", lost[0]),
        format!("It does not know the agent {} of this host; another one may have the number.", lost[1]),
        format!("Agent {known} (launch 2) has ended."),
        format!("Agent {} (launch 1) has ended.", lost[0]),
        "\"remembering\"".to_owned(),
    ] {
        assert!(said.contains(&part), "{part}: {said}");
    }
    let is_online = async || Some(server(&house).await).filter(|server| server["status"] == "ONLINE");
    let Some(online) = found(is_online).await else { panic!("not online\n{}", crew.machine.log()) };
    assert_eq!(online["refusal"], Value::Null);
    // The restored record says that the agent runs; the host says that it does not, and it comes back.
    house.adds(kept, "Are you there?").await;
    house.hears(&crew, kept, "Are you there?").await;
    assert!(home(known).join("of-the-known").exists(), "its home is kept");
    assert!(crew.machine.folder().join("host.toml").exists(), "and what the owner allows");
    let lines = "query($o: Id!) { auditLog(orgId: $o, page: 1, limit: 5, operation: \"rejoinServer\") { data { changes } } }";
    let lines = house.owner().gql(lines, json!({ "o": house.tenant.org })).await.data();
    assert_eq!(lines["auditLog"]["data"].as_array().unwrap().len(), 1, "{lines}");

    assert_eq!(another_agent(&house, &online, "late").await, lost[1]);
    let aside = fs::read_dir(folder.join("before")).unwrap().next().unwrap().unwrap().path();
    for agent in lost {
        crew.agent = agent;
        house.starts(&crew).await;
        assert!(!home(agent).join("of-the-lost").exists(), "the one that has the number now finds nothing");
        assert!(aside.join(format!("agents/{agent}/home/of-the-lost")).exists());
    }
    assert!(aside.join("journal.redb").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_the_database_does_not_know_shows_a_new_token() {
    let (house, mut crew) = House::with_crew("unknown").await;
    let rejoin = |crew: &Crew, options: &[&str], token: Option<&str>| {
        let mut command = crew.machine.command(&["rejoin"]);
        command.args(options).stdin(token.map_or_else(std::process::Stdio::null, |token| {
            let file = crew.machine.folder().join("token");
            fs::write(&file, token).unwrap();
            fs::File::open(file).unwrap().into()
        }));
        let ran = command.output().unwrap();
        (
            ran.status.success(),
            [ran.stdout, ran.stderr].map(|it| String::from_utf8_lossy(&it).into_owned()).concat(),
        )
    };
    let (done, said) = rejoin(&crew, &[], None);
    assert!(!done && said.contains("A host runs in this folder"), "{said}");
    crew.machine.kill();
    let id = server(&house).await["id"].clone();
    let renew =
        "mutation($o: Id!, $s: Id!) { regenerateProvisioningToken(orgId: $o, id: $s) { provisioningToken } }";
    let renewed = house.gql(renew, json!({ "s": id })).await;
    let token = renewed["regenerateProvisioningToken"]["provisioningToken"].as_str().unwrap().to_owned();
    let (done, said) = rejoin(&crew, &[], None);
    assert!(!done && said.contains("--token-stdin"), "{said}");
    assert!(!crew.machine.processes().is_empty(), "nothing was done: its agent still runs");
    let (done, said) = rejoin(&crew, &["--token-stdin"], Some("mst_prov_no"));
    assert!(!done && said.contains("not complete"), "{said}");
    for _ in 0..2 {
        // The answer may have been lost: it is given again.
        let (done, said) = rejoin(&crew, &["--token-stdin"], Some(&token));
        assert!(done && said.contains("again"), "{said}");
    }
    crew.machine.run();
    let conversation = house.says(&crew, "Are you there?").await;
    house.hears(&crew, conversation, "Are you there?").await;
}

#[tokio::test]
async fn a_host_that_begins_again_learns_what_is_known_of_it() {
    let (app, agent) = TestApp::with_agent().await;
    let host = app.host_of(agent).await;
    app.start_agent(agent).await;
    let mut line = host.connect().await;
    assert_eq!(line.wait_for("COMMAND").await["seq"], 1);
    let through = line.report((agent, 1), json!({ "kind": "SYNCED" })).await;
    line.stored(through).await;
    let (elsewhere, other) = (app.agent().await, app.other_agent().await);
    let created: i64 = app.one("SELECT created_at FROM agents WHERE id = $1", vec![agent.into()]).await;
    let ask = async |token: &str, machine: &Value, agents: Vec<i64>| {
        let again = json!({ "agents": agents, "commands": 7, "acknowledged": 5 });
        let body = json!({ "host_token": host.token, "machine": machine, "again": again });
        app.anonymous.with_bearer(token).post("/gateway/join", body).await
    };
    let answer = ask(&host.token, &host.machine, vec![agent, elsewhere, other, 99_999]).await.expect(200);
    assert_eq!((&answer["organization_id"], &answer["server_id"]), (&json!(app.org), &json!(host.server)));
    let known = answer["known"].clone();
    assert_eq!((&known["commands"], &known["events"]), (&json!(1), &json!(1)));
    let name: String = app.one("SELECT name FROM agents WHERE id = $1", vec![agent.into()]).await;
    assert_eq!(
        known["agents"],
        json!([
            { "agent_id": agent, "created_at": created, "name": name, "generation": 1 },
            { "agent_id": elsewhere, "created_at": created, "name": null, "generation": 0 },
        ]),
        "only the organization's own, and no name of what is on another server"
    );
    // The earlier connection has ended, and the next one has an empty journal.
    line.refused("SUPERSEDED").await;
    let mut line = Host { journal: [0, 0], ..host.clone() }.connect().await;
    assert_eq!(line.welcome["events"], 0);
    let launch = line.wait_for("COMMAND").await;
    assert_eq!(
        (&launch["seq"], &launch["command"]["kind"]),
        (&json!(1), &json!("LAUNCH")),
        "what it had not received"
    );
    for (token, machine) in [(host_token(), host.machine.clone()), (host.token.clone(), machine("another"))] {
        assert_eq!(ask(&token, &machine, vec![]).await.problem(), (401, "UNAUTHENTICATED"));
    }
    let many = ask(&host.token, &host.machine, (0..10_001).collect()).await;
    assert_eq!(many.violations()[0].0, "/again/agents");
    app.provisioning_token(host.server).await;
    assert_eq!(
        ask(&host.token, &host.machine, vec![]).await.problem(),
        (401, "UNAUTHENTICATED"),
        "a new token was made"
    );
}
