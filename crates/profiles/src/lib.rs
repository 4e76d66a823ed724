//! Profiles: how third-party agents are wired. Each is a file in `files/`; an operator's folder adds to them, and
//! overrides those with the same name. `files/README.md` describes the format.

mod places;

use std::{collections::BTreeMap, fs, io, path::Path};

use muster_protocol::profile::Profile;
use serde::Deserialize;

pub use places::{Unknown, filled};

/// The built-in files: name and text.
const BUILT_IN: [(&str, &str); 8] = [
    ("claude", include_str!("../files/claude.toml")),
    ("cline", include_str!("../files/cline.toml")),
    ("codex", include_str!("../files/codex.toml")),
    ("fast-agent", include_str!("../files/fast-agent.toml")),
    ("gemini", include_str!("../files/gemini.toml")),
    ("muster-agent", include_str!("../files/muster-agent.toml")),
    ("opencode", include_str!("../files/opencode.toml")),
    ("qwen", include_str!("../files/qwen.toml")),
];
/// The largest file, in bytes. A profile is sent with each plan.
const FILE_BYTES: u64 = 32 * 1024;

/// A program's facts and wiring.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// What people call it.
    pub title: String,
    /// One sentence about it.
    pub description: String,
    /// The provider of its model, as in model credentials; none if it needs no model.
    pub provider: Option<String>,
    /// How it signs in.
    pub login: String,
    /// How it resumes sessions and asks for permission; its peculiarities.
    pub behaviour: String,
    /// The version last tested; none if never.
    pub last_run: Option<LastRun>,
    /// The wiring. Its name is the file's name.
    pub wiring: Profile,
}

/// The version and date of the last test.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastRun {
    /// Its version.
    pub version: String,
    /// The day, `YYYY-MM-DD`.
    pub date: String,
}

/// All mistakes in a folder of profiles, one per line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Mistakes(pub Vec<String>);

/// The available profiles.
#[derive(Clone, Debug)]
pub struct Profiles(BTreeMap<String, Entry>);

impl Profiles {
    /// The built-in profiles and those of the operator's folder: its files `*.toml`.
    ///
    /// # Errors
    /// What is wrong with the folder's files.
    pub fn read(folder: Option<&Path>) -> Result<Self, Mistakes> {
        let mut mistakes = Vec::new();
        let mut all = BTreeMap::new();
        let mut take = |name: &str, place: &str, text: &str| match parse(name, text) {
            Ok(entry) => drop(all.insert(name.to_owned(), entry)),
            Err(wrong) => mistakes.push(format!("{place}: {wrong}")),
        };
        for (name, text) in BUILT_IN {
            take(name, &format!("the built-in profile {name}"), text);
        }
        let found =
            folder.map(|folder| texts(folder).map_err(|error| format!("{}: {error}", folder.display())));
        match found.transpose() {
            Ok(found) => found.iter().flatten().for_each(|(name, place, text)| take(name, place, text)),
            Err(error) => mistakes.push(error),
        }
        if mistakes.is_empty() { Ok(Self(all)) } else { Err(Mistakes(mistakes)) }
    }

    /// The profile of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.0.get(name)
    }

    /// All profiles, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.0.values()
    }
}

/// The profiles in a folder: name, file and text.
fn texts(folder: &Path) -> io::Result<Vec<(String, String, String)>> {
    let mut found = Vec::new();
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        let (Some(name), true) = (path.file_stem(), path.extension().is_some_and(|end| end == "toml")) else {
            continue;
        };
        if fs::metadata(&path)?.len() > FILE_BYTES {
            let reason = format!("{} is larger than {FILE_BYTES} bytes", path.display());
            return Err(io::Error::other(reason));
        }
        found.push((
            name.to_string_lossy().into_owned(),
            path.display().to_string(),
            fs::read_to_string(&path)?,
        ));
    }
    Ok(found)
}

fn parse(name: &str, text: &str) -> Result<Entry, String> {
    let mut entry: Entry = toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        format!("{place}{}", error.message())
    })?;
    name.clone_into(&mut entry.wiring.name);
    match wrong_with(&entry.wiring) {
        Some(wrong) => Err(wrong),
        None => Ok(entry),
    }
}

