//! Plans limit what a tenant keeps: the number of things, and the bytes of attachments, pictures, and skills.

use std::time::Duration;

use futures::future::join_all;
use muster::jobs::sweep;
use serde_json::{Value, json};

use crate::harness::{Actor, Answer, PNG, TestApp, is_postgres, picture};

async fn upload(actor: &Actor, org: i64, bytes: usize) -> Answer {
    let path = format!("/v1/org/{org}/attachment?filename=a.bin");
    Answer::of(actor.request(reqwest::Method::POST, &path).body(vec![7; bytes])).await
}

async fn limit(app: &TestApp, name: &str, max: i64) {
    app.execute(&format!("UPDATE plans SET {name} = $1 WHERE plan = 'BUSINESS'"), vec![max.into()]).await;
}

/// The total that the database keeps, and the actual total.
async fn stored(app: &TestApp) -> (i64, i64) {
    let kept = "SELECT COALESCE((SELECT bytes FROM stored_bytes WHERE organization_id = $1), 0)";
    let length = if is_postgres() { "octet_length(content)" } else { "length(CAST(content AS BLOB))" };
    let there = format!(
        "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM (\
         SELECT size_bytes AS bytes FROM attachments WHERE organization_id = $1 \
         UNION ALL SELECT {length} FROM avatars WHERE organization_id = $1 \
         UNION ALL SELECT {length} FROM skills WHERE organization_id = $1) AS kept"
    );
    (app.one(kept, vec![app.org.into()]).await, app.one(&there, vec![app.org.into()]).await)
}

#[tokio::test]
async fn concurrent_uploads_are_accepted_only_while_they_fit() {
    let app = TestApp::start().await;
    limit(&app, "max_stored_mib", 1).await;
    let answers = join_all((0..8).map(|_| upload(&app.operator, app.org, 200 << 10))).await;
    let (taken, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 201);
    assert_eq!(taken.len(), 5, "five times 200 KiB are a mebibyte, six are not");
    for answer in refused {
        assert_eq!(answer.problem(), (403, "PLAN_LIMIT_REACHED"));
        let details = &answer.body["details"];
        assert_eq!(
            (&details["limit"], &details["max"], &details["used"]),
            (&json!("max_stored_mib"), &json!(1), &json!(1))
        );
    }
    assert_eq!(stored(&app).await, (5 * (200 << 10), 5 * (200 << 10)));
    // Another tenant has its own limit.
    assert_eq!(upload(&app.stranger, app.other_org, 200 << 10).await.status, 201);
    // Bytes of unposted files are freed a day later.
    app.clock.advance(Duration::from_hours(25));
    assert_eq!(sweep(&app.core).await.unwrap(), 6);
    assert_eq!(stored(&app).await, (0, 0));
    let org = app.owner.gql(
        "query($o: Id!) { organization(orgId: $o) { storedBytes limits { maxStoredMib } } }",
        json!({ "o": app.org }),
    );
    assert_eq!(
        org.await.data()["organization"],
        json!({ "storedBytes": "0", "limits": { "maxStoredMib": 1 } })
    );
}

#[tokio::test]
async fn pictures_and_skills_count_as_stored() {
    let app = TestApp::start().await;
    let agent = app.agent().await;
    let avatar = "mutation($o: Id!, $id: Id!, $i: AvatarInput!) { setAgentAvatar(orgId: $o, id: $id, input: $i) { id } \
                  setOrganizationAvatar(orgId: $o, input: $i) { id } }";
    let set = |input: Value| app.owner.gql(avatar, json!({ "o": app.org, "id": agent, "i": input }));
    let create = "mutation($o: Id!, $i: CreateSkillInput!) { createSkill(orgId: $o, input: $i) { id } }";
    let update = "mutation($o: Id!, $id: Id!, $i: UpdateSkillInput!) { updateSkill(orgId: $o, id: $id, input: $i) { id } }";
    let skill = json!({ "o": app.org, "i": { "name": "how", "content": "ä".repeat(1000) } });
    let skill = app.operator.gql(create, skill).await.data()["createSkill"]["id"].clone();
    let write = |text: String| {
        app.operator.gql(update, json!({ "o": app.org, "id": skill, "i": { "content": text } }))
    };
    set(picture(PNG)).await.data();
    set(picture(PNG)).await.data();
    write("b".repeat(400_000)).await.data();
    app.operator.gql(update, json!({ "o": app.org, "id": skill, "i": { "description": "x" } })).await.data();
    upload(&app.operator, app.org, 9).await.expect(201);
    let (kept, there) = stored(&app).await;
    assert!(kept == there && kept > 400_000, "{kept} {there}");

    limit(&app, "max_stored_mib", 0).await;
    assert_eq!(set(picture(PNG)).await.code(), "PLAN_LIMIT_REACHED");
    assert_eq!(write("c".repeat(400_001)).await.code(), "PLAN_LIMIT_REACHED");
    let more = json!({ "o": app.org, "i": { "name": "more", "content": "d" } });
    assert_eq!(app.operator.gql(create, more).await.code(), "PLAN_LIMIT_REACHED");
    assert_eq!(stored(&app).await, (kept, there), "what was refused is not counted");
    // Shrinking is always allowed.
    write("e".to_owned()).await.data();
    set(json!({ "contentBase64": null })).await.data();
    assert_eq!(stored(&app).await, (10, 10));
}

