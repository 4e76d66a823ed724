//! Inserts many related rows straight into the tables, for laws that look at every field of every record.
//! Values differ from row to row, and nullable columns are null in some.

use std::sync::atomic::Ordering;

use muster::base::folding;
use sea_orm::Value;
use serde_json::{Value as Json, json};

use super::{Actor, TestApp, is_postgres};

/// The ids created, one list per table.
#[derive(Clone, Debug, Default)]
pub struct Population {
    pub servers: Vec<i64>,
    pub images: Vec<i64>,
    pub agents: Vec<i64>,
    pub channels: Vec<i64>,
    pub contacts: Vec<i64>,
    pub identities: Vec<i64>,
    pub conversations: Vec<i64>,
    pub turns: Vec<i64>,
    pub messages: Vec<i64>,
    pub attachments: Vec<i64>,
    pub approvals: Vec<i64>,
    pub credentials: Vec<i64>,
    pub credential_fields: Vec<i64>,
    pub mcp_servers: Vec<i64>,
    pub skills: Vec<i64>,
    pub service_tokens: Vec<i64>,
    pub invitations: Vec<i64>,
    pub members: Vec<i64>,
    pub sessions: Vec<i64>,
    pub policy_versions: Vec<i64>,
}

impl TestApp {
    /// Creates `n` of everything in [`TestApp::org`].
    pub async fn populate(&self, n: usize) -> Population {
        let mut all = Population::default();
        self.grow(&mut all, n).await;
        all
    }

    /// Creates `n` more. What is related to one of the first is related to them too.
    pub async fn grow(&self, all: &mut Population, n: usize) {
        Filler { app: self, org: self.org, author: &self.owner }.fill(all, n).await;
    }

    /// Creates `n` of everything in the stranger's organization.
    pub async fn populate_other(&self, n: usize) -> Population {
        let mut all = Population::default();
        Filler { app: self, org: self.other_org, author: &self.stranger }.fill(&mut all, n).await;
        all
    }
}

struct Filler<'a> {
    app: &'a TestApp,
    org: i64,
    author: &'a Actor,
}

