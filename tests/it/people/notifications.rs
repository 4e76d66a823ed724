//! People are notified where they are needed: who, what, when, and never twice.

use std::time::Duration;

use futures::future::join_all;
use muster::{
    base::{
        enums::{ApprovalKind, InactiveReason, Severity, StatusReason},
        ids::{AgentId, ChannelId, ConversationId},
        time::Timestamp,
    },
    core::Core,
    domain::{
        approvals::{self, NewApproval},
        channels, launch, notifications,
    },
};
use serde_json::{Value, json};

use crate::{
    channels::{connect, sets, webhook},
    harness::{Actor, Mail, TestApp},
    people::remove,
};

const TITLE: &str = "Wire the money to a stranger";
const SET: &str = "mutation($o: Id!, $i: NotificationsInput!) { setNotifications(orgId: $o, input: $i) \
    { approvalRaised approvalExpiring agentFailed } }";
const PREFER: &str = "mutation($p: JSON!) { setPreferences(preferences: $p) { preferences } }";
const WATCH: &str = "mutation($o: Id!, $i: Id!, $w: Boolean!) { watchConversation(orgId: $o, id: $i, watch: $w) { watching } }";
const START: &str =
    "mutation($o: Id!, $a: Id!) { startConversation(orgId: $o, input: { agentId: $a }) { id watching } }";
const ASSIGN: &str = "mutation($o: Id!, $i: Id!, $u: Id) { assignApproval(orgId: $o, id: $i, userId: $u) \
    { assigneeId assigneeName status } }";
const SNOOZE: &str = "mutation($o: Id!, $i: Id!, $t: Timestamp) { snoozeApproval(orgId: $o, id: $i, until: $t) \
    { snoozedUntil expiresAt } }";

struct Place {
    agent: i64,
    conversation: i64,
}

impl Place {
    /// An agent with a conversation that no one in particular started.
    async fn of(app: &TestApp) -> Self {
        let agent = app.agent().await;
        Self { agent, conversation: app.conversation(agent).await }
    }

    /// Raises a request of the agent that expires after this many minutes.
    async fn ask(&self, app: &TestApp, minutes: u64) -> i64 {
        let tx = app.scope().begin().await.unwrap();
        let new = NewApproval {
            agent_id: Some(AgentId(self.agent)),
            conversation_id: Some(ConversationId(self.conversation)),
            severity: Severity::High,
            expires_at: Some(app.clock.now().plus(Duration::from_mins(minutes))),
            ..NewApproval::new(ApprovalKind::Action, TITLE)
        };
        let id = approvals::raise(&tx, new).await.unwrap();
        tx.commit().await.unwrap();
        id.0
    }

