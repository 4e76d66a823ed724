//! Going back to an earlier revision of an agent or an earlier version of a skill.

use serde_json::{Value, json};

use crate::{
    agents::revisions::{assign, credential, history, mcp_server, skill, switch, update, versions},
    harness::{Actor, Answer, TestApp},
};

async fn revert(app: &TestApp, actor: &Actor, agent: i64, to: i64) -> Answer {
    let revert = "mutation($o: Id!, $id: Id!, $n: Int!) { revertAgent(orgId: $o, id: $id, revision: $n, reason: \"it was better\") { \
                  revision role name syncPending credentials { id } mcpServers { id } skills { id } } }";
    actor.gql(revert, json!({ "o": app.org, "id": agent, "n": to })).await
}

async fn revert_skill(app: &TestApp, skill: i64, to: i64) -> Answer {
    let revert = "mutation($o: Id!, $id: Id!, $n: Int!) { revertSkill(orgId: $o, id: $id, version: $n, reason: \"so\") { \
                  version content contentHash } }";
    app.operator.gql(revert, json!({ "o": app.org, "id": skill, "n": to })).await
}

#[tokio::test]
async fn an_agent_goes_back_with_all_it_had() {
    let (app, agent) = TestApp::with_agent().await;
    let (tool, key, how, extra) = (
        mcp_server(&app).await,
        credential(&app).await,
        skill(&app, "how").await,
        skill(&app, "extra").await,
    );
    assign(&app, "McpServer", tool, &[agent]).await;
    assign(&app, "Credential", key, &[agent]).await;
    assign(&app, "Skill", how, &[agent]).await;
    let before =
        update(&app, &app.operator, agent, json!({ "role": "old", "cpuOverride": 1.0, "timezone": "UTC" }))
            .await;

    update(
        &app,
        &app.operator,
        agent,
        json!({ "role": "new", "cpuOverride": null, "modelCredential": "kept" }),
    )
    .await;
    assign(&app, "McpServer", tool, &[]).await;
    assign(&app, "Credential", key, &[]).await;
    assign(&app, "Skill", how, &[]).await;
    assign(&app, "Skill", extra, &[agent]).await;
    let edit =
        "mutation($o: Id!, $s: Id!) { updateSkill(orgId: $o, id: $s, input: { content: \"newer\" }) { id } }";
    app.operator.gql(edit, json!({ "o": app.org, "s": how })).await.data();
    app.execute("UPDATE agents SET status = 'RUNNING', sync_pending = FALSE", vec![]).await;
    app.execute("DELETE FROM commands", vec![]).await;

    let number = history(&app, agent).await[0]["revision"].as_i64().unwrap();
    let back = revert(&app, &app.operator, agent, before).await.data()["revertAgent"].clone();
    assert_eq!((&back["revision"], &back["role"]), (&json!(number + 1), &json!("old")));
    assert_eq!(back["syncPending"], true);
    for (kind, id) in [("mcpServers", tool), ("credentials", key), ("skills", how)] {
        assert_eq!(back[kind], json!([{ "id": id }]), "{kind}");
    }
    let newest = history(&app, agent).await.remove(0);
    assert_eq!((&newest["revertsTo"], &newest["reason"]), (&json!(before), &json!("it was better")));
    assert_eq!(newest["operation"], "revertAgent");
    assert_eq!(newest["content"]["cpuOverride"], 1.0);
    assert_eq!(
        newest["content"]["skills"],
        json!([{ "id": how, "version": 2 }]),
        "a skill is what it is now"
    );
    assert_eq!(newest["content"]["hasModelCredential"], true, "what a revision does not contain stays");
    assert_eq!(app.column::<String>("SELECT kind FROM commands").await, ["SYNC"]);
    let audit: Vec<String> =
        app.column("SELECT CAST(changes AS TEXT) FROM audit_lines WHERE operation = 'revertAgent'").await;
    let [audit] = &audit[..] else { panic!("{audit:?}") };
    let audit: Value = serde_json::from_str(audit).unwrap();
    assert_eq!(
        (&audit["reverts_to"], &audit["skills"]),
        (&json!(before), &json!({ "added": [how], "removed": [extra] }))
    );

    let again = revert(&app, &app.operator, agent, number + 1).await.data();
    assert_eq!(again["revertAgent"]["revision"], number + 1, "it is that already");
    assert_eq!(app.column::<String>("SELECT kind FROM commands").await, ["SYNC"]);
}

