//! Servers and images: operations 1 to 3, and what the panel adds.

use std::{collections::BTreeMap, time::Duration};

use muster::{
    base::{enums::ApprovalKind, ids::ServerId},
    domain::approvals::{self, NewApproval},
};
use serde_json::{Value, json};

use crate::{gateway::delete_server, harness::TestApp};

#[tokio::test]
async fn a_server_is_created_with_a_token_that_is_shown_once() {
    let app = TestApp::start().await;
    let path = format!("/v1/org/{}/server", app.org);
    let body = json!({ "name": "  rack-1 ", "region": "eu", "labels": { "zone": "a" } });
    let created = app.owner.post(&path, body).await.expect(201);
    assert_eq!(created["name"], "rack-1");
    assert_eq!(created["status"], "PENDING");
    assert_eq!(created["labels"], json!({ "zone": "a" }));
    assert_eq!(created["has_provisioning_token"], true);
    assert_eq!(created["agent_count"], 0);
    let token = created["provisioning_token"].as_str().unwrap();
    assert!(token.starts_with("mst_prov_"), "{token}");

    let listed = app.owner.get(&format!("{path}?page=1&limit=10")).await;
    assert!(!listed.text.contains(token), "the token is shown once");
    assert_eq!(listed.body["total"], 1);
    assert_eq!(listed.body["data"][0].get("provisioning_token"), None);
}

#[tokio::test]
async fn of_many_concurrent_claims_on_a_name_one_succeeds() {
    let app = TestApp::start().await;
    let path = format!("/v1/org/{}/server", app.org);
    let answers =
        futures::future::join_all((0..8).map(|_| app.owner.post(&path, json!({ "name": "rack" })))).await;
    let (made, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 201);
    assert_eq!(made.len(), 1);
    for answer in refused {
        assert_eq!(answer.problem(), (409, "NAME_TAKEN"));
    }
    let theirs = format!("/v1/org/{}/server", app.other_org);
    app.stranger.post(&theirs, json!({ "name": "rack" })).await.expect(201);
}

#[tokio::test]
async fn a_new_token_replaces_the_old_one() {
    let app = TestApp::start().await;
    let path = format!("/v1/org/{}/server", app.org);
    let created = app.owner.post(&path, json!({ "name": "rack" })).await.expect(201);
    let id = created["id"].as_i64().unwrap();
    let sql = "SELECT provisioning_token_hash FROM servers WHERE organization_id = $1 AND id = $2";
    let before: Vec<u8> = app.one(sql, vec![app.org.into(), id.into()]).await;
    app.clock.advance(Duration::from_mins(1));

    let renewed =
        app.admin.post(&format!("{path}/{id}/regenerate-provisioning-token"), Value::Null).await.expect(201);
    assert_ne!(renewed["provisioning_token"], created["provisioning_token"]);
    assert_ne!(renewed["updated_at"], created["updated_at"]);
    let after: Vec<u8> = app.one(sql, vec![app.org.into(), id.into()]).await;
    assert_ne!(before, after);
}

#[tokio::test]
async fn wrong_values_are_all_named() {
    let app = TestApp::start().await;
    let path = format!("/v1/org/{}/server", app.org);
    let wrong = json!({ "nmae": "x", "hostname": "h".repeat(256), "region": 7, "labels": { "a/b": 1 } });
    let refused = app.owner.post(&path, wrong).await;
    let mut violations = refused.violations();
    violations.sort_unstable();
    assert_eq!(
        violations,
        [
            ("/hostname", "TOO_LONG"),
            ("/labels/a~1b", "WRONG_TYPE"),
            ("/name", "REQUIRED"),
            ("/nmae", "UNKNOWN_KEY"),
            ("/region", "WRONG_TYPE"),
        ]
    );
    assert!(refused.text.contains("did you mean `name`?"), "{}", refused.text);
    assert_eq!(app.owner.post(&path, json!({ "name": "   " })).await.violations(), [("/name", "TOO_SHORT")]);
    let nul = app.owner.post(&path, json!({ "name": "a\0b" })).await;
    assert_eq!(nul.violations(), [("/name", "NOT_ALLOWED")]);
    let create = "mutation($o: Id!, $labels: Labels) { createServer(orgId: $o, input: { name: \"n\", labels: $labels }) { id } }";
    let many: BTreeMap<String, &str> = (0..51).map(|n| (n.to_string(), "x")).collect();
    for (labels, at, code, rule) in [
        (json!(["x"]), "/labels", "WRONG_TYPE", "`labels` must be an object whose values are strings."),
        (json!(many), "/labels", "TOO_LONG", "`labels` can have at most 50 labels, not 51."),
        (json!({ "x".repeat(256): "" }), "/labels", "TOO_LONG", "A name in `labels` can have at most 255"),
        (
            json!({ "z": "é".repeat(256) }),
            "/labels/z",
            "TOO_LONG",
            "The label `z` can have at most 255 characters, not 256.",
        ),
        (json!({ "z": "\0" }), "/labels/z", "NOT_ALLOWED", "`z` contains the character U+0000."),
    ] {
        let refused = app.owner.post(&path, json!({ "name": "n", "labels": labels })).await;
        assert_eq!(refused.violations(), [(at, code)], "{}", refused.text);
        assert!(refused.text.contains(rule), "{}", refused.text);
        let refused = app.owner.gql(create, json!({ "o": app.org, "labels": labels })).await;
        assert!(refused.text.contains(rule), "{}", refused.text);
    }
}

