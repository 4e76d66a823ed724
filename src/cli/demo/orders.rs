//! The order desk of the demo's shop: an MCP server with twelve orders.

use std::{collections::BTreeSet, sync::Arc};

use axum::{body::Body, extract::Request, response::Response};
use parking_lot::Mutex;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
    },
};
use serde::Serialize;
use serde_json::{Value, json};

/// An order. Times count from today, so that the demo does not age.
#[derive(Clone, Copy, Serialize)]
struct Order {
    order: &'static str,
    customer: &'static str,
    items: &'static [&'static str],
    total: &'static str,
    state: &'static str,
    /// A sentence about the state.
    detail: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivered_days_ago: Option<u32>,
}

const DELIVERED: &str = "delivered";

/// An order that has not arrived.
const fn open(
    (order, customer): (&'static str, &'static str),
    items: &'static [&'static str],
    (total, state, detail): (&'static str, &'static str, &'static str),
) -> Order {
    Order { order, customer, items, total, state, detail, delivered_days_ago: None }
}

/// An order that was delivered so many days ago.
const fn delivered(
    (order, customer): (&'static str, &'static str),
    items: &'static [&'static str],
    (total, detail, days): (&'static str, &'static str, u32),
) -> Order {
    Order { order, customer, items, total, state: DELIVERED, detail, delivered_days_ago: Some(days) }
}

const ORDERS: [Order; 12] = [
    delivered(
        ("1001", "Jonas Almeida"),
        &["Camping stove"],
        ("64.90 EUR", "It arrived 12 days ago and was signed for by a neighbour.", 12),
    ),
    open(
        ("1002", "Mina Horvat"),
        &["Trail shoes, size 39", "Wool socks"],
        ("139.80 EUR", "being packed", "It leaves the warehouse this afternoon."),
    ),
    open(
        ("1003", "Samir Lindqvist"),
        &["Rain jacket, green, size L"],
        ("119.00 EUR", "waiting for its payment", "The bank transfer has not arrived yet."),
    ),
    open(
        ("1004", "Amara Jansen"),
        &["Trail jacket, blue, size M"],
        ("129.00 EUR", "on its way", "It left the warehouse yesterday and arrives tomorrow before noon."),
    ),
    delivered(
        ("1005", "Emil Papadakis"),
        &["Sleeping bag", "Inflatable pillow"],
        ("188.50 EUR", "It arrived yesterday.", 1),
    ),
    open(
        ("1006", "Thandi Kowalski"),
        &["Head torch"],
        ("39.90 EUR", "ready for pickup", "The shop at the station keeps it for seven days."),
    ),
    delivered(("1007", "Ines Okafor"), &["Coffee grinder"], ("54.00 EUR", "It arrived 6 days ago.", 6)),
    open(
        ("1008", "Pavel Moreau"),
        &["Two-person tent"],
        (
            "329.00 EUR",
            "delayed",
            "The tent is out of stock until next week, and is sent on the day that it comes in.",
        ),
    ),
    delivered(
        ("1009", "Zoë Adeyemi"),
        &["Backpack, 40 litres"],
        ("99.00 EUR", "It arrived 47 days ago.", 47),
    ),
    open(
        ("1010", "Luca Eriksen"),
        &["Enamel mug", "Enamel plate"],
        ("31.80 EUR", "cancelled", "It was cancelled by the customer before it was paid."),
    ),
    open(
        ("1011", "Hana Meyer"),
        &["Bicycle pump"],
        ("24.50 EUR", "on its way", "It left the warehouse this morning and arrives in two days."),
    ),
    delivered(
        ("1012", "Kofi Dubois"),
        &["Water bottle", "Water filter"],
        ("71.40 EUR", "It arrived 19 days ago.", 19),
    ),
];

/// The server. It forgets its refunds with the demo's end.
#[derive(Clone, Default)]
struct OrderDesk {
    refunded: Arc<Mutex<BTreeSet<&'static str>>>,
}

impl OrderDesk {
    /// An order by its number.
    fn find(&self, arguments: &JsonObject) -> Result<Order, String> {
        let number = arguments.get("order").and_then(Value::as_str).unwrap_or_default().trim();
        let order = ORDERS.into_iter().find(|order| order.order == number);
        order.map(|order| self.current(order)).ok_or_else(|| {
            let number: String = number.chars().take(20).collect();
            format!("Order {number} does not exist. Orders are numbered from 1001 to 1012.")
        })
    }

    fn current(&self, order: Order) -> Order {
        if !self.refunded.lock().contains(order.order) {
            return order;
        }
        Order { state: "refunded", detail: "The money is on its way back to the customer.", ..order }
    }

