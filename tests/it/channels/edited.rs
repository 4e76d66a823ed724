//! Connected channels: edits, whitelists, deactivating, deleting.

use muster::{
    base::{enums::ApprovalKind, ids::ChannelId},
    domain::approvals::{self, NewApproval},
};
use serde_json::{Value, json};

use crate::{
    channels::{at, bot, code_host, connect, delete, mailbox, path, sets, webhook},
    harness::TestApp,
};

#[tokio::test]
async fn addresses_headers_and_repositories_are_checked() {
    let (app, agent) = TestApp::with_agent().await;
    let hook = connect(&app, webhook(agent)).await;
    let wrong = async |channel: &Value, body: Value| {
        let answer = app.operator.patch(&at(&app, channel), body).await;
        answer.violations().iter().map(|(at, code)| format!("{at} {code}")).collect::<Vec<_>>()
    };
    for url in
        ["ftp://hooks.example", "hooks.example", "https://", "javascript:1", "https://u:p@hooks.example"]
    {
        assert_eq!(
            wrong(&hook, json!({"webhook": {"outbound_url": url}})).await,
            ["/webhook/outbound_url NOT_ALLOWED"],
            "{url}"
        );
    }
    for header in ["X Signature", "X:Y", "Content-Length", "webhook-id"] {
        assert_eq!(
            wrong(&hook, json!({"webhook": {"signature_header": header}})).await,
            ["/webhook/signature_header NOT_ALLOWED"],
            "{header}"
        );
    }
    let host = connect(&app, code_host(agent)).await;
    let repos = json!({"code_host": {"repos": ["a/b", "a", "a/b/c", "../b", "a/ b"], "installation_id": 0}});
    assert_eq!(wrong(&host, repos).await, ["/code_host/installation_id TOO_SMALL"]);
    let repos = json!({"code_host": {"repos": ["a/b", "a", "a//c", "../b", "a/ b"]}});
    assert_eq!(wrong(&host, repos).await, [1, 2, 3, 4].map(|n| format!("/code_host/repos/{n} NOT_ALLOWED")));
    let mail = connect(&app, mailbox(agent)).await;
    let body = json!({"email": {"imap": {"port": 0}, "smtp": {"port": 65_536}}});
    assert_eq!(wrong(&mail, body).await, ["/email/imap/port TOO_SMALL", "/email/smtp/port TOO_LARGE"]);
    let body = json!({"email": {"imap": {"host": "imap example", "pass": "p"}, "smtp": {"from": "unknown"}}});
    assert_eq!(wrong(&mail, body).await, ["/email/imap/host NOT_ALLOWED", "/email/smtp/from NOT_ALLOWED"]);
}

#[tokio::test]
async fn the_server_that_proves_senders_has_a_servers_name() {
    let app = TestApp::start().await;
    let mail = connect(&app, mailbox(app.agent().await)).await;
    let set = async |name: &str| {
        app.operator.patch(&at(&app, &mail), json!({"email": {"authserv_id": name}})).await
    };
    // In a header of Microsoft 365, a result comes first instead of the server's name, and anyone can write one.
    for name in [
        "spf=pass",
        "mx.b.test; dmarc=pass",
        "a;b",
        "mx b",
        "*",
        "*topmost.",
        "mx/1",
        "<mx.b.test>",
        "-",
        "ä.test",
    ] {
        assert_eq!(set(name).await.violations(), [("/email/authserv_id", "NOT_ALLOWED")], "{name}");
    }
    for (name, kept) in [("*topmost", "*topmost"), (" mx.google.com ", "mx.google.com"), ("mx-1", "mx-1")] {
        set(name).await.expect(200);
        assert_eq!(app.column::<String>("SELECT email_authserv_id FROM channels").await, [kept]);
    }
}

