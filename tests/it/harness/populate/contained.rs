//! Model credentials, the network, and what was spent.

use super::{Filler, Population, number, text};

impl Filler<'_> {
    /// Model credentials, the network, and what was spent.
    pub(super) async fn contained(&self, all: &mut Population, i: usize) {
        let (n, some) = (self.fresh(), i % 2 == 1);
        let row = vec![
            ("name", text(format!("key {n}"))),
            ("provider", text(["anthropic", "openai"][i % 2])),
            ("base_url", some.then(|| "https://model.example/v1".to_owned()).into()),
            ("secret_sealed", some.then(|| b"sealed".to_vec()).into()),
            ("limited_until", self.maybe_at(i, some)),
            ("auth_failed_at", self.maybe_at(i, !some)),
            ("created_by", self.author.user.filter(|_| some).into()),
            ("created_at", self.at(i)),
            ("updated_at", self.at(i)),
        ];
        let credential = self.insert("model_credentials", row).await;
        all.model_credentials.push(credential);
        let row = vec![
            ("host", text(format!("h{n}.example"))),
            ("port", (443 + number(i)).into()),
            ("created_by", self.author.user.filter(|_| some).into()),
            ("created_by_name", text(format!("someone {i}"))),
            ("created_at", self.at(i)),
        ];
        all.allowed_hosts.push(self.insert("allowed_hosts", row).await);
        let agent = Self::agent_of(all, i);
        let row = vec![
            ("agent_id", agent.clone()),
            ("host", text(format!("r{n}.example"))),
            ("port", 443_i64.into()),
            ("reason", text("It is not on the list.")),
            ("count", (1 + number(i)).into()),
            ("last_at", self.at(i)),
        ];
        self.insert("refused_destinations", row).await;
        let row = vec![
            ("agent_id", all.agents[i].into()),
            ("kind", text(["MONEY", "TOKENS", "USAGE"][i % 3])),
            ("reason", text("Nothing is left.")),
            ("until_at", self.maybe_at(86_400_000, some)),
            ("model_credential_id", some.then_some(credential).into()),
            ("since", self.at(i)),
        ];
        self.link("agent_limits", row).await;
        let row = vec![
            ("turn_id", all.turns[2 * i].into()),
            ("kind", text(["BUDGET", "TOKENS", "STOP"][i % 3])),
            ("from_at", self.at(i + 1)),
            ("until_at", self.at(i)),
        ];
        self.link("turn_waits", row).await;
        let row = vec![
            ("agent_id", agent.clone()),
            ("turn_id", all.turns[2 * i].into()),
            ("model_credential_id", some.then_some(credential).into()),
            ("provider", text("anthropic")),
            ("model", text("model-1")),
            ("status", some.then_some(200_i64).into()),
            ("started_at", self.at(i)),
            ("millis", number(i).into()),
            ("input_tokens", some.then_some(10_i64).into()),
            ("cost_micro", some.then_some(30_i64).into()),
        ];
        self.insert("model_calls", row).await;
        let row = vec![
            ("agent_id", agent),
            ("day", text(format!("2026-05-{:02}", i % 28 + 1))),
            ("provider", text("anthropic")),
            ("model", text(format!("model-{n}"))),
            ("calls", (1 + number(i)).into()),
            ("cost_micro", number(i).into()),
        ];
        self.insert("model_days", row).await;
    }
}
