//! The bytes of a policy: all files at one moment, from a folder or from the program itself.
//!
//! Reading never fails; a file that can't be read is a file with a problem, so that it is reported with the rest.

use std::{
    fs, io,
    io::{Read, Write},
    path::Path,
};

use sha2::{Digest, Sha256};

use super::{explain::org_file, lint::LintProblem};
use crate::base::ids::{MAX_ID, OrgId};

/// The model that the rest of this module is written for.
pub(super) const MODEL: &str = include_str!("../../../policies/model.conf");
const POLICY: &str = include_str!("../../../policies/policy.csv");
const EXPECTATIONS: &str = include_str!("../../../policies/expectations.csv");
const README: &str = include_str!("../../../policies/README.md");
const ORGS_README: &str = include_str!("../../../policies/orgs/README.md");

/// The name of the file of expectations.
pub(super) const EXPECTATIONS_CSV: &str = "expectations.csv";

/// A file is lines of a policy, not a dump: a larger one is refused before it is read into memory.
const MAX_BYTES: u64 = 1 << 20;

/// One file: its text, or why there is none.
#[derive(Clone)]
pub(super) struct File {
    /// How problems name it.
    pub name: String,
    pub text: Result<String, String>,
}

/// All files of a policy.
#[derive(Clone)]
pub(super) struct Sources {
    pub model: File,
    pub policy: File,
    /// What the policy has to come to; none if there is no such file.
    pub expectations: Option<File>,
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
        let expectations = Some(file(EXPECTATIONS_CSV, EXPECTATIONS));
        Self::new(file("model.conf", MODEL), file("policy.csv", POLICY), expectations, Vec::new(), Vec::new())
    }

    /// The files in `dir`, or those that the program was built with.
    pub fn of(dir: Option<&Path>) -> Self {
        dir.map_or_else(Self::embedded, Self::read)
    }

    /// The files in `dir`.
    pub fn read(dir: &Path) -> Self {
        let (mut orgs, mut strays) = (Vec::new(), Vec::new());
        if !dir.is_dir() {
            // One mistake, and not one of each file.
            let reason = "there is no such folder: name one with policy_dir (MUSTER_POLICY_DIR) or --dir";
            let missing = LintProblem::of_file(&dir.display().to_string(), reason.to_owned());
            return Self { strays: vec![missing], ..Self::embedded() };
        }
        let root = Root(dir);
        read_orgs(&root, &mut orgs, &mut strays);
        orgs.sort_by_key(|(org, _)| *org);
        strays.sort();
        let expectations = dir.join(EXPECTATIONS_CSV);
        // Nothing is there, or something that can't be read: two different things.
        let expectations =
            if fs::symlink_metadata(&expectations).is_ok() { Some(root.read(&expectations)) } else { None };
        let [model, policy] = ["model.conf", "policy.csv"].map(|name| root.read(&dir.join(name)));
        Self::new(model, policy, expectations, orgs, strays)
    }

    /// The texts that the database has: of the operator's two files (those of the program, where it has none), and of
    /// each organization's own one.
    pub fn published(operators: Option<(String, Option<String>)>, orgs: Vec<(OrgId, String)>) -> Self {
        let file = |name: &str, text: String| File { name: name.to_owned(), text: Ok(text) };
        let built_in = || (POLICY.to_owned(), Some(EXPECTATIONS.to_owned()));
        let (policy, expectations) = operators.unwrap_or_else(built_in);
        let expectations = expectations.map(|text| file(EXPECTATIONS_CSV, text));
        let mut orgs: Vec<(OrgId, File)> =
            orgs.into_iter().map(|(org, text)| (org, file(&org_file(org), text))).collect();
        orgs.sort_by_key(|(org, _)| *org);
        let model = file("model.conf", MODEL.to_owned());
        Self::new(model, file("policy.csv", policy), expectations, orgs, Vec::new())
    }

    fn new(
        model: File,
        policy: File,
        expectations: Option<File>,
        orgs: Vec<(OrgId, File)>,
        strays: Vec<LintProblem>,
    ) -> Self {
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            // With its length, so that no two sets of files run into the same bytes.
            hash.update(part.len().to_le_bytes());
            hash.update(part.as_bytes());
        };
        // By organization, not by path: replicas with the same rules show the same version.
        let of_orgs = orgs.iter().map(|(org, file)| (org.0, file));
        let of_all = [(0, &model), (0, &policy)].into_iter().chain(expectations.iter().map(|file| (0, file)));
        for (org, file) in of_all.chain(of_orgs) {
            add(&org.to_string());
            match &file.text {
                Ok(text) => add(text),
                Err(reason) => add(reason),
            }
        }
        for stray in &strays {
            add(&stray.to_string());
        }
        let version = hex::encode(&hash.finalize()[..8]);
        Self { model, policy, expectations, orgs, strays, version }
    }

    /// The same with another text as an organization's own file, or without one.
    pub fn with_org(mut self, org: OrgId, text: Option<String>) -> Self {
        let at = self.orgs.binary_search_by_key(&org, |(org, _)| *org);
        match (at, text) {
            (Ok(at), Some(text)) => self.orgs[at].1.text = Ok(text),
            (Err(at), Some(text)) => {
                let name = org_file(org);
                self.orgs.insert(at, (org, File { name, text: Ok(text) }));
            }
            (Ok(at), None) => drop(self.orgs.remove(at)),
            (Err(_), None) => {}
        }
        Self::new(self.model, self.policy, self.expectations, self.orgs, self.strays)
    }

    /// The same with another text as one of the files for every organization.
    pub fn with_operators(mut self, file: &str, text: Option<&str>) -> Self {
        let text = text.map(str::to_owned);
        if file == EXPECTATIONS_CSV {
            self.expectations = text.map(|text| File { name: file.to_owned(), text: Ok(text) });
        } else {
            self.policy.text = text.ok_or_else(|| "can't be read: there is no such file".to_owned());
        }
        Self::new(self.model, self.policy, self.expectations, self.orgs, self.strays)
    }

    /// An organization's own file.
    pub fn org(&self, org: OrgId) -> Option<&File> {
        let at = self.orgs.binary_search_by_key(&org, |(org, _)| *org).ok()?;
        Some(&self.orgs[at].1)
    }

    /// How many files there are.
    pub fn len(&self) -> usize {
        2 + usize::from(self.expectations.is_some()) + self.orgs.len()
    }
}

