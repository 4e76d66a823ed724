//! `muster agent`, `approval` and `server`: the real program against a running service, with tokens of its own.

use muster::{
    base::enums::ApprovalKind,
    domain::approvals::{self, NewApproval, Question, ToolRequest},
};
use serde_json::{Value, json};

use crate::harness::{Actor, Ran, TestApp, muster};

/// A command with this actor's token, in the organization unless the arguments say otherwise.
pub async fn as_caller(app: &TestApp, actor: &Actor, arguments: &[&str], more: &[(String, String)]) -> Ran {
    let own = [
        ("MUSTER_URL", app.base.clone()),
        ("MUSTER_TOKEN", actor.bearer().to_owned()),
        ("MUSTER_ORG", app.org.to_string()),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value));
    muster(arguments, &own.into_iter().chain(more.iter().cloned()).collect::<Vec<_>>()).await
}

async fn run(app: &TestApp, actor: &Actor, arguments: &[&str]) -> Ran {
    as_caller(app, actor, arguments, &[]).await
}

async fn raise(app: &TestApp, new: NewApproval) -> String {
    let tx = app.scope().begin().await.unwrap();
    let id = approvals::raise(&tx, new).await.unwrap();
    tx.commit().await.unwrap();
    id.0.to_string()
}

fn agents(listed: &Value) -> Vec<(&str, &str)> {
    let all = listed["agents"].as_array().unwrap();
    all.iter().map(|agent| (agent["name"].as_str().unwrap(), agent["status"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn agents_are_listed_started_and_stopped_by_name() {
    let app = TestApp::start().await;
    app.execute("UPDATE plans SET max_agents = 101, max_servers = 101, max_images = 101", vec![]).await;
    for _ in 0..101 {
        app.agent().await;
    }
    let operator = app.token(&["agent.view", "agent.edit", "agent.output.view"]).await;
    let listed = run(&app, &operator, &["agent", "list"]).await.expect();
    assert_eq!(agents(&listed).len(), 101, "more than a page");
    let (first, second) = (agents(&listed)[0].0.to_owned(), listed["agents"][1]["id"].to_string());
    let started = run(&app, &operator, &["agent", "start", &first, &second]).await.expect();
    assert!(agents(&started).iter().all(|(_, status)| *status == "SPAWNING"), "{started:#}");
    let spawning = run(&app, &operator, &["agent", "list", "--status", "spawning"]).await.expect();
    assert_eq!(agents(&spawning).len(), 2);
    let unknown = run(&app, &operator, &["agent", "list", "--status", "foo"]).await.refused(2, "USAGE");
    assert!(unknown.contains("STOPPED, SPAWNING"), "{unknown}");
    let shown = run(&app, &operator, &["agent", "show", &first]).await.expect();
    assert_eq!((&shown["name"], &shown["status"]), (&json!(first), &json!("SPAWNING")), "{shown:#}");
    let launches = run(&app, &operator, &["agent", "launches", &first]).await.expect();
    assert_eq!(launches["launches"][0]["generation"], 1);
    // What is refused, and what was done before it.
    let said = run(&app, &operator, &["agent", "stop", &first, "unknown"]).await.refused(1, "NOT_FOUND");
    assert_eq!(said, "There is no agent `unknown`. `muster agent list` shows all.");
    let said = run(&app, &operator, &["agent", "pause", &first]).await.refused(1, "AGENT_NOT_RUNNING");
    assert!(said.starts_with(&format!("{first:?}: ")), "{said}");
    let viewer = app.token(&["agent.view"]).await;
    let said = run(&app, &viewer, &["agent", "stop", &first]).await.refused(1, "PERMISSION_DENIED");
    assert!(said.contains("agent.edit"), "{said}");
}

#[tokio::test]
async fn requests_are_decided_from_the_command_line() {
    let app = TestApp::start().await;
    let request = ToolRequest { tool: "send_mail".into(), input: json!({ "to": "port@example.com" }) };
    let action = || NewApproval {
        request: Some(request.clone()),
        risk: Some(70),
        ..NewApproval::new(ApprovalKind::Action, "Send mail")
    };
    let options = [("air", "By air"), ("sea", "By sea")];
    let options = options.map(|(id, label)| approvals::Choice {
        id: id.into(),
        label: label.into(),
        description: None,
    });
    let question =
        Question { text: "How?".into(), options: options.to_vec(), multiple: false, allow_text: true };
    let question =
        NewApproval { question: Some(question), ..NewApproval::new(ApprovalKind::Question, "Route") };
    let (good, bad) = (raise(&app, action()).await, raise(&app, action()).await);
    let (asked, old) = (raise(&app, question).await, raise(&app, action()).await);
    let token = app.token(&["approval.view", "approval.resolve"]).await;
    let run = async |arguments: &[&str]| run(&app, &token, arguments).await;
    assert_eq!(run(&["approval", "list"]).await.expect()["approvals"].as_array().unwrap().len(), 4);
    let shown = run(&["approval", "show", &asked]).await.expect();
    assert_eq!(shown["question"]["options"][1]["label"], "By sea", "{shown:#}");
    for (arguments, outcome) in [
        (&["approval", "approve", &good][..], "APPROVED"),
        (&["approval", "deny", &bad], "DENIED"),
        (&["approval", "answer", &asked, "--option", "air", "--text", "soon"], "ANSWERED"),
        (&["approval", "dismiss", &old, "--comment", "late"], "DISMISSED"),
    ] {
        assert_eq!(run(arguments).await.expect()["outcome"], outcome, "{arguments:?}");
        run(arguments).await.refused(1, "APPROVAL_NOT_PENDING");
    }
    assert_eq!(run(&["approval", "list"]).await.expect()["approvals"], json!([]));
    let all = run(&["approval", "list", "--all"]).await.expect();
    assert_eq!(all["approvals"].as_array().unwrap().len(), 4);
    assert_eq!(run(&["approval", "show", &old]).await.expect()["comment"], "late");
    run(&["approval", "answer", &asked]).await.refused(2, "USAGE");
    let said = run(&["approval", "show", "abc"]).await.refused(2, "USAGE");
    assert!(said.contains("'abc'") && said.contains("an id is a positive integer"), "{said}");
}

#[tokio::test]
async fn a_server_gets_a_new_token_and_shows_it_once() {
    let app = TestApp::start().await;
    let server = app.server().await;
    let token = app.token(&["server.view", "server.edit"]).await;
    let listed = run(&app, &token, &["server", "list"]).await.expect()["servers"][0].clone();
    assert_eq!((&listed["id"], &listed["status"]), (&json!(server), &json!("PENDING")), "{listed:#}");
    let name = listed["name"].as_str().unwrap();
    let issued = run(&app, &token, &["server", "token", name]).await.expect();
    let secret = issued["provisioning_token"].as_str().unwrap();
    assert!(secret.starts_with("mst_"), "{issued:#}");
    let shown = run(&app, &token, &["server", "show", &server.to_string()]).await;
    assert!(shown.good() && !shown.text.contains(secret), "{}", shown.text);
}

#[tokio::test]
async fn a_command_needs_an_address_a_token_and_an_organization() {
    let app = TestApp::start().await;
    let list = ["agent", "list"];
    let said = muster(&list, &[("MUSTER_URL", &app.base)]).await.refused(1, "UNAUTHENTICATED");
    assert!(said.contains("MUSTER_TOKEN is not set"), "{said}");
    let with = |token: &str, more: &[(&str, &str)]| {
        let own = [("MUSTER_URL", app.base.as_str()), ("MUSTER_TOKEN", token)];
        own.iter()
            .chain(more)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect::<Vec<_>>()
    };
    // A person in one organization need not name it; a service token can't ask which it has.
    muster(&list, &with(app.owner.bearer(), &[])).await.expect();
    muster(&list, &with(app.owner.bearer(), &[("MUSTER_ORG", "Meridian Freight")])).await.expect();
    let said = muster(&list, &with(app.owner.bearer(), &[("MUSTER_ORG", "Nowhere")]))
        .await
        .refused(1, "VALIDATION_FAILED");
    assert!(said.contains("not a member"), "{said}");
    let token = app.token(&["agent.view"]).await;
    let said = muster(&list, &with(token.bearer(), &[])).await.refused(1, "VALIDATION_FAILED");
    assert!(said.contains("MUSTER_ORG"), "{said}");
    muster(&list, &with("mst_svc_nonsense", &[("MUSTER_ORG", "1")])).await.refused(1, "UNAUTHENTICATED");
    let other = app.other_org.to_string();
    muster(&list, &with(token.bearer(), &[("MUSTER_ORG", other.as_str())])).await.refused(1, "NOT_A_MEMBER");
    // A token does not leave the machine in clear.
    let far = [("MUSTER_URL", "http://muster.example"), ("MUSTER_TOKEN", "t"), ("MUSTER_ORG", "1")];
    let said = muster(&list, &far).await.refused(1, "VALIDATION_FAILED");
    assert!(said.contains("--insecure-http"), "{said}");
    let nowhere = [("MUSTER_URL", "http://127.0.0.1:9"), ("MUSTER_TOKEN", "t"), ("MUSTER_ORG", "1")];
    let said = muster(&list, &nowhere).await.refused(1, "UNAVAILABLE");
    assert!(said.contains("does not answer"), "{said}");
}