/// A row to insert: columns and values.
type Row = Vec<(&'static str, Value)>;

/// What is kept folded as well: table, column and its folded form.
const FOLDED: [(&str, &str, &str); 6] = [
    ("agents", "name", "name_folded"),
    ("channels", "name", "name_folded"),
    ("contacts", "name", "name_folded"),
    ("identities", "origin_id", "origin_id_folded"),
    ("identities", "display_name", "display_name_folded"),
    ("invitations", "email", "email_folded"),
];

fn text(text: impl Into<String>) -> Value {
    text.into().into()
}

impl Filler<'_> {
    async fn fill(&self, all: &mut Population, n: usize) {
        for i in all.agents.len()..all.agents.len() + n {
            self.people(all, i).await;
            self.home(all, i).await;
            self.agent(all, i).await;
            self.channel(all, i).await;
            self.conversation(all, i).await;
            self.approval(all, i).await;
            self.tools(all, i).await;
            self.policy(all, i).await;
        }
    }

    /// Every other one belongs to the first agent, so that it has many of everything.
    fn agent_of(all: &Population, i: usize) -> Value {
        all.agents[if i.is_multiple_of(2) { 0 } else { i }].into()
    }

    /// Inserts a row in this organization and returns its id.
    async fn insert(&self, table: &str, row: Row) -> i64 {
        let (sql, values) = self.statement(table, row);
        self.app.one(&format!("{sql} RETURNING id"), values).await
    }

    /// Inserts a row without an id.
    async fn link(&self, table: &str, row: Row) {
        let (sql, values) = self.statement(table, row);
        self.app.execute(&sql, values).await;
    }

    fn statement(&self, table: &str, mut row: Row) -> (String, Vec<Value>) {
        row.push(("organization_id", self.org.into()));
        for (_, column, folded) in FOLDED.iter().filter(|(of, ..)| *of == table) {
            let fold = if *column == "email" { folding::address } else { folding::name };
            let given = row.iter().find(|(name, _)| name == column).map(|(_, value)| value.clone());
            if let Some(Value::String(Some(given))) = given {
                row.push((folded, fold(&given).into()));
            }
        }
        let columns: Vec<&str> = row.iter().map(|(column, _)| *column).collect();
        let places: Vec<String> = (1..=row.len()).map(|place| format!("${place}")).collect();
        let sql = format!("INSERT INTO {table} ({}) VALUES ({})", columns.join(", "), places.join(", "));
        (sql, row.into_iter().map(|(_, value)| value).collect())
    }

    fn at(&self, i: usize) -> Value {
        (self.app.clock.now().0 - 1000 * number(i)).into()
    }

    fn maybe_at(&self, i: usize, is: bool) -> Value {
        is.then_some(self.app.clock.now().0 + number(i)).into()
    }

    /// A number that no other row in this test has.
    fn fresh(&self) -> u32 {
        self.app.named.fetch_add(1, Ordering::Relaxed)
    }

    async fn policy(&self, all: &mut Population, i: usize) {
        let given = format!("p, VIEWER, {}, contact.view, allow\n", self.org);
        let given = (i % 3 != 2).then_some(given);
        let row = vec![
            ("version", text(muster::slices::policies::version_of(given.as_deref()))),
            ("text", given.into()),
            ("author_kind", text(["USER", "OPERATOR", "OPERATOR"][i % 3])),
            ("author_id", i.is_multiple_of(3).then(|| all.members[i]).into()),
            ("author_name", i.is_multiple_of(3).then(|| format!("author {i}")).into()),
            ("reason", text(format!("reason {i}"))),
            ("reverts_to", (i % 4 == 3).then(|| all.policy_versions[0]).into()),
            ("at", self.at(i)),
        ];
        all.policy_versions.push(self.insert("policy_versions", row).await);
    }

    async fn people(&self, all: &mut Population, i: usize) {
        let role = ["ADMIN", "OPERATOR", "VIEWER"][i % 3];
        let person = self.app.person_of(self.org, role, i % 4 != 3).await;
        all.members.extend(person.user);
        let sessions = "SELECT max(id) FROM sessions WHERE user_id = $1";
        let user = person.user.unwrap_or_default();
        all.sessions.push(self.app.one::<Option<i64>>(sessions, vec![user.into()]).await.unwrap());
        let n = self.fresh();
        let row = vec![
            ("name", text(format!("token {n}"))),
            ("token_hash", format!("no token hashes to this: {n}").into_bytes().into()),
            ("hint", text(format!("{n:04}"))),
            ("permissions", json!(["agent.view", "server.view"][..=i % 2]).into()),
            ("created_by", person.user.filter(|_| i.is_multiple_of(2)).into()),
            ("created_at", self.at(i)),
            ("expires_at", self.maybe_at(i + 86_400_000, i % 2 == 1)),
        ];
        all.service_tokens.push(self.insert("service_tokens", row).await);
        let row = vec![
            ("email", text(format!("invited-{n}@example.com"))),
            ("role", text(role)),
            ("token_hash", format!("no link hashes to this: {n}").into_bytes().into()),
            ("invited_by", person.user.filter(|_| i.is_multiple_of(2)).into()),
            ("created_at", self.at(i)),
            ("sent_at", self.maybe_at(i, i % 2 == 1)),
            ("expires_at", self.at(i + 604_800_000)),
        ];
        all.invitations.push(self.insert("invitations", row).await);
        // For a person, outside organizations.
        let sql = "INSERT INTO user_identities (user_id, provider, subject, email, created_at, last_used_at) \
                   VALUES ($1, 'elsewhere', $2, $3, $4, $4)";
        let (subject, email) = (format!("somebody {n}"), format!("somebody-{n}@example.org"));
        let values = vec![self.author.user.into(), subject.into(), email.into(), self.at(i)];
        self.app.execute(sql, values).await;
    }

    async fn home(&self, all: &mut Population, i: usize) {
        let n = self.fresh();
        let some = i.is_multiple_of(2);
        let row = vec![
            ("name", text(format!("server {n}"))),
            ("description", some.then(|| format!("“Rack” {n}\n\ttab, \u{1F600} \\ /")).into()),
            ("hostname", some.then(|| format!("host-{n}.example")).into()),
            ("labels", json!({ "rack": n.to_string(), "ünïcode \"key\"": "ja" }).into()),
            ("status", text(["PENDING", "ONLINE", "DEGRADED", "OFFLINE"][i % 4])),
            ("cpu_cores", some.then_some(8_i64).into()),
            ("cpu_pct", some.then_some(12.5_f64).into()),
            ("ram_pct", some.then_some(80.0_f64).into()),
            ("load_1", some.then_some(0.1_f64 + f64::from(n)).into()),
            ("runtime", some.then(|| "DOCKER".to_owned()).into()),
            ("last_seen_at", self.maybe_at(i, some)),
            ("created_by", self.author.user.into()),
            ("created_at", self.at(i)),
            ("updated_at", self.at(i)),
        ];
        all.servers.push(self.insert("servers", row).await);
        let row = vec![
            ("name", text(format!("image {n}"))),
            ("reference", text(format!("registry.example/agent:{n}"))),
            ("default_model", some.then(|| "model-1".to_owned()).into()),
            ("created_at", self.at(i)),
            ("updated_at", self.at(i)),
        ];
        all.images.push(self.insert("images", row).await);
    }

    async fn agent(&self, all: &mut Population, i: usize) {
        let n = self.fresh();
        let some = i % 2 == 1;
        let row = vec![
            ("server_id", all.servers[i].into()),
            ("image_id", all.images[i].into()),
            ("name", text(format!("agent {n}"))),
            ("description", some.then(|| format!("does <b>{n}</b> & more \u{2028}\u{7}")).into()),
            ("status", text(["STOPPED", "RUNNING", "ERROR"][i % 3])),
            ("status_reason", (i % 3 == 2).then(|| "EXITED".to_owned()).into()),
            ("status_detail", (i % 3 == 2).then(|| "exit code 1".to_owned()).into()),
            ("launched_revision", (i % 3 == 1).then_some(1_i64).into()),
            ("started_at", self.maybe_at(0, i % 3 == 1)),
            ("model_override", some.then(|| "model-2".to_owned()).into()),
            ("effort_override", some.then(|| "HIGH".to_owned()).into()),
            ("thinking_enabled", some.into()),
            ("approval_categories", json!(["money", "\"quoted\""][..=i % 3 % 2]).into()),
            ("memory_mb_override", some.then_some(512_i64).into()),
            ("cpu_override", some.then_some(1.5_f64).into()),
            ("tokens_used", (9_007_199_254_740_993_i64 + i64::from(n)).into()),
            ("cost_micro", number(i).into()),
            ("usage_status", some.then(|| "ALLOWED".to_owned()).into()),
            ("sync_pending", some.into()),
            ("avatar_version", some.then_some(3_i64).into()),
            ("created_by", self.author.user.into()),
            ("created_at", self.at(i)),
            ("updated_at", self.at(i)),
        ];
        let agent = self.insert("agents", row).await;
        all.agents.push(agent);
        self.version("agent", agent, i).await;
        if i > 0 {
            self.version("agent", all.agents[0], i).await;
        }
    }

    /// Adds what an agent or a skill was at a time.
    async fn version(&self, of: &'static str, id: i64, i: usize) {
        let (table, owner, newest) = match of {
            "agent" => ("agent_revisions", "agent_id", "revision"),
            _ => ("skill_versions", "skill_id", "version"),
        };
        let number = format!("SELECT COUNT(*) + 1 FROM {table} WHERE {owner} = $1");
        let number: i64 = self.app.one(&number, vec![id.into()]).await;
        let said = format!("at the time of {number}");
        let mut row = vec![
            (owner, id.into()),
            ("number", number.into()),
            ("content", text(json!({ "description": said }).to_string())),
            ("content_hash", text(format!("{i:064}"))),
            ("changes", if number > 1 { json!({ "description": [null, said] }) } else { json!({}) }.into()),
            ("reverts_to", (i % 3 == 2).then_some(1_i64).into()),
            ("author_kind", text(["USER", "SERVICE_TOKEN", "SYSTEM"][i % 3])),
            ("author_id", i.is_multiple_of(3).then_some(self.author.user).flatten().into()),
            ("author_name", text(format!("author {i}"))),
            ("operation", (i % 2 == 1).then(|| "updateAgent".to_owned()).into()),
            ("reason", (i % 2 == 1).then(|| format!("reason {i}")).into()),
            ("created_at", self.at(i)),
        ];
        if of == "skill" {
            row.push(("bytes", 40_i64.into()));
        }
        self.insert(table, row).await;
        let sql = format!("UPDATE {of}s SET {newest} = $1 WHERE id = $2");
        self.app.execute(&sql, vec![number.into(), id.into()]).await;
    }

    async fn channel(&self, all: &mut Population, i: usize) {
        let n = self.fresh();
        let transport = ["WEBHOOK", "TELEGRAM", "CODE_HOST", "CALENDAR", "DRIVE", "EMAIL"][i % 6];
        let row = vec![
            ("agent_id", Self::agent_of(all, i)),
            ("transport", text(transport)),
            ("name", text(format!("channel {n}"))),
            ("mention_off", json!(["a", "b"][..i % 2]).into()),
            ("inbound_slug", text(format!("slug{n:08}"))),
            (
                "webhook_outbound_url",
                (transport == "WEBHOOK").then(|| "https://hook.example".to_owned()).into(),
            ),
            ("webhook_actor_paths", json!(["sender.id"]).into()),
            ("code_host_repos", json!(["owner/name"]).into()),
            ("code_host_oauth_user_login", (transport == "CODE_HOST").then(|| "octo".to_owned()).into()),
            ("calendar_whitelist", json!([{ "id": "c1", "name": "Rota" }]).into()),
            ("drive_folder_id", (transport == "DRIVE").then(|| format!("folder {n}")).into()),
            ("alert_recipient_user_ids", json!([all.members[i]]).into()),
            ("is_active", (i % 5 != 4).into()),
            ("inactive_reason", (i % 5 == 4).then(|| "MANUAL".to_owned()).into()),
            ("created_at", self.at(i)),
            ("updated_at", self.at(i)),
            ("last_activity_at", self.maybe_at(i, i % 2 == 1)),
        ];
        let channel = self.insert("channels", row).await;
        all.channels.push(channel);
        for origin in 0..=i % 3 {
            let row = vec![
                ("channel_id", channel.into()),
                ("origin_id", text(format!("origin-{origin}"))),
                ("created_at", self.at(i)),
            ];
            self.link("channel_whitelist", row).await;
        }
        let row = vec![
            ("name", text(format!("Contact {n}"))),
            ("created_at", self.at(i)),
            ("updated_at", self.at(i)),
        ];
        let contact = self.insert("contacts", row).await;
        all.contacts.push(contact);
        let row = vec![
            ("contact_id", contact.into()),
            ("channel_id", channel.into()),
            ("transport", text(transport)),
            ("origin_id", text(format!("origin of {n}"))),
            ("created_at", self.at(i)),
            ("updated_at", self.at(i)),
        ];
        all.identities.push(self.insert("identities", row).await);
    }

    async fn conversation(&self, all: &mut Population, i: usize) {
        let n = self.fresh();
        let with_contact = i % 3 != 2;
        let messages = 1 + number(i) % 3;
        let row = vec![
            ("ref", text(format!("C{n:07}"))),
            ("title", with_contact.then(|| format!("Thread {n}")).into()),
            ("status", text(["OPEN", "PENDING", "RESOLVED", "ARCHIVED"][i % 4])),
            ("agent_id", Self::agent_of(all, i)),
            ("contact_id", with_contact.then(|| all.contacts[i]).into()),
            ("channel_id", with_contact.then(|| all.channels[i]).into()),
            ("transport", text(if with_contact { "WEBHOOK" } else { "INTERNAL" })),
            ("model", with_contact.then(|| "model-1".to_owned()).into()),
            ("message_count", messages.into()),
            ("last_seq", messages.into()),
            ("last_message_seq", messages.into()),
            ("last_message_role", text("ASSISTANT")),
            ("last_message_kind", text("TEXT")),
            ("last_message_preview", text("Grüße \"von\" hier")),
            ("last_message_created_at", self.at(i)),
            ("opened_at", self.at(i)),
            ("last_activity_at", self.at(i)),
            ("created_at", self.at(i)),
            ("updated_at", self.at(i)),
        ];
        let conversation = self.insert("conversations", row).await;
        all.conversations.push(conversation);
        self.turns(all, i, conversation).await;
        for seq in 1..=messages {
            let message = self.message(all, i, conversation, seq).await;
            all.messages.push(message);
        }
        if i > 0 {
            let first = all.conversations[0];
            let message = self.message(all, i, first, 100 + number(i)).await;
            all.messages.push(message);
            let sql =
                "UPDATE conversations SET message_count = message_count + 1, last_seq = $2 WHERE id = $1";
            self.app.execute(sql, vec![first.into(), (100 + number(i)).into()]).await;
        }
    }

    /// An open turn or one that waits, and one that has ended.
    async fn turns(&self, all: &mut Population, i: usize, conversation: i64) {
        for (n, state) in
            [["RUNNING", "QUEUED"][i % 2], ["DONE", "FAILED", "CANCELLED"][i % 3]].into_iter().enumerate()
        {
            let ended = n == 1;
            let row = vec![
                ("conversation_id", conversation.into()),
                ("agent_id", Self::agent_of(all, i)),
                ("generation", (state != "QUEUED").then_some(9_i64).into()),
                ("agent_revision", i.is_multiple_of(2).then_some(1_i64).into()),
                ("cause", text(["PANEL", "API"][i % 2])),
                ("caused_by_user_id", i.is_multiple_of(2).then(|| all.members[i]).into()),
                ("caused_by_token_id", (i % 2 == 1).then(|| all.service_tokens[i]).into()),
                ("state", text(state)),
                ("model", ended.then(|| "model-1".to_owned()).into()),
                ("input_tokens", ended.then_some(1000 + number(i)).into()),
                ("output_tokens", (ended && i.is_multiple_of(2)).then_some(20_i64).into()),
                ("cost_micro", ended.then_some(1500_i64).into()),
                ("error", (state == "FAILED").then(|| "it \"broke\"".to_owned()).into()),
                ("first_seq", 1_i64.into()),
                ("last_seq", (1 + number(i) % 3).into()),
                ("started_at", self.maybe_at(i, state != "QUEUED")),
                ("ended_at", self.maybe_at(i, ended)),
                ("created_at", self.at(i)),
                ("updated_at", self.at(i)),
            ];
            all.turns.push(self.insert("turns", row).await);
        }
    }

    async fn message(&self, all: &mut Population, i: usize, conversation: i64, seq: i64) -> i64 {
        let external = seq == 1 && i % 3 != 2;
        let row = vec![
            ("conversation_id", conversation.into()),
            ("seq", seq.into()),
            ("turn_id", (seq == 1).then(|| all.turns[2 * i]).into()),
            ("host_key", (seq == 2).then(|| format!("1.{i}.{seq}")).into()),
            ("role", text(["USER", "ASSISTANT"][seq as usize % 2])),
            ("kind", text("TEXT")),
            ("via_channel_id", external.then(|| all.channels[i]).into()),
            ("via_identity_id", external.then(|| all.identities[i]).into()),
            ("author_user_id", (!external).then(|| all.members[i]).into()),
            ("author_name", (!external).then(|| format!("author {i}")).into()),
            ("status", text("DELIVERED")),
            ("delivery_status", external.then(|| "SENT".to_owned()).into()),
            ("delivery_sent_at", self.maybe_at(i, external)),
            (
                "content",
                json!({ "text": format!("Message {seq} of {conversation}"), "format": "plain" }).into(),
            ),
            ("created_at", self.at(i)),
        ];
        let message = self.insert("messages", row).await;
        self.index(message, conversation, seq).await;
        let row = vec![
            ("message_id", message.into()),
            ("filename", text(format!("file {seq}.pdf"))),
            ("mime_type", text("application/pdf")),
            ("size_bytes", (1000 * seq).into()),
            ("sha256", vec![0_u8; 32].into()),
            ("uploaded_by_agent_id", (!external).then(|| all.agents[i]).into()),
            ("created_at", self.at(i)),
        ];
        all.attachments.push(self.insert("attachments", row).await);
        message
    }

    /// Adds a message to the search index (`migrations/README.md`).
    async fn index(&self, message: i64, conversation: i64, seq: i64) {
        let tokens = vec!["message".to_owned(), format!("#{conversation}")];
        if is_postgres() {
            let sql = "INSERT INTO message_search (organization_id, message_id, conversation_id, seq, tokens) \
                       VALUES ($1, $2, $3, $4, array_to_tsvector($5))";
            let values =
                vec![self.org.into(), message.into(), conversation.into(), seq.into(), tokens.into()];
            self.app.execute(sql, values).await;
        } else {
            let sql = "INSERT INTO messages_fts (rowid, tokens) VALUES ($1, $2)";
            self.app.execute(sql, vec![message.into(), text(tokens.join(" "))]).await;
        }
    }

    async fn approval(&self, all: &mut Population, i: usize) {
        let kind = ["QUESTION", "ACTION", "COST_GUARD"][i % 3];
        let decided = i % 4 == 3;
        let question: Option<Json> = (kind == "QUESTION").then(|| {
            let option = |id: &str, label: &str| json!({ "id": id, "label": label, "description": null });
            json!({ "text": "Which?", "options": [option("a", "A"), option("b", "B")],
                    "multiple": false, "allow_text": i.is_multiple_of(2) })
        });
        let request: Option<Json> = (kind == "ACTION")
            .then(|| json!({ "tool": "shell", "input": { "cmd": "ls" }, "digest": "d41d8" }));
        let row = vec![
            ("kind", text(kind)),
            ("status", text(if decided { "RESOLVED" } else { "PENDING" })),
            ("outcome", decided.then(|| "MANUAL".to_owned()).into()),
            ("title", text(format!("Decide {i}"))),
            ("severity", text(["LOW", "HIGH"][i % 2])),
            ("risk", (i % 2 == 1).then_some(40_i64).into()),
            ("agent_id", all.agents[i].into()),
            ("server_id", all.servers[i].into()),
            ("channel_id", all.channels[i].into()),
            ("conversation_id", all.conversations[i].into()),
            ("message_seq", 1_i64.into()),
            ("turn_id", (kind != "COST_GUARD").then(|| all.turns[2 * i]).into()),
            ("request", request.into()),
            ("question", question.into()),
            ("decided_by_user_id", decided.then(|| all.members[i]).into()),
            ("decided_by_name", decided.then(|| "somebody".to_owned()).into()),
            ("decided_by_kind", decided.then(|| "USER".to_owned()).into()),
            ("decided_via", decided.then(|| "REST".to_owned()).into()),
            ("resolved_at", self.maybe_at(i, decided)),
            ("created_at", self.at(i)),
            ("updated_at", self.at(i)),
        ];
        all.approvals.push(self.insert("approvals", row).await);
    }

    async fn tools(&self, all: &mut Population, i: usize) {
        let n = self.fresh();
        let named = |of: &str| {
            vec![
                ("name", text(format!("{of} {n}"))),
                ("description", (i % 2 == 1).then(|| format!("about {of}")).into()),
                ("created_by", self.author.user.into()),
                ("created_at", self.at(i)),
                ("updated_at", self.at(i)),
            ]
        };
        let mut row = named("credential");
        row.push(("kind", text(["api-key", "oauth2"][i % 2])));
        row.push(("destinations", json!(["api.example"]).into()));
        let credential = self.insert("credentials", row).await;
        for (position, label) in ["user", "secret"].into_iter().enumerate() {
            let row = vec![
                ("credential_id", credential.into()),
                ("label", text(label)),
                ("type", text(["text", "secret"][position])),
                ("position", number(position).into()),
            ];
            all.credential_fields.push(self.insert("credential_fields", row).await);
        }
        let row = vec![
            ("credential_id", credential.into()),
            ("user_id", all.members[i].into()),
            ("granted_at", self.at(i)),
        ];
        self.link("credential_members", row).await;
        let mut row = named("mcp");
        row.push(("transport", text(["STDIO", "HTTP"][i % 2])));
        row.push(("command", i.is_multiple_of(2).then(|| "npx".to_owned()).into()));
        row.push(("url", (i % 2 == 1).then(|| "https://mcp.example".to_owned()).into()));
        row.push(("args", json!(["-y", "x y"]).into()));
        let mcp = self.insert("mcp_servers", row).await;
        let mut row = named("skill");
        row.push(("content", text("# How\n\n- step")));
        row.push(("content_hash", text("0".repeat(64))));
        row.push(("effort", (i % 2 == 1).then(|| "LOW".to_owned()).into()));
        let skill = self.insert("skills", row).await;
        for (table, column, id) in [
            ("credential_agents", "credential_id", credential),
            ("mcp_server_agents", "mcp_server_id", mcp),
            ("skill_agents", "skill_id", skill),
        ] {
            for agent in &all.agents[i.saturating_sub(1)..=i] {
                let row =
                    vec![(column, id.into()), ("agent_id", (*agent).into()), ("assigned_at", self.at(i))];
                self.link(table, row).await;
            }
        }
        all.credentials.push(credential);
        all.mcp_servers.push(mcp);
        all.skills.push(skill);
        self.version("skill", skill, i).await;
        if i > 0 {
            self.version("skill", all.skills[0], i).await;
        }
    }
}

/// A count as a column value.
fn number(n: usize) -> i64 {
    i64::try_from(n).unwrap()
}
