//! What the demo's agent says.

use serde::Deserialize;

use crate::history::Outcome;

/// An order, as the tool `look_up_order` describes it.
#[derive(Debug, Deserialize)]
pub struct Order {
    pub order: String,
    pub items: Vec<String>,
    pub total: String,
    pub state: String,
    /// A sentence about the state.
    pub detail: String,
    #[serde(default)]
    pub delivered_days_ago: Option<u32>,
}

/// The orders, as the tool `list_orders` describes them.
#[derive(Debug, Deserialize)]
pub struct Orders {
    pub orders: Vec<Order>,
}

/// Where a model is set.
const SET_A_MODEL: &str = "I run without a model, by a few fixed rules. To give me one, open my page in the panel: *Settings* takes a \
                           model and its key.";

pub fn help() -> String {
    format!(
        "Hello! I look after the orders of this shop: I can find one, list them all, or arrange a refund. For \
         example:\n\n- Where is order 1004?\n- Please refund order 1007.\n- Which orders do you know?\n\n{SET_A_MODEL}"
    )
}

/// For an agent without the shop's tools. `problems` say which servers can't be reached.
pub fn help_without_tools(problems: &[String]) -> String {
    if problems.is_empty() {
        return format!("Hello! None of my tools can help with that yet. {SET_A_MODEL}");
    }
    format!(
        "I'm sorry, I can't reach my tools right now. Please try again in a moment.\n\n{}",
        problems.join("\n")
    )
}

pub fn state(order: &Order) -> String {
    let Order { order: number, items, state, detail, .. } = order;
    format!("Order {number} ({}) is {state}. {detail}", items.join(", "))
}

pub fn list(orders: &Orders) -> String {
    let line = |order: &Order| format!("\n- {}: {}, {}", order.order, order.items.join(", "), order.state);
    let lines: String = orders.orders.iter().map(line).collect();
    format!("I know these orders:\n{lines}\n\nWhich one is it about?")
}

/// The policy, for a message that asks about refunds without an order.
pub fn policy(days: Option<u32>) -> String {
    match days {
        Some(days) => format!(
            "An order can be refunded within {days} days of its delivery, and someone here approves each refund. Which \
             order is it about? For example: Please refund order 1007."
        ),
        None => NO_POLICY.to_owned(),
    }
}

const NO_POLICY: &str = "I have no refund policy to go by, so I can't refund anything. Someone has to assign me the skill refund-policy.";

/// Why an order can't be refunded, by the policy of so many days.
pub fn refusal(order: &Order, days: Option<u32>) -> Option<String> {
    let Order { order: number, total, state, detail, .. } = order;
    let Some(days) = days else { return Some(NO_POLICY.to_owned()) };
    match order.delivered_days_ago {
        Some(ago) if state == "delivered" => (ago > days).then(|| {
            format!(
                "Order {number} was delivered {ago} days ago. By our policy, refunds end {days} days after the delivery, \
                 so I can't refund it. I can offer a voucher over {total} instead."
            )
        }),
        _ => Some(format!("Order {number} is {state}, so there is nothing to refund. {detail}")),
    }
}

/// Before a refund that the policy permits.
pub fn asks(order: &Order, days: u32) -> String {
    let Order { order: number, total, .. } = order;
    let ago = order.delivered_days_ago.unwrap_or_default();
    format!(
        "Order {number} was delivered {ago} days ago, within the {days} days of our refund policy. A refund of {total} \
         needs someone's approval, so I'm asking for it now."
    )
}

/// After the attempt at a refund.
pub fn refunded(number: &str, amount: &str, outcome: &Outcome) -> String {
    if !outcome.failed {
        return format!(
            "The refund is approved: {amount} for order {number} are on their way back. They arrive within three working days."
        );
    }
    if outcome.text.contains("No answer yet") {
        return "The refund is waiting for a decision. I'll continue once it is made.".to_owned();
    }
    match outcome.text.split_once("A person refused it") {
        Some((_, rest)) => not_approved(rest.trim_start_matches([':', '.']).trim()),
        None => format!("I couldn't refund order {number}: {}", outcome.text),
    }
}

pub fn not_approved(comment: &str) -> String {
    let reason = if comment.is_empty() { String::new() } else { format!(" The reason: {comment}") };
    format!("I'm sorry, the refund was not approved.{reason}")
}

pub const NOTED: &str = "Thank you, I'll keep that in mind.";
pub const PLAN_MODE: &str = "In plan mode I call no tools. I would look the order up, check it against the refund policy, and ask before a refund.";

/// The sentences and lines of a text, each with the space after it.
pub fn sentences(text: &str) -> Vec<&str> {
    let (mut found, mut start, mut last) = (Vec::new(), 0, ' ');
    for (at, c) in text.char_indices() {
        if c == '\n' || (c == ' ' && matches!(last, '.' | '?' | '!')) {
            found.push(&text[start..=at]);
            start = at + 1;
        }
        last = c;
    }
    found.push(&text[start..]);
    found.retain(|sentence| !sentence.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(state: &str, delivered_days_ago: Option<u32>) -> Order {
        Order {
            order: "1007".to_owned(),
            items: vec!["Coffee grinder".to_owned()],
            total: "54.00 EUR".to_owned(),
            state: state.to_owned(),
            detail: "It is here.".to_owned(),
            delivered_days_ago,
        }
    }

    #[test]
    fn a_refund_keeps_to_the_policy() {
        let said = |state, ago, days| refusal(&order(state, ago), days).unwrap_or_default();
        assert_eq!(said("delivered", Some(30), Some(30)), "");
        assert!(said("delivered", Some(31), Some(30)).contains("voucher over 54.00 EUR"));
        assert_eq!(said("delivered", Some(31), Some(60)), "", "the skill decides");
        assert!(said("delivered", Some(1), None).contains("refund-policy"));
        assert!(said("on its way", None, Some(30)).contains("is on its way, so there is nothing to refund"));
        assert!(said("refunded", Some(6), Some(30)).contains("is refunded"));
    }

    #[test]
    fn the_answer_follows_the_decision() {
        let said =
            |failed, text: &str| refunded("1007", "54.00 EUR", &Outcome { failed, text: text.to_owned() });
        assert!(said(false, "{}").contains("approved: 54.00 EUR for order 1007"));
        let refused = |end| {
            said(
                true,
                &format!("The call failed: -32000: Muster: The call was not made. A person refused it{end}"),
            )
        };
        assert_eq!(refused("."), "I'm sorry, the refund was not approved.");
        assert_eq!(refused(": Too late."), "I'm sorry, the refund was not approved. The reason: Too late.");
        assert!(
            said(true, "Muster: Asked. No answer yet, and the call was not made.")
                .contains("is waiting for a decision")
        );
        assert!(said(true, "Order 1 does not exist.").contains("Order 1 does not exist."));
    }

    #[test]
    fn sentences_are_the_whole_text() {
        let text = "It costs 54.00 EUR. Fine?\n- Yes! ✓ 1.\n\nBye";
        assert_eq!(sentences(text), ["It costs 54.00 EUR. ", "Fine?\n", "- Yes! ", "✓ 1.\n", "\n", "Bye"]);
        assert_eq!(sentences(text).concat(), text);
        assert_eq!(sentences(""), Vec::<&str>::new());
    }
}
