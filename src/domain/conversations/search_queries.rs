//! SQL of the search index (`migrations/README.md`).

use sea_orm::{
    ConnectionTrait, DbBackend, DbErr, QueryResult,
    sea_query::{Expr, Func, Query},
};

use crate::{
    base::{
        enums::{MessageKind, MessageRole},
        ids::{AgentId, ConversationId, MessageId},
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        access::Scope,
        store::{
            Tx,
            sql::{Row, RunSql as _, RunWritingSql, installation_sql, row, sql},
        },
    },
    domain::conversations::search_stages::Stages,
};

/// A query of the search index.
pub struct IndexQuery {
    /// In the index's query language.
    pub terms: String,
    /// Only messages before this position: a seq, or an id.
    pub below: i64,
    pub most: i64,
    /// For PostgreSQL.
    pub stages: Option<Stages>,
}

const TERMS: &str = "search_terms(s.tokens, s.organization_id, s.message_id, s.conversation_id, s.seq)";

/// Queries PostgreSQL's index stage by stage, from the newest messages on, until there are enough hits
/// (`search_stages.rs`). Reads only hits from the messages. `$place`, `$by`: the column that orders the index, and the
/// one that orders messages.
///
/// PostgreSQL's plan must not depend on its estimates for words: it knows how often each occurs but not which
/// occur together, and bad estimates led it to read whole conversations. So the index on terms must be the only
/// choice: `+ 0` rules out the others. Repeating a condition, which costs the index nothing, keeps the estimate
/// low for any table size, and so avoids JIT compilation of the statement.
macro_rules! postgres {
    ($columns:expr, $joins:expr, place: $place:literal, by: $by:literal) => {
        sql!(
            "WITH RECURSIVE walk (stage, below, found) AS ( \
                SELECT 1, $3::bigint, ARRAY[]::bigint[] \
                UNION ALL \
                SELECT CASE WHEN cardinality(f.found) < ($7::bigint[])[w.stage] THEN cardinality($5::text[]) ELSE w.stage + 1 END, \
                    ($6::bigint[])[w.stage], f.found \
                FROM walk w CROSS JOIN LATERAL (SELECT w.found || ARRAY( \
                    SELECT s.message_id FROM message_search s \
                    WHERE ",
            TERMS,
            " @@ (($5::text[])[w.stage]::tsquery && $2::text::tsquery) \
                    AND ",
            TERMS,
            " @@ ($5::text[])[w.stage]::tsquery \
                    AND s.organization_id + 0 = $org AND s.",
            $place,
            " < w.below \
                    ORDER BY s.",
            $place,
            " DESC LIMIT $4 - cardinality(w.found)) AS found OFFSET 0) f \
                WHERE cardinality(w.found) < $4 AND w.stage <= cardinality($5::text[])) \
            SELECT ",
            $columns,
            ", m.content::text AS content \
            FROM unnest((SELECT found FROM walk ORDER BY stage DESC LIMIT 1)) h (id) \
            JOIN messages m ON m.organization_id = $org AND m.id = h.id ",
            $joins,
            " ORDER BY m.",
            $by,
            " DESC"
        )
    };
}

/// Walks SQLite's index from the newest message on and reads messages only for hits. In FTS5, ordering by rowid is
/// free; `CROSS JOIN` keeps the planner from starting with the messages. `$place`: the column that orders messages.
macro_rules! sqlite {
    ($columns:expr, $joins:expr, place: $place:literal) => {
        sql!(
            "SELECT ",
            $columns,
            ", m.content AS content FROM messages_fts CROSS JOIN messages m ON m.id = messages_fts.rowid ",
            $joins,
            " WHERE messages_fts MATCH $2 AND m.organization_id = $org AND ",
            $place,
            " < $3 ORDER BY messages_fts.rowid DESC LIMIT $4"
        )
    };
}

const FOUND: &str = "m.seq, m.id, m.role, m.kind, m.created_at";

row! {
    /// A message found by the index.
    pub struct Found {
        seq: i64,
        id: MessageId,
        role: MessageRole,
        kind: MessageKind,
        created_at: Timestamp,
        /// As JSON.
        content: String,
    }
}

/// Passes the newest matches in a conversation to `read`, by descending seq, and returns its results.
pub async fn find_in_conversation<T>(
    scope: &Scope,
    wanted: IndexQuery,
    read: impl FnMut(Found) -> T,
) -> Result<Vec<T>> {
    let IndexQuery { terms, below, most, stages } = wanted;
    match stages {
        Some(Stages { places, floors, few }) => {
            let sql = postgres!(FOUND, "", place: "seq", by: "seq");
            let values = [terms.into(), below.into(), most.into(), places.into(), floors.into(), few.into()];
            scope.each(sql, values, read).await
        }
        None => {
            let sql = sqlite!(FOUND, "", place: "m.seq");
            scope.each(sql, [terms.into(), below.into(), most.into()], read).await
        }
    }
}

