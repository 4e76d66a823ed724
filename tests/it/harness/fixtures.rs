//! Fixtures: the people and organizations in the template, and things created on demand.

use std::sync::atomic::Ordering;

use muster::{
    base::{
        enums::RestartPolicy,
        folding,
        ids::{ImageId, ServerId},
    },
    core::access::token::{Token, TokenKind},
    domain::{
        agents::{self, CreateAgentInput},
        people::{self, NewUser},
        servers::{self, CreateImageInput, CreateServerInput},
    },
};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, Statement, TryGetable, Value};
use secrecy::ExposeSecret;
use serde_json::{Value as Json, json};

use super::{
    Actor, Answer, TestApp,
    app::{access_token, now},
};

pub const ORG: i64 = 101;
pub const OTHER_ORG: i64 = 102;

pub const ORG_NAME: &str = "Meridian Freight";
pub const OWNER: i64 = 201;
pub const ADMIN: i64 = 202;
pub const OPERATOR: i64 = 203;
pub const VIEWER: i64 = 204;
pub const STRANGER: i64 = 205;

const SIGN_IN: &str = "mutation($e: String!, $p: SecretString!) { signIn(email: $e, password: $p) { \
    accessToken accessTokenExpiresAt refreshToken refreshTokenExpiresAt user { id email name emailConfirmed } \
    challenge { token expiresAt } } }";

/// The people: id, name, organization, role. A session has the id of its user.
const PEOPLE: [(i64, &str, i64, &str); 5] = [
    (OWNER, "owner", ORG, "OWNER"),
    (ADMIN, "admin", ORG, "ADMIN"),
    (OPERATOR, "operator", ORG, "OPERATOR"),
    (VIEWER, "viewer", ORG, "VIEWER"),
    (STRANGER, "stranger", OTHER_ORG, "OWNER"),
];

/// Fills the template.
pub(super) async fn found(db: &DatabaseConnection) {
    let now = now().0;
    spread_ids(db).await;
    for (org, name) in [(ORG, ORG_NAME), (OTHER_ORG, "Another House")] {
        let sql = "INSERT INTO organizations (id, name, plan, created_at, updated_at) VALUES ($1, $2, 'BUSINESS', $3, $3)";
        execute(db, sql, vec![org.into(), name.into(), now.into()]).await;
    }
    for (id, name, org, role) in PEOPLE {
        add_person(db, Some(id), name, org, role, true).await;
    }
}

/// Starts every table's ids from a different number, so that an id of one kind is never one of another by
/// chance.
async fn spread_ids(db: &DatabaseConnection) {
    let postgres = db.get_database_backend() == DbBackend::Postgres;
    let tables = if postgres {
        "SELECT table_name FROM information_schema.columns \
         WHERE table_schema = 'public' AND column_name = 'id' AND is_identity = 'YES' ORDER BY table_name"
    } else {
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%' ORDER BY name"
    };
    let tables: Vec<String> = column(db, tables).await;
    assert!(tables.len() > 10, "{tables:?}");
    for (n, table) in tables.iter().enumerate() {
        let first = 1000 * (n + 1);
        let sql = if postgres {
            format!("ALTER TABLE {table} ALTER COLUMN id RESTART WITH {first}")
        } else {
            format!("INSERT INTO sqlite_sequence (name, seq) VALUES ('{table}', {first})")
        };
        execute(db, &sql, vec![]).await;
    }
}

