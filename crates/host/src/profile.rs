//! Renders a profile: command, environment and files of a program, for one agent on this host.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use muster_profiles::{Unknown, filled};
use muster_protocol::{plan::LaunchPlan, profile::Profile};

use crate::{
    gate_address::{GateAddress, PLACEHOLDER},
    programs::Program,
};

#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// No access to a model.
    #[error(
        "The profile {0} needs a model. Give the agent access to one: a key of its own, or the organization's."
    )]
    NoAccess(String),
    /// No model is chosen.
    #[error("The profile {0} needs the name of a model. Choose one for the agent or its image.")]
    NoModel(String),
    /// The program doesn't support this model.
    #[error(
        "The profile {profile} doesn't work with the model {model:?}. Choose another one for the agent or its image."
    )]
    Refused { profile: String, model: String },
    /// The profile is invalid.
    #[error("The profile {profile} can't be used: {source}.")]
    Place {
        profile: String,
        /// The unknown placeholder.
        source: Unknown,
    },
}

/// Values of a profile's placeholders. `None`: the agent has no such value.
#[derive(Clone, Debug, Default)]
pub struct PlaceholderValues {
    /// The address of the model's interface, for the program's library.
    pub model_url: Option<String>,
    /// The program's placeholder key.
    pub placeholder: Option<String>,
    pub model: Option<String>,
    pub provider: Option<String>,
    pub home: String,
}

/// A rendered profile. It contains no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wiring {
    /// The program and its arguments.
    pub command: Vec<String>,
    pub environment: BTreeMap<String, String>,
    /// Files in the home: paths and texts.
    pub files: BTreeMap<String, String>,
}

/// The values for an agent, with its model behind the gate.
pub fn placeholder_values(plan: &LaunchPlan, home: &Path, address: &GateAddress) -> PlaceholderValues {
    let access = plan.model_access.as_ref();
    PlaceholderValues {
        model_url: access.map(|_| address.model_url()),
        placeholder: access.map(|_| PLACEHOLDER.to_owned()),
        model: plan.model.clone(),
        provider: access.map(|access| access.provider.clone()),
        home: home.display().to_string(),
    }
}

/// Renders a profile for an agent.
///
/// # Errors
///
/// The agent lacks a value, or the profile is invalid.
pub fn render(profile: &Profile, places: &PlaceholderValues) -> Result<Wiring, ProfileError> {
    let name = || profile.name.clone();
    let model = places.model.as_ref().or(profile.model.as_ref());
    if profile.needs_model && places.model_url.is_none() {
        return Err(ProfileError::NoAccess(name()));
    }
    if profile.needs_model && model.is_none() {
        return Err(ProfileError::NoModel(name()));
    }
    if let Some(model) = model.filter(|model| profile.refused_models.contains(model)) {
        return Err(ProfileError::Refused { profile: name(), model: model.clone() });
    }
    let place = |place: &str| match place {
        "model_url" => places.model_url.clone(),
        "placeholder" => places.placeholder.clone(),
        "model" => model.cloned(),
        "provider" => places.provider.clone(),
        "home" => Some(places.home.clone()),
        _ => None,
    };
    let fill =
        |text: &str| filled(text, place).map_err(|source| ProfileError::Place { profile: name(), source });
    // In a file the value stands between quotes, and must not end them.
    let quoted = |text: &str| {
        let escaped = |word: &str| place(word).map(|value| inside_quotes(&value));
        filled(text, escaped).map_err(|source| ProfileError::Place { profile: name(), source })
    };
    let mut wiring = Wiring::default();
    for word in &profile.command {
        let word = fill(word)?.ok_or_else(|| ProfileError::NoModel(name()))?;
        wiring.command.push(word);
    }
    for (variable, value) in &profile.environment {
        wiring.environment.extend(fill(value)?.map(|value| (variable.clone(), value)));
    }
    for (path, text) in &profile.files {
        wiring.files.extend(quoted(text)?.map(|text| (path.clone(), text)));
    }
    Ok(wiring)
}

