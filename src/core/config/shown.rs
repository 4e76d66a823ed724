//! The settings in force, and where each is set. Secrets are masked.

use std::path::Path;

use serde::Serialize;
use toml::Value;
use url::Url;

use super::{Config, ConfigError, Kind, SETTINGS, Setting, layer::Origin, layers::Layers};

/// Stands for a secret.
const MASK: &str = "***";

/// A setting in force.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shown {
    /// Its key in the file: `section.name`.
    pub key: &'static str,
    /// Its environment variable.
    pub variable: &'static str,
    /// Its value, with `{data_dir}` replaced and secrets masked; none if it is unset.
    pub value: Option<Value>,
    /// The layer that sets it.
    pub from: Origin,
    /// Where that layer sets it: a file and its line, or a variable; none for a default.
    pub place: Option<String>,
}

impl Config {
    /// The settings of this process, as [`Config::load`] reads them, in the order of the table. A secret that comes
    /// from a file of its own counts as set where that file is named.
    ///
    /// # Errors
    /// Lists every mistake.
    pub fn shown(path: Option<&Path>) -> Result<Vec<Shown>, ConfigError> {
        let layers = Layers::load(path)?;
        layers.config()?;
        Ok(layers.shown())
    }
}

impl Layers {
    pub(super) fn shown(&self) -> Vec<Shown> {
        let settings = SETTINGS.iter().filter(|setting| setting.secret().is_none());
        let mut shown: Vec<Shown> = settings.map(|setting| self.shown_setting(setting)).collect();
        if self.keys.is_some() {
            shown.push(Shown {
                key: "keys",
                variable: "MUSTER_KEYS",
                value: Some(Value::from(MASK)),
                from: Origin::Variable,
                place: Some("MUSTER_KEYS".to_owned()),
            });
        }
        shown
    }

    fn shown_setting(&self, setting: &Setting) -> Shown {
        let Setting { key, variable, .. } = *setting;
        let Some((layer, value)) = self.find(key) else {
            return Shown { key, variable, value: None, from: Origin::Default, place: None };
        };
        let value = match value {
            _ if setting.kind == Kind::Secret => Value::from(MASK),
            Value::String(text) if setting.kind.is_secret() => Value::from(masked(text)),
            value => value.clone(),
        };
        let place = (layer.origin != Origin::Default).then(|| layer.place(key).to_owned());
        Shown { key, variable, value: Some(value), from: layer.origin, place }
    }
}

/// A URL without its user, password and query. What can't be told apart from a password is masked as well: a password
/// may contain any of the characters that separate the parts of a URL.
fn masked(url: &str) -> String {
    if url.starts_with("sqlite:") || url.starts_with("file:") {
        return url.to_owned();
    }
    let Some((scheme, rest)) = url.split_once("://") else { return MASK.to_owned() };
    let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
    if (Url::parse(url).is_err() && !lists_servers(scheme, place))
        || query.is_some_and(|query| query.contains('@'))
    {
        return format!("{scheme}://{MASK}");
    }
    let place = match place.rsplit_once('@') {
        Some((_, place)) => format!("{MASK}@{place}"),
        None => place.to_owned(),
    };
    let query = if query.is_some() { format!("?{MASK}") } else { String::new() };
    format!("{scheme}://{place}{query}")
}

/// Whether several servers follow the user: `user:password@a:5432,b:5432/…`. Without a user, the first of them could be
/// the user, and the rest a password with a forgotten host.
fn lists_servers(scheme: &str, place: &str) -> bool {
    let (authority, _) = place.split_once('/').unwrap_or((place, ""));
    let is_server = |server: &str| Url::parse(&format!("{scheme}://{server}")).is_ok();
    authority
        .rsplit_once('@')
        .is_some_and(|(_, servers)| servers.contains(',') && servers.split(',').all(is_server))
}

#[cfg(test)]
mod tests {
    use super::masked;

    #[test]
    fn a_url_is_shown_without_what_may_be_a_password() {
        for (url, shown) in [
            ("sqlite://./data/muster.db", "sqlite://./data/muster.db"),
            ("file:///var/spool/muster", "file:///var/spool/muster"),
            ("postgres://muster@db/muster", "postgres://***@db/muster"),
            ("postgres://muster:hunter2@db:5432/muster", "postgres://***@db:5432/muster"),
            ("postgres://localhost/muster?password=hunter2", "postgres://localhost/muster?***"),
            ("smtps://me:hunter2@mail.example.com", "smtps://***@mail.example.com"),
            ("postgres://me:hun,ter2@a:5432,b:5433/muster", "postgres://***@a:5432,b:5433/muster"),
            ("postgres://muster@a:5432,b/muster?password=hunter2", "postgres://***@a:5432,b/muster?***"),
            // Passwords that need %XX, and a forgotten host.
            ("postgres://muster:hun@hunter2@db/muster", "postgres://***@db/muster"),
            ("postgres://muster:1?hunter2@db/muster", "postgres://***"),
            ("postgres://muster:hunter2/muster", "postgres://***"),
            ("postgres://muster:1,hunter2/muster", "postgres://***"),
            ("postgres://db/muster?password=a@hunter2", "postgres://***"),
            ("hunter2", "***"),
        ] {
            assert_eq!(masked(url), shown, "{url}");
        }
    }
}
