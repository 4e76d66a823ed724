//! `muster apply` and `muster export` with the real program, against a running service.

use std::fs;

use proptest::{
    collection::vec, option, prelude::*, sample::subsequence, strategy::ValueTree, test_runner::TestRunner,
};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::remote::as_caller;
use crate::harness::{Actor, Program, Ran, TestApp};

/// The exit code of a plan that is not empty.
const NOT_EMPTY: Option<i32> = Some(3);
/// What every secret is in these tests.
const SECRET: &str = "hush-hunter2";

/// A service, and a folder with files.
struct Site {
    app: TestApp,
    folder: TempDir,
}

impl Site {
    async fn new() -> Self {
        Self { app: TestApp::start().await, folder: tempfile::tempdir().unwrap() }
    }

    /// Writes a file and returns its path.
    fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    async fn run(&self, actor: &Actor, arguments: &[&str]) -> Ran {
        as_caller(&self.app, actor, arguments, &[]).await
    }

    /// The plan as the owner gets it: each change with its lines. The exit code says whether there is any.
    async fn plan(&self, arguments: &[&str]) -> Vec<(String, Vec<String>)> {
        let ran = self.run(&self.app.owner, &[&["apply", "--plan"][..], arguments].concat()).await;
        let changes =
            ran.out["changes"].as_array().unwrap_or_else(|| panic!("{}{}", ran.text, ran.err)).clone();
        assert_eq!(ran.code, if changes.is_empty() { Some(0) } else { NOT_EMPTY }, "{}", ran.text);
        let lines = |change: &Value| change["details"].as_array().unwrap().iter().map(words).collect();
        changes.iter().map(|change| (words(&change["change"]), lines(change))).collect()
    }

    async fn titles(&self, arguments: &[&str]) -> Vec<String> {
        self.plan(arguments).await.into_iter().map(|(title, _)| title).collect()
    }

    async fn apply(&self, arguments: &[&str]) {
        self.run(&self.app.owner, &[&["apply"][..], arguments].concat()).await.expect();
        assert_eq!(self.titles(arguments).await, [""; 0], "a second run changes nothing");
    }

    /// What a command refuses, without the folder's name.
    async fn refused(&self, actor: &Actor, arguments: &[&str]) -> String {
        self.fails(actor, arguments, "VALIDATION_FAILED").await
    }

    async fn fails(&self, actor: &Actor, arguments: &[&str], code: &str) -> String {
        let said = self.run(actor, arguments).await.refused(1, code);
        said.replace(&format!("{}/", self.folder.path().display()), "")
    }

    async fn export(&self, actor: &Actor, org: i64, name: &str) -> String {
        let path = self.folder.path().join(name).to_str().unwrap().to_owned();
        let org = ("MUSTER_ORG".to_owned(), org.to_string());
        as_caller(&self.app, actor, &["export", "--out", &path], &[org]).await.expect();
        fs::read_to_string(path).unwrap()
    }
}