#[tokio::test]
async fn the_notified_conversation_shows_in_short_form() {
    let (app, agent) = TestApp::with_agent().await;
    let channel = connect(&app, bot(agent)).await;
    let conversation = app.conversation(agent).await;
    let contact = app.contact("Ada").await;
    let sql = "UPDATE conversations SET title = 'Invoices', contact_id = $2 WHERE id = $1";
    app.execute(sql, vec![conversation.into(), contact.into()]).await;
    let shown = sets(&app, &channel, json!({"notify_conversation_id": conversation})).await;
    assert_eq!(shown["notify_conversation_id"], conversation);
    let mut summary = shown["notify_conversation"].clone();
    assert!(summary.as_object_mut().unwrap().remove("ref").is_some());
    let expected =
        json!({"id": conversation, "title": "Invoices", "contact_name": "Ada", "transport": "INTERNAL"});
    assert_eq!(summary, expected);
    let cleared = sets(&app, &channel, json!({"notify_conversation_id": null})).await;
    assert_eq!(cleared["notify_conversation"], Value::Null);
}

#[tokio::test]
async fn an_edit_merges_key_by_key() {
    let (app, agent) = TestApp::with_agent().await;
    let mut body = webhook(agent);
    body["webhook"]["signature_header"] = json!("X-Signature");
    body["webhook"]["outbound_secret"] = json!("out");
    body["webhook"]["echo_filter"] = json!({"actor_paths": [" actor.id ", "actor.id"], "self_ids": ["me"]});
    body["instructions"] = json!("Be brief.");
    let hook = connect(&app, body).await;
    assert_eq!(hook["webhook"]["echo_filter"], json!({"actor_paths": ["actor.id"], "self_ids": ["me"]}));
    // Absent keys keep their value.
    let same = sets(&app, &hook, json!({})).await;
    assert_eq!(same, hook);
    let edit = json!({"webhook": {"inbound_secret": "in", "echo_filter": {"self_ids": []}}, "mention_off": ["#ops"]});
    let edited = sets(&app, &hook, edit).await;
    let expected = json!({
        "outbound_url": "https://hooks.example/out", "has_outbound_secret": true, "has_inbound_secret": true,
        "signature_header": "X-Signature", "echo_filter": {"actor_paths": ["actor.id"], "self_ids": []},
    });
    assert_eq!(edited["webhook"], expected);
    assert_eq!((&edited["instructions"], &edited["mention_off"]), (&json!("Be brief."), &json!(["#ops"])));
    // Null clears optional values and nothing else.
    let edit = json!({"webhook": {"signature_header": null, "outbound_secret": null}, "instructions": null});
    let cleared = sets(&app, &hook, edit).await;
    assert_eq!(cleared["webhook"]["signature_header"], Value::Null);
    assert_eq!(cleared["webhook"]["has_outbound_secret"], false);
    assert_eq!(cleared["webhook"]["has_inbound_secret"], true);
    assert_eq!(cleared["instructions"], Value::Null);
    let answer = app.operator.patch(&at(&app, &hook), json!({"name": null, "mention_off": null})).await;
    assert_eq!(answer.violations(), [("/name", "WRONG_TYPE"), ("/mention_off", "WRONG_TYPE")]);
    let answer = app.operator.patch(&at(&app, &hook), json!({"webhook": {"outbound_url": null}})).await;
    assert_eq!(answer.violations(), [("/webhook/outbound_url", "REQUIRED")]);
    let answer = app.operator.patch(&at(&app, &hook), json!({"webhook": null})).await;
    assert_eq!(answer.violations(), [("/webhook", "WRONG_TYPE")]);
    // Null for another transport's object changes nothing.
    sets(&app, &hook, json!({"drive": null, "direction": "INBOUND", "webhook": {"outbound_url": null}}))
        .await;
    let answer = app.operator.patch(&at(&app, &hook), json!({"direction": "OUTBOUND"})).await;
    assert_eq!(answer.violations(), [("/webhook/outbound_url", "REQUIRED")]);
}

