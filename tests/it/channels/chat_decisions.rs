//! People are asked in their own chats, and decide there: who may, and what is refused. The vendor is the fake that
//! python-telegram-bot takes for Telegram.

use muster::{
    base::{
        enums::ApprovalKind,
        ids::{AgentId, ConversationId},
    },
    core::{audit, resource_limits::Resource},
    domain::{
        approvals::{self, Choice, NewApproval, Question, ToolRequest},
        chat_approvals,
    },
};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::{
    approvals::{asked::run, raise},
    channels::{
        at, delete,
        linked::Chat,
        probes::{hold, whitelist},
        send_limits::let_time_pass,
        sets,
        telegram_webhook::Hook,
    },
    harness::{
        fakes::telegram::{NEW_TOKEN, TOKEN, said},
        until,
    },
};

const ASKED: &str = "SELECT COUNT(*) FROM approval_asks WHERE approval_id = $1 AND state = 'ASKED'";

/// A request in a chat: the approval, the chat's message, and the values of its buttons.
struct Arrived {
    approval: i64,
    message: Value,
    buttons: Vec<String>,
}

impl Chat {
    /// User 5 answers a message of ours.
    fn replies(&self, id: i64, to: &Value, text: &str) {
        let mut update = said(id, text);
        update["message"]["reply_to_message"] = json!({ "message_id": to["message_id"], "date": 1,
            "chat": { "id": 5, "type": "private" }, "from": { "id": 7, "is_bot": true, "first_name": "Muster" } });
        self.comes(update);
    }

    /// A person taps a button.
    fn taps(&self, id: i64, (user, chat): (i64, &Value), value: &str) {
        self.comes(json!({ "update_id": id, "callback_query": { "id": format!("tap{id}"), "chat_instance": "1", "data": value,
            "from": { "id": user, "is_bot": false, "first_name": "Ada" },
            "message": { "message_id": 42, "date": 1_700_000_000, "chat": chat } } }));
    }

    /// The answers to people's taps.
    fn heard(&self) -> Vec<String> {
        self.asked("answerCallbackQuery")
            .iter()
            .map(|answer| answer["text"].as_str().unwrap().to_owned())
            .collect()
    }

    async fn until_heard(&self, count: usize) -> String {
        until("the tap is answered", async || self.heard().len() >= count).await;
        self.heard().pop().unwrap()
    }

    async fn raise(&self, new: NewApproval) -> i64 {
        let conversation = self.app.conversation(self.agent).await;
        let new = NewApproval {
            agent_id: Some(AgentId(self.agent)),
            conversation_id: Some(ConversationId(conversation)),
            ..new
        };
        raise(&self.app, new).await
    }

    /// An action of risk 10, as it arrives.
    async fn asks(&self) -> Arrived {
        self.asks_about("Delete *all* of it").await
    }

    async fn asks_about(&self, title: &str) -> Arrived {
        let approval = self.wants(title).await;
        self.arrives(approval).await
    }

    /// An action of risk 10, which needs no approval yet.
    async fn wants(&self, title: &str) -> i64 {
        self.raise(NewApproval { risk: Some(10), ..NewApproval::new(ApprovalKind::Action, title) }).await
    }

    async fn is_denied(&self, approval: i64) {
        let path = format!("/v1/org/{}/approval/{approval}/answer", self.app.org);
        self.app.operator.patch(&path, json!({ "options": ["deny"] })).await.expect(200);
    }

    async fn arrives(&self, approval: i64) -> Arrived {
        until("it is asked", async || {
            chat_approvals::send_due(&self.app.core).await.unwrap();
            let_time_pass(&self.app).await;
            self.app.one::<i64>(ASKED, vec![approval.into()]).await == 1
        })
        .await;
        let sql = "SELECT vendor_id FROM approval_asks WHERE approval_id = $1";
        let vendor_id: String = self.app.one(sql, vec![approval.into()]).await;
        let id: i64 = vendor_id.rsplit_once(':').unwrap().1.parse().unwrap();
        let mut message = self.asked("sendMessage").pop().unwrap();
        message["message_id"] = json!(id);
        let rows = message["reply_markup"]["inline_keyboard"].as_array().cloned().unwrap_or_default();
        let buttons = rows.iter().map(|row| row[0]["callback_data"].as_str().unwrap().to_owned()).collect();
        Arrived { approval, message, buttons }
    }

