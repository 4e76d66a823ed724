//! Access to hosts: listed ones, and those that a person has just allowed.

use http::StatusCode;
use muster_protocol::plan::Crossing;
use serde_json::json;
use tokio::time::timeout;

use crate::{
    answers::{Answer, refusal},
    bounds,
    host_services::{CrossingDecision, CrossingRequest},
    rules::{self, NETWORK_IS_OFF, NETWORK_KIND, NETWORK_TOOL},
    shared::Shared,
};

/// The normalized host name, if the agent may connect to it. Otherwise counts the refusal and returns the response.
pub async fn require_access(shared: &Shared, host: &str, port: u16) -> Result<String, Box<Answer>> {
    let judged = match rules::name(host) {
        Some(name) => authorize_host(shared, &name, port).await.map(|()| name),
        None => Err("Connect to a host name: IP addresses are not allowed.".to_owned()),
    };
    judged.map_err(|reason| {
        shared.refusals.count(host, port, &reason);
        Box::new(refusal(StatusCode::FORBIDDEN, &reason))
    })
}

async fn authorize_host(shared: &Shared, host: &str, port: u16) -> Result<(), String> {
    if shared.rules.borrow().as_ref().is_some_and(|rules| rules.is_disabled(NETWORK_KIND)) {
        return Err(NETWORK_IS_OFF.to_owned());
    }
    if shared.is_listed(host, port) || shared.crossings.has(host, port) {
        return Ok(());
    }
    let crossing = Crossing {
        tool: NETWORK_TOOL.to_owned(),
        tool_kind: NETWORK_KIND.to_owned(),
        mcp_server_id: None,
        input: json!({ "host": host, "port": port }),
    };
    let title = format!("Connect to {host}, port {port}");
    let not_listed = format!(
        "{host}, port {port}, is not on the organization's list of hosts that agents may reach. A person with the \
         permission network.edit can allow it."
    );
    match shared.services.judge(CrossingRequest { crossing, conversation_id: None, title }).await {
        CrossingDecision::Approved => {
            shared.crossings.remember(host, port);
            Ok(())
        }
        // The rules allow listed hosts only, so the updated list must be on its way.
        CrossingDecision::Allowed => {
            let mut rules = shared.rules.clone();
            let listed = rules.wait_for(|rules| rules.as_ref().is_some_and(|rules| rules.allows(host, port)));
            let arrived = timeout(bounds::NETWORK_WAIT, listed).await.is_ok_and(|listed| listed.is_ok());
            if arrived { Ok(()) } else { Err(not_listed) }
        }
        CrossingDecision::Refused { reason } => Err(format!("{not_listed} {reason}")),
        CrossingDecision::Asked => Err(format!(
            "{not_listed} A person was asked, and has not answered yet. End your turn: the answer comes as the next \
             message. Don't try again before."
        )),
    }
}
