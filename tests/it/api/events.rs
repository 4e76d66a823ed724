//! The event hub: who hears about what, what an event costs, and what happens to slow subscribers.

use std::{collections::BTreeSet, sync::Arc};

use async_graphql::Request as Operation;
use futures::{FutureExt, StreamExt, stream::BoxStream};
use muster::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::OrgId,
    },
    core::{
        Event, News, Request,
        access::{Caller, Permit},
    },
    graphql::changes::needed,
    read::Reading,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Actor, Program, Socket, TestApp, Walker, empty_database, picture_input, until};

const CHANGES: &str =
    "subscription($o: Id!, $k: [RecordKind!]) { changes(orgId: $o, kinds: $k) { kind id op } }";

async fn watching(app: &TestApp, actor: &Actor, kinds: Value) -> Socket {
    let mut client = Socket::of(actor).await;
    client.subscribe("1", CHANGES, json!({ "o": app.org, "k": kinds })).await;
    begun(&mut client).await;
    client
}

/// Waits until the subscription receives every change.
async fn begun(client: &mut Socket) {
    assert_eq!(told(client).await, (String::new(), None, "RESYNC".to_owned()));
}

async fn told(client: &mut Socket) -> (String, Option<i64>, String) {
    let next = client.next().await;
    let change = &next["payload"]["data"]["changes"];
    let text = |name: &str| change[name].as_str().unwrap_or_default().to_owned();
    assert!(change["op"].is_string(), "{next}");
    (text("kind"), change["id"].as_i64(), text("op"))
}

/// Creates a skill. Returns its id.
async fn create_skill(actor: &Actor, org: i64, name: &str) -> Option<i64> {
    let create = "mutation($o: Id!, $n: String!) { createSkill(orgId: $o, input: { name: $n, content: \"c\" }) { id } }";
    actor.gql(create, json!({ "o": org, "n": name })).await.data()["createSkill"]["id"].as_i64()
}

fn event(org: i64, kind: RecordKind, id: i64) -> Event {
    Event::new(OrgId(org), ChangeOp::Updated, kind, id)
}

#[tokio::test]
async fn one_subscription_covers_every_kind_its_caller_may_view() {
    let app = TestApp::start().await;
    let mut viewer = watching(&app, &app.viewer, Value::Null).await;
    let mut skills = watching(&app, &app.owner, json!(["SKILL"])).await;
    let mut token = watching(&app, &app.token(&["skill.view"]).await, Value::Null).await;
    let create = "mutation($o: Id!) { createServer(orgId: $o, input: { name: \"s\" }) { id } }";
    let server = app.admin.gql(create, json!({ "o": app.org })).await.data()["createServer"]["id"].as_i64();
    // Not for a viewer: needs `token.view`.
    app.core.events.publish(event(app.org, RecordKind::ServiceToken, 1));
    app.core.events.publish(event(app.other_org, RecordKind::Skill, 5));
    let skill = create_skill(&app.admin, app.org, "k").await;
    let (of_server, of_skill) = (
        ("SERVER".to_owned(), server, "CREATED".to_owned()),
        ("SKILL".to_owned(), skill, "CREATED".to_owned()),
    );
    assert_eq!(told(&mut viewer).await, of_server);
    for client in [&mut viewer, &mut skills, &mut token] {
        assert_eq!(told(client).await, of_skill);
    }
    let delete = "mutation($o: Id!, $i: Id!) { deleteServer(orgId: $o, id: $i) }";
    app.admin.gql(delete, json!({ "o": app.org, "i": server })).await.data();
    assert_eq!(told(&mut viewer).await, ("SERVER".to_owned(), server, "DELETED".to_owned()));
}

/// An entry is shown once it is sealed, later than the change of which it tells.
#[tokio::test]
async fn entries_of_the_audit_log_are_told_when_they_can_be_read() {
    let app = TestApp::start().await;
    app.seal().await;
    let mut admin = watching(&app, &app.admin, json!(["AUDIT_ENTRY"])).await;
    let mut viewer = watching(&app, &app.viewer, json!(["AUDIT_ENTRY", "SKILL"])).await;
    for name in ["one", "two"] {
        create_skill(&app.admin, app.org, name).await;
    }
    app.seal().await;
    let log = "query($o: Id!) { auditLog(orgId: $o, page: 1, limit: 1) { data { id targetName } } }";
    let shown = app.admin.gql(log, json!({ "o": app.org })).await.data()["auditLog"]["data"][0].clone();
    assert_eq!(shown["targetName"], "two");
    assert_eq!(
        told(&mut admin).await,
        ("AUDIT_ENTRY".to_owned(), shown["id"].as_i64(), "CREATED".to_owned())
    );
    for _ in 0..2 {
        assert_eq!(told(&mut viewer).await.0, "SKILL");
    }
    let rename =
        "mutation($o: Id!, $i: Id!) { updateSkill(orgId: $o, id: $i, input: { name: \"three\" }) { id } }";
    let skill: i64 = app.one("SELECT id FROM skills WHERE name = 'two'", vec![]).await;
    app.admin.gql(rename, json!({ "o": app.org, "i": skill })).await.data();
    assert_eq!(told(&mut viewer).await.0, "SKILL");
}

