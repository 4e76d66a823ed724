//! The texts of a policy, all from one moment: from a folder, built in, or given by the caller.
//!
//! Reading never fails: an unreadable file is a file with a problem, reported with the others. Nothing here writes.

use std::{collections::BTreeMap, fs, io, io::Read, path::Path, sync::Arc};

use sha2::{Digest, Sha256};

use super::line::{LintProblem, POLICY_CSV, org_file};
use crate::base::{
    bounds::FILE,
    ids::{MAX_ID, OrgId},
};

/// The model that the rest of this module is written for.
pub(super) const MODEL: &str = include_str!("../../../policies/model.conf");
const POLICY: &str = include_str!("../../../policies/policy.csv");
const EXPECTATIONS: &str = include_str!("../../../policies/expectations.csv");

/// The built-in files, by their names in a folder.
pub const DEFAULTS: [(&str, &str); 5] = [
    ("model.conf", MODEL),
    (POLICY_CSV, POLICY),
    (EXPECTATIONS_CSV, EXPECTATIONS),
    ("README.md", include_str!("../../../policies/README.md")),
    ("orgs/README.md", include_str!("../../../policies/orgs/README.md")),
];

/// The name of the file of expectations.
pub(super) const EXPECTATIONS_CSV: &str = "expectations.csv";

/// One file: its text, or why it can't be read.
#[derive(Clone)]
pub(super) struct File {
    /// Its name in problems: relative to the policy folder.
    pub name: String,
    pub text: Result<Arc<str>, String>,
    /// Whether it is not a file but a text given by the caller.
    pub given: bool,
    digest: [u8; 32],
}

impl File {
    fn new(name: impl Into<String>, text: Result<Arc<str>, String>, given: bool) -> Self {
        let digest = Sha256::digest(text.as_deref().unwrap_or_else(|reason| reason)).into();
        Self { name: name.into(), text, given, digest }
    }

    fn built_in(name: &str, text: &str) -> Self {
        Self::new(name, Ok(text.into()), false)
    }

    fn given(org: OrgId, text: Arc<str>) -> Self {
        Self::new(org_file(org), Ok(text), true)
    }
}

/// Organizations' own rules that are not kept in the folder.
pub type Given = BTreeMap<OrgId, Arc<str>>;

/// All files of a policy.
#[derive(Clone)]
pub(super) struct Sources {
    pub model: File,
    pub policy: File,
    /// The expectations; `None` without such a file.
    pub expectations: Option<File>,
    pub orgs: Vec<(OrgId, File)>,
    /// Entries of `orgs/` that don't belong there.
    pub strays: Vec<LintProblem>,
    /// The hash of everything.
    pub version: String,
}

impl Sources {
    pub fn embedded() -> Self {
        let expectations = Some(File::built_in(EXPECTATIONS_CSV, EXPECTATIONS));
        let (model, policy) = (File::built_in("model.conf", MODEL), File::built_in(POLICY_CSV, POLICY));
        Self::new(model, policy, expectations, Vec::new(), Vec::new())
    }

