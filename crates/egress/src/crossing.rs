//! Whether the agent may connect to a host: those that are listed, and those that a person has just allowed.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use http::StatusCode;
use muster_protocol::plan::Crossing;
use serde_json::json;
use tokio::time::timeout;

use crate::{
    answers::{Answer, refusal},
    outside::{Asking, Verdict},
    rules::{self, NETWORK_IS_OFF, NETWORK_KIND},
    shared::Shared,
};

/// How long what a person has allowed once stays allowed: tools connect many times.
const ALLOWED: Duration = Duration::from_secs(600);
/// How long the list may take to arrive after the control plane has said that a host is on it.
const LISTED: Duration = Duration::from_secs(5);
/// How many hosts are remembered.
const MOST: usize = 256;

/// Hosts that people have allowed, without listing them.
#[derive(Debug, Default)]
pub struct Crossings {
    approved: Mutex<BTreeMap<(String, u16), Instant>>,
}

impl Crossings {
    /// Whether a person has allowed this host a short while ago.
    pub fn has(&self, host: &str, port: u16) -> bool {
        let mut approved = self.approved.lock().unwrap_or_else(PoisonError::into_inner);
        approved.retain(|_, since| since.elapsed() < ALLOWED);
        approved.contains_key(&(host.to_owned(), port))
    }

    fn keep(&self, host: &str, port: u16) {
        let mut approved = self.approved.lock().unwrap_or_else(PoisonError::into_inner);
        if approved.len() < MOST {
            approved.insert((host.to_owned(), port), Instant::now());
        }
    }
}

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
            let arrived = timeout(LISTED, listed).await.is_ok_and(|listed| listed.is_ok());
            if arrived { Ok(()) } else { Err(not_listed) }
        }
        Verdict::Refused { reason } => Err(format!("{not_listed} {reason}")),
        Verdict::Asked => Err(format!(
            "{not_listed} A person was asked, and has not answered yet. End your turn: the answer comes as the next \
             message. Don't try again before."
        )),
    }
}