fn words(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

const HOUSE: &str = "\
settings:
  timezone: Europe/Berlin
  monthly_budget_micro: 5000000
  default_image: base
images:
  - name: base
    reference: registry.example/agent:1
servers:
  - name: house
    labels: {rack: '7'}
skills:
  - name: triage
    content: |
      # Triage
      Read it.
mcp_servers:
  - name: tickets
    transport: HTTP
    url: https://tickets.example/mcp
credentials:
  - name: mail
    kind: basic-auth
    destinations: [mail.example]
    members: [owner@example.com]
    fields:
      - {label: user, type: text, value: {env: MAIL_USER}}
      - {label: pass, value: {file: pass.txt}}
agents:
  - name: support
    server: house
    image: base
    no_emoji: true
    cpu_override: 0.5
    skills: [triage]
    mcp_servers: [tickets]
    credentials: [mail]
channels:
  - name: in
    agent: support
    transport: WEBHOOK
    direction: INBOUND
    webhook: {inbound_secret: {env: HOOK}}
    whitelist: [b, a]
allowed_hosts: [mail.example, '*.tickets.example:8443']
policy: |
  # Support looks people up.
  p, VIEWER, ORG, contact.view, allow
";

fn variables() -> Vec<(String, String)> {
    ["MAIL_USER", "HOOK"].map(|name| (name.to_owned(), SECRET.to_owned())).to_vec()
}

#[tokio::test]
async fn a_plan_says_in_words_what_changes_and_who_gains_what() {
    let site = Site::new().await;
    let (app, house) = (&site.app, site.file("house.yaml", HOUSE));
    site.file("pass.txt", &format!("{SECRET}\n"));
    let with = async |arguments: &[&str]| as_caller(app, &app.owner, arguments, &variables()).await;
    let planned = with(&["apply", "--plan", &house]).await;
    assert_eq!(planned.code, NOT_EMPTY, "{}{}", planned.text, planned.err);
    let pass = site.folder.path().join("pass.txt").display().to_string();
    let expected = json!([
        { "change": "create image base", "details": ["name: base", "reference: registry.example/agent:1"] },
        { "change": "update the settings", "details": [
            "timezone: UTC → Europe/Berlin", "monthly_budget_micro: nothing → 5000000", "default_image: nothing → base"
        ] },
        { "change": "create server house", "details": ["name: house", "labels: rack=7"] },
        { "change": "create skill triage", "details": ["name: triage", "content: 2 lines"] },
        { "change": "create MCP server tickets", "details": [
            "name: tickets", "transport: HTTP", "url: https://tickets.example/mcp"
        ] },
        { "change": "create credential mail", "details": [
            "name: mail", "kind: basic-auth", "destinations: mail.example",
            "fields: user is added, with the value from the variable MAIL_USER",
            format!("fields: pass is added, with the value from the file {pass}"),
        ] },
        { "change": "set the members who may use credential mail", "details": ["owner@example.com gains it"] },
        { "change": "create agent support", "details": [
            "name: support", "server: house", "image: base", "cpu_override: 0.5", "no_emoji: true"
        ] },
        { "change": "set the agents that have skill triage", "details": ["agent support gains it"] },
        { "change": "set the agents that have MCP server tickets", "details": ["agent support gains it"] },
        { "change": "set the agents that have credential mail", "details": ["agent support gains it"] },
        { "change": "create channel in of support", "details": [
            "agent: support", "name: in", "transport: WEBHOOK", "direction: INBOUND",
            "webhook.inbound_secret: from the variable HOOK"
        ] },
        { "change": "set who may write to channel in of support", "details": ["a may write", "b may write"] },
        { "change": "let agents reach *.tickets.example:8443", "details": [] },
        { "change": "let agents reach mail.example:443", "details": [] },
        { "change": "edit the organization's own rules", "details": ["VIEWER gains contact.view"] },
    ]);
    assert_eq!(planned.out["changes"], expected, "{:#}", planned.out);
    let none: Vec<i64> = app.column("SELECT id FROM agents").await;
    assert_eq!(none, [0; 0], "a plan changes nothing");

    let applied = with(&["apply", &house]).await;
    assert!(applied.good(), "{}", applied.err);
    assert_eq!(applied.out["applied"], true);
    let again = with(&["apply", "--plan", &house]).await;
    assert_eq!((again.code, &again.out["changes"]), (Some(0), &json!([])), "{:#}", again.out);
    // No secret is needed for what is stored, and none is in what the commands say or write.
    assert_eq!(site.titles(&[&house]).await, [""; 0]);
    let exported = site.export(&app.owner, app.org, "out.yaml").await;
    for said in [&planned.text, &planned.err, &applied.text, &again.text, &exported] {
        assert!(!said.contains(SECRET), "{said}");
    }
    assert!(exported.contains("env: CREDENTIAL_MAIL_FIELDS_PASS\n"), "{exported}");
}

#[tokio::test]
async fn drift_is_a_plan_that_is_not_empty() {
    let site = Site::new().await;
    let app = &site.app;
    let (agent, server) = (app.agent().await, app.server().await);
    let exported = site.export(&app.owner, app.org, "now.yaml").await;
    let now = site.file("now.yaml", &exported);
    assert_eq!(site.titles(&[&now]).await, [""; 0]);
    let path = format!("/v1/org/{}", app.org);
    let name = app.one::<String>("SELECT name FROM agents WHERE id = $1", vec![agent.into()]).await;
    let update = "mutation($o: Id!, $id: Id!, $i: UpdateAgentInput!) {
        updateAgent(orgId: $o, id: $id, input: $i) { id } }";
    let edit =
        json!({ "o": app.org, "id": agent, "i": { "networkPrivileged": true, "responseStyle": "CONCISE" } });
    app.owner.gql(update, edit).await.data();
    app.owner.post(&format!("{path}/server"), json!({ "name": "by hand" })).await.expect(201);
    let expected = vec![(
        format!("update agent {name}"),
        ["network_privileged: true → false", "response_style: CONCISE → DEFAULT"].map(str::to_owned).to_vec(),
    )];
    assert_eq!(site.plan(&[&now]).await, expected, "what no file names is left alone");
    let pruned = site.titles(&["--prune", &now]).await;
    assert_eq!(pruned, [format!("update agent {name}"), "remove server by hand".to_owned()]);
    site.apply(&["--prune", &now]).await;
    let names: Vec<String> = app.column("SELECT name FROM servers ORDER BY id").await;
    assert!(!names.contains(&"by hand".to_owned()) && names.len() > 1, "{names:?} {server}");
    assert_eq!(site.export(&app.owner, app.org, "then.yaml").await, exported);
}

