//! SQL of signing in.

use crate::{
    base::{
        ids::{LinkedAccountId, SessionId, UserId},
        problem::Result,
        time::Timestamp,
    },
    core::{
        Core,
        access::token::TokenHash,
        store::{
            Transaction,
            sql::{InstallationSql, RunSql, RunWritingSql, installation_sql, row},
        },
    },
};

/// Whether the account has had a session from this IP address.
pub(super) async fn has_session_from(core: &Core, user: Option<UserId>, ip: String) -> Result<bool> {
    let sql = installation_sql!("SELECT user_id FROM sessions WHERE user_id = $1 AND ip = $2 LIMIT 1");
    let user = user.map_or(0, |user| user.0);
    Ok(core.db.installation().scalar::<UserId>(sql, [user.into(), ip.into()]).await?.is_some())
}

/// Whether the first session of this one's family was opened after `since`.
pub(super) async fn is_since(core: &Core, session: SessionId, since: Timestamp) -> Result<bool> {
    let sql = installation_sql!(
        "SELECT f.id FROM sessions s JOIN sessions f ON f.user_id = s.user_id AND f.family = s.family \
         WHERE s.id = $1 AND f.generation = 0 AND f.created_at > $2"
    );
    let found = core.db.installation().scalar::<SessionId>(sql, [session.into(), since.into()]).await?;
    Ok(found.is_some())
}

/// Adds a challenge.
pub(super) async fn insert_challenge(
    runner: &impl RunWritingSql<Sql = InstallationSql>,
    user: UserId,
    (kind, hash): (&str, TokenHash),
    (now, expires_at): (Timestamp, Timestamp),
) -> Result<()> {
    let sql = installation_sql!(
        "INSERT INTO sign_in_challenges (user_id, kind, token_hash, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)"
    );
    let hash = hash.as_bytes().to_vec();
    runner.execute(sql, [user.into(), kind.into(), hash.into(), now.into(), expires_at.into()]).await?;
    Ok(())
}

/// The person of an open challenge.
pub(super) async fn challenged(
    runner: &impl RunSql<Sql = InstallationSql>,
    (kind, hash): (&str, TokenHash),
    now: Timestamp,
) -> Result<Option<UserId>> {
    let sql = installation_sql!(
        "SELECT user_id FROM sign_in_challenges WHERE token_hash = $1 AND kind = $2 AND used_at IS NULL AND expires_at > $3"
    );
    runner.scalar(sql, [hash.as_bytes().to_vec().into(), kind.into(), now.into()]).await
}

/// Marks a challenge as used. Returns the number of changed rows: 0 or 1.
pub(super) async fn use_challenge(tx: &Transaction, hash: TokenHash, now: Timestamp) -> Result<u64> {
    let sql = installation_sql!(
        "UPDATE sign_in_challenges SET used_at = $1 WHERE token_hash = $2 AND used_at IS NULL"
    );
    tx.execute(sql, [now.into(), hash.as_bytes().to_vec().into()]).await
}

/// Deletes a person's challenges.
pub async fn delete_challenges(tx: &Transaction, user: UserId) -> Result<()> {
    let sql = installation_sql!("DELETE FROM sign_in_challenges WHERE user_id = $1");
    tx.execute(sql, [user.into()]).await?;
    Ok(())
}

/// Stores the time step of an accepted code, unless this or a later step was accepted before. Returns the number of
/// changed rows: 0 or 1.
pub(super) async fn take_step(tx: &Transaction, user: UserId, step: i64) -> Result<u64> {
    let sql = installation_sql!(
        "UPDATE users SET totp_last_step = $1 WHERE id = $2 AND COALESCE(totp_last_step, -1) < $1"
    );
    tx.execute(sql, [step.into(), user.into()]).await
}

/// Adds a recovery code.
pub(super) async fn insert_recovery_code(
    tx: &Transaction,
    user: UserId,
    hash: Vec<u8>,
    now: Timestamp,
) -> Result<()> {
    let sql =
        installation_sql!("INSERT INTO recovery_codes (user_id, code_hash, created_at) VALUES ($1, $2, $3)");
    tx.execute(sql, [user.into(), hash.into(), now.into()]).await?;
    Ok(())
}

