//! A host without a gateway: reports what a host would, and asks what it would ask.

use muster::{
    base::{
        ids::{AgentId, ServerId, TurnId},
        problem::Result,
        time::Timestamp,
    },
    core::store::Tx,
    domain::{
        agents::reporter::Reporter,
        approvals,
        conversations::{self, turns},
        hosts, launch,
    },
};
use muster_protocol::{
    event::{Asked, Content, EndReason, Message, Request, TurnEnd, TurnOutcome, Usage},
    plan::{LaunchPlan, TurnPlan},
};
use serde_json::{Value, json};

use super::TestApp;

/// A host, as far as one launch of one agent is concerned.
#[derive(Clone, Copy)]
pub struct Host<'a> {
    pub app: &'a TestApp,
    pub agent: i64,
    pub generation: i64,
}

impl TestApp {
    /// An agent that runs, and its host.
    pub async fn running_agent(&self) -> Host<'_> {
        let host = self.starting_agent().await;
        host.started().await;
        host
    }

    /// An agent that is being launched, and its host.
    pub async fn starting_agent(&self) -> Host<'_> {
        let host = Host { app: self, agent: self.agent().await, generation: 0 };
        host.launched().await
    }

    /// The state of a turn.
    pub async fn turn_is(&self, turn: i64) -> String {
        self.one("SELECT state FROM turns WHERE id = $1", vec![turn.into()]).await
    }
}

impl Host<'_> {
    pub async fn launched(self) -> Self {
        self.act("start").await;
        Self { generation: self.generation + 1, ..self }
    }

    /// Performs a person's action on the agent: start, stop, pause, resume.
    pub async fn act(&self, action: &str) {
        let path = format!("/v1/org/{}/agent/{}/{action}", self.app.org, self.agent);
        if action == "start" {
            self.app.operator.post(&path, Value::Null).await.expect(200);
            return;
        }
        let query = format!("mutation($o: Id!, $i: Id!) {{ {action}Agent(orgId: $o, id: $i) {{ id }} }}");
        self.app.operator.gql(&query, json!({ "o": self.app.org, "i": self.agent })).await.data();
    }

    async fn reporter(&self) -> Reporter {
        let sql = "SELECT server_id FROM agents WHERE organization_id = $1 AND id = $2";
        let server = ServerId(self.app.one(sql, vec![self.app.org.into(), self.agent.into()]).await);
        let at = Timestamp(self.app.clock.now().0);
        Reporter { agent: AgentId(self.agent), server, generation: self.generation, at }
    }

    /// Reports something, in a transaction of its own.
    pub async fn tell(&self, report: impl AsyncFnOnce(&Tx, &Reporter) -> Result<()>) -> Result<()> {
        let from = self.reporter().await;
        let tx = self.app.scope().begin().await?;
        report(&tx, &from).await?;
        tx.commit().await
    }

    pub async fn started(&self) {
        let told = self.tell(async |tx, from| {
            launch::reports::started(tx, from, "4711".to_owned(), None, Some("model-9".to_owned())).await
        });
        told.await.unwrap();
    }

    pub async fn ended(&self, reason: EndReason) {
        let told =
            self.tell(async |tx, from| launch::reports::ended(tx, from, reason, Some(3), None, None).await);
        told.await.unwrap();
    }

    pub async fn plan(&self, turn: i64) -> Result<TurnPlan> {
        hosts::turn_plan(&self.app.scope(), AgentId(self.agent), self.generation, TurnId(turn)).await
    }

    pub async fn launch_plan(&self) -> Result<LaunchPlan> {
        launch::plans::launch(&self.app.scope(), AgentId(self.agent), self.generation).await
    }

    pub async fn turn_started(&self, turn: i64) {
        let told = self.tell(async |tx, from| turns::reports::turn_started(tx, from, TurnId(turn)).await);
        told.await.unwrap();
    }

    /// Takes a turn as far as the agent has it.
    pub async fn takes(&self, turn: i64) -> TurnPlan {
        let plan = self.plan(turn).await.unwrap();
        self.turn_started(turn).await;
        plan
    }

    pub async fn turn_ended(&self, turn: i64, outcome: TurnOutcome) {
        self.ends(TurnEnd {
            turn_id: turn,
            outcome,
            error: (outcome == TurnOutcome::Failed).then(|| "it broke".to_owned()),
            model: None,
            usage: Usage::default(),
            context_tokens: None,
        })
        .await;
    }

    pub async fn ends(&self, end: TurnEnd) {
        self.tell(async |tx, from| turns::reports::turn_ended(tx, from, end).await).await.unwrap();
    }

    pub async fn says(
        &self,
        conversation: i64,
        turn: Option<i64>,
        key: &str,
        content: Content,
    ) -> Result<()> {
        let message = Message { conversation_id: conversation, turn_id: turn, key: key.to_owned(), content };
        self.tell(async |tx, from| conversations::reports::messages(tx, vec![(*from, message)]).await).await
    }

    pub async fn asks(
        &self,
        conversation: i64,
        turn: Option<i64>,
        request: &str,
        asked: Asked,
    ) -> Result<()> {
        let request =
            Request { request: request.to_owned(), conversation_id: conversation, turn_id: turn, asked };
        self.tell(async |tx, from| approvals::reports::asked(tx, from, request).await).await
    }

    /// The commands for the agent so far.
    pub async fn commands(&self) -> Vec<Value> {
        let sql = format!(
            "SELECT CAST(payload AS TEXT) FROM commands WHERE agent_id = {} AND generation = {} ORDER BY id",
            self.agent, self.generation
        );
        let payloads: Vec<String> = self.app.column(&sql).await;
        payloads.iter().map(|payload| serde_json::from_str(payload).unwrap()).collect()
    }

    /// The turns that it was given so far.
    pub async fn given(&self) -> Vec<i64> {
        let commands = self.commands().await;
        commands
            .iter()
            .filter(|command| command["kind"] == "TURN")
            .filter_map(|command| command["turn_id"].as_i64())
            .collect()
    }
}