    /// The files in `dir`, each read by `read`, which receives the folder and the file's name.
    pub fn read(dir: &Path, read: &mut dyn FnMut(&Root<'_>, &str) -> File) -> Self {
        if !dir.is_dir() {
            // One problem, not one for each file.
            let reason = "the folder does not exist: name one with policy_dir (MUSTER_POLICY_DIR) or --dir";
            let missing = LintProblem::of_file(&dir.display().to_string(), reason);
            let Self { model, policy, expectations, .. } = Self::embedded();
            return Self::new(model, policy, expectations, Vec::new(), vec![missing]);
        }
        let (root, mut orgs, mut strays) = (Root(dir), Vec::new(), Vec::new());
        for name in org_names(&root, &mut strays) {
            match org_of(&name) {
                Some(org) => orgs.push((org, read(&root, &org_file(org)))),
                None if is_ignored(&name) => {}
                None => {
                    let reason = "not a valid name for an organization's file: must be <organization id>.csv";
                    strays.push(LintProblem::of_file(&format!("orgs/{name}"), reason));
                }
            }
        }
        orgs.sort_by_key(|(org, _)| *org);
        strays.sort();
        // A missing file and an unreadable one are different things.
        let expected = fs::symlink_metadata(dir.join(EXPECTATIONS_CSV)).is_ok();
        let expectations = expected.then(|| read(&root, EXPECTATIONS_CSV));
        let [model, policy] = ["model.conf", POLICY_CSV].map(|name| read(&root, name));
        Self::new(model, policy, expectations, orgs, strays)
    }

    fn new(
        model: File,
        policy: File,
        expectations: Option<File>,
        orgs: Vec<(OrgId, File)>,
        strays: Vec<LintProblem>,
    ) -> Self {
        let mut hash = Sha256::new();
        // By organization, not by path, so that replicas with the same rules show the same version.
        let of_orgs = orgs.iter().map(|(org, file)| (org.0, file));
        let of_all = [(0, &model), (0, &policy)].into_iter().chain(expectations.iter().map(|file| (0, file)));
        for (org, file) in of_all.chain(of_orgs) {
            hash.update(org.to_le_bytes());
            hash.update(file.digest);
        }
        for stray in &strays {
            hash.update(stray.to_string());
        }
        let version = hex::encode(&hash.finalize()[..8]);
        Self { model, policy, expectations, orgs, strays, version }
    }

    /// Adds the given rules for organizations without a file.
    pub fn completed(mut self, given: &Given) -> Self {
        let files = self.orgs.len();
        for (org, text) in given {
            if self.orgs[..files].binary_search_by_key(org, |(org, _)| *org).is_err() {
                self.orgs.push((*org, File::given(*org, Arc::clone(text))));
            }
        }
        self.orgs.sort_by_key(|(org, _)| *org);
        Self::new(self.model, self.policy, self.expectations, self.orgs, self.strays)
    }

    /// The same with different rules for one organization, or none.
    pub fn with_org(mut self, org: OrgId, text: Option<Arc<str>>) -> Self {
        self.orgs.retain(|(other, _)| *other != org);
        if let Some(text) = text {
            let at = self.orgs.partition_point(|(other, _)| *other < org);
            self.orgs.insert(at, (org, File::given(org, text)));
        }
        Self::new(self.model, self.policy, self.expectations, self.orgs, self.strays)
    }

    /// An organization's own rules.
    pub fn org(&self, org: OrgId) -> Option<&File> {
        let at = self.orgs.binary_search_by_key(&org, |(org, _)| *org).ok()?;
        Some(&self.orgs[at].1)
    }

    pub fn len(&self) -> usize {
        2 + usize::from(self.expectations.is_some()) + self.orgs.len()
    }
}

/// The policy folder. Links in it may point to other places inside it (as mounted volumes do), but not outside: write
/// access to a policy file must not reveal files that belong to other users.
pub(super) struct Root<'a>(&'a Path);

impl Root<'_> {
    pub fn read(&self, name: &str) -> File {
        let path = self.0.join(name);
        let text = self.stays_inside(&path).and_then(|()| read_text(&path));
        let text = text.map(Arc::from).map_err(|error| format!("can't be read: {error}"));
        File::new(name, text, false)
    }

    pub fn about(&self, name: &str) -> Option<fs::Metadata> {
        fs::metadata(self.0.join(name)).ok()
    }

    fn stays_inside(&self, path: &Path) -> io::Result<()> {
        if !fs::symlink_metadata(path)?.is_symlink()
            || fs::canonicalize(path)?.starts_with(fs::canonicalize(self.0)?)
        {
            return Ok(());
        }
        Err(io::Error::other("it is a link to outside the policy folder"))
    }
}

fn read_text(path: &Path) -> io::Result<String> {
    // Reading a pipe would wait for its writer forever.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(FILE as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > FILE {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8; save it as UTF-8"))
}

fn org_names(root: &Root<'_>, strays: &mut Vec<LintProblem>) -> Vec<String> {
    let dir = root.0.join("orgs");
    let mut unreadable =
        |error: io::Error| strays.push(LintProblem::of_file("orgs", format!("can't be read: {error}")));
    let entries = match root.stays_inside(&dir).and_then(|()| fs::read_dir(&dir)) {
        Ok(entries) => entries,
        // No organization has a file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            unreadable(error);
            return Vec::new();
        }
    };
    let mut names = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) => names.push(entry.file_name().to_string_lossy().into_owned()),
            Err(error) => unreadable(error),
        }
    }
    names
}

/// The organization whose file has this name: its id, without leading zeros.
fn org_of(name: &str) -> Option<OrgId> {
    let digits = name.strip_suffix(".csv")?;
    let id = digits.parse().ok().filter(|id| (1..=MAX_ID).contains(id))?;
    (digits == i64::to_string(&id)).then_some(OrgId(id))
}

/// Hidden files and backups of editors. Anything else that is not an organization's file is a mistake: a rule in
/// `7.CSV` would silently have no effect.
fn is_ignored(name: &str) -> bool {
    name == "README.md" || name.starts_with('.') || name.ends_with('~')
}
