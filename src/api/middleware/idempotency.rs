//! Idempotency keys: a change requested twice with the same key is made once and answered twice.
//!
//! ```text
//! claim ──────────────► the change's transaction ──────────► keep the response
//!  a row of its own       marks the row `changed`,             sealed, and without secrets
//!  (before anything)      or fails if it is no longer ours
//! ```
//!
//! The mark is written in the same transaction as the change, so after any crash the row shows whether the
//! change was made:
//! - not marked: nothing was changed. Once the claim is older than any request can be, the next request takes
//!   it over. If the first one is still alive after all, its transaction finds that it no longer holds the row
//!   and rolls back.
//! - marked, but without a response: the change was made, and its response was lost or not kept. The next request
//!   gets `IDEMPOTENCY_IN_DOUBT` with the created records, which the mark contains. Nothing is ever done twice.
//!
//! Work under a key continues after the client has disconnected: that client will repeat the request.
//!
//! A key belongs to its caller and, in `/v1`, to the organization. Only successes and 422 are kept, for a day: any
//! other refusal may be temporary. A kept response is replayed only to callers who may still make the request, with null
//! in place of secrets. Every interface that accepts keys goes through [`run_once`].

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use sea_orm::{Statement, Value};
use secrecy::ExposeSecret;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;
use tracing::Instrument;

use super::problem::problem_document;
use crate::{
    base::{
        bounds,
        enums::RecordKind,
        ids::OrgId,
        permission::Permission,
        problem::{Code, Problem, Result},
        time::{DAY_MS, Timestamp},
    },
    core::{
        Core,
        access::{Caller, authn::membership},
        request::HeldKey,
        sealing::{SealContext, random_bytes},
        store::sql::{InstallationSql, RunSql as _, RunWritingSql as _, installation_sql, row},
        telemetry,
    },
};

pub const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The header that marks a replayed response.
pub const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// The maximum bytes of stored responses per caller. Without it, a caller could fill the disk.
const MAX_STORED_PER_CALLER: i64 = 8 << 20;

/// A response to a request with a key.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub media: HeaderValue,
    pub body: Bytes,
    /// The body to keep, without secrets. None if it may differ next time.
    pub kept: Option<Bytes>,
    /// Seconds until the client should retry.
    pub retry_after: Option<i64>,
    pub replayed: bool,
}

impl Answer {
    /// The response to a successful creation, as JSON.
    #[must_use]
    pub fn created(json: Bytes) -> Self {
        Self {
            status: StatusCode::CREATED,
            media: HeaderValue::from_static("application/json"),
            kept: Some(json.clone()),
            body: json,
            retry_after: None,
            replayed: false,
        }
    }

    /// Adds the headers specific to these responses.
    pub fn write_headers(&self, headers: &mut HeaderMap) {
        headers.insert(header::CONTENT_TYPE, self.media.clone());
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.replayed {
            headers.insert(REPLAYED, HeaderValue::from_static("true"));
        }
    }
}

/// The response to a refusal under an idempotency key.
pub fn refusal(problem: &Problem, instance: &str, request_id: &str) -> Answer {
    telemetry::problem(problem, request_id);
    let status = problem.code.status();
    let body = Bytes::from(problem_document(problem, instance, request_id).to_string());
    Answer {
        status,
        media: HeaderValue::from_static("application/problem+json"),
        kept: is_lasting(status.as_u16()).then(|| body.clone()),
        body,
        retry_after: problem.retry_after(),
        replayed: false,
    }
}

/// Whether a response with this status would be the same next time.
#[must_use]
pub fn is_lasting(status: u16) -> bool {
    matches!(status, 200..=299 | 422)
}

pub struct KeyedRequest<'a> {
    pub caller: &'a Caller,
    /// The organization the key belongs to, or 0 if the request may concern several.
    pub org: OrgId,
    pub key: &'a str,
    /// What identifies the request: its target and its complete content.
    pub parts: &'a [&'a [u8]],
}

