//! A law: secrets go in and never come out. Known secrets are sent through every operation that accepts one;
//! then every answer, every log line, and every byte of the database is searched for them.

use std::cell::RefCell;

use base64::{Engine as _, engine::general_purpose};
use muster::{
    core::{
        keys::{self, Pace},
        sealing::KeyFile,
    },
    domain::people::{self, NewUser},
};
use serde_json::{Value, json};

use crate::harness::{Actor, Answer, Logged, TestApp, account};

/// Secrets that a caller sends, one for each place that accepts one.
const SENT: [&str; 13] = [
    "73:canary-bot-token-7f3a",
    "canary-outbound-secret-91bc",
    "canary-inbound-secret-44de",
    "canary-imap-pass-0aa1",
    "canary-smtp-pass-0bb2",
    "canary-credential-value-c3c3",
    "canary-model-credential-d4d4",
    "canary-voice-key-e5e5",
    "canary-oauth-secret-f6f6",
    "canary-password-a7a7",
    "canary-first-password-b8b8",
    "canary-second-password-c9c9",
    "canary-shared-model-key-d0d0",
];

struct Witness<'a> {
    actor: &'a Actor,
    heard: RefCell<String>,
}

impl Witness<'_> {
    async fn gql(&self, query: &str, variables: Value) -> Value {
        let answer = self.actor.gql(query, variables).await;
        self.note(&answer.text);
        answer.data()
    }

    fn note(&self, text: &str) {
        self.heard.borrow_mut().push_str(text);
    }
}

#[tokio::test]
async fn secrets_never_leave() {
    let logged = Logged::capture("trace,h2=off");
    let app = TestApp::with_mail().await;
    let witness = Witness { actor: &app.owner, heard: RefCell::default() };
    send_everything(&app, &witness).await;
    let mut shown_once = make_tokens(&app, &witness).await;
    shown_once.extend(live_with_an_account(&app, &witness).await);
    let keys = rotate_keys(&app, &witness).await;
    read_everything(&app, &witness).await;

    let (answers, log, database) = (witness.heard.into_inner(), logged.text(), database(&app).await);
    assert!(log.contains("request"), "the log was captured");
    assert!(database.contains("canary bot"), "the database was read");
    for secret in SENT {
        for form in forms(secret) {
            assert!(!answers.contains(&form), "{secret} was answered as {form}");
            assert!(!log.contains(&form), "{secret} was logged as {form}");
            assert!(!database.contains(&form), "{secret} was stored as {form}");
        }
    }
    for token in shown_once.into_iter().chain(keys) {
        assert!(!log.contains(&token), "a token was logged: {token}");
        assert!(!database.contains(&token), "a token was stored: {token}");
        assert!(!answers.contains(&token), "a token was answered again: {token}");
    }
}

/// The secret itself, and the encodings in which it might slip through.
fn forms(secret: &str) -> Vec<String> {
    let hex = secret.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let base64 = general_purpose::STANDARD_NO_PAD.encode(secret);
    vec![secret.to_owned(), hex, base64]
}

