//! Code hosts: GitHub as an App, GitLab and Gitea (Forgejo) with the token of an account.
//!
//! An issue, a pull request, a discussion and a thread of a review are conversations: targets are `owner/name#12`
//! (`host.rs`), message ids are paths of the API. Answers are comments. Only the core knows where we have spoken.
//!
//! - `host.rs`: the hosts' differences as data; `calls.rs`, `api.rs`: calls and their errors.
//! - `app.rs`: the GitHub App; `installation.rs`: who may use an installation; `deliveries.rs`: GitHub's requests that
//!   did not arrive; `hooks.rs`: the hooks of the other hosts, and their signatures.
//! - `activity.rs`: what happened, as a message; `github.rs`, `gitlab.rs`: payloads.
//! - `outgoing.rs`: comments, reactions and reviews; `text.rs`: what comments must not cause.

mod activity;
mod api;
mod app;
mod calls;
mod deliveries;
mod github;
mod gitlab;
mod hooks;
mod host;
mod installation;
mod outgoing;
mod text;

use std::{convert::Infallible, time::Duration};

use futures::future::BoxFuture;
use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::Value;

pub use self::activity::thread_root;
#[cfg(test)]
pub use self::text::neutralize;
use self::{
    api::{Api, Credential},
    app::App,
    host::{GITHUB, Host, Target},
    installation::Installation,
    outgoing::REVIEW,
};
use crate::{
    bounds,
    contract::{
        Abilities, Action, ActionCall, Choice, CodeHostAccount, CodeHostConfig, CodeHostLogin, CodeHostRules,
        Cursor, Dialect, Event, Failure, Files, Identity, Inlet, Kind, Limit, Longest, Part, RawRequest,
        Receipt, Received, Refusal, Reply, Scope, Sink, Software, Traits, Transport, Unit,
    },
    network::Network,
    reaction::react,
    signature::{self, Key},
};

/// <https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api#about-secondary-rate-limits>. Bodies
/// have 65,536 characters, among them our mark.
static TRAITS: Traits = Traits {
    kind: Kind::CodeHost,
    dialect: Dialect::Markdown,
    longest: Longest { count: 60_000, unit: Unit::Characters },
    limits: &[
        Limit { scope: Scope::Channel, count: 80, per: Duration::from_secs(60) },
        Limit { scope: Scope::Channel, count: 500, per: Duration::from_secs(60 * 60) },
    ],
    longest_send: bounds::TRANSFER,
    idempotent_send: false,
    reconciles: true,
    inlet: Inlet::Both,
    files: Files::Apart,
    abilities: Abilities { buttons: false, edits: false, typing: None },
    actions: &[REACT, REVIEW],
    largest_in: 50 * 1024 * 1024,
    largest_out: 50 * 1024 * 1024,
};

const REACT: Action = react!(
    "Puts an emoji on an issue or a comment that you received, such as 👀 while you work on it.",
    "One of 👍 👎 😄 🎉 😕 ❤ 🚀 👀."
);

/// A code host.
pub struct CodeHost {
    api: Api,
    inlet: Inlets,
    rules: CodeHostRules,
}

/// The way in.
enum Inlets {
    Hooks(CodeHostAccount),
    Installation(Box<Installation>),
}

impl CodeHost {
    pub const TRAITS: &'static Traits = &TRAITS;

    pub fn new(config: CodeHostConfig, network: &Network) -> Self {
        let CodeHostConfig { login, rules } = config;
        match login {
            CodeHostLogin::Account(account) => {
                let host = Host::of(account.software);
                let credential = Credential::Account(account.token.clone());
                let api = Api::new(host, host.api_url(&account.url), credential, network);
                Self { api, inlet: Inlets::Hooks(account), rules }
            }
            CodeHostLogin::Installation(login) => {
                let credential =
                    Credential::Installation(Box::new(App::new(login.app.clone(), network)), login.id);
                let api = Api::new(&GITHUB, network.vendors.github_api.clone(), credential, network);
                let installation = Installation::new(login, network);
                Self { api, inlet: Inlets::Installation(Box::new(installation)), rules }
            }
        }
    }

    fn verify_request(&self, request: &RawRequest<'_>, now: Timestamp) -> Result<(), Refusal> {
        match &self.inlet {
            Inlets::Hooks(account) => hooks::verify(account, request, now),
            Inlets::Installation(installation) => verify_github(installation.webhook_secret(), request),
        }
    }

    /// A conversation may be older than the choice of repositories, for which the authorization was checked.
    fn check_repository(&self, target: &str) -> Result<(), Failure> {
        let repos = &self.rules.repos;
        let is_listed = |place: Target<'_>| repos.iter().any(|repo| repo.eq_ignore_ascii_case(place.repo));
        if repos.is_empty() || Target::parse(target).is_none_or(is_listed) {
            return Ok(());
        }
        Err(Failure::Refused("The channel no longer lists this repository.".into()))
    }

