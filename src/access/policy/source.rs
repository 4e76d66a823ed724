//! The bytes of a policy: all files at one moment, from a folder or from the program itself.
//!
//! Reading never fails; a file that can't be read is a file with a problem, so that it is reported with the rest.

use std::{
    fs, io,
    io::{Read, Write},
    path::Path,
};

use sha2::{Digest, Sha256};

use super::lint::LintProblem;
use crate::ids::{MAX_ID, OrgId};

/// The model that the rest of this module is written for.
pub(super) const MODEL: &str = include_str!("../../../policies/model.conf");
const POLICY: &str = include_str!("../../../policies/policy.csv");
const README: &str = include_str!("../../../policies/README.md");
const ORGS_README: &str = include_str!("../../../policies/orgs/README.md");

/// A file is lines of a policy, not a dump: a larger one is refused before it is read into memory.
const MAX_BYTES: u64 = 1 << 20;

/// One file: its text, or why there is none.
pub(super) struct File {
    /// How problems name it.
    pub name: String,
    pub text: Result<String, String>,
}

/// All files of a policy.
pub(super) struct Sources {
    pub model: File,
    pub policy: File,
    /// By organization.
    pub orgs: Vec<(OrgId, File)>,
    /// What lies in `orgs/` and doesn't belong there.
    pub strays: Vec<LintProblem>,
    /// The hash of it all.
    pub version: String,
}

impl Sources {
    /// The files that the program was built with.
    pub fn embedded() -> Self {
        let file =
            |name: &str, text: &str| File { name: format!("(built in) {name}"), text: Ok(text.to_owned()) };
        Self::new(file("model.conf", MODEL), file("policy.csv", POLICY), Vec::new(), Vec::new())
    }

    /// The files in `dir`.
    pub fn read(dir: &Path) -> Self {
        let (mut orgs, mut strays) = (Vec::new(), Vec::new());
        read_orgs(&dir.join("orgs"), &mut orgs, &mut strays);
        orgs.sort_by_key(|(org, _)| *org);
        strays.sort();
        Self::new(read(&dir.join("model.conf")), read(&dir.join("policy.csv")), orgs, strays)
    }

    fn new(model: File, policy: File, orgs: Vec<(OrgId, File)>, strays: Vec<LintProblem>) -> Self {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            // With its length, so that no two sets of files run into the same bytes.
            hash.update(part.len().to_le_bytes());
            hash.update(part.as_bytes());
        };
        // By organization, not by path: replicas with the same rules show the same version.
        let of_orgs = orgs.iter().map(|(org, file)| (org.0, file));
        for (org, file) in [(0, &model), (0, &policy)].into_iter().chain(of_orgs) {
            add(&org.to_string());
            match &file.text {
                Ok(text) => add(text),
                Err(reason) => add(reason),
            }
        }
        for stray in &strays {
            add(&stray.to_string());
        }
        let version = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Self { model, policy, orgs, strays, version }
    }

    /// The same with another text as an organization's own file, or without one.
    pub fn with_org(mut self, org: OrgId, text: Option<String>) -> Self {
        let at = self.orgs.binary_search_by_key(&org, |(org, _)| *org);
        match (at, text) {
            (Ok(at), Some(text)) => self.orgs[at].1.text = Ok(text),
            (Err(at), Some(text)) => {
                let name = format!("orgs/{org}.csv");
                self.orgs.insert(at, (org, File { name, text: Ok(text) }));
            }
            (Ok(at), None) => drop(self.orgs.remove(at)),
            (Err(_), None) => {}
        }
        Self::new(self.model, self.policy, self.orgs, self.strays)
    }

    /// An organization's own file.
    pub fn org(&self, org: OrgId) -> Option<&File> {
        let at = self.orgs.binary_search_by_key(&org, |(org, _)| *org).ok()?;
        Some(&self.orgs[at].1)
    }

    /// How many files there are.
    pub fn len(&self) -> usize {
        2 + self.orgs.len()
    }
}

fn read(path: &Path) -> File {
    File {
        name: path.display().to_string(),
        text: read_text(path).map_err(|error| format!("can't be read: {error}")),
    }
}

fn read_text(path: &Path) -> io::Result<String> {
    // A pipe would wait for its writer, for ever.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}

fn read_orgs(dir: &Path, orgs: &mut Vec<(OrgId, File)>, strays: &mut Vec<LintProblem>) {
    let mut unreadable = |error: io::Error| {
        strays.push(LintProblem::of_file(&dir.display().to_string(), format!("can't be read: {error}")));
    };
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        // No organization has rules of its own.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => return unreadable(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) => names.push(entry.file_name()),
            Err(error) => unreadable(error),
        }
    }
    for name in names {
        let (name, path) = (name.to_string_lossy(), dir.join(&name));
        if let Some(org) = org_of(&name) {
            orgs.push((org, read(&path)));
        } else if !is_ignored(&name) {
            let reason = "not the name of an organization's file, which is <organization id>.csv";
            strays.push(LintProblem::of_file(&path.display().to_string(), reason.to_owned()));
        }
    }
}

/// The organization whose file has this name: its id as it is written elsewhere, without a leading zero.
fn org_of(name: &str) -> Option<OrgId> {
    let digits = name.strip_suffix(".csv")?;
    let id = digits.parse().ok().filter(|id| (1..=MAX_ID).contains(id))?;
    (digits == i64::to_string(&id)).then_some(OrgId(id))
}

/// Hidden files and the backups of editors. Anything else that isn't an organization's file is a mistake: a rule
/// in `7.CSV` would silently not hold.
fn is_ignored(name: &str) -> bool {
    name == "README.md" || name.starts_with('.') || name.ends_with('~')
}

/// Writes the files that the program was built with into `dir`; files that are there are left as they are.
pub(super) fn write_defaults(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir.join("orgs"))?;
    for (name, text) in [
        ("model.conf", MODEL),
        ("policy.csv", POLICY),
        ("README.md", README),
        ("orgs/README.md", ORGS_README),
    ] {
        match fs::File::create_new(dir.join(name)) {
            Ok(mut file) => file.write_all(text.as_bytes())?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
