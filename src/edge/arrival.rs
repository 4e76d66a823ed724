//! What both faces read of a request before anything else: id, address, credential.

use std::{net::IpAddr, sync::Arc};

use axum::extract::FromRequestParts;
use http::{HeaderMap, Method, StatusCode, Uri, header, request::Parts};

use super::{
    connections::Connection,
    ledger::{Holder, Place},
    limits::{Class, Limits, Slot, client_address},
};

use crate::{
    access::{Caller, recognize},
    app::App,
    audit,
    error::{Code, Problem, Result},
};

/// A request as it arrived: what both faces read of it before anything else.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The id that the response and the log carry (`X-Request-Id`).
    pub request_id: String,
    /// Where from.
    pub ip: Option<IpAddr>,
    /// To do what.
    pub method: Method,
    /// What for.
    pub uri: Uri,
    /// The headers.
    pub headers: HeaderMap,
    slot: Slot,
    /// The connection's place, which is taken for as long as anybody has this.
    _place: Option<Place>,
}

impl FromRequestParts<Arc<App>> for Arrival {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        app: &Arc<App>,
    ) -> std::result::Result<Self, Self::Rejection> {
        let request_id =
            parts.headers.get("x-request-id").and_then(|id| id.to_str().ok()).unwrap_or_default();
        let connection = parts.extensions.get::<Connection>();
        Ok(Self {
            request_id: request_id.to_owned(),
            ip: connection.map(|from| client_address(from.peer.ip(), &parts.headers, &app.config)),
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            headers: parts.headers.clone(),
            slot: parts.extensions.get::<Slot>().cloned().unwrap_or_default(),
            _place: connection.map(|from| from.place.clone()),
        })
    }
}

impl Arrival {
    /// What the client calls itself.
    #[must_use]
    pub fn user_agent(&self) -> Option<&str> {
        self.headers.get(http::header::USER_AGENT)?.to_str().ok()
    }

    /// Who sent it: anonymous without a credential. The request is charged to them, by its method.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` or `TOKEN_EXPIRED` for a credential that is no good; `RATE_LIMITED`.
    pub async fn caller(&self, app: &Arc<App>) -> Result<Caller> {
        let caller = self.caller_uncharged(app).await?;
        self.charge(app, &caller, Class::of(&self.method))?;
        Ok(caller)
    }

    /// Takes one from the bucket of the caller.
    ///
    /// # Errors
    /// `RATE_LIMITED`.
    pub fn charge(&self, app: &App, caller: &Caller, class: Class) -> Result<()> {
        if class == Class::Writes {
            self.slot.changes();
        }
        match &app.limits {
            Some(limits) => limits
                .charge(caller, self.ip, class, &self.slot)
                .inspect_err(|_| audit::rate_limited(app, caller, self.ip, &self.request_id)),
            None => Ok(()),
        }
    }

    /// The holder of `token`. A credential that is no good has its line in the audit log, and is charged to the address:
    /// one that anybody could have made up before the database is asked for it, so that inventions cost it no more than
    /// the address may ask.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` or `TOKEN_EXPIRED`; `RATE_LIMITED` after too many of those.
    pub async fn authenticate(&self, app: &Arc<App>, token: &str) -> Result<Caller> {
        let recognized = recognize(app, token).map_err(|problem| self.refuse(app, problem, None))?;
        let advance = if recognized.is_vouched_for(app) { None } else { Some(self.advance(app)?) };
        match recognized.caller(app).await {
            Ok(caller) => {
                advance.as_ref().map(Advance::give_back);
                Ok(caller)
            }
            Err(problem) => Err(self.refuse(app, problem, advance)),
        }
    }

    /// Takes one from the address's bucket for what may turn out to be no good.
    ///
    /// # Errors
    /// `RATE_LIMITED`.
    pub fn advance<'a>(&self, app: &'a App) -> Result<Advance<'a>> {
        let slot = Slot::default();
        if let Some(limits) = &app.limits {
            limits.charge_address(self.ip, &slot).inspect_err(|_| {
                self.slot.copy(&slot);
                audit::rate_limited(app, &Caller::Anonymous, self.ip, &self.request_id);
            })?;
        }
        Ok(Advance { limits: app.limits.as_ref(), ip: self.ip, slot })
    }

    /// What a credential is answered that is no good: `problem`, or that there were too many of them.
    fn refuse(&self, app: &App, problem: Problem, advance: Option<Advance<'_>>) -> Problem {
        audit::refused_credential(app, &problem, self.ip, &self.request_id);
        let is_bad = problem.code.status() == StatusCode::UNAUTHORIZED;
        match (advance, &app.limits) {
            (Some(advance), _) if is_bad => advance.keep(self),
            // It is not the credential that is to blame.
            (Some(advance), _) => advance.give_back(),
            (None, Some(limits)) if is_bad => {
                return limits.charge_address(self.ip, &self.slot).err().unwrap_or(problem);
            }
            (None, _) => {}
        }
        problem
    }

    /// [`Self::caller`] for a face that charges what the request asks for by itself.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` or `TOKEN_EXPIRED` for a credential that is no good; `RATE_LIMITED` after too many of those.
    pub async fn caller_uncharged(&self, app: &Arc<App>) -> Result<Caller> {
        let caller = match bearer(&self.headers)? {
            Some(token) => self.authenticate(app, token).await?,
            None => Caller::Anonymous,
        };
        tracing::Span::current().record("caller", tracing::field::display(caller.kind()));
        self.slot.held_by(Holder::of(&caller, self.ip));
        Ok(caller)
    }
}

/// What was taken in advance from the bucket of an address.
pub struct Advance<'a> {
    limits: Option<&'a Limits>,
    ip: Option<IpAddr>,
    slot: Slot,
}

impl Advance<'_> {
    /// It was good after all.
    pub fn give_back(&self) {
        if let Some(limits) = self.limits {
            limits.give_back(self.ip);
        }
    }

    /// It was not.
    pub fn keep(self, arrival: &Arrival) {
        arrival.slot.copy(&self.slot);
    }
}

/// The token of the request, if it carries one.
///
/// # Errors
/// `UNAUTHENTICATED` for another scheme.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>> {
    match headers.get(header::AUTHORIZATION) {
        Some(value) => bearer_of(value.to_str().unwrap_or_default()).map(Some),
        None => Ok(None),
    }
}

/// The token in the text of an `Authorization`.
///
/// # Errors
/// `UNAUTHENTICATED` for another scheme.
pub fn bearer_of(text: &str) -> Result<&str> {
    text.split_once(' ')
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim())
        .ok_or_else(|| Problem::new(Code::Unauthenticated, "Send `Authorization: Bearer` with a token."))
}

/// Whether the body is declared as JSON.
#[must_use]
pub fn is_json(headers: &HeaderMap) -> bool {
    let declared =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = declared.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}