#[tokio::test]
async fn what_a_record_only_shows_raises_its_event_too() {
    let (app, follows, overrides) = TestApp::with_two_agents().await;
    let image: i64 = app.one("SELECT image_id FROM agents WHERE id = $1", vec![follows.into()]).await;
    let sql = "UPDATE agents SET image_id = $1, model_override = 'own' WHERE id = $2";
    app.execute(sql, vec![image.into(), overrides.into()]).await;
    let mut news = app.core.events.subscribe(OrgId(app.org), &Caller::System);
    let mut heard = || {
        let mut heard = Vec::new();
        while let Some(Some((News::Changed(event), _))) = news.next().now_or_never() {
            heard.push((event.kind, event.id));
        }
        heard
    };
    let edit = "mutation($o: Id!, $i: Id!, $e: UpdateImageInput!) { updateImage(orgId: $o, id: $i, input: $e) { id } }";
    let given = |edit: Value| json!({ "o": app.org, "i": image, "e": edit });
    app.admin.gql(edit, given(json!({ "description": "d" }))).await.data();
    assert_eq!(heard(), [(RecordKind::Image, image)]);
    app.admin.gql(edit, given(json!({ "defaultModel": "newer" }))).await.data();
    assert_eq!(heard(), [(RecordKind::Agent, follows), (RecordKind::Image, image)]);

    let viewer = app.viewer.user.unwrap();
    app.viewer.gql("mutation { changeName(name: \"New\") { id } }", json!({})).await.data();
    assert_eq!(heard(), [(RecordKind::Member, viewer)]);
    let picture = "mutation($i: AvatarInput!) { setViewerAvatar(input: $i) { id } }";
    app.viewer.gql(picture, json!({ "i": picture_input() })).await.data();
    assert_eq!(heard(), [(RecordKind::Member, viewer)]);

    let all = app.populate(2).await;
    let (credential, channel) = (all.credentials[1], all.channels[1]);
    let person = app.person("VIEWER", true).await.user.unwrap();
    let share = "mutation($o: Id!, $i: Id!, $u: [Id!]!) { setCredentialMembers(orgId: $o, id: $i, input: { userIds: $u }) { id } }";
    app.owner.gql(share, json!({ "o": app.org, "i": credential, "u": [person] })).await.data();
    let sql = format!("UPDATE channels SET alert_recipient_user_ids = '[{person}]' WHERE id = $1");
    app.execute(&sql, vec![channel.into()]).await;
    heard();
    let remove = "mutation($o: Id!, $u: Id!) { removeMember(orgId: $o, userId: $u) }";
    app.owner.gql(remove, json!({ "o": app.org, "u": person })).await.data();
    let expected =
        [(RecordKind::Credential, credential), (RecordKind::Channel, channel), (RecordKind::Member, person)];
    assert_eq!(heard(), expected);
}

#[tokio::test]
async fn a_removed_member_gets_no_more_events() {
    let app = TestApp::start().await;
    let gone = app.person("VIEWER", true).await;
    let mut client = watching(&app, &gone, Value::Null).await;
    app.execute("DELETE FROM members WHERE user_id = $1", vec![gone.user.unwrap().into()]).await;
    app.core.events.publish(event(app.org, RecordKind::Skill, 1));
    // The service's cache doesn't know yet: the event makes it check.
    let next = client.next().await;
    let code = &next["payload"]["errors"][0]["extensions"]["code"];
    assert_eq!(code, "NOT_A_MEMBER", "{next}");
    assert_eq!(client.next().await["type"], "complete");
}

#[tokio::test]
async fn a_member_is_notified_of_changed_permissions_once_in_force() {
    let app = TestApp::start().await;
    let kinds = json!(["ORGANIZATION", "SKILL"]);
    let mut viewer = watching(&app, &app.viewer, kinds.clone()).await;
    let mut owner = watching(&app, &app.owner, kinds).await;
    let text = format!("p, VIEWER, {}, skill.edit, allow\n", app.org);
    app.owner.edit_policy(app.org, "none", &text).await.data();
    assert_eq!(told(&mut viewer).await, ("ORGANIZATION".to_owned(), Some(app.org), "UPDATED".to_owned()));
    let query = "query($o: Id!) { organization(orgId: $o) { viewerPermissions } }";
    let shown = app.viewer.gql(query, json!({ "o": app.org })).await.data();
    let permissions = shown["organization"]["viewerPermissions"].as_array().unwrap();
    assert!(permissions.contains(&json!("skill.edit")), "{permissions:?}");
    create_skill(&app.admin, app.org, "k").await;
    for client in [&mut viewer, &mut owner] {
        assert_eq!(told(client).await.0, "SKILL", "nothing has changed for the owner");
    }
}