/// The usage that the organization reports.
async fn used(app: &TestApp, field: &str) -> i64 {
    let query = format!("query($o: Id!) {{ organization(orgId: $o) {{ used {{ {field} }} }} }}");
    let answer = app.viewer.gql(&query, json!({ "o": app.org })).await;
    answer.data()["organization"]["used"][field].as_i64().unwrap()
}

#[tokio::test]
async fn everything_that_can_be_created_has_a_limit() {
    let app = TestApp::start().await;
    let o = app.org;
    let cases = [
        ("max_credentials", "credentials", "createCredential", "name: $n, kind: \"api-key\", fields: []"),
        ("max_mcp_servers", "mcpServers", "createMcpServer", "name: $n, transport: STDIO, command: \"c\""),
        ("max_skills", "skills", "createSkill", "name: $n, content: \"c\""),
        ("max_images", "images", "createImage", "name: $n, reference: \"r\""),
        (
            "max_service_tokens",
            "serviceTokens",
            "createServiceToken",
            "name: $n, permissions: [\"agent.view\"]",
        ),
        ("max_open_invitations", "openInvitations", "inviteMember", "email: $n, role: VIEWER"),
    ];
    for (name, field, create, input) in cases {
        let table = name.trim_start_matches("max_").trim_start_matches("open_");
        let create = format!(
            "mutation($o: Id!, $n: String!) {{ {create}(orgId: $o, input: {{ {input} }}) {{ __typename }} }}"
        );
        let count = format!("SELECT COUNT(*) FROM {table} WHERE organization_id = {o}");
        let before: i64 = app.one(&count, vec![]).await;
        limit(&app, name, before + 3).await;
        let made = (0..8).map(|n| {
            let value = format!("n{n}@example.com");
            app.owner.gql(&create, json!({ "o": o, "n": value }))
        });
        let answers = join_all(made).await;
        let refused: Vec<_> = answers.iter().filter(|answer| !answer.body["errors"].is_null()).collect();
        assert_eq!(refused.len(), 5, "{name}: {answers:#?}");
        for answer in refused {
            assert_eq!(answer.code(), "PLAN_LIMIT_REACHED", "{name}");
            let details = &answer.body["errors"][0]["extensions"]["details"];
            assert_eq!((&details["limit"], &details["max"]), (&json!(name), &json!(before + 3)));
            assert_eq!(details["used"], before + 3);
        }
        assert_eq!(app.one::<i64>(&count, vec![]).await, before + 3, "{name}");
        assert_eq!(used(&app, field).await, before + 3, "{name}");
    }
    limit(&app, "max_members", 4).await;
    let user = app.user("fifth@example.com", true).await;
    let scope = app.scope();
    let refused = muster::domain::people::add_member(
        &scope,
        muster::base::ids::UserId(user),
        muster::base::permission::Role::Viewer,
    )
    .await;
    assert_eq!(refused.unwrap_err().code, muster::base::problem::Code::PlanLimitReached);
    assert_eq!(used(&app, "members").await, 4);
}

#[tokio::test]
async fn the_operator_changes_a_plan_on_the_command_line() {
    let app = TestApp::start().await;
    let org = app.org.to_string();
    for is_new in [true, false] {
        let ran = app.cli(&["org", "update", "--org", &org, "--plan", "STARTER"]).await.expect();
        assert_eq!((&ran["plan"], &ran["was_changed"]), (&json!("STARTER"), &json!(is_new)));
    }
    let record = app.owner.get(&format!("/v1/org/{org}")).await.expect(200);
    assert_eq!((&record["plan"], &record["limits"]["max_agents"]), (&json!("STARTER"), &json!(10)));
    app.seal().await;
    let log = "query($o: Id!) { auditLog(orgId: $o, page: 1, limit: 9, operation: \"updateOrganization\") \
               { total data { actorKind changes } } }";
    let log = app.owner.gql(log, json!({ "o": app.org })).await.data()["auditLog"].clone();
    let line = &log["data"][0];
    assert_eq!((&log["total"], &line["actorKind"]), (&json!(1), &json!("SYSTEM")));
    assert_eq!(line["changes"]["plan"]["after"], "STARTER");
}
