//! Feeds: for any question, walking the pages gives the sorted, filtered whole, also while records come and go.

use std::{cmp::Reverse, collections::BTreeSet};

use muster_corpus::Random;
use serde_json::{Value, json};

use crate::harness::{Actor, Population, TestApp};

/// Walks a feed to its end, in pages of different sizes. `between` runs after each page.
async fn walk(
    actor: &Actor,
    (feed, given): (&str, &str),
    variables: &Value,
    random: &mut Random,
    mut between: impl AsyncFnMut(),
) -> Vec<i64> {
    let status = match feed {
        "agentFeed" => Some("AgentStatus"),
        "approvalFeed" => Some("ApprovalStatus"),
        "conversationFeed" => Some("ConversationStatus"),
        _ => None,
    };
    let (declared, status) =
        status.map(|ty| (format!(", $status: [{ty}!]"), ", status: $status")).unwrap_or_default();
    let query = format!(
        "query($o: Id!, $after: String, $limit: Int{declared}) {{ {feed}(orgId: $o, after: $after, limit: $limit{status}{given}) {{ data {{ id }} next }} }}"
    );
    let (mut ids, mut variables) = (Vec::new(), variables.clone());
    for _ in 0..1000 {
        let limit = 1 + random.below(7);
        variables["limit"] = json!(limit);
        let page = actor.gql(&query, variables.clone()).await.data()[feed].clone();
        let data = page["data"].as_array().unwrap();
        assert!(data.len() as u64 <= limit, "{page}");
        ids.extend(data.iter().map(|record| record["id"].as_i64().unwrap()));
        if page["next"].is_null() {
            return ids;
        }
        assert_eq!(data.len() as u64, limit, "only the last page is shorter: {page}");
        variables["after"] = page["next"].clone();
        between().await;
    }
    panic!("{feed} has no end");
}

/// An approval as the test made it.
#[derive(Clone, Debug)]
struct Made {
    id: i64,
    kind: &'static str,
    status: &'static str,
    severity: usize,
    risk: Option<i64>,
    expires: Option<i64>,
    created: i64,
    agent: i64,
}

const SEVERITIES: [&str; 4] = ["LOW", "MEDIUM", "HIGH", "CRITICAL"];

impl Made {
    async fn new(app: &TestApp, all: &Population, random: &mut Random) -> Self {
        let now = app.clock.now().0;
        let mut made = Self {
            id: 0,
            kind: random.pick(&["QUESTION", "ACTION", "COST_GUARD"]),
            status: random.pick(&["PENDING", "PENDING", "RESOLVED", "DISMISSED", "EXPIRED"]),
            severity: random.below(4) as usize,
            risk: random.chance(60).then(|| random.between(0, 5) * 20),
            expires: random.chance(60).then(|| now + random.between(-3, 4) * 1000),
            created: now - random.between(0, 4) * 1000,
            agent: random.pick(&all.agents[..2]),
        };
        let outcome = match made.status {
            "PENDING" => None,
            "RESOLVED" => Some("MANUAL"),
            ended => Some(ended),
        };
        let sql = "INSERT INTO approvals (organization_id, kind, status, outcome, title, title_folded, severity, risk, agent_id, expires_at, \
                   created_at, updated_at) VALUES ($1, $2, $3, $4, 'x', 'x', $5, $6, $7, $8, $9, $9) RETURNING id";
        let values = vec![
            app.org.into(),
            made.kind.into(),
            made.status.into(),
            outcome.map(str::to_owned).into(),
            SEVERITIES[made.severity].into(),
            made.risk.into(),
            made.agent.into(),
            made.expires.into(),
            made.created.into(),
        ];
        made.id = app.one(sql, values).await;
        made
    }

    /// The state that people see.
    fn state(&self, now: i64) -> &'static str {
        let overdue = self.status == "PENDING" && self.expires.is_some_and(|at| at <= now);
        if overdue { "EXPIRED" } else { self.status }
    }

    fn risk(&self) -> i64 {
        self.risk.unwrap_or([10, 40, 70, 90][self.severity])
    }

    /// The sort key, with ties broken by id.
    fn key(&self, sort: &str) -> (i64, i64, i64, i64) {
        let expires = self.expires.unwrap_or(i64::MAX);
        match sort {
            "RISK" => (i64::from(self.status == "PENDING"), self.risk(), -expires, self.id),
            "EXPIRES" => (expires, 0, 0, self.id),
            _ => (self.created, 0, 0, self.id),
        }
    }
}