/// The folder. Links in it may lead to other places in it (that is how volumes are mounted), and nowhere else: who may write
/// a policy file is not to show what another user may read.
struct Root<'a>(&'a Path);

impl Root<'_> {
    fn read(&self, path: &Path) -> File {
        let text = self.stays_inside(path).and_then(|()| read_text(path));
        File {
            name: path.display().to_string(),
            text: text.map_err(|error| format!("can't be read: {error}")),
        }
    }

    fn stays_inside(&self, path: &Path) -> io::Result<()> {
        if !fs::symlink_metadata(path)?.is_symlink()
            || fs::canonicalize(path)?.starts_with(fs::canonicalize(self.0)?)
        {
            return Ok(());
        }
        Err(io::Error::other("it is a link that leads out of the policy folder"))
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
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8; save it as that"))
}

fn read_orgs(root: &Root<'_>, orgs: &mut Vec<(OrgId, File)>, strays: &mut Vec<LintProblem>) {
    let dir = root.0.join("orgs");
    let mut unreadable = |error: io::Error| {
        strays.push(LintProblem::of_file(&dir.display().to_string(), format!("can't be read: {error}")));
    };
    let entries = match root.stays_inside(&dir).and_then(|()| fs::read_dir(&dir)) {
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
            orgs.push((org, root.read(&path)));
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

/// Writes the files that the program was built with into `dir`; files that are there are left as they are. Each file's name,
/// and whether it was written.
pub(super) fn write_defaults(dir: &Path) -> io::Result<Vec<(&'static str, bool)>> {
    fs::create_dir_all(dir.join("orgs"))?;
    let mut files = Vec::new();
    for (name, text) in [
        ("model.conf", MODEL),
        ("policy.csv", POLICY),
        (EXPECTATIONS_CSV, EXPECTATIONS),
        ("README.md", README),
        ("orgs/README.md", ORGS_README),
    ] {
        match fs::File::create_new(dir.join(name)) {
            Ok(mut file) => {
                file.write_all(text.as_bytes())?;
                files.push((name, true));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => files.push((name, false)),
            Err(error) => return Err(error),
        }
    }
    Ok(files)
}
