//! Seeded data: the same for the same numbers, and as complete as what operations create.

use muster::{
    base::{ids::OrgId, time::Timestamp},
    seed::{self, Seeded, Volume},
};
use serde_json::json;

use crate::{harness::TestApp, laws::folding};

const VOLUME: Volume = Volume {
    agents: 12,
    conversations: 30,
    messages: 900,
    approvals: 40,
    members: 9,
    one_conversation: false,
    at_rest: false,
    until: Timestamp(1_767_225_600_000),
};

async fn seeded(app: &TestApp, volume: Volume) -> Seeded {
    seed::run(&app.scope(), volume).await.unwrap()
}

async fn count(app: &TestApp, sql: &str) -> i64 {
    app.one(sql, vec![]).await
}

#[tokio::test]
async fn equal_numbers_give_equal_rows() {
    let (one, other) = (TestApp::start().await, TestApp::start().await);
    seeded(&one, VOLUME).await;
    seeded(&other, VOLUME).await;
    for sql in [
        "SELECT name || status || tokens_used FROM agents ORDER BY id",
        "SELECT name || transport || is_active FROM channels ORDER BY id",
        "SELECT ref || title || status || message_count || last_message_preview FROM conversations ORDER BY id",
        "SELECT id || kind || content || created_at FROM messages ORDER BY id",
        "SELECT kind || status || title || created_at FROM approvals ORDER BY id",
    ] {
        let (left, right) = (one.column::<String>(sql).await, other.column::<String>(sql).await);
        assert!(!left.is_empty(), "{sql}");
        assert_eq!(left, right, "{sql}");
    }
}

#[tokio::test]
async fn the_seed_creates_the_requested_amounts_on_a_small_plan() {
    let app = TestApp::start().await;
    app.execute("UPDATE organizations SET plan = 'FREE'", vec![]).await;
    let made = seeded(&app, VOLUME).await;
    assert_eq!((made.agents, made.conversations, made.messages, made.approvals), (12, 30, 900, 40));
    assert_eq!(made.members, 9);
    let unable = "SELECT COUNT(*) FROM members m JOIN users u ON u.id = m.user_id WHERE u.password_hash IS NULL AND \
                  u.email LIKE 'member-%'";
    assert_eq!(count(&app, unable).await, 9, "no one can sign in as them");
    for (table, expected) in [("agents", 12), ("conversations", 30), ("messages", 900), ("approvals", 40)] {
        assert_eq!(count(&app, &format!("SELECT COUNT(*) FROM {table}")).await, expected, "{table}");
    }
    let waiting =
        "SELECT COUNT(*) FROM approvals WHERE status = 'PENDING' AND kind IN ('QUESTION', 'ACTION')";
    assert!(count(&app, waiting).await >= 2);
    let limits = app.owner.get(&format!("/v1/org/{}", app.org)).await.expect(200);
    assert_eq!(limits["limits"]["max_agents"], json!(12), "the plan is widened");
}

#[tokio::test]
async fn turns_and_conversations_sum_up_what_is_said() {
    let app = TestApp::start().await;
    seeded(&app, VOLUME).await;
    for wrong in [
        "messages WHERE turn_id IS NULL AND kind <> 'APPROVAL'",
        "turns t WHERE state <> 'DONE' OR input_tokens < 1 OR first_seq <> \
         (SELECT MIN(m.seq) FROM messages m WHERE m.turn_id = t.id) OR last_seq <> \
         (SELECT MAX(m.seq) FROM messages m WHERE m.turn_id = t.id)",
        "conversations c LEFT JOIN messages m ON m.organization_id = c.organization_id \
         AND m.conversation_id = c.id AND m.seq = c.last_seq WHERE c.message_count <> c.last_seq \
         OR c.message_count <> (SELECT COUNT(*) FROM messages n WHERE n.conversation_id = c.id) \
         OR (c.message_count > 0 AND (m.id IS NULL OR m.role <> c.last_message_role \
             OR m.kind <> c.last_message_kind OR m.created_at <> c.last_activity_at))",
        "messages a JOIN messages b ON b.conversation_id = a.conversation_id \
         AND b.seq = a.seq + 1 WHERE b.created_at < a.created_at",
        "conversations c WHERE (c.status = 'PENDING') <> EXISTS (SELECT 1 \
         FROM approvals p WHERE p.conversation_id = c.id AND p.status = 'PENDING')",
        "messages m WHERE (m.delivery_status IS NOT NULL) <> EXISTS (SELECT 1 FROM deliveries d \
         WHERE d.message_id = m.id AND d.channel_id = m.via_channel_id AND d.status = m.delivery_status \
         AND d.attempts = m.delivery_attempts AND (d.status = 'FAILED') = (d.text IS NOT NULL))",
        "agents a WHERE a.tokens_used <> (SELECT COALESCE(SUM(t.input_tokens + t.output_tokens \
         + t.cache_read_tokens + t.cache_write_tokens), 0) FROM turns t WHERE t.agent_id = a.id) \
         OR a.cost_micro <> (SELECT COALESCE(SUM(t.cost_micro), 0) FROM turns t WHERE t.agent_id = a.id)",
        "channels WHERE transport NOT IN ('EMAIL', 'SLACK', 'TELEGRAM', 'DISCORD', 'WEBHOOK')",
    ] {
        assert_eq!(count(&app, &format!("SELECT COUNT(*) FROM {wrong}")).await, 0, "{wrong}");
    }
    assert!(count(&app, "SELECT COUNT(*) FROM turns").await > 200);
    assert!(count(&app, "SELECT COUNT(*) FROM messages WHERE delivery_status = 'FAILED'").await > 0);
    let since = "1762041600000"; // 2025-11-02
    let spent = format!("SELECT CAST(SUM(cost_micro) AS BIGINT) FROM turns WHERE started_at >= {since}");
    let query = "query($o: Id!) { usage(orgId: $o, by: AGENT, since: \"2025-11-02\", before: \"2026-01-02\") \
                 { costMicro } }";
    let days = app.owner.gql(query, json!({ "o": app.org })).await.data();
    let micro = |day: &serde_json::Value| day["costMicro"].as_str().unwrap().parse::<i64>().unwrap();
    let shown: i64 = days["usage"].as_array().unwrap().iter().map(micro).sum();
    assert!(shown > 0);
    assert_eq!(shown, count(&app, &spent).await);
}

