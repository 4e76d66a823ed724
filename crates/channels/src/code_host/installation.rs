//! An installation of the GitHub App, and whether a person may use it. Its number is not secret: without that person's
//! authorization, anyone could read the repositories of another organization.

use std::collections::BTreeSet;

use http::Method;
use secrecy::SecretString;
use serde_json::Value;

use super::{api::Api, app::App, calls::Caller, host::GITHUB};
use crate::{
    bounds,
    contract::{CodeHostRules, Failure, GithubInstallation, Identity},
    network::Network,
};

pub struct Installation {
    login: GithubInstallation,
    app: App,
    person: Caller,
}

impl Installation {
    pub fn new(login: GithubInstallation, network: &Network) -> Self {
        let person = Caller::new(&GITHUB, network.vendors.github_api.clone(), network);
        Self { app: App::new(login.app.clone(), network), login, person }
    }

    pub fn app(&self) -> &App {
        &self.app
    }

    pub fn id(&self) -> i64 {
        self.login.id
    }

    pub fn webhook_secret(&self) -> &SecretString {
        &self.login.app.webhook_secret
    }

    /// Checks that the person reaches the installation, and the repositories that the channel listens to.
    pub async fn identify(&self, api: &Api, rules: &CodeHostRules) -> Result<Identity, Failure> {
        let token = (self.login.person)().await?;
        let id = self.login.id;
        let installations = self.list(&token, "user/installations", "installations").await?;
        let Some(ours) = installations.iter().find(|one| one["id"].as_i64() == Some(id)) else {
            let known = installations.iter().map(|one| format!("{} ({})", one["id"], name_of(one)));
            let known = known.collect::<Vec<_>>().join(", ");
            let known = if known.is_empty() { "none".to_owned() } else { known };
            let why =
                format!("The authorization at GitHub does not list installation {id}. It lists: {known}.");
            return Err(Failure::Credentials(why.into()));
        };
        self.check_repositories(api, rules, &self.repositories().await?).await?;
        let app = self.app.call(Method::GET, "app").await?;
        let slug = app["slug"].as_str().unwrap_or_default();
        Ok(Identity {
            self_ids: vec![format!("{slug}[bot]"), format!("app/{}", app["id"])],
            handle: Some(slug.to_owned()),
            invite_url: app["html_url"].as_str().map(|url| format!("{url}/installations/new")),
            warnings: warnings(ours),
            valid_for: None,
        })
    }

    /// The repositories of the installation that the person reaches.
    pub async fn repositories(&self) -> Result<Vec<String>, Failure> {
        let token = (self.login.person)().await?;
        let path = format!("user/installations/{}/repositories", self.login.id);
        let found = self.list(&token, &path, "repositories").await?;
        Ok(found.iter().filter_map(|one| one["full_name"].as_str().map(str::to_owned)).collect())
    }

    /// Refuses repositories that the person does not reach. Without a list, that person must reach all of them.
    async fn check_repositories(
        &self,
        api: &Api,
        rules: &CodeHostRules,
        reached: &[String],
    ) -> Result<(), Failure> {
        let reached: BTreeSet<String> = reached.iter().map(|name| name.to_ascii_lowercase()).collect();
        let is_missing = |repo: &&String| !reached.contains(&repo.to_ascii_lowercase());
        if let Some(missing) = rules.repos.iter().find(is_missing) {
            let why = format!("The authorization at GitHub does not reach {missing} by this installation.");
            return Err(Failure::Credentials(why.into()));
        }
        if !rules.repos.is_empty() {
            return Ok(());
        }
        let all = api.get("installation/repositories?per_page=1").await?;
        if all["total_count"].as_u64().is_none_or(|all| all > reached.len() as u64) {
            let why = "The installation has repositories that the authorization at GitHub does not reach. \
                       List the repositories of this channel.";
            return Err(Failure::Credentials(why.into()));
        }
        Ok(())
    }

    /// Lists what a person reaches.
    async fn list(&self, token: &SecretString, path: &str, field: &str) -> Result<Vec<Value>, Failure> {
        let mut all = Vec::new();
        // Ten pages: a person waits for them.
        for page in 1..=10 {
            let path = format!("{path}?per_page={}&page={page}", bounds::LIST);
            let mut found = self.person.call(token, Method::GET, &path, None).await?;
            let Some(Value::Array(found)) = found.get_mut(field).map(Value::take) else { break };
            let is_last = found.len() < bounds::LIST;
            all.extend(found);
            if is_last {
                break;
            }
        }
        Ok(all)
    }
}

fn name_of(installation: &Value) -> &str {
    installation["account"]["login"].as_str().unwrap_or_default()
}

/// What the App may not do there.
fn warnings(installation: &Value) -> Vec<String> {
    let permissions = [("issues", "Issues"), ("pull_requests", "Pull requests")];
    let missing = permissions.iter().filter(|(name, _)| installation["permissions"][name] != "write");
    let mut warnings: Vec<String> = missing
        .map(|(_, title)| format!("GitHub: the App lacks the permission “{title}: read and write” there."))
        .collect();
    if !installation["suspended_at"].is_null() {
        warnings.push("GitHub: the installation is suspended.".to_owned());
    }
    warnings
}
