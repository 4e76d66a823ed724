//! The members that a failing channel alerts.

use sea_orm::{ActiveModelTrait, IntoActiveModel, QueryFilter, Set};
use serde_json::json;

use super::{entity::channels, queries::alerts};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::UserId,
        problem::Result,
    },
    core::{
        Event,
        store::{Tx, for_update},
    },
};

/// Stops alerting a person who left the organization about failing channels.
pub async fn forget_recipient(tx: &Tx, user: UserId) -> Result<()> {
    // Locks only these channels: others may be in use.
    let found = tx.scope.find::<channels::Entity>().filter(alerts(tx, user));
    let rows = for_update(found).all(tx.connection()).await?;
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