    /// An action of risk 10, whose message has not been answered by the vendor: with what to answer.
    async fn flies(&self, title: &str) -> (i64, oneshot::Sender<(u16, Value)>) {
        let answer = hold(&self.telegram, "sendMessage");
        let flies = self.wants(title).await;
        until("it is being sent", async || {
            chat_approvals::send_due(&self.app.core).await.unwrap();
            let_time_pass(&self.app).await;
            self.telegram.lock().unwrap().held.is_none()
        })
        .await;
        (flies, answer)
    }

    async fn until_asked(&self, approval: i64) {
        until("it is asked", async || self.app.one::<i64>(ASKED, vec![approval.into()]).await == 1).await;
    }

    async fn state(&self, approval: i64) -> String {
        let sql = "SELECT status || ' ' || COALESCE(outcome, '') || ' ' || COALESCE(decided_via, '') FROM approvals WHERE id = $1";
        self.app.one(sql, vec![approval.into()]).await
    }

    /// The refusals of a person: operation, permission, and kind of credential.
    async fn refusals(&self) -> Vec<String> {
        audit::write_refusals(&self.app.core, true).await.unwrap();
        let lines = "SELECT operation || ' ' || permission || ' ' || credential_kind FROM audit_lines WHERE outcome = 'REFUSED'";
        self.app.column(lines).await
    }

    async fn until_closed(&self) -> Value {
        until("its buttons are gone", async || {
            chat_approvals::send_due(&self.app.core).await.unwrap();
            let_time_pass(&self.app).await;
            self.app.column::<i64>("SELECT COUNT(*) FROM approval_asks WHERE state <> 'CLOSED'").await == [0]
        })
        .await;
        self.asked("editMessageText").pop().unwrap()
    }
}

fn private() -> Value {
    json!({ "id": 5, "type": "private", "first_name": "Ada" })
}

/// The vendor has this message in this chat.
fn taken(id: i64, chat: i64) -> (u16, Value) {
    let message =
        json!({ "message_id": id, "date": 1_700_000_001, "chat": { "id": chat, "type": "private" } });
    (200, json!({ "ok": true, "result": message }))
}

const PENDING: &str = "PENDING  ";
const BY_CHAT: &str = "RESOLVED APPROVED CHANNEL";

#[tokio::test]
async fn a_tap_approves_for_agent_thread_and_record() {
    let chat = Chat::linked().await;
    let app = &chat.app;
    assert_eq!(
        chat.links(&app.admin).await,
        json!([{ "channelId": chat.channel["id"], "originId": "5", "originName": "Ada" }])
    );
    assert!(chat.sent()[0].contains("This chat is linked"), "{:?}", chat.sent());
    app.sets(json!({ "chatRiskLimit": 101 })).await;
    let (host, conversation) = app.talking_agent().await;
    host.asks(conversation, None, "1.1", run("rm -rf /srv/old")).await.unwrap();
    let approval: i64 =
        app.one("SELECT id FROM approvals WHERE agent_id = $1", vec![host.agent.into()]).await;
    let asked = chat.arrives(approval).await;
    let text = asked.message["text"].as_str().unwrap();
    assert!(
        text.contains("Run rm -rf /srv/old") && text.contains("Approve") && text.contains("shell"),
        "{text}"
    );
    assert_eq!((asked.buttons.len(), &asked.message["chat_id"]), (2, &json!(5)));
    chat.taps(50, (5, &private()), &asked.buttons[0]);
    assert_eq!(chat.until_heard(1).await, "Approved by admin.");
    assert_eq!(chat.state(approval).await, BY_CHAT);
    let sql = "SELECT decided_by_user_id FROM approvals WHERE id = $1";
    assert_eq!(app.one::<i64>(sql, vec![approval.into()]).await, app.admin.user.unwrap());
    // The agent, and the thread.
    assert!(host.commands().await.iter().any(|command| command["kind"] == "ANSWER"));
    let sql = "SELECT author_name || ': ' || CAST(content AS TEXT) FROM messages WHERE conversation_id = $1 AND role = 'USER'";
    let said: String = app.one(sql, vec![conversation.into()]).await;
    assert!(said.starts_with("admin: ") && said.contains("Approved: Run rm -rf /srv/old"), "{said}");
    // The message loses its buttons, and says who.
    let edited = chat.until_closed().await;
    assert_eq!(edited["message_id"], asked.message["message_id"]);
    assert_eq!(edited["reply_markup"], json!({ "inline_keyboard": [] }));
    assert!(edited["text"].as_str().unwrap().contains("Approved by admin."), "{edited}");
    // And the record.
    app.seal().await;
    let sql = "SELECT actor_name || ' ' || credential_kind || ' ' || permission FROM audit_log WHERE operation = 'answerApproval'";
    assert_eq!(app.column::<String>(sql).await, ["admin CHANNEL_LINK approval.resolve"]);
    // A second tap changes nothing.
    chat.taps(51, (5, &private()), &asked.buttons[1]);
    assert_eq!(chat.until_heard(2).await, "Approved by admin.");
    assert_eq!(chat.state(approval).await, BY_CHAT);
}

