//! A key file is made for a new installation, and never beside a database that has sealed values: a new one would open none
//! of them, and lie where the right one belongs.

use anyhow::bail;
use sea_orm::DbErr;

use super::columns::SEALED;
use crate::core::{config::Config, store::Db};

/// Refuses a database whose sealed values belong to a key file that is not there.
///
/// # Errors
/// Says which file is missing, and what to do; the database is out of reach.
pub async fn require_presence(config: &Config, db: &Db) -> anyhow::Result<()> {
    if !config.lacks_keys() || !has_sealed(db).await? {
        return Ok(());
    }
    bail!(
        "the database has sealed values, and their key file is not at {} (keys_file). Copy it there, from where you keep it \
         or from another replica, or name it with keys_file (MUSTER_KEYS_FILE). None is made in its place: a new one would \
         open nothing",
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
            // An earlier version's database does not have the table, or the column.
            Ok(None) | Err(DbErr::Query(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