/// Runs `work` once for all identical requests. Returns its response, or the earlier one if `again` still permits the
/// request.
///
/// # Errors
/// Those of [`claim`] and `again`; `UNAVAILABLE` if the work takes longer than a request may.
pub async fn run_once<F>(
    core: &Arc<Core>,
    keyed: KeyedRequest<'_>,
    again: impl Future<Output = Result<()>> + Send,
    work: impl FnOnce(Option<Arc<Claim>>) -> F + Send,
) -> Result<Answer>
where
    F: Future<Output = Answer> + Send + 'static,
{
    let KeyedRequest { caller, org, key, parts } = keyed;
    match claim(core, caller, org, key, &fingerprint(parts)).await? {
        None => Ok(work(None).await),
        Some(Claimed::Ours(claim)) => run_under_claim(Arc::clone(&claim), work(Some(claim))).await,
        Some(Claimed::Done(kept)) => {
            again.await?;
            Ok(kept)
        }
    }
}

/// The result of claiming a key.
pub enum Claimed {
    /// The key is claimed: the request may make its change.
    Ours(Arc<Claim>),
    /// The change was already made and answered.
    Done(Answer),
}

/// A key held by one request.
pub struct Claim {
    core: Arc<Core>,
    org: OrgId,
    caller: String,
    key: String,
    /// Identifies this request among those that have held the key.
    holder: String,
    /// The permissions the response needed beyond those of its root fields, and in which organization.
    needed: Mutex<Needed>,
}

type Needed = BTreeSet<(i64, &'static str)>;

/// A response to store.
type Kept = (StatusCode, HeaderValue, Bytes);

/// The key of a request.
///
/// # Errors
/// `MALFORMED_REQUEST` for a key that is empty, too long, or not printable ASCII, and for more than one key.
pub fn key_of(headers: &HeaderMap) -> Result<Option<&str>> {
    let mut given = headers.get_all(&KEY).iter();
    let Some(value) = given.next() else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    // The draft makes it a structured-field string, but nearly everyone sends the bare text.
    let key = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let good = (1..=255).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    if good && given.next().is_none() {
        return Ok(Some(key));
    }
    let detail = "`Idempotency-Key` must be a single key of 1 to 255 visible ASCII characters.";
    Err(Problem::new(Code::MalformedRequest, detail).with("header", "Idempotency-Key"))
}

/// Identifies a request: a hash of its parts, each preceded by its length.
pub fn fingerprint(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// Claims `key` for a request with this fingerprint. None for anonymous callers, who have no keys.
///
/// # Errors
/// `IDEMPOTENCY_KEY_REUSED` for a different request than the first; `IDEMPOTENCY_IN_PROGRESS` while that one is
/// running; `IDEMPOTENCY_IN_DOUBT` if its change was made and its response lost.
pub async fn claim(
    core: &Arc<Core>,
    caller: &Caller,
    org: OrgId,
    key: &str,
    fingerprint: &[u8; 32],
) -> Result<Option<Claimed>> {
    let name = match caller {
        Caller::Person(person) => format!("user:{}", person.id.0),
        Caller::Token(token) => format!("token:{}", token.id.0),
        Caller::Anonymous | Caller::LinkedChat(_) | Caller::System => return Ok(None),
    };
    let holder = u128::from_be_bytes(random_bytes());
    let claim = Claim {
        core: Arc::clone(core),
        org,
        caller: name,
        key: key.to_owned(),
        holder: format!("{holder:032x}"),
        needed: Mutex::default(),
    };
    // Every pass ends the loop, unless the row changes hands between two statements.
    for _ in 0..5 {
        if claim.insert(fingerprint).await? {
            return Ok(Some(Claimed::Ours(Arc::new(claim))));
        }
        let Some(held) = claim.find().await? else { continue };
        if let Some(kept) = claim.evaluate(held, fingerprint).await? {
            let (kept, needed) = kept;
            require(core, caller, needed).await?;
            return Ok(Some(Claimed::Done(kept)));
        }
    }
    Err(in_progress())
}

/// Removes expired keys and returns how many.
pub async fn remove_expired(core: &Core) -> Result<u64> {
    Ok(core.db.sweep("idempotency_keys", "expires_at <= $1", core.clock.now().0).await?)
}

/// Runs `work` under a claim to its end, even after the client has disconnected, and stores the response. The work has
/// the deadline of a request; after that, another request may take the key.
///
/// # Errors
/// `UNAVAILABLE` if the work took too long, `INTERNAL` if it panicked.
pub async fn run_under_claim<F>(claim: Arc<Claim>, work: F) -> Result<Answer>
where
    F: Future<Output = Answer> + Send + 'static,
{
    let (tell, told) = oneshot::channel();
    let core = Arc::clone(&claim.core);
    let working = async move {
        let done = tokio::time::timeout(claim.core.config.limits.request_timeout(), work).await;
        let kept: Option<Kept> = done
            .as_ref()
            .ok()
            .and_then(|answer| Some((answer.status, answer.media.clone(), answer.kept.clone()?)));
        let stored = claim.store_answer(kept.as_ref()).await;
        // The client may have disconnected.
        let _ = tell.send(done);
        if let Err(problem) = stored
            && !claim.store_later(kept.as_ref()).await
        {
            tracing::error!(%problem, "idempotency.answer_not_kept");
        }
    };
    core.tasks.spawn(working.in_current_span());
    match told.await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) => {
            Err(Problem::new(Code::Unavailable, "The request took too long. Retry with the same key."))
        }
        Err(_) => Err(Problem::internal(anyhow::anyhow!("work under an idempotency key did not end"))),
    }
}

