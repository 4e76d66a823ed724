//! The one error at the edge: [`Problem`].
//!
//! Slices return it; GraphQL shows it in `extensions`, REST as RFC 9457 `application/problem+json`. What is
//! shown (code, detail, violations) and what is kept (the cause, which only the log sees) are separate fields:
//! no SQL, path or backtrace can leave the process by way of `Display`.

use std::sync::Arc;

use async_graphql::{ErrorExtensionValues, Value};
use http::StatusCode;
use serde::Serialize;

use super::spelling::camel_case;

/// The result of everything that a caller may ask for.
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

            /// What went wrong, in a few words that never change.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }

            /// What it means and what to do about it.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)+ }
            }
        }
    };
}

codes! {
    MalformedRequest = "MALFORMED_REQUEST", BAD_REQUEST, "Malformed request",
        "The request can't be parsed: broken JSON, or a path id that is no number.";
    Unauthenticated = "UNAUTHENTICATED", UNAUTHORIZED, "Unauthenticated",
        "No credential was sent, or the one sent is unknown or revoked. Send `Authorization: Bearer <token>`.";
    TokenExpired = "TOKEN_EXPIRED", UNAUTHORIZED, "Token expired",
        "The credential was good once. Refresh the session, or issue a new service token.";
    SignInFailed = "SIGN_IN_FAILED", UNAUTHORIZED, "Sign-in failed",
        "The e-mail address or the password is wrong; which of the two is not told.";
    SecondFactorRequired = "SECOND_FACTOR_REQUIRED", FORBIDDEN, "Second factor required",
        "The organization asks its members for a second factor. Set one up (`beginTotp`), then try again.";
    PermissionDenied = "PERMISSION_DENIED", FORBIDDEN, "Permission denied",
        "The caller is a member but lacks the permission that `details.permission` names.";
    NotAMember = "NOT_A_MEMBER", FORBIDDEN, "Not a member",
        "The caller does not belong to this organization, or there is no such organization; which is not told.";
    EmailNotConfirmed = "EMAIL_NOT_CONFIRMED", FORBIDDEN, "E-mail not confirmed",
        "Connecting or editing a channel needs a confirmed e-mail address.";
    PlanLimitReached = "PLAN_LIMIT_REACHED", FORBIDDEN, "Plan limit reached",
        "The organization's plan allows no more of these. `details` names the limit, its maximum and the use.";
    NotFound = "NOT_FOUND", NOT_FOUND, "Not found",
        "There is no such thing in this organization, or no such route.";
    MethodNotAllowed = "METHOD_NOT_ALLOWED", METHOD_NOT_ALLOWED, "Method not allowed",
        "The path exists, but not with this method. `Allow` lists those that do.";
    Conflict = "CONFLICT", CONFLICT, "Conflict",
        "Somebody else changed the same thing at the same moment. Read it again and retry.";
    AgentAlreadyRunning = "AGENT_ALREADY_RUNNING", CONFLICT, "Agent already running",
        "The agent runs, is paused or is stopping. Only a stopped or failed agent can be started, moved or deleted.";
    AgentNotRunning = "AGENT_NOT_RUNNING", CONFLICT, "Agent not running",
        "The present state of the agent does not allow this. `details.status` tells the state.";
    ApprovalNotPending = "APPROVAL_NOT_PENDING", CONFLICT, "Approval not pending",
        "The approval was decided, dismissed or has expired before.";
    ApprovalNotAQuestion = "APPROVAL_NOT_A_QUESTION", CONFLICT, "Approval is not a question",
        "Only a question, or an action to approve or deny, can be answered.";
    NameTaken = "NAME_TAKEN", CONFLICT, "Name taken",
        "Another record of this kind in the organization has the same name.";
    Archived = "ARCHIVED", CONFLICT, "Archived",
        "The record is archived. Restore it before you change it.";
    InUse = "IN_USE", CONFLICT, "In use",
        "Other records refer to this one. Remove those first.";
    PolicyLocksOut = "POLICY_LOCKS_OUT", CONFLICT, "Policy locks out",
        "After the change nobody in the organization could edit its policy, so nobody could take it back.";
    PolicyOwnedByFile = "POLICY_OWNED_BY_FILE", CONFLICT, "Policy owned by a file",
        "The organization's rules are in a file of the policy folder, which `details.file` names. The operator edits the file, \
         or publishes it and deletes it; then the organization can edit its rules.";
    LastOwner = "LAST_OWNER", CONFLICT, "Last owner",
        "An organization keeps at least one OWNER.";
    IdempotencyInProgress = "IDEMPOTENCY_IN_PROGRESS", CONFLICT, "Idempotency key in progress",
        "The first request with this `Idempotency-Key` is still under way. `Retry-After` tells when to ask again.";
    IdempotencyInDoubt = "IDEMPOTENCY_IN_DOUBT", CONFLICT, "Idempotency key in doubt",
        "The change of this `Idempotency-Key` was made, but its answer was lost or not kept. It is not made again: read the record.";
    LinkInvalid = "LINK_INVALID", GONE, "Link invalid",
        "The link or code was used, has expired, or a newer one has replaced it. Ask for another.";
    PreconditionFailed = "PRECONDITION_FAILED", PRECONDITION_FAILED, "Precondition failed",
        "The record has changed since it was read.";
    PayloadTooLarge = "PAYLOAD_TOO_LARGE", PAYLOAD_TOO_LARGE, "Payload too large",
        "The request's body is larger than the service takes.";
    UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE", UNSUPPORTED_MEDIA_TYPE, "Unsupported media type",
        "Bodies are `application/json`.";
    ValidationFailed = "VALIDATION_FAILED", UNPROCESSABLE_ENTITY, "Validation failed",
        "The request is well-formed but wrong. `errors` names every wrong value and why.";
    IdempotencyKeyReused = "IDEMPOTENCY_KEY_REUSED", UNPROCESSABLE_ENTITY, "Idempotency key reused",
        "The `Idempotency-Key` was used for another request. Take a new key for each change.";
    QueryTooComplex = "QUERY_TOO_COMPLEX", UNPROCESSABLE_ENTITY, "Query too complex",
        "The GraphQL document asks for more than one request may: depth, aliases, complexity or size.";
    RateLimited = "RATE_LIMITED", TOO_MANY_REQUESTS, "Rate limited",
        "Too many requests. `Retry-After` tells when to come back.";
    StorageFull = "STORAGE_FULL", INSUFFICIENT_STORAGE, "Storage full",
        "The database has no room for the change (the disk, a quota); nothing was changed. Reading goes on; the operator has to make room.";
    Internal = "INTERNAL", INTERNAL_SERVER_ERROR, "Internal error",
        "The service failed. The log has the cause under the request id.";
    Unavailable = "UNAVAILABLE", SERVICE_UNAVAILABLE, "Unavailable",
        "The database is out of reach, or the service is shutting down. Try again.";
}

