//! Actions at the vendor of a conversation's channel, as tools of Muster's own MCP server. The control plane offers and
//! performs them. Each call is judged before, like every crossing.

use std::time::{Duration, Instant};

use base64::{Engine, prelude::BASE64_STANDARD};
use muster_egress::{ASKED, CrossingDecision, CrossingRequest, HostServices};
use muster_protocol::plan::{
    Action, ActionCall, ActionOutcome, Crossing, MCP_KIND, PlanRequest, PlanResponse, tool_of_action,
};
use serde_json::Value;

use crate::{
    acp::{is_too_long, not_judged},
    bounds::{NETWORK_WAIT, SOON},
    gate::Outlet,
};

impl Outlet {
    /// The actions that the agent may use in a conversation. `None`: the control plane can't be reached.
    pub async fn actions(&self, conversation_id: i64) -> Option<Vec<Action>> {
        match self.ask_within(PlanRequest::Actions { conversation_id }, SOON).await? {
            PlanResponse::Actions { actions } => Some(actions),
            _ => Some(Vec::new()),
        }
    }

    /// Performs an action. Returns the tool's answer, or its error.
    pub async fn act(&self, conversation_id: i64, name: &str, arguments: Value) -> Result<String, String> {
        if is_too_long(&arguments) {
            return Err(not_judged());
        }
        let begun = Instant::now();
        let tool = tool_of_action(name);
        let title = format!("Use {tool}");
        let (tool_kind, input) = (MCP_KIND.to_owned(), arguments.clone());
        let crossing = Crossing { tool, tool_kind, mcp_server_id: None, input };
        let asking = CrossingRequest { crossing, conversation_id: Some(conversation_id), title };
        match self.judge(asking).await {
            CrossingDecision::Allowed | CrossingDecision::Approved => {}
            CrossingDecision::Refused { reason } => return Err(format!("This was not done. {reason}")),
            CrossingDecision::Asked => return Err(ASKED.to_owned()),
        }
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(|error| error.to_string())?;
        // With a person's decision, shorter than the minute after which clients give up.
        let wait = Duration::from_secs(55).saturating_sub(begun.elapsed());
        let call = ActionCall {
            conversation_id,
            key: BASE64_STANDARD.encode(key),
            name: name.to_owned(),
            arguments,
            wait_ms: i64::try_from(wait.as_millis()).unwrap_or(i64::MAX),
        };
        describe(self.ask_within(PlanRequest::Act(call), wait + NETWORK_WAIT).await)
    }
}

/// The outcome in words.
fn describe(answer: Option<PlanResponse>) -> Result<String, String> {
    match answer {
        Some(PlanResponse::Acted(ActionOutcome::Done { vendor_id: None })) => Ok("Done.".to_owned()),
        Some(PlanResponse::Acted(ActionOutcome::Done { vendor_id: Some(id) })) => {
            Ok(format!("Done. Its id is {id}."))
        }
        Some(PlanResponse::Acted(ActionOutcome::Failed { reason })) => Err(format!("This failed. {reason}")),
        Some(PlanResponse::Acted(ActionOutcome::Queued { delivery_id })) => Ok(format!(
            "Queued, as delivery {delivery_id}. It is done as soon as possible. Don't repeat the call."
        )),
        Some(PlanResponse::Refused { reason }) => Err(format!("This was not done. {reason}")),
        Some(_) => Err("The control plane's answer is invalid.".to_owned()),
        None => Err("The control plane did not answer, so this may have been done.".to_owned()),
    }
}