/// A text in JSON's escaping, for use between double quotes.
fn inside_quotes(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Fills gaps in the owner's list from the profile. `find` locates a program.
pub fn complete(program: &mut Program, wiring: &Wiring, find: impl Fn(&str) -> PathBuf) {
    let Some((command, args)) = wiring.command.split_first() else { return };
    if program.command.as_os_str().is_empty() {
        program.command = find(command);
    }
    if program.args.is_empty() {
        program.args = args.to_vec();
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use muster_profiles::Profiles;

    use super::*;
    use crate::programs::absolute;

    fn places() -> PlaceholderValues {
        PlaceholderValues {
            model_url: Some("http://127.0.0.1:3128/model".to_owned()),
            placeholder: Some("placeholder".to_owned()),
            model: Some("large-1".to_owned()),
            provider: Some("openai".to_owned()),
            home: "/home/agent".to_owned(),
        }
    }

    fn shown(wiring: &Wiring) -> String {
        let mut text = format!("{}\n", wiring.command.join(" "));
        for (name, value) in &wiring.environment {
            writeln!(text, "{name}={value}").unwrap();
        }
        for (path, file) in &wiring.files {
            write!(text, "--- {path}\n{file}").unwrap();
        }
        text
    }

    #[test]
    fn every_built_in_profile_is_rendered() {
        let mut text = String::new();
        for entry in Profiles::read(None).unwrap().iter() {
            let wiring = render(&entry.wiring, &places()).unwrap();
            write!(text, "===== {}\n{}", entry.wiring.name, shown(&wiring)).unwrap();
            for (path, file) in &wiring.files {
                let end = path.rsplit_once('.').map(|(_, end)| end);
                match end {
                    Some("json") => drop(muster_json::from_str::<serde_json::Value>(file).unwrap()),
                    Some("toml") => drop(toml::from_str::<toml::Table>(file).unwrap()),
                    _ => {}
                }
            }
        }
        insta::assert_snapshot!("profiles", text);
    }

    #[test]
    fn a_place_that_an_agent_lacks_leaves_its_variable_and_file_out() {
        let all = Profiles::read(None).unwrap();
        let bare = PlaceholderValues { home: "/home/agent".to_owned(), ..PlaceholderValues::default() };
        let reference = render(&all.get("muster-agent").unwrap().wiring, &bare).unwrap();
        assert!(reference.environment.is_empty(), "{}", shown(&reference));
        let needy = all.iter().filter(|entry| entry.wiring.needs_model).count();
        assert!(needy >= 4);
        for entry in all.iter().filter(|entry| entry.wiring.needs_model) {
            let error = render(&entry.wiring, &bare).err().unwrap().to_string();
            assert!(error.contains("Give the agent access"), "{error}");
        }
    }

    #[test]
    fn an_unsupported_model_is_refused_with_the_reason() {
        let all = Profiles::read(None).unwrap();
        let auto = PlaceholderValues { model: Some("auto".to_owned()), ..places() };
        let error = render(&all.get("gemini").unwrap().wiring, &auto).err().unwrap();
        assert!(matches!(error, ProfileError::Refused { .. }), "{error}");
    }

    #[test]
    fn a_models_name_can_not_change_a_configuration() {
        let all = Profiles::read(None).unwrap();
        let model = "x\", \"permission\": \"allow\", \"y\": \"\n[other]\n";
        let odd = PlaceholderValues { model: Some(model.to_owned()), ..places() };
        for entry in all.iter() {
            let plain = render(&entry.wiring, &places()).unwrap();
            for (path, file) in render(&entry.wiring, &odd).unwrap().files {
                let keys = |text: &str| match path.rsplit_once('.').map(|(_, end)| end) {
                    Some("json") => keys_of(&muster_json::from_str(text).unwrap()),
                    Some("toml") => keys_of(&toml::from_str(text).unwrap()),
                    _ => text.lines().count(),
                };
                assert_eq!(keys(&file), keys(&plain.files[&path]), "{}: {file}", entry.wiring.name);
            }
        }
    }

    fn keys_of(value: &serde_json::Value) -> usize {
        match value {
            serde_json::Value::Object(fields) => fields.values().map(keys_of).sum::<usize>() + fields.len(),
            serde_json::Value::Array(items) => items.iter().map(keys_of).sum(),
            _ => 0,
        }
    }

    #[test]
    fn the_list_decides_what_is_started_and_the_profile_the_rest() {
        let wiring = Wiring { command: vec!["opencode".to_owned(), "acp".to_owned()], ..Wiring::default() };
        let mut listed = Program { command: "/opt/opencode".into(), ..Program::default() };
        complete(&mut listed, &wiring, absolute);
        assert_eq!(
            (listed.command.as_path(), listed.args.as_slice()),
            (Path::new("/opt/opencode"), &["acp".to_owned()][..])
        );
        let mut exact =
            Program { command: "/opt/x".into(), args: vec!["y".to_owned()], ..Program::default() };
        complete(&mut exact, &wiring, absolute);
        assert_eq!(exact.args, ["y"]);
        let mut named = Program::default();
        complete(&mut named, &wiring, absolute);
        assert!(named.command.ends_with("opencode"));
        let mut contained = Program::default();
        complete(&mut contained, &wiring, |command| command.into());
        assert_eq!(contained.command, Path::new("opencode"), "the image knows where it is");
    }
}