async fn send_everything(app: &TestApp, witness: &Witness<'_>) {
    let agent = app.agent().await;
    let create = "mutation($o: Id!, $input: CreateChannelInput!) { createChannel(orgId: $o, input: $input) { id hasToken } }";
    let channels = [
        json!({ "agentId": agent, "name": "canary bot", "transport": "TELEGRAM", "botToken": SENT[0] }),
        json!({ "agentId": agent, "name": "hook", "transport": "WEBHOOK", "webhook": {
            "outboundUrl": "https://example.com/in", "outboundSecret": SENT[1], "inboundSecret": SENT[2] } }),
        json!({ "agentId": agent, "name": "mail", "transport": "EMAIL", "email": {
            "imap": { "host": "imap.example.com", "port": 993, "user": "u", "pass": SENT[3], "tls": true },
            "smtp": { "host": "smtp.example.com", "port": 587, "user": "u", "pass": SENT[4], "from": "a@example.com" } } }),
    ];
    for input in channels {
        witness.gql(create, json!({ "o": app.org, "input": input })).await;
    }
    let create = "mutation($o: Id!, $input: CreateCredentialInput!) { createCredential(orgId: $o, input: $input) { id fields { hasValue } } }";
    let fields = json!([{ "label": "key", "type": "secret", "value": SENT[5] }]);
    let input = json!({ "name": "c", "kind": "api-key", "fields": fields });
    witness.gql(create, json!({ "o": app.org, "input": input })).await;
    let edit = "mutation($o: Id!, $id: Id!, $input: UpdateAgentInput!) { updateAgent(orgId: $o, id: $id, input: $input) { id } }";
    witness.gql(edit, json!({ "o": app.org, "id": agent, "input": { "modelCredential": SENT[6] } })).await;
    let edit = "mutation($o: Id!, $input: UpdateOrganizationInput!) { updateOrganization(orgId: $o, input: $input) { id hasVoiceKey } }";
    let input =
        json!({ "voiceKey": SENT[7], "providerOauthClientId": "client", "providerOauthSecret": SENT[8] });
    witness.gql(edit, json!({ "o": app.org, "input": input })).await;
    let create = "mutation($o: Id!, $s: SecretString!) { createModelCredential(orgId: $o, input: { name: \"m\", \
                  provider: \"openai\", secret: $s }) { id hasSecret } }";
    witness.gql(create, json!({ "o": app.org, "s": SENT[12] })).await;
    // A wrong password, and secrets where they don't belong: refused and not repeated.
    let sign_in =
        "mutation($p: SecretString!) { signIn(email: \"owner@example.com\", password: $p) { accessToken } }";
    let refused = app.anonymous.gql(sign_in, json!({ "p": SENT[9] })).await;
    witness.note(&refused.text);
    let path = format!("/v1/org/{}/channel", app.org);
    let body = json!({ "agent_id": agent, "name": "x", "transport": "TELEGRAM", "bot_token": [SENT[0]], "email": { "imap": SENT[3] } });
    witness.note(&app.owner.post(&path, body).await.text);
    let body = json!({ "name": "x", "kind": "api-key", "fields": [{ "label": "a", "type": SENT[5], "value": SENT[5] }] });
    let refused = app.owner.post(&format!("/v1/org/{}/credential", app.org), body).await;
    assert_eq!(refused.status, 422);
}

/// Creates tokens. The answers that show them once are not kept.
async fn make_tokens(app: &TestApp, witness: &Witness<'_>) -> Vec<String> {
    let server =
        app.owner.post(&format!("/v1/org/{}/server", app.org), json!({ "name": "s" })).await.expect(201);
    let path = format!("/v1/org/{}/server/{}/regenerate-provisioning-token", app.org, server["id"]);
    let renewed = app.owner.post(&path, Value::Null).await.expect(201);
    let create = "mutation($o: Id!, $input: CreateServiceTokenInput!) { createServiceToken(orgId: $o, input: $input) { id token } }";
    let input = json!({ "name": "t", "permissions": ["agent.view"] });
    let made = app.owner.gql(create, json!({ "o": app.org, "input": input })).await.data();
    let token = made["createServiceToken"]["token"].as_str().unwrap().to_owned();
    let rotate = "mutation($o: Id!, $id: Id!) { rotateServiceToken(orgId: $o, id: $id) { token } }";
    let id = &made["createServiceToken"]["id"];
    let rotated = app.owner.gql(rotate, json!({ "o": app.org, "id": id })).await.data();
    let rotated = rotated["rotateServiceToken"]["token"].as_str().unwrap().to_owned();
    let create = "mutation($o: Id!) { createEventEndpoint(orgId: $o, input: { name: \"e\", \
                  url: \"https://hook.example/e\", types: [\"agent.failed\"] }) { id secret } }";
    let made = app.owner.gql(create, json!({ "o": app.org })).await.data();
    let endpoint = made["createEventEndpoint"].clone();
    let rotate = "mutation($o: Id!, $id: Id!) { rotateEventEndpointSecret(orgId: $o, id: $id) { secret } }";
    let again = app.owner.gql(rotate, json!({ "o": app.org, "id": endpoint["id"] })).await.data();
    let again = again["rotateEventEndpointSecret"].clone();
    let tool = json!({ "name": "create_server", "arguments": { "name": "by a tool" } });
    let tool = call_tool(&app.owner, tool).await;
    let by_tool = tool.body["result"]["structuredContent"]["provisioning_token"].as_str().unwrap().to_owned();
    let tool = json!({ "name": "list_servers", "arguments": { "page": 1, "limit": 50 } });
    witness.note(&call_tool(&app.owner, tool).await.text);
    let tool = json!({ "name": "create_channel", "arguments": { "name": "x", "transport": "TELEGRAM", "bot_token": [SENT[0]] } });
    witness.note(&call_tool(&app.owner, tool).await.text);
    let integration = app.owner.with_bearer(&token);
    let listed = integration.get(&format!("/v1/org/{}/agent?page=1&limit=5", app.org)).await;
    assert_eq!(listed.status, 200);
    witness.note(&listed.text);
    let shown = [
        &server["provisioning_token"],
        &renewed["provisioning_token"],
        &endpoint["secret"],
        &again["secret"],
    ];
    shown
        .into_iter()
        .map(|token| token.as_str().unwrap().to_owned())
        .chain([token, rotated, by_tool])
        .collect()
}