    fn refund(&self, arguments: &JsonObject) -> Result<Value, String> {
        let Order { order, total, state, .. } = self.find(arguments)?;
        if state != DELIVERED {
            return Err(format!("Order {order} is {state}. Only a delivered order can be refunded."));
        }
        if arguments.get("amount").and_then(Value::as_str) != Some(total) {
            return Err(format!("Order {order} can only be refunded in full: {total}."));
        }
        self.refunded.lock().insert(order);
        Ok(json!({ "order": order, "refunded": total }))
    }

    fn call(&self, tool: &str, arguments: &JsonObject) -> Option<Result<Value, String>> {
        Some(match tool {
            "look_up_order" => self.find(arguments).map(|order| json!(order)),
            "list_orders" => Ok(json!({ "orders": ORDERS.map(|order| self.current(order)) })),
            "refund_order" => self.refund(arguments),
            _ => return None,
        })
    }
}

impl ServerHandler for OrderDesk {
    fn get_info(&self) -> ServerConfig {
        let server = Implementation::new("shop", env!("CARGO_PKG_VERSION")).with_title("Shop");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build()).with_server_info(server)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let called = self.call(&request.name, &request.arguments.unwrap_or_default());
        let result = called.ok_or_else(|| ErrorData::invalid_params("Unknown tool.", None))?;
        Ok(match result {
            Ok(value) => CallToolResult::structured(value),
            Err(problem) => CallToolResult::error(vec![ContentBlock::text(problem)]),
        }
        .into())
    }
}

fn tools() -> Vec<Tool> {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let order = text("The order's number, such as 1004.");
    let tool = |name: &'static str, description: &'static str, properties: Value, required: &[&str]| {
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        Tool::new(name, description, schema.as_object().cloned().unwrap_or_default())
    };
    vec![
        tool(
            "look_up_order",
            "Finds an order: items, total and state.",
            json!({ "order": order }),
            &["order"],
        ),
        tool("list_orders", "Lists all orders.", json!({}), &[]),
        tool(
            "refund_order",
            "Refunds a delivered order in full.",
            json!({ "order": order, "amount": text("Its total, such as 54.00 EUR.") }),
            &["order", "amount"],
        ),
    ]
}

/// The endpoint of the server.
#[derive(Clone)]
pub struct OrderEndpoint(StreamableHttpService<OrderDesk, NeverSessionManager>);

impl OrderEndpoint {
    pub fn open() -> Self {
        let desk = OrderDesk::default();
        let settings = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_sse_retry(None);
        let sessions = Arc::new(NeverSessionManager::default());
        Self(StreamableHttpService::new(move || Ok(desk.clone()), sessions, settings))
    }

    pub async fn answer(self, request: Request) -> Response {
        self.0.handle(request).await.map(Body::new)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{cli::demo::house, core::config::Config};

    fn called(desk: &OrderDesk, tool: &str, arguments: Value) -> Result<Value, String> {
        let Value::Object(arguments) = arguments else { panic!("not an object") };
        desk.call(tool, &arguments).expect("the tool exists")
    }

    #[test]
    fn an_order_is_refunded_once_and_only_as_a_whole() {
        let desk = OrderDesk::default();
        let found = |order: &str| called(&desk, "look_up_order", json!({ "order": order }));
        let refund = |order: &str, amount: &str| {
            called(&desk, "refund_order", json!({ "order": order, "amount": amount }))
        };
        assert_eq!(found("1007").unwrap()["state"], "delivered");
        assert!(refund("1007", "5.00 EUR").unwrap_err().contains("54.00 EUR"));
        assert_eq!(refund("1007", "54.00 EUR").unwrap()["refunded"], "54.00 EUR");
        assert_eq!(found("1007").unwrap()["state"], "refunded");
        assert!(refund("1007", "54.00 EUR").unwrap_err().contains("is refunded"));
        assert!(refund("1004", "129.00 EUR").unwrap_err().contains("on its way"));
        assert!(found("1099").unwrap_err().contains("Order 1099 does not exist"));
        let listed = called(&desk, "list_orders", json!({})).unwrap();
        assert_eq!(listed["orders"].as_array().unwrap().len(), 12);
        assert!(desk.call("sell_order", &JsonObject::new()).is_none());
    }

    #[test]
    fn only_a_refund_takes_a_persons_approval() {
        let config = Config::in_folder(Path::new("/tmp/demo")).unwrap();
        let rules = config.risk().unwrap();
        let asked = tools().into_iter().map(|tool| tool.name).filter(|tool| {
            rules.judge("other", &format!("Shop.{tool}"), &json!({ "order": "1007" })).risk >= house::ASK_FROM
        });
        assert_eq!(asked.collect::<Vec<_>>(), ["refund_order"]);
    }
}
