//! The keys that sign access tokens, in a table that every replica reads.
//!
//! A key is first *next* (published, so that other verifiers know it before it is used), then *active* (it signs), then
//! *retired* (it verifies until the last token that it signed has expired; its private half is destroyed at once).
//! There is one active key, and at most one next key. The first replica to see that a step is due takes it, under a
//! lock on the table; the others notice at their next poll (`jobs/mod.rs`). A replica that receives a token with an
//! unknown key looks it up at once ([`look_up`]), but not for every made-up name: only a few times a second, and rarely for
//! the same name.
//!
//! An installation starts with the signing keys of its key file.

use std::time::{Duration, Instant};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sea_orm::DbBackend;
use secrecy::ExposeSecret;
use serde_json::json;
use zeroize::Zeroizing;

use crate::{
    base::{
        ids::OrgId,
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{
        Core,
        access::jwt::{KeySet, PublicKey},
        audit::Origin,
        sealing::{SealContext, SigningKey},
        store::{
            Transaction,
            sql::{InstallationSql, RunSql, RunWritingSql as _, installation_sql, row},
        },
    },
};

/// How much longer than its tokens a retired key verifies: a replica that can't reach the database signs with it until
/// its next poll.
const GRACE: Duration = Duration::from_secs(60);
/// How many lookups per second unknown names may cause: anyone can make names up.
const LOOKUPS_PER_SECOND: u32 = 5;
const ALGORITHM: &str = "EdDSA";

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Published, but not used yet.
    Next,
    /// Signs.
    Active,
    /// Verifies its own signatures.
    Retired,
    /// No longer in use.
    Expired,
}

/// A key as shown to the operator.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ListedKey {
    /// Its name in a token's header.
    pub kid: String,
    pub state: State,
    pub created_at: Timestamp,
    /// When it started to sign, or will.
    pub activates_at: Option<Timestamp>,
    /// When it stopped signing.
    pub retired_at: Option<Timestamp>,
    /// When it stops verifying.
    pub verify_until: Option<Timestamp>,
}

/// The result of a rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rotated {
    /// A key was published and becomes active at this time.
    Planned(String, Timestamp),
    /// A key has become active.
    Active(String),
}

row! {
    /// A key as stored.
    struct KeyRow {
        kid: String,
        public_key: String,
        private_key_sealed: Vec<u8>,
        created_at: Timestamp,
        activate_at: Option<Timestamp>,
        activated_at: Option<Timestamp>,
        retired_at: Option<Timestamp>,
        verify_until: Option<Timestamp>,
    }
}

impl KeyRow {
    fn public(&self) -> Result<PublicKey> {
        let bytes = URL_SAFE_NO_PAD.decode(&self.public_key).map_err(Problem::internal)?;
        let bytes = <[u8; 32]>::try_from(bytes)
            .map_err(|_| Problem::internal(anyhow::anyhow!("a public key is invalid")))?;
        Ok(PublicKey { kid: self.kid.clone(), bytes, until: self.verify_until })
    }

    fn state(&self, now: Timestamp) -> State {
        match (self.activated_at, self.retired_at) {
            (_, Some(_)) if self.verify_until.is_none_or(|until| until <= now) => State::Expired,
            (_, Some(_)) => State::Retired,
            (Some(_), None) => State::Active,
            (None, None) => State::Next,
        }
    }
}

/// Loads the table's keys. If it has none, the key file's keys become the first ones.
///
/// # Errors
/// The database can't be reached; `INTERNAL` for keys sealed with another key file.
pub async fn load(core: &Core) -> Result<()> {
    if rows(core.db.read()).await?.is_empty() {
        import(core).await?;
    }
    reload(core).await
}

/// Takes the step that is due, if any, and loads the table's keys. Returns the number of steps.
pub async fn maintain(core: &Core) -> Result<u64> {
    let known = rows(core.db.read()).await?;
    if due(core, &known).is_none() {
        put_in_force(core, &known)?;
        return Ok(0);
    }
    let tx = locked(core).await?;
    // Another replica may have been faster.
    let step = due(core, &rows(&tx).await?);
    if let Some(step) = &step {
        apply_step(core, &tx, step).await?;
    }
    tx.commit().await?;
    reload(core).await?;
    Ok(u64::from(step.is_some()))
}

/// Whether the table has the key `kid`, which a token named; if so, it is now loaded.
pub async fn look_up(core: &Core, kid: &str) -> Result<bool> {
    if core.access.lookups.unknown.contains_key(kid) {
        return Ok(false);
    }
    {
        let mut recent = core.access.lookups.recent.lock().await;
        if recent.0.is_none_or(|since| since.elapsed() >= Duration::from_secs(1)) {
            *recent = (Some(Instant::now()), 0);
        }
        if recent.1 >= LOOKUPS_PER_SECOND {
            return Ok(false);
        }
        recent.1 += 1;
    }
    let known = rows(core.db.read()).await?;
    if !known.iter().any(|row| row.kid == kid && row.state(core.clock.now()) != State::Expired) {
        core.access.lookups.unknown.insert(kid.to_owned(), ());
        return Ok(false);
    }
    put_in_force(core, &known)?;
    Ok(true)
}