async fn call_tool(actor: &Actor, params: Value) -> Answer {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = actor.request(reqwest::Method::POST, "/mcp");
    Answer::of(request.header("accept", "application/json, text/event-stream").json(&message)).await
}

/// Rotates both kinds of keys. Returns what the key file contains, in every form in which it might slip out.
async fn rotate_keys(app: &TestApp, witness: &Witness<'_>) -> Vec<String> {
    keys::load(&app.core).await.unwrap();
    let path = &app.core.config.keys_file;
    let mut file = KeyFile::load(path).unwrap();
    file.rotate_sealing();
    file.save(path).unwrap();
    keys::reload(&app.core);
    let pace = Pace { batch: 3, rest: std::time::Duration::ZERO };
    assert!(keys::rewrap(&app.core, pace, |_, _| ()).await.unwrap().moved > 8);
    keys::rotate(&app.core, true).await.unwrap();
    witness.note(&app.anonymous.get("/.well-known/jwks.json").await.text);
    let text = std::fs::read_to_string(path).unwrap();
    let secrets: Vec<&str> = text
        .lines()
        .filter_map(|line| {
            line.strip_prefix("key = \"").or_else(|| line.strip_prefix("seed = \""))?.strip_suffix('"')
        })
        .collect();
    assert!(secrets.len() >= 3, "two sealing keys and a seed");
    let bytes = |secret: &str| general_purpose::STANDARD.decode(secret).unwrap();
    let forms = |secret: &str| {
        let url_safe = general_purpose::URL_SAFE_NO_PAD.encode(bytes(secret));
        [
            secret.trim_end_matches('=').to_owned(),
            url_safe,
            bytes(secret).iter().map(|byte| format!("{byte:02x}")).collect(),
        ]
    };
    secrets.into_iter().flat_map(forms).collect()
}

