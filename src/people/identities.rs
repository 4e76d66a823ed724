//! Accounts elsewhere by which a person signs in.

use crate::{app::App, error::Result, ids::UserId};

/// Whether a person can sign in by another provider.
pub(super) async fn has(app: &App, user: UserId) -> Result<bool> {
    let sql = "SELECT 1 FROM user_identities WHERE user_id = $1 LIMIT 1";
    Ok(app.db.one(sql.to_owned(), vec![user.0.into()]).await?.is_some())
}