/// Creates a user with a membership and a session. Returns both ids.
async fn add_person(
    db: &DatabaseConnection,
    id: Option<i64>,
    name: &str,
    org: i64,
    role: &str,
    confirmed: bool,
) -> (i64, i64) {
    let now = now().0;
    let text = |text: &str| Value::from(text.to_owned());
    let email = format!("{name}@example.com");
    let (column, place) = if id.is_some() { ("id, ", "$5, ") } else { ("", "") };
    let sql = format!(
        "INSERT INTO users ({column}email, email_folded, name, name_folded, email_confirmed_at, created_at, updated_at) \
         VALUES ({place}$1, $1, $2, $2, $3, $4, $4) RETURNING id"
    );
    let mut values = vec![text(&email), text(name), confirmed.then_some(now).into(), now.into()];
    values.extend(id.map(Value::from));
    let user: i64 = one(db, &sql, values).await;
    let sql = "INSERT INTO members (organization_id, user_id, role, created_at) VALUES ($1, $2, $3, $4)";
    execute(db, sql, vec![org.into(), user.into(), text(role), now.into()]).await;
    let (column, place) = if id.is_some() { ("id, ", "$1, ") } else { ("", "") };
    let sql = format!(
        "INSERT INTO sessions ({column}user_id, family, kind, token_hash, created_at, last_used_at, expires_at) \
         VALUES ({place}$1, $2, 'TOKENS', $3, $4, $4, $5) RETURNING id"
    );
    let (family, hash) = (format!("family of {name}"), name.as_bytes().to_vec());
    let expiry = now + 365 * 24 * 60 * 60 * 1000;
    let session = one(db, &sql, vec![user.into(), family.into(), hash.into(), now.into(), expiry.into()]);
    (user, session.await)
}