fn wrong_with(wiring: &Profile) -> Option<String> {
    let plain = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    let most = 40;
    if wiring.name.is_empty() || wiring.name.len() > most || !wiring.name.chars().all(plain) {
        return Some(format!("the file's name must be of at most {most} small letters, digits and hyphens"));
    }
    if wiring.command.first().is_none_or(String::is_empty) {
        return Some("wiring.command must name the program".to_owned());
    }
    if !(400..500).contains(&wiring.stop_status) || [401, 403, 408, 409, 429].contains(&wiring.stop_status) {
        return Some(
            "wiring.stop_status must be from 400 to 499, and mean neither a login nor a retry".to_owned(),
        );
    }
    let leaves = |path: &&String| {
        path.is_empty() || path.split('/').any(|part| ["", ".", ".."].contains(&part)) || path.contains('\0')
    };
    if let Some(path) = wiring.files.keys().find(leaves) {
        return Some(format!(
            "the file {path:?} must be inside the home: a path such as .config/program.json"
        ));
    }
    let mut values = wiring.command.iter().chain(wiring.environment.values()).chain(wiring.files.values());
    let unknown = values.find_map(|value| filled(value, |_| Some(String::new())).err());
    unknown.map(|unknown| unknown.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_profile_is_read_and_says_what_it_was_run_with() {
        let all = Profiles::read(None).unwrap();
        assert_eq!(all.iter().count(), BUILT_IN.len());
        for entry in all.iter() {
            let name = &entry.wiring.name;
            let run = entry.last_run.as_ref().unwrap_or_else(|| panic!("{name} was never run"));
            let digits = |text: &str| text.split('-').map(str::len).collect::<Vec<_>>();
            assert_eq!(digits(&run.date), [4, 2, 2], "{name}");
            assert!(
                !run.version.is_empty() && !entry.login.is_empty() && !entry.behaviour.is_empty(),
                "{name}"
            );
        }
    }

    #[test]
    fn an_operators_folder_adds_and_replaces() {
        let folder = tempfile::tempdir().unwrap();
        let text = |title: &str| {
            format!(
                "title = \"{title}\"\ndescription = \"d\"\nlogin = \"l\"\nbehaviour = \"b\"\n\
                 [wiring]\ncommand = [\"own\", \"--home={{home}}\"]\n"
            )
        };
        fs::write(folder.path().join("own.toml"), text("Our own")).unwrap();
        fs::write(folder.path().join("opencode.toml"), text("Ours instead")).unwrap();
        fs::write(folder.path().join("notes.txt"), "not a profile").unwrap();
        let all = Profiles::read(Some(folder.path())).unwrap();
        assert_eq!(all.get("own").unwrap().title, "Our own");
        assert_eq!(all.get("own").unwrap().wiring.name, "own");
        assert_eq!(all.get("opencode").unwrap().title, "Ours instead");
        assert_eq!(all.iter().count(), BUILT_IN.len() + 1);
    }

    #[test]
    fn each_mistake_is_named_with_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let wiring = [
            ("a", "comand = []"),
            ("b", "command = []"),
            ("c", "command = [\"x\", \"{modle}\"]"),
            ("d", "command = [\"x\"]\nfiles = { \"../x\" = \"\" }"),
            ("e", "command = [\"x\"]\nstop_status = 429"),
            ("F", "command = [\"x\"]"),
        ];
        for (name, wiring) in wiring {
            let text = format!(
                "title = \"t\"\ndescription = \"d\"\nlogin = \"l\"\nbehaviour = \"b\"\n[wiring]\n{wiring}\n"
            );
            fs::write(folder.path().join(format!("{name}.toml")), text).unwrap();
        }
        let Mistakes(mut mistakes) = Profiles::read(Some(folder.path())).unwrap_err();
        mistakes.sort();
        let expected = [
            "F.toml: the file's name",
            "a.toml: line 6: unknown field `comand`",
            "b.toml: wiring.command",
            "c.toml: {modle} is not a placeholder",
            "d.toml: the file \"../x\"",
            "e.toml: wiring.stop_status",
        ];
        assert_eq!(mistakes.len(), expected.len(), "{mistakes:#?}");
        for (mistake, expected) in mistakes.iter().zip(expected) {
            assert!(mistake.contains(expected), "{mistake}");
        }
        assert!(Profiles::read(Some(Path::new("/nowhere"))).is_err());
    }
}
