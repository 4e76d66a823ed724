//! The one error type at the edge: [`Problem`].
//!
//! Features return it; GraphQL shows it in `extensions`, REST as RFC 9457 `application/problem+json`. The fields for
//! the caller (code, detail, violations) and the one for the log (the cause) are separate, so no SQL, path or backtrace
//! can leave the process through `Display`.

use std::sync::Arc;

use async_graphql::{ErrorExtensionValues, Value};
use http::StatusCode;
use serde::Serialize;

use super::spelling::camel_case;

/// The result of every operation that a caller can request.
pub type Result<T, E = Problem> = std::result::Result<T, E>;

/// Defines the stable error codes: name on the wire, HTTP status, title, and the explanation that
/// `/problems/<slug>` serves.
macro_rules! codes {
    ($($variant:ident = $wire:literal, $status:ident, $title:literal, $about:literal;)+) => {
        /// A stable, documented error code. The one place that maps an error to its HTTP status.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $(#[doc = $about] $variant,)+ }

        impl Code {
            /// Every code, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The code on the wire: UPPER_SNAKE.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $wire,)+ }
            }

            /// The HTTP status that carries it.
            #[must_use]
            pub const fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status,)+ }
            }

            /// The problem in a few words that never change.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }

            /// Its meaning and remedy.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)+ }
            }
        }
    };
}

