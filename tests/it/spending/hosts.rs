//! One budget, and two hosts that spend it: the service, two hosts, and an agent with a model on each, all real. The calls go
//! through the hosts' gates, in a sandbox where bubblewrap is, and in plain processes elsewhere.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering::Relaxed},
};

use axum::{Router, body::Bytes, extract::State, response::IntoResponse};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    agents::running::House,
    harness::{Crew, found, served},
};

/// 3 dollars for a million tokens read, and 15 for a million written.
const MODEL: &str = "claude-sonnet-4-5";
/// The tokens that each call uses: those of a typical call, so that a lease covers one call and not more.
const USED: (i64, i64) = (32_000, 8_000);
/// The cost of a call, in millionths.
const CALL: i64 = 216_000;
/// How many calls there is money for at first.
const CALLS: i64 = 3;
const BUDGET: i64 = CALLS * CALL;
/// The allowance that a person adds: more than all turns need, but so little that 5 % of it is at most a call.
const MORE: i64 = 20 * CALL;
/// How many turns each agent has at the same time: more than there is money for.
const TURNS: usize = 4;

/// A model that answers once it may, and says what its answer costs.
struct Model {
    url: String,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    asked: AtomicI64,
    answered: AtomicI64,
    may_answer: CancellationToken,
}

impl Model {
    async fn start() -> Self {
        let seen: Arc<Seen> = Arc::default();
        let url = served(Router::new().fallback(answer).with_state(Arc::clone(&seen))).await;
        Self { url, seen }
    }

    fn asked(&self) -> i64 {
        self.seen.asked.load(Relaxed)
    }

    /// The cost of all its answers.
    fn earned(&self) -> i64 {
        self.seen.answered.load(Relaxed) * CALL
    }

    /// From now on it answers at once.
    fn lets_go(&self) {
        self.seen.may_answer.cancel();
    }
}

async fn answer(State(seen): State<Arc<Seen>>, _question: Bytes) -> impl IntoResponse {
    seen.asked.fetch_add(1, Relaxed);
    seen.may_answer.cancelled().await;
    seen.answered.fetch_add(1, Relaxed);
    ([("content-type", "text/event-stream")], said())
}

/// An answer, as Anthropic's interface streams it.
fn said() -> String {
    let (read, written) = USED;
    let usage = json!({ "input_tokens": read, "output_tokens": 1 });
    let message = json!({ "id": "m", "type": "message", "role": "assistant", "content": [], "usage": usage });
    let block = json!({ "type": "text", "text": "" });
    let text = json!({ "type": "text_delta", "text": "Here" });
    let stop = json!({ "stop_reason": "end_turn", "stop_sequence": null });
    let events = [
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": text }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": stop, "usage": { "output_tokens": written } }),
        json!({ "type": "message_stop" }),
    ];
    let event = |data: &Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap());
    events.iter().map(event).collect()
}

async fn thinks_with(house: &House, crew: &Crew, model: &Model) {
    let edit = json!({
        "modelOverride": MODEL, "credentialChoice": "OWN", "modelCredential": "sk-of-two-hosts",
        "modelCredentialProvider": "anthropic", "modelCredentialBaseUrl": model.url,
    });
    let query = "mutation($o: Id!, $a: Id!, $i: UpdateAgentInput!) { updateAgent(orgId: $o, id: $a, input: $i) { id } }";
    house.gql(query, json!({ "a": crew.agent, "i": edit })).await;
}

fn micro(amount: &Value) -> i64 {
    amount.as_str().unwrap().parse().unwrap()
}

/// The amounts that the organization has spent, and that its hosts may still spend. Here, calls cost as much as their
/// leases, so the sum never exceeds `within`.
async fn spent(house: &House, within: i64) -> (i64, i64) {
    let query = "query($o: Id!) { organization(orgId: $o) { spending { costMicro leasedMicro } } }";
    let spending = house.gql(query, json!({})).await["organization"]["spending"].clone();
    let (cost, leased) = (micro(&spending["costMicro"]), micro(&spending["leasedMicro"]));
    assert!(cost + leased <= within, "{cost} spent and {leased} leased of {within}");
    (cost, leased)
}

/// The amount that an agent has spent, and the reason why it can't spend more, in words.
async fn agent(house: &House, crew: &Crew) -> (i64, Option<String>) {
    let query =
        "query($o: Id!, $a: Id!) { agent(orgId: $o, id: $a) { limit { reason } spending { costMicro } } }";
    let shown = house.gql(query, json!({ "a": crew.agent })).await["agent"].clone();
    (micro(&shown["spending"]["costMicro"]), shown["limit"]["reason"].as_str().map(str::to_owned))
}

/// The COST_GUARDs that people were ever asked about: their ids and states.
async fn guards(house: &House) -> Vec<(i64, String)> {
    let path = format!("/v1/org/{}/approval?only_pending=false&page=1&limit=50", house.tenant.org);
    let page = house.actor.get(&path).await.expect(200);
    let asked = page["data"].as_array().unwrap().iter();
    let guards = asked.filter(|asked| asked["kind"] == "COST_GUARD");
    let known = |guard: &Value| (guard["id"].as_i64().unwrap(), guard["status"].as_str().unwrap().to_owned());
    guards.map(known).collect()
}

