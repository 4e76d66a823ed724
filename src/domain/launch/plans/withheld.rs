//! Withholds plans with secrets from unconfirmed hosts.
//!
//! A host that is not confirmed gets no plan that holds a secret, not even a part of it: its agent fails at once, and
//! starts when a person confirms the host. Agents without secrets run there as on any host.
//!
//! Whether a host is confirmed is read under the agent's lock. A confirmation locks the agents before it starts them,
//! so it is either seen here or finds the agent waiting.

use muster_protocol::{
    Command,
    plan::{LaunchPlan, McpTransport},
};
use sea_orm::{ColumnTrait, QueryFilter, QueryOrder, QuerySelect};
use serde_json::json;

use super::{
    super::{failing::fail, reports, running::cancel_start},
    build_plan,
};
use crate::{
    base::{
        enums::{AgentStatus, ChangeOp, RecordKind, StatusReason},
        ids::{AgentId, ServerId},
        problem::{Code, Problem, Result},
    },
    core::{access::Scope, audit, store::Tx},
    domain::{
        agents::{
            LockedAgent,
            entity::agents,
            rows::{find, not_deleted},
        },
        commands, servers,
    },
};

/// The detail of the agent's status, and the reason that the host gets.
const DETAIL: &str = "The agent needs secrets, and the host of its server is not confirmed. A person with server.edit and \
                      credential.edit can confirm it on the server's page; the agent then starts.";

/// Whether the plan holds a secret. The pattern names all fields, so that a new one doesn't compile until it is
/// considered.
pub(super) fn holds_secret(plan: &LaunchPlan) -> bool {
    let LaunchPlan {
        name: _,
        created_at: _,
        image: _,
        digest: _,
        revision: _,
        instructions: _,
        model: _,
        mode: _,
        model_access,
        environment,
        skills: _,
        mcp_servers,
        limits: _,
        profile: _,
        network: _,
        injected,
        files,
        disabled_tool_groups: _,
        prices: _,
        metered: _,
        stopped: _,
    } = plan;
    let of_servers = mcp_servers.iter().any(|server| match &server.transport {
        McpTransport::Stdio { command: _, args: _, environment: given }
        | McpTransport::Http { url: _, headers: given }
        | McpTransport::Sse { url: _, headers: given } => !given.is_empty(),
    });
    let is_injected = injected.iter().any(|injected| !injected.headers.is_empty());
    model_access.is_some() || !environment.is_empty() || !files.is_empty() || is_injected || of_servers
}

/// Whether the host of the agent's server may not have its plan. The caller has locked the agent.
pub(in super::super) async fn is_withheld(tx: &Tx, agent: &agents::Model) -> Result<bool> {
    Ok(servers::is_unconfirmed(tx, agent.server_id).await?
        && holds_secret(&Box::pin(build_plan(tx, agent)).await?))
}

/// Fails an agent at rest until its host is confirmed.
pub(in super::super) async fn fail_until_confirmed(tx: &Tx, agent: AgentId) -> Result<()> {
    fail(tx, agent, StatusReason::HostNotConfirmed, Some(DETAIL)).await
}

/// Ends the agent's launch, because its host may not have its plan. The agent waits until the host is confirmed; a
/// paused one stays down, because a launch would begin with the waiting turns.
pub(in super::super) async fn withhold(tx: &Tx, agent: &agents::Model) -> Result<()> {
    let standing = LockedAgent::from_row(agent);
    commands::expire_of_agent(tx, agent.id).await?;
    commands::enqueue(tx, standing.host(), &Command::Stop);
    fail_until_confirmed(tx, agent.id).await?;
    reports::settle_launches(tx, &standing, standing.generation, "its host is not confirmed").await?;
    let mut status = AgentStatus::Error;
    if agent.status == AgentStatus::Paused
        && let Some(waiting) = find(tx, agent.id).await?
    {
        cancel_start(tx, waiting).await?;
        status = AgentStatus::Stopped;
    }
    let changes = json!({
        "status": audit::from_to(agent.status, status),
        "status_reason": StatusReason::HostNotConfirmed,
    });
    let (op, kind) = (ChangeOp::Updated, RecordKind::Agent);
    audit::record(tx, audit::Entry { operation: "withholdSecrets", op, kind, id: agent.id.0, changes });
    Ok(())
}

/// Ends the launches on this server whose plans its new host may not have. The previous host ran them.
pub async fn withhold_all(scope: &Scope, server: ServerId) -> Result<()> {
    for id in find_up_on(scope, server).await? {
        let tx = scope.begin().await?;
        // A person may have stopped it meanwhile.
        let is_up =
            |status| matches!(status, AgentStatus::Spawning | AgentStatus::Running | AgentStatus::Paused);
        let is_there = |agent: &agents::Model| agent.server_id == server && is_up(agent.status);
        let Some(agent) = find(&tx, id).await?.filter(is_there) else { continue };
        if is_withheld(&tx, &agent).await? {
            withhold(&tx, &agent).await?;
            tx.commit().await?;
        }
    }
    Ok(())
}

