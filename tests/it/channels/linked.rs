//! People link their own chats: a code counts once, for ten minutes, in its own channel and in a private chat. The vendor is the
//! fake that python-telegram-bot takes for Telegram.

use serde_json::{Value, json};

use crate::{
    channels::{
        connect,
        probes::{bot, whitelist, with_telegram},
        telegram_webhook::{self, Hook},
    },
    harness::{
        Actor, TestApp,
        fakes::telegram::{Shared, TOKEN, said},
        until,
    },
};

const LINK: &str = "mutation($o: Id!, $c: Id!) { linkChat(orgId: $o, channelId: $c) { code expiresAt } }";
const LINKED: &str = "query($o: Id!) { linkedChats(orgId: $o) { channelId originId originName } }";
const UNLINK: &str = "mutation($o: Id!, $c: Id!) { unlinkChat(orgId: $o, channelId: $c) }";

/// A bot, and the chats with it.
pub struct Chat {
    pub app: TestApp,
    pub telegram: Shared,
    pub channel: Value,
    pub agent: i64,
    /// Where Telegram sends updates, if it is not asked.
    pub hook: Option<Hook>,
}

impl Chat {
    pub async fn open() -> Self {
        let (app, telegram) = with_telegram().await;
        let agent = app.agent().await;
        let channel = connect(&app, bot(agent, TOKEN)).await;
        app.service.ingest.listen();
        Self { app, telegram, channel, agent, hook: None }
    }

    /// One whose bot has a webhook.
    pub async fn told() -> Self {
        let (app, telegram, agent, channel) = telegram_webhook::bot().await;
        let hook = Some(Hook::of(&app, &telegram));
        Self { app, telegram, channel, agent, hook }
    }

    pub async fn linked() -> Self {
        Self::open().await.link().await
    }

    /// Links the administrator's chat, who is user 5 there.
    pub async fn link(self) -> Self {
        let chat = self;
        let code = chat.code(&chat.app.admin).await;
        chat.says(1, &code);
        chat.until_linked(&chat.app.admin).await;
        chat
    }

    pub async fn code(&self, actor: &Actor) -> String {
        let made = actor.gql(LINK, json!({ "o": self.app.org, "c": self.channel["id"] })).await.data();
        made["linkChat"]["code"].as_str().unwrap().to_owned()
    }

    pub async fn links(&self, actor: &Actor) -> Value {
        actor.gql(LINKED, json!({ "o": self.app.org })).await.data()["linkedChats"].clone()
    }

    pub async fn until_linked(&self, actor: &Actor) {
        until("the chat is linked", async || self.links(actor).await != json!([])).await;
    }

    pub fn comes(&self, update: Value) {
        match self.hook.clone() {
            Some(hook) => {
                self.app.core.tasks.spawn(async move { assert_eq!(hook.brings(&update).await, 200) });
            }
            None => self.telegram.lock().unwrap().updates.push(update),
        }
    }

    pub fn says(&self, id: i64, text: &str) {
        self.comes(said(id, text));
    }

    /// The bot's calls of a method.
    pub fn asked(&self, method: &str) -> Vec<Value> {
        let fake = self.telegram.lock().unwrap();
        fake.asked.iter().filter(|(name, _)| name == method).map(|(_, asked)| asked.clone()).collect()
    }