#[tokio::test]
async fn going_back_is_checked_like_an_edit() {
    let (app, agent) = TestApp::with_agent().await;
    let old: i64 = app.one("SELECT image_id FROM agents WHERE id = $1", vec![agent.into()]).await;
    let name: String = app.one("SELECT name FROM agents WHERE id = $1", vec![agent.into()]).await;
    update(&app, &app.operator, agent, json!({ "imageId": app.image().await })).await;
    update(&app, &app.operator, agent, json!({ "name": "Another" })).await;
    let other = app.agent().await;
    update(&app, &app.operator, other, json!({ "name": name })).await;
    assert_eq!(revert(&app, &app.operator, agent, 2).await.code(), "NAME_TAKEN");
    update(&app, &app.operator, other, json!({ "name": "Free" })).await;

    app.execute("UPDATE agents SET status = 'RUNNING' WHERE id = $1", vec![agent.into()]).await;
    assert_eq!(revert(&app, &app.operator, agent, 1).await.code(), "AGENT_ALREADY_RUNNING");
    app.execute("UPDATE agents SET status = 'STOPPED' WHERE id = $1", vec![agent.into()]).await;
    app.execute("UPDATE images SET archived_at = 1 WHERE id = $1", vec![old.into()]).await;
    let refused = revert(&app, &app.operator, agent, 1).await;
    assert_eq!(refused.code(), "VALIDATION_FAILED");
    let error = &refused.body["errors"][0]["extensions"]["errors"][0];
    assert_eq!(error["detail"], format!("There is no image with id {old}."));
    assert_eq!(error["pointer"], "/revision", "it has no input");

    for missing in [0, 99] {
        let code = revert(&app, &app.operator, agent, missing).await.code();
        assert_eq!(code, if missing == 0 { "VALIDATION_FAILED" } else { "NOT_FOUND" });
    }
    assert_eq!(revert(&app, &app.viewer, agent, 2).await.code(), "PERMISSION_DENIED");
    assert_eq!(history(&app, agent).await.len(), 3, "what is refused leaves nothing");
}

#[tokio::test]
async fn who_may_not_assign_cant_do_it_by_going_back() {
    let (app, agent) = TestApp::with_agent().await;
    let key = credential(&app).await;
    assign(&app, "Credential", key, &[agent]).await;
    update(&app, &app.operator, agent, json!({ "role": "x" })).await;
    let editor = app.token(&["agent.edit", "agent.view"]).await;
    let refused = revert(&app, &editor, agent, 1).await;
    assert_eq!(refused.code(), "PERMISSION_DENIED");
    assert_eq!(refused.body["errors"][0]["extensions"]["details"]["permission"], "credential.edit");
    assign(&app, "Credential", key, &[]).await;
    assert_eq!(revert(&app, &editor, agent, 3).await.code(), "PERMISSION_DENIED");
    let content = history(&app, agent).await[0]["content"].clone();
    assert_eq!((&content["credentials"], &content["role"]), (&json!([]), &json!("x")), "nothing has changed");
    let roles = "mutation($o: Id!, $id: Id!) { revertAgent(orgId: $o, id: $id, revision: 1, reason: \"so\") { role } }";
    let back = editor.gql(roles, json!({ "o": app.org, "id": agent })).await.data();
    assert_eq!(back["revertAgent"]["role"], Value::Null, "the same credentials need no permission");
}

#[tokio::test]
async fn what_is_archived_is_named() {
    let (app, agent) = TestApp::with_agent().await;
    let (how, why) = (skill(&app, "how").await, skill(&app, "why").await);
    assign(&app, "Skill", how, &[agent]).await;
    assign(&app, "Skill", why, &[agent]).await;
    assign(&app, "Skill", how, &[]).await;
    switch(&app, "archiveSkill", how).await;
    let refused = revert(&app, &app.operator, agent, 2).await;
    assert_eq!(refused.wrong_inputs(), [("/revision", "ARCHIVED")]);
    let detail = refused.body["errors"][0]["message"].as_str().unwrap();
    assert_eq!(detail, "The skill `how` is archived. Restore it first.");
    // One that is archived and that the agent did not have then is not changed, for when it is restored.
    switch(&app, "archiveSkill", why).await;
    revert(&app, &app.operator, agent, 1).await;
    switch(&app, "unarchiveSkill", why).await;
    let skills = json!([{ "id": why, "version": 1 }]);
    assert_eq!(history(&app, agent).await[0]["content"]["skills"], skills);
}

#[tokio::test]
async fn a_skill_goes_back_and_its_agents_hear_of_it() {
    let (app, agent) = TestApp::with_agent().await;
    let how = skill(&app, "how").await;
    assign(&app, "Skill", how, &[agent]).await;
    let edit = "mutation($o: Id!, $s: Id!, $i: UpdateSkillInput!) { updateSkill(orgId: $o, id: $s, input: $i) { contentHash } }";
    let edited =
        json!({ "o": app.org, "s": how, "i": { "content": "worse", "effort": "LOW", "name": "worse" } });
    app.operator.gql(edit, edited).await.data();
    app.marked_agents().await;
    let back = revert_skill(&app, how, 1).await.data();
    assert_eq!(
        (&back["revertSkill"]["version"], &back["revertSkill"]["content"]),
        (&json!(3), &json!("how"))
    );
    assert_eq!(app.marked_agents().await, [agent]);
    let newest = &versions(&app, how).await[0];
    assert_eq!((&newest["revertsTo"], &newest["reason"]), (&json!(1), &json!("so")));
    let revision = history(&app, agent).await.remove(0);
    assert_eq!(revision["content"]["skills"], json!([{ "id": how, "version": 3 }]));
    assert_eq!((&revision["revertsTo"], &revision["operation"]), (&Value::Null, &json!("revertSkill")));
    assert_eq!(revert_skill(&app, how, 3).await.data()["revertSkill"]["version"], 3);
    assert_eq!(revert_skill(&app, how, 4).await.code(), "NOT_FOUND");
    skill(&app, "worse").await;
    assert_eq!(revert_skill(&app, how, 2).await.code(), "NAME_TAKEN");
    switch(&app, "archiveSkill", how).await;
    assert_eq!(revert_skill(&app, how, 2).await.code(), "ARCHIVED");
}
