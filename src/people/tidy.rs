//! What nobody needs any more: links and challenges that are over, counters of failures long past.

use std::time::Duration;

use super::throttle::FORGOTTEN;
use crate::{app::App, error::Result};

/// How long a link is remembered after its end.
const LINKS_KEPT: Duration = Duration::from_hours(7 * 24);

/// Clears away; how many rows went.
///
/// # Errors
/// The database is out of reach.
pub async fn tidy(app: &App) -> Result<u64> {
    let now = app.clock.now();
    let mut gone = 0;
    for (sql, before) in [
        ("DELETE FROM sign_in_challenges WHERE expires_at <= $1", now),
        ("DELETE FROM email_tokens WHERE expires_at <= $1", now.minus(LINKS_KEPT)),
        ("DELETE FROM sign_in_throttle WHERE updated_at <= $1 AND blocked_until <= $1", now.minus(FORGOTTEN)),
    ] {
        gone += app.db.execute(sql, vec![before.0.into()]).await?;
    }
    Ok(gone)
}