#[tokio::test]
async fn one_conversation_gets_nearly_all_messages() {
    let app = TestApp::start().await;
    let made = seeded(&app, Volume { one_conversation: true, ..VOLUME }).await;
    assert_eq!(count(&app, "SELECT MAX(message_count) FROM conversations").await, 900 - 29 * 7);
    let sql = "SELECT message_count FROM conversations WHERE id = $1";
    assert_eq!(app.one::<i64>(sql, vec![made.first_conversation.into()]).await, 900 - 29 * 7);
}

#[tokio::test]
async fn at_rest_nothing_runs_and_what_failed_says_why() {
    let app = TestApp::start().await;
    seeded(&app, Volume { agents: 60, at_rest: true, ..VOLUME }).await;
    let runs =
        "SELECT COUNT(*) FROM agents WHERE status NOT IN ('STOPPED', 'ERROR') OR started_at IS NOT NULL";
    assert_eq!(count(&app, runs).await, 0);
    assert_eq!(count(&app, "SELECT COUNT(*) FROM servers WHERE status <> 'OFFLINE'").await, 0);
    let odd = "SELECT COUNT(*) FROM agents WHERE (status = 'ERROR') <> (status_reason IS NOT NULL)";
    assert_eq!(count(&app, odd).await, 0);
    assert!(count(&app, "SELECT COUNT(*) FROM agents WHERE status = 'ERROR'").await > 0);
}

#[tokio::test]
async fn a_second_run_adds_to_the_first() {
    let app = TestApp::start().await;
    seeded(&app, VOLUME).await;
    seeded(&app, VOLUME).await;
    assert_eq!(count(&app, "SELECT COUNT(*) FROM agents").await, 24);
    assert_eq!(count(&app, "SELECT COUNT(DISTINCT name) FROM agents").await, 24);
    assert_eq!(count(&app, "SELECT COUNT(*) FROM messages").await, 1_800);
    folding::is_kept(&app, "seeding").await;
    // Records created by operations afterwards don't collide with seeded ids.
    app.agent().await;
}

#[tokio::test]
async fn seeded_words_are_found() {
    let app = TestApp::start().await;
    let made = seeded(&app, VOLUME).await;
    let (agent, conversation) = (made.first_agent.unwrap(), made.first_conversation.unwrap());
    let path = format!("/v1/org/{}/agent/{agent}/conversation/{conversation}/message", app.org);
    let page = app.viewer.get(&path).await.expect(200);
    let (text, seq) = page["data"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|message| Some((message["content"]["text"].as_str()?, message["seq"].as_i64()?)))
        .unwrap();
    let words: Vec<&str> =
        text.split(' ').filter(|word| word.chars().all(char::is_alphanumeric)).take(3).collect();
    let found = app.viewer.get(&format!("{path}/search?q={}", words.join("%20"))).await.expect(200);
    assert!(found["data"].as_array().unwrap().iter().any(|hit| hit["seq"] == seq), "{words:?} in {text}");
}

#[tokio::test]
async fn an_unknown_organization_gets_nothing() {
    let app = TestApp::start().await;
    app.expects_failures();
    let nowhere = muster::core::access::Scope::system(&app.core, OrgId(999_999));
    assert!(seed::run(&nowhere, VOLUME).await.is_err());
    assert_eq!(count(&app, "SELECT COUNT(*) FROM agents").await, 0);
}