/// Refuses a caller who no longer has all of these permissions.
async fn require(core: &Arc<Core>, caller: &Caller, needed: Needed) -> Result<()> {
    for (org, permission) in needed {
        let held = membership(core, caller, OrgId(org)).await?.permissions;
        if !held.names().any(|name| name == permission) {
            let detail = format!("You don't have the permission {permission} in this organization.");
            return Err(Problem::new(Code::PermissionDenied, detail).with("permission", permission));
        }
    }
    Ok(())
}

impl HeldKey for Claim {
    /// Marks the change as made. Runs as the last statement of the change's transaction, which may only commit
    /// if this updates exactly one row. Otherwise another request holds the key, and this change must not
    /// happen.
    fn mark(&self, created: &[(RecordKind, i64)]) -> Statement {
        let sql = installation_sql!(
            "UPDATE idempotency_keys SET changed = TRUE, records = COALESCE(records, '') || $5",
            OF_KEY,
            BY_HOLDER
        );
        let records = created.iter().take(bounds::LISTED_IN_TEXT);
        let records: String = records.map(|(kind, id)| format!("{}:{id} ", kind.as_str())).collect();
        sql.0.statement(self.core.db.backend(), self.values([self.holder.clone().into(), records.into()]))
    }

    fn needs(&self, org: OrgId, permission: Permission) {
        self.needed.lock().insert((org.0, permission.as_str()));
    }
}

row! {
    /// A key that a request has claimed.
    struct Held {
        request_hash: Vec<u8>,
        holder: String,
        changed: bool,
        records: Option<String>,
        status: Option<i64>,
        answer_sealed: Option<Vec<u8>>,
        claimed_at: Timestamp,
        expires_at: Timestamp,
    }
}

const OF_KEY: &str = " WHERE organization_id = $1 AND caller = $2 AND idempotency_key = $3";
const BY_HOLDER: &str = " AND holder = $4";
const DELETE: &str = "DELETE FROM idempotency_keys";

impl Claim {
    fn values(&self, more: impl IntoIterator<Item = Value>) -> Vec<Value> {
        let key = [self.org.into(), self.caller.clone().into(), self.key.clone().into()];
        key.into_iter().chain(more).collect()
    }

    async fn write(&self, sql: InstallationSql, more: impl IntoIterator<Item = Value>) -> Result<bool> {
        Ok(self.core.db.installation().execute(sql, self.values(more)).await? == 1)
    }