codes! {
    MalformedRequest = "MALFORMED_REQUEST", BAD_REQUEST, "Malformed request",
        "The request can't be parsed: broken JSON, or an `id` in the path that is not a number.";
    Unauthenticated = "UNAUTHENTICATED", UNAUTHORIZED, "Unauthenticated",
        "The credential is missing, unknown or revoked. Send `Authorization: Bearer <token>`.";
    TokenExpired = "TOKEN_EXPIRED", UNAUTHORIZED, "Token expired",
        "The credential has expired. Refresh the session, or issue a new service token.";
    SignInFailed = "SIGN_IN_FAILED", UNAUTHORIZED, "Sign-in failed",
        "The e-mail address or the password is wrong. The response does not say which.";
    SignInAgain = "SIGN_IN_AGAIN", FORBIDDEN, "Sign in again",
        "The account has no password to ask for, and signed in more than ten minutes ago. Sign in again, then repeat the request.";
    SecondFactorRequired = "SECOND_FACTOR_REQUIRED", FORBIDDEN, "Second factor required",
        "The organization requires a second factor. Set one up (`beginTotp`), then try again.";
    PermissionDenied = "PERMISSION_DENIED", FORBIDDEN, "Permission denied",
        "The caller is a member but lacks the permission that `details.permission` names.";
    NotAMember = "NOT_A_MEMBER", FORBIDDEN, "Not a member",
        "The caller is not a member of this organization, or the organization does not exist. The response does not say which.";
    EmailNotConfirmed = "EMAIL_NOT_CONFIRMED", FORBIDDEN, "E-mail not confirmed",
        "Connecting or editing a channel requires a confirmed e-mail address.";
    CrossOrigin = "CROSS_ORIGIN", FORBIDDEN, "Cross-origin request",
        "The request carries the session cookie, but was not sent by a page of this service.";
    PlanLimitReached = "PLAN_LIMIT_REACHED", FORBIDDEN, "Plan limit reached",
        "The organization's plan does not allow more of these. `details` gives the limit, its maximum and the current usage.";
    NotFound = "NOT_FOUND", NOT_FOUND, "Not found",
        "The organization has no such record, or the route does not exist.";
    MethodNotAllowed = "METHOD_NOT_ALLOWED", METHOD_NOT_ALLOWED, "Method not allowed",
        "The path exists, but does not support this method. `Allow` lists the supported methods.";
    Conflict = "CONFLICT", CONFLICT, "Conflict",
        "Someone else changed the same record at the same time. Read it again and retry.";
    NotSupported = "NOT_SUPPORTED", CONFLICT, "Not supported",
        "The channel's vendor does not offer this, or the operator has not set it up.";
    AgentAlreadyRunning = "AGENT_ALREADY_RUNNING", CONFLICT, "Agent already running",
        "The agent is running, paused or stopping. Only a stopped or failed agent can be started, moved or deleted.";
    AgentNotRunning = "AGENT_NOT_RUNNING", CONFLICT, "Agent not running",
        "The agent's current state does not allow this. `details.status` gives the state.";
    OrganizationStopped = "ORGANIZATION_STOPPED", CONFLICT, "Organization stopped",
        "The whole organization is stopped: no agent can be started or resumed until it is released. `details` says who and since when.";
    ApprovalNotPending = "APPROVAL_NOT_PENDING", CONFLICT, "Approval not pending",
        "The approval has already been decided or dismissed, or it has expired.";
    ApprovalNotAQuestion = "APPROVAL_NOT_A_QUESTION", CONFLICT, "Approval takes no answer",
        "Only questions, and actions to approve or deny, can be answered.";
    NameTaken = "NAME_TAKEN", CONFLICT, "Name taken",
        "Another record of this kind in the organization has the same name.";
    Archived = "ARCHIVED", CONFLICT, "Archived",
        "The record is archived. Restore it before changing it.";
    InUse = "IN_USE", CONFLICT, "In use",
        "Other records refer to this one. Remove them first.";
    PolicyLocksOut = "POLICY_LOCKS_OUT", CONFLICT, "Policy locks everyone out",
        "After the change, no one in the organization could edit its policy or undo the change.";
    PolicyOwnedByFile = "POLICY_OWNED_BY_FILE", CONFLICT, "Policy owned by a file",
        "The organization's rules are in the policy file that `details.file` names. The operator edits the file, \
         or publishes and deletes it; after that the organization can edit its rules.";
    LastOwner = "LAST_OWNER", CONFLICT, "Last owner",
        "An organization must keep at least one OWNER.";
    IdempotencyInProgress = "IDEMPOTENCY_IN_PROGRESS", CONFLICT, "Idempotency key in progress",
        "The first request with this `Idempotency-Key` is still in progress. `Retry-After` says when to try again.";
    IdempotencyInDoubt = "IDEMPOTENCY_IN_DOUBT", CONFLICT, "Response to the idempotency key lost",
        "The change for this `Idempotency-Key` was made, but its response was lost or not kept. It will not be made again: `details.records` names the records that it created.";
    LinkInvalid = "LINK_INVALID", GONE, "Link invalid",
        "The link or code has been used, has expired, or has been replaced by a newer one. Request a new one.";
    PreconditionFailed = "PRECONDITION_FAILED", PRECONDITION_FAILED, "Precondition failed",
        "The record has changed since it was read.";
    PayloadTooLarge = "PAYLOAD_TOO_LARGE", PAYLOAD_TOO_LARGE, "Payload too large",
        "The request body is larger than the service accepts.";
    UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE", UNSUPPORTED_MEDIA_TYPE, "Unsupported media type",
        "Request bodies must be `application/json`.";
    ValidationFailed = "VALIDATION_FAILED", UNPROCESSABLE_ENTITY, "Validation failed",
        "The request is well-formed but has invalid values. `errors` lists each one and says why.";
    IdempotencyKeyReused = "IDEMPOTENCY_KEY_REUSED", UNPROCESSABLE_ENTITY, "Idempotency key reused",
        "The `Idempotency-Key` was already used for a different request. Use a new key for each change.";
    QueryTooComplex = "QUERY_TOO_COMPLEX", UNPROCESSABLE_ENTITY, "Query too complex",
        "The GraphQL document exceeds a limit: depth, aliases, complexity or size.";
    RateLimited = "RATE_LIMITED", TOO_MANY_REQUESTS, "Rate limited",
        "Too many requests. `Retry-After` says when to try again.";
    StorageFull = "STORAGE_FULL", INSUFFICIENT_STORAGE, "Storage full",
        "The database is out of space (disk or quota); nothing was changed. Reads still work; the operator needs to free up space.";
    Internal = "INTERNAL", INTERNAL_SERVER_ERROR, "Internal error",
        "The service failed. The log has the cause, under the request id.";
    Unavailable = "UNAVAILABLE", SERVICE_UNAVAILABLE, "Unavailable",
        "The database can't be reached, or the service is shutting down. Try again.";
}