/// A message found by the index, and its conversation.
pub struct FoundAnywhere {
    pub message: Found,
    pub conversation_id: ConversationId,
    pub reference: String,
    pub title: Option<String>,
    pub agent_id: AgentId,
    pub agent_name: String,
}

impl Row for FoundAnywhere {
    fn read(row: &QueryResult) -> std::result::Result<Self, DbErr> {
        Ok(Self {
            message: Found::read(row)?,
            conversation_id: row.try_get_by("conversation_id")?,
            reference: row.try_get_by("reference")?,
            title: row.try_get_by("title")?,
            agent_id: row.try_get_by("agent_id")?,
            agent_name: row.try_get_by("agent_name")?,
        })
    }
}

const FOUND_ANYWHERE: &str = "m.seq, m.id, m.role, m.kind, m.created_at, c.id AS conversation_id, c.ref AS reference, c.title, \
     c.agent_id, a.name AS agent_name";
const CONVERSATION: &str = "JOIN conversations c ON c.organization_id = $org AND c.id = m.conversation_id \
     JOIN agents a ON a.organization_id = $org AND a.id = c.agent_id";

/// Passes the newest matches to `read`, by descending id, and returns its results.
pub async fn find_anywhere<T>(
    scope: &Scope,
    wanted: IndexQuery,
    read: impl FnMut(FoundAnywhere) -> T,
) -> Result<Vec<T>> {
    let IndexQuery { terms, below, most, stages } = wanted;
    match stages {
        Some(Stages { places, floors, few }) => {
            let sql = postgres!(FOUND_ANYWHERE, CONVERSATION, place: "message_id", by: "id");
            let values = [terms.into(), below.into(), most.into(), places.into(), floors.into(), few.into()];
            scope.each(sql, values, read).await
        }
        None => {
            let sql = sqlite!(FOUND_ANYWHERE, CONVERSATION, place: "messages_fts.rowid");
            scope.each(sql, [terms.into(), below.into(), most.into()], read).await
        }
    }
}

/// A message's words in the index.
pub struct Words {
    pub message: MessageId,
    pub conversation: ConversationId,
    pub seq: i64,
    pub tokens: Vec<String>,
}

/// Adds messages' words, in one statement.
pub async fn insert_words(tx: &Tx, messages: impl Iterator<Item = Words>) -> Result<()> {
    let mut insert = Query::insert();
    if tx.scope.core.db.backend() == DbBackend::Postgres {
        let columns = ["organization_id", "message_id", "conversation_id", "seq", "tokens"];
        insert.into_table("message_search").columns(columns);
        for Words { message, conversation, seq, tokens } in messages {
            let [org, message, conversation, seq] =
                [tx.scope.org.0, message.0, conversation.0, seq].map(Expr::value);
            let tokens = Func::cust("array_to_tsvector").arg(Expr::value(tokens));
            insert.values_panic([org, message, conversation, seq, tokens.into()]);
        }
    } else {
        insert.into_table("messages_fts").columns(["rowid", "tokens"]);
        for Words { message, tokens, .. } in messages {
            insert.values_panic([Expr::value(message.0), Expr::value(tokens.join(" "))]);
        }
    }
    ConnectionTrait::execute(tx.connection(), &insert).await?;
    Ok(())
}

/// Removes a message's words.
pub async fn delete_words(tx: &Tx, message: MessageId) -> Result<()> {
    if tx.scope.core.db.backend() == DbBackend::Postgres {
        let sql = sql!("DELETE FROM message_search WHERE organization_id = $org AND message_id = $2");
        tx.execute(sql, [message.into()]).await?;
    } else {
        let sql = installation_sql!("DELETE FROM messages_fts WHERE rowid = $1");
        RunWritingSql::execute(tx.connection(), sql, [message.into()]).await?;
    }
    Ok(())
}

/// The number of segments of SQLite's index.
pub async fn segments(core: &Core) -> Result<i64> {
    let sql = installation_sql!("SELECT COUNT(DISTINCT segid) FROM messages_fts_idx");
    Ok(core.db.installation().scalar(sql, []).await?.unwrap_or(0))
}

/// Writes this number of pages of merged segments of SQLite's index. A negative number includes segments of any size.
pub async fn merge_segments(core: &Core, pages: i64) -> Result<()> {
    let sql = installation_sql!("INSERT INTO messages_fts (messages_fts, rank) VALUES ('merge', $1)");
    core.db.installation().execute(sql, [pages.into()]).await?;
    Ok(())
}