impl TestApp {
    /// A text that no other fixture in this test has.
    pub fn name(&self, of: &str) -> String {
        format!("{of} {}", self.named.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// A fresh service without people. Its organizations have no members.
    pub async fn without_people() -> Self {
        let app = Self::start().await;
        for table in ["sessions", "members", "users"] {
            app.execute(&format!("DELETE FROM {table}"), vec![]).await;
        }
        app
    }

    /// Adds a member with a session. `role` as on the wire; the e-mail address may be unconfirmed.
    pub async fn person(&self, role: &str, confirmed: bool) -> Actor {
        self.person_of(self.org, role, confirmed).await
    }

    /// Adds a member to either organization.
    pub async fn person_of(&self, org: i64, role: &str, confirmed: bool) -> Actor {
        let name = self.name("person").replace(' ', "-");
        let (user, session) = add_person(&self.database, None, &name, org, role, confirmed).await;
        self.anonymous.person(user, access_token(&self.core, user, session))
    }

    /// A person outside all organizations, named Someone, who signs in with `correct horse`. Returns their id.
    pub async fn user(&self, email: &str, confirmed: bool) -> i64 {
        let new = NewUser {
            email: email.to_owned(),
            name: "Someone".to_owned(),
            password: "correct horse".into(),
            confirmed,
        };
        people::create_user(&self.core, new).await.unwrap().0
    }

    /// Signs in. The answer has a session, or the challenge for a second factor.
    pub async fn sign_in(&self, email: &str, password: &str) -> Answer {
        self.anonymous.gql(SIGN_IN, json!({ "e": email, "p": password })).await
    }

    /// A new session of a [`TestApp::user`], and its refresh token.
    pub async fn signed_in(&self, email: &str) -> (Actor, String) {
        self.session(&self.sign_in(email, "correct horse").await.data()["signIn"])
    }

    /// A session as an actor, and its refresh token.
    pub fn session(&self, shown: &Json) -> (Actor, String) {
        let text = |key: &str| shown[key].as_str().unwrap().to_owned();
        (self.anonymous.with_bearer(text("accessToken")), text("refreshToken"))
    }

    /// A service token of the organization.
    pub async fn token(&self, permissions: &[&str]) -> Actor {
        self.token_of(self.org, permissions).await
    }

    /// A service token of either organization.
    pub async fn token_of(&self, org: i64, permissions: &[&str]) -> Actor {
        let (text, hash) = Token::generate(TokenKind::Service);
        let text = text.expose_secret();
        let sql = "INSERT INTO service_tokens \
                   (organization_id, name, name_folded, token_hash, hint, permissions, created_at, last_used_at) \
                   VALUES ($1, $2, $2, $3, $4, $5, $6, $6)";
        let values = vec![
            org.into(),
            self.name("token").into(),
            hash.as_bytes().to_vec().into(),
            Token::hint(text).to_owned().into(),
            json!(permissions).into(),
            self.clock.now().0.into(),
        ];
        self.execute(sql, values).await;
        self.anonymous.with_bearer(text)
    }

    /// A server.
    pub async fn server(&self) -> i64 {
        server(&self.scope(), self.name("server")).await.0
    }

    /// An image.
    pub async fn image(&self) -> i64 {
        image(&self.scope(), self.name("image")).await.0
    }

    /// A stopped agent on its own server.
    pub async fn agent(&self) -> i64 {
        self.agent_in(&self.scope()).await
    }

    /// A stopped agent of the stranger's organization.
    pub async fn other_agent(&self) -> i64 {
        self.agent_in(&self.other_scope()).await
    }

    /// A stopped agent of an organization.
    pub async fn agent_in(&self, scope: &muster::core::access::Scope) -> i64 {
        let new = CreateAgentInput {
            name: self.name("agent"),
            description: None,
            role: None,
            instructions: None,
            server_id: server(scope, self.name("server")).await,
            image_id: Some(image(scope, self.name("image")).await),
            model_override: None,
        };
        agents::create(scope, new, RestartPolicy::OnFailure).await.unwrap().0
    }

    /// A contact without an identity.
    pub async fn contact(&self, name: &str) -> i64 {
        let sql = "INSERT INTO contacts (organization_id, name, name_folded, created_at, updated_at) \
                   VALUES ($1, $2, $3, $4, $4) RETURNING id";
        let (name, now) = (name.to_owned(), self.clock.now().0);
        let values = vec![self.org.into(), name.clone().into(), folding::name(&name).into(), now.into()];
        self.one(sql, values).await
    }

    /// An open conversation with an agent, without contact, channel, or messages.
    pub async fn conversation(&self, agent: i64) -> i64 {
        let n = self.named.fetch_add(1, Ordering::Relaxed);
        let sql = "INSERT INTO conversations (organization_id, ref, agent_id, transport, opened_at, last_activity_at, \
                   created_at, updated_at) \
                   SELECT organization_id, $2, id, 'INTERNAL', $3, $3, $3, $3 FROM agents WHERE id = $1 RETURNING id";
        let now = self.clock.now().0;
        self.one(sql, vec![agent.into(), format!("C{n:07}").into(), now.into()]).await
    }

    /// The agents marked for synchronization. Clears the marks.
    pub async fn marked_agents(&self) -> Vec<i64> {
        let marked = self.column("SELECT id FROM agents WHERE sync_pending ORDER BY id").await;
        self.execute("UPDATE agents SET sync_pending = FALSE", vec![]).await;
        marked
    }

    /// Runs a statement directly on the database.
    pub async fn execute(&self, sql: &str, values: Vec<Value>) {
        execute(&self.database, sql, values).await;
    }

    /// The first column of a statement's only row.
    pub async fn one<T: TryGetable>(&self, sql: &str, values: Vec<Value>) -> T {
        one(&self.database, sql, values).await
    }

    /// The first column of every row.
    pub async fn column<T: TryGetable>(&self, sql: &str) -> Vec<T> {
        column(&self.database, sql).await
    }
}

async fn server(scope: &muster::core::access::Scope, name: String) -> ServerId {
    let new = CreateServerInput {
        name,
        description: None,
        hostname: None,
        address: None,
        region: None,
        labels: None,
    };
    servers::create(scope, new).await.unwrap().0
}

async fn image(scope: &muster::core::access::Scope, name: String) -> ImageId {
    let new = CreateImageInput {
        name,
        reference: "registry.example/agent:1".into(),
        description: None,
        default_model: Some("model-1".into()),
        profile: None,
    };
    servers::create_image(scope, new).await.unwrap()
}

async fn execute(db: &DatabaseConnection, sql: &str, values: Vec<Value>) {
    let statement = Statement::from_sql_and_values(db.get_database_backend(), sql, values);
    db.execute_raw(statement).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

async fn one<T: TryGetable>(db: &DatabaseConnection, sql: &str, values: Vec<Value>) -> T {
    let statement = Statement::from_sql_and_values(db.get_database_backend(), sql, values);
    let row = db.query_one_raw(statement).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    row.unwrap_or_else(|| panic!("{sql}: no row")).try_get_by(0).unwrap()
}

async fn column<T: TryGetable>(db: &DatabaseConnection, sql: &str) -> Vec<T> {
    let statement = Statement::from_string(db.get_database_backend(), sql);
    let rows = db.query_all_raw(statement).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows.iter().map(|row| row.try_get_by(0).unwrap()).collect()
}
