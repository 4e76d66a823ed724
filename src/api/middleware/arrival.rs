//! The parts of a request that every interface reads first: id, address, credential.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::extract::FromRequestParts;
use http::{HeaderMap, Method, StatusCode, Uri, header, request::Parts};

use super::connections::Connection;
use crate::{
    base::{
        enums::DecidedVia,
        problem::{Code, Problem, Result},
    },
    core::{
        Core, Request,
        access::{
            Caller,
            authn::{Recognized, recognize},
        },
        audit,
        rate_limits::{Class, RateLimiter, client_address},
        request_notes::RequestNotes,
        resource_limits::{ConnectionPermit, Holder},
    },
};

/// A request on arrival.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The id in the response (`X-Request-Id`) and the log.
    pub request_id: String,
    pub ip: Option<IpAddr>,
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
    /// The address that accepted the connection.
    pub listener: Option<SocketAddr>,
    pub(super) notes: RequestNotes,
    /// The connection's reservation in the resource limits, held for as long as the arrival lives.
    _permit: Option<ConnectionPermit>,
}

/// The state of an interface, from which an [`Arrival`] takes the core.
pub trait HoldsCore: Send + Sync {
    fn core(&self) -> &Arc<Core>;
}

impl HoldsCore for Arc<Core> {
    fn core(&self) -> &Arc<Core> {
        self
    }
}

impl<S: HoldsCore> FromRequestParts<S> for Arrival {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> std::result::Result<Self, Self::Rejection> {
        let core = state.core();
        let request_id =
            parts.headers.get("x-request-id").and_then(|id| id.to_str().ok()).unwrap_or_default();
        let connection = parts.extensions.get::<Connection>();
        Ok(Self {
            request_id: request_id.to_owned(),
            ip: connection.map(|from| client_address(from.peer.ip(), &parts.headers, &core.config)),
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            headers: parts.headers.clone(),
            listener: connection.and_then(|from| from.listener),
            notes: parts.extensions.get::<RequestNotes>().cloned().unwrap_or_default(),
            _permit: connection.map(|from| from.place.clone()),
        })
    }
}

impl Arrival {
    /// Turns this arrival into a request by `caller` through the interface `via`.
    #[must_use]
    pub fn request(&self, core: &Arc<Core>, caller: Caller, via: DecidedVia) -> Request {
        let mut request = Request::new(core, caller);
        request.id.clone_from(&self.request_id);
        request.ip = self.ip;
        request.user_agent = self.user_agent().map(str::to_owned);
        request.via = via;
        request.notes = self.notes.clone();
        request
    }

    #[must_use]
    pub fn user_agent(&self) -> Option<&str> {
        self.headers.get(http::header::USER_AGENT)?.to_str().ok()
    }

    /// Identifies the caller, anonymous without a credential, and charges the request to them by its method.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` or `TOKEN_EXPIRED` for a bad credential; `RATE_LIMITED`.
    pub async fn caller(&self, core: &Arc<Core>) -> Result<Caller> {
        let caller = self.caller_uncharged(core).await?;
        self.charge(core, &caller, Class::of_method(&self.method))?;
        Ok(caller)
    }

    /// Takes one token from the caller's bucket.
    ///
    /// # Errors
    /// `RATE_LIMITED`.
    pub fn charge(&self, core: &Core, caller: &Caller, class: Class) -> Result<()> {
        if class == Class::Writes {
            self.notes.mark_change();
        }
        match &core.rate_limits {
            Some(limits) => limits
                .charge(caller, self.ip, class, &self.notes)
                .inspect_err(|_| audit::rate_limited(core, caller, self.ip, &self.request_id)),
            None => Ok(()),
        }
    }

    /// Charges a signed request to its channel, and records the charge for the answer's headers.
    ///
    /// # Errors
    /// `RATE_LIMITED`.
    pub fn charge_channel(&self, core: &Core, channel: Holder) -> Result<()> {
        core.rate_limits.as_ref().map_or(Ok(()), |limits| limits.charge_channel(channel, &self.notes))
    }

    /// Identifies the holder of `token`. A bad credential is written to the audit log and charged to the IP address. A
    /// credential that could be made up is charged before the database is queried, so that guesses cost the database no
    /// more than the address's rate limit allows.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` or `TOKEN_EXPIRED`; `RATE_LIMITED` after too many bad ones.
    pub async fn authenticate(&self, core: &Arc<Core>, token: &str) -> Result<Caller> {
        self.identify(core, recognize(core, token)).await
    }

    /// Identifies the holder of a token. `recognized` may be a refusal already.
    pub(super) async fn identify(
        &self,
        core: &Arc<Core>,
        recognized: Result<Recognized<'_>>,
    ) -> Result<Caller> {
        let recognized = recognized.map_err(|problem| self.refuse(core, problem, None))?;
        let prepaid = if recognized.has_evidence(core) { None } else { Some(self.charge_in_advance(core)?) };
        match recognized.caller(core).await {
            Ok(caller) => {
                if let Some(prepaid) = &prepaid {
                    prepaid.refund();
                }
                Ok(caller)
            }
            Err(problem) => Err(self.refuse(core, problem, prepaid)),
        }
    }

