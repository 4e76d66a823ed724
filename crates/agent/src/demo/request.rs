//! What a message asks for, by a few fixed rules.

/// What a message asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// The state of an order.
    LookUp(String),
    /// A refund for an order, or for one that the message doesn't name.
    Refund(Option<String>),
    /// All orders.
    List,
    /// A decision on an earlier request, which comes as a message if it was not made in time.
    Decision {
        is_allowed: bool,
    },
    /// A comment on a decision that is known already.
    Comment,
    Other,
}

/// Reads a person's message, or Muster's message about a decision.
pub fn understand(message: &str) -> Request {
    if let Some((_, decision)) = message.split_once("You requested approval: ") {
        return Request::Decision { is_allowed: !decision.contains(" did not allow it") };
    }
    if message.contains("About your request: ") && message.contains("You know this already") {
        return Request::Comment;
    }
    let text = message.to_lowercase();
    let order = order_number(message);
    if ["refund", "money back"].iter().any(|words| text.contains(words)) {
        return Request::Refund(order);
    }
    match order {
        Some(order) => Request::LookUp(order),
        None if text.contains("orders") => Request::List,
        None => Request::Other,
    }
}

/// The first number of four digits.
fn order_number(text: &str) -> Option<String> {
    text.split(|c: char| !c.is_ascii_digit()).find(|digits| digits.len() == 4).map(str::to_owned)
}

/// The first number of days in a policy.
pub fn days(policy: &str) -> Option<u32> {
    let words = policy.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let following = words.clone().skip(1);
    words
        .zip(following)
        .find_map(|(number, unit)| number.parse::<u32>().ok().filter(|_| unit.eq_ignore_ascii_case("days")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_an_order_and_what_to_do_with_it() {
        let order = || "1004".to_owned();
        for (message, expected) in [
            ("Where is order 1004?", Request::LookUp(order())),
            ("#1004, please", Request::LookUp(order())),
            ("Nora Okafor: where is 1004", Request::LookUp(order())),
            ("Please refund order 1004.", Request::Refund(Some(order()))),
            ("I want my money back", Request::Refund(None)),
            ("What is your refund policy?", Request::Refund(None)),
            ("Which orders do you know?", Request::List),
            ("Good morning", Request::Other),
            ("My number is 10045", Request::Other),
            ("", Request::Other),
            // The words of the reference agent mean nothing here.
            ("call echo {}", Request::Other),
        ] {
            assert_eq!(understand(message), expected, "{message}");
        }
    }

    #[test]
    fn a_late_decision_is_not_a_question() {
        let said =
            |end: &str| understand(&format!("You requested approval: Use Shop.refund_order\nOlivia {end}."));
        assert_eq!(said("allowed it"), Request::Decision { is_allowed: true });
        assert_eq!(said("allowed it and said: 1004 is fine"), Request::Decision { is_allowed: true });
        assert_eq!(said("did not allow it and said: too late"), Request::Decision { is_allowed: false });
        let known = "About your request: Use Shop.refund_order\nOlivia allowed it. You know this already; the comment: be kind";
        assert_eq!(understand(known), Request::Comment);
    }

    #[test]
    fn a_policy_says_for_how_many_days() {
        assert_eq!(
            days("# Refunds\n\nUp to **30 days** after delivery. Above 100 EUR: ask. After 60 days: no."),
            Some(30)
        );
        assert_eq!(days("Within a month, at most 50 EUR."), None);
    }
}