    async fn fail(&self, app: &TestApp) {
        let tx = app.scope().begin().await.unwrap();
        launch::fail(&tx, AgentId(self.agent), StatusReason::OutOfMemory, Some("secret output"))
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    /// Lets the operator start the conversation instead.
    async fn started_by(app: &TestApp, who: &Actor) -> Self {
        let agent = app.agent().await;
        let started = who.gql(START, json!({ "o": app.org, "a": agent })).await.data();
        assert_eq!(started["startConversation"]["watching"], true);
        Self { agent, conversation: started["startConversation"]["id"].as_i64().unwrap() }
    }
}

/// Sends what is due, and returns the mails in the order of their recipients.
async fn mails_due(app: &TestApp) -> Vec<Mail> {
    approvals::remind_due(&app.core).await.unwrap();
    notifications::collect_due(&app.core).await.unwrap();
    let mut mails = app.mails().await;
    mails.sort_by(|a, b| a.to.cmp(&b.to));
    mails
}

/// The people who are notified now.
async fn who(app: &TestApp) -> Vec<String> {
    let name = |mail: Mail| mail.to.split('@').next().unwrap().trim_start_matches('<').to_owned();
    mails_due(app).await.into_iter().map(name).collect()
}

async fn set(app: &TestApp, actor: &Actor, input: Value) -> Value {
    actor.gql(SET, json!({ "o": app.org, "i": input })).await.data()["setNotifications"].clone()
}

async fn assign(app: &TestApp, by: &Actor, id: i64, to: Option<i64>) {
    let answer = by.gql(ASSIGN, json!({ "o": app.org, "i": id, "u": to })).await.data();
    assert_eq!(answer["assignApproval"]["assigneeId"], json!(to));
}

fn minutes(minutes: u64) -> Duration {
    Duration::from_mins(minutes)
}

/// After the quiet time.
fn later(app: &TestApp) {
    app.clock.advance(minutes(6));
}

#[tokio::test]
async fn a_mail_names_agent_and_kind_and_links_the_approval() {
    let app = TestApp::with_mail().await;
    let place = Place::of(&app).await;
    let id = place.ask(&app, 120).await;
    let mails = mails_due(&app).await;
    assert_eq!(mails.len(), 2, "{mails:#?}");
    let mail = &mails[1];
    let agent: String = app.one("SELECT name FROM agents WHERE id = $1", vec![place.agent.into()]).await;
    assert!(mail.to.contains("owner@example.com"), "{mail:#?}");
    assert_eq!(mail.subject, format!("{agent} asks for approval"));
    assert!(
        mail.text.contains("Organization: Meridian Freight. Kind: ACTION, severity: HIGH."),
        "{}",
        mail.text
    );
    assert!(mail.text.contains("It expires at 2026-06-01 14:00 UTC."), "{}", mail.text);
    let link = format!("\n\nhttps://muster.example.com/o/{}/approvals/{id}\n\n", app.org);
    assert!(mail.text.contains(&link) && !mail.text.contains(TITLE), "{}", mail.text);
    assert!(mails_due(&app).await.is_empty(), "no one is notified twice");
    // The text only where the organization allows it.
    let allow = "mutation($o: Id!) { updateOrganization(orgId: $o, input: { mailRequestText: true }) { mailRequestText } }";
    let allowed = app.owner.gql(allow, json!({ "o": app.org })).await.data();
    assert_eq!(allowed["updateOrganization"]["mailRequestText"], true);
    later(&app);
    place.ask(&app, 120).await;
    assert!(mails_due(&app).await[0].text.contains(&format!("It says: “{TITLE}”")));
}

#[tokio::test]
async fn the_assignee_else_watchers_else_admins_are_notified() {
    let app = TestApp::with_mail().await;
    Place::of(&app).await.ask(&app, 600).await;
    assert_eq!(who(&app).await, ["admin", "owner"]);
    later(&app);
    let place = Place::started_by(&app, &app.operator).await;
    place.ask(&app, 600).await;
    assert_eq!(who(&app).await, ["operator"]);
    later(&app);
    let watch = |actor: &Actor, watches: bool| {
        let (actor, given) = (actor.clone(), json!({ "o": app.org, "i": place.conversation, "w": watches }));
        async move { actor.gql(WATCH, given).await }
    };
    assert_eq!(watch(&app.viewer, true).await.data()["watchConversation"]["watching"], true);
    let id = place.ask(&app, 600).await;
    assert_eq!(who(&app).await, ["operator", "viewer"]);
    later(&app);
    assign(&app, &app.operator, id, app.viewer.user).await;
    let mails = mails_due(&app).await;
    assert_eq!(mails.len(), 1);
    assert!(
        mails[0].to.contains("viewer") && mails[0].subject.starts_with("Assigned to you: "),
        "{mails:#?}"
    );
    // The reminder goes only to the assignee.
    app.clock.advance(minutes(540));
    let mails = mails_due(&app).await;
    let reminded: Vec<_> =
        mails.iter().filter(|mail| mail.text.contains(&format!("/approvals/{id}\n"))).collect();
    assert_eq!(reminded.len(), 1, "{mails:#?}");
    assert!(
        reminded[0].to.contains("viewer") && reminded[0].subject.starts_with("Expires soon: "),
        "{mails:#?}"
    );
    // Users who no longer watch are not notified; when no one watches, OWNER and ADMIN are.
    later(&app);
    watch(&app.viewer, false).await.data();
    watch(&app.operator, false).await.data();
    place.ask(&app, 15).await;
    assert_eq!(who(&app).await, ["admin", "owner"]);
    let token = app.token(&["agent.output.view", "approval.view", "organization.view"]).await;
    assert_eq!(watch(&token, true).await.code(), "PERMISSION_DENIED");
    let seen = "query($o: Id!, $i: Id!) { approval(orgId: $o, id: $i) { snoozedUntil } }";
    assert_eq!(
        token.gql(seen, json!({ "o": app.org, "i": id })).await.data()["approval"]["snoozedUntil"],
        Value::Null
    );
}

#[tokio::test]
async fn the_users_that_a_channel_names_hear_that_it_failed() {
    let app = TestApp::with_mail().await;
    let agent = app.agent().await;
    let fails = async |channel: &Value| {
        let id = ChannelId(channel["id"].as_i64().unwrap());
        let seen = app.one("SELECT updated_at FROM channels WHERE id = $1", vec![id.0.into()]).await;
        let tx = app.scope().begin().await.unwrap();
        channels::switch_off(&tx, id, Timestamp(seen), InactiveReason::AuthFailed, "The vendor refuses it.")
            .await
            .unwrap();
        tx.commit().await.unwrap();
        later(&app);
        who(&app).await
    };
    let named = connect(&app, webhook(agent)).await;
    let (gone, reader) = (app.person("OPERATOR", true).await, app.person("VIEWER", true).await);
    let recipients = [app.operator.user, gone.user, reader.user, app.viewer.user];
    sets(&app, &named, json!({ "alert_recipient_user_ids": recipients })).await;
    remove(&app, &app.owner, &gone).await.data();
    set(&app, &app.viewer, json!({ "approvalRaised": "OFF" })).await;
    let reader = app.one::<String>("SELECT name FROM users WHERE id = $1", vec![reader.user.unwrap().into()]);
    assert_eq!(fails(&named).await, ["operator".to_owned(), reader.await]);
    sets(&app, &named, json!({ "is_active": true })).await;
    app.owner.set_permission(app.org, "denyPermission", "VIEWER", "approval.view").await.data();
    assert_eq!(fails(&named).await, ["operator"], "a member who may no longer see it is not notified");
    // No one in particular: those who answer for the organization.
    assert_eq!(fails(&connect(&app, webhook(agent)).await).await, ["admin", "owner"]);
}

#[tokio::test]
async fn a_mail_about_a_channel_names_it_and_not_its_agent() {
    let app = TestApp::with_mail().await;
    let channel = connect(&app, webhook(app.agent().await)).await;
    sets(&app, &channel, json!({ "alert_recipient_user_ids": [app.operator.user] })).await;
    let delete = "mutation($o: Id!, $a: Id!) { deleteAgent(orgId: $o, id: $a) }";
    app.admin.gql(delete, json!({ "o": app.org, "a": channel["agent_id"] })).await.data();
    let mails = mails_due(&app).await;
    assert_eq!(mails.len(), 1, "{mails:#?}");
    assert!(mails[0].to.contains("operator") && mails[0].subject == "Orders has failed", "{mails:#?}");
}

#[tokio::test]
async fn five_minutes_of_news_are_one_mail() {
    let app = TestApp::with_mail().await;
    let place = Place::started_by(&app, &app.operator).await;
    place.ask(&app, 600).await;
    assert_eq!(mails_due(&app).await.len(), 1);
    for _ in 0..3 {
        app.clock.advance(minutes(1));
        place.ask(&app, 600).await;
        assert!(mails_due(&app).await.is_empty());
    }
    let decided = place.ask(&app, 600).await;
    let dismiss = format!("/v1/org/{}/approval/{decided}/dismiss", app.org);
    app.owner.patch(&dismiss, json!({})).await.expect(200);
    app.clock.advance(minutes(2));
    let mails = mails_due(&app).await;
    assert_eq!(mails.len(), 1, "{mails:#?}");
    assert!(mails[0].subject.ends_with(", and 2 more"), "{}", mails[0].subject);
    assert_eq!(
        mails[0].text.matches("/approvals/").count(),
        3,
        "what is decided is not sent: {}",
        mails[0].text
    );
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM notifications", vec![]).await, 0);
}

#[tokio::test]
async fn a_digest_comes_at_eight_where_the_person_is() {
    let app = TestApp::with_mail().await;
    let set_to = set(&app, &app.operator, json!({ "approvalRaised": "DIGEST" })).await;
    assert_eq!(
        set_to,
        json!({ "approvalRaised": "DIGEST", "approvalExpiring": "AT_ONCE", "agentFailed": "OFF" })
    );
    let zone = json!({ "p": { "timeZone": "Asia/Tokyo", "theme": "dark" } });
    let kept = app.operator.gql(PREFER, zone.clone()).await.data();
    assert_eq!(kept["setPreferences"]["preferences"], zone["p"]);
    let place = Place::started_by(&app, &app.operator).await;
    place.ask(&app, 3000).await;
    place.ask(&app, 3000).await;
    // It is noon in UTC: eight in Tokyo is eleven hours away.
    app.clock.advance(minutes(11 * 60 - 1));
    assert!(mails_due(&app).await.is_empty());
    app.clock.advance(minutes(1));
    let mails = mails_due(&app).await;
    assert_eq!(mails.len(), 1);
    assert!(mails[0].subject.ends_with(", and 1 more") && mails[0].text.contains(" JST."), "{mails:#?}");
}

#[tokio::test]
async fn a_snoozed_approval_is_silent_and_expires_on_time() {
    let app = TestApp::with_mail().await;
    let place = Place::started_by(&app, &app.operator).await;
    let id = place.ask(&app, 600).await;
    let expires_at = app.clock.now().plus(minutes(600));
    let snooze = |until: Option<Timestamp>| {
        let (actor, given) = (app.operator.clone(), json!({ "o": app.org, "i": id, "t": until }));
        async move { actor.gql(SNOOZE, given).await }
    };
    let in_minutes = |n: u64| Some(app.clock.now().plus(minutes(n)));
    let late = snooze(in_minutes(591)).await;
    assert_eq!(late.code(), "VALIDATION_FAILED");
    assert!(late.text.contains("until ten minutes before that: 2026-06-01T21:50:00.000Z"), "{}", late.text);
    assert_eq!(snooze(in_minutes(0)).await.code(), "VALIDATION_FAILED");
    let snoozed = snooze(in_minutes(590)).await.data()["snoozeApproval"].clone();
    assert_eq!(snoozed, json!({ "snoozedUntil": in_minutes(590), "expiresAt": expires_at }));
    assert!(mails_due(&app).await.is_empty(), "it has been seen");
    let seen = "query($o: Id!, $i: Id!) { approval(orgId: $o, id: $i) { snoozedUntil } }";
    let given = json!({ "o": app.org, "i": id });
    let others = app.owner.gql(seen, given.clone()).await.data();
    assert_eq!(others["approval"]["snoozedUntil"], Value::Null, "snoozing is personal");
    // The reminder is due an hour before the expiry, and waits for the end of the snooze.
    app.clock.advance(minutes(541));
    assert!(mails_due(&app).await.is_empty());
    app.clock.advance(minutes(49));
    let mails = mails_due(&app).await;
    assert_eq!(mails.len(), 1);
    assert!(mails[0].subject.starts_with("Expires soon: "), "{mails:#?}");
    assert_eq!(app.operator.gql(seen, given).await.data()["approval"]["snoozedUntil"], Value::Null);
    assert_eq!(snooze(in_minutes(1)).await.code(), "VALIDATION_FAILED", "not in the last ten minutes");
    app.clock.advance(minutes(10));
    assert_eq!(snooze(None).await.code(), "APPROVAL_NOT_PENDING");
}

#[tokio::test]
async fn people_are_reminded_once_of_an_open_approval() {
    let app = TestApp::with_mail().await;
    let place = Place::started_by(&app, &app.operator).await;
    place.ask(&app, 600).await;
    let decided = place.ask(&app, 600).await;
    place.ask(&app, 19).await;
    assert_eq!(mails_due(&app).await.len(), 1);
    let dismiss = format!("/v1/org/{}/approval/{decided}/dismiss", app.org);
    app.owner.patch(&dismiss, json!({})).await.expect(200);
    app.clock.advance(minutes(539));
    assert!(mails_due(&app).await.is_empty(), "one that lives for less than 20 minutes has no reminder");
    app.clock.advance(minutes(1));
    let replica = app.replica(None).await;
    let reminded = join_all([&app.core, &replica].map(approvals::remind_due)).await;
    assert_eq!(reminded.into_iter().map(Result::unwrap).sum::<u64>(), 1);
    let mails = mails_due(&app).await;
    assert_eq!(mails.len(), 1, "{mails:#?}");
    assert_eq!(mails[0].text.matches("/approvals/").count(), 1, "{}", mails[0].text);
    assert!(mails_due(&app).await.is_empty());
}

#[tokio::test]
async fn users_without_the_permission_are_not_notified() {
    let app = TestApp::with_mail().await;
    let place = Place::started_by(&app, &app.operator).await;
    let gone = app.person("OPERATOR", true).await;
    let unconfirmed = app.person("ADMIN", false).await;
    for actor in [&gone, &app.viewer] {
        actor.gql(WATCH, json!({ "o": app.org, "i": place.conversation, "w": true })).await.data();
    }
    place.ask(&app, 600).await;
    let queued: i64 = app.one("SELECT COUNT(*) FROM notifications", vec![]).await;
    assert_eq!(queued, 3);
    // The recipients have lost the right by the time the mail would be written.
    remove(&app, &app.owner, &gone).await.data();
    app.execute("UPDATE users SET disabled_at = 1 WHERE id = $1", vec![app.viewer.user.unwrap().into()])
        .await;
    app.owner.set_permission(app.org, "denyPermission", "OPERATOR", "approval.view").await.data();
    assert!(mails_due(&app).await.is_empty());
    // The same when the mail was already queued.
    later(&app);
    Place::of(&app).await.ask(&app, 600).await;
    assert_eq!(notifications::collect_due(&app.core).await.unwrap(), 2);
    app.execute("UPDATE users SET disabled_at = 1 WHERE id = $1", vec![app.owner.user.unwrap().into()]).await;
    assert_eq!(who(&app).await, ["admin"]);
    // An address that no one has confirmed gets nothing, and those who may not see it don't count as watching.
    later(&app);
    place.ask(&app, 600).await;
    assert_eq!(who(&app).await, ["admin"]);
    assert!(unconfirmed.user.is_some());
}

#[tokio::test]
async fn a_failed_agent_notifies_admins_and_subscribers() {
    let app = TestApp::with_mail().await;
    let place = Place::of(&app).await;
    assert_eq!(set(&app, &app.operator, json!({ "agentFailed": "AT_ONCE" })).await["agentFailed"], "AT_ONCE");
    assert_eq!(set(&app, &app.admin, json!({ "agentFailed": "OFF" })).await["agentFailed"], "OFF");
    place.fail(&app).await;
    place.fail(&app).await;
    let mails = mails_due(&app).await;
    let to: Vec<&str> = mails.iter().map(|mail| mail.to.as_str()).collect();
    assert_eq!(to.len(), 2, "{to:?}");
    assert!(to[0].contains("operator") && to[1].contains("owner"), "{to:?}");
    let link = format!("https://muster.example.com/o/{}/agents/{}\n", app.org, place.agent);
    assert!(
        mails[0].text.contains(&link) && mails[0].text.contains("Reason: OUT_OF_MEMORY."),
        "{}",
        mails[0].text
    );
    assert!(mails[0].subject.ends_with(" has failed") && !mails[0].text.contains("secret output"));
    // One that is up again by the time of the mail is not reported.
    later(&app);
    place.fail(&app).await;
    app.execute("UPDATE agents SET status = 'STOPPED'", vec![]).await;
    assert!(mails_due(&app).await.is_empty());
}

#[tokio::test]
async fn one_of_many_replicas_notifies_and_a_crash_loses_nothing() {
    let app = TestApp::with_mail().await;
    let place = Place::of(&app).await;
    place.ask(&app, 600).await;
    let others = [app.replica(None).await, app.replica(None).await];
    let all: Vec<_> = (0..9).map(|n| [&app.core, &others[0], &others[1]][n % 3]).collect();
    let collected = join_all(all.iter().map(|core| notifications::collect_due(core))).await;
    assert_eq!(collected.into_iter().map(Result::unwrap).sum::<u64>(), 2, "owner and admin, each once");
    // The replica that collected is gone; the mail waits, and any other sends it.
    let sent =
        join_all(all.iter().map(|core: &&std::sync::Arc<Core>| notifications::deliver_due(core))).await;
    assert_eq!(sent.into_iter().map(Result::unwrap).sum::<u64>(), 2);
    assert_eq!(app.mails().await.len(), 2);
    // A mail that can't be sent yet is followed by no other.
    later(&app);
    place.ask(&app, 600).await;
    assert_eq!(notifications::collect_due(&app.core).await.unwrap(), 2);
    app.execute("UPDATE mails SET available_at = available_at + 3600000", vec![]).await;
    later(&app);
    place.ask(&app, 600).await;
    assert_eq!(notifications::collect_due(&others[0]).await.unwrap(), 0);
    app.clock.advance(minutes(60));
    assert_eq!(who(&app).await, ["admin", "owner"]);
    assert!(mails_due(&app).await.is_empty(), "the quiet time counts from when it was sent");
    later(&app);
    assert_eq!(who(&app).await, ["admin", "owner"]);
}

#[tokio::test]
async fn the_poll_finds_no_one_in_their_quiet_time() {
    let app = TestApp::with_mail().await;
    let place = Place::of(&app).await;
    let found = async || {
        let sql = format!("SELECT COUNT(*) FROM {}", notifications::TO_COLLECT);
        app.one::<i64>(&sql, vec![app.clock.now().0.into()]).await
    };
    place.ask(&app, 600).await;
    assert_eq!(found().await, 2, "owner and admin");
    assert_eq!(mails_due(&app).await.len(), 2);
    place.ask(&app, 600).await;
    assert_eq!(found().await, 0);
    later(&app);
    assert_eq!(found().await, 2);
}

#[tokio::test]
async fn an_event_that_repeats_while_it_is_collected_is_sent() {
    let app = TestApp::with_mail().await;
    let place = Place::of(&app).await;
    place.fail(&app).await;
    // The agent is up again, so there is nothing to send; but while notifications are collected, it fails once more.
    app.execute("UPDATE agents SET status = 'STOPPED'", vec![]).await;
    let again = app.scope().begin().await.unwrap();
    launch::fail(&again, AgentId(place.agent), StatusReason::Exited, None).await.unwrap();
    let mut collecting = Box::pin(notifications::collect_due(&app.core));
    let waits = tokio::time::timeout(Duration::from_millis(500), &mut collecting).await;
    assert!(waits.is_err(), "it waits for what is being written");
    again.commit().await.unwrap();
    let collected = collecting.await.unwrap();
    assert_eq!(collected + notifications::collect_due(&app.core).await.unwrap(), 2, "owner and admin");
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM notifications", vec![]).await, 0);
}

#[tokio::test]
async fn an_assignee_is_a_member_and_cleared_on_leaving() {
    let app = TestApp::start().await;
    let place = Place::of(&app).await;
    let (one, other) = (place.ask(&app, 60).await, place.ask(&app, 60).await);
    let person = app.person("VIEWER", true).await;
    for stranger in [app.stranger.user, Some(987_654)] {
        let refused = app.operator.gql(ASSIGN, json!({ "o": app.org, "i": one, "u": stranger })).await;
        assert_eq!(refused.code(), "VALIDATION_FAILED", "{}", refused.text);
    }
    assert_eq!(app.viewer.gql(ASSIGN, json!({ "o": app.org, "i": one })).await.code(), "PERMISSION_DENIED");
    let mut changes =
        app.core.events.subscribe(muster::base::ids::OrgId(app.org), &muster::core::access::Caller::System);
    for id in [one, other] {
        assign(&app, &app.operator, id, person.user).await;
        assert!(changes.next().await.is_some(), "it is reported live");
    }
    let query = "query($o: Id!, $i: Id!) { approval(orgId: $o, id: $i) { assigneeId assigneeName status } }";
    let seen = app.viewer.gql(query, json!({ "o": app.org, "i": one })).await.data();
    assert!(seen["approval"]["assigneeName"].as_str().unwrap().starts_with("person-"), "{seen}");
    // Anyone else decides.
    app.operator.patch(&format!("/v1/org/{}/approval/{one}/dismiss", app.org), json!({})).await.expect(200);
    let late = app.operator.gql(ASSIGN, json!({ "o": app.org, "i": one, "u": null })).await;
    assert_eq!(late.code(), "APPROVAL_NOT_PENDING");
    let leave = "mutation($o: Id!) { leaveOrganization(orgId: $o) }";
    let left = person.gql(leave, json!({ "o": app.org })).await;
    assert!(left.body["errors"].is_null(), "{}", left.text);
    for id in [one, other] {
        let seen = app.viewer.gql(query, json!({ "o": app.org, "i": id })).await.data();
        assert_eq!(seen["approval"]["assigneeId"], Value::Null);
    }
}

#[tokio::test]
async fn preferences_are_an_object_of_at_most_64_kib() {
    let app = TestApp::start().await;
    let viewer = "{ viewer { preferences } }";
    assert_eq!(app.viewer.gql(viewer, json!({})).await.data()["viewer"]["preferences"], Value::Null);
    for bad in [json!([1]), json!("text"), json!({ "x": "y".repeat(65_536) })] {
        assert_eq!(app.viewer.gql(PREFER, json!({ "p": bad })).await.code(), "VALIDATION_FAILED");
    }
    // PostgreSQL could not keep this character.
    for bad in [json!({ "x": "a\0" }), json!({ "a\0": 1 }), json!({ "x": [1, { "y": ["\0"] }] })] {
        let refused = app.viewer.gql(PREFER, json!({ "p": bad })).await;
        assert_eq!(refused.code(), "VALIDATION_FAILED", "{}", refused.text);
        let wrong = &refused.body["errors"][0]["extensions"]["errors"][0];
        assert_eq!((&wrong["pointer"], &wrong["code"]), (&json!("/preferences"), &json!("NOT_ALLOWED")));
    }
    let good = json!({ "timeZone": "local", "views": { "é": [1, null] }, "x": "y".repeat(65_000) });
    app.viewer.gql(PREFER, json!({ "p": good })).await.data();
    assert_eq!(app.viewer.gql(viewer, json!({})).await.data()["viewer"]["preferences"], good);
    assert_eq!(app.operator.gql(viewer, json!({})).await.data()["viewer"]["preferences"], Value::Null);
    let zone = async || {
        let sql = "SELECT time_zone FROM users WHERE id = $1";
        app.one::<Option<String>>(sql, vec![app.viewer.user.unwrap().into()]).await
    };
    assert_eq!(zone().await, None, "what names no time zone is none");
    for (name, expected) in [("Asia/Tokyo", Some("Asia/Tokyo")), ("Factory", None), ("posixrules", None)] {
        app.viewer.gql(PREFER, json!({ "p": { "timeZone": name } })).await.data();
        assert_eq!(zone().await.as_deref(), expected, "{name}");
    }
    assert_eq!(
        app.token(&["agent.view"]).await.gql(PREFER, json!({ "p": {} })).await.code(),
        "PERMISSION_DENIED"
    );
}

#[tokio::test]
async fn without_mail_nothing_is_kept_for_later() {
    let app = TestApp::start().await;
    let place = Place::of(&app).await;
    place.ask(&app, 600).await;
    place.fail(&app).await;
    assert_eq!(app.one::<i64>("SELECT COUNT(*) FROM notifications", vec![]).await, 0);
    assert_eq!(notifications::collect_due(&app.core).await.unwrap(), 0);
}
