//! `muster vacuum`: rewrites an SQLite database, so that its file no longer has deleted data.

use std::{fs, path::Path};

use serde_json::json;

use super::{Cli, Failure, Output, open};
use crate::{
    base::problem::Problem,
    core::store::{Db, backup::database_file},
};

pub(super) async fn vacuum(cli: &Cli) -> Result<Output, Failure> {
    let config = cli.settings()?;
    if !config.database.is_sqlite() {
        return Err(Failure::invalid(
            "This command is for SQLite. PostgreSQL reuses the space of deleted rows by itself: docs/personal-data.md says \
             what remains.",
        ));
    }
    open::require_file(&config)?;
    let file = database_file(&config)?;
    let before = size(&file)?;
    let db = Db::open(&config.database).await?;
    let is_log_empty = db.vacuum().await.map_err(Problem::from);
    db.close().await;
    if !is_log_empty? {
        return Err(Failure::new(
            "The file is rewritten, but a running service still reads its log, which may have deleted data: run the command \
             again.",
        ));
    }
    let now = size(&file)?;
    let text = format!("{}: {now} bytes, {before} before. It has no deleted data.", file.display());
    Ok(Output::with_text(json!({ "file": file, "bytes_before": before, "bytes": now }), text))
}

fn size(file: &Path) -> Result<u64, Failure> {
    Ok(fs::metadata(file).map_err(|error| Failure::of_file(file, &error))?.len())
}
