//! Editing without losing each other's changes: revisions, late edits, late decisions, and what takes a deletion back.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::harness::{Actor, Answer, Spare, TestApp, Walker, good_calls};

/// An edit with a revision, as an operation of this organization.
async fn edit(
    app: &TestApp,
    actor: &Actor,
    name: &str,
    input: &str,
    id: Option<i64>,
    with: (&Value, Option<i64>),
) -> Answer {
    let (declare, pass) = if id.is_some() { (", $id: Id!", ", id: $id") } else { ("", "") };
    let query = format!(
        "mutation($o: Id!{declare}, $input: {input}, $r: Int) {{ \
         {name}(orgId: $o{pass}, input: $input, ifRevision: $r) {{ it: __typename id revision }} }}"
    );
    let mut variables = json!({ "o": app.org, "input": with.0, "r": with.1 });
    if let Some(id) = id {
        variables["id"] = id.into();
    }
    actor.gql(&query, variables).await
}

fn error(answer: &Answer) -> &Value {
    &answer.body["errors"][0]["extensions"]
}

#[tokio::test]
async fn a_late_edit_is_refused_with_the_current_record() {
    let (app, all) = TestApp::populated(4).await;
    let calls = good_calls(&all, Spare::make(&app, &all).await);
    let walker = Walker::new();
    let edits = walker.catalogue.root_fields().filter(|root| root.field.args.contains_key("ifRevision"));
    let mut tried = 0;
    for root in edits {
        let (name, input) = (root.field.name.as_str(), root.field.args["input"].ty.as_str());
        let (_, given) = calls.iter().find(|(call, _)| *call == name).unwrap();
        let id = given["id"].as_i64();
        let run = async |actor: &Actor, input_value: &Value, revision: Option<i64>| {
            edit(&app, actor, name, input, id, (input_value, revision)).await
        };
        let revision = |answer: Answer| answer.data()[name]["revision"].as_i64().unwrap();
        let same = json!({});
        let before = revision(run(&app.owner, &same, None).await);
        assert_eq!(
            revision(run(&app.owner, &same, Some(before)).await),
            before,
            "{name}: nothing has changed"
        );
        let after = revision(run(&app.owner, &given["input"], Some(before)).await);
        assert_eq!(after, before + 1, "{name}");
        let late = run(&app.owner, &given["input"], Some(before)).await;
        assert_eq!(late.code(), "CONFLICT", "{name}: {}", late.text);
        assert!(late.body["data"][name].is_null(), "{name}");
        let details = &error(&late)["details"];
        assert_eq!(details["revision"], after, "{name}: {details}");
        assert_eq!(details["changed_by"], json!({ "id": app.owner.user, "name": "owner" }), "{name}");
        assert!(details["changed_at"].is_string(), "{name}");
        let id = id.unwrap_or(app.org);
        let current = json!({ "it": root.field.ty.trim_end_matches('!'), "id": id, "revision": after });
        assert_eq!(details["current"], current, "{name}: in the mutation's own selection");
        assert_eq!(
            run(&app.owner, &same, Some(after + 1)).await.code(),
            "CONFLICT",
            "{name}: no revision has this number yet"
        );
        assert_eq!(
            revision(run(&app.owner, &same, None).await),
            after,
            "{name}: a refused edit counts nothing"
        );
        tried += 1;
    }
    assert_eq!(tried, 13);
}

#[tokio::test]
async fn only_one_of_many_edits_of_the_same_revision_is_made() {
    let app = TestApp::start().await;
    let server = app.server().await;
    let input = |n: i32| json!({ "region": format!("region {n}") });
    let one = async |n: i32| {
        edit(&app, &app.owner, "updateServer", "UpdateServerInput!", Some(server), (&input(n), Some(0))).await
    };
    let answers = join_all((0..8).map(one)).await;
    let (done, refused): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| answer.body["errors"].is_null());
    assert_eq!((done.len(), refused.len()), (1, 7));
    for answer in refused {
        assert_eq!((answer.code().as_str(), &error(&answer)["details"]["revision"]), ("CONFLICT", &json!(1)));
    }
}

