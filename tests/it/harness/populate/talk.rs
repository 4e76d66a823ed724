//! Channels, contacts, conversations, turns, messages, and what agents ask.

use serde_json::{Value as Json, json};

use super::{Filler, Population, number, text};
use crate::harness::is_postgres;

impl Filler<'_> {
    pub(super) async fn channel(&self, all: &mut Population, i: usize) {
        let n = self.fresh();
        let transport = ["WEBHOOK", "TELEGRAM", "CODE_HOST", "CALENDAR", "DRIVE", "EMAIL"][i % 6];
        let row = vec![
            ("agent_id", Self::agent_of(all, i)),
            ("transport", text(transport)),
            ("name", text(format!("channel {n}"))),
            ("self_ids", json!(["7"]).into()),
            ("warnings", json!(["The bot sees only commands."]).into()),
            ("email_authserv_id", (transport == "EMAIL").then(|| "mx.example".to_owned()).into()),
            ("mention_off", json!(["a", "b"][..i % 2]).into()),
            ("inbound_slug", text(format!("slug{n:08}"))),
            (
                "webhook_outbound_url",
                // Not public: a test of the channel is refused without a call.
                (transport == "WEBHOOK").then(|| "https://192.0.2.1".to_owned()).into(),
            ),
            ("webhook_actor_paths", json!(["sender.id"]).into()),
            ("code_host_host", (transport == "CODE_HOST").then(|| "gitlab.example".to_owned()).into()),
            ("code_host_repos", json!(["owner/name"]).into()),
            ("code_host_oauth_user_login", (transport == "CODE_HOST").then(|| "octo".to_owned()).into()),
            ("calendar_url", (transport == "CALENDAR").then(|| "https://dav.example/".to_owned()).into()),
            ("calendar_user", (transport == "CALENDAR").then(|| "rota".to_owned()).into()),
            ("calendar_whitelist", json!([{ "id": "c1", "name": "Rota" }]).into()),
            ("drive_folder_id", (transport == "DRIVE").then(|| format!("folder {n}")).into()),
            ("drive_folder_name", (transport == "DRIVE").then(|| "Reports".to_owned()).into()),
            ("drive_url", (transport == "DRIVE").then(|| "https://dav.example".to_owned()).into()),
            ("drive_user", (transport == "DRIVE").then(|| "agent".to_owned()).into()),
            ("alert_recipient_user_ids", json!([all.members[i]]).into()),
            ("is_active", (i % 5 != 4).into()),
            ("inactive_reason", (i % 5 == 4).then(|| "MANUAL".to_owned()).into()),
            ("created_at", self.at(i)),
            ("updated_at", self.at(i)),
            ("last_activity_at", self.maybe_at(i, i % 2 == 1)),
        ];
        let channel = self.insert("channels", row).await;
        all.channels.push(channel);
        self.of_channel(all, i, n, channel).await;
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

    /// The rows that belong to a channel.
    async fn of_channel(&self, all: &Population, i: usize, n: u32, channel: i64) {
        for origin in 0..=i % 3 {
            let row = vec![
                ("channel_id", channel.into()),
                ("origin_id", text(format!("origin-{origin}"))),
                ("created_at", self.at(i)),
            ];
            self.link("channel_whitelist", row).await;
        }
        let row = vec![
            ("channel_id", channel.into()),
            ("origin_id", text(format!("stranger {n}"))),
            ("origin_name", text("Ünbekannt")),
            ("reason", text("NOT_WHITELISTED")),
            ("count", 3_i64.into()),
            ("first_at", self.at(i)),
            ("last_at", self.at(i)),
        ];
        self.link("channel_refusals", row).await;
        let row = vec![
            ("channel_id", channel.into()),
            ("vendor_id", text("5")),
            ("subject", text("Ünlesbar")),
            ("reason", text("Its parts are nested more than 10 deep.")),
            ("skipped_at", self.at(i)),
        ];
        self.link("channel_skips", row).await;
        let row = vec![
            ("channel_id", channel.into()),
            ("holder", text("unknown")),
            ("until", self.at(i)),
            ("cursor", text("7")),
            ("cause", text("Telegram can't be reached.")),
            ("linked_at", self.at(i)),
        ];
        self.link("channel_listeners", row).await;
        let row = vec![
            ("channel_id", channel.into()),
            ("user_id", all.members[i].into()),
            ("origin_id", text(format!("member {n}"))),
            ("origin_name", text("Ünbekannt")),
            ("target", text("7")),
            ("created_at", self.at(i)),
        ];
        self.link("channel_links", row).await;
        let row = vec![
            ("channel_id", channel.into()),
            ("user_id", all.members[i].into()),
            ("code_hash", vec![7_u8; 32].into()),
            ("tries", 1_i64.into()),
            ("expires_at", self.at(i)),
        ];
        self.link("channel_link_codes", row).await;
    }

    pub(super) async fn conversation(&self, all: &mut Population, i: usize) {
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
    pub(super) async fn turns(&self, all: &mut Population, i: usize, conversation: i64) {
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

    pub(super) async fn message(&self, all: &mut Population, i: usize, conversation: i64, seq: i64) -> i64 {
        let external = seq == 1 && i % 3 != 2;
        let row = vec![
            ("conversation_id", conversation.into()),
            ("seq", seq.into()),
            // The second message belongs to the turn that has ended.
            ("turn_id", [1, 2].contains(&seq).then(|| all.turns[2 * i + seq as usize - 1]).into()),
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
        if external {
            self.delivery(all, i, conversation, message).await;
        }
        message
    }

    async fn delivery(&self, all: &Population, i: usize, conversation: i64, message: i64) {
        let row = vec![
            ("channel_id", all.channels[i].into()),
            ("conversation_id", conversation.into()),
            ("message_id", message.into()),
            ("part", 1_i64.into()),
            ("status", text("FAILED")),
            ("text", text("A part")),
            ("plain", text("A part")),
            ("attempts", 8_i64.into()),
            ("available_at", self.at(i)),
            ("code", text("gave_up")),
            ("error", text("No answer.")),
            ("created_at", self.at(i)),
        ];
        self.insert("deliveries", row).await;
    }

    /// Adds a message to the search index (`migrations/README.md`).
    pub(super) async fn index(&self, message: i64, conversation: i64, seq: i64) {
        let sql = "SELECT agent_id FROM conversations WHERE id = $1";
        let agent: i64 = self.app.one(sql, vec![conversation.into()]).await;
        let places = [format!("#o{}", self.org), format!("#a{agent}"), format!("#{conversation}")];
        // The words that laws search for: among messages, and among everything.
        let words = ["message".to_owned(), "agent".to_owned()];
        let tokens: Vec<String> = words.into_iter().chain(places).collect();
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

    pub(super) async fn approval(&self, all: &mut Population, i: usize) {
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
            ("decided_by_name", decided.then(|| "someone".to_owned()).into()),
            ("decided_by_kind", decided.then(|| "USER".to_owned()).into()),
            ("decided_via", decided.then(|| "REST".to_owned()).into()),
            ("resolved_at", self.maybe_at(i, decided)),
            ("created_at", self.at(i)),
            ("updated_at", self.at(i)),
        ];
        let approval = self.insert("approvals", row).await;
        all.approvals.push(approval);
        let row = vec![
            ("approval_id", approval.into()),
            ("channel_id", all.channels[i].into()),
            ("user_id", all.members[i].into()),
            ("target", text("7")),
            ("state", text("CLOSED")),
            ("digest", text("0123456789abcdef")),
            ("vendor_id", text("7:1")),
            ("attempts", 0_i64.into()),
            ("available_at", self.at(i)),
            ("created_at", self.at(i)),
        ];
        self.insert("approval_asks", row).await;
    }
}
