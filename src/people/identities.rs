//! Accounts elsewhere by which a person signs in.

use sea_orm::{ConnectionTrait, Statement};

use crate::{app::App, error::Result, ids::UserId};

/// Whether a person can sign in by another provider.
pub(super) async fn has(app: &App, user: UserId) -> Result<bool> {
    let sql = "SELECT 1 FROM user_identities WHERE user_id = $1 LIMIT 1";
    let found = Statement::from_sql_and_values(app.db.backend(), sql, [user.0.into()]);
    Ok(app.db.read().query_one_raw(found).await?.is_some())
}