#[tokio::test]
async fn every_mistake_is_named_before_anything_changes() {
    let site = Site::new().await;
    let text = "\
servers:
  - name: house
agents:
  - name: a
    server: hause
    image: base
    cpu_override: 5000
    response_style: TERSE
    model_credential: {env: NO_SUCH}
  - name: b
channels:
  - name: in
    agent: c
    transport: PIGEON
    alert_recipients: [unknown@example.org]
";
    let file = site.file("a.yaml", text);
    let said = site.refused(&site.app.owner, &["apply", &file]).await;
    let begins = |line: &str| said.lines().filter(|said| said.starts_with(line)).count();
    for (line, count) in [
        ("a.yaml:5: there is no server `hause`, neither here nor in a file", 1),
        ("a.yaml:6: there is no image `base`", 1),
        ("a.yaml:7: `cpu_override` must be at most 1024", 1),
        ("a.yaml:8: `response_style` must be one of", 1),
        ("a.yaml:9: the variable NO_SUCH is not set", 1),
        ("a.yaml:10: `server` is required", 1),
        ("a.yaml:13: there is no agent `c`", 1),
        ("a.yaml:14: `transport` must be one of", 1),
        ("a.yaml:15: no member has the address unknown@example.org", 1),
    ] {
        assert_eq!(begins(line), count, "{line}\n{said}");
    }
    // A token that may only view is refused, and still sees in a plan what has drifted.
    let good =
        site.file("good.yaml", "servers: [{name: house}]\npolicy: 'p, VIEWER, ORG, contact.view, allow'\n");
    let views = ["agent.view", "server.view", "image.view", "skill.view", "mcp.view", "credential.view"];
    let views = [&views[..], &["organization.view", "member.view", "policy.view"]].concat();
    let said = site.refused(&site.app.token(&views).await, &["apply", &good]).await;
    let expected = "good.yaml:1: to create server house needs server.create, which the caller does not have\n\
                    good.yaml:2: to edit the organization's own rules needs policy.edit, which the caller does not have";
    assert_eq!(said, expected);
    let planned = site.run(&site.app.token(&views).await, &["apply", "--plan", &good]).await;
    assert_eq!(planned.code, NOT_EMPTY);
    let note = json!("to create server house needs server.create, which the caller does not have");
    assert!(planned.out["notes"].as_array().unwrap().contains(&note), "{}", planned.text);
    let said = site.fails(&site.app.token(&["agent.view"]).await, &["export"], "PERMISSION_DENIED").await;
    let all =
        "credential.view, image.view, mcp.view, member.view, organization.view, server.view, skill.view";
    assert!(said.ends_with(&format!("Missing: {all}.")), "{said}");
    // The service judges the rules.
    let bad =
        site.file("bad.yaml", "servers: [{name: house}]\npolicy: 'p, VIEWER, ORG, contact.veiw, allow'\n");
    let said = site.refused(&site.app.owner, &["apply", &bad]).await;
    assert!(said.starts_with("bad.yaml:2: line 1 of the rules: ") && said.contains("contact.view"), "{said}");
    let none: Vec<i64> = site.app.column("SELECT id FROM servers").await;
    assert_eq!(none, [0; 0]);
}

#[tokio::test]
async fn what_a_failure_leaves_is_done_by_the_next_run() {
    let site = Site::new().await;
    let app = &site.app;
    let text = "\
servers: [{name: house}]
images: [{name: base, reference: registry.example/agent:1}]
skills: [{name: s, content: x}]
agents:
  - {name: a, server: house, image: base, skills: [s]}
  - name: b
    server: house
    image: base
    timezone: Nowhere/Land
    skills: [s]
";
    let file = site.file("a.yaml", text);
    let said = site.fails(&app.owner, &["apply", &file], "FAILED").await;
    assert!(said.starts_with("a.yaml:9: could not create agent b: "), "{said}");
    assert!(said.contains("4 changes made, 2 left"), "{said}");
    let names: Vec<String> = app.column("SELECT name FROM agents ORDER BY name").await;
    assert_eq!(names, ["a", "b"], "the agent exists, without what was refused");
    let file = site.file("a.yaml", &text.replace("Nowhere/Land", "Europe/Berlin"));
    assert_eq!(site.titles(&[&file]).await, ["update agent b", "set the agents that have skill s"]);
    site.apply(&[&file]).await;
}

