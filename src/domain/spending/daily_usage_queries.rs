//! SQL of the usage by day.

use jiff::civil::Date;

use super::daily_usage::Period;
use crate::{
    base::{enums::UsageGrouping, problem::Result},
    core::{
        access::Scope,
        store::sql::{RunSql as _, row, sql},
    },
};

/// The key of all rows beyond the 200 keys with the most records.
pub(super) const OTHERS: &str = "other";

row! {
    /// The usage of a day.
    #[derive(Default)]
    pub(super) struct UsageSum {
        /// A date, or for turns the number of days since 1970.
        day: String,
        /// Empty: none.
        key: String,
        label: Option<String>,
        turns: i64,
        unpriced: i64,
        input_tokens: i64,
        output_tokens: i64,
        cache_read_tokens: i64,
        cache_write_tokens: i64,
        cost_micro: i64,
    }
}

/// Sums up the rows of `counted` by day and key. At most 200 keys: hosts name the models, and could make up one for each
/// turn, so that an answer would fill the memory.
const SUM: &str = "), largest AS (SELECT key FROM counted GROUP BY key ORDER BY COUNT(*) DESC, key LIMIT 200) \
     SELECT day, CASE WHEN key IN (SELECT key FROM largest) THEN key ELSE 'other' END AS key, MAX(label) AS label, \
     CAST(SUM(turns) AS BIGINT) AS turns, CAST(SUM(unpriced) AS BIGINT) AS unpriced, \
     CAST(COALESCE(SUM(input_tokens), 0) AS BIGINT) AS input_tokens, \
     CAST(COALESCE(SUM(output_tokens), 0) AS BIGINT) AS output_tokens, \
     CAST(COALESCE(SUM(cache_read_tokens), 0) AS BIGINT) AS cache_read_tokens, \
     CAST(COALESCE(SUM(cache_write_tokens), 0) AS BIGINT) AS cache_write_tokens, \
     CAST(COALESCE(SUM(cost_micro), 0) AS BIGINT) AS cost_micro FROM counted GROUP BY 1, 2";

/// The turns that began between `$2` and `$3`, where the offset of the time zone is `$4`. `$counts`: whether a turn's
/// tokens and cost count.
macro_rules! of_turns {
    ($key:literal, $label:literal, $join:literal, $counts:literal) => {
        sql!(
            "WITH counted AS (SELECT ",
            $key,
            " AS key, ",
            $label,
            " AS label, CAST((t.started_at + $4) / 86400000 AS TEXT) AS day, 1 AS turns, CASE WHEN ",
            $counts,
            " AND t.ended_at IS NOT NULL AND t.cost_micro IS NULL THEN 1 ELSE 0 END AS unpriced, CASE WHEN ",
            $counts,
            " THEN t.input_tokens END AS input_tokens, CASE WHEN ",
            $counts,
            " THEN t.output_tokens END AS output_tokens, CASE WHEN ",
            $counts,
            " THEN t.cache_read_tokens END AS cache_read_tokens, CASE WHEN ",
            $counts,
            " THEN t.cache_write_tokens END AS cache_write_tokens, CASE WHEN ",
            $counts,
            " THEN t.cost_micro END AS cost_micro FROM turns t ",
            $join,
            " WHERE t.organization_id = $org AND t.started_at >= $2 AND t.started_at < $3",
            SUM
        )
    };
}

/// The measured usage from day `$2` until day `$3`.
macro_rules! of_model_days {
    ($key:literal, $label:literal, $join:literal) => {
        sql!(
            "WITH counted AS (SELECT ",
            $key,
            " AS key, ",
            $label,
            " AS label, d.day AS day, 0 AS turns, d.unpriced_calls AS unpriced, d.input_tokens AS input_tokens, \
             d.output_tokens AS output_tokens, d.cache_read_tokens AS cache_read_tokens, \
             d.cache_write_tokens AS cache_write_tokens, d.cost_micro AS cost_micro FROM model_days d ",
            $join,
            " WHERE d.organization_id = $org AND d.day >= $2 AND d.day < $3",
            SUM
        )
    };
}

/// The number of turns, with tokens and costs that `of_model_days` does not have.
pub(super) async fn of_turns(scope: &Scope, by: UsageGrouping, period: &Period) -> Result<Vec<UsageSum>> {
    let sql = match by {
        UsageGrouping::Agent => of_turns!(
            "CAST(t.agent_id AS TEXT)",
            "a.name",
            "JOIN agents a ON a.organization_id = t.organization_id AND a.id = t.agent_id",
            "t.unmeasured"
        ),
        UsageGrouping::Model => {
            of_turns!("COALESCE(t.model, '')", "CAST(NULL AS TEXT)", "", "t.unmeasured")
        }
        UsageGrouping::Channel => of_turns!(
            "COALESCE(CAST(c.channel_id AS TEXT), '')",
            "h.name",
            "JOIN conversations c ON c.organization_id = t.organization_id AND c.id = t.conversation_id \
             LEFT JOIN channels h ON h.organization_id = c.organization_id AND h.id = c.channel_id",
            "TRUE"
        ),
        UsageGrouping::Cause => of_turns!("t.cause", "CAST(NULL AS TEXT)", "", "TRUE"),
    };
    let Period { from, until, offset } = *period;
    scope.all(sql, [from.into(), until.into(), offset.into()]).await
}

/// The measured usage, without turns. None by channel and cause.
pub(super) async fn of_model_days(
    scope: &Scope,
    by: UsageGrouping,
    (since, before): (Date, Date),
) -> Result<Vec<UsageSum>> {
    let sql = match by {
        UsageGrouping::Agent => of_model_days!(
            "CAST(d.agent_id AS TEXT)",
            "a.name",
            "JOIN agents a ON a.organization_id = d.organization_id AND a.id = d.agent_id"
        ),
        UsageGrouping::Model => of_model_days!("d.model", "CAST(NULL AS TEXT)", ""),
        UsageGrouping::Channel | UsageGrouping::Cause => return Ok(Vec::new()),
    };
    scope.all(sql, [since.to_string().into(), before.to_string().into()]).await
}
