//! The connection to a service: who calls, in which organization, and what it answers.

use std::time::Duration;

use http::{
    HeaderValue, Method, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER},
};
use reqwest::{Request, Response};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};
use url::{Host, Url};

use super::operations;
use crate::{
    base::{
        bounds,
        plain::without_controls,
        problem::{Code, Problem},
    },
    cli::{Cli, Failure},
    core::{
        config::{self, Config},
        outbound,
    },
};

/// The longest wait for an answer (connecting a channel asks its vendor first), and for the next call.
const WAIT: Duration = Duration::from_secs(60);

/// Where to send a command.
#[derive(Debug, clap::Args)]
pub struct Target {
    /// The address of the service, which is sent the token in MUSTER_TOKEN
    #[arg(
        long,
        global = true,
        env = "MUSTER_URL",
        value_name = "URL",
        default_value = "http://127.0.0.1:8080"
    )]
    url: Url,
    /// The organization's id, or for a person its name [default: a person's only one]
    #[arg(long, global = true, env = "MUSTER_ORG", value_name = "ORG")]
    org: Option<String>,
    /// Send the token to another machine without encryption
    #[arg(long, global = true)]
    insecure_http: bool,
}

/// What a service refuses.
#[derive(Debug)]
pub struct Refusal {
    code: Option<Code>,
    /// The permission that the caller lacks.
    pub permission: Option<String>,
    pub detail: String,
    /// The invalid values: where in the input (a JSON pointer), and why.
    pub errors: Vec<(String, String)>,
}

/// A service, as one caller reaches it in one organization.
pub struct Remote {
    client: outbound::Client,
    url: Url,
    authorization: HeaderValue,
    org: i64,
}

impl Target {
    /// Connects with the token of the environment.
    pub async fn connect(&self, cli: &Cli) -> Result<Remote, Failure> {
        let config = cli.settings()?;
        self.require_encryption()?;
        let mut remote = Remote {
            client: self.client(&config)?,
            url: self.url.join("/graphql")?,
            authorization: authorization()?,
            org: 0,
        };
        let org = self.org.as_deref().map(str::trim).filter(|org| !org.is_empty());
        remote.org = match org.and_then(|org| org.parse::<i64>().ok()) {
            Some(id) => id,
            None => remote.own_organization(org).await?,
        };
        Ok(remote)
    }

    /// A token sent unencrypted can be read on the way.
    fn require_encryption(&self) -> Result<(), Failure> {
        if self.url.scheme() == "https" || self.insecure_http || is_here(&self.url) {
            return Ok(());
        }
        Err(Failure::invalid(format!(
            "{} is not encrypted, and the token would be sent in clear. Use https, or add --insecure-http.",
            self.url
        )))
    }

    /// A service on this machine is reached directly, any other as the environment's proxy says.
    fn client(&self, config: &Config) -> Result<outbound::Client, Failure> {
        let client = if is_here(&self.url) {
            outbound::Client::without_proxy(config)
        } else {
            outbound::Client::new(config)
        };
        Ok(client?)
    }
}

/// Whether the address is one of this machine.
fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

fn authorization() -> Result<HeaderValue, Failure> {
    let unauthenticated = |detail| Failure::with_code(Code::Unauthenticated, detail);
    let Some(token) = config::variable("MUSTER_TOKEN").map(SecretString::from) else {
        return Err(unauthenticated(
            "MUSTER_TOKEN is not set. Set it to a service token (`muster token create`), or to the access token of a \
             person's session (`muster session create`).",
        ));
    };
    let header = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret().trim()));
    let mut header = header.map_err(|_| unauthenticated("MUSTER_TOKEN is not a token."))?;
    header.set_sensitive(true);
    Ok(header)
}

impl Remote {
    /// The organization that a person means. A service token belongs to one, but can't ask which.
    async fn own_organization(&self, name: Option<&str>) -> Result<i64, Failure> {
        let needed = |detail: &str| {
            Failure::invalid(format!("{detail} Set MUSTER_ORG or --org to the organization's id."))
        };
        let viewer = self.send("Memberships", json!({})).await;
        let viewer = viewer.map_err(|refusal| match refusal.code {
            Some(Code::PermissionDenied) => {
                needed("A service token can't find an organization by its name, only by its id.")
            }
            _ => refusal.into(),
        })?;
        let memberships = viewer["viewer"]["memberships"].as_array().map_or(&[][..], Vec::as_slice);
        let is_meant = |membership: &&Value| name.is_none_or(|name| membership["organizationName"] == name);
        match memberships.iter().filter(is_meant).collect::<Vec<_>>()[..] {
            [one] => {
                one["organizationId"].as_i64().ok_or_else(|| needed("The service named no organization."))
            }
            [] => Err(needed(&format!(
                "You are not a member of {}.",
                name.map_or_else(
                    || "any organization".to_owned(),
                    |name| format!("an organization `{name}`")
                )
            ))),
            _ => Err(needed("You are a member of several.")),
        }
    }

    /// Runs an operation in the organization.
    pub async fn call(&self, operation: &str, variables: Map<String, Value>) -> Result<Value, Refusal> {
        let mut variables = variables;
        variables.insert("orgId".to_owned(), self.org.into());
        self.send(operation, Value::Object(variables)).await
    }