#[tokio::test]
async fn a_tap_counts_before_the_vendors_receipt() {
    let chat = Chat::linked().await;
    let (approval, answer) = chat.flies("Delete it").await;
    let message = chat.asked("sendMessage").pop().unwrap();
    let value = message["reply_markup"]["inline_keyboard"][0][0]["callback_data"].as_str().unwrap();
    chat.taps(50, (5, &private()), value);
    assert_eq!(chat.until_heard(1).await, "Approved by admin.");
    assert_eq!(chat.state(approval).await, BY_CHAT);
    // It loses its buttons, once it is known which message it is.
    answer.send(taken(99, 5)).unwrap();
    assert_eq!(chat.until_closed().await["message_id"], 99);
}

#[tokio::test]
async fn people_link_and_decide_over_telegrams_webhook() {
    let chat = Chat::told().await.link().await;
    let asked = chat.asks().await;
    chat.taps(50, (5, &private()), &asked.buttons[0]);
    assert_eq!(chat.until_heard(1).await, "Approved by admin.");
    assert_eq!(chat.state(asked.approval).await, BY_CHAT);
    assert_eq!(chat.asked("getUpdates"), [Value::Null; 0]);
    // A caller without that secret is not a member.
    let stranger = Hook { secret: "another".to_owned(), ..chat.hook.clone().unwrap() };
    let second = chat.asks().await;
    let tap = json!({ "update_id": 51, "callback_query": { "id": "tap51", "chat_instance": "1", "data": second.buttons[0],
        "from": { "id": 5, "is_bot": false, "first_name": "Ada" },
        "message": { "message_id": 42, "date": 1_700_000_000, "chat": private() } } });
    assert_eq!(stranger.brings(&tap).await, 401);
    assert_eq!(chat.state(second.approval).await, PENDING);
}

#[tokio::test]
async fn questions_and_answers_share_the_vendors_limits() {
    let chat = Chat::linked().await;
    let app = &chat.app;
    until("the code is answered", async || chat.sent().len() == 1).await;
    // The answer to the code was the one message of this second.
    let new = NewApproval { risk: Some(10), ..NewApproval::new(ApprovalKind::Action, "Delete it") };
    chat.raise(new).await;
    let held =
        "SELECT COUNT(*) FROM approval_asks WHERE state = 'TO_ASK' AND attempts = 0 AND available_at > $1";
    until("it waits", async || {
        chat_approvals::send_due(&app.core).await.unwrap();
        app.one::<i64>(held, vec![app.clock.now().0.into()]).await == 1
    })
    .await;
    assert_eq!(chat.sent().len(), 1);
    until("it is asked", async || {
        let_time_pass(app).await;
        chat_approvals::send_due(&app.core).await.unwrap();
        chat.sent().len() == 2
    })
    .await;
}