    /// The texts of messages, without marks.
    pub fn sent(&self) -> Vec<String> {
        self.asked("sendMessage").iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits until the listener has taken everything.
    pub async fn until_read(&self, id: i64) {
        until("it is read", async || {
            self.asked("getUpdates").last().is_some_and(|asked| {
                asked["offset"].as_i64().or_else(|| asked["offset"].as_str()?.parse().ok()) > Some(id)
            })
        })
        .await;
    }

    /// The administrator links the private chat of this user instead.
    pub async fn moves(&self, id: i64, user: i64) {
        let mut update = said(id, &self.code(&self.app.admin).await);
        update["message"]["from"]["id"] = json!(user);
        update["message"]["chat"]["id"] = json!(user);
        self.comes(update);
        until("the other chat is linked, and told so", async || {
            self.links(&self.app.admin).await[0]["originId"] == user.to_string().as_str()
                && self.asked("sendMessage").iter().any(|told| told["chat_id"] == user)
        })
        .await;
    }
}

#[tokio::test]
async fn a_code_works_once_despite_wrong_guesses() {
    let chat = Chat::open().await;
    let app = &chat.app;
    whitelist(app, &chat.channel, "5").await;
    let old = chat.code(&app.admin).await;
    let code = chat.code(&app.admin).await;
    assert_ne!(old, code);
    // The new code has taken the place of the old one, which is a wrong one now.
    for (id, wrong) in (1..).zip([old.as_str(), "0000-0000-0000", "0000-0000-0001", "0000-0000-0002"]) {
        chat.says(id, wrong);
        chat.until_read(id).await;
    }
    assert!(
        chat.sent().iter().all(|text| text.contains("is invalid")) && chat.sent().len() == 4,
        "{:?}",
        chat.sent()
    );
    chat.says(5, &format!("/start {}", code.to_lowercase()));
    chat.until_linked(&app.admin).await;
    // A code works once.
    let unlinked = app.admin.gql(UNLINK, json!({ "o": app.org, "c": chat.channel["id"] })).await.data();
    assert_eq!(unlinked["unlinkChat"], chat.channel["id"]);
    let (again, answered) = (chat.code(&app.operator).await, chat.sent().len());
    chat.says(6, &code);
    chat.until_read(6).await;
    assert_eq!(chat.links(&app.admin).await, json!([]));
    // A stranger who guesses ends no code, and soon gets no more answers.
    for id in 7..20 {
        let mut guess = said(id, "0000-0000-0000");
        guess["message"]["from"]["id"] = json!(9);
        guess["message"]["chat"]["id"] = json!(9);
        chat.comes(guess);
        chat.until_read(id).await;
    }
    assert_eq!(chat.sent().len(), answered + 10);
    chat.says(20, &again);
    chat.until_linked(&app.operator).await;
    app.operator.gql(UNLINK, json!({ "o": app.org, "c": chat.channel["id"] })).await.data();
    // Ten minutes.
    let late = chat.code(&app.operator).await;
    let until = "SELECT expires_at FROM channel_link_codes WHERE user_id = $1";
    let until: i64 = app.one(until, vec![app.operator.user.unwrap().into()]).await;
    assert_eq!(until - app.clock.now().0, 600_000);
    app.execute("UPDATE channel_link_codes SET expires_at = $1", vec![app.clock.now().0.into()]).await;
    chat.says(30, &late);
    chat.until_read(30).await;
    assert_eq!(chat.links(&app.operator).await, json!([]));
    // Nothing of it is stored, though the person is on the whitelist.
    assert_eq!(
        app.column::<i64>("SELECT COUNT(*) FROM messages WHERE via_channel_id IS NOT NULL").await,
        [0]
    );
}

#[tokio::test]
async fn a_code_counts_only_in_a_private_chat_of_its_channel() {
    let chat = Chat::open().await;
    let app = &chat.app;
    let sql = "INSERT INTO channels (organization_id, agent_id, transport, name, name_folded, is_active, created_at, updated_at) \
               VALUES ($1, $2, 'TELEGRAM', 'Other', 'other', FALSE, 1, 1) RETURNING id";
    let other: i64 = app.one(sql, vec![app.org.into(), chat.agent.into()]).await;
    let made = app.admin.gql(LINK, json!({ "o": app.org, "c": other })).await.data();
    chat.code(&app.operator).await;
    chat.says(1, made["linkChat"]["code"].as_str().unwrap());
    chat.until_read(1).await;
    let code = chat.code(&app.admin).await;
    let mut group = said(2, &format!("/start {code}"));
    group["message"]["chat"] = json!({ "id": -100, "type": "supergroup", "title": "Team" });
    chat.comes(group);
    chat.until_read(2).await;
    let mut robot = said(3, &code);
    robot["message"]["from"]["is_bot"] = json!(true);
    chat.comes(robot);
    chat.until_read(3).await;
    assert_eq!(app.column::<i64>("SELECT COUNT(*) FROM channel_links").await, [0]);
    // No one is linked by a vendor that does not say who writes.
    let webhook = connect(app, crate::channels::webhook(chat.agent)).await;
    let refused = app.admin.gql(LINK, json!({ "o": app.org, "c": webhook["id"] })).await;
    assert_eq!(refused.code(), "NOT_SUPPORTED");
    assert_eq!(
        app.viewer.gql(LINK, json!({ "o": app.org, "c": chat.channel["id"] })).await.code(),
        "PERMISSION_DENIED"
    );
    let token = app.token(&["approval.resolve"]).await;
    assert_eq!(
        token.gql(LINK, json!({ "o": app.org, "c": chat.channel["id"] })).await.code(),
        "PERMISSION_DENIED"
    );
}