#[tokio::test]
async fn a_burst_in_one_organization_ends_no_subscription_of_another() {
    let app = TestApp::start().await;
    let theirs = "subscription($o: Id!) { changes(orgId: $o) { id op } }";
    let mut stranger = Socket::of(&app.stranger).await;
    stranger.subscribe("1", theirs, json!({ "o": app.other_org })).await;
    assert_eq!(stranger.next().await["payload"]["data"]["changes"]["op"], "RESYNC");
    // A subscriber doesn't get unwanted events, but must keep up with their number.
    let mut ours = watching(&app, &app.owner, json!(["SERVER"])).await;
    for id in 1..=10_000 {
        app.core.events.publish(event(app.org, RecordKind::Skill, id));
    }
    app.core.events.publish(event(app.other_org, RecordKind::Skill, 7));
    let next = stranger.next().await;
    assert_eq!(next["payload"]["data"]["changes"], json!({ "id": 7, "op": "UPDATED" }), "{next}");
    // A subscriber that was too slow learns that, and continues.
    assert_eq!(told(&mut ours).await, (String::new(), None, "RESYNC".to_owned()));
    app.core.events.publish(event(app.org, RecordKind::Server, 1));
    assert_eq!(told(&mut ours).await, ("SERVER".to_owned(), Some(1), "UPDATED".to_owned()));
}

#[tokio::test]
async fn an_event_costs_three_statements_for_all_subscribers() {
    let (app, agent) = TestApp::with_agent().await;
    let watch =
        format!("subscription {{ agentChanged(orgId: {}, id: {agent}) {{ id name status }} }}", app.org);
    let mut streams: Vec<BoxStream<'static, async_graphql::Response>> = Vec::new();
    for n in 0..100 {
        let actor =
            if n % 2 == 0 { app.person("VIEWER", true).await } else { app.token(&["agent.view"]).await };
        let mut request = Request::system(&app.core);
        request.caller = app.caller(&actor).await;
        let operation = Operation::new(&watch).data(Arc::new(request)).data(Arc::new(Reading::default()));
        let mut stream = app.service.graphql.schema.execute_stream(operation).boxed();
        // The observer counts too.
        until("it is listening", async || {
            assert!(stream.next().now_or_never().is_none());
            app.core.events.subscribe(OrgId(app.org), &Caller::System).callers().len() == n + 2
        })
        .await;
        streams.push(stream);
    }
    for status in ["first", "second"] {
        app.execute("UPDATE agents SET name = $1 WHERE id = $2", vec![status.into(), agent.into()]).await;
        let before = app.core.db.statements();
        app.core.events.publish(event(app.org, RecordKind::Agent, agent));
        let answers = futures::future::join_all(streams.iter_mut().map(StreamExt::next)).await;
        for answer in answers {
            let answer = answer.unwrap();
            assert!(answer.errors.is_empty(), "{:?}", answer.errors);
            assert_eq!(answer.data.into_json().unwrap()["agentChanged"]["name"], status);
        }
        assert_eq!(app.core.db.statements() - before, 3);
    }
}

#[test]
fn a_kind_needs_the_permission_of_its_fields() {
    let catalogue = Walker::new().catalogue;
    for kind in RecordKind::ALL {
        let fields: &[&str] = match kind {
            RecordKind::Agent => &["agent"],
            RecordKind::Approval => &["approval"],
            RecordKind::Attachment => &["attachment"],
            RecordKind::AuditEntry => &["auditLog"],
            RecordKind::Channel => &["channel"],
            RecordKind::Contact => &["contact"],
            RecordKind::Conversation => &["conversations", "conversation"],
            RecordKind::Credential => &["credential"],
            RecordKind::EventEndpoint => &["eventEndpoint"],
            RecordKind::Image => &["image"],
            RecordKind::Invitation => &["invitations"],
            RecordKind::McpServer => &["mcpServer"],
            RecordKind::Member => &["member"],
            RecordKind::Message => &["messages"],
            RecordKind::ModelCredential | RecordKind::Organization => &["organization"],
            RecordKind::Policy => &["policy"],
            RecordKind::Server => &["server"],
            RecordKind::ServiceToken => &["serviceTokens"],
            RecordKind::Skill => &["skill"],
            RecordKind::Turn => &["turn"],
        };
        let permission = |field: &&str| match catalogue.root_field(field).map(|root| root.permit) {
            Some(Permit::InOrganization { permission, .. }) => permission,
            permit => panic!("{field}: {permit:?}"),
        };
        assert_eq!(needed(*kind), fields.iter().map(permission).collect::<Vec<_>>(), "{kind}");
    }
}

