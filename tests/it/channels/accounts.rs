//! Accounts of channels, against a third-party authorization server (`tests/peers/oidc`) with the paths of Google's. It
//! takes each refresh token once, and ends the authorization at the second use.

use std::time::Duration;

use futures::future::join_all;
use muster::{
    base::ids::{ChannelId, OrgId},
    core::{config::Config, sealing::SealContext},
    domain::channels,
};
use muster_channels::Failure;
use reqwest::{Client, header::CONTENT_TYPE};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::{
    channels::{bot, connect, delete},
    harness::{Actor, Answer, TestApp},
    people::oidc::{Browser, EMAIL, PUBLIC, Provider},
};

const BEGIN: &str = "mutation($o: Id!, $c: Id!) { authorizeChannel(orgId: $o, id: $c) { url expiresAt } }";
const COMPLETE: &str = "mutation($o: Id!, $c: Id!, $code: SecretString!, $state: SecretString!) { \
    completeChannelAuthorization(orgId: $o, id: $c, code: $code, state: $state) { id } }";
const DISCONNECT: &str = "mutation($o: Id!, $c: Id!) { disconnectChannel(orgId: $o, id: $c) { id } }";
const APPLICATION: &str = "mutation($o: Id!, $i: String, $s: SecretString) { updateOrganization(orgId: $o, \
    input: { providerOauthClientId: $i, providerOauthSecret: $s }) { hasProviderOauthApp } }";
const SHOWN: &str = "query($o: Id!, $c: Id!) { channel(orgId: $o, id: $c) { inactiveReason warnings \
    providerAccount { connected providerEmail expiresAt } } }";

const SECRET: &str = "the client secret";
/// Longer than an access token lasts.
const LAPSED: Duration = Duration::from_secs(61 * 60);

/// A calendar, and the server that plays Google.
pub struct Google {
    pub app: TestApp,
    pub channel: i64,
    provider: Provider,
}

impl Google {
    pub async fn open() -> Self {
        Self::open_with(|config| {
            config.channels.google_client_id = Some("muster".to_owned());
            config.channels.google_client_secret = Some(SECRET.into());
        })
        .await
    }

    async fn open_with(configure: impl FnOnce(&mut Config)) -> Self {
        let provider = Provider::start(&json!({
            "redirect": format!("{PUBLIC}/oauth/channel"), "asGoogle": true, "inIdToken": true,
            "accounts": { "ann": { "email": EMAIL, "email_verified": true, "name": "Ann" } },
        }))
        .await;
        let app = TestApp::start_with(|config| {
            config.public_url = Some(PUBLIC.to_owned());
            let at = format!("{}/", provider.issuer);
            config.channels.google_accounts_url = at.parse().unwrap();
            config.channels.google_tokens_url = at.parse().unwrap();
            config.channels.google_api_url = at.parse().unwrap();
            configure(config);
        })
        .await;
        let channel = calendar(&app).await;
        Self { app, channel, provider }
    }

    async fn connected() -> Self {
        let google = Self::open().await;
        google.connect(google.channel).await;
        google
    }

    /// Connects a channel to the account.
    async fn connect(&self, channel: i64) {
        let (operator, at) = (&self.app.operator, (self.app.org, channel));
        let begun = operator.gql(BEGIN, json!({ "o": self.app.org, "c": channel })).await.data();
        let returned = self.visit(begun["authorizeChannel"]["url"].as_str().unwrap()).await;
        self.complete_at(operator, at, &returned).await.data();
    }

    /// Allows everything on this page. Returns the code and the state.
    pub async fn visit(&self, page: &str) -> (String, String) {
        let back = Browser::new(&self.app).sign_in(page.to_owned(), "ann").await;
        let back = url::Url::parse(&back).unwrap();
        assert_eq!(back.path(), "/oauth/channel");
        let field = |name: &str| back.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned();
        (field("code"), field("state"))
    }

    async fn begin(&self, actor: &Actor) -> Answer {
        actor.gql(BEGIN, json!({ "o": self.app.org, "c": self.channel })).await
    }

    async fn returned(&self, actor: &Actor) -> (String, String) {
        let begun = self.begin(actor).await.data();
        self.visit(begun["authorizeChannel"]["url"].as_str().unwrap()).await
    }

    async fn complete(&self, actor: &Actor, returned: &(String, String)) -> Answer {
        self.complete_at(actor, (self.app.org, self.channel), returned).await
    }

    async fn complete_at(
        &self,
        actor: &Actor,
        (org, channel): (i64, i64),
        (code, state): &(String, String),
    ) -> Answer {
        actor.gql(COMPLETE, json!({ "o": org, "c": channel, "code": code, "state": state })).await
    }

