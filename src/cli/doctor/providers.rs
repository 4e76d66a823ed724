//! `muster doctor --oidc`: tries the OpenID providers, without a browser.

use super::Finding;
use crate::{
    base::time::Clock,
    core::config::Config,
    domain::people::oidc::{Providers, try_out},
};

/// The name of findings about all providers.
const CHECK: &str = "identity providers";

/// Checks every provider, or only the one called `name`.
pub(super) async fn tried(config: &Config, name: Option<&str>) -> Vec<Finding> {
    let providers = match Providers::new(config) {
        Ok(providers) => providers,
        Err(error) => return vec![Finding::bad(CHECK, format!("{error:#}"), "correct oidc_file")],
    };
    let chosen: Vec<_> =
        providers.iter().filter(|provider| name.is_none_or(|name| name == provider.name)).collect();
    if chosen.is_empty() {
        let known: Vec<&str> = providers.iter().map(|provider| provider.name.as_str()).collect();
        let found =
            if known.is_empty() { "none".to_owned() } else { format!("there are {}", known.join(", ")) };
        return vec![Finding::bad(CHECK, found, "add a table with this name to oidc_file (docs/people.md)")];
    }
    let mut findings = Vec::new();
    for provider in chosen {
        let found = try_out(provider, &Clock::system()).await;
        findings.extend(found.into_iter().map(|finding| finding.about(&provider.name)));
    }
    findings
}