    /// Claims the key for a day.
    async fn insert(&self, fingerprint: &[u8; 32]) -> Result<bool> {
        let now = self.core.clock.now().0;
        let sql = installation_sql!(
            "INSERT INTO idempotency_keys (organization_id, caller, idempotency_key, holder, request_hash, \
             claimed_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING"
        );
        let hash: Value = fingerprint.to_vec().into();
        self.write(sql, [self.holder.clone().into(), hash, now.into(), (now + DAY_MS).into()]).await
    }

    async fn find(&self) -> Result<Option<Held>> {
        let sql = installation_sql!(
            "SELECT request_hash, holder, changed, records, status, answer_sealed, claimed_at, expires_at FROM idempotency_keys",
            OF_KEY
        );
        // From the writer, so that no committed row is missed.
        self.core.db.writer().one(sql, self.values([])).await
    }

    /// Evaluates another request's row: returns its response, or None if the row has been removed.
    async fn evaluate(&self, held: Held, fingerprint: &[u8; 32]) -> Result<Option<(Answer, Needed)>> {
        let now = self.core.clock.now();
        // Longer than the longest request.
        let respected = self.core.config.limits.request_timeout().as_millis() as i64 + 5_000;
        if held.expires_at <= now {
            self.write(installation_sql!(DELETE, OF_KEY, BY_HOLDER), [held.holder.into()]).await?;
            return Ok(None);
        }
        if held.request_hash != fingerprint {
            let detail = "The key was already used for a different request. Use a new key.";
            return Err(Problem::new(Code::IdempotencyKeyReused, detail));
        }
        if let Some(status) = held.status {
            let sealed = held.answer_sealed.ok_or_else(|| in_doubt(held.records.as_deref()))?;
            return self.open_answer(&held.holder, status, &sealed).map(Some);
        }
        match now.0 - held.claimed_at.0 > respected {
            false => Err(in_progress()),
            true if held.changed => Err(in_doubt(held.records.as_deref())),
            true => {
                // The previous holder changed nothing, and no longer can.
                let sql =
                    installation_sql!(DELETE, OF_KEY, BY_HOLDER, " AND changed = FALSE AND status IS NULL");
                self.write(sql, [held.holder.into()]).await?;
                Ok(None)
            }
        }
    }

    /// Stores a response that can be replayed, if there is room for it. Otherwise releases the key, or records that a
    /// change was made.
    async fn store_answer(&self, answer: Option<&Kept>) -> Result<()> {
        let fitting = answer.filter(|(.., body)| body.len() <= bounds::TEXT);
        if let Some((status, media, body)) = fitting {
            let needed = serde_json::to_vec(&*self.needed.lock());
            let needed = needed.map_err(Problem::internal)?;
            let plain = [media.as_bytes(), b"\n", &needed, b"\n", body].concat();
            let sealed = self.core.sealing.seal_bytes(&plain, &self.seal_context(&self.holder));
            let sql = installation_sql!(
                "UPDATE idempotency_keys SET status = $5, answer_sealed = $6, answer_bytes = $7",
                OF_KEY,
                BY_HOLDER,
                " AND (SELECT COALESCE(SUM(answer_bytes), 0) FROM idempotency_keys \
                 WHERE caller = $2 AND answer_bytes IS NOT NULL) + $7 <= $8"
            );
            let (status, bytes) = (i64::from(status.as_u16()), sealed.len().cast_signed() as i64);
            let values = [status.into(), sealed.into(), bytes.into(), MAX_STORED_PER_CALLER.into()];
            if self.write(sql, [Value::from(self.holder.clone())].into_iter().chain(values)).await? {
                return Ok(());
            }
        }
        let sql = installation_sql!(DELETE, OF_KEY, BY_HOLDER, " AND changed = FALSE");
        if self.write(sql, [self.holder.clone().into()]).await? {
            return Ok(());
        }
        let sql = installation_sql!("UPDATE idempotency_keys SET status = $5", OF_KEY, BY_HOLDER);
        let status = answer.map_or(StatusCode::SERVICE_UNAVAILABLE, |(status, ..)| *status);
        self.write(sql, [self.holder.clone().into(), i64::from(status.as_u16()).into()]).await?;
        Ok(())
    }

