//! The baseline of `docs/performance.md`: a hand-written service (axum + `sqlx::query_as` + serde) with the same queries and
//! JSON as `/v1`, without authentication, permissions, validation or schema.
//!
//! `baseline DATABASE_URL ADDRESS [PERMISSION,…]`: the last argument is the content of `viewer_permissions`.

mod rows;

use std::{net::SocketAddr, str::FromStr, sync::Arc};

use axum::{
    Json, Router,
    extract::{Path, Query, State},
    http::StatusCode,
    routing::get,
};
use rows::{Agent, Attachment, Counted, Message, Organization, Page};
use sqlx::{
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Muster's default number of connections.
const CONNECTIONS: u32 = 16;

#[derive(serde::Deserialize)]
struct Numbered {
    page: i64,
    limit: i64,
}

#[derive(serde::Deserialize)]
struct Cursor {
    before_seq: Option<String>,
    limit: Option<i64>,
}

/// The handlers for one kind of database: the same code with different types.
macro_rules! handlers {
    ($database:ident, $pool:ty, $keys:literal, $bind:expr) => {
        mod $database {
            use super::*;

            struct Shared {
                pool: $pool,
                permissions: Vec<String>,
            }
            type App = State<Arc<Shared>>;

            pub fn router(pool: $pool, permissions: Vec<String>) -> Router {
                let message = "/v1/org/{org_id}/agent/{agent_id}/conversation/{conversation_id}/message";
                Router::new()
                    .route("/v1/org/{org_id}", get(organization))
                    .route("/v1/org/{org_id}/agent", get(agents))
                    .route(message, get(messages))
                    .with_state(Arc::new(Shared { pool, permissions }))
            }

            async fn organization(State(app): App, Path(org): Path<i64>) -> Answer<Organization> {
                let found = sqlx::query_as::<_, Organization>(rows::ORGANIZATION).bind(org);
                let mut row = found.fetch_optional(&app.pool).await.map_err(failed)?.ok_or(StatusCode::NOT_FOUND)?;
                row.viewer_permissions = app.permissions.clone();
                Ok(Json(row))
            }

            async fn agents(
                State(app): App,
                Path(org): Path<i64>,
                Query(window): Query<Numbered>,
            ) -> Answer<Page<Agent>> {
                let found = sqlx::query_as::<_, Agent>(rows::AGENTS)
                    .bind(org)
                    .bind(window.limit)
                    .bind((window.page - 1) * window.limit);
                let data = found.fetch_all(&app.pool).await.map_err(failed)?;
                let total = data.first().map_or(0, |agent| agent.total);
                Ok(Json(Page { data, total, page: window.page, limit: window.limit }))
            }

            async fn messages(
                State(app): App,
                Path((org, agent, conversation)): Path<(i64, i64, i64)>,
                Query(cursor): Query<Cursor>,
            ) -> Answer<Counted<Message>> {
                let before = cursor.before_seq.and_then(|seq| seq.parse().ok()).unwrap_or(i64::MAX);
                let found = sqlx::query_as::<_, Message>(rows::MESSAGES)
                    .bind(org)
                    .bind(conversation)
                    .bind(agent)
                    .bind(before)
                    .bind(cursor.limit.unwrap_or(50));
                let mut data = found.fetch_all(&app.pool).await.map_err(failed)?;
                data.reverse();
                let total = data.first().and_then(|row| row.total).ok_or(StatusCode::NOT_FOUND)?;
                let keys: Vec<i64> = data.iter().map(|message| message.id).collect();
                let found = sqlx::query_as::<_, Attachment>(concat!(
                    "SELECT t.message_id, t.id, t.filename, t.mime_type, t.size_bytes, t.organization_id, \
                     t.uploaded_by_agent_id FROM attachments t WHERE t.organization_id = $1 AND t.message_id ",
                    $keys,
                    " ORDER BY t.id"
                ));
                let files = found.bind(org).bind($bind(keys)).fetch_all(&app.pool).await.map_err(failed)?;
                for file in files {
                    if let Some(message) = data.iter_mut().find(|message| message.id == file.message_id) {
                        message.attachments.push(file);
                    }
                }
                Ok(Json(Counted { data, total }))
            }
        }
    };
}

handlers!(sqlite, sqlx::SqlitePool, "IN (SELECT value FROM json_each($2))", |keys: Vec<i64>| {
    serde_json::Value::from(keys).to_string()
});
handlers!(postgres, sqlx::PgPool, "= ANY($2)", |keys: Vec<i64>| keys);

type Answer<T> = Result<Json<T>, StatusCode>;

#[expect(clippy::needless_pass_by_value, reason = "as map_err hands it in")]
fn failed(error: sqlx::Error) -> StatusCode {
    eprintln!("{error}");
    StatusCode::INTERNAL_SERVER_ERROR
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, url, address, rest @ ..] = arguments.as_slice() else {
        return Err("baseline DATABASE_URL ADDRESS [PERMISSION,…]".into());
    };
    let permissions = rest.first().map_or("", String::as_str).split(',').filter(|name| !name.is_empty());
    let permissions: Vec<String> = permissions.map(str::to_owned).collect();
    let router = if url.starts_with("sqlite:") {
        let options = SqliteConnectOptions::from_str(url)?.read_only(true).statement_cache_capacity(256);
        sqlite::router(
            SqlitePoolOptions::new().max_connections(CONNECTIONS).connect_with(options).await?,
            permissions,
        )
    } else {
        let options = PgConnectOptions::from_str(url)?.statement_cache_capacity(256);
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS).test_before_acquire(false);
        postgres::router(pool.connect_with(options).await?, permissions)
    };
    let listener = tokio::net::TcpListener::bind(address.parse::<SocketAddr>()?).await?;
    println!("baseline is serving on http://{}", listener.local_addr()?);
    axum::serve(listener, router).await?;
    Ok(())
}