#[tokio::test]
async fn every_transport_can_be_edited() {
    let (app, agent) = TestApp::with_agent().await;
    let host = connect(&app, code_host(agent)).await;
    let edit = json!({"code_host": {"repos": [], "events": ["push", "push "], "listen_scope": "all", "raw_payload": true}});
    let edited = sets(&app, &host, edit).await;
    let expected = json!({
        "installation_id": 7_000_000_001_i64, "repos": [], "events": ["push"], "listen_scope": "all",
        "raw_payload": true, "oauth": null,
    });
    assert_eq!(edited["code_host"], expected);
    let calendar = json!({"name": "Dates", "transport": "CALENDAR", "agent_id": agent});
    let calendar = connect(&app, calendar).await;
    let choices = json!([{"id": "c1", "name": "Team"}, {"id": "c2"}]);
    let edit = json!({"calendar": {"calendar_whitelist": choices, "reminder_lead_minutes": 5}});
    let edited = sets(&app, &calendar, edit).await;
    let choices = json!([{"id": "c1", "name": "Team"}, {"id": "c2", "name": "c2"}]);
    assert_eq!(edited["calendar"], json!({"calendar_whitelist": choices, "reminder_lead_minutes": 5}));
    let edit = json!({"calendar": {"calendar_whitelist": [{"id": "c1"}, {"id": " c1"}]}});
    let answer = app.operator.patch(&at(&app, &calendar), edit).await;
    assert_eq!(answer.violations(), [("/calendar/calendar_whitelist/1/id", "NOT_ALLOWED")]);
    let edited = sets(&app, &calendar, json!({"calendar": {"reminder_lead_minutes": null}})).await;
    assert_eq!(edited["calendar"]["reminder_lead_minutes"], Value::Null);
    let bot = connect(&app, bot(agent)).await;
    let edit = json!({"bot_token": "8:another", "destination": "@desk", "label_whitelist": [" vip ", "vip"], "scope": "INTERNAL"});
    let edited = sets(&app, &bot, edit).await;
    assert_eq!(edited["target"], "@desk");
    assert_eq!(edited["label_whitelist"], json!(["vip"]));
    let answer = app.operator.patch(&at(&app, &bot), json!({"bot_token": null})).await;
    assert_eq!(answer.violations(), [("/bot_token", "WRONG_TYPE")]);
    // Internal channels aren't in the list, but they exist.
    assert_eq!(app.viewer.get(&path(&app)).await.expect(200).as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_stored_password_is_used_only_with_its_host() {
    let app = TestApp::start().await;
    let mail = connect(&app, mailbox(app.agent().await)).await;
    let edit =
        json!({"email": {"imap": {"host": "elsewhere.example"}, "smtp": {"host": "elsewhere.example"}}});
    let answer = app.operator.patch(&at(&app, &mail), edit).await;
    assert_eq!(answer.violations(), [("/email/imap/pass", "REQUIRED"), ("/email/smtp/pass", "REQUIRED")]);
    let edit = json!({"email": {
        "imap": {"host": "elsewhere.example", "pass": "pass-three"},
        "smtp": {"host": "elsewhere.example", "pass": null},
    }});
    sets(&app, &mail, edit).await;
    let query =
        "query($o: Id!, $c: Id!) { channel(orgId: $o, id: $c) { email { imap { host port user hasPass tls }
        smtp { host port user hasPass from } } } }";
    let shown = app.viewer.gql(query, json!({"o": app.org, "c": mail["id"]})).await.data();
    let expected = json!({
        "imap": {"host": "elsewhere.example", "port": 993, "user": "desk", "hasPass": true, "tls": true},
        "smtp": {"host": "elsewhere.example", "port": 465, "user": "desk", "hasPass": false, "from": "desk@example.com"},
    });
    assert_eq!(shown["channel"]["email"], expected);
}

#[tokio::test]
async fn deactivating_is_manual_and_activating_clears_the_reason() {
    let (app, agent) = TestApp::with_agent().await;
    let channel = connect(&app, bot(agent)).await;
    let off = sets(&app, &channel, json!({"is_active": false})).await;
    assert_eq!((&off["is_active"], &off["inactive_reason"]), (&json!(false), &json!("MANUAL")));
    let on = sets(&app, &channel, json!({"is_active": true})).await;
    assert_eq!((&on["is_active"], &on["inactive_reason"]), (&json!(true), &Value::Null));
}