/// The ids that the feed must return.
fn expected(made: &[Made], sort: &str, descending: bool, keep: impl Fn(&Made) -> bool) -> Vec<i64> {
    let mut kept: Vec<&Made> = made.iter().filter(|made| keep(made)).collect();
    kept.sort_by_key(|made| made.key(sort));
    if descending {
        kept.reverse();
    }
    kept.into_iter().map(|made| made.id).collect()
}

#[tokio::test]
async fn every_walk_through_approvals_is_the_sorted_filtered_whole() {
    let (app, all) = TestApp::populated(3).await;
    app.populate_other(3).await;
    app.execute("DELETE FROM approvals WHERE organization_id = $1", vec![app.org.into()]).await;
    let mut random = Random::new(&[13]);
    let mut made = Vec::new();
    for _ in 0..60 {
        made.push(Made::new(&app, &all, &mut random).await);
    }
    let now = app.clock.now().0;
    for round in 0..36 {
        let sort = ["RISK", "EXPIRES", "CREATED"][round % 3];
        let descending = random.chance(50);
        let kinds = random.chance(30).then_some(["ACTION", "QUESTION"]);
        let status =
            random.chance(60).then(|| random.pick(&[&["PENDING"][..], &["EXPIRED", "RESOLVED"], &[]]));
        let least = random.chance(30).then(|| random.below(4) as usize);
        let agent = random.chance(30).then(|| all.agents[0]);
        let mut given = format!(", sort: {sort}, order: {}", if descending { "desc" } else { "asc" });
        if let Some(kinds) = kinds {
            given += &format!(", kinds: [{}]", kinds.join(", "));
        }
        if let Some(least) = least {
            given += &format!(", severityAtLeast: {}", SEVERITIES[least]);
        }
        if let Some(agent) = agent {
            given += &format!(", agentId: {agent}");
        }
        let keep = |made: &Made| {
            kinds.is_none_or(|kinds| kinds.contains(&made.kind))
                && status.is_none_or(|status| status.contains(&made.state(now)))
                && least.is_none_or(|least| made.severity >= least)
                && agent.is_none_or(|agent| made.agent == agent)
        };
        let wanted = expected(&made, sort, descending, keep);
        let variables = json!({ "o": app.org, "status": status });
        let feed = ("approvalFeed", given.as_str());
        // New ones come while it is read: what was there is still told once, in its order.
        let known: BTreeSet<i64> = made.iter().map(|made| made.id).collect();
        let mut new = Vec::new();
        let mut others = Random::new(&[14, round as u64]);
        let found = walk(&app.viewer, feed, &variables, &mut random, async || {
            if round % 2 == 1 && new.len() < 5 {
                new.push(Made::new(&app, &all, &mut others).await);
            }
        })
        .await;
        let before: Vec<i64> = found.iter().copied().filter(|id| known.contains(id)).collect();
        assert_eq!(before, wanted, "round {round}: {given} {status:?}");
        assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len(), "round {round}: none twice");
        for gone in new {
            app.execute("DELETE FROM approvals WHERE id = $1", vec![gone.id.into()]).await;
        }
        let total = format!(
            "query($o: Id!, $s: [ApprovalStatus!]) {{ approvalFeed(orgId: $o, status: $s, limit: 1{given}) {{ total }} }}"
        );
        let total = app.viewer.gql(&total, json!({ "o": app.org, "s": status })).await.data();
        assert_eq!(total["approvalFeed"]["total"], wanted.len(), "{given}");
    }
}