impl Code {
    /// The last path segment of the problem's `type`: `approval-not-pending`.
    #[must_use]
    pub fn slug(self) -> String {
        self.as_str().to_ascii_lowercase().replace('_', "-")
    }
}

/// An invalid value in a request (RFC 9457 extension `errors`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// A JSON pointer into the body, or the name of a query parameter.
    #[serde(flatten)]
    pub at: At,
    /// The kind of mistake: `REQUIRED`, `UNKNOWN_KEY`, `WRONG_TYPE`, `TOO_SMALL`, `TOO_LARGE`, `TOO_SHORT`, `TOO_LONG`,
    /// `NOT_ALLOWED`, ….
    pub code: &'static str,
    pub detail: String,
}

/// Where an invalid value is. Pointers lead into the body of a REST request, which is the `input` argument of a GraphQL
/// field; features write them in REST's spelling, and the GraphQL interface translates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// A JSON pointer into the body (REST) or into the field's arguments (GraphQL).
    Pointer(String),
    /// A query parameter.
    Parameter(String),
}

impl Violation {
    /// An invalid value at a JSON pointer.
    pub fn at(pointer: impl Into<String>, code: &'static str, detail: impl Into<String>) -> Self {
        Self { at: At::Pointer(pointer.into()), code, detail: detail.into() }
    }

    /// An id that matches no record of the organization.
    pub fn unknown(pointer: impl Into<String>, kind: &str, id: impl std::fmt::Display) -> Self {
        Self::at(pointer, "NOT_FOUND", format!("There is no {kind} with id {id}."))
    }

    /// The same place as GraphQL callers see it: below the field's arguments, in camelCase.
    fn in_graphql(&self) -> Self {
        let (own, at) = match &self.at {
            At::Pointer(pointer) => (pointer, format!("/input{}", camel_case(pointer))),
            At::Parameter(name) => (name, format!("/{}", camel_case(name))),
        };
        // The text names the field as well. Its other quotes may come from anyone.
        let mut detail = self.detail.clone();
        for name in own.split('/').filter(|name| name.contains('_')) {
            detail = detail.replace(&format!("`{name}`"), &format!("`{}`", camel_case(name)));
        }
        Self { at: At::Pointer(at), detail, ..self.clone() }
    }

    /// An invalid query parameter.
    pub fn parameter(name: impl Into<String>, code: &'static str, detail: impl Into<String>) -> Self {
        Self { at: At::Parameter(name.into()), code, detail: detail.into() }
    }
}

/// A refusal or a failure, in a form that every interface can show.
#[derive(Clone, Debug)]
pub struct Problem {
    pub code: Code,
    /// The explanation for the caller. Never contains internals.
    pub detail: String,
    /// Machine-readable facts.
    pub details: serde_json::Map<String, serde_json::Value>,
    /// The invalid values, if the code is `VALIDATION_FAILED`.
    pub errors: Vec<Violation>,
    /// Whether someone else has changed the record meanwhile, so that the caller needs its current state.
    is_outdated: bool,
    /// The cause, for the log only.
    cause: Option<Arc<anyhow::Error>>,
}