/// Marks a recovery code as used. Returns the number of changed rows: 0 or 1.
pub(super) async fn use_recovery_code(
    tx: &Transaction,
    user: UserId,
    hash: Vec<u8>,
    now: Timestamp,
) -> Result<u64> {
    let sql = installation_sql!(
        "UPDATE recovery_codes SET used_at = $1 WHERE user_id = $2 AND code_hash = $3 AND used_at IS NULL"
    );
    tx.execute(sql, [now.into(), user.into(), hash.into()]).await
}

/// Deletes a person's recovery codes.
pub(super) async fn delete_recovery_codes(tx: &Transaction, user: UserId) -> Result<()> {
    let sql = installation_sql!("DELETE FROM recovery_codes WHERE user_id = $1");
    tx.execute(sql, [user.into()]).await?;
    Ok(())
}

/// Puts a code in place of the one before, unless there is a user. Returns the number of changed rows: 0 or 1.
pub(super) async fn replace_first_code(core: &Core, hash: TokenHash, now: Timestamp) -> Result<u64> {
    let sql = installation_sql!(
        "INSERT INTO first_start (id, code_hash, created_at) SELECT 1, $1, $2 WHERE NOT EXISTS (SELECT id FROM users) \
         ON CONFLICT (id) DO UPDATE SET code_hash = excluded.code_hash, created_at = excluded.created_at"
    );
    core.db.installation().execute(sql, [hash.as_bytes().to_vec().into(), now.into()]).await
}

/// The hash of the first start's code. `None` if there is a user, or no code yet.
pub(super) async fn open_first_start(runner: &impl RunSql<Sql = InstallationSql>) -> Result<Option<Vec<u8>>> {
    let sql = installation_sql!(
        "SELECT code_hash FROM first_start WHERE NOT EXISTS (SELECT id FROM users) LIMIT 1"
    );
    runner.scalar(sql, []).await
}

/// Deletes this code. Returns the number of deleted rows: 0 or 1.
pub(super) async fn take_first_code(tx: &Transaction, hash: TokenHash) -> Result<u64> {
    let sql = installation_sql!("DELETE FROM first_start WHERE code_hash = $1");
    tx.execute(sql, [hash.as_bytes().to_vec().into()]).await
}

/// Deletes the code of the first start. Call this before a user is added in another way: completing the first start locks
/// the code first as well.
pub(in crate::domain::people) async fn delete_first_code(tx: &Transaction) -> Result<()> {
    tx.execute(installation_sql!("DELETE FROM first_start"), []).await?;
    Ok(())
}

/// Whether there is any user.
pub(super) async fn has_users(tx: &Transaction) -> Result<bool> {
    Ok(tx.scalar::<UserId>(installation_sql!("SELECT id FROM users LIMIT 1"), []).await?.is_some())
}

row! {
    /// A person's account at another provider.
    pub(super) struct Identity {
        id: LinkedAccountId,
        provider: String,
        email: String,
        created_at: Timestamp,
        last_used_at: Timestamp,
    }
}

/// A person's accounts at other providers, oldest first.
pub(super) async fn identities(
    runner: &impl RunSql<Sql = InstallationSql>,
    user: UserId,
) -> Result<Vec<Identity>> {
    let sql = installation_sql!(
        "SELECT id, provider, email, created_at, last_used_at FROM user_identities WHERE user_id = $1 ORDER BY id"
    );
    runner.all(sql, [user.into()]).await
}

/// Whether a person has an account at another provider.
pub(super) async fn has_identity(core: &Core, user: UserId) -> Result<bool> {
    let sql = installation_sql!("SELECT user_id FROM user_identities WHERE user_id = $1 LIMIT 1");
    Ok(core.db.installation().scalar::<UserId>(sql, [user.into()]).await?.is_some())
}