#[tokio::test]
async fn a_running_agent_is_restarted_only_on_request() {
    let site = Site::new().await;
    let (app, agent) = (&site.app, site.app.agent().await);
    app.execute("UPDATE agents SET status = 'RUNNING' WHERE id = $1", vec![agent.into()]).await;
    let exported = site.export(&app.owner, app.org, "now.yaml").await;
    let name = app.one::<String>("SELECT name FROM agents WHERE id = $1", vec![agent.into()]).await;
    let wider = exported.replacen("    server:", "    memory_mb_override: 512\n    server:", 1);
    let file = site.file("wider.yaml", &wider);
    let plan = site.run(&app.owner, &["apply", "--plan", &file]).await.out;
    let note = "and gets memory_mb_override only when it is started again (--restart)";
    assert_eq!(plan["notes"], json!([format!("agent {name} is RUNNING, {note}")]), "{plan:#}");
    let restart = site.titles(&["--restart", &file]).await;
    assert_eq!(restart, [format!("update agent {name}"), format!("restart agent {name}")]);
    let other = app.server().await;
    let moved = app.one::<String>("SELECT name FROM servers WHERE id = $1", vec![other.into()]).await;
    let line = exported.lines().find(|line| line.starts_with("    server: ")).unwrap();
    let file = site.file("moved.yaml", &exported.replace(line, &format!("    server: {moved}")));
    let said = site.refused(&app.owner, &["apply", &file]).await;
    assert!(said.contains("runs: stop it before it gets another server"), "{said}");
}

