//! Credentials, MCP servers, skills, and who may use them.

use serde_json::json;

use super::{Filler, Population, number, text};

impl Filler<'_> {
    pub(super) async fn tools(&self, all: &mut Population, i: usize) {
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
        row.push(("workspace", text(["NONE", "READ"][i % 2])));
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
                let mut row =
                    vec![(column, id.into()), ("agent_id", (*agent).into()), ("assigned_at", self.at(i))];
                if table == "mcp_server_agents" {
                    row.push(("state", text(["RUNNING", "FAILED"][i % 2])));
                    row.push(("launch_generation", number(1).into()));
                    row.push(("reported_at", self.at(i)));
                    row.push(("error", (i % 2 == 1).then(|| "It has ended.".to_owned()).into()));
                    row.push(("stderr", (i % 2 == 1).then(|| "No such file".to_owned()).into()));
                    row.push(("tools", json!(["echo"]).into()));
                    row.push(("test_asked_at", self.at(i)));
                    row.push(("tested_at", self.at(i)));
                    row.push(("test_error", (i % 2 == 1).then(|| "It did not start.".to_owned()).into()));
                    row.push(("protocol", i.is_multiple_of(2).then(|| "2025-06-18".to_owned()).into()));
                    row.push(("program", i.is_multiple_of(2).then(|| "everything 1".to_owned()).into()));
                }
                self.link(table, row).await;
            }
        }
        for name in ["echo", "sum"] {
            let definition = |words: &str| json!({ "name": name, "description": words });
            let row = vec![
                ("mcp_server_id", mcp.into()),
                ("name", text(name)),
                ("definition", definition("It works.").into()),
                ("digest", text(format!("{name}-1"))),
                ("new_definition", (name == "echo").then(|| definition("It works well.")).into()),
                ("new_digest", (name == "echo").then(|| "echo-2".to_owned()).into()),
                ("risk", (i % 2 == 1).then_some(30_i64).into()),
                ("known_since", self.at(i)),
            ];
            self.link("mcp_server_tools", row).await;
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