    /// [`Self::call`] for the record that a mutation answers with.
    pub async fn change(&self, operation: &str, variables: Map<String, Value>) -> Result<Value, Refusal> {
        let mut answer = self.call(operation, variables).await?;
        Ok(taken(&mut answer, "done"))
    }

    /// Every record of a list, page after page.
    pub async fn list(&self, operation: &str) -> Result<Vec<Value>, Refusal> {
        self.list_where(operation, Map::new()).await
    }

    /// [`Self::list`] with more variables.
    pub async fn list_where(&self, operation: &str, more: Map<String, Value>) -> Result<Vec<Value>, Refusal> {
        let (mut records, mut variables) = (Vec::new(), more);
        let by_number = operations::takes(operation, "page");
        for page in 1_i64.. {
            if by_number {
                variables.insert("page".to_owned(), page.into());
            }
            let mut answer = self.call(operation, variables.clone()).await?;
            let mut list = taken(&mut answer, "list");
            if let Value::Array(all) = list {
                return Ok(all);
            }
            let Value::Array(more) = taken(&mut list, "data") else { break };
            let is_empty = more.is_empty();
            records.extend(more);
            let next = taken(&mut list, "next");
            let total = list["total"].as_u64().unwrap_or_default();
            let is_last = if by_number { records.len() as u64 >= total } else { next.is_null() };
            if is_empty || is_last {
                break;
            }
            if !by_number {
                variables.insert("after".to_owned(), next);
            }
        }
        Ok(records)
    }

    async fn send(&self, operation: &str, variables: Value) -> Result<Value, Refusal> {
        let body = json!({ "query": operations::text(operation), "variables": variables }).to_string();
        for _ in 0..10 {
            let answer = self.post(&body).await?;
            let pause = pause(&answer);
            match read(answer).await {
                // The call was not carried out.
                Err(Refusal { code: Some(Code::RateLimited), .. }) => tokio::time::sleep(pause).await,
                read => return read,
            }
        }
        Err(Refusal::new(Code::RateLimited, format!("{} allows no more calls for now.", self.url)))
    }

    async fn post(&self, body: &str) -> Result<Response, Refusal> {
        let mut request = Request::new(Method::POST, self.url.clone());
        request.headers_mut().insert(AUTHORIZATION, self.authorization.clone());
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *request.timeout_mut() = Some(WAIT);
        *request.body_mut() = Some(body.to_owned().into());
        let sent = self.client.execute(request).await;
        sent.map_err(|error| {
            let why = outbound::certificate_error(&error).unwrap_or_else(|| root_cause(&error));
            Refusal::new(Code::Unavailable, format!("{} does not answer: {why}", self.url))
        })
    }
}

/// The pause that a service asks for before the next call.
fn pause(answer: &Response) -> Duration {
    let seconds = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    Duration::from_secs(seconds.unwrap_or(1).clamp(1, WAIT.as_secs()))
}

/// The data of an answer, or what it refuses.
async fn read(answer: Response) -> Result<Value, Refusal> {
    let status = answer.status();
    // A service sends at most 64 MiB.
    let body = outbound::read_body(answer, 80 << 20).await;
    let body =
        body.map_err(|error| Refusal::new(Code::Unavailable, format!("The answer broke off: {error}")))?;
    let mut answer: Value = muster_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
    if let Some(error) = answer.pointer("/errors/0").filter(|error| error["message"].is_string()) {
        return Err(Refusal::read(&error["extensions"], &error["message"], status));
    }
    if status == StatusCode::OK {
        return Ok(taken(&mut answer, "data"));
    }
    // A problem document: the operation did not begin.
    Err(Refusal::read(&answer, &answer["detail"], status))
}

/// A part of an answer. Null if it is not there.
pub fn taken(answer: &mut Value, key: &str) -> Value {
    answer.get_mut(key).map(Value::take).unwrap_or_default()
}

impl Refusal {
    fn new(code: Code, detail: String) -> Self {
        Self { code: Some(code), permission: None, detail, errors: Vec::new() }
    }

    /// From the facts of a problem document, or of a GraphQL error.
    fn read(facts: &Value, detail: &Value, status: StatusCode) -> Self {
        let code = Code::ALL.iter().copied().find(|code| facts["code"] == code.as_str());
        let said = |value: &Value| without_controls(value.as_str().unwrap_or_default());
        let detail = match said(detail) {
            nothing if nothing.is_empty() => format!("The service answers {status}."),
            detail => detail,
        };
        let errors = facts["errors"].as_array().into_iter().flatten();
        let errors = errors.take(bounds::LIST).map(|error| (said(&error["pointer"]), said(&error["detail"])));
        let permission = facts["details"]["permission"].as_str().map(str::to_owned);
        Self { code, permission, detail, errors: errors.collect() }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let mut detail = refusal.detail;
        if refusal.errors.len() > 1 {
            detail.extend(refusal.errors.iter().map(|(_, why)| format!("\n{why}")));
        }
        match refusal.code {
            Some(code) => Problem::new(code, detail).into(),
            None => Self::new(detail),
        }
    }
}

/// The innermost cause, which says what happened.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::is_here;

    #[test]
    fn only_the_loopback_is_this_machine() {
        let here = |url: &str| is_here(&url.parse().unwrap());
        assert!(here("http://localhost:8080") && here("http://127.0.0.2") && here("http://[::1]:1"));
        assert!(
            !here("http://muster.example") && !here("http://10.0.0.1") && !here("http://localhost.example")
        );
    }
}