    async fn shown(&self) -> Value {
        let shown = self.app.viewer.gql(SHOWN, json!({ "o": self.app.org, "c": self.channel })).await;
        shown.data()["channel"].clone()
    }

    async fn token(&self) -> Result<String, Failure> {
        let found = channels::access_token(&self.app.scope(), ChannelId(self.channel)).await.unwrap();
        found.map(|token| token.expose_secret().to_owned())
    }

    /// The stored refresh token of a channel.
    async fn refresh_token(&self, channel: i64) -> String {
        let sql = "SELECT oauth_refresh_token_sealed FROM channels WHERE id = $1";
        let sealed: Vec<u8> = self.app.one(sql, vec![channel.into()]).await;
        let place = SealContext::new(OrgId(self.app.org), "channels", channel, "oauth_refresh_token");
        self.app.core.sealing.open(&sealed, &place).unwrap().expose_secret().to_owned()
    }

    /// The vendor's answer.
    async fn post(&self, path: &str, fields: &[(&str, &str)]) -> u16 {
        let client = [("client_id", "muster"), ("client_secret", SECRET)];
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .extend_pairs(client)
            .finish();
        let request =
            Client::builder().no_proxy().build().unwrap().post(format!("{}{path}", self.provider.issuer));
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(body);
        request.send().await.unwrap().status().as_u16()
    }

    /// Whether the vendor still accepts this refresh token.
    async fn accepts(&self, token: &str) -> bool {
        self.post("/token", &[("grant_type", "refresh_token"), ("refresh_token", token)]).await == 200
    }
}

async fn calendar(app: &TestApp) -> i64 {
    let body = json!({ "name": "Rota", "transport": "CALENDAR", "agent_id": app.agent().await });
    connect(app, body).await["id"].as_i64().unwrap()
}

#[tokio::test]
async fn an_account_is_connected_once_by_the_session_that_began() {
    let google = Google::open().await;
    let app = &google.app;
    assert_eq!(google.shown().await["providerAccount"]["connected"], false);
    assert_eq!(google.begin(&app.viewer).await.code(), "PERMISSION_DENIED");
    assert_eq!(google.begin(&app.token(&["agent.edit"]).await).await.code(), "PERMISSION_DENIED");
    assert_eq!(google.begin(&app.stranger).await.code(), "NOT_A_MEMBER");
    let returned = google.returned(&app.operator).await;
    let other = calendar(app).await;
    // Neither another session, nor another channel or organization.
    assert_eq!(google.complete(&app.admin, &returned).await.code(), "LINK_INVALID");
    let elsewhere = google.complete_at(&app.operator, (app.org, other), &returned).await;
    assert_eq!(elsewhere.code(), "LINK_INVALID");
    let theirs = google.complete_at(&app.stranger, (app.other_org, google.channel), &returned).await;
    assert_eq!(theirs.code(), "NOT_FOUND");
    google.complete(&app.operator, &returned).await.data();
    let account = json!({ "connected": true, "providerEmail": EMAIL, "expiresAt": null });
    assert_eq!(google.shown().await["providerAccount"], account);
    assert!(google.token().await.is_ok());
    assert_eq!(google.complete(&app.operator, &returned).await.code(), "LINK_INVALID");
    // A code that the vendor refuses uses the state up as well, and leaves the account.
    let (code, state) = google.returned(&app.operator).await;
    let forged = google.complete(&app.operator, &("forged".to_owned(), state.clone())).await;
    assert_eq!(forged.code(), "LINK_INVALID");
    assert!(forged.text.contains("invalid_grant"), "{}", forged.text);
    assert_eq!(google.complete(&app.operator, &(code, state)).await.code(), "LINK_INVALID");
    let late = google.returned(&app.operator).await;
    app.clock.advance(Duration::from_secs(10 * 60));
    assert_eq!(google.complete(&app.operator, &late).await.code(), "LINK_INVALID");
    assert_eq!(google.shown().await["providerAccount"], account);
}