#[tokio::test]
async fn every_walk_through_agents_is_the_sorted_whole() {
    let app = TestApp::start().await;
    let mut all = app.populate(12).await;
    app.populate_other(3).await;
    let named = ["Zoe", "äpfel", "Äpfel", "apple", "_x", "zebra", "Émile", "émile 2"];
    for (agent, name) in all.agents.iter().zip(named) {
        let sql = "UPDATE agents SET name = $2, name_folded = $3 WHERE id = $1";
        let folded = muster::base::folding::name(name);
        app.execute(sql, vec![(*agent).into(), name.into(), folded.into()]).await;
    }
    let gone = all.agents.pop().unwrap();
    app.execute("UPDATE agents SET archived_at = 1 WHERE id = $1", vec![gone.into()]).await;
    let query = "query($o: Id!) { agents(orgId: $o, page: 1, limit: 100) { data { id name status createdAt lastActivityAt } } }";
    let whole = app.viewer.gql(query, json!({ "o": app.org })).await.data()["agents"]["data"].clone();
    let whole: Vec<Value> = whole.as_array().unwrap().clone();
    assert_eq!(whole.len(), all.agents.len());
    let id = |agent: &Value| agent["id"].as_i64().unwrap();
    let name = |agent: &Value| muster::base::folding::name(agent["name"].as_str().unwrap());
    let text = |agent: &Value, field: &str| agent[field].as_str().unwrap_or_default().to_owned();
    let rank = |agent: &Value| {
        ["ERROR", "SPAWNING", "RUNNING", "PAUSED", "STOPPING", "STOPPED"]
            .iter()
            .position(|status| agent["status"] == *status)
            .unwrap()
    };
    let mut random = Random::new(&[15]);
    for sort in ["NAME", "STATUS", "ACTIVITY", "CREATED"] {
        let mut wanted = whole.clone();
        match sort {
            "NAME" => wanted.sort_by_key(|agent| (name(agent), id(agent))),
            "STATUS" => wanted.sort_by_key(|agent| (rank(agent), name(agent), id(agent))),
            "ACTIVITY" => wanted.sort_by_key(|agent| Reverse((text(agent, "lastActivityAt"), id(agent)))),
            _ => wanted.sort_by_key(|agent| Reverse((text(agent, "createdAt"), id(agent)))),
        }
        let mut wanted: Vec<i64> = wanted.iter().map(id).collect();
        let variables = json!({ "o": app.org });
        let given = format!(", sort: {sort}");
        let found = walk(&app.viewer, ("agentFeed", &given), &variables, &mut random, async || ()).await;
        assert_eq!(found, wanted, "{sort}");
        wanted.reverse();
        let turned = if ["NAME", "STATUS"].contains(&sort) { "desc" } else { "asc" };
        let given = format!(", sort: {sort}, order: {turned}");
        let found = walk(&app.viewer, ("agentFeed", &given), &variables, &mut random, async || ()).await;
        assert_eq!(found, wanted, "{sort} {turned}");
    }
    let found = walk(
        &app.viewer,
        ("agentFeed", ", search: \"EMIL\""),
        &json!({ "o": app.org }),
        &mut random,
        async || (),
    )
    .await;
    assert_eq!(found, [all.agents[6], all.agents[7]]);
    let failed = json!({ "o": app.org, "status": ["ERROR"] });
    let found = walk(&app.viewer, ("agentFeed", ""), &failed, &mut random, async || ()).await;
    let wanted: BTreeSet<i64> = whole.iter().filter(|agent| agent["status"] == "ERROR").map(id).collect();
    assert!(!wanted.is_empty() && found.iter().copied().collect::<BTreeSet<_>>() == wanted);
}

#[tokio::test]
async fn channels_are_walked_by_agent_and_name() {
    let (app, all) = TestApp::populated(12).await;
    app.populate_other(3).await;
    app.execute("UPDATE channels SET scope = 'INTERNAL' WHERE id = $1", vec![all.channels[3].into()]).await;
    let (gone, name) = (all.agents[5], "Zoë’s \u{212B}");
    app.execute("UPDATE agents SET archived_at = 1 WHERE id = $1", vec![gone.into()]).await;
    let sql = "UPDATE channels SET name = $2, name_folded = $3, target = '@Help_Bot' WHERE id = $1";
    let folded = muster::base::folding::name(name);
    app.execute(sql, vec![all.channels[7].into(), name.into(), folded.into()]).await;
    let sql = "SELECT c.id FROM channels c JOIN agents a ON a.id = c.agent_id WHERE c.organization_id = $1 \
               ORDER BY CASE WHEN a.archived_at IS NULL THEN a.name_folded ELSE '' END, c.name_folded, c.id";
    let wanted: Vec<i64> = app.column(&sql.replace("$1", &app.org.to_string())).await;
    assert_eq!(wanted.len(), all.channels.len());
    let mut random = Random::new(&[16]);
    let variables = json!({ "o": app.org });
    let mut found = async |given: &str| {
        walk(&app.viewer, ("channelFeed", given), &variables, &mut random, async || ()).await
    };
    assert_eq!(found("").await, wanted);
    let of_first = found(&format!(", agentId: {}", all.agents[0])).await;
    assert_eq!(of_first.len(), 6, "every other one belongs to the first agent");
    for given in [", search: \"zoe\"", ", search: \"HELP_bot\""] {
        assert_eq!(found(given).await, [all.channels[7]], "{given}");
    }
    let agent: String = app.one("SELECT name FROM agents WHERE id = $1", vec![all.agents[0].into()]).await;
    let by_agent = found(&format!(", search: \"{agent}\"")).await;
    assert!(of_first.iter().all(|id| by_agent.contains(id)), "{by_agent:?}");
}