impl Code {
    /// The last part of the problem's type: `approval-not-pending`.
    #[must_use]
    pub fn slug(self) -> String {
        self.as_str().to_ascii_lowercase().replace('_', "-")
    }
}

/// One wrong value of a request (RFC 9457 extension `errors`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Where: a JSON pointer into the body, or the name of a query parameter.
    #[serde(flatten)]
    pub at: At,
    /// What kind of mistake: `REQUIRED`, `UNKNOWN_KEY`, `WRONG_TYPE`, `TOO_SMALL`, `TOO_LARGE`, `TOO_SHORT`, `TOO_LONG`, `NOT_ALLOWED`, ….
    pub code: &'static str,
    /// What is wrong, for a person.
    pub detail: String,
}

/// The place of a wrong value. Pointers lead into the body of a REST request, which is the argument `input` of a
/// GraphQL field; slices spell them as REST does, and the GraphQL face translates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// A JSON pointer into the body (REST) or into the field's arguments (GraphQL).
    Pointer(String),
    /// A query parameter.
    Parameter(String),
}

impl Violation {
    /// A wrong value at a JSON pointer.
    pub fn at(pointer: impl Into<String>, code: &'static str, detail: impl Into<String>) -> Self {
        Self { at: At::Pointer(pointer.into()), code, detail: detail.into() }
    }

