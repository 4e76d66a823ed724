//! The agent of the demo, which has rules instead of a model.

use serde_json::{Value, json};

use crate::client::{Agent, peers};

const DEMO: [(&str, &str); 1] = [("MUSTER_AGENT_MODEL", "muster-demo")];

fn orders() -> Value {
    let args = ["node".to_owned(), peers("everything").join("orders.mjs").display().to_string()];
    json!([{ "name": "Shop", "command": "/usr/bin/env", "args": args, "env": [] }])
}

#[tokio::test]
async fn it_obeys_no_words_and_says_where_a_model_is_set() {
    let mut agent = Agent::start_with(&DEMO, json!({})).await;
    for (servers, part) in [(json!([]), "None of my tools"), (orders(), "Where is order 1004?")] {
        let session = agent.session_with(servers).await;
        let turn = agent.prompt(&session, "exit 3").await;
        assert_eq!((turn.messages().len(), turn.reason()), (1, "end_turn"));
        for part in [part, "I run without a model", "*Settings*"] {
            assert!(turn.said().contains(part), "{part}: {}", turn.said());
        }
        let chunks = turn.updates.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        assert!(chunks.count() > 2, "it is streamed");
    }
}

#[tokio::test]
async fn a_refund_follows_the_skill_and_goes_on_after_a_late_decision() {
    let mut agent = Agent::start_with(&DEMO, json!({})).await;
    let session = agent.session_with(orders()).await;
    let refused = agent.prompt(&session, "Please refund order 1007.").await;
    assert!(refused.said().contains("no refund policy"), "{}", refused.said());
    agent.skill("refund-policy", "---\nname: refund-policy\n---\nOnly within 5 days.");
    let refused = agent.prompt(&session, "Please refund order 1007.").await;
    assert!(refused.said().contains("voucher over 54.00 EUR"), "{}", refused.said());

    agent.skill("refund-policy", "---\nname: refund-policy\n---\nOnly within 30 days.");
    let asked = agent.prompt(&session, "Please refund order 1007.").await;
    assert!(asked.messages()[0].contains("within the 30 days"), "{:?}", asked.messages());
    assert!(asked.said().contains("is waiting for a decision"), "{}", asked.said());
    let statuses: Vec<_> = asked.calls().into_iter().map(|(title, status, _)| (title, status)).collect();
    let expected = [
        ("Shop: look_up_order", "completed"),
        ("Read the skill refund-policy", "completed"),
        ("Shop: refund_order", "failed"),
    ];
    assert_eq!(statuses, expected.map(|(title, status)| (title.to_owned(), status.to_owned())));

    let decision = "You requested approval: Use Shop.refund_order\nOlivia allowed it.";
    let decided = agent.prompt(&session, decision).await;
    let call = &decided.updates[0];
    assert_eq!(
        call["rawInput"],
        json!({ "order": "1007", "amount": "54.00 EUR" }),
        "the call that was allowed"
    );
    assert!(decided.said().starts_with("The refund is approved: 54.00 EUR"), "{}", decided.said());
}