#[tokio::test]
async fn pages_are_bounded_and_past_the_end_is_empty() {
    let app = TestApp::start().await;
    for _ in 0..3 {
        app.server().await;
    }
    let list = async |query: &str| app.viewer.get(&format!("/v1/org/{}/server{query}", app.org)).await;
    let first = list("?page=1&limit=2").await.expect(200);
    assert_eq!((first["data"].as_array().unwrap().len(), &first["total"]), (2, &json!(3)));
    let past = list("?page=9&limit=2").await.expect(200);
    assert_eq!(past, json!({ "data": [], "total": 3, "page": 9, "limit": 2 }));
    assert_eq!(list("").await.violations(), [("page", "REQUIRED"), ("limit", "REQUIRED")]);
    assert_eq!(list("?page=0&limit=201").await.violations(), [("page", "TOO_SMALL"), ("limit", "TOO_LARGE")]);
    assert_eq!(list("?page=x&limit=").await.violations(), [("page", "WRONG_TYPE"), ("limit", "WRONG_TYPE")]);
    assert_eq!(list("?page=1&limit=1&limt=2").await.violations(), [("limt", "UNKNOWN_KEY")]);
    assert_eq!(list("?page=1&page=2&limit=1").await.violations(), [("page", "REPEATED")]);
}

#[tokio::test]
async fn the_plan_limits_servers_even_in_a_race() {
    let app = TestApp::start().await;
    app.execute("UPDATE organizations SET max_servers_override = 3 WHERE id = $1", vec![app.org.into()])
        .await;
    let path = format!("/v1/org/{}/server", app.org);
    let attempts = (0..8).map(|n| app.owner.post(&path, json!({ "name": format!("rack {n}") })));
    let answers = futures::future::join_all(attempts).await;
    let made = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(made, 3, "exactly the limit");
    let refused = answers.iter().find(|answer| answer.status != 201).unwrap();
    assert_eq!(refused.problem(), (403, "PLAN_LIMIT_REACHED"));
    assert_eq!(refused.body["details"], json!({ "limit": "max_servers", "max": 3, "used": 3 }));
}

#[tokio::test]
async fn an_edit_keeps_absent_fields_and_clears_null_ones() {
    let app = TestApp::start().await;
    let id = app.server().await;
    let edit = "mutation($o: Id!, $id: Id!, $input: UpdateServerInput!) {
        updateServer(orgId: $o, id: $id, input: $input) { name region description }
    }";
    let vars = |input: Value| json!({ "o": app.org, "id": id, "input": input });
    app.owner.gql(edit, vars(json!({ "region": "eu", "description": "d" }))).await.data();
    let data = app.owner.gql(edit, vars(json!({ "region": null }))).await.data();
    assert_eq!(data["updateServer"]["region"], Value::Null);
    assert_eq!(data["updateServer"]["description"], "d");
    assert_eq!(app.owner.gql(edit, vars(json!({ "name": null }))).await.code(), "VALIDATION_FAILED");
}

#[tokio::test]
async fn a_server_is_deleted_once_its_agents_are_gone() {
    let app = TestApp::start().await;
    app.execute("UPDATE organizations SET max_servers_override = 1", vec![]).await;
    let agent = app.agent().await;
    let home: i64 = app.one("SELECT server_id FROM agents WHERE id = $1", vec![agent.into()]).await;
    let name: String = app.one("SELECT name FROM servers WHERE id = $1", vec![home.into()]).await;
    // Commands for its host, delivered or not, are no reason to keep it.
    app.owner.post(&format!("/v1/org/{}/agent/{agent}/start", app.org), Value::Null).await.expect(200);
    app.execute("UPDATE agents SET status = 'ERROR'", vec![]).await;
    assert_eq!(delete_server(&app, home).await.code(), "IN_USE");
    let delete_agent = "mutation($o: Id!, $id: Id!) { deleteAgent(orgId: $o, id: $id) }";
    app.owner.gql(delete_agent, json!({ "o": app.org, "id": agent })).await.data();
    delete_server(&app, home).await.data();

    assert_eq!(delete_server(&app, home).await.code(), "NOT_FOUND");
    let get = "query($o: Id!, $id: Id!) { server(orgId: $o, id: $id) { id } }";
    assert_eq!(app.owner.gql(get, json!({ "o": app.org, "id": home })).await.code(), "NOT_FOUND");
    let path = format!("/v1/org/{}/server", app.org);
    assert_eq!(app.owner.get(&format!("{path}?page=1&limit=9")).await.expect(200)["total"], 0);
    assert_eq!(app.column::<i64>("SELECT id FROM commands").await, [0_i64; 0]);
    let body = json!({ "name": "x", "server_id": home, "image_id": app.image().await });
    let refused = app.owner.post(&format!("/v1/org/{}/agent", app.org), body).await;
    assert_eq!(refused.violations(), [("/server_id", "NOT_FOUND")]);
    // A deleted server no longer counts, and its name is free.
    app.owner.post(&path, json!({ "name": name })).await.expect(201);
}

