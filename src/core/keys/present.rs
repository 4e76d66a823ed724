//! A key file is created only for a new installation, never for a database with sealed values: the new keys could open
//! none of them, and would take the place of the right ones.

use anyhow::bail;
use sea_orm::DbErr;

use super::columns::SEALED;
use crate::core::{config::Config, store::Db};

/// Fails if the database has sealed values but the key file is missing.
///
/// # Errors
/// Says which file is missing and what to do; or the database can't be reached.
pub async fn require_presence(config: &Config, db: &Db) -> anyhow::Result<()> {
    if !config.lacks_keys() || !has_sealed(db).await? {
        return Ok(());
    }
    bail!(
        "the database has sealed values, but their key file is not at {} (keys_file). Copy it there from your backup or \
         from another replica, or set keys_file (MUSTER_KEYS_FILE). No new one is created, because it could not open \
         them",
        config.keys_file.display()
    )
}

/// Whether anything is sealed.
async fn has_sealed(db: &Db) -> Result<bool, DbErr> {
    for column in SEALED {
        let (table, name) = (column.table, column.column);
        let sql = format!("SELECT 1 FROM {table} WHERE length({name}) > 0 LIMIT 1");
        match db.one(sql, vec![]).await {
            Ok(Some(_)) => return Ok(true),
            // An earlier version's database lacks the table or the column.
            Ok(None) | Err(DbErr::Query(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