#[tokio::test]
async fn a_secret_is_written_where_none_is_or_on_request() {
    let site = Site::new().await;
    let (app, file) = (&site.app, site.file("house.yaml", HOUSE));
    site.file("pass.txt", SECRET);
    as_caller(app, &app.owner, &["apply", &file], &variables()).await.expect();
    let sealed = "SELECT value_sealed FROM credential_fields ORDER BY label";
    let before: Vec<Vec<u8>> = app.column(sealed).await;
    let rewritten = as_caller(app, &app.owner, &["apply", "--secrets", &file], &variables()).await.expect();
    let titles: Vec<&str> =
        rewritten["changes"].as_array().unwrap().iter().map(|it| it["change"].as_str().unwrap()).collect();
    assert_eq!(titles, ["update credential mail", "update channel in of support"]);
    let after: Vec<Vec<u8>> = app.column(sealed).await;
    assert!(before.iter().zip(&after).all(|(before, after)| before != after), "both are sealed again");
    let said = site.refused(&app.owner, &["apply", "--secrets", &file]).await;
    assert!(said.contains("house.yaml:26: the variable MAIL_USER is not set"), "{said}");
    site.file("pass.txt", "\n");
    let said = site.refused(&app.owner, &["apply", "--secrets", &file]).await;
    assert!(said.contains("house.yaml:27: pass.txt: the file is empty"), "{said}");
    fs::remove_file(site.folder.path().join("pass.txt")).unwrap();
    let said = site.refused(&app.owner, &["apply", "--secrets", &file]).await;
    assert!(said.contains("house.yaml:27: the file is out of reach: No such file"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn people_read_a_plan_and_a_file() {
    let site = Site::new().await;
    let app = &site.app;
    let file = site.file("a.toml", "[[servers]]\nname = \"house\"\n");
    let org = app.org.to_string();
    let variables =
        [("MUSTER_URL", app.base.as_str()), ("MUSTER_TOKEN", app.owner.bearer()), ("MUSTER_ORG", &org)];
    let program = Program::new(&variables);
    let said = program.run(&["apply", "--plan", &file]).text;
    let expected = "create server house\n    name: house\nNote: server house gets its host with the token that `muster \
                    server token house` issues\n1 change.\n";
    assert_eq!(said, expected);
    assert!(program.run(&["apply", &file]).text.ends_with("1 change. All applied.\n"));
    let said = program.run(&["apply", "--plan", &file]).text;
    assert_eq!(said, "Nothing to change: the organization is as the files say.\n");
    let head = "# An organization, by `muster export`. `muster apply` makes one like it.\n";
    let expected = format!("{head}servers:\n  - name: house\nallowed_hosts: []\npolicy: \"\"\n");
    assert_eq!(program.run(&["export"]).text, expected);
    // JSON is a file too.
    let json = site.file("a.json", &program.json(&["export"]).to_string());
    assert_eq!(site.titles(&[&json]).await, [""; 0]);
}

/// A name that YAML and environments take for something else.
fn name() -> impl Strategy<Value = String> {
    "[A-Za-z0-9ä][ -~é]{0,12}[A-Za-z0-9.:#]".prop_map(|name| name.replace(['/', '\\'], "_"))
}

/// Records with names of their own.
fn named(records: impl Strategy<Value = Value>) -> impl Strategy<Value = Vec<Value>> {
    vec((name(), records), 0..4).prop_map(|all| {
        let name = |(n, (name, mut record)): (usize, (String, Value))| {
            record["name"] = json!(format!("{name}{n}"));
            record
        };
        all.into_iter().enumerate().map(name).collect()
    })
}

/// An object with some of these keys.
fn some_of(all: Vec<(&'static str, Value)>) -> impl Strategy<Value = Value> {
    let most = all.len();
    subsequence(all, 0..=most).prop_map(|some| {
        Value::Object(some.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
    })
}

fn texts() -> impl Strategy<Value = Value> {
    prop_oneof!["[ -~é\n]{1,40}", "([a-z# -]{0,9}\n){1,4}", Just("yes".to_owned())]
        .prop_map(|text| json!(text))
}

prop_compose! {
    /// An organization in the form of files, without what needs a vendor.
    fn organization()(
        settings in some_of(vec![
            ("timezone", json!("Europe/Berlin")), ("monthly_budget_micro", json!(12_000_000)),
            ("budget_action", json!("STOP")), ("chat_risk_limit", json!(0)), ("tax_city", json!("null")),
            ("server_alert_load_factor", json!(1.5)), ("trace_content", json!(true)),
        ]),
        images in named(some_of(vec![("description", json!("x: y # z")), ("default_model", json!("m-1"))])),
        servers in named(some_of(vec![
            ("region", json!("eu")), ("labels", json!({ "a": "1", "b c": "true", "ü": "" })),
        ])),
        skills in named(texts().prop_map(|text| json!({ "content": text }))),
        mcp in named(some_of(vec![("args", json!(["-v", ""])), ("auth", json!(["token"]))])),
        credentials in named(some_of(vec![
            ("destinations", json!(["api.example.com", "*.b.example"])), ("agent_may_read", json!(true)),
            ("fields", json!([
                { "label": "b", "type": "text", "value": { "env": "ANY" } }, { "label": "a" },
                { "label": "c", "value": { "env": "ANY" } },
            ])),
        ])),
        models in named(some_of(vec![("base_url", json!("https://models.example")), ("is_default", json!(true))])),
        agents in named(some_of(vec![
            ("role", json!("on: call")), ("no_emoji", json!(true)), ("cpu_override", json!(2)),
            ("memory_mb_override", json!(512)), ("approval_categories", json!(["money", "no"])),
            ("restart_policy", json!("ALWAYS")), ("language", json!("no")), ("network_privileged", json!(true)),
            ("model_credential", json!({ "env": "ANY" })), ("backup_schedule", json!("DAILY")),
            ("monthly_budget_micro", json!(1)), ("response_style", json!("FORMAL")),
            ("instructions", json!(" first\n second\n")),
        ])),
        channels in vec(some_of(vec![
            ("direction", json!("INBOUND")), ("scope", json!("INTERNAL")), ("is_active", json!(false)),
            ("whitelist", json!(["2", "1", "é"])), ("instructions", json!("first\n second")),
            ("label_whitelist", json!(["z", "a"])), ("destination", json!("Ops: 1")),
        ]), 0..4),
        webhook in some_of(vec![
            ("inbound_secret", json!({ "env": "ANY" })), ("signature_header", json!("x-sign")),
            ("echo_filter", json!({ "actor_paths": ["a.b"], "self_ids": ["1"] })),
        ]),
        hosts in subsequence(vec!["a.example", "*.b.example:8443", "c.example:80"], 0..=3),
        rules in option::of(subsequence(vec!["contact.view", "skill.edit", "mcp.edit"], 1..=2)),
    ) -> Value {
        let mut all = json!({
            "settings": settings, "images": images, "servers": servers, "skills": skills, "mcp_servers": mcp,
            "credentials": credentials, "model_credentials": models, "agents": agents, "channels": channels,
            "allowed_hosts": hosts,
        });
        complete(&mut all, &webhook);
        if let Some(rules) = rules {
            let line = |permission: &&str| format!("p, VIEWER, ORG, {permission}, allow\n");
            all["policy"] = json!(format!("# own\n{}", rules.iter().map(line).collect::<String>()));
        }
        all
    }
}

/// Adds what records need, and what they refer to.
fn complete(all: &mut Value, webhook: &Value) {
    let each = |all: &mut Value, section: &str, add: &dyn Fn(usize, &mut Value)| {
        all[section].as_array_mut().unwrap().iter_mut().enumerate().for_each(|(n, record)| add(n, record));
    };
    let names = |all: &Value, section: &str| -> Vec<Value> {
        all[section].as_array().unwrap().iter().map(|record| record["name"].clone()).collect()
    };
    each(all, "images", &|n, image| image["reference"] = json!(format!("registry.example/agent:{n}")));
    each(all, "skills", &|_, skill| {
        // A folder's name.
        skill["name"] = json!(skill["name"].as_str().unwrap().replace(['.', ':'], "-"));
    });
    each(all, "mcp_servers", &|_, server| {
        server["transport"] = json!("STDIO");
        server["command"] = json!("/opt/mcp/run");
    });
    each(all, "credentials", &|_, credential| credential["kind"] = json!("api-key"));
    each(all, "model_credentials", &|n, model| {
        model["provider"] = json!(format!("provider-{n}"));
        model["secret"] = json!({ "env": "ANY" });
    });
    let (servers, images) = (names(all, "servers"), names(all, "images"));
    if servers.is_empty() || images.is_empty() {
        all["agents"] = json!([]);
    }
    let [skills, mcp, credentials] =
        ["skills", "mcp_servers", "credentials"].map(|section| names(all, section));
    each(all, "agents", &|n, agent| {
        agent["server"] = servers[n % servers.len()].clone();
        agent["image"] = images[n % images.len()].clone();
        agent["skills"] = json!(skills.iter().skip(n).collect::<Vec<_>>());
        agent["mcp_servers"] = json!(mcp.iter().step_by(n + 1).collect::<Vec<_>>());
        agent["credentials"] = json!(credentials.iter().take(n).collect::<Vec<_>>());
    });
    let agents = names(all, "agents");
    if agents.is_empty() {
        all["channels"] = json!([]);
    }
    each(all, "channels", &|n, channel| {
        channel["agent"] = agents[n % agents.len()].clone();
        channel["name"] = json!(format!("hook {n}"));
        channel["transport"] = json!("WEBHOOK");
        channel["webhook"] = webhook.clone();
        channel["webhook"]["outbound_url"] = json!("https://hook.example/in");
    });
    if !images.is_empty() {
        all["settings"]["default_image"] = images[0].clone();
    }
}

#[tokio::test]
async fn an_export_applied_elsewhere_exports_the_same() {
    let mut runner = TestRunner::deterministic();
    for case in 0..8 {
        let generated = organization().new_tree(&mut runner).unwrap().current();
        let site = Site::new().await;
        let (app, first) = (&site.app, site.file("first.json", &generated.to_string()));
        let any = [("ANY".to_owned(), SECRET.to_owned())];
        let applied = as_caller(app, &app.owner, &["apply", &first], &any).await;
        assert!(applied.good(), "case {case}: {}\n{generated:#}", applied.err);
        let exported = site.export(&app.owner, app.org, "a.yaml").await;
        let (file, org) = (site.folder.path().join("a.yaml"), app.other_org.to_string());
        let file = file.to_str().unwrap();
        let secrets = exported.lines().filter_map(|line| line.trim().strip_prefix("env: "));
        let mut variables: Vec<_> = secrets.map(|name| (name.to_owned(), SECRET.to_owned())).collect();
        variables.push(("MUSTER_ORG".to_owned(), org));
        let applied = as_caller(app, &app.stranger, &["apply", file], &variables).await;
        assert!(applied.good(), "case {case}: {}\n{exported}", applied.err);
        let again = site.export(&app.stranger, app.other_org, "b.yaml").await;
        assert_eq!(again, exported, "case {case}");
        let drift = as_caller(app, &app.stranger, &["apply", "--plan", file], &variables).await;
        assert_eq!(drift.code, Some(0), "case {case}: {}", drift.text);
        assert!(!exported.contains(SECRET));
    }
}
