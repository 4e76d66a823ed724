//! SQL of the load over time.

use sea_orm::Value;

use super::load_history::PeriodLoad;
use crate::{
    base::{ids::ServerId, problem::Result, time::Timestamp},
    core::{
        access::Scope,
        store::{
            Tx,
            sql::{RunSql as _, RunWritingSql as _, row, sql},
        },
    },
};

row! {
    /// The averages and maxima of a period.
    pub(super) struct LoadRow {
        period_at: Timestamp,
        cpu_avg: Option<f64>,
        cpu_max: Option<f64>,
        ram_avg: Option<f64>,
        ram_max: Option<f64>,
        load_avg: Option<f64>,
        load_max: Option<f64>,
    }
}

/// Stores a period. If the clock was set back, the one that is there stays.
pub(super) async fn store_period(tx: &Tx, server: ServerId, period: &PeriodLoad) -> Result<()> {
    let sql = sql!(
        "INSERT INTO server_loads (organization_id, server_id, period_at, cpu_avg, cpu_max, ram_avg, ram_max, \
         load_avg, load_max) VALUES ($org, $2, $3, $4, $5, $6, $7, $8, $9) \
         ON CONFLICT (organization_id, server_id, period_at) DO NOTHING"
    );
    let [cpu, ram, load] =
        period.measures.map(|measure| -> [Value; 2] { [measure.average().into(), measure.maximum().into()] });
    let mut values: Vec<Value> = vec![server.into(), period.begins.into()];
    values.extend([cpu, ram, load].into_iter().flatten());
    tx.execute(sql, values).await?;
    Ok(())
}

/// The server, unless it is deleted.
pub(super) async fn existing(scope: &Scope, server: ServerId) -> Result<Option<ServerId>> {
    let sql = sql!("SELECT id FROM servers WHERE organization_id = $org AND id = $2 AND archived_at IS NULL");
    scope.scalar(sql, [server.into()]).await
}

/// The load between two instants, oldest first, in periods of `step` milliseconds.
pub(super) async fn load_between(
    scope: &Scope,
    server: ServerId,
    (since, before): (Timestamp, Timestamp),
    step: i64,
) -> Result<Vec<LoadRow>> {
    let sql = sql!(
        "SELECT period_at / $5 * $5 AS period_at, AVG(cpu_avg) AS cpu_avg, MAX(cpu_max) AS cpu_max, \
         AVG(ram_avg) AS ram_avg, MAX(ram_max) AS ram_max, AVG(load_avg) AS load_avg, MAX(load_max) AS load_max \
         FROM server_loads WHERE organization_id = $org AND server_id = $2 AND period_at >= $3 AND period_at < $4 \
         GROUP BY 1 ORDER BY 1"
    );
    scope.all(sql, [server.into(), since.into(), before.into(), step.into()]).await
}

/// Deletes all periods of a server.
pub(super) async fn delete_of(tx: &Tx, server: ServerId) -> Result<()> {
    let sql = sql!("DELETE FROM server_loads WHERE organization_id = $org AND server_id = $2");
    tx.execute(sql, [server.into()]).await?;
    Ok(())
}