#[tokio::test]
async fn a_walk_through_conversations_is_not_disturbed_by_new_ones() {
    let (app, all) = TestApp::populated(12).await;
    app.populate_other(3).await;
    let mut random = Random::new(&[16]);
    let sql = "UPDATE contacts SET name = 'Wilhelmina', name_folded = 'wilhelmina' WHERE id = $1";
    app.execute(sql, vec![all.contacts[1].into()]).await;
    let query = "query($o: Id!) { conversations(orgId: $o, limit: 200) { data { id status agentId contactName pendingApprovals } } }";
    let whole = app.admin.gql(query, json!({ "o": app.org })).await.data()["conversations"]["data"].clone();
    let whole: Vec<Value> = whole.as_array().unwrap().clone();
    let ids = |keep: &dyn Fn(&Value) -> bool| -> Vec<i64> {
        whole.iter().filter(|it| keep(it)).map(|it| it["id"].as_i64().unwrap()).collect()
    };
    let feed = async |given: &str, random: &mut Random| {
        let agent = all.agents[0];
        let found =
            walk(&app.viewer, ("conversationFeed", given), &json!({ "o": app.org }), random, async || {
                app.conversation(agent).await;
            })
            .await;
        app.execute(
            "DELETE FROM conversations WHERE message_count = 0 AND organization_id = $1",
            vec![app.org.into()],
        )
        .await;
        found
    };
    assert_eq!(feed("", &mut random).await, ids(&|_| true));
    assert!(!ids(&|it| it["pendingApprovals"] != 0).is_empty());
    assert_eq!(feed(", waiting: true", &mut random).await, ids(&|it| it["pendingApprovals"] != 0));
    assert_eq!(feed(", waiting: false", &mut random).await, ids(&|it| it["pendingApprovals"] == 0));
    let given = ", search: \"WÍLHELMINA\"";
    assert_eq!(feed(given, &mut random).await, ids(&|it| it["contactName"] == "Wilhelmina"));
    let status = json!({ "o": app.org, "status": ["OPEN", "RESOLVED"] });
    let found = walk(&app.viewer, ("conversationFeed", ""), &status, &mut random, async || ()).await;
    assert_eq!(found, ids(&|it| it["status"] == "OPEN" || it["status"] == "RESOLVED"));
    let mut up = walk(
        &app.viewer,
        ("conversationFeed", ", order: asc"),
        &json!({ "o": app.org }),
        &mut random,
        async || (),
    )
    .await;
    up.reverse();
    assert_eq!(up, ids(&|_| true));
}

#[tokio::test]
async fn mine_are_those_that_one_started_watches_or_has_taken_over() {
    let (app, all) = TestApp::populated(3).await;
    let start = "mutation($o: Id!, $a: Id!) { startConversation(orgId: $o, input: { agentId: $a, title: \"Mine\" }) { id } }";
    let given = json!({ "o": app.org, "a": all.agents[0] });
    let started =
        app.operator.gql(start, given.clone()).await.data()["startConversation"]["id"].as_i64().unwrap();
    app.admin.gql(start, given).await.data();
    let [watched, taken, ..] = all.conversations[..] else { panic!() };
    let me = app.operator.user.unwrap();
    let watch = "INSERT INTO conversation_watches (organization_id, conversation_id, user_id, created_at) VALUES ($1, $2, $3, 0)";
    app.execute(watch, vec![app.org.into(), watched.into(), me.into()]).await;
    let take =
        "UPDATE conversations SET taken_over_by = $2, taken_over_at = 0, last_word_at = 0 WHERE id = $1";
    app.execute(take, vec![taken.into(), me.into()]).await;
    let feed = async |actor: &Actor, given: &str| {
        let query =
            format!("query($o: Id!) {{ conversationFeed(orgId: $o{given}) {{ total data {{ id }} }} }}");
        let feed = actor.gql(&query, json!({ "o": app.org })).await.data()["conversationFeed"].clone();
        let ids: BTreeSet<i64> =
            feed["data"].as_array().unwrap().iter().map(|it| it["id"].as_i64().unwrap()).collect();
        assert_eq!(feed["total"], ids.len());
        ids
    };
    assert_eq!(feed(&app.operator, ", mine: true").await, BTreeSet::from([started, watched, taken]));
    assert_eq!(feed(&app.operator, ", takenOver: true").await, BTreeSet::from([taken]));
    assert_eq!(feed(&app.operator, ", mine: false").await.len(), all.conversations.len() + 2 - 3);
    // A service token has nothing of its own.
    let token = app.token(&["agent.output.view"]).await;
    assert_eq!(feed(&token, ", mine: true").await, BTreeSet::new());
    assert_eq!(feed(&token, ", mine: false").await.len(), all.conversations.len() + 2);
    assert_eq!(feed(&token, ", unread: true").await, BTreeSet::new());
}

