//! The agent of `muster demo`: answers questions about a shop's orders, without a model.
//!
//! It uses what any agent has: the tools of its session's MCP servers, and its skills. Without the tools `look_up_order`
//! and `refund_order` it only introduces itself. [`request`] understands a message, and [`replies`] has the answers.

mod replies;
mod request;

use std::time::Duration;

use agent_client_protocol::v1::schema::ToolKind;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::{fs, time::sleep};

use self::{
    replies::{Order, Orders},
    request::{Request, understand},
};
use crate::{
    deterministic::{count_usage, to_object, use_tool},
    history::{Entry, Message, Outcome},
    mcp::Tool,
    options::Mode,
    skills,
    turn::{Stop, Turn},
};

/// The skill that says when to refund.
const POLICY: &str = "refund-policy";

/// The shop's tools.
struct OrderTools {
    look_up: Tool,
    list: Option<Tool>,
    refund: Option<Tool>,
}

impl OrderTools {
    fn find(tools: &[Tool]) -> Option<Self> {
        let find = |name: &str| tools.iter().find(|tool| tool.name == name).cloned();
        Some(Self {
            look_up: find("look_up_order")?,
            list: find("list_orders"),
            refund: find("refund_order"),
        })
    }
}

/// Answers a message.
pub async fn answer(turn: &mut Turn, message: &str) -> Result<(), Stop> {
    let result = reply(turn, message).await;
    count_usage(turn);
    result
}

async fn reply(turn: &mut Turn, message: &str) -> Result<(), Stop> {
    let (tools, problems) = turn.until_cancelled(turn.session.servers.tools()).await?;
    let Some(tools) = OrderTools::find(&tools) else {
        return say(turn, &replies::help_without_tools(&problems)).await;
    };
    let request = understand(message);
    if turn.session.mode() == Mode::Plan && request != Request::Other {
        return say(turn, replies::PLAN_MODE).await;
    }
    match (request, tools.list, tools.refund) {
        (Request::LookUp(number), ..) => {
            let text = match find_order(turn, &tools.look_up, &number).await? {
                Ok(order) => replies::state(&order),
                Err(problem) => problem,
            };
            say(turn, &text).await
        }
        (Request::List, Some(list), _) => {
            let text = match read::<Orders>(turn, &list, Map::new()).await? {
                Ok(orders) => replies::list(&orders),
                Err(problem) => problem,
            };
            say(turn, &text).await
        }
        (Request::Refund(None), _, Some(_)) => {
            let days = policy_days(turn).await?;
            say(turn, &replies::policy(days)).await
        }
        (Request::Refund(Some(number)), _, Some(refund)) => {
            consider_refund(turn, (&tools.look_up, &refund), &number).await
        }
        (Request::Decision { is_allowed }, _, Some(refund)) => {
            match (last_input(turn, &refund), is_allowed) {
                (Some(input), true) => pay_back(turn, &refund, input).await,
                (Some(_), false) => say(turn, &replies::not_approved("")).await,
                (None, _) => say(turn, replies::NOTED).await,
            }
        }
        (Request::Comment, ..) => say(turn, replies::NOTED).await,
        _ => say(turn, &replies::help()).await,
    }
}

/// Checks an order against the policy, and refunds it if the policy and a person allow it: the call is judged on its
/// way to the shop.
async fn consider_refund(
    turn: &mut Turn,
    (look_up, refund): (&Tool, &Tool),
    number: &str,
) -> Result<(), Stop> {
    let order = match find_order(turn, look_up, number).await? {
        Ok(order) => order,
        Err(problem) => return say(turn, &problem).await,
    };
    let days = policy_days(turn).await?;
    if let Some(refusal) = replies::refusal(&order, days) {
        return say(turn, &refusal).await;
    }
    say(turn, &replies::asks(&order, days.unwrap_or_default())).await?;
    pay_back(turn, refund, to_object(json!({ "order": order.order, "amount": order.total }))).await
}

async fn pay_back(turn: &mut Turn, refund: &Tool, input: Map<String, Value>) -> Result<(), Stop> {
    let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (number, amount) = (text("order"), text("amount"));
    let outcome = use_tool(turn, refund, input).await?;
    say(turn, &replies::refunded(&number, &amount, &outcome)).await
}

/// The input of the tool's last call in this session.
fn last_input(turn: &Turn, tool: &Tool) -> Option<Map<String, Value>> {
    let name = tool.full_name();
    turn.session.with_record(|record| {
        record.entries.iter().rev().find_map(|entry| match entry {
            Entry::Tool(call) if call.name.as_ref() == Some(&name) => call.input.as_object().cloned(),
            _ => None,
        })
    })
}

async fn find_order(turn: &mut Turn, look_up: &Tool, number: &str) -> Result<Result<Order, String>, Stop> {
    read(turn, look_up, to_object(json!({ "order": number }))).await
}

/// Calls a tool, and reads its result. The inner error is its own explanation.
async fn read<T: DeserializeOwned>(
    turn: &mut Turn,
    tool: &Tool,
    input: Map<String, Value>,
) -> Result<Result<T, String>, Stop> {
    let outcome = use_tool(turn, tool, input).await?;
    if outcome.failed {
        return Ok(Err(outcome.text));
    }
    Ok(serde_json::from_str(&outcome.text)
        .map_err(|error| format!("I can't read what the shop says: {error}.")))
}

/// Reads the policy's number of days from the agent's skill.
async fn policy_days(turn: &mut Turn) -> Result<Option<u32>, Stop> {
    let skills = skills::read_skills(&turn.agent.settings.home).await;
    let Some(skill) = skills.into_iter().find(|skill| skill.name == POLICY) else { return Ok(None) };
    let (title, input) = (format!("Read the skill {}", skill.name), json!({ "path": skill.path }));
    let call = turn.announce_call(Some("read_file".to_owned()), title, ToolKind::Read, input).await?;
    turn.report_start(&call).await?;
    let (failed, text) = match fs::read_to_string(turn.agent.settings.home.join(&skill.path)).await {
        Ok(text) => (false, text),
        Err(error) => (true, error.to_string()),
    };
    let days = if failed { None } else { request::days(&text) };
    turn.finish_call(&call, Outcome { failed, text }, None).await?;
    Ok(days)
}

/// Says a text sentence by sentence.
async fn say(turn: &mut Turn, text: &str) -> Result<(), Stop> {
    let id = turn.new_id();
    let mut said = String::new();
    let mut result = Ok(());
    for sentence in replies::sentences(text) {
        if !said.is_empty() {
            // People see that answers are streamed.
            result = turn.until_cancelled(sleep(Duration::from_millis(200))).await;
        }
        if result.is_err() {
            break;
        }
        turn.send_chunk(&id, false, sentence).await?;
        said.push_str(sentence);
    }
    turn.record(Entry::Agent(Message { id, text: said })).await;
    result
}
