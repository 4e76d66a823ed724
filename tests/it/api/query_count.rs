//! The law of statements: a list costs the same number of them with many rows as with few, for any relations
//! it shows.

use serde_json::{Value, json};

use crate::harness::{Population, TestApp, Walker};

/// Lists that don't grow with this test's data: the caller's own sessions and chats, the settings, the log of what was
/// done through the service, permissions, and the profiles and prices that the service knows.
const CONSTANT: &[&str] = &[
    "auditLog",
    "linkedChats",
    "modelPrices",
    "permissions",
    "profiles",
    "sessions",
    "signInProviders",
    "viewerCan",
];

/// Lists that a vendor is asked for.
const AT_VENDORS: &[&str] = &["channelCalendars", "channelFolders", "channelRepositories"];

/// How far two counts of the same may be apart. Questions about several relations go out as one if they are asked in the same
/// moment, which depends on when the answers came before them. One for each row would be many more.
const BY_CHANCE: u64 = 2;

#[tokio::test]
async fn few_and_many_rows_cost_the_same_number_of_statements() {
    let walker = Walker::new();
    let app = TestApp::start_with(|config| {
        config.limits.graphql_complexity = usize::MAX;
        config.limits.graphql_depth = 40;
    })
    .await;
    // Enough rows that every kind occurs: some have relations that others lack.
    let mut all = app.populate(6).await;
    let known = known(app.org, &all);
    let mut lists = walker.lists();
    lists.retain(|field| !AT_VENDORS.contains(&field.name.as_str()));
    assert!(lists.len() > 3, "{}", lists.len());
    let documents: Vec<String> = lists.iter().map(|field| walker.fullest(field, 2, &known)).collect();
    let mut few = Vec::new();
    for document in &documents {
        few.push(cost(&app, document).await);
    }
    app.grow(&mut all, 24).await;
    for ((field, document), (statements, size)) in lists.iter().zip(&documents).zip(few) {
        let (statements_of_many, size_of_many) = cost(&app, document).await;
        let more = statements_of_many.abs_diff(statements);
        assert!(more <= BY_CHANCE, "{}: {statements}, {statements_of_many}: {document}", field.name);
        let constant = CONSTANT.contains(&field.name.as_str());
        assert_eq!(size_of_many <= size, constant, "{}: the answer must grow: {document}", field.name);
    }
}

/// The arguments of a list in this test.
pub fn known(org: i64, all: &Population) -> impl Fn(&str, &str) -> Option<String> + use<> {
    let (agent, conversation, channel) = (all.agents[0], all.conversations[0], all.channels[0]);
    let (skill, server) = (all.skills[0], all.servers[0]);
    move |name, ty| match (name, ty.ends_with('!')) {
        ("orgId", _) => Some(org.to_string()),
        ("page", _) => Some("1".into()),
        ("limit", _) => Some("100".into()),
        ("onlyPending", true) => Some("false".into()),
        // Of names, and of messages.
        ("q", true) => Some("\"agent\"".into()),
        ("q", false) => Some("\"message\"".into()),
        ("agentId", true) => Some(agent.to_string()),
        ("conversationId", true) => Some(conversation.to_string()),
        ("channelId", true) => Some(channel.to_string()),
        ("skillId", true) => Some(skill.to_string()),
        ("serverId", true) => Some(server.to_string()),
        _ => None,
    }
}

/// The number of statements and the size of the answer. Background writes (the last use of a session) may fall
/// into a measurement, so take the minimum of several.
async fn cost(app: &TestApp, document: &str) -> (u64, usize) {
    let (mut least, mut size) = (u64::MAX, 0);
    for _ in 0..8 {
        let before = app.statements();
        let answer = app.owner.gql(document, json!({})).await;
        let spent = app.statements() - before;
        assert_eq!(answer.body["errors"], Value::Null, "{document}");
        least = least.min(spent);
        size = answer.text.len();
    }
    (least, size)
}