    /// Runs the check of a credential that could be invented. The IP address is charged in advance, and refunded if the
    /// credential is good; a bad one is written to the audit log.
    ///
    /// # Errors
    /// Those of `check`; `RATE_LIMITED` after too many bad ones.
    pub async fn check_credential<T>(
        &self,
        core: &Core,
        check: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let prepaid = self.charge_in_advance(core)?;
        match check.await {
            Ok(proven) => {
                prepaid.refund();
                Ok(proven)
            }
            Err(problem) => Err(self.refuse(core, problem, Some(prepaid))),
        }
    }

    /// The bearer token of the request.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` without one, or for another authentication scheme.
    pub fn bearer(&self) -> Result<&str> {
        let token = bearer(&self.headers)?;
        token.ok_or_else(|| {
            Problem::new(Code::Unauthenticated, "Send a token in `Authorization: Bearer <token>`.")
        })
    }

    /// Charges the IP address in advance, for a credential that may turn out to be bad.
    ///
    /// # Errors
    /// `RATE_LIMITED`.
    pub fn charge_in_advance<'a>(&self, core: &'a Core) -> Result<Prepaid<'a>> {
        let notes = RequestNotes::default();
        if let Some(limits) = &core.rate_limits {
            limits.charge_address(self.ip, &notes).inspect_err(|_| {
                self.notes.copy(&notes);
                audit::rate_limited(core, &Caller::Anonymous, self.ip, &self.request_id);
            })?;
        }
        Ok(Prepaid { limits: core.rate_limits.as_ref(), ip: self.ip, notes })
    }

    /// The answer to a bad credential: `problem`, or a rate limit after too many of them.
    fn refuse(&self, core: &Core, problem: Problem, prepaid: Option<Prepaid<'_>>) -> Problem {
        audit::refused_credential(core, &problem, self.ip, &self.request_id);
        let is_bad = problem.code.status() == StatusCode::UNAUTHORIZED;
        match (prepaid, &core.rate_limits) {
            (Some(prepaid), _) if is_bad => prepaid.keep(self),
            // The credential was not the cause.
            (Some(prepaid), _) => prepaid.refund(),
            (None, Some(limits)) if is_bad => {
                return limits.charge_address(self.ip, &self.notes).err().unwrap_or(problem);
            }
            (None, _) => {}
        }
        problem
    }

    /// [`Self::caller`] for an interface that charges each operation itself.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` or `TOKEN_EXPIRED` for a bad credential; `RATE_LIMITED` after too many of them.
    pub async fn caller_uncharged(&self, core: &Arc<Core>) -> Result<Caller> {
        let caller = match bearer(&self.headers)? {
            Some(token) => self.authenticate(core, token).await?,
            None => Caller::Anonymous,
        };
        Ok(self.record_caller(caller))
    }

    /// Records the caller for the log line and the resource limits.
    pub(super) fn record_caller(&self, caller: Caller) -> Caller {
        let span = tracing::Span::current();
        span.record("caller", tracing::field::display(caller.kind()));
        if let Some(user) = caller.user() {
            span.record("user_id", user.0);
        }
        if let Caller::Token(token) = &caller {
            span.record("token_id", token.id.0);
            self.notes.set_org(token.org);
        }
        self.notes.set_holder(Holder::of(&caller, self.ip));
        caller
    }
}

/// A charge taken in advance from an IP address's bucket.
pub struct Prepaid<'a> {
    limits: Option<&'a RateLimiter>,
    ip: Option<IpAddr>,
    notes: RequestNotes,
}

impl Prepaid<'_> {
    /// Returns the charge: the credential was good.
    pub fn refund(&self) {
        if let Some(limits) = self.limits {
            limits.refund(self.ip);
        }
    }

    /// Keeps the charge: the credential was bad.
    pub fn keep(self, arrival: &Arrival) {
        arrival.notes.copy(&self.notes);
    }
}

/// The bearer token of the request, if it has one.
///
/// # Errors
/// `UNAUTHENTICATED` for another authentication scheme.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>> {
    match headers.get(header::AUTHORIZATION) {
        Some(value) => bearer_of(value.to_str().unwrap_or_default()).map(Some),
        None => Ok(None),
    }
}

/// The token in the value of an `Authorization` header.
///
/// # Errors
/// `UNAUTHENTICATED` for another authentication scheme.
pub fn bearer_of(text: &str) -> Result<&str> {
    text.split_once(' ')
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim())
        .ok_or_else(|| Problem::new(Code::Unauthenticated, "Send a token as `Authorization: Bearer`."))
}

#[must_use]
pub fn is_json(headers: &HeaderMap) -> bool {
    let declared =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = declared.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}
