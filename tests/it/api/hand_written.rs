//! The hand-written service that `docs/performance.md` compares with returns exactly the same JSON as `/v1`. If
//! it returned less, the comparison would be worthless.

#[path = "../../../crates/bench/src/rows.rs"]
#[expect(dead_code, reason = "attachments are read only by the example")]
mod rows;

use muster::{
    base::time::Timestamp,
    seed::{self, Volume},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::harness::TestApp;

/// The rows found by one of the yardstick's queries, on either database.
macro_rules! found {
    ($app:expr, $row:ty, $sql:expr $(, $value:expr)*) => {
        if $app.database.get_database_backend() == sea_orm::DbBackend::Postgres {
            let pool = $app.database.get_postgres_connection_pool();
            sqlx::query_as::<_, $row>($sql)$(.bind($value))*.fetch_all(pool).await.unwrap()
        } else {
            let pool = $app.database.get_sqlite_connection_pool();
            sqlx::query_as::<_, $row>($sql)$(.bind($value))*.fetch_all(pool).await.unwrap()
        }
    };
}

const VOLUME: Volume = Volume {
    agents: 8,
    conversations: 3,
    messages: 200,
    approvals: 4,
    members: 0,
    one_conversation: true,
    at_rest: false,
    until: Timestamp(1_767_225_600_000),
};

/// Leaves out what changes with time.
fn shown(answer: impl Serialize) -> Value {
    let mut answer = json!(answer);
    for record in answer["data"].as_array_mut().into_iter().flatten() {
        record.as_object_mut().unwrap().remove("uptime_seconds");
    }
    answer
}

#[tokio::test]
async fn the_organization_matches_the_service() {
    let app = TestApp::start().await;
    let token = app.token(&["organization.view"]).await;
    let mut row = found!(app, rows::Organization, rows::ORGANIZATION, app.org).remove(0);
    row.viewer_permissions = vec!["organization.view".to_owned()];
    let theirs = token.get(&format!("/v1/org/{}", app.org)).await.expect(200);
    assert_eq!(shown(row), shown(theirs));
}

#[tokio::test]
async fn agents_and_messages_match_the_service() {
    let app = TestApp::start().await;
    let made = seed::run(&app.scope(), VOLUME).await.unwrap();
    let data = found!(app, rows::Agent, rows::AGENTS, app.org, 5_i64, 0_i64);
    let total = data[0].total;
    let theirs = app.owner.get(&format!("/v1/org/{}/agent?page=1&limit=5", app.org)).await.expect(200);
    assert_eq!(shown(rows::Page { data, total, page: 1, limit: 5 }), shown(theirs));
    let (agent, conversation) = (made.first_agent.unwrap(), made.first_conversation.unwrap());
    let mut data = found!(app, rows::Message, rows::MESSAGES, app.org, conversation, agent, 100_i64, 50_i64);
    data.reverse();
    let total = data[0].total.unwrap();
    let path = format!("/v1/org/{}/agent/{agent}/conversation/{conversation}/message", app.org);
    let theirs = app.owner.get(&format!("{path}?before_seq=100&limit=50")).await.expect(200);
    assert_eq!(shown(rows::Counted { data, total }), shown(theirs));
}