#[tokio::test]
async fn tokens_are_refreshed_once_before_they_lapse() {
    let google = Google::connected().await;
    let (first, refresh) = (google.token().await.unwrap(), google.refresh_token(google.channel).await);
    google.app.clock.advance(Duration::from_secs(50 * 60));
    assert_eq!(channels::refresh_tokens(&google.app.core).await.unwrap(), 0);
    assert_eq!(google.token().await.unwrap(), first);
    google.app.clock.advance(Duration::from_secs(6 * 60));
    assert_eq!(channels::refresh_tokens(&google.app.core).await.unwrap(), 1);
    let second = google.token().await.unwrap();
    assert!(second != first && google.refresh_token(google.channel).await != refresh);
    // All wait for the one refresh: the vendor would end the authorization at a second.
    google.app.clock.advance(LAPSED);
    let tokens = join_all((0..8).map(|_| google.token())).await;
    let third = tokens[0].clone().unwrap();
    assert!(third != second && tokens.iter().all(|token| *token == Ok(third.clone())), "{tokens:?}");
    google.app.clock.advance(LAPSED);
    assert!(google.token().await.is_ok());
    assert_eq!(google.shown().await["providerAccount"]["connected"], true);
}

#[tokio::test]
async fn a_revoked_authorization_switches_the_channel_off() {
    let google = Google::connected().await;
    let on = "UPDATE channels SET is_active = TRUE, inactive_reason = NULL WHERE id = $1";
    google.app.execute(on, vec![google.channel.into()]).await;
    // An application unknown to the vendor does not end it.
    let (app, unknown) = (&google.app, json!({ "i": "unknown", "s": "secret" }));
    let set = async |application: &Value| {
        let variables = json!({ "o": app.org, "i": application["i"], "s": application["s"] });
        app.owner.gql(APPLICATION, variables).await.data();
    };
    set(&unknown).await;
    app.clock.advance(LAPSED);
    let failed = google.token().await.unwrap_err();
    assert!(
        matches!(&failed, Failure::NotSent(why) if why.as_str().contains("invalid_client")),
        "{failed:?}"
    );
    assert_eq!(google.shown().await["providerAccount"]["connected"], true);
    set(&json!({ "i": null, "s": null })).await;
    assert_eq!(google.post("/revoke", &[("token", &google.refresh_token(google.channel).await)]).await, 200);
    let failed = google.token().await.unwrap_err();
    assert!(matches!(failed, Failure::Credentials(_)), "{failed:?}");
    let shown = google.shown().await;
    assert_eq!(
        (&shown["inactiveReason"], &shown["providerAccount"]["connected"]),
        (&json!("AUTH_FAILED"), &json!(false))
    );
    assert_eq!(shown["providerAccount"]["providerEmail"], EMAIL);
    assert!(shown["warnings"][0].as_str().unwrap().contains("Connect the account again"), "{shown}");
    let kept = "SELECT COUNT(*) FROM channels WHERE oauth_access_token_sealed IS NOT NULL \
                OR oauth_refresh_token_sealed IS NOT NULL";
    assert_eq!(app.column::<i64>(kept).await, [0]);
    // Connecting again clears the warning.
    google.connect(google.channel).await;
    assert_eq!(google.shown().await["warnings"], json!([]));
    assert!(google.token().await.is_ok());
}

#[tokio::test]
async fn an_account_is_disconnected_here_and_there() {
    let google = Google::connected().await;
    let (app, channel) = (&google.app, json!(google.channel));
    let token = google.refresh_token(google.channel).await;
    app.operator.gql(DISCONNECT, json!({ "o": app.org, "c": channel })).await.data();
    let none = json!({ "connected": false, "providerEmail": null, "expiresAt": null });
    assert_eq!(google.shown().await["providerAccount"], none);
    assert!(matches!(google.token().await, Err(Failure::Credentials(_))));
    assert!(!google.accepts(&token).await);
    // While another channel has the account, its authorization must not end.
    google.connect(google.channel).await;
    let other = calendar(app).await;
    google.connect(other).await;
    let token = google.refresh_token(other).await;
    app.operator.gql(DISCONNECT, json!({ "o": app.org, "c": other })).await.data();
    assert!(google.accepts(&token).await);
    let token = google.refresh_token(google.channel).await;
    delete(app, &channel).await.data();
    assert!(!google.accepts(&token).await);
}

#[tokio::test]
async fn an_organization_uses_its_own_application() {
    let google = Google::open_with(|_| ()).await;
    let app = &google.app;
    let refused = google.begin(&app.operator).await;
    assert_eq!(refused.code(), "NOT_SUPPORTED");
    assert!(refused.text.contains("channels.google_client_id"), "{}", refused.text);
    app.owner.gql(APPLICATION, json!({ "o": app.org, "i": "muster", "s": SECRET })).await.data();
    google.connect(google.channel).await;
    assert!(google.token().await.is_ok());
    let bot = connect(app, bot(app.agent().await)).await;
    let refused = app.operator.gql(BEGIN, json!({ "o": app.org, "c": bot["id"] })).await;
    assert_eq!(refused.code(), "NOT_SUPPORTED");
}