    /// An id of something that the organization does not have.
    pub fn unknown(pointer: impl Into<String>, kind: &str, id: impl std::fmt::Display) -> Self {
        Self::at(pointer, "NOT_FOUND", format!("There is no {kind} {id}."))
    }

    /// The same place as GraphQL callers know it: below the field's arguments, in camelCase.
    fn in_graphql(&self) -> Self {
        let at = match &self.at {
            At::Pointer(pointer) => format!("/input{}", camel_case(pointer)),
            At::Parameter(name) => format!("/{}", camel_case(name)),
        };
        Self { at: At::Pointer(at), ..self.clone() }
    }

    /// A wrong query parameter.
    pub fn parameter(name: impl Into<String>, code: &'static str, detail: impl Into<String>) -> Self {
        Self { at: At::Parameter(name.into()), code, detail: detail.into() }
    }
}

/// A refusal or a failure, ready for either face.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The stable code.
    pub code: Code,
    /// What happened, for the caller. Never holds internals.
    pub detail: String,
    /// Facts for programs: an object.
    pub details: serde_json::Map<String, serde_json::Value>,
    /// Wrong values, when the code is `VALIDATION_FAILED`.
    pub errors: Vec<Violation>,
    /// The cause, for the log alone.
    cause: Option<Arc<anyhow::Error>>,
}

impl Problem {
    /// A problem with nothing more to say than its detail.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), details: serde_json::Map::new(), errors: Vec::new(), cause: None }
    }

    /// Adds a fact for programs.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<serde_json::Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// After how many seconds to come back, where that is known.
    #[must_use]
    pub fn retry_after(&self) -> Option<i64> {
        let told = self.details.get("retry_after").and_then(serde_json::Value::as_i64);
        told.or_else(|| (self.code.status() == StatusCode::SERVICE_UNAVAILABLE).then_some(5))
    }

    /// Nothing of that kind with that id in this organization.
    pub fn not_found(kind: &str, id: impl std::fmt::Display) -> Self {
        Self::new(Code::NotFound, format!("There is no {kind} {id} in this organization."))
    }

    /// Another record of this kind has the name.
    #[must_use]
    pub fn name_taken(kind: &str, name: &str) -> Self {
        Self::new(Code::NameTaken, format!("There is a {kind} named `{name}` already.")).with("name", name)
    }

    /// Wrong values; every one is named.
    #[must_use]
    pub fn invalid(errors: Vec<Violation>) -> Self {
        let detail = match errors.as_slice() {
            [one] => one.detail.clone(),
            many => format!("{} values are wrong.", many.len()),
        };
        Self { errors, ..Self::new(Code::ValidationFailed, detail) }
    }

    /// Refuses wrong values, if there are any.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`.
    pub fn refuse(errors: Vec<Violation>) -> Result<()> {
        if errors.is_empty() { Ok(()) } else { Err(Self::invalid(errors)) }
    }

    /// One wrong value.
    pub fn invalid_at(pointer: impl Into<String>, code: &'static str, detail: impl Into<String>) -> Self {
        Self::invalid(vec![Violation::at(pointer, code, detail)])
    }

    /// One wrong argument or query parameter.
    pub fn invalid_parameter(name: &str, code: &'static str, detail: impl Into<String>) -> Self {
        Self::invalid(vec![Violation::parameter(name, code, detail)])
    }

    /// A failure of our own: the caller learns only that it happened.
    pub fn internal(cause: impl Into<anyhow::Error>) -> Self {
        Self::new(Code::Internal, "The service failed; the log has the cause.").because(cause)
    }

    /// The database can't be reached.
    pub fn unavailable(cause: impl Into<anyhow::Error>) -> Self {
        Self::new(Code::Unavailable, "The database is out of reach; try again.").because(cause)
    }

    /// Keeps the cause for the log.
    fn because(mut self, cause: impl Into<anyhow::Error>) -> Self {
        self.cause = Some(Arc::new(cause.into()));
        self
    }

    /// What only the log and the operator may know.
    pub(crate) fn cause(&self) -> Option<&anyhow::Error> {
        self.cause.as_deref()
    }

    /// `extensions` of a GraphQL error: what REST shows, under the same names.
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