/// A person's own secrets: links in mails, tokens of sessions and challenges, a second factor and its recovery
/// codes. Answers that show one are not kept; all others are.
async fn live_with_an_account(app: &TestApp, witness: &Witness<'_>) -> Vec<String> {
    let email = "canary-person@example.org";
    let new = NewUser {
        email: email.to_owned(),
        name: "Canary".to_owned(),
        password: SENT[10].into(),
        confirmed: false,
    };
    people::create_user(&app.core, new).await.unwrap();
    let mut secrets = Vec::new();
    let mut keep = |value: &Value| {
        secrets.push(value.as_str().expect("a text").to_owned());
        value.as_str().unwrap().to_owned()
    };
    let sign_in = "mutation($e: String!, $p: SecretString!) { signIn(email: $e, password: $p) { accessToken refreshToken challenge { token } } }";
    let opened =
        app.anonymous.gql(sign_in, json!({ "e": email, "p": SENT[10] })).await.data()["signIn"].clone();
    let person = app.anonymous.with_bearer(keep(&opened["accessToken"]));
    keep(&opened["refreshToken"]);
    witness.note(&person.gql("mutation { requestEmailConfirmation }", json!({})).await.text);
    let link = keep(&json!(app.mail().await.token));
    for _ in 0..2 {
        witness.note(&app.anonymous.gql(account::CONFIRM, json!({ "t": link })).await.text);
    }
    let begin = "mutation($p: SecretString) { beginTotp(password: $p) { secret url } }";
    let begun = person.gql(begin, json!({ "p": SENT[10] })).await.data()["beginTotp"].clone();
    keep(&begun["secret"]);
    let phone = totp_rs::Totp::from_url(begun["url"].as_str().unwrap()).unwrap();
    let code = phone.generate(u64::try_from(app.clock.now().unix_seconds()).unwrap()).to_string();
    let confirm = "mutation($c: SecretString!) { confirmTotp(code: $c) }";
    let codes = person.gql(confirm, json!({ "c": code })).await.data()["confirmTotp"].clone();
    codes.as_array().unwrap().iter().for_each(|code| drop(keep(code)));
    let opened =
        app.anonymous.gql(sign_in, json!({ "e": email, "p": SENT[10] })).await.data()["signIn"].clone();
    keep(&opened["challenge"]["token"]);
    app.mails().await;
    witness.note(&app.anonymous.gql(account::REQUEST_RESET, json!({ "e": email })).await.text);
    let link = keep(&json!(app.mail().await.token));
    for _ in 0..2 {
        witness.note(&app.anonymous.gql(account::RESET, json!({ "t": link, "p": SENT[11] })).await.text);
    }
    let invite = "mutation($o: Id!) { inviteMember(orgId: $o, input: { email: \"canary-guest@example.org\", role: VIEWER }) { id email } }";
    app.mails().await;
    witness.gql(invite, json!({ "o": app.org })).await;
    keep(&json!(app.mail().await.token));
    secrets
}

async fn read_everything(app: &TestApp, witness: &Witness<'_>) {
    for path in [
        "server?page=1&limit=200",
        "agent?page=1&limit=200",
        "channel",
        "approval?page=1&limit=9&only_pending=false",
        "",
    ] {
        let path = format!("/v1/org/{}/{path}", app.org);
        witness.note(&app.owner.get(path.trim_end_matches('/')).await.text);
    }
    witness.note(&app.owner.get(&format!("/export/organization/{}", app.org)).await.text);
    let everything = "query($o: Id!) {
        credentials(orgId: $o, page: 1, limit: 50) { data { id name fields { label hasValue } } }
        serviceTokens(orgId: $o, page: 1, limit: 50) { data { id name hint } }
        eventEndpoints(orgId: $o) { id name url inactiveDetail }
        auditLog(orgId: $o, page: 1, limit: 200) { data { operation changes } }
    }";
    app.seal().await;
    let data = witness.gql(everything, json!({ "o": app.org })).await;
    assert!(data["auditLog"]["data"].as_array().unwrap().len() >= 8, "the audit log was read");
}

/// Every value in every table as text, including binary ones.
async fn database(app: &TestApp) -> String {
    let mut out = String::new();
    if !crate::harness::is_postgres() {
        for entry in std::fs::read_dir(app.folder()).unwrap() {
            let path = entry.unwrap().path();
            if path.to_string_lossy().contains("muster.db") {
                out.push_str(&String::from_utf8_lossy(&std::fs::read(path).unwrap()));
            }
        }
        return out;
    }
    let tables = "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'";
    for table in app.column::<String>(tables).await {
        // Bytes as text if they are text: a secret in a BYTEA would show in hexadecimal, which is searched too.
        let rows: Vec<String> = app.column(&format!("SELECT t::text FROM \"{table}\" t")).await;
        out.extend(rows);
    }
    out
}