#[tokio::test]
async fn the_alerts_of_a_deleted_server_are_withdrawn() {
    let app = TestApp::start().await;
    let (gone, stays) = (app.server().await, app.server().await);
    let tx = app.scope().begin().await.unwrap();
    for server in [gone, stays] {
        let new = NewApproval {
            server_id: Some(ServerId(server)),
            ..NewApproval::new(ApprovalKind::ServerAlert, "High load")
        };
        approvals::raise(&tx, new).await.unwrap();
    }
    tx.commit().await.unwrap();
    delete_server(&app, gone).await.data();
    assert_eq!(app.column::<i64>("SELECT server_id FROM approvals WHERE status = 'PENDING'").await, [stays]);
    let ended = "SELECT outcome FROM approvals WHERE status <> 'PENDING'";
    assert_eq!(app.column::<String>(ended).await, ["WITHDRAWN"]);
}

#[tokio::test]
async fn an_agent_does_not_move_onto_a_server_that_is_being_deleted() {
    let app = TestApp::start().await;
    let (server, image) = (app.server().await, app.image().await);
    let old = app.agent().await;
    app.execute(
        "UPDATE agents SET server_id = $1, archived_at = 1 WHERE id = $2",
        vec![server.into(), old.into()],
    )
    .await;
    let body = json!({ "name": "x", "server_id": server, "image_id": image });
    let path = format!("/v1/org/{}/agent", app.org);
    let (deleted, made) = tokio::join!(delete_server(&app, server), app.owner.post(&path, body));
    let is_deleted = deleted.body["errors"].is_null();
    assert_eq!(is_deleted, made.status == 422, "exactly one of them: {deleted:?} {made:?}");
    let sql = "SELECT COUNT(*) FROM agents a JOIN servers s ON s.id = a.server_id \
               WHERE a.archived_at IS NULL AND s.archived_at IS NOT NULL";
    assert_eq!(app.one::<i64>(sql, vec![]).await, 0);
}

#[tokio::test]
async fn relations_need_their_own_permission() {
    let app = TestApp::start().await;
    app.agent().await;
    let query = "query($o: Id!) { servers(orgId: $o, page: 1, limit: 5) { data { id agents { id name } } } }";
    let token = app.token(&["server.view"]).await;
    assert_eq!(token.gql(query, json!({ "o": app.org })).await.code(), "PERMISSION_DENIED");
    let token = app.token(&["server.view", "agent.view"]).await;
    let data = token.gql(query, json!({ "o": app.org })).await.data();
    assert_eq!(data["servers"]["data"][0]["agents"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn images_are_created_edited_and_archived() {
    let app = TestApp::start().await;
    let create =
        "mutation($o: Id!, $input: CreateImageInput!) { createImage(orgId: $o, input: $input) { id } }";
    let input = json!({ "name": "agent", "reference": "registry.example/agent:1", "defaultModel": "m-1" });
    let made = app.admin.gql(create, json!({ "o": app.org, "input": input })).await.data();
    let id = made["createImage"]["id"].clone();
    let archive = "mutation($o: Id!, $id: Id!) { archiveImage(orgId: $o, id: $id) { archivedAt } }";
    let done = app.admin.gql(archive, json!({ "o": app.org, "id": id })).await.data();
    assert!(done["archiveImage"]["archivedAt"].is_string());
    let edit = "mutation($o: Id!, $id: Id!, $input: UpdateImageInput!) { updateImage(orgId: $o, id: $id, input: $input) { id } }";
    let edited = app.admin.gql(edit, json!({ "o": app.org, "id": id, "input": { "name": "x" } })).await;
    assert_eq!(edited.code(), "ARCHIVED");
    let list = "query($o: Id!, $all: Boolean!) { images(orgId: $o, includeArchived: $all) { id } }";
    let images = async |all: bool| app.viewer.gql(list, json!({ "o": app.org, "all": all })).await.data();
    assert!(!images(false).await["images"].to_string().contains(&format!("\"id\":{id}}}")));
    assert!(images(true).await["images"].to_string().contains(&format!("\"id\":{id}}}")));
}

#[tokio::test]
async fn an_edit_racing_a_deletion_does_not_change_a_deleted_record() {
    let app = TestApp::start().await;
    let rename = "mutation($o: Id!, $i: Id!, $n: String!) { updateServer(orgId: $o, id: $i, input: { name: $n }) { name } }";
    for n in 0..20 {
        let server = app.server().await;
        let name = format!("renamed {n}");
        let _answers = tokio::join!(
            delete_server(&app, server),
            app.owner.gql(rename, json!({ "o": app.org, "i": server, "n": name })),
        );
        let gone = "SELECT CAST(COUNT(*) AS BIGINT) FROM servers WHERE name = $1 AND archived_at IS NOT NULL";
        assert_eq!(app.one::<i64>(gone, vec![name.into()]).await, 0, "round {n}");
    }
}