/// By way of `Display`, async-graphql makes an error of a problem and keeps the problem whole as its source; the
/// edge turns that into extensions or a problem document.
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
                is_connection_loss(error)
            }
            _ => false,
        };
        match error.sql_err() {
            Some(sea_orm::SqlErr::UniqueConstraintViolation(violated)) => exists(&violated).because(error),
            Some(sea_orm::SqlErr::ForeignKeyConstraintViolation(_)) => {
                let detail = "A record that this one refers to is gone, or still refers to it.";
                Self::new(Code::Conflict, detail).because(error)
            }
            _ if is_full(&error) => {
                let detail = "The database has no room for this; nothing was changed.";
                Self::new(Code::StorageFull, detail).because(error)
            }
            _ if lost => Self::unavailable(error),
            _ if is_one_of(&error, COLLIDED) => {
                let detail = "Somebody else changed the same things at the same moment; nothing was changed. Try again.";
                Self::new(Code::Conflict, detail).because(error)
            }
            _ if matches!(error, DbErr::RecordNotUpdated) => {
                let detail = "Somebody else was faster; nothing was changed. Read it again and retry.";
                Self::new(Code::Conflict, detail).because(error)
            }
            _ if is_one_of(&error, HELD) => {
                let detail =
                    "Another change held what this one needs for too long; nothing was changed. Try again.";
                Self::new(Code::Unavailable, detail).because(error)
            }
            _ => Self::internal(error),
        }
    }
}

/// What a violated unique index means. Operations look for a name before they take it; the index speaks where two
/// of them looked at the same time. `violated` is the database's message: PostgreSQL names the index
/// (`servers_name`), SQLite its columns (`servers.organization_id, servers.name`).
fn exists(violated: &str) -> Problem {
    let index = violated.trim_end_matches('"').ends_with("_name");
    if index || violated.rsplit('.').next() == Some("name") {
        return Problem::new(Code::NameTaken, "There is one with this name already.");
    }
    Problem::new(Code::Conflict, "This exists already.")
}

/// A statement that failed because there is no room: SQLite's `SQLITE_FULL`, what a full disk makes of its shared memory
/// (4874) and a quota or a limit on the size of files of its writing (778: a broken disk as well, of which the log tells);
/// PostgreSQL's `disk_full`.
fn is_full(error: &sea_orm::DbErr) -> bool {
    is_one_of(error, &["13", "778", "4874", "53100"])
}

/// PostgreSQL undid one of several transactions that waited for each other in a circle, or that can't be put in an order.
const COLLIDED: &[&str] = &["40P01", "40001"];
/// PostgreSQL waited for a lock for as long as a write connection may (`core/store/db.rs`).
const HELD: &[&str] = &["55P03"];

fn is_one_of(error: &sea_orm::DbErr, codes: &[&str]) -> bool {
    code_of(error).is_some_and(|code| codes.contains(&code.as_ref()))
}

/// The database's own code of an error.
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

/// Whether a statement failed because the connection went away, or because the database is shutting down.
pub(crate) fn is_connection_loss(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed => {
            true
        }
        // Class 57: the operator intervened (shutdown, crash recovery); class 08: connection exception; 53300: too many
        // connections; 25006: the server only reads since another one has taken its place; 25P03: the server ended a
        // transaction in which nothing was said; 5 and its kin: SQLite's writer was kept busy by another process for longer
        // than anybody waits.
        sqlx::Error::Database(db) => db.code().is_some_and(|code| {
            code.starts_with("57P")
                || code.starts_with("08")
                || matches!(code.as_ref(), "53300" | "25006" | "25P03" | "5" | "261" | "517")
        }),
        _ => false,
    }
}