#[tokio::test]
async fn a_deleted_agents_channels_become_and_stay_inactive() {
    let (app, agent) = TestApp::with_agent().await;
    let channel = connect(&app, bot(agent)).await;
    let manual = connect(&app, bot(agent)).await;
    sets(&app, &manual, json!({"is_active": false})).await;
    let of_agent = async |what: &str| {
        let mutation = format!("mutation($o: Id!, $a: Id!) {{ {what} }}");
        app.admin.gql(&mutation, json!({"o": app.org, "a": agent})).await.data()
    };
    of_agent("deleteAgent(orgId: $o, id: $a)").await;
    let listed = app.viewer.get(&path(&app)).await.expect(200);
    assert_eq!(
        (&listed[0]["is_active"], &listed[0]["inactive_reason"]),
        (&json!(false), &json!("AGENT_ARCHIVED"))
    );
    assert_eq!(listed[1]["inactive_reason"], "MANUAL");
    let told = "SELECT CAST(channel_id AS TEXT) || ' ' || status FROM approvals WHERE kind = 'CHANNEL_ERROR'";
    assert_eq!(app.column::<String>(told).await, [format!("{} PENDING", channel["id"])]);
    let answer = app.operator.patch(&at(&app, &channel), json!({"is_active": true})).await;
    assert_eq!(answer.problem(), (409, "ARCHIVED"));
    assert_eq!(app.operator.post(&path(&app), bot(agent)).await.violations(), [("/agent_id", "NOT_FOUND")]);
    of_agent("restoreAgent(orgId: $o, id: $a) { id }").await;
    let listed = app.viewer.get(&path(&app)).await.expect(200);
    assert_eq!((&listed[0]["is_active"], &listed[1]["is_active"]), (&json!(true), &json!(false)));
    assert_eq!(app.column::<String>(told).await, [format!("{} DISMISSED", channel["id"])]);
}

#[tokio::test]
async fn a_whitelist_grows_and_shrinks() {
    let app = TestApp::start().await;
    let channel = connect(&app, bot(app.agent().await)).await;
    let list = format!("{}/whitelist", at(&app, &channel));
    let add = async |origin: &str| app.operator.post(&list, json!({"origin_id": origin})).await;
    add("zebra").await.expect(200);
    app.clock.advance(std::time::Duration::from_secs(1));
    add(" a/b c@d ").await.expect(200);
    assert_eq!(add("zebra ").await.expect(200)["whitelist"], json!(["zebra", "a/b c@d"]));
    assert_eq!(add("").await.violations(), [("/origin_id", "TOO_SHORT")]);
    assert_eq!(add("  ").await.violations(), [("/origin_id", "TOO_SHORT")]);
    assert_eq!(add(&"x".repeat(256)).await.violations(), [("/origin_id", "TOO_LONG")]);
    add(&"é".repeat(255)).await.expect(200);
    let left = app.operator.delete(&format!("{list}/a%2Fb%20c%40d")).await.expect(200);
    assert_eq!(left["whitelist"], json!(["zebra", "é".repeat(255)]));
    assert_eq!(app.operator.delete(&format!("{list}/a%2Fb%20c%40d")).await.problem(), (404, "NOT_FOUND"));
    let missing =
        app.operator.post(&format!("{}/999999/whitelist", path(&app)), json!({"origin_id": "x"})).await;
    assert_eq!(missing.problem(), (404, "NOT_FOUND"));
}