#[tokio::test]
async fn a_question_is_answered_by_a_reply_with_a_number_or_a_text() {
    let chat = Chat::linked().await;
    let choice =
        |id: &str, label: &str| Choice { id: id.to_owned(), label: label.to_owned(), description: None };
    let question = |allow_text| Question {
        text: "How should it go?".to_owned(),
        options: vec![choice("air", "By air"), choice("sea", "By sea")],
        multiple: false,
        allow_text,
    };
    let ask = async |allow_text| {
        let new = NewApproval::new(ApprovalKind::Question, "How should it go?");
        let id = chat.raise(NewApproval { question: Some(question(allow_text)), ..new }).await;
        chat.arrives(id).await
    };
    let answer = async |approval: i64| {
        let sql = "SELECT CAST(answer AS TEXT) FROM approvals WHERE id = $1 AND answer IS NOT NULL";
        until("it is answered", async || {
            let sql = "SELECT COUNT(*) FROM approvals WHERE id = $1 AND answer IS NOT NULL";
            chat.app.one::<i64>(sql, vec![approval.into()]).await == 1
        })
        .await;
        serde_json::from_str::<Value>(&chat.app.one::<String>(sql, vec![approval.into()]).await).unwrap()
    };
    let first = ask(true).await;
    chat.replies(20, &first.message, "2: not on a Friday");
    assert_eq!(answer(first.approval).await, json!({ "options": ["sea"], "text": "not on a Friday" }));
    let second = ask(true).await;
    assert_ne!(second.message["message_id"], first.message["message_id"]);
    chat.replies(21, &second.message, "Send a pigeon");
    assert_eq!(answer(second.approval).await, json!({ "options": [], "text": "Send a pigeon" }));
    // After a reply that decides nothing, the bot explains the choices; a reply to an older request is answered with
    // its outcome.
    let third = ask(false).await;
    chat.replies(22, &third.message, "perhaps");
    chat.until_read(22).await;
    assert!(chat.sent().last().unwrap().contains("number of one of the choices"), "{:?}", chat.sent());
    assert_eq!(chat.state(third.approval).await, PENDING);
    chat.replies(23, &first.message, "1");
    chat.until_read(23).await;
    assert!(chat.sent().last().unwrap().contains("Answered by admin."), "{:?}", chat.sent());
    chat.replies(24, &third.message, "by air");
    assert_eq!(answer(third.approval).await, json!({ "options": ["air"], "text": null }));
    // None of it was a message for the agent.
    let stored = "SELECT COUNT(*) FROM messages WHERE via_channel_id IS NOT NULL";
    assert_eq!(chat.app.column::<i64>(stored).await, [0]);
}

#[tokio::test]
async fn a_lost_right_to_decide_decides_nothing() {
    let chat = Chat::linked().await;
    let app = &chat.app;
    let asked = chat.asks().await;
    let refused = async |id: i64, count: usize| {
        chat.taps(id, (5, &private()), &asked.buttons[0]);
        assert_eq!(chat.until_heard(count).await, "You can't decide this here. Look at it in the panel.");
        assert_eq!(chat.state(asked.approval).await, PENDING);
    };
    let role = "UPDATE members SET role = $1 WHERE user_id = $2";
    app.execute(role, vec!["VIEWER".into(), app.admin.user.unwrap().into()]).await;
    refused(50, 1).await;
    assert_eq!(chat.refusals().await, ["answerApproval approval.resolve CHANNEL_LINK"]);
    app.execute(role, vec!["ADMIN".into(), app.admin.user.unwrap().into()]).await;
    let disabled = "UPDATE users SET disabled_at = $1 WHERE id = $2";
    app.execute(disabled, vec![1_i64.into(), app.admin.user.unwrap().into()]).await;
    refused(51, 2).await;
    app.execute(disabled, vec![Option::<i64>::None.into(), app.admin.user.unwrap().into()]).await;
    app.execute("UPDATE organizations SET require_second_factor = TRUE WHERE id = $1", vec![app.org.into()])
        .await;
    refused(52, 3).await;
    app.execute("UPDATE organizations SET require_second_factor = FALSE WHERE id = $1", vec![app.org.into()])
        .await;
    // Another person's tap, and a reply of theirs.
    chat.taps(53, (6, &json!({ "id": 6, "type": "private" })), &asked.buttons[0]);
    assert!(chat.until_heard(4).await.starts_with("You can't decide this here."));
    // A group.
    chat.taps(54, (5, &json!({ "id": -100, "type": "supergroup", "title": "Team" })), &asked.buttons[0]);
    assert!(chat.until_heard(5).await.starts_with("You can't decide this here."));
    assert_eq!(chat.state(asked.approval).await, PENDING);
    // A member who was removed no longer has a link.
    app.execute("DELETE FROM members WHERE user_id = $1", vec![app.admin.user.unwrap().into()]).await;
    assert_eq!(app.column::<i64>("SELECT COUNT(*) FROM channel_links").await, [0]);
    refused(55, 6).await;
}