    fn read_request(&self, request: &RawRequest<'_>) -> Result<Option<Event>, Refusal> {
        let payload: Value = read_payload(request)?;
        if let Inlets::Installation(installation) = &self.inlet
            && payload["installation"]["id"].as_i64() != Some(installation.id())
        {
            return Ok(None);
        }
        let event = request.header(self.api.host.event_header).unwrap_or_default();
        Ok(decode(self.api.host.software, event, &payload, &self.rules))
    }
}

/// The message of an event, if these rules want it.
pub fn decode(software: Software, event: &str, payload: &Value, rules: &CodeHostRules) -> Option<Event> {
    let activity = match software {
        Software::Gitlab => gitlab::read(payload),
        Software::Gitea | Software::Github => github::read(event, payload),
    };
    activity?.into_message(rules, payload).map(|message| Event::Message(Box::new(message)))
}

/// The installation that a request of GitHub is about. GitHub has one address for all installations of the App.
///
/// # Errors
/// The request is not signed with the App's secret.
pub fn read_installation(secret: &SecretString, request: &RawRequest<'_>) -> Result<Option<i64>, Refusal> {
    verify_github(secret, request)?;
    Ok(read_payload(request)?["installation"]["id"].as_i64())
}

fn verify_github(secret: &SecretString, request: &RawRequest<'_>) -> Result<(), Refusal> {
    let key = Key::new(secret).map_err(|_| Refusal::NotConfigured)?;
    let given = request.header("x-hub-signature-256").ok_or(Refusal::Unsigned)?;
    signature::verify_body(&[key], given, request.body)
}

/// GitHub can also be told to send forms.
fn read_payload(request: &RawRequest<'_>) -> Result<Value, Refusal> {
    muster_json::from_slice(request.body).map_err(|_| {
        Refusal::Malformed("The body is not JSON. Choose application/json as the hook's content type.".into())
    })
}

impl Transport for CodeHost {
    fn traits(&self) -> &'static Traits {
        Self::TRAITS
    }

    fn probe(&self) -> BoxFuture<'_, Result<Identity, Failure>> {
        Box::pin(async {
            match &self.inlet {
                Inlets::Hooks(_) => hooks::identify(&self.api).await,
                Inlets::Installation(installation) => installation.identify(&self.api, &self.rules).await,
            }
        })
    }

    fn choices<'a>(&'a self, _: Option<&'a str>) -> BoxFuture<'a, Result<Vec<Choice>, Failure>> {
        Box::pin(async {
            let found = match &self.inlet {
                Inlets::Hooks(_) => hooks::repositories(&self.api).await?,
                Inlets::Installation(installation) => installation.repositories().await?,
            };
            Ok(found.into_iter().map(|name| Choice { id: name.clone(), name }).collect())
        })
    }

    fn register<'a>(&'a self, address: Option<&'a str>) -> BoxFuture<'a, Result<bool, Failure>> {
        Box::pin(async move {
            let Inlets::Hooks(account) = &self.inlet else { return Ok(false) };
            hooks::register(&self.api, account, &self.rules.repos, address).await
        })
    }

    fn receive(&self, request: &RawRequest<'_>, now: Timestamp) -> Result<Received, Refusal> {
        self.verify_request(request, now)?;
        let event = self.read_request(request)?;
        Ok(Received { events: event.into_iter().collect(), reply: Reply::done() })
    }

    fn listen<'a>(
        &'a self,
        cursor: Option<Cursor>,
        sink: &'a dyn Sink,
    ) -> BoxFuture<'a, Result<Infallible, Failure>> {
        Box::pin(async move {
            let Inlets::Installation(installation) = &self.inlet else {
                return Err(Failure::Refused("This host sends its events.".into()));
            };
            deliveries::listen(installation, &self.api, &self.rules, cursor, sink).await
        })
    }

    fn send<'a>(&'a self, part: &'a Part<'a>) -> BoxFuture<'a, Result<Receipt, Failure>> {
        Box::pin(async move {
            self.check_repository(part.target)?;
            outgoing::send(&self.api, part).await
        })
    }

    fn reconcile<'a>(&'a self, part: &'a Part<'a>) -> BoxFuture<'a, Result<Option<Receipt>, Failure>> {
        Box::pin(outgoing::find_sent(&self.api, part))
    }

    fn act<'a>(&'a self, call: &'a ActionCall<'a>) -> BoxFuture<'a, Result<Receipt, Failure>> {
        Box::pin(async move {
            self.check_repository(call.target)?;
            match call.name {
                "review" => outgoing::review(&self.api, call).await,
                _ => outgoing::react(&self.api, call).await,
            }
        })
    }
}

#[cfg(test)]
mod tests;