/// The state of the conversation's newest turn.
async fn newest(house: &House, conversation: i64) -> String {
    let turns = house.turns(conversation).await;
    let newest = turns.as_array().unwrap().iter().max_by_key(|turn| turn["id"].as_i64()).unwrap();
    newest["state"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_spend_one_budget() {
    let (house, model) = (House::open().await, Model::start().await);
    let (owner, org) = (house.owner(), house.tenant.org);
    let edit = "mutation($o: Id!, $input: UpdateOrganizationInput!) { updateOrganization(orgId: $o, input: $input) { id } }";
    let input = json!({ "monthlyBudgetMicro": BUDGET, "budgetAction": "PAUSE" });
    owner.gql(edit, json!({ "o": org, "input": input })).await.data();
    let crews = [house.crew("one").await, house.crew("two").await];
    for crew in &crews {
        thinks_with(&house, crew, &model).await;
        house.starts(crew).await;
    }
    let logs = || crews.iter().map(|crew| crew.machine.log()).collect::<Vec<_>>().join("\n");

    // Nothing is answered yet, so all that is leased stays leased.
    let in_turns: Vec<&Crew> = crews.iter().cycle().take(crews.len() * TURNS).collect();
    let conversations = join_all(in_turns.iter().map(|crew| house.says(crew, "Go on"))).await;
    let are_told = async || {
        let reasons = [agent(&house, &crews[0]).await.1?, agent(&house, &crews[1]).await.1?];
        (model.asked() == CALLS).then_some(reasons)
    };
    let Some(reasons) = found(are_told).await else {
        panic!("{} calls, {:?}\n{}", model.asked(), spent(&house, BUDGET).await, logs())
    };
    let words = "The organization's budget of 0.6480 USD for this month is used up: 0.00 USD used, \
                 0.6480 USD held for calls under way.";
    assert_eq!(reasons, [words, words], "each agent is notified");
    assert_eq!(spent(&house, BUDGET).await, (0, BUDGET));
    let asked = guards(&house).await;
    let [(guard, _)] = asked[..] else { panic!("asked once, not once for each host: {asked:?}") };

    model.lets_go();
    let is_spent = async || (spent(&house, BUDGET).await == (BUDGET, 0)).then_some(());
    assert!(found(is_spent).await.is_some(), "{:?}\n{}", spent(&house, BUDGET).await, logs());
    assert_eq!((model.asked(), model.earned()), (CALLS, BUDGET), "what is not paid for is not asked");
    assert_eq!(guards(&house).await, [(guard, "PENDING".to_owned())]);
    let before = [agent(&house, &crews[0]).await.0, agent(&house, &crews[1]).await.0];
    assert_eq!(before.iter().sum::<i64>(), BUDGET);

    let allow = "mutation($o: Id!, $i: AllowSpendingInput!) { allowSpending(orgId: $o, input: $i) { id } }";
    let input = json!({ "costMicro": MORE, "approvalId": guard });
    owner.gql(allow, json!({ "o": org, "i": input })).await.data();
    assert!(guards(&house).await.contains(&(guard, "RESOLVED".to_owned())));
    // Anyone who was refused just before may have given up. A person writes again.
    let all_go_on = async || {
        let mut open = 0;
        for conversation in &conversations {
            match newest(&house, *conversation).await.as_str() {
                "DONE" => continue,
                "FAILED" => house.adds(*conversation, "Go on").await,
                _ => {}
            }
            open += 1;
        }
        (open == 0).then_some(())
    };
    let all_go_on = found(all_go_on).await.is_some();
    assert!(all_go_on, "{:?}\n{}", spent(&house, BUDGET + MORE).await, logs());
    let is_settled = async || (spent(&house, BUDGET + MORE).await == (model.earned(), 0)).then_some(());
    let is_settled = found(is_settled).await.is_some();
    let now = spent(&house, BUDGET + MORE).await;
    assert!(is_settled, "{now:?} of {}\n{}", model.earned(), logs());
    for (crew, before) in crews.iter().zip(before) {
        let (now, limit) = agent(&house, crew).await;
        assert!(now > before && limit.is_none(), "{before} before, {now} now, {limit:?}");
    }
    let query = "query($o: Id!) { modelDays(orgId: $o, page: 1, limit: 50) { data { calls costMicro } } }";
    let days = house.gql(query, json!({})).await["modelDays"]["data"].clone();
    let days = days.as_array().unwrap();
    let cost: i64 = days.iter().map(|day| micro(&day["costMicro"])).sum();
    let calls: i64 = days.iter().map(|day| day["calls"].as_i64().unwrap()).sum();
    assert_eq!((cost, calls * CALL), (model.earned(), model.earned()));
}