#[tokio::test]
async fn a_forbidden_tap_is_refused_and_logged() {
    let chat = Chat::linked().await;
    let app = &chat.app;
    let input = json!({ "host": "shop.example", "port": 443 });
    let request = Some(ToolRequest { tool: "network".to_owned(), input });
    let new = NewApproval::new(ApprovalKind::Action, "Connect to shop.example:443");
    let approval = chat.raise(NewApproval { risk: Some(60), request, ..new }).await;
    let asked = chat.arrives(approval).await;
    let role = "UPDATE members SET role = 'OPERATOR' WHERE user_id = $1";
    app.execute(role, vec![app.admin.user.unwrap().into()]).await;
    chat.taps(50, (5, &private()), &asked.buttons[0]);
    assert_eq!(chat.until_heard(1).await, "You can't decide this here. Look at it in the panel.");
    assert_eq!(chat.state(approval).await, PENDING);
    assert_eq!(chat.refusals().await, ["answerApproval network.edit CHANNEL_LINK"]);
    // Nothing keeps them from denying it.
    chat.taps(51, (5, &private()), &asked.buttons[1]);
    assert_eq!(chat.until_heard(2).await, "Denied by admin.");
}

#[tokio::test]
async fn what_is_not_the_request_that_was_shown_is_not_decided() {
    let chat = Chat::linked().await;
    let app = &chat.app;
    let asked = chat.asks().await;
    // A button of another organization's request, and one that was never sent.
    let digest = asked.buttons[0].split(':').nth(2).unwrap();
    let tx = muster::core::access::Scope::system(&app.core, muster::base::ids::OrgId(app.other_org))
        .begin()
        .await
        .unwrap();
    let theirs = approvals::raise(
        &tx,
        NewApproval { risk: Some(1), ..NewApproval::new(ApprovalKind::Action, "Delete *all* of it") },
    );
    let theirs = theirs.await.unwrap();
    tx.commit().await.unwrap();
    for (count, value) in
        (1..).zip([format!("a:{theirs}:{digest}:0"), "a:999999:00:0".to_owned(), "hello".to_owned()])
    {
        chat.taps(50 + i64::try_from(count).unwrap(), (5, &private()), &value);
        assert!(chat.until_heard(count).await.starts_with("You can't decide this here."));
    }
    assert_eq!(chat.state(theirs.0).await, PENDING);
    // The organization has become stricter.
    let limit = "UPDATE organizations SET chat_risk_limit = $1 WHERE id = $2";
    app.execute(limit, vec![10_i64.into(), app.org.into()]).await;
    chat.taps(60, (5, &private()), &asked.buttons[0]);
    assert_eq!(chat.until_heard(4).await, "This can only be decided in the panel.");
    app.execute(limit, vec![11_i64.into(), app.org.into()]).await;
    // The request has changed since, and the tap was about its earlier version.
    let title = "UPDATE approvals SET title = $1 WHERE id = $2";
    app.execute(title, vec!["Keep all of it".into(), asked.approval.into()]).await;
    chat.taps(61, (5, &private()), &asked.buttons[0]);
    assert!(chat.until_heard(5).await.starts_with("The request has changed"));
    chat.replies(62, &asked.message, "1");
    chat.until_read(62).await;
    assert!(chat.sent().last().unwrap().starts_with("The request has changed"), "{:?}", chat.sent());
    assert_eq!(chat.state(asked.approval).await, PENDING);
    app.execute(title, vec!["Delete *all* of it".into(), asked.approval.into()]).await;
    chat.taps(63, (5, &private()), &asked.buttons[1]);
    assert_eq!(chat.until_heard(6).await, "Denied by admin.");
}

#[tokio::test]
async fn decided_risky_and_oversized_requests_have_no_buttons() {
    let chat = Chat::linked().await;
    let app = &chat.app;
    let asked = chat.asks().await;
    chat.is_denied(asked.approval).await;
    let edited = chat.until_closed().await;
    assert!(edited["text"].as_str().unwrap().contains("Denied by operator."), "{edited}");
    assert_eq!(edited["reply_markup"], json!({ "inline_keyboard": [] }));
    chat.taps(50, (5, &private()), &asked.buttons[0]);
    assert_eq!(chat.until_heard(1).await, "Denied by operator.");
    let link = format!("/o/{}/approvals/", app.org);
    for (risk, title) in
        [(70, "Buy it".to_owned()), (10, "Buy \u{202e}ti".to_owned()), (10, "Buy it ".repeat(700))]
    {
        let new = NewApproval { risk: Some(risk), ..NewApproval::new(ApprovalKind::Action, title) };
        let id = chat.raise(new).await;
        let asked = chat.arrives(id).await;
        let text = asked.message["text"].as_str().unwrap();
        assert!(asked.buttons.is_empty() && text.contains(&link) && !text.contains("Buy"), "{text}");
        chat.replies(100 + id, &asked.message, "1");
        chat.until_read(100 + id).await;
        assert!(chat.sent().last().unwrap().contains("only be decided in the panel"), "{:?}", chat.sent());
        assert_eq!(chat.state(id).await, PENDING);
    }
}