#[tokio::test]
async fn a_mailboxs_whitelist_has_addresses_as_mails_have_them() {
    let app = TestApp::start().await;
    let channel = connect(&app, mailbox(app.agent().await)).await;
    let list = format!("{}/whitelist", at(&app, &channel));
    let add = async |origin: &str| app.operator.post(&list, json!({"origin_id": origin})).await;
    for (origin, kept) in [
        ("Ada@Walk.TEST", "ada@walk.test"),
        ("<cho@walk.test>", "cho@walk.test"),
        ("Dia <dia@walk.test>", "dia@walk.test"),
    ] {
        let listed = add(origin).await.expect(200)["whitelist"].clone();
        assert!(listed.as_array().unwrap().contains(&json!(kept)), "{origin}: {listed}");
    }
    assert_eq!(add("ada@walk.test").await.expect(200)["whitelist"].as_array().unwrap().len(), 3);
    for origin in ["*@walk.test", "walk.test", "Ada", "@walk.test", "a@b.test, c@d.test"] {
        assert_eq!(add(origin).await.violations(), [("/origin_id", "NOT_ALLOWED")], "{origin}");
    }
    let left = app.operator.delete(&format!("{list}/ADA%40walk.test")).await.expect(200);
    assert_eq!(left["whitelist"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_deleted_channel_is_hidden_and_keeps_no_secret() {
    let (app, agent) = TestApp::with_agent().await;
    let mut body = webhook(agent);
    body["webhook"]["outbound_secret"] = json!("out");
    let channel = connect(&app, body).await;
    let id = channel["id"].as_i64().unwrap();
    let conversation = app.conversation(agent).await;
    let sql = "UPDATE conversations SET channel_id = $2 WHERE id = $1";
    app.execute(sql, vec![conversation.into(), id.into()]).await;
    assert_eq!(delete(&app, &channel["id"]).await.data()["deleteChannel"], id);
    assert_eq!(delete(&app, &channel["id"]).await.code(), "NOT_FOUND");
    assert_eq!(app.viewer.get(&path(&app)).await.expect(200), json!([]));
    assert_eq!(app.operator.patch(&at(&app, &channel), json!({})).await.problem(), (404, "NOT_FOUND"));
    let sql =
        "SELECT COUNT(*) FROM channels WHERE webhook_outbound_secret_sealed IS NULL AND inbound_slug IS NULL";
    assert_eq!(app.one::<i64>(sql, vec![]).await, 1);
}

#[tokio::test]
async fn a_deleted_channels_approvals_are_withdrawn() {
    let (app, agent) = TestApp::with_agent().await;
    let (gone, stays) = (connect(&app, bot(agent)).await, connect(&app, bot(agent)).await);
    let tx = app.scope().begin().await.unwrap();
    for channel in [&gone, &stays] {
        for kind in [ApprovalKind::ChannelError, ApprovalKind::AccessRequest] {
            let channel_id = channel["id"].as_i64().map(ChannelId);
            let new = NewApproval { channel_id, ..NewApproval::new(kind, "Look at this") };
            approvals::raise(&tx, new).await.unwrap();
        }
    }
    tx.commit().await.unwrap();
    delete(&app, &gone["id"]).await.data();
    let open = "SELECT CAST(channel_id AS TEXT) || ' ' || kind FROM approvals WHERE status = 'PENDING' ORDER BY kind";
    let expected = ["ACCESS_REQUEST", "CHANNEL_ERROR"].map(|kind| format!("{} {kind}", stays["id"]));
    assert_eq!(app.column::<String>(open).await, expected);
    let ended = "SELECT DISTINCT outcome FROM approvals WHERE status <> 'PENDING'";
    assert_eq!(app.column::<String>(ended).await, ["WITHDRAWN"]);
}

#[tokio::test]
async fn empty_edits_do_nothing_and_unknown_channels_are_not_found() {
    let app = TestApp::start().await;
    let channel = connect(&app, bot(app.agent().await)).await;
    assert_eq!(sets(&app, &channel, json!({"name": "Support"})).await, channel);
    let answer = app.operator.patch(&format!("{}/999999", path(&app)), json!({"name": "x"})).await;
    assert_eq!(answer.problem(), (404, "NOT_FOUND"));
    let answer = app.operator.patch(&format!("{}/one", path(&app)), json!({"name": "x"})).await;
    assert_eq!(answer.problem(), (400, "MALFORMED_REQUEST"));
}
