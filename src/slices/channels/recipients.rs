//! Whom a failing channel alerts.

use sea_orm::{
    ActiveModelTrait, ConnectionTrait, DbBackend, IntoActiveModel, QueryFilter, Set, sea_query::Expr,
};
use serde_json::json;

use super::entity::channels;
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::UserId,
        problem::Result,
    },
    core::{
        Event,
        store::{Tx, held},
    },
};

/// Stops alerting a person about failing channels, because they left the organization.
///
/// # Errors
/// The database rejects a statement.
pub async fn forget_recipient(tx: &Tx, user: UserId) -> Result<()> {
    // Locks only these channels: someone may be working on any other.
    let names_them = match tx.connection().get_database_backend() {
        DbBackend::Postgres => "CAST(alert_recipient_user_ids AS JSONB) @> CAST($1 AS TEXT)::JSONB",
        _ => "EXISTS (SELECT 1 FROM json_each(alert_recipient_user_ids) WHERE value = CAST(? AS BIGINT))",
    };
    let names_them = Expr::cust_with_values(names_them, [user.0.to_string()]);
    let rows = held(tx.scope.find::<channels::Entity>().filter(names_them)).all(tx.connection()).await?;
    for channel in rows {
        let recipients = channel.alert_recipient_user_ids.as_array().cloned().unwrap_or_default();
        let left: Vec<_> = recipients.into_iter().filter(|id| id.as_i64() != Some(user.0)).collect();
        let mut row = channel.into_active_model();
        row.alert_recipient_user_ids = Set(json!(left));
        row.updated_at = Set(tx.now);
        let id = row.update(tx.connection()).await?.id;
        tx.announce(Event::new(tx.scope.org, ChangeOp::Updated, RecordKind::Channel, id));
    }
    Ok(())
}
