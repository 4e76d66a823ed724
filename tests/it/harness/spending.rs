//! Agents' spending, and its limits.

use std::{
    sync::atomic::{AtomicI64, Ordering::Relaxed},
    time::Duration,
};

use muster::{
    base::{
        ids::{AgentId, LeaseId},
        problem::Result,
    },
    domain::{launch::reports, spending},
};
use muster_protocol::{
    event::{RefusedReason, TurnOutcome, Usage},
    plan::PlanResponse,
    spending::{Lease, LeaseAsked, ModelCall},
};
use serde_json::{Value, json};

use super::{Host, TestApp};

pub const MODEL: &str = "claude-sonnet-4-5";
/// The minimum reserved for a call of this model: 32,000 input and 8,000 output tokens.
pub const CALL: i64 = 216_000;

/// A question for a lease, unlike all others.
pub fn question(model: &str) -> LeaseAsked {
    static QUESTIONS: AtomicI64 = AtomicI64::new(0);
    let question = QUESTIONS.fetch_add(1, Relaxed);
    LeaseAsked { model: model.to_owned(), question, finished: Vec::new() }
}

impl Host<'_> {
    pub async fn wants(&self, asked: &LeaseAsked) -> Result<PlanResponse> {
        spending::grant_lease(&self.app.scope(), AgentId(self.agent), self.generation, asked).await
    }

    pub async fn asks_for_lease(&self, model: &str) -> Result<PlanResponse> {
        self.wants(&question(model)).await
    }

    pub async fn leases(&self) -> Option<Lease> {
        match self.asks_for_lease(MODEL).await.unwrap() {
            PlanResponse::Lease(lease) => Some(lease),
            PlanResponse::Spent { .. } => None,
            other => panic!("{other:?}"),
        }
    }

    pub async fn returns(&self, lease: i64) {
        let told = self.tell(async |tx, from| spending::return_lease(tx, from, LeaseId(lease)).await);
        told.await.unwrap();
    }

    pub async fn calls(&self, call: ModelCall) {
        self.tell(async |tx, from| spending::record_call(tx, from, call).await).await.unwrap();
    }

    pub fn call(&self, turn: Option<i64>, input: i64, output: i64) -> ModelCall {
        ModelCall {
            turn_id: turn,
            provider: "anthropic".to_owned(),
            model: MODEL.to_owned(),
            started_at: self.app.clock.now().0,
            millis: 1200,
            status: Some(200),
            usage: Usage { input: Some(input), output: Some(output), ..Usage::default() },
            cache_hour: None,
            lease_id: None,
        }
    }

    /// The agent's call uses up what is left of a budget, and its next one is refused.
    pub async fn runs_out(&self) {
        self.calls(self.call(None, 100_000, 0)).await;
        assert!(self.leases().await.is_none());
    }

    pub async fn is_limited(&self, credential: Option<i64>, seconds: u64) {
        let until = self.app.clock.now().plus(Duration::from_secs(seconds));
        let credential = credential.map(muster::base::ids::ModelCredentialId);
        let told = self.tell(async |tx, from| {
            spending::usage::record_refusal(tx, from, credential, (MODEL, "slow down"), Some(until)).await
        });
        told.await.unwrap();
    }

    /// The same, and the agent gives up this turn, which waits.
    pub async fn gives_up(&self, turn: i64, credential: Option<i64>, seconds: u64) {
        self.is_limited(credential, seconds).await;
        self.turn_ended(turn, TurnOutcome::Failed).await;
        assert_eq!(self.app.turn_is(turn).await, "WAITING_LIMIT");
    }

    /// The only turn was sent this often, and runs.
    pub async fn runs(&self, turn: i64, times: usize) {
        let is = (self.given().await, self.app.turn_is(turn).await);
        assert_eq!(is, (vec![turn; times], "RUNNING".to_owned()));
    }

    /// Refuses the command for the turn that was sent last.
    pub async fn refuses(&self, reason: RefusedReason) {
        let command: i64 = self.app.one("SELECT MAX(id) FROM commands WHERE kind = 'TURN'", vec![]).await;
        self.tell(async |tx, from| reports::refused(tx, from, command, reason).await).await.unwrap();
    }

    /// A turn that was given up at a provider's limit, and that is sent again when that has passed.
    pub async fn is_sent_again(&self) -> i64 {
        let (_, turn) = self.works().await;
        self.gives_up(turn, None, 60).await;
        self.app.clock.advance(Duration::from_secs(61));
        assert_eq!(spending::release_due(&self.app.core).await.unwrap(), 1);
        self.runs(turn, 2).await;
        turn
    }

    /// A new conversation with a turn that the agent works on. Returns both.
    pub async fn works(&self) -> (i64, i64) {
        let conversation = self.app.conversation(self.agent).await;
        let turn = self.app.posts(conversation).await;
        self.takes(turn).await;
        (conversation, turn)
    }

    pub async fn agent_shows(&self, fields: &str) -> Value {
        let query = format!("query($o: Id!, $a: Id!) {{ agent(orgId: $o, id: $a) {{ {fields} }} }}");
        let shown = self.app.viewer.gql(&query, json!({ "o": self.app.org, "a": self.agent })).await;
        shown.data()["agent"].clone()
    }
}