#[tokio::test]
async fn assignments_whitelists_and_archives_count_as_edits() {
    let (app, all) = TestApp::populated(4).await;
    let id = all.credentials[0];
    let revision = async |kind: &str, id: i64| {
        let query = format!("query($o: Id!, $i: Id!) {{ {kind}(orgId: $o, id: $i) {{ revision }} }}");
        app.owner.gql(&query, json!({ "o": app.org, "i": id })).await.data()[kind]["revision"]
            .as_i64()
            .unwrap()
    };
    let run = async |text: &str| {
        let query = format!("mutation($o: Id!, $i: Id!) {{ {text} }}");
        app.owner.gql(&query, json!({ "o": app.org, "i": id })).await.data();
    };
    assert_eq!(revision("credential", id).await, 0);
    run("setCredentialAgents(orgId: $o, id: $i, input: { agentIds: [] }) { id }").await;
    let assigned = revision("credential", id).await;
    run("setCredentialAgents(orgId: $o, id: $i, input: { agentIds: [] }) { id }").await;
    assert_eq!((assigned, revision("credential", id).await), (1, 1));
    run("archiveCredential(orgId: $o, id: $i) { id }").await;
    run("unarchiveCredential(orgId: $o, id: $i) { id }").await;
    assert_eq!(revision("credential", id).await, 3);
    // An edit in `/v1`, by a program.
    let program = app.token(&["credential.edit", "credential.view"]).await;
    let path = format!("/v1/org/{}/credential/{id}", app.org);
    program.patch(&path, json!({ "description": "by a program" })).await.expect(200);
    let input = json!({ "description": "late" });
    let late =
        edit(&app, &app.owner, "updateCredential", "UpdateCredentialInput!", Some(id), (&input, Some(3)))
            .await;
    let by = &error(&late)["details"]["changed_by"];
    assert!(by["name"].as_str().unwrap().starts_with("token"), "{by}");
    let channel = all.channels[0];
    let path = format!("/v1/org/{}/channel/{channel}/whitelist", app.org);
    app.owner.post(&path, json!({ "origin_id": "77" })).await.expect(200);
    assert_eq!(revision("channel", channel).await, 1);
    // A message and a new token are no edits.
    let conversation = all.conversations[0];
    let post = "mutation($o: Id!, $i: Id!) { updateConversation(orgId: $o, id: $i, input: { status: OPEN }) { revision } \
                postMessage(orgId: $o, conversationId: $i, input: { text: \"hi\" }) { id } }";
    let opened = app.owner.gql(post, json!({ "o": app.org, "i": conversation })).await.data();
    assert_eq!(json!(revision("conversation", conversation).await), opened["updateConversation"]["revision"]);
    let server = all.servers[0];
    app.owner
        .post(&format!("/v1/org/{}/server/{server}/regenerate-provisioning-token", app.org), Value::Null)
        .await;
    assert_eq!(revision("server", server).await, 0);
}

#[tokio::test]
async fn a_late_edit_learns_nothing_it_may_not_see() {
    let app = TestApp::start().await;
    let (mine, theirs) = (app.agent().await, app.other_agent().await);
    let input = json!({ "role": "x" });
    let run = async |actor: &Actor, id: i64, revision: i64| {
        edit(&app, actor, "updateAgent", "UpdateAgentInput!", Some(id), (&input, Some(revision))).await
    };
    assert_eq!(run(&app.viewer, mine, 9).await.code(), "PERMISSION_DENIED");
    assert_eq!(run(&app.stranger, mine, 9).await.code(), "NOT_A_MEMBER");
    for answer in [run(&app.owner, theirs, 9).await, run(&app.owner, 999_999, 9).await] {
        assert_eq!(answer.code(), "NOT_FOUND");
        assert!(error(&answer)["details"].is_null(), "{}", answer.text);
    }
}

#[tokio::test]
async fn a_late_decision_shows_who_decided() {
    let (app, all) = TestApp::populated(4).await;
    let selection = "{ id status decidedBy { name kind } comment }";
    for (n, (name, input)) in [
        ("resolveApproval", ""),
        ("answerApproval", ", input: { options: [\"a\"], text: \"so\" }"),
        ("dismissApproval", ""),
    ]
    .into_iter()
    .enumerate()
    {
        let id = all.approvals[0];
        let sql = "UPDATE approvals SET status = 'PENDING', outcome = NULL, expires_at = NULL, decided_by_kind = NULL WHERE id = $1";
        app.execute(sql, vec![id.into()]).await;
        let decide =
            "mutation($o: Id!, $i: Id!) { dismissApproval(orgId: $o, id: $i, comment: \"old\") { id } }";
        let variables = json!({ "o": app.org, "i": id });
        app.operator.gql(decide, variables.clone()).await.data();
        let query =
            format!("mutation($o: Id!, $i: Id!) {{ it: {name}(orgId: $o, id: $i{input}) {selection} }}");
        let late = app.admin.gql(&query, variables).await;
        assert_eq!(late.code(), "APPROVAL_NOT_PENDING", "{n}: {}", late.text);
        let details = &error(&late)["details"];
        assert_eq!(details["status"], "DISMISSED");
        let by = json!({ "name": "operator", "kind": "USER" });
        assert_eq!(
            details["current"],
            json!({ "id": id, "status": "DISMISSED", "decidedBy": by, "comment": "old" })
        );
        let rest = app.admin.patch(&format!("/v1/org/{}/approval/{id}/resolve", app.org), json!({})).await;
        assert_eq!(rest.problem(), (409, "APPROVAL_NOT_PENDING"));
        assert_eq!(rest.body["details"], json!({ "status": "DISMISSED" }), "/v1 answers as ever");
    }
}