/// An SQLite database has one process.
#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "not our service but clients of the test")]
async fn postgres_a_stopping_replica_announces_its_last_changes() {
    let shared = tempfile::tempdir().unwrap();
    let (url, keys) = (empty_database(shared.path()).await, shared.path().join("keys.toml"));
    let program = Program::new(&[
        ("MUSTER_DATABASE_URL", &url),
        ("MUSTER_KEYS_FILE", keys.to_str().unwrap()),
        ("MUSTER_LOG", "off"),
        ("MUSTER_RATE_LIMITS_ENABLED", "false"),
    ]);
    let tenant = program.tenant();
    let (first, second) = (program.serve(), program.serve());
    let (here, there) = (first.actor(&tenant), second.actor(&tenant));
    let mut client = Socket::of(&there).await;
    client.subscribe("1", CHANGES, json!({ "o": tenant.org, "k": ["SERVER"] })).await;
    begun(&mut client).await;
    let path = format!("/v1/org/{}/server", tenant.org);
    let write = |writer: usize| {
        let (here, path) = (here.clone(), path.clone());
        async move {
            let mut acknowledged = Vec::new();
            for n in 0.. {
                let request =
                    here.request(Method::POST, &path).json(&json!({ "name": format!("{writer}-{n}") }));
                let Ok(answer) = request.send().await else { break };
                if answer.status() != 201 {
                    break;
                }
                let Ok(made) = answer.json::<Value>().await else { break };
                acknowledged.push(made["id"].as_i64().unwrap());
            }
            acknowledged
        }
    };
    let writers: Vec<_> = (0..4).map(|writer| tokio::spawn(write(writer))).collect();
    let mut heard = BTreeSet::new();
    let hear = async |client: &mut Socket, heard: &mut BTreeSet<i64>| match told(client).await {
        (_, Some(id), _) => drop(heard.insert(id)),
        // The second replica may only just have started listening.
        (_, None, op) => assert!(heard.len() < 20, "{op}"),
    };
    while heard.len() < 40 {
        hear(&mut client, &mut heard).await;
    }
    first.terminate();
    let acknowledged = futures::future::join_all(writers).await.into_iter().flat_map(Result::unwrap);
    for id in acknowledged {
        while !heard.contains(&id) {
            hear(&mut client, &mut heard).await;
        }
    }
}

/// An SQLite database has one process.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_change_on_one_replica_is_heard_on_the_other() {
    let shared = tempfile::tempdir().unwrap();
    let (url, keys) = (empty_database(shared.path()).await, shared.path().join("keys.toml"));
    let program = || {
        Program::new(&[
            ("MUSTER_DATABASE_URL", &url),
            ("MUSTER_KEYS_FILE", keys.to_str().unwrap()),
            ("MUSTER_LOG", "off"),
        ])
    };
    let (one, two) = (program(), program());
    let tenant = one.tenant();
    let (first, second) = (one.serve(), two.serve());
    let (here, there) = (first.actor(&tenant), second.actor(&tenant));
    let mut client = Socket::of(&there).await;
    client.subscribe("1", CHANGES, json!({ "o": tenant.org, "k": ["SKILL", "SERVICE_TOKEN"] })).await;
    begun(&mut client).await;
    let mut missed = 0;
    for n in 0..50 {
        let made = create_skill(&here, tenant.org, &format!("s{n}")).await;
        loop {
            match told(&mut client).await {
                // The second replica may only just have started listening.
                (_, None, op) if op == "RESYNC" => missed += 1,
                heard => {
                    assert_eq!(heard, ("SKILL".to_owned(), made, "CREATED".to_owned()));
                    break;
                }
            }
        }
    }
    assert!(missed <= 2, "{missed}");
    // A command has no replica of its own.
    let org = tenant.org.to_string();
    one.json(&["token", "create", "--org", &org, "--name", "ci", "--permission", "agent.view"]);
    let heard = told(&mut client).await;
    assert_eq!((heard.0.as_str(), heard.2.as_str()), ("SERVICE_TOKEN", "CREATED"));
    // A replica that dies without a goodbye may have sent something no one received.
    drop(first);
    assert_eq!(told(&mut client).await.2, "RESYNC");
}