impl TestApp {
    /// A service whose organization may spend this much in a month.
    pub async fn with_budget(micro: i64) -> Self {
        let app = Self::start().await;
        app.sets(json!({ "monthlyBudgetMicro": micro })).await;
        app
    }

    pub async fn posts(&self, conversation: i64) -> i64 {
        let query = "mutation($o: Id!, $c: Id!) { postMessage(orgId: $o, conversationId: $c, input: { text: \"please\" }) { turn { id } } }";
        let posted = self.operator.gql(query, json!({ "o": self.org, "c": conversation })).await.data();
        posted["postMessage"]["turn"]["id"].as_i64().unwrap()
    }

    pub async fn sets(&self, input: Value) {
        let query = "mutation($o: Id!, $i: UpdateOrganizationInput!) { updateOrganization(orgId: $o, input: $i) { id } }";
        self.owner.gql(query, json!({ "o": self.org, "i": input })).await.data();
    }

    pub async fn sets_agent(&self, agent: i64, input: Value) {
        let query = "mutation($o: Id!, $a: Id!, $i: UpdateAgentInput!) { updateAgent(orgId: $o, id: $a, input: $i) { id } }";
        self.owner.gql(query, json!({ "o": self.org, "a": agent, "i": input })).await.data();
    }

    pub async fn allows(&self, input: Value) -> Value {
        let query = "mutation($o: Id!, $i: AllowSpendingInput!) { allowSpending(orgId: $o, input: $i) { spending { allowedMicro } } }";
        self.admin.gql(query, json!({ "o": self.org, "i": input })).await.data()
    }

    /// Cancels a turn, and returns its state.
    pub async fn cancels(&self, turn: i64) -> Value {
        let query = "mutation($o: Id!, $t: Id!) { cancelTurn(orgId: $o, id: $t) { state } }";
        let asked = self.operator.gql(query, json!({ "o": self.org, "t": turn })).await;
        asked.data()["cancelTurn"]["state"].clone()
    }

    /// Allowing this is refused with this code.
    pub async fn may_not_allow(&self, input: Value, code: &str) {
        let query =
            "mutation($o: Id!, $i: AllowSpendingInput!) { allowSpending(orgId: $o, input: $i) { id } }";
        let refused = self.admin.gql(query, json!({ "o": self.org, "i": input })).await;
        assert_eq!(refused.code(), code, "{input}");
    }

    /// The leased and the spent amount.
    pub async fn leased(&self) -> (i64, i64) {
        let of = |column: &str| format!("SELECT {column} FROM organization_months");
        (self.one(&of("leased_micro"), vec![]).await, self.one(&of("cost_micro"), vec![]).await)
    }

    pub async fn guards(&self) -> Vec<i64> {
        self.column("SELECT id FROM approvals WHERE kind = 'COST_GUARD' ORDER BY id").await
    }

    /// The states of the same.
    pub async fn guards_are(&self) -> Vec<String> {
        self.column("SELECT status FROM approvals WHERE kind = 'COST_GUARD' ORDER BY id").await
    }
}
