//! Whether the agent may connect to a host: those that are listed, and those that a person has just allowed.

use http::StatusCode;
use muster_protocol::plan::Crossing;
use serde_json::json;
use tokio::time::timeout;

use crate::{
    answers::{Answer, refusal},
    bounds,
    outside::{Asking, Verdict},
    rules::{self, NETWORK_IS_OFF, NETWORK_KIND},
    shared::Shared,
};

/// The host's name, if the agent may connect to it. Otherwise the answer says why not, and it is counted.
pub async fn permitted(shared: &Shared, host: &str, port: u16) -> Result<String, Box<Answer>> {
    let judged = match rules::name(host) {
        Some(name) => judge(shared, &name, port).await.map(|()| name),
        None => Err("Connections go to names, and never to addresses in digits.".to_owned()),
    };
    judged.map_err(|reason| {
        shared.refusals.count(host, port, &reason);
        Box::new(refusal(StatusCode::FORBIDDEN, &reason))
    })
}

async fn judge(shared: &Shared, host: &str, port: u16) -> Result<(), String> {
    if shared.rules.borrow().as_ref().is_some_and(|rules| rules.is_disabled(NETWORK_KIND)) {
        return Err(NETWORK_IS_OFF.to_owned());
    }
    if shared.is_listed(host, port) || shared.crossings.has(host, port) {
        return Ok(());
    }
    let crossing = Crossing {
        tool: "network".to_owned(),
        tool_kind: NETWORK_KIND.to_owned(),
        mcp_server_id: None,
        input: json!({ "host": host, "port": port }),
    };
    let title = format!("Connect to {host}, port {port}");
    let not_listed = format!(
        "{host}, port {port}, is not on the organization's list of hosts that agents may reach. Somebody with the \
         permission network.edit can allow it."
    );
    match shared.outside.judge(Asking { crossing, conversation_id: None, title }).await {
        Verdict::Approved => {
            shared.crossings.keep(host, port);
            Ok(())
        }
        // Rules allow what is listed, and nothing else: the list must be on its way.
        Verdict::Allowed => {
            let mut rules = shared.rules.clone();
            let listed = rules.wait_for(|rules| rules.as_ref().is_some_and(|rules| rules.allows(host, port)));
            let arrived = timeout(bounds::NETWORK_WAIT, listed).await.is_ok_and(|listed| listed.is_ok());
            if arrived { Ok(()) } else { Err(not_listed) }
        }
        Verdict::Refused { reason } => Err(format!("{not_listed} {reason}")),
        Verdict::Asked => Err(format!(
            "{not_listed} A person was asked, and has not answered yet. End your turn: the answer comes as the next \
             message. Don't try again before."
        )),
    }
}