pub async fn list(core: &Core) -> Result<Vec<ListedKey>> {
    let now = core.clock.now();
    let rows = rows(core.db.read()).await?;
    Ok(rows
        .into_iter()
        .rev()
        .map(|row| ListedKey {
            state: row.state(now),
            kid: row.kid,
            created_at: row.created_at,
            activates_at: row.activated_at.or(row.activate_at),
            retired_at: row.retired_at,
            verify_until: row.verify_until,
        })
        .collect())
}

/// Publishes a next key, which becomes active by itself once everyone can know it; or, with `at_once`, makes the next
/// key (or a new one) active now.
pub async fn rotate(core: &Core, at_once: bool) -> Result<Rotated> {
    let tx = locked(core).await?;
    let known = rows(&tx).await?;
    let now = core.clock.now();
    let next = known.iter().find(|row| row.state(now) == State::Next);
    let rotated = if at_once {
        let kid = match next {
            Some(row) => row.kid.clone(),
            None => publish(core, &tx, now).await?,
        };
        apply_step(core, &tx, &RotationStep::Activate(kid.clone())).await?;
        Rotated::Active(kid)
    } else {
        match next {
            // Not later than planned, and not before everyone can know it.
            Some(row) => {
                let earliest = row.created_at.plus(core.config.signing.publish()).max(now);
                let at = row.activate_at.map_or(earliest, |at| at.min(earliest));
                let sql = installation_sql!("UPDATE signing_keys SET activate_at = $1 WHERE kid = $2");
                tx.execute(sql, [at.into(), row.kid.clone().into()]).await?;
                Rotated::Planned(row.kid.clone(), at)
            }
            None => {
                let at = now.plus(core.config.signing.publish());
                Rotated::Planned(publish(core, &tx, at).await?, at)
            }
        }
    };
    let changes = match &rotated {
        Rotated::Active(kid) => json!({ "kid": kid, "active": true }),
        Rotated::Planned(kid, at) => json!({ "kid": kid, "active": false, "activates_at": at }),
    };
    Origin::operator(core).record(&tx, "rotateSigningKey", ("signing key", None), changes);
    tx.commit().await?;
    reload(core).await?;
    Ok(rotated)
}

/// Stops a retired key from verifying: holders of its access tokens have to refresh their session.
///
/// # Errors
/// `NOT_FOUND`; `IN_USE` for the active key.
pub async fn retire(core: &Core, kid: &str) -> Result<()> {
    let tx = locked(core).await?;
    let known = rows(&tx).await?;
    let now = core.clock.now();
    let row = known.iter().find(|row| row.kid == kid);
    let row = row.ok_or_else(|| {
        Problem::new(Code::NotFound, format!("Key {kid} does not exist: `muster key list` shows all keys."))
    })?;
    if row.state(now) == State::Active {
        let detail =
            format!("Signing key {kid} is the active key: run `muster key rotate --signing --now` first.");
        return Err(Problem::new(Code::InUse, detail));
    }
    let sql = installation_sql!(
        "UPDATE signing_keys SET retired_at = COALESCE(retired_at, $1), verify_until = $1, \
         private_key_sealed = $2 WHERE kid = $3"
    );
    tx.execute(sql, [now.into(), Vec::<u8>::new().into(), kid.into()]).await?;
    let changes = json!({ "kid": kid });
    Origin::operator(core).record(&tx, "retireSigningKey", ("signing key", None), changes);
    tx.commit().await?;
    reload(core).await
}

/// A step in the life of the keys.
enum RotationStep {
    /// Publish a next key, which becomes active at this time.
    Publish(Timestamp),
    /// Make this key the active one.
    Activate(String),
}

fn due(core: &Core, known: &[KeyRow]) -> Option<RotationStep> {
    let (now, settings) = (core.clock.now(), &core.config.signing);
    if let Some(next) = known.iter().find(|row| row.state(now) == State::Next) {
        let is_due = next.activate_at.is_some_and(|at| at <= now);
        return is_due.then(|| RotationStep::Activate(next.kid.clone()));
    }
    let active = known.iter().find(|row| row.state(now) == State::Active)?;
    let ends = active.activated_at?.plus(settings.rotation()?);
    let earliest = now.plus(settings.publish());
    (ends <= earliest).then(|| RotationStep::Publish(ends.max(earliest)))
}

