//! The hooks of GitLab and Gitea: Muster sets them up with the account's token, with a secret of its own.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::Method;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::api::Api;
use crate::{
    contract::{CodeHostAccount, Failure, Identity, RawRequest, Refusal, Software},
    signature::{self, Key, SignedFields},
};

/// Verifies a request. GitLab signs by Standard Webhooks; before version 19, it sends the secret itself.
pub fn verify(account: &CodeHostAccount, request: &RawRequest<'_>, now: Timestamp) -> Result<(), Refusal> {
    let secret = &account.webhook_secret;
    if secret.expose_secret().is_empty() {
        return Err(Refusal::NotConfigured);
    }
    if account.software != Software::Gitlab {
        let given = request.header("x-gitea-signature").ok_or(Refusal::Unsigned)?;
        let key = Key::new(secret).map_err(|_| Refusal::NotConfigured)?;
        return signature::verify_body(&[key], &format!("sha256={given}"), request.body);
    }
    let Some(signatures) = request.header("webhook-signature") else {
        let given = request.header("x-gitlab-token").ok_or(Refusal::Unsigned)?;
        return signature::verify_secret(secret, given);
    };
    let key = Key::new(&signing_token(secret)).map_err(|_| Refusal::NotConfigured)?;
    let id = request.header("webhook-id").ok_or(Refusal::BadSignature)?;
    let timestamp = request.header("webhook-timestamp").ok_or(Refusal::BadSignature)?;
    signature::verify(&[key], SignedFields { id, timestamp }, signatures, request.body, now)
}

/// GitLab takes 32 bytes in the form of Standard Webhooks.
fn signing_token(secret: &SecretString) -> SecretString {
    let bytes = Sha256::digest(secret.expose_secret());
    format!("whsec_{}", BASE64_STANDARD.encode(bytes)).into()
}

/// The account of the token.
pub async fn identify(api: &Api) -> Result<Identity, Failure> {
    let me = api.get("user").await?;
    let login = me["username"].as_str().or_else(|| me["login"].as_str()).map(str::to_owned);
    Ok(Identity { self_ids: login.iter().cloned().collect(), handle: login, ..Identity::default() })
}

/// The first repositories of the account whose hooks it may set up.
pub async fn repositories(api: &Api) -> Result<Vec<String>, Failure> {
    let gitlab =
        "projects?membership=true&min_access_level=40&simple=true&per_page=100&order_by=last_activity_at";
    let is_gitlab = api.host.software == Software::Gitlab;
    let found = api.get(if is_gitlab { gitlab } else { "user/repos?limit=50" }).await?;
    let name = |one: &Value| {
        let is_ours = one["permissions"]["admin"] != false;
        let name = one["path_with_namespace"].as_str().or_else(|| one["full_name"].as_str());
        name.filter(|_| is_gitlab || is_ours).map(str::to_owned)
    };
    Ok(found.as_array().into_iter().flatten().filter_map(name).collect())
}

/// Sets up the hook of each repository at this address, or removes it. Replaces ours at another address, since the
/// service may have moved, and those that GitLab has disabled after an outage of the service.
pub async fn register(
    api: &Api,
    account: &CodeHostAccount,
    repos: &[String],
    address: Option<&str>,
) -> Result<bool, Failure> {
    let Some(slug) = account.slug.as_deref().filter(|slug| !slug.is_empty()) else { return Ok(false) };
    for repo in repos {
        let path = format!("{}/hooks", api.host.repository(repo));
        let of_repo = |failure| explain(repo, failure);
        // As many as GitLab and Gitea list: beyond the list, ours would be set up again each minute.
        let found = api.get(&format!("{path}?per_page=100&limit=50")).await.map_err(of_repo)?;
        let mut is_set_up = false;
        for hook in found.as_array().into_iter().flatten() {
            let url = hook["url"].as_str().or_else(|| hook["config"]["url"].as_str()).unwrap_or_default();
            if !is_set_up && address == Some(url) && hook["alert_status"] != "disabled" {
                is_set_up = true;
            } else if let Some(id) = hook["id"].as_u64().filter(|_| url.ends_with(slug)) {
                api.call(Method::DELETE, &format!("{path}/{id}"), None).await.map_err(of_repo)?;
            }
        }
        if let Some(address) = address.filter(|_| !is_set_up) {
            api.post(&path, &hook(account, address)).await.map_err(of_repo)?;
        }
    }
    Ok(address.is_some())
}

fn hook(account: &CodeHostAccount, address: &str) -> Value {
    let secret = account.webhook_secret.expose_secret();
    if account.software == Software::Gitlab {
        return json!({
            "url": address, "token": secret, "signing_token": signing_token(&account.webhook_secret).expose_secret(),
            "push_events": false, "issues_events": true, "confidential_issues_events": true,
            "note_events": true, "confidential_note_events": true, "merge_requests_events": true,
            "pipeline_events": true,
        });
    }
    let events = [
        "issues",
        "issue_assign",
        "issue_label",
        "issue_comment",
        "pull_request",
        "pull_request_assign",
        "pull_request_label",
        "pull_request_comment",
        "pull_request_review",
        "pull_request_review_request",
    ];
    json!({
        "type": "gitea", "active": true, "events": events,
        "config": { "url": address, "content_type": "json", "secret": secret },
    })
}

/// A missing right to set up hooks ends listening, not the channel.
fn explain(repo: &str, failure: Failure) -> Failure {
    match failure {
        Failure::TargetGone(cause) | Failure::Refused(cause) => Failure::Refused(
            format!("The hook of {repo} can't be set up. The account must be its maintainer or administrator. {cause}")
                .into(),
        ),
        other => other,
    }
}