impl Problem {
    /// A problem with only a detail.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            details: serde_json::Map::new(),
            errors: Vec::new(),
            is_outdated: false,
            cause: None,
        }
    }

    /// Adds a machine-readable fact.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<serde_json::Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// Marks that someone else has changed the record meanwhile. A GraphQL mutation that answers with the record then
    /// shows its current state in `details.current`.
    #[must_use]
    pub fn outdated(self) -> Self {
        Self { is_outdated: true, ..self }
    }

    /// Whether someone else has changed the record meanwhile.
    #[must_use]
    pub const fn is_outdated(&self) -> bool {
        self.is_outdated
    }

    /// How many seconds to wait before retrying, if known.
    #[must_use]
    pub fn retry_after(&self) -> Option<i64> {
        let told = self.details.get("retry_after").and_then(serde_json::Value::as_i64);
        told.or_else(|| (self.code.status() == StatusCode::SERVICE_UNAVAILABLE).then_some(5))
    }

    /// The organization has no such record.
    pub fn not_found(kind: &str, id: impl std::fmt::Display) -> Self {
        Self::new(Code::NotFound, format!("This organization has no {kind} with id {id}."))
    }

    /// Another record of this kind already has the name.
    #[must_use]
    pub fn name_taken(kind: &str, name: &str) -> Self {
        Self::new(Code::NameTaken, format!("A {kind} named `{name}` already exists.")).with("name", name)
    }

    /// Lists every invalid value.
    #[must_use]
    pub fn invalid(errors: Vec<Violation>) -> Self {
        let detail = match errors.as_slice() {
            [one] => one.detail.clone(),
            many => format!("{} values are invalid.", many.len()),
        };
        Self { errors, ..Self::new(Code::ValidationFailed, detail) }
    }

    /// Fails if there are any invalid values.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn fail_if_any(errors: Vec<Violation>) -> Result<()> {
        if errors.is_empty() { Ok(()) } else { Err(Self::invalid(errors)) }
    }

    /// A single invalid value.
    pub fn invalid_at(pointer: impl Into<String>, code: &'static str, detail: impl Into<String>) -> Self {
        Self::invalid(vec![Violation::at(pointer, code, detail)])
    }

    /// A single invalid argument or query parameter.
    pub fn invalid_parameter(name: &str, code: &'static str, detail: impl Into<String>) -> Self {
        Self::invalid(vec![Violation::parameter(name, code, detail)])
    }

    /// Moves all violations to `argument`: for a revert, whose caller sent a version and none of the invalid values.
    #[must_use]
    pub fn blame_argument(mut self, argument: &str) -> Self {
        for violation in &mut self.errors {
            violation.at = At::Parameter(argument.to_owned());
        }
        self
    }

    /// A failure on our side. The caller learns nothing more than that.
    pub fn internal(cause: impl Into<anyhow::Error>) -> Self {
        Self::new(Code::Internal, "The service failed; the log has the cause.").with_cause(cause)
    }

    /// The database can't be reached or is busy.
    pub fn unavailable(cause: impl Into<anyhow::Error>) -> Self {
        Self::new(Code::Unavailable, "The database can't be reached or is busy; try again.").with_cause(cause)
    }

    /// Keeps the cause for the log.
    fn with_cause(mut self, cause: impl Into<anyhow::Error>) -> Self {
        self.cause = Some(Arc::new(cause.into()));
        self
    }

    /// For the log and the operator only.
    pub(crate) fn cause(&self) -> Option<&anyhow::Error> {
        self.cause.as_deref()
    }

    /// `extensions` of a GraphQL error, with the same names as in REST.
    pub fn extend(&self, extensions: &mut ErrorExtensionValues, request_id: &str) {
        extensions.set("code", self.code.as_str());
        extensions.set("status", u32::from(self.code.status().as_u16()));
        extensions.set("requestId", request_id);
        if !self.details.is_empty() {
            extensions.set("details", to_value(&self.details));
        }
        if !self.errors.is_empty() {
            let errors: Vec<_> = self.errors.iter().map(Violation::in_graphql).collect();
            extensions.set("errors", to_value(&errors));
        }
    }
}

fn to_value<T: Serialize>(value: &T) -> Value {
    async_graphql::to_value(value).unwrap_or_default()
}

/// async-graphql turns a problem into an error through `Display` and keeps the whole problem as its source; the edge
/// turns that into extensions or a problem document.
impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.detail)
    }
}