async fn apply_step(core: &Core, tx: &Transaction, step: &RotationStep) -> Result<()> {
    let now = core.clock.now();
    match step {
        RotationStep::Publish(at) => {
            let kid = publish(core, tx, *at).await?;
            tracing::info!(kid, %at, "keys.signing_key_published");
        }
        RotationStep::Activate(kid) => {
            let until = now.plus(core.config.sessions.access_token_ttl()).plus(GRACE);
            let sql = installation_sql!(
                "UPDATE signing_keys SET retired_at = $1, verify_until = $2, private_key_sealed = $3 \
                 WHERE activated_at IS NOT NULL AND retired_at IS NULL"
            );
            tx.execute(sql, [now.into(), until.into(), Vec::<u8>::new().into()]).await?;
            let sql = installation_sql!("UPDATE signing_keys SET activated_at = $1 WHERE kid = $2");
            tx.execute(sql, [now.into(), kid.clone().into()]).await?;
            tracing::info!(kid, "keys.signing_key_active");
        }
    }
    Ok(())
}

/// Stores a new key that becomes active at `at`.
async fn publish(core: &Core, tx: &Transaction, at: Timestamp) -> Result<String> {
    let key = SigningKey::generate();
    insert(core, tx, &key, Some(at), None, None).await?;
    Ok(key.kid)
}

/// Copies the key file's keys into the table, so that earlier tokens stay valid.
async fn import(core: &Core) -> Result<()> {
    let file = core.config.keys().map_err(Problem::internal)?;
    let tx = locked(core).await?;
    // Another replica may have been faster.
    if rows(&tx).await?.is_empty() {
        let now = core.clock.now();
        for key in file.signing() {
            let retired = (key.kid != file.active_signing()).then_some(now);
            insert(core, &tx, key, None, Some(now), retired).await?;
        }
    }
    Ok(tx.commit().await?)
}

async fn insert(
    core: &Core,
    tx: &Transaction,
    key: &SigningKey,
    activate_at: Option<Timestamp>,
    activated_at: Option<Timestamp>,
    retired_at: Option<Timestamp>,
) -> Result<()> {
    let until = retired_at.map(|at| at.plus(core.config.sessions.access_token_ttl()).plus(GRACE));
    let sealed = match retired_at {
        Some(_) => Vec::new(),
        None => core.sealing.seal_bytes(&key.seed[..], &seal_context(&key.kid)),
    };
    let sql = installation_sql!(
        "INSERT INTO signing_keys (kid, algorithm, public_key, private_key_sealed, created_at, activate_at, \
         activated_at, retired_at, verify_until) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
    );
    let values = [
        key.kid.clone().into(),
        ALGORITHM.into(),
        URL_SAFE_NO_PAD.encode(PublicKey::from_signing_key(key).bytes).into(),
        sealed.into(),
        core.clock.now().into(),
        activate_at.into(),
        activated_at.into(),
        retired_at.into(),
        until.into(),
    ];
    tx.execute(sql, values).await?;
    Ok(())
}

async fn reload(core: &Core) -> Result<()> {
    put_in_force(core, &rows(core.db.read()).await?)
}

fn put_in_force(core: &Core, rows: &[KeyRow]) -> Result<()> {
    let now = core.clock.now();
    let active = rows.iter().find(|row| row.state(now) == State::Active);
    let active = active.ok_or_else(|| Problem::internal(anyhow::anyhow!("no signing key is active")))?;
    let opened =
        core.sealing.open_bytes(&active.private_key_sealed, &seal_context(&active.kid)).map_err(|error| {
            let hint = "does the key file belong to this database?";
            Problem::internal(anyhow::anyhow!("signing key {}: {error}; {hint}", active.kid))
        })?;
    let mut seed = Zeroizing::new([0; 32]);
    if opened.expose_secret().len() != seed.len() {
        return Err(Problem::internal(anyhow::anyhow!("signing key {} is not a valid key", active.kid)));
    }
    seed.copy_from_slice(opened.expose_secret());
    let verifying = rows.iter().filter(|row| row.state(now) != State::Expired);
    let set = KeySet {
        active: SigningKey { kid: active.kid.clone(), seed },
        verifying: verifying.map(KeyRow::public).collect::<Result<_>>()?,
    };
    core.access.jwt.replace(&set);
    Ok(())
}

/// The context in which the private half is sealed.
fn seal_context(kid: &str) -> SealContext<'_> {
    SealContext::new(OrgId(0), "signing_keys", kid, "private_key")
}

/// A transaction that locks the keys against other changes.
async fn locked(core: &Core) -> Result<Transaction> {
    let tx = core.db.begin().await?;
    if core.db.backend() == DbBackend::Postgres {
        tx.execute(installation_sql!("LOCK TABLE signing_keys IN SHARE ROW EXCLUSIVE MODE"), []).await?;
    }
    Ok(tx)
}

/// All keys, oldest first.
async fn rows(runner: &impl RunSql<Sql = InstallationSql>) -> Result<Vec<KeyRow>> {
    let sql = installation_sql!(
        "SELECT kid, public_key, private_key_sealed, created_at, activate_at, activated_at, retired_at, \
         verify_until FROM signing_keys WHERE algorithm = $1 ORDER BY created_at, kid"
    );
    runner.all(sql, [ALGORITHM.into()]).await
}