#[tokio::test]
async fn a_new_token_ends_the_links_and_people_are_told() {
    let chat = Chat::linked().await;
    let app = &chat.app;
    whitelist(app, &chat.channel, "5").await;
    let channel = at(app, &chat.channel);
    // The same token is not a new one.
    app.operator.patch(&channel, json!({ "bot_token": TOKEN })).await.expect(200);
    assert_eq!(chat.links(&app.admin).await.as_array().unwrap().len(), 1);
    let asked = chat.asks().await;
    app.operator.patch(&channel, json!({ "bot_token": NEW_TOKEN })).await.expect(200);
    assert_eq!(chat.links(&app.admin).await, json!([]));
    let told = "SELECT CAST(payload AS TEXT) FROM mails";
    let told = app.column::<String>(told).await;
    assert!(
        told.iter().any(|mail| mail.contains("CHAT_UNLINKED") && mail.contains("admin@example.com")),
        "{told:?}"
    );
    assert_eq!(chat.state(asked.approval).await, PENDING);
    // A message of the new bot may have the same number: a reply to that one is for the agent.
    chat.replies(50, &asked.message, "1");
    let stored = "SELECT COUNT(*) FROM messages WHERE via_channel_id IS NOT NULL";
    until("it is a message", async || app.column::<i64>(stored).await == [1]).await;
    assert_eq!(chat.state(asked.approval).await, PENDING);
    // That message is not edited either when the request ends.
    assert_eq!(app.column::<i64>("SELECT COUNT(*) FROM approval_asks").await, [0]);
}

#[tokio::test]
async fn what_was_asked_in_a_channel_goes_with_it() {
    let chat = Chat::linked().await;
    let app = &chat.app;
    let asked = chat.asks().await;
    let waits = chat.wants("Delete the rest").await;
    let kept = "SELECT state FROM approval_asks ORDER BY id";
    assert_eq!(app.column::<String>(kept).await, ["ASKED", "TO_ASK"]);
    delete(app, &chat.channel["id"]).await.data();
    assert_eq!(app.column::<String>(kept).await, [""; 0]);
    for approval in [asked.approval, waits] {
        assert_eq!(chat.state(approval).await, PENDING);
    }
}

#[tokio::test]
async fn what_waits_is_asked_in_the_chat_that_is_linked_by_then() {
    let chat = Chat::linked().await;
    let waits = chat.wants("Delete it").await;
    chat.moves(2, 6).await;
    assert_eq!(chat.arrives(waits).await.message["chat_id"], 6);
    chat.is_denied(waits).await;
    assert_eq!(chat.until_closed().await["chat_id"], 6);
    // What was on its way has arrived in the chat before, and says there how it ended.
    let (flies, answer) = chat.flies("Delete the rest").await;
    chat.moves(3, 7).await;
    answer.send(taken(99, 6)).unwrap();
    chat.until_asked(flies).await;
    chat.is_denied(flies).await;
    let edited = chat.until_closed().await;
    assert_eq!((&edited["chat_id"], &edited["message_id"]), (&json!(6), &json!(99)));
}

#[tokio::test]
async fn no_one_is_asked_through_a_channel_that_only_receives() {
    let chat = Chat::linked().await;
    let approval = chat.wants("Delete it").await;
    sets(&chat.app, &chat.channel, json!({ "direction": "INBOUND" })).await;
    chat_approvals::send_due(&chat.app.core).await.unwrap();
    assert_eq!(chat.app.core.resource_limits.limit(Resource::Asking).total(), 0, "no lane is opened");
    sets(&chat.app, &chat.channel, json!({ "direction": "BIDIRECTIONAL" })).await;
    chat.arrives(approval).await;
}