impl From<sea_orm::DbErr> for Problem {
    fn from(error: sea_orm::DbErr) -> Self {
        use sea_orm::{DbErr, RuntimeErr};
        let lost = match &error {
            DbErr::ConnectionAcquire(_) | DbErr::Conn(_) => true,
            DbErr::Exec(RuntimeErr::SqlxError(error)) | DbErr::Query(RuntimeErr::SqlxError(error)) => {
                is_unavailable(error)
            }
            _ => false,
        };
        match error.sql_err() {
            Some(sea_orm::SqlErr::UniqueConstraintViolation(violated)) => {
                unique_violation(&violated).with_cause(error)
            }
            Some(sea_orm::SqlErr::ForeignKeyConstraintViolation(_)) => {
                let detail =
                    "A record that this one refers to is gone, or another record still refers to this one.";
                Self::new(Code::Conflict, detail).with_cause(error)
            }
            _ if is_full(&error) => {
                let detail = "The database is out of space; nothing was changed.";
                Self::new(Code::StorageFull, detail).with_cause(error)
            }
            _ if is_one_of(&error, READ_ONLY) => {
                let detail = "The database is on a read-only disk; nothing was changed.";
                Self::new(Code::Unavailable, detail).with_cause(error)
            }
            _ if lost => Self::unavailable(error),
            _ if is_one_of(&error, SERIALIZATION_FAILURE) => {
                let detail =
                    "Someone else changed the same records at the same time; nothing was changed. Try again.";
                Self::new(Code::Conflict, detail).with_cause(error)
            }
            _ if matches!(error, DbErr::RecordNotUpdated) => {
                let detail =
                    "Someone else changed this record first; nothing was changed. Read it again and retry.";
                Self::new(Code::Conflict, detail).with_cause(error)
            }
            _ if is_one_of(&error, LOCK_TIMEOUT) => {
                let detail = "Another change held a lock for too long; nothing was changed. Try again.";
                Self::new(Code::Unavailable, detail).with_cause(error)
            }
            _ => Self::internal(error),
        }
    }
}

/// Translates the violation of a unique index. Operations check that a name is free before they take it; the index
/// decides when two of them check at the same time. `violated` is the database's message: PostgreSQL names the index
/// (`servers_name`), SQLite its columns (`servers.organization_id, servers.name`).
fn unique_violation(violated: &str) -> Problem {
    let index = violated.trim_end_matches('"').ends_with("_name");
    if index || violated.rsplit('.').next() == Some("name") {
        return Problem::new(Code::NameTaken, "This name is already taken.");
    }
    Problem::new(Code::Conflict, "This already exists.")
}

/// Whether a statement failed because the database ran out of space. SQLite: `SQLITE_FULL` (13); 4874, when a full disk
/// affects its shared memory; 778, when a quota or file-size limit stops a write (a broken disk gives 778 too: see the
/// log). PostgreSQL: `disk_full` (53100).
fn is_full(error: &sea_orm::DbErr) -> bool {
    is_one_of(error, &["13", "778", "4874", "53100"])
}

/// SQLite may not write: its disk is read-only.
const READ_ONLY: &[&str] = &["8"];
/// PostgreSQL rolled back a transaction because of a deadlock or a serialization failure.
const SERIALIZATION_FAILURE: &[&str] = &["40P01", "40001"];
/// PostgreSQL hit the lock timeout of a write connection (`core/store/db.rs`).
const LOCK_TIMEOUT: &[&str] = &["55P03"];

fn is_one_of(error: &sea_orm::DbErr, codes: &[&str]) -> bool {
    code_of(error).is_some_and(|code| codes.contains(&code.as_ref()))
}

fn code_of(error: &sea_orm::DbErr) -> Option<std::borrow::Cow<'_, str>> {
    use sea_orm::{DbErr, RuntimeErr};
    match error {
        DbErr::Exec(RuntimeErr::SqlxError(error))
        | DbErr::Query(RuntimeErr::SqlxError(error))
        | DbErr::Conn(RuntimeErr::SqlxError(error)) => match error.as_ref() {
            sqlx::Error::Database(db) => db.code(),
            _ => None,
        },
        _ => None,
    }
}

/// Whether the database is unavailable: the connection was lost, the server is shutting down, or another process keeps
/// SQLite's writer busy.
pub(crate) fn is_unavailable(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed => {
            true
        }
        // Class 57P: the operator intervened (shutdown, crash recovery); class 08: connection exception; 53300: too
        // many connections; 25006: the server is read-only since another took over as primary; 25P03: the server ended
        // an idle transaction; 5, 261 and 517: another process kept SQLite's writer busy for longer than the busy
        // timeout.
        sqlx::Error::Database(db) => db.code().is_some_and(|code| {
            code.starts_with("57P")
                || code.starts_with("08")
                || matches!(code.as_ref(), "53300" | "25006" | "25P03" | "5" | "261" | "517")
        }),
        _ => false,
    }
}