#[tokio::test]
async fn a_snoozed_approval_is_hidden_from_the_one_who_snoozed_it() {
    let (app, all) = TestApp::populated(3).await;
    let me = app.operator.user.unwrap();
    let (snoozed, assigned) = (all.approvals[0], all.approvals[1]);
    let until = app.clock.now().0 + 1000;
    let sql =
        "INSERT INTO approval_snoozes (organization_id, approval_id, user_id, until) VALUES ($1, $2, $3, $4)";
    app.execute(sql, vec![app.org.into(), snoozed.into(), me.into(), until.into()]).await;
    let sql = "UPDATE approvals SET assignee_id = $2 WHERE id = $1";
    app.execute(sql, vec![assigned.into(), me.into()]).await;
    let feed = async |actor: &Actor, given: &str| {
        let query = format!("query($o: Id!) {{ approvalFeed(orgId: $o{given}) {{ data {{ id }} }} }}");
        let data = actor.gql(&query, json!({ "o": app.org })).await.data()["approvalFeed"]["data"].clone();
        data.as_array().unwrap().iter().map(|it| it["id"].as_i64().unwrap()).collect::<BTreeSet<_>>()
    };
    let every: BTreeSet<i64> = all.approvals.iter().copied().collect();
    let but = |id| every.iter().copied().filter(|it| *it != id).collect::<BTreeSet<_>>();
    assert_eq!(feed(&app.operator, "").await, every);
    assert_eq!(feed(&app.operator, ", snoozed: false").await, but(snoozed));
    assert_eq!(feed(&app.operator, ", snoozed: true").await, BTreeSet::from([snoozed]));
    assert_eq!(feed(&app.admin, ", snoozed: false").await, every);
    assert_eq!(feed(&app.operator, &format!(", assigneeId: {me}")).await, BTreeSet::from([assigned]));
    let mine = "query($o: Id!) { overview(orgId: $o) { pendingApprovals { mine } } }";
    let mine = async |actor: &Actor| {
        actor.gql(mine, json!({ "o": app.org })).await.data()["overview"]["pendingApprovals"]["mine"].clone()
    };
    assert_eq!((mine(&app.operator).await, mine(&app.admin).await), (json!(1), json!(0)));
    app.clock.advance(std::time::Duration::from_secs(2));
    assert_eq!(feed(&app.operator, ", snoozed: false").await, every, "its time has come");
}

#[tokio::test]
async fn a_cursor_of_another_list_is_refused() {
    let app = TestApp::start().await;
    app.populate(3).await;
    let page = |given: &str| {
        format!(
            "query($o: Id!, $after: String) {{ agentFeed(orgId: $o, limit: 1, after: $after{given}) {{ next }} }}"
        )
    };
    let next = app.viewer.gql(&page(""), json!({ "o": app.org })).await.data()["agentFeed"]["next"].clone();
    assert!(next.is_string());
    let given = |after: &Value| json!({ "o": app.org, "after": after });
    app.viewer.gql(&page(""), given(&next)).await.data();
    for (args, after) in [
        (", sort: CREATED", &next),
        (", order: desc", &next),
        ("", &json!("x")),
        ("", &json!("W10")),
        ("", &json!("💥")),
    ] {
        let refused = app.viewer.gql(&page(args), given(after)).await;
        assert_eq!(refused.code(), "VALIDATION_FAILED", "{args} {after}");
        let at = &refused.body["errors"][0]["extensions"]["errors"][0];
        assert_eq!(at["pointer"], "/after", "{refused:?}");
    }
    // One of another organization leads nowhere but through one's own.
    let theirs = app.stranger.gql(&page(""), json!({ "o": app.other_org, "after": next })).await.data();
    assert_eq!(theirs["agentFeed"], json!({ "next": null }));
}
