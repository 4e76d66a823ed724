//! Servers, images, agents and their launches, versions of agents and skills.

use sea_orm::Value;
use serde_json::json;

use super::{Filler, Population, number, text};

impl Filler<'_> {
    pub(super) async fn home(&self, all: &mut Population, i: usize) {
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
            ("host_token_hash", format!("host {n}").into_bytes().into()),
            ("machine_id", text(format!("machine-{n}"))),
            ("provisioned_by_kind", text("USER")),
            ("provisioned_by_id", self.author.user.into()),
            ("provisioned_by_name", text(format!("Maker {n}"))),
            ("joins", 1_i64.into()),
            ("joined_from", some.then(|| "203.0.113.7".to_owned()).into()),
            ("provisioned_at", self.at(i)),
            ("host_confirmed_at", self.maybe_at(i, i != 3)),
            ("refused_code", some.then(|| "RESTORED".to_owned()).into()),
            ("refused_reason", some.then(|| "It has 5, but 3 are known.".to_owned()).into()),
            ("refused_at", self.maybe_at(i, some)),
            ("created_by", self.author.user.into()),
            ("created_at", self.at(i)),
            ("updated_at", self.at(i)),
        ];
        all.servers.push(self.insert("servers", row).await);
        let row = vec![
            ("server_id", all.servers[0].into()),
            ("period_at", (self.app.clock.now().0 - 300_000 * (1 + number(i))).into()),
            ("cpu_avg", some.then_some(12.5_f64).into()),
            ("cpu_max", some.then_some(25.0_f64).into()),
        ];
        self.link("server_loads", row).await;
        let row = vec![
            ("name", text(format!("image {n}"))),
            ("reference", text(format!("registry.example/agent:{n}"))),
            ("default_model", some.then(|| "model-1".to_owned()).into()),
            ("created_at", self.at(i)),
            ("updated_at", self.at(i)),
        ];
        all.images.push(self.insert("images", row).await);
    }

    pub(super) async fn agent(&self, all: &mut Population, i: usize) {
        let n = self.fresh();
        let some = i % 2 == 1;
        let row = vec![
            ("server_id", all.servers[i].into()),
            ("image_id", all.images[i].into()),
            ("name", text(format!("agent {n}"))),
            ("description", some.then(|| format!("does <b>{n}</b> & more \u{2028}\u{7}")).into()),
            ("instructions", some.then(|| format!("Promise <b>{n}</b>\n& no more")).into()),
            ("status", text(["STOPPED", "RUNNING", "ERROR"][i % 3])),
            ("status_reason", (i % 3 == 2).then(|| "EXITED".to_owned()).into()),
            ("status_detail", (i % 3 == 2).then(|| "exit code 1".to_owned()).into()),
            ("launched_revision", (i % 3 == 1).then_some(1_i64).into()),
            ("started_at", self.maybe_at(0, i % 3 == 1)),
            ("model_override", some.then(|| "model-2".to_owned()).into()),
            ("mode_override", some.then(|| "plan".to_owned()).into()),
            (
                "offered_modes",
                json!([{ "id": "act", "name": "Act", "description": null, "current": true }]).into(),
            ),
            ("effort_override", some.then(|| "HIGH".to_owned()).into()),
            ("thinking_enabled", some.into()),
            ("approval_categories", json!(["money", "\"quoted\""][..=i % 3 % 2]).into()),
            ("memory_mb_override", some.then_some(512_i64).into()),
            ("cpu_override", some.then_some(1.5_f64).into()),
            ("tokens_used", (9_007_199_254_740_993_i64 + i64::from(n)).into()),
            ("cost_micro", number(i).into()),
            ("usage_status", some.then(|| "ALLOWED".to_owned()).into()),
            ("sync_pending", some.into()),
            ("restart_reason", (i % 3 == 1).then(|| "Its credentials have changed.".to_owned()).into()),
            ("restart_policy", text(["ON_FAILURE", "ALWAYS", "NEVER"][i % 3])),
            ("restarts", number(i).into()),
            ("losses", number(i).into()),
            ("restart_at", self.maybe_at(i, i % 3 == 2)),
            ("avatar_version", some.then_some(3_i64).into()),
            ("created_by", self.author.user.into()),
            ("created_at", self.at(i)),
            ("updated_at", self.at(i)),
        ];
        let agent = self.insert("agents", row).await;
        all.agents.push(agent);
        self.version("agent", agent, i).await;
        self.launch(agent, i).await;
        let of = Self::agent_of(all, i);
        let backup = self.backup(all, of, i).await;
        all.backups.push(backup);
        if i > 0 {
            self.launch(all.agents[0], i).await;
            self.version("agent", all.agents[0], i).await;
        }
    }

    /// A backup of an agent: every third one failed.
    async fn backup(&self, all: &Population, agent: Value, i: usize) -> i64 {
        let (is_done, some) = (i % 3 != 2, i % 2 == 1);
        let row = vec![
            ("agent_id", agent),
            ("server_id", all.servers[i].into()),
            ("cause", text(["SCHEDULE", "PERSON"][i % 2])),
            ("state", text(if is_done { "DONE" } else { "FAILED" })),
            ("bytes", is_done.then(|| 1000 + number(i)).into()),
            ("sha256", is_done.then(|| format!("{i:064x}")).into()),
            ("error", (!is_done).then(|| "The host's disk is full.".to_owned()).into()),
            ("author_kind", text(["SYSTEM", "USER"][i % 2])),
            ("author_id", some.then_some(self.author.user).flatten().into()),
            ("author_name", text(format!("author {i}"))),
            ("created_at", self.at(i)),
            ("ended_at", self.maybe_at(i, true)),
            ("restore_state", (i % 4 == 1).then(|| "FAILED".to_owned()).into()),
            ("restore_error", (i % 4 == 1).then(|| "The file was changed.".to_owned()).into()),
            ("restored_at", self.maybe_at(i, i % 4 == 1)),
        ];
        self.insert("agent_backups", row).await
    }

    pub(super) async fn launch(&self, agent: i64, i: usize) {
        let some = i % 2 == 1;
        let row = vec![
            ("agent_id", agent.into()),
            ("generation", i64::from(self.fresh()).into()),
            ("revision", number(i).into()),
            ("started_by_kind", text(["USER", "SERVICE_TOKEN", "SYSTEM"][i % 3])),
            ("started_by_id", i.is_multiple_of(3).then_some(self.author.user).flatten().into()),
            ("started_by_name", text(format!("starter {i}"))),
            ("started_at", self.at(i)),
            ("up_at", self.maybe_at(i, some)),
            ("ended_at", self.maybe_at(i, !i.is_multiple_of(3))),
            ("reason", (i % 3 == 2).then(|| "EXITED".to_owned()).into()),
            ("detail", (!i.is_multiple_of(3)).then(|| format!("exit code {i}")).into()),
        ];
        self.insert("agent_launches", row).await;
    }

    /// Adds what an agent or a skill was at a time.
    pub(super) async fn version(&self, of: &'static str, id: i64, i: usize) {
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
}
