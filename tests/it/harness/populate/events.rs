//! Event endpoints, and events for them.

use serde_json::json;

use super::{Filler, Population, number, text};

impl Filler<'_> {
    /// An endpoint with two events. The third endpoint is off.
    pub(super) async fn events(&self, all: &mut Population, i: usize) {
        let (n, some, is_off) = (self.fresh(), i % 2 == 1, i % 4 == 2);
        let row = vec![
            ("name", text(format!("endpoint {n}"))),
            ("url", text(format!("https://hook.example/{n}"))),
            ("types", json!(["agent.failed", "turn.ended"]).into()),
            ("secret_sealed", b"sealed".to_vec().into()),
            ("previous_secret_sealed", some.then(|| b"sealed".to_vec()).into()),
            ("previous_until", self.maybe_at(86_400_000, some)),
            ("is_active", (!is_off).into()),
            ("inactive_reason", is_off.then(|| "GONE".to_owned()).into()),
            ("inactive_detail", is_off.then(|| "The receiver answered with status 410.".to_owned()).into()),
            ("failing_since", self.maybe_at(i, some)),
            ("created_by", self.author.user.filter(|_| some).into()),
            ("created_at", self.at(i)),
            ("updated_at", self.at(i)),
        ];
        let endpoint = self.insert("event_endpoints", row).await;
        all.event_endpoints.push(endpoint);
        for status in [if is_off { "WAITING" } else { "PENDING" }, ["SENT", "FAILED"][i % 2]] {
            let row = vec![
                ("endpoint_id", endpoint.into()),
                ("type", text("agent.failed")),
                ("subject", text(format!("agent:{}", all.agents[i]))),
                ("data", json!({ "organization_id": self.org, "agent_id": all.agents[i] }).into()),
                ("status", text(status)),
                ("attempts", number(i).into()),
                ("available_at", self.at(i)),
                (
                    "error",
                    (status == "FAILED").then(|| "The receiver answered with status 422.".to_owned()).into(),
                ),
                ("created_at", self.at(i)),
                ("sent_at", self.maybe_at(i, status == "SENT")),
            ];
            all.event_deliveries.push(self.insert("event_deliveries", row).await);
        }
    }
}