    /// Tries to store a response until the database is back, and returns whether it was. Otherwise the client, which
    /// repeats its request, would be refused for as long as this claim is respected.
    async fn store_later(&self, answer: Option<&Kept>) -> bool {
        let stored = async {
            loop {
                tokio::time::sleep(bounds::RETRY).await;
                if self.store_answer(answer).await.is_ok() {
                    break;
                }
            }
        };
        let stored = tokio::time::timeout(self.core.config.limits.request_timeout(), stored);
        matches!(self.core.tasks.stopping.run_until_cancelled(stored).await, Some(Ok(())))
    }

    /// The kept response and the permissions it needed.
    fn open_answer(&self, holder: &str, status: i64, sealed: &[u8]) -> Result<(Answer, Needed)> {
        let opened = self.core.sealing.open_bytes(sealed, &self.seal_context(holder));
        let plain = opened.map_err(Problem::internal)?;
        let plain: &[u8] = plain.expose_secret();
        let broken = || Problem::internal(anyhow::anyhow!("a kept response is malformed"));
        let mut parts = plain.splitn(3, |byte| *byte == b'\n');
        let (Some(media), Some(needed), Some(body)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(broken());
        };
        let needed: Vec<(i64, String)> = muster_json::from_slice(needed).map_err(Problem::internal)?;
        let known = |(org, name): (i64, String)| {
            Ok((org, name.parse::<Permission>().map_err(|_| broken())?.as_str()))
        };
        let needed = needed.into_iter().map(known).collect::<Result<Needed>>()?;
        let answer = Answer {
            status: StatusCode::from_u16(status as u16).map_err(Problem::internal)?,
            media: HeaderValue::from_bytes(media).map_err(Problem::internal)?,
            body: Bytes::copy_from_slice(body),
            kept: None,
            retry_after: None,
            replayed: true,
        };
        Ok((answer, needed))
    }

    /// The context that the response by `holder` is sealed for.
    fn seal_context<'a>(&self, holder: &'a str) -> SealContext<'a> {
        SealContext::new(self.org, "idempotency_keys", holder, "answer")
    }
}

/// `records`: the created ones, as the mark lists them.
fn in_doubt(records: Option<&str>) -> Problem {
    let detail = "The change for this key was made, but its response was lost or not kept. `details.records` are the records that \
                  it created: read them before you continue.";
    let records = records.unwrap_or_default().split_whitespace().filter_map(|record| record.split_once(':'));
    let records = records.map(|(kind, id)| json!({ "kind": kind, "id": id.parse::<i64>().ok() }));
    Problem::new(Code::IdempotencyInDoubt, detail).with("records", records.collect::<Vec<_>>())
}

fn in_progress() -> Problem {
    Problem::new(
        Code::IdempotencyInProgress,
        "The first request with this key is still in progress. Try again.",
    )
    .with("retry_after", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_visible_ascii_with_or_without_quotes() {
        let of = |values: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(KEY, HeaderValue::from_bytes(value).unwrap());
            }
            key_of(&headers).map(|key| key.map(str::to_owned)).map_err(|problem| problem.code)
        };
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&[b"8e03978e-40d5"]), Ok(Some("8e03978e-40d5".into())));
        assert_eq!(of(&[b"\"8e03978e\""]), Ok(Some("8e03978e".into())));
        assert_eq!(of(&[&[b'x'; 255]]), Ok(Some("x".repeat(255))));
        for bad in [
            &[b"" as &[u8]] as &[&[u8]],
            &[b"\"\""],
            &[b"a b"],
            &[&[b'x'; 256]],
            &[b"\xc3\xa9"],
            &[b"a", b"a"],
        ] {
            assert_eq!(of(bad), Err(Code::MalformedRequest), "{bad:?}");
        }
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(fingerprint(&[b"ab", b"c"]), fingerprint(&[b"a", b"bc"]));
        assert_eq!(fingerprint(&[b"ab"]), fingerprint(&[b"ab"]));
    }
}