/// The person of an account at a provider.
pub(super) async fn identified(core: &Core, provider: &str, subject: &str) -> Result<Option<UserId>> {
    let sql = installation_sql!("SELECT user_id FROM user_identities WHERE provider = $1 AND subject = $2");
    core.db.installation().scalar(sql, [provider.into(), subject.into()]).await
}

/// Adds a person's account at a provider, used now.
pub(super) async fn insert_identity(
    tx: &Transaction,
    user: UserId,
    (provider, subject): (&str, &str),
    email: &str,
    now: Timestamp,
) -> Result<()> {
    let sql = installation_sql!(
        "INSERT INTO user_identities (user_id, provider, subject, email, created_at, last_used_at) \
         VALUES ($1, $2, $3, $4, $5, $5)"
    );
    tx.execute(sql, [user.into(), provider.into(), subject.into(), email.into(), now.into()]).await?;
    Ok(())
}

/// Records that an account at a provider was used now.
pub(super) async fn record_use(core: &Core, provider: &str, subject: &str) -> Result<()> {
    let sql = installation_sql!(
        "UPDATE user_identities SET last_used_at = $1 WHERE provider = $2 AND subject = $3"
    );
    let values = [core.clock.now().into(), provider.into(), subject.into()];
    core.db.installation().execute(sql, values).await?;
    Ok(())
}

/// Deletes one of a person's accounts at other providers.
pub(super) async fn delete_identity(tx: &Transaction, id: LinkedAccountId, user: UserId) -> Result<()> {
    let sql = installation_sql!("DELETE FROM user_identities WHERE id = $1 AND user_id = $2");
    tx.execute(sql, [id.into(), user.into()]).await?;
    Ok(())
}

row! {
    /// A counter of failures.
    pub(super) struct Counter {
        failures: i64,
        blocked_until: i64,
        updated_at: i64,
    }
}

/// Locks a counter until the transaction ends, and adds it if there is none.
pub(super) async fn lock_counter(tx: &Transaction, hash: &[u8], now: Timestamp) -> Result<Option<Counter>> {
    // A single statement inserts or locks the row. With two, a concurrent reset could delete the row in between, and
    // this attempt would be free.
    let sql = installation_sql!(
        "INSERT INTO sign_in_throttle (key_hash, failures, blocked_until, updated_at) VALUES ($1, 0, 0, $2) \
         ON CONFLICT (key_hash) DO UPDATE SET failures = sign_in_throttle.failures \
         RETURNING failures, blocked_until, updated_at"
    );
    tx.one(sql, [hash.to_vec().into(), now.into()]).await
}

/// Sets a counter.
pub(super) async fn set_counter(
    tx: &Transaction,
    hash: &[u8],
    failures: i64,
    (blocked_until, now): (Timestamp, Timestamp),
) -> Result<()> {
    let sql = installation_sql!(
        "UPDATE sign_in_throttle SET failures = $1, blocked_until = $2, updated_at = $3 WHERE key_hash = $4"
    );
    let values = [failures.into(), blocked_until.into(), now.into(), hash.to_vec().into()];
    tx.execute(sql, values).await?;
    Ok(())
}

/// Takes one failure from a counter.
pub(super) async fn lower_counter(
    runner: &impl RunWritingSql<Sql = InstallationSql>,
    hash: &[u8],
) -> Result<()> {
    let sql = installation_sql!(
        "UPDATE sign_in_throttle SET failures = failures - 1, blocked_until = 0 WHERE key_hash = $1 AND failures > 0"
    );
    runner.execute(sql, [hash.to_vec().into()]).await?;
    Ok(())
}

/// Deletes a counter.
pub(super) async fn delete_counter(
    runner: &impl RunWritingSql<Sql = InstallationSql>,
    hash: &[u8],
) -> Result<()> {
    let sql = installation_sql!("DELETE FROM sign_in_throttle WHERE key_hash = $1");
    runner.execute(sql, [hash.to_vec().into()]).await?;
    Ok(())
}