/// The agents on a server that have a launch, in locking order.
async fn find_up_on(scope: &Scope, server: ServerId) -> Result<Vec<AgentId>> {
    let up = [AgentStatus::Spawning, AgentStatus::Running, AgentStatus::Paused];
    let found = not_deleted(scope).filter(agents::Column::ServerId.eq(server));
    let found = found.filter(agents::Column::Status.is_in(up)).order_by_asc(agents::Column::Id);
    Ok(found.select_only().column(agents::Column::Id).into_tuple().all(scope.core.db.read()).await?)
}

pub(super) fn refusal() -> Problem {
    Problem::new(Code::PermissionDenied, DETAIL)
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;

    /// The JSON schemas of everything that a host receives.
    fn shapes() -> Value {
        let text = include_str!("../../../../schema/gateway.json");
        muster_json::from_str::<Value>(text).unwrap()["$defs"].take()
    }

    fn named<'a>(shapes: &'a Value, shape: &'a Value) -> (&'a Value, bool) {
        match shape["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
            Some(name) => (&shapes[name], name == "Secret"),
            None => (shape, false),
        }
    }

    fn choices(shape: &Value) -> impl Iterator<Item = &Value> {
        ["anyOf", "oneOf"].into_iter().filter_map(|how| shape[how].as_array()).flatten()
    }

    fn fields(shape: &Value) -> impl Iterator<Item = (&String, &Value)> {
        shape["properties"].as_object().into_iter().flatten()
    }

    /// The smallest value of this shape: optional parts are missing, lists are empty.
    fn least(shapes: &Value, shape: &Value) -> Value {
        let default = &shape["default"];
        let (shape, _) = named(shapes, shape);
        let is = |kind: &str| {
            shape["type"] == kind || shape["type"].as_array().is_some_and(|all| all.contains(&kind.into()))
        };
        if !default.is_null() {
            return default.clone();
        }
        if let Some(fixed) = shape.get("const").or(shape["enum"].get(0)) {
            return fixed.clone();
        }
        let mut choices = choices(shape).peekable();
        if choices.peek().is_some() {
            let mut all: Vec<&Value> = choices.collect();
            all.sort_by_key(|choice| choice["type"] != "null");
            return least(shapes, all[0]);
        }
        if is("null") {
            Value::Null
        } else if is("object") {
            fields(shape)
                .map(|(name, shape)| (name.clone(), least(shapes, shape)))
                .collect::<Map<_, _>>()
                .into()
        } else if is("array") {
            json!([])
        } else if is("boolean") {
            json!(false)
        } else if is("string") {
            json!("x")
        } else {
            json!(1)
        }
    }

    /// For each secret in this shape: its path, and the smallest value that contains it.
    fn with_a_secret(shapes: &Value, shape: &Value, at: &str) -> Vec<(String, Value)> {
        let (shape, is_secret) = named(shapes, shape);
        if is_secret {
            return vec![(at.to_owned(), json!("hush"))];
        }
        let mut all: Vec<(String, Value)> =
            choices(shape).flat_map(|choice| with_a_secret(shapes, choice, at)).collect();
        if let Some(items) = shape.get("items") {
            let items = with_a_secret(shapes, items, &format!("{at}[]"));
            all.extend(items.into_iter().map(|(at, item)| (at, json!([item]))));
        }
        for (name, part) in fields(shape) {
            let kind = shape["properties"]["kind"]["const"].as_str().map(|kind| format!("{kind}."));
            let kind = kind.unwrap_or_default();
            for (at, inner) in with_a_secret(shapes, part, &format!("{at}.{kind}{name}")) {
                let mut whole = least(shapes, shape);
                whole[name] = inner;
                all.push((at, whole));
            }
        }
        all
    }

    #[test]
    fn each_place_of_a_secret_in_a_plan_is_judged() {
        let shapes = shapes();
        let places = with_a_secret(&shapes, &json!({ "$ref": "#/$defs/LaunchPlan" }), "");
        // A new one also needs a case in `tests/it/gateway/confirmed.rs`.
        let mut known: Vec<&str> = places.iter().map(|(at, _)| at.as_str()).collect();
        known.sort_unstable();
        let all = [
            ".environment[].value",
            ".files[].content",
            ".injected[].headers[].value",
            ".mcp_servers[].transport.HTTP.headers[].value",
            ".mcp_servers[].transport.SSE.headers[].value",
            ".mcp_servers[].transport.STDIO.environment[].value",
            ".model_access.key",
        ];
        assert_eq!(known, all);
        for (at, plan) in places {
            let plan: LaunchPlan = serde_json::from_value(plan).unwrap();
            assert!(holds_secret(&plan), "{at}");
        }
        let bare = least(&shapes, &json!({ "$ref": "#/$defs/LaunchPlan" }));
        assert!(!holds_secret(&serde_json::from_value(bare).unwrap()));
    }

    #[test]
    fn no_answer_but_the_plan_of_a_launch_holds_a_secret() {
        let mut shapes = shapes();
        shapes["LaunchPlan"] = json!({ "type": "object" });
        let places = with_a_secret(&shapes, &json!({ "$ref": "#/$defs/ToHost" }), "");
        assert!(places.is_empty(), "an unconfirmed host gets these: {places:#?}");
    }
}