const RESTORE: &str = "mutation($o: Id!, $i: Id!) { restoreAgent(orgId: $o, id: $i) { id name status } }";

#[tokio::test]
async fn a_deleted_agent_comes_back_stopped_with_its_channels() {
    let (app, all) = TestApp::populated(2).await;
    let (agent, channel) = (all.agents[0], all.channels[0]);
    app.execute(
        "UPDATE channels SET is_active = TRUE, inactive_reason = NULL, agent_id = $1",
        vec![agent.into()],
    )
    .await;
    app.execute(
        "UPDATE channels SET is_active = FALSE, inactive_reason = 'MANUAL' WHERE id <> $1",
        vec![channel.into()],
    )
    .await;
    app.execute(
        "UPDATE agents SET status = 'ERROR', status_reason = 'OUT_OF_MEMORY' WHERE id = $1",
        vec![agent.into()],
    )
    .await;
    let variables = json!({ "o": app.org, "i": agent });
    let restore = async |actor: &Actor| actor.gql(RESTORE, variables.clone()).await;
    assert_eq!(restore(&app.operator).await.code(), "PERMISSION_DENIED");
    assert_eq!(restore(&app.admin).await.data()["restoreAgent"]["status"], "ERROR", "it was not deleted");
    app.delete_agent(agent).await;
    let active = "SELECT CAST(COUNT(*) AS BIGINT) FROM channels WHERE is_active";
    assert_eq!(app.one::<i64>(active, vec![]).await, 0);

    let name: String = app.one("SELECT name FROM agents WHERE id = $1", vec![agent.into()]).await;
    let other = all.agents[1];
    app.execute("UPDATE agents SET name = $1 WHERE id = $2", vec![name.clone().into(), other.into()]).await;
    assert_eq!(restore(&app.admin).await.code(), "NAME_TAKEN");
    app.execute("UPDATE agents SET name = 'another' WHERE id = $1", vec![other.into()]).await;
    app.execute("UPDATE organizations SET contracted_agents = 1 WHERE id = $1", vec![app.org.into()]).await;
    assert_eq!(restore(&app.admin).await.code(), "PLAN_LIMIT_REACHED");
    app.execute("UPDATE organizations SET contracted_agents = 9 WHERE id = $1", vec![app.org.into()]).await;
    let shown = restore(&app.admin).await.data()["restoreAgent"].clone();
    assert_eq!(shown, json!({ "id": agent, "name": name, "status": "STOPPED" }));
    assert_eq!(app.one::<i64>(active, vec![]).await, 1, "only what its deletion switched off");
    assert!(app.one::<bool>("SELECT is_active FROM channels WHERE id = $1", vec![channel.into()]).await);

    // Without its server it can't run anywhere.
    app.delete_agent(agent).await;
    let gone = "UPDATE servers SET archived_at = 1, name = ' gone' WHERE id = (SELECT server_id FROM agents WHERE id = $1)";
    app.execute(gone, vec![agent.into()]).await;
    assert_eq!(restore(&app.admin).await.code(), "ARCHIVED");
}

#[tokio::test]
async fn an_archived_image_is_offered_again_unless_its_name_is_taken() {
    let app = TestApp::start().await;
    let image = app.image().await;
    let run = async |verb: &str| {
        let query = format!(
            "mutation($o: Id!, $i: Id!) {{ {verb}Image(orgId: $o, id: $i) {{ archivedAt revision }} }}"
        );
        app.admin.gql(&query, json!({ "o": app.org, "i": image })).await
    };
    assert_eq!(run("unarchive").await.data()["unarchiveImage"]["revision"], 0, "it was not archived");
    assert!(run("archive").await.data()["archiveImage"]["archivedAt"].is_string());
    let name: String = app.one("SELECT name FROM images WHERE id = $1", vec![image.into()]).await;
    let other = app.image().await;
    app.execute("UPDATE images SET name = $1 WHERE id = $2", vec![name.into(), other.into()]).await;
    assert_eq!(run("unarchive").await.code(), "NAME_TAKEN");
    app.execute("UPDATE images SET name = 'another' WHERE id = $1", vec![other.into()]).await;
    let shown = run("unarchive").await.data()["unarchiveImage"].clone();
    assert_eq!(shown, json!({ "archivedAt": null, "revision": 2 }));
}
