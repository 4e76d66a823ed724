//! Finding records of all kinds, counting them, and knowing what has been read.

use std::collections::BTreeSet;

use muster::{
    base::{enums::MessageRole, permission::Permission},
    graphql,
};
use serde_json::{Value, json};

use crate::{
    channels::{delete, inbound_webhooks::inbound},
    conversations::messages::say,
    harness::{Actor, Socket, TestApp},
};

async fn search(actor: &Actor, org: i64, q: &str) -> Vec<Value> {
    let query = "query($o: Id!, $q: String!) { search(orgId: $o, q: $q, limit: 100) { kind id name detail ref agentId } }";
    let hits = actor.gql(query, json!({ "o": org, "q": q })).await.data()["search"].clone();
    hits.as_array().unwrap().clone()
}

fn kinds(hits: &[Value]) -> BTreeSet<&str> {
    hits.iter().map(|hit| hit["kind"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_record_of_any_kind_is_found_by_name_short_code_or_id() {
    let (app, all) = TestApp::populated(3).await;
    for (table, ids, kind) in [
        ("agents", &all.agents, "AGENT"),
        ("channels", &all.channels, "CHANNEL"),
        ("contacts", &all.contacts, "CONTACT"),
        ("servers", &all.servers, "SERVER"),
        ("images", &all.images, "IMAGE"),
        ("credentials", &all.credentials, "CREDENTIAL"),
        ("mcp_servers", &all.mcp_servers, "MCP_SERVER"),
        ("skills", &all.skills, "SKILL"),
        ("service_tokens", &all.service_tokens, "SERVICE_TOKEN"),
    ] {
        let sql = format!("UPDATE {table} SET name = 'Émile_%', name_folded = 'emile_%' WHERE id = $1");
        app.execute(&sql, vec![ids[0].into()]).await;
        let hits = search(&app.owner, app.org, "ÉMILE_%").await;
        assert!(hits.iter().any(|hit| hit["kind"] == kind && hit["id"] == ids[0]), "{kind}: {hits:?}");
        let by_id = search(&app.owner, app.org, &format!("#{}", ids[1])).await;
        assert!(by_id.iter().any(|hit| hit["kind"] == kind && hit["id"] == ids[1]), "{kind}: {by_id:?}");
        let part = search(&app.owner, app.org, "mile_").await;
        assert!(part.iter().any(|hit| hit["kind"] == kind && hit["id"] == ids[0]), "{kind}: {part:?}");
    }
    assert!(search(&app.owner, app.org, "em%").await.is_empty(), "a wildcard stands for itself");
    let conversation = all.conversations[0];
    let code: String =
        app.one("SELECT ref FROM conversations WHERE id = $1", vec![conversation.into()]).await;
    let hits = search(&app.viewer, app.org, &format!("#{}", code.to_lowercase())).await;
    assert_eq!((&hits[0]["id"], &hits[0]["ref"]), (&json!(conversation), &json!(code)));
    assert_eq!(hits[0]["agentId"], all.agents[0]);
    let title: String =
        app.one("SELECT title FROM conversations WHERE id = $1", vec![conversation.into()]).await;
    assert_eq!(search(&app.viewer, app.org, &title.to_uppercase()).await[0]["id"], conversation);
    let member = search(&app.owner, app.org, "viewer@exam").await;
    assert_eq!((&member[0]["kind"], &member[0]["id"]), (&json!("MEMBER"), &json!(app.viewer.user)));
    let approval = search(&app.owner, app.org, &all.approvals[0].to_string()).await;
    assert!(approval.iter().any(|hit| hit["kind"] == "APPROVAL"), "{approval:?}");
    let approval = search(&app.viewer, app.org, "DECIDE 0").await;
    assert_eq!((&approval[0]["kind"], &approval[0]["id"]), (&json!("APPROVAL"), &json!(all.approvals[0])));
    assert_eq!(approval[0]["agentId"], all.agents[0]);
    let blind = app.token(&["organization.view", "agent.view"]).await;
    assert_eq!(search(&blind, app.org, "DECIDE 0").await, [Value::Null; 0], "approval.view is needed");
    for nothing in [" ", "\u{301}", "no such thing"] {
        assert_eq!(search(&app.owner, app.org, nothing).await, [Value::Null; 0], "{nothing:?}");
    }
}

#[tokio::test]
async fn a_deleted_channel_and_its_contacts_are_not_found() {
    let (app, agent) = TestApp::with_agent().await;
    let mut channels = Vec::new();
    for name in ["Quaint one", "Quaint two"] {
        let mut body = inbound(agent);
        body["name"] = json!(name);
        let made = app.owner.post(&format!("/v1/org/{}/channel", app.org), body).await.expect(201);
        channels.push(made["id"].as_i64().unwrap());
    }
    // Whose addresses were first seen on which of the two.
    for (name, seen) in
        [("Quaint Ada", &[0][..]), ("Quaint Bob", &[0, 1]), ("Quaint Cy", &[0]), ("Quaint Dee", &[])]
    {
        let contact = app.contact(name).await;
        for &n in seen {
            let sql = "INSERT INTO identities (organization_id, contact_id, channel_id, transport, origin_id, \
                       origin_id_folded, created_at, updated_at) VALUES ($1, $2, $3, 'WEBHOOK', $4, $4, 0, 0)";
            let origin = format!("{contact} of {n}");
            let values = vec![app.org.into(), contact.into(), channels[n].into(), origin.into()];
            app.execute(sql, values).await;
        }
        // The second one also knows Cy.
        if name == "Quaint Cy" {
            let conversation = app.conversation(agent).await;
            let sql = "UPDATE conversations SET contact_id = $2, channel_id = $3 WHERE id = $1";
            app.execute(sql, vec![conversation.into(), contact.into(), channels[1].into()]).await;
        }
    }
    let list = "query($o: Id!) { contacts(orgId: $o, page: 1, limit: 10, search: \"quaint\") { total data { name } } }";
    let names = |records: &Value| {
        let names =
            records.as_array().unwrap().iter().map(|record| record["name"].as_str().unwrap().to_owned());
        names.collect::<BTreeSet<_>>()
    };
    let found = async || names(&Value::from(search(&app.owner, app.org, "quaint").await));
    assert_eq!(found().await.len(), 6);
    delete(&app, &json!(channels[0])).await.data();
    let left = ["Quaint Bob", "Quaint Cy", "Quaint Dee"].map(str::to_owned);
    let mut all = BTreeSet::from(left.clone());
    let listed = app.owner.gql(list, json!({ "o": app.org })).await.data()["contacts"].clone();
    assert_eq!((names(&listed["data"]), &listed["total"]), (all.clone(), &json!(3)));
    all.insert("Quaint two".to_owned());
    assert_eq!(found().await, all);
    assert!(search(&app.owner, app.org, "Quaint Ada").await.is_empty(), "not by an exact name either");
    let by_id = search(&app.owner, app.org, &format!("#{}", channels[0])).await;
    assert!(by_id.iter().all(|hit| hit["kind"] != "CHANNEL"), "{by_id:?}");
}

#[tokio::test]
async fn the_best_hit_comes_first() {
    let (app, all) = TestApp::populated(6).await;
    for (contact, name) in all.contacts.iter().zip(["ana", "Ana", "anabel", "diana", "Joanna", "bob"]) {
        let sql = "UPDATE contacts SET name = $2, name_folded = $3 WHERE id = $1";
        let folded = muster::base::folding::name(name);
        app.execute(sql, vec![(*contact).into(), name.into(), folded.into()]).await;
    }
    let query =
        "query($o: Id!, $n: Int) { search(orgId: $o, q: \"ANA\", kinds: [CONTACT], limit: $n) { name } }";
    let found = async |limit: i64| {
        let hits = app.owner.gql(query, json!({ "o": app.org, "n": limit })).await.data()["search"].clone();
        let names = hits.as_array().unwrap().iter().map(|hit| hit["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(found(50).await, ["Ana", "ana", "anabel", "diana"]);
    assert_eq!(found(2).await, ["Ana", "ana"]);
}

#[tokio::test]
async fn only_what_one_may_see_is_found() {
    let (app, all) = TestApp::populated(3).await;
    let theirs = app.populate_other(3).await;
    for table in ["agents", "contacts", "servers", "credentials", "service_tokens", "skills"] {
        app.execute(&format!("UPDATE {table} SET name = 'same ' || id, name_folded = 'same ' || id"), vec![])
            .await;
    }
    let everything = search(&app.owner, app.org, "same").await;
    assert_eq!(
        kinds(&everything),
        BTreeSet::from(["AGENT", "CONTACT", "SERVER", "CREDENTIAL", "SERVICE_TOKEN", "SKILL"])
    );
    for hit in &everything {
        assert!(!theirs.agents.contains(&hit["id"].as_i64().unwrap()), "{hit}");
    }
    for (of, ids) in [("agents", &theirs.agents), ("conversations", &theirs.conversations)] {
        assert_eq!(search(&app.owner, app.org, &ids[0].to_string()).await, [Value::Null; 0], "{of}");
    }
    let viewer = search(&app.viewer, app.org, "same").await;
    let may = |permission| {
        app.core.policy.allows(
            muster::base::ids::OrgId(app.org),
            muster::base::permission::Role::Viewer,
            permission,
        )
    };
    assert_eq!(kinds(&viewer).contains("SERVICE_TOKEN"), may(Permission::TokenView));
    assert!(!may(Permission::TokenView), "or this test shows nothing");
    let token = app.token(&["organization.view", "skill.view"]).await;
    assert_eq!(kinds(&search(&token, app.org, "same").await), BTreeSet::from(["SKILL"]));
    let none = app.token(&["organization.view"]).await;
    assert_eq!(search(&none, app.org, "same").await, [Value::Null; 0]);
    assert!(all.skills.len() > 2);
}

const OVERVIEW: &str = "query($o: Id!) { overview(orgId: $o) {
    pendingApprovals { total mine bySeverity { severity count } nextExpiresAt }
    agents { status count } servers { total offline pending }
    channelsInactive openConversations unreadConversations deliveriesFailed } }";

#[tokio::test]
async fn the_overview_counts_what_one_may_see() {
    let (app, all) = TestApp::populated(8).await;
    app.populate_other(5).await;
    let now = app.clock.now();
    let sql = "UPDATE approvals SET expires_at = $2 WHERE id = $1";
    app.execute(sql, vec![all.approvals[0].into(), (now.0 + 5000).into()]).await;
    app.execute(sql, vec![all.approvals[1].into(), now.0.into()]).await;
    let failed = "UPDATE messages SET delivery_status = 'FAILED' WHERE id = $1";
    app.execute(failed, vec![all.messages[0].into()]).await;
    app.execute("UPDATE agents SET archived_at = 1 WHERE id = $1", vec![all.agents[7].into()]).await;
    let overview = app.owner.gql(OVERVIEW, json!({ "o": app.org })).await.data()["overview"].clone();
    let count = async |sql: &str| {
        app.one::<i64>(&format!("SELECT COUNT(*) FROM {sql} AND organization_id = {}", app.org), vec![]).await
    };
    let pending = count("approvals WHERE status = 'PENDING'").await - 1;
    assert_eq!(overview["pendingApprovals"]["total"], pending, "one is overdue");
    let high = count("approvals WHERE status = 'PENDING' AND severity = 'HIGH'").await - 1;
    let by_severity = overview["pendingApprovals"]["bySeverity"].as_array().unwrap();
    let severities: Vec<_> = by_severity.iter().map(|it| it["severity"].as_str().unwrap()).collect();
    assert_eq!(severities, ["CRITICAL", "HIGH", "MEDIUM", "LOW"]);
    assert_eq!(by_severity[1]["count"], high);
    assert_eq!(overview["pendingApprovals"]["nextExpiresAt"], "2026-06-01T12:00:05.000Z");
    let snooze =
        "INSERT INTO approval_snoozes (organization_id, approval_id, user_id, until) VALUES ($1, $2, $3, $4)";
    let (snoozed, until) = (all.approvals[0], now.0 + 60_000);
    app.execute(snooze, vec![app.org.into(), snoozed.into(), app.owner.user.unwrap().into(), until.into()])
        .await;
    let query = "query($o: Id!) { overview(orgId: $o) { pendingApprovals { total } } }";
    let left = app.owner.gql(query, json!({ "o": app.org })).await.data();
    assert_eq!(left["overview"]["pendingApprovals"]["total"], pending - 1, "as in the inbox");
    let agents = overview["agents"].as_array().unwrap();
    let sum: i64 = agents.iter().map(|it| it["count"].as_i64().unwrap()).sum();
    assert_eq!(sum, 7);
    let servers = count("servers WHERE archived_at IS NULL").await;
    let offline = count("servers WHERE status = 'OFFLINE'").await;
    assert!(offline > 0);
    let pending = count("servers WHERE status = 'PENDING' AND archived_at IS NULL").await;
    let expected = json!({ "total": servers, "offline": offline, "pending": pending });
    assert_eq!(overview["servers"], expected);
    assert_eq!(
        overview["channelsInactive"],
        count("channels WHERE is_active = FALSE AND transport <> 'INTERNAL'").await
    );
    assert_eq!(
        overview["openConversations"],
        count("conversations WHERE status IN ('OPEN', 'PENDING')").await
    );
    assert_eq!(overview["deliveriesFailed"], 1);
    assert_eq!(overview["unreadConversations"], 1, "all but the newest are from before they joined");
    let token = app.token(&["organization.view", "server.view", "agent.output.view"]).await;
    let overview = token.gql(OVERVIEW, json!({ "o": app.org })).await.data()["overview"].clone();
    let parts = ["pendingApprovals", "agents", "channelsInactive", "unreadConversations"];
    assert_eq!(parts.map(|part| overview[part].is_null()), [true; 4], "{overview}");
    assert_eq!(
        (&overview["servers"]["total"], overview["openConversations"].is_i64()),
        (&json!(servers), true)
    );
    let agent = "query($o: Id!, $a: Id!) { agent(orgId: $o, id: $a) { pendingApprovals openConversations lastActivityAt } }";
    let agent =
        app.viewer.gql(agent, json!({ "o": app.org, "a": all.agents[0] })).await.data()["agent"].clone();
    let of = format!("agent_id = {}", all.agents[0]);
    assert_eq!(
        agent["pendingApprovals"],
        count(&format!("approvals WHERE status = 'PENDING' AND {of}")).await
    );
    let open = format!("conversations WHERE status IN ('OPEN', 'PENDING') AND {of}");
    assert_eq!(agent["openConversations"], count(&open).await);
    assert_eq!(agent["lastActivityAt"], "2026-06-01T12:00:00.000Z");
}

const READ: &str = "query($o: Id!, $c: Id!) { conversation(orgId: $o, id: $c) { readSeq unread } }";
const MARK: &str = "mutation($o: Id!, $c: Id!, $s: Int!) { markRead(orgId: $o, conversationId: $c, seq: $s) { readSeq unread } }";

async fn read(app: &TestApp, actor: &Actor, conversation: i64) -> (Value, Value) {
    let read =
        actor.gql(READ, json!({ "o": app.org, "c": conversation })).await.data()["conversation"].clone();
    (read["readSeq"].clone(), read["unread"].clone())
}

async fn unread(app: &TestApp, actor: &Actor) -> Vec<i64> {
    let query = "query($o: Id!) { conversationFeed(orgId: $o, unread: true) { data { id } } overview(orgId: $o) { unreadConversations } }";
    let data = actor.gql(query, json!({ "o": app.org })).await.data();
    let feed = data["conversationFeed"]["data"].as_array().unwrap();
    let ids: Vec<i64> = feed.iter().map(|it| it["id"].as_i64().unwrap()).collect();
    assert_eq!(data["overview"]["unreadConversations"], ids.len());
    ids
}

#[tokio::test]
async fn each_person_reads_for_themselves_and_never_backwards() {
    let (app, _, conversation) = TestApp::with_conversation().await;
    for n in 0..5 {
        say(&app, conversation, MessageRole::Assistant, &n.to_string()).await;
    }
    let mark = async |actor: &Actor, seq: i64| {
        let given = json!({ "o": app.org, "c": conversation, "s": seq });
        let read = actor.gql(MARK, given).await.data()["markRead"].clone();
        (read["readSeq"].clone(), read["unread"].clone())
    };
    assert_eq!(read(&app, &app.viewer, conversation).await, (json!(0), json!(5)));
    assert_eq!(unread(&app, &app.viewer).await, [conversation]);
    assert_eq!(mark(&app.viewer, 0).await, (json!(0), json!(5)));
    assert_eq!(mark(&app.viewer, 3).await, (json!(3), json!(2)));
    assert_eq!(mark(&app.viewer, 2).await, (json!(3), json!(2)), "never back");
    assert_eq!(unread(&app, &app.viewer).await, [conversation]);
    assert_eq!(
        mark(&app.viewer, 1_000_000).await,
        (json!(5), json!(0)),
        "no further than there is something"
    );
    assert_eq!(unread(&app, &app.viewer).await, [0_i64; 0]);
    assert_eq!(read(&app, &app.admin, conversation).await, (json!(0), json!(5)), "others have not read it");
    say(&app, conversation, MessageRole::Assistant, "more").await;
    assert_eq!(read(&app, &app.viewer, conversation).await, (json!(5), json!(1)));
    let token = app.token(&["agent.output.view", "organization.view"]).await;
    assert_eq!(read(&app, &token, conversation).await, (Value::Null, Value::Null));
    let given = json!({ "o": app.org, "c": conversation, "s": 1 });
    assert_eq!(token.gql(MARK, given).await.code(), "PERMISSION_DENIED");
    // A member who joins later starts with nothing unread.
    app.clock.advance(std::time::Duration::from_secs(60));
    let late = app.person("VIEWER", true).await;
    let sql = "UPDATE members SET created_at = $2 WHERE user_id = $1";
    app.execute(sql, vec![late.user.unwrap().into(), app.clock.now().0.into()]).await;
    assert_eq!(read(&app, &late, conversation).await, (json!(0), json!(0)));
    assert_eq!(unread(&app, &late).await, [0_i64; 0]);
    for new in 1..=3 {
        say(&app, conversation, MessageRole::Assistant, "since").await;
        assert_eq!(
            read(&app, &late, conversation).await,
            (json!(0), json!(new)),
            "what is from before is not"
        );
    }
    assert_eq!(unread(&app, &late).await, [conversation]);
    // One of long ago, which a host has brought late, does not hide those before it.
    app.execute("UPDATE messages SET created_at = 1 WHERE seq = 8", vec![]).await;
    assert_eq!(read(&app, &late, conversation).await, (json!(0), json!(2)));
    assert_eq!(mark(&late, 8).await, (json!(8), json!(1)));
    assert_eq!(read(&app, &app.admin, conversation).await, (json!(0), json!(8)));
    // Old messages don't count as unread.
    app.clock.advance(std::time::Duration::from_secs(31 * 86_400));
    assert_eq!(unread(&app, &app.admin).await, [0_i64; 0]);
    assert_eq!(read(&app, &app.admin, conversation).await, (json!(0), json!(0)));
    say(&app, conversation, MessageRole::Assistant, "now").await;
    assert_eq!(read(&app, &app.admin, conversation).await, (json!(0), json!(1)));
    assert_eq!(unread(&app, &app.admin).await, [conversation]);
    // Steps of the agent's work don't count as unread.
    app.execute("UPDATE messages SET kind = 'TOOL_CALL' WHERE seq = 10", vec![]).await;
    assert_eq!(read(&app, &app.admin, conversation).await, (json!(0), json!(0)));
    assert_eq!(unread(&app, &app.admin).await, [0_i64; 0]);
}

#[tokio::test]
async fn what_was_forgotten_is_not_unread() {
    let (app, _, conversation) = TestApp::with_conversation().await;
    for n in 0..5 {
        say(&app, conversation, MessageRole::Assistant, &n.to_string()).await;
    }
    assert_eq!(read(&app, &app.viewer, conversation).await, (json!(0), json!(5)));
    app.keeps_for(json!(1)).await;
    app.clock.advance(std::time::Duration::from_secs(2 * 86_400));
    assert_eq!(app.forgets().await, 1);
    assert_eq!(read(&app, &app.viewer, conversation).await, (json!(0), json!(0)));
    assert_eq!(unread(&app, &app.viewer).await, [0_i64; 0]);
    say(&app, conversation, MessageRole::Assistant, "again").await;
    assert_eq!(read(&app, &app.viewer, conversation).await, (json!(0), json!(1)));
    assert_eq!(unread(&app, &app.viewer).await, [conversation]);
}

#[tokio::test]
async fn who_writes_has_read_what_stands_before_and_no_more() {
    let (app, agent, conversation) = TestApp::with_conversation().await;
    say(&app, conversation, MessageRole::Assistant, "what shall I do?").await;
    let post = "mutation($o: Id!, $c: Id!) { postMessage(orgId: $o, conversationId: $c, input: { text: \"wait\" }) { seq } }";
    app.operator.gql(post, json!({ "o": app.org, "c": conversation })).await.data();
    assert_eq!(read(&app, &app.operator, conversation).await, (json!(2), json!(0)));
    assert_eq!(read(&app, &app.viewer, conversation).await, (json!(0), json!(2)), "others have not");
    say(&app, conversation, MessageRole::Assistant, "I do").await;
    assert_eq!(read(&app, &app.operator, conversation).await, (json!(2), json!(1)));
    let start = "mutation($o: Id!, $a: Id!) { startConversation(orgId: $o, input: { agentId: $a, text: \"hello\" }) { id unread } }";
    let started = app.operator.gql(start, json!({ "o": app.org, "a": agent })).await.data();
    assert_eq!(started["startConversation"]["unread"], 0);
    // A program reads nothing.
    let program = app.token(&["agent.interact", "agent.output.view"]).await;
    program.gql(post, json!({ "o": app.org, "c": conversation })).await.data();
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM conversation_reads", vec![]).await, 2);
}

#[tokio::test]
async fn marks_race_forward_only() {
    let (app, _, conversation) = TestApp::with_conversation().await;
    for n in 0..20 {
        say(&app, conversation, MessageRole::Assistant, &n.to_string()).await;
    }
    let mark = async |seq: i64| {
        app.viewer.gql(MARK, json!({ "o": app.org, "c": conversation, "s": seq })).await.data();
    };
    futures::future::join_all((1..=20).rev().map(mark)).await;
    assert_eq!(read(&app, &app.viewer, conversation).await, (json!(20), json!(0)));
}

#[tokio::test]
async fn only_the_reader_hears_of_a_mark() {
    let (app, agent, conversation) = TestApp::with_conversation().await;
    say(&app, conversation, MessageRole::Assistant, "hello").await;
    let watch = "subscription($o: Id!) { changes(orgId: $o, kinds: [CONVERSATION]) { kind id op } }";
    let (mut mine, mut theirs) = (Socket::of(&app.viewer).await, Socket::of(&app.admin).await);
    for socket in [&mut mine, &mut theirs] {
        socket.subscribe("1", watch, json!({ "o": app.org })).await;
        assert_eq!(socket.next().await["payload"]["data"]["changes"]["op"], "RESYNC");
    }
    app.viewer.gql(MARK, json!({ "o": app.org, "c": conversation, "s": 1 })).await.data();
    let told = mine.next().await["payload"]["data"]["changes"].clone();
    assert_eq!(told, json!({ "kind": "CONVERSATION", "id": conversation, "op": "UPDATED" }));
    // The other one hears only of what comes after.
    let title = "mutation($o: Id!, $c: Id!) { updateConversation(orgId: $o, id: $c, input: { status: RESOLVED }) { id } }";
    let other = app.conversation(agent).await;
    app.owner.gql(title, json!({ "o": app.org, "c": other })).await.data();
    assert_eq!(theirs.next().await["payload"]["data"]["changes"]["id"], other);
}

const AROUND: &str = "query($o: Id!, $c: Id!, $around: Int, $before: Int, $after: Int, $n: Int) {
    messages(orgId: $o, conversationId: $c, aroundSeq: $around, beforeSeq: $before, afterSeq: $after, limit: $n) {
        data { seq } total hasBefore hasAfter } }";

#[tokio::test]
async fn messages_around_a_seq_fill_a_page() {
    let (app, agent) = TestApp::with_agent().await;
    let (conversation, empty) = (app.conversation(agent).await, app.conversation(agent).await);
    for n in 0..20 {
        say(&app, conversation, MessageRole::Assistant, &n.to_string()).await;
    }
    let page = async |mut given: Value| {
        given["o"] = json!(app.org);
        let it = app.viewer.gql(AROUND, given).await.data()["messages"].clone();
        let seqs: Vec<i64> =
            it["data"].as_array().unwrap().iter().map(|it| it["seq"].as_i64().unwrap()).collect();
        let (first, last) = (seqs.first().copied().unwrap_or(0), seqs.last().copied().unwrap_or(0));
        (first, last, seqs.len(), it["hasBefore"] == true, it["hasAfter"] == true)
    };
    let around = |seq: i64, n: i64| json!({ "c": conversation, "around": seq, "n": n });
    assert_eq!(page(around(10, 6)).await, (7, 12, 6, true, true));
    assert_eq!(page(around(10, 1)).await, (10, 10, 1, true, true));
    assert_eq!(page(around(1, 6)).await, (1, 6, 6, false, true));
    assert_eq!(page(around(0, 6)).await, (1, 6, 6, false, true));
    assert_eq!(page(around(20, 6)).await, (15, 20, 6, true, false));
    assert_eq!(page(around(i64::from(i32::MAX), 6)).await, (15, 20, 6, true, false));
    assert_eq!(page(around(10, 200)).await, (1, 20, 20, false, false));
    assert_eq!(page(json!({ "c": conversation, "n": 5 })).await, (16, 20, 5, true, false));
    assert_eq!(page(json!({ "c": conversation, "before": 4 })).await, (1, 3, 3, false, true));
    assert_eq!(page(json!({ "c": conversation, "before": 1 })).await, (0, 0, 0, false, true));
    assert_eq!(page(json!({ "c": conversation, "after": 18 })).await, (19, 20, 2, true, false));
    assert_eq!(page(json!({ "c": conversation, "after": 20 })).await, (0, 0, 0, true, false));
    for given in
        [json!({ "c": empty }), json!({ "c": empty, "around": 5 }), json!({ "c": empty, "after": 0 })]
    {
        assert_eq!(page(given).await, (0, 0, 0, false, false));
    }
    let sides = "query($o: Id!, $c: Id!) { messages(orgId: $o, conversationId: $c, afterSeq: 3, limit: 2) { hasAfter hasBefore } }";
    let sides = app.viewer.gql(sides, json!({ "o": app.org, "c": conversation })).await.data();
    assert_eq!(sides["messages"], json!({ "hasAfter": true, "hasBefore": true }));
    let refused =
        app.viewer.gql(AROUND, json!({ "o": app.org, "c": conversation, "around": 1, "after": 1 })).await;
    assert_eq!(refused.code(), "VALIDATION_FAILED");
}

#[tokio::test]
async fn every_permission_says_what_it_means_and_opens() {
    let app = TestApp::start().await;
    let query = "{ permissions { permission group meaning operations forServiceTokens } }";
    let all = app.viewer.gql(query, json!({})).await.data()["permissions"].clone();
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), Permission::ALL.len());
    let catalogue = graphql::catalogue().unwrap();
    for (info, permission) in all.iter().zip(Permission::ALL) {
        assert_eq!(info["permission"], permission.as_str());
        assert!(
            info["meaning"].as_str().unwrap().ends_with('.') && !info["group"].as_str().unwrap().is_empty()
        );
        assert_eq!(info["forServiceTokens"], app.core.policy.token_cap().contains(permission));
        for operation in info["operations"].as_array().unwrap() {
            let root = catalogue.root_field(operation.as_str().unwrap()).unwrap();
            let permit = format!("{:?}", root.permit);
            assert!(permit.contains(&format!("{permission:?},")), "{operation}: {permit}");
        }
    }
    let resolve = all.iter().find(|info| info["permission"] == "approval.resolve").unwrap();
    let operations = resolve["operations"].as_array().unwrap();
    assert!(operations.contains(&json!("answerApproval")) && operations.contains(&json!("dismissApproval")));
    assert_eq!(app.anonymous.gql(query, json!({})).await.code(), "UNAUTHENTICATED");
}

#[tokio::test]
async fn lists_are_found_and_sorted_by_name() {
    let (app, all) = TestApp::populated(4).await;
    app.populate_other(2).await;
    for (list, table, ids, extra) in [
        ("servers", "servers", &all.servers, ""),
        ("credentials", "credentials", &all.credentials, ""),
        ("mcpServers", "mcp_servers", &all.mcp_servers, ""),
        ("skills", "skills", &all.skills, ""),
        ("serviceTokens", "service_tokens", &all.service_tokens, ", includeRevoked: true"),
        ("members", "users", &all.members, ""),
    ] {
        for (id, name) in ids.iter().zip(["Zoë two", "Émile", "äpfel", "Zoë one"]) {
            let sql = format!("UPDATE {table} SET name = $2, name_folded = $3 WHERE id = $1");
            let folded = muster::base::folding::name(name);
            app.execute(&sql, vec![(*id).into(), name.into(), folded.into()]).await;
        }
        let names = async |given: &str| {
            let query = format!(
                "query($o: Id!) {{ {list}(orgId: $o, page: 1, limit: 100{extra}{given}) {{ total data {{ name }} }} }}"
            );
            let page = app.owner.gql(&query, json!({ "o": app.org })).await.data()[list].clone();
            let names =
                page["data"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned());
            let names: Vec<String> = names.collect();
            assert_eq!(page["total"], names.len(), "{list}");
            names
        };
        assert_eq!(names(", search: \"ZOE\", sort: NAME").await, ["Zoë one", "Zoë two"], "{list}");
        assert_eq!(names(", search: \"two zo\"").await, ["Zoë two"], "{list}");
        let mut sorted = names("").await;
        sorted.sort_by_key(|name| muster::base::folding::name(name));
        assert_eq!(names(", sort: NAME").await, sorted, "{list}");
    }
    let query = "query($o: Id!) { members(orgId: $o, page: 1, limit: 1, search: \"viewer@example\") { data { userId hasSecondFactor lastSeenAt } } }";
    let member = app.owner.gql(query, json!({ "o": app.org })).await.data()["members"]["data"][0].clone();
    assert_eq!(member["userId"], json!(app.viewer.user));
    assert_eq!((&member["hasSecondFactor"], member["lastSeenAt"].is_string()), (&json!(false), true));
    let sql = "UPDATE users SET totp_confirmed_at = 1 WHERE id = $1";
    app.execute(sql, vec![app.viewer.user.unwrap().into()]).await;
    let member = app.owner.gql(query, json!({ "o": app.org })).await.data()["members"]["data"][0].clone();
    assert_eq!(member["hasSecondFactor"], true);
}

#[tokio::test]
async fn the_audit_log_is_searched_by_words_and_tells_fields() {
    let (app, agent) = TestApp::with_agent().await;
    let old: String = app.one("SELECT name FROM agents WHERE id = $1", vec![agent.into()]).await;
    let rename =
        "mutation($o: Id!, $a: Id!) { updateAgent(orgId: $o, id: $a, input: { name: \"Émile\" }) { id } }";
    app.admin.gql(rename, json!({ "o": app.org, "a": agent })).await.data();
    let secret = "mutation($o: Id!, $a: Id!) { updateAgent(orgId: $o, id: $a, input: { modelCredential: \"canary\", modelCredentialType: API_KEY, modelCredentialProvider: \"p\" }) { id } }";
    app.operator.gql(secret, json!({ "o": app.org, "a": agent })).await;
    app.seal().await;
    let log = async |search: &str| {
        let query = "query($o: Id!, $s: String) { auditLog(orgId: $o, page: 1, limit: 50, search: $s) { total data {
            operation actorId targetId targetName fields { field before after secret } } } auditSeal(orgId: $o) { chainSeq sealedAt } }";
        app.owner.gql(query, json!({ "o": app.org, "s": search })).await.data()
    };
    let found = log("emile").await;
    let entries = found["auditLog"]["data"].as_array().unwrap();
    assert!(
        !entries.is_empty()
            && entries.iter().all(|it| it["targetId"] == agent && it["targetName"] == "Émile")
    );
    let found = log("UPDATEagent adm").await;
    let entry = &found["auditLog"]["data"][0];
    assert_eq!((&found["auditLog"]["total"], &entry["actorId"]), (&json!(1), &json!(app.admin.user)));
    let name = json!({ "field": "name", "before": old, "after": "Émile", "secret": false });
    assert!(entry["fields"].as_array().unwrap().contains(&name), "{entry}");
    assert!(!log("agent").await.to_string().contains("canary"));
    let secrets = log("updateAgent operator").await["auditLog"]["data"].to_string();
    assert!(secrets.contains("\"secret\":true"), "{secrets}");
    assert_eq!(log("no such thing").await["auditLog"], json!({ "total": 0, "data": [] }));
    let last: i64 = app
        .one("SELECT MAX(chain_seq) FROM audit_log WHERE organization_id = $1", vec![app.org.into()])
        .await;
    assert_eq!(found["auditSeal"]["chainSeq"], last);
    let query = "query($o: Id!) { auditSeal(orgId: $o) { chainSeq } }";
    let theirs = app.stranger.gql(query, json!({ "o": app.other_org })).await.data();
    assert_eq!(theirs["auditSeal"]["chainSeq"], 0);
}
