//! The key file: the sealing keys and the seeds that sign access tokens, in one TOML file (`keys.toml`).
//!
//! ```toml
//! [sealing]
//! active = 1
//! [[sealing.keys]]
//! id = 1
//! key = "<32 bytes, base64>"
//!
//! [signing]
//! active = "3f9c0a1b"
//! [[signing.keys]]
//! kid = "3f9c0a1b"
//! seed = "<32 bytes, base64>"
//! ```
//!
//! This file and the database together give access to every secret. It is readable by its owner only, never overwritten
//! by accident, and none of its text ever appears in an error.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use zeroize::{Zeroize, Zeroizing};

use super::{KeyRing, SecretKey, random_bytes};
use crate::base::files::{create_private, replace_file};

/// A fault of the key file. Names the place, but never includes the content.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It can't be read or written.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// Others can read it, or its group can write to it.
    #[error("{}: others can read it; run: chmod 600", .0.display())]
    Exposed(PathBuf),
    /// It is not TOML of the expected form.
    #[error("the key file is not valid (line {line})")]
    Syntax {
        /// The line, starting at 1.
        line: usize,
    },
    /// A key is not 32 bytes in base64.
    #[error("{0} is not 32 bytes in base64")]
    BadKey(String),
    /// Two keys have the same id.
    #[error("{0} appears twice in the key file")]
    Duplicate(String),
    /// The active key is not among the keys.
    #[error("the active {0} is not in the key file")]
    NoActiveKey(&'static str),
}

/// A seed that signs access tokens (Ed25519), and its name in their header. An installation starts with those of the
/// key file; from then on the table `signing_keys` holds them (`keys/signing.rs`). The key of the audit log is also
/// derived from the seed (`audit/key.rs`), so it stays in the file.
#[derive(Clone)]
pub struct SigningKey {
    /// The key's name in a token's header.
    pub kid: String,
    /// The Ed25519 seed.
    pub seed: SecretKey,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey").field("kid", &self.kid).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
pub struct KeyFile {
    ring: KeyRing,
    active_signing: String,
    signing: Vec<SigningKey>,
}

impl KeyFile {
    /// New random keys, not saved yet.
    #[must_use]
    pub fn generate() -> Self {
        let signing = SigningKey::generate();
        Self { ring: KeyRing::ephemeral(), active_signing: signing.kid.clone(), signing: vec![signing] }
    }

    /// Reads the file, or creates it with new keys if it does not exist.
    ///
    /// # Errors
    /// It can't be read or created, is not valid, or users other than its owner can read it.
    pub fn load_or_create(path: &Path) -> Result<Self, KeyFileError> {
        match Self::load(path) {
            Err(KeyFileError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            loaded => return loaded,
        }
        let keys = Self::generate();
        match keys.write_new(path) {
            Ok(()) => Ok(keys),
            // Another process was faster: its keys are now the installation's.
            Err(KeyFileError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
                Self::load(path)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads the file.
    ///
    /// # Errors
    /// It can't be read, is not valid, or users other than its owner can read it.
    pub fn load(path: &Path) -> Result<Self, KeyFileError> {
        let io = |source| KeyFileError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        refuse_exposed(path, &file.metadata().map_err(io)?)?;
        let text = Zeroizing::new(io::read_to_string(file).map_err(io)?);
        Self::parse(&text)
    }

    /// Parses the text of a key file.
    ///
    /// # Errors
    /// It is not valid or lacks an active key.
    pub fn parse(text: &str) -> Result<Self, KeyFileError> {
        let wire: Wire = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            KeyFileError::Syntax { line: 1 + text.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count() }
        })?;
        wire.check()
    }

    #[must_use]
    pub fn ring(&self) -> &KeyRing {
        &self.ring
    }

    /// The key that signs access tokens.
    #[must_use]
    pub fn active_signing(&self) -> &str {
        &self.active_signing
    }

    /// All keys that verify access tokens, including the active one.
    #[must_use]
    pub fn signing(&self) -> &[SigningKey] {
        &self.signing
    }

    /// Adds a sealing key that does not seal yet, unless there already is one. Returns its id.
    pub fn prepare_sealing(&mut self) -> u32 {
        let newest = self.ring.keys.keys().next_back().copied().unwrap_or_default();
        if newest > self.ring.active {
            return newest;
        }
        let id = newest.saturating_add(1);
        self.ring.keys.insert(id, Zeroizing::new(random_bytes()));
        id
    }

    /// Makes the prepared sealing key active, or else a new one. Returns its id.
    pub fn rotate_sealing(&mut self) -> u32 {
        self.ring.active = self.prepare_sealing();
        self.ring.active
    }

    /// Removes a sealing key that is not active; returns false if it does not exist or is active.
    pub fn retire_sealing(&mut self, id: u32) -> bool {
        id != self.ring.active && self.ring.keys.remove(&id).is_some()
    }

    /// Adds a signing key and makes it active; tokens signed by an older one stay valid.
    pub fn rotate_signing(&mut self) -> &str {
        let key = SigningKey::generate();
        self.active_signing.clone_from(&key.kid);
        self.signing.push(key);
        &self.active_signing
    }

    /// Replaces the file atomically: a reader sees either the old keys or the new ones.
    ///
    /// # Errors
    /// It can't be written.
    pub fn save(&self, path: &Path) -> Result<(), KeyFileError> {
        let beside = path.with_extension(format!("{:08x}.new", u32::from_be_bytes(random_bytes())));
        // Synced to disk: a value sealed with a new key must not outlive the key.
        let replaced = write_private(&beside, &self.text()).and_then(|()| replace_file(&beside, path));
        replaced.map_err(|source| {
            // The keys must not stay behind under a name that no one looks at; the first error is the one that matters.
            let _ = std::fs::remove_file(&beside);
            KeyFileError::Io { path: path.to_owned(), source }
        })
    }

    /// Creates the file, readable by its owner only from the first byte on. If two processes start at once, the loser
    /// must not see half a file, so the text is written under a temporary name first.
    fn write_new(&self, path: &Path) -> Result<(), KeyFileError> {
        let io = |source| KeyFileError::Io { path: path.to_owned(), source };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(io)?;
        }
        let beside = path.with_extension(format!("{:08x}.tmp", u32::from_be_bytes(random_bytes())));
        let linked = write_private(&beside, &self.text()).and_then(|()| std::fs::hard_link(&beside, path));
        let removed = std::fs::remove_file(&beside);
        linked.and(removed).map_err(io)
    }

    fn text(&self) -> Zeroizing<String> {
        use std::fmt::Write as _;
        let mut out = Zeroizing::new(String::with_capacity(1024));
        // Writing to a string can't fail.
        let _ = write!(
            out,
            "# The keys of this Muster installation. With this file and the database, every secret can be read:\n\
             # back it up separately from the database, and keep it private.\n\n[sealing]\nactive = {}\n",
            self.ring.active
        );
        for (id, key) in &self.ring.keys {
            let key = Zeroizing::new(STANDARD.encode(&key[..]));
            let _ = write!(out, "\n[[sealing.keys]]\nid = {id}\nkey = \"{}\"\n", *key);
        }
        let _ = write!(out, "\n[signing]\nactive = \"{}\"\n", self.active_signing);
        for key in &self.signing {
            let seed = Zeroizing::new(STANDARD.encode(&key.seed[..]));
            let _ = write!(out, "\n[[signing.keys]]\nkid = \"{}\"\nseed = \"{}\"\n", key.kid, *seed);
        }
        out
    }
}

impl SigningKey {
    /// A new random key, not saved yet.
    #[must_use]
    pub fn generate() -> Self {
        let kid = format!("{:016x}", u64::from_be_bytes(random_bytes()));
        Self { kid, seed: Zeroizing::new(random_bytes()) }
    }
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = create_private(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(unix)]
fn refuse_exposed(path: &Path, metadata: &std::fs::Metadata) -> Result<(), KeyFileError> {
    use std::os::unix::fs::PermissionsExt;
    // The group may read it: that is how orchestrators mount secrets for processes that are not root.
    if metadata.permissions().mode() & 0o027 != 0 {
        return Err(KeyFileError::Exposed(path.to_owned()));
    }
    Ok(())
}

#[cfg(not(unix))]
fn refuse_exposed(_: &Path, _: &std::fs::Metadata) -> Result<(), KeyFileError> {
    Ok(())
}

/// The file as parsed, before its keys are checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    sealing: WireSection<u32, WireSealing>,
    signing: WireSection<String, WireSigning>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireSection<Id, Key> {
    active: Id,
    keys: Vec<Key>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireSealing {
    id: u32,
    key: Base64Key,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireSigning {
    kid: String,
    seed: Base64Key,
}

/// A key as text; wiped when dropped.
#[derive(Deserialize)]
#[serde(transparent)]
struct Base64Key(SecretString);

impl Base64Key {
    fn decode(&self, name: &str) -> Result<SecretKey, KeyFileError> {
        let bad = || KeyFileError::BadKey(name.to_owned());
        let mut bytes = STANDARD.decode(self.0.expose_secret().trim()).map_err(|_| bad())?;
        let key = <[u8; 32]>::try_from(&bytes[..]).map(Zeroizing::new).map_err(|_| bad());
        bytes.zeroize();
        key
    }
}

impl Wire {
    fn check(self) -> Result<KeyFile, KeyFileError> {
        let mut keys = BTreeMap::new();
        for WireSealing { id, key } in &self.sealing.keys {
            let name = format!("sealing key {id}");
            if keys.insert(*id, key.decode(&name)?).is_some() {
                return Err(KeyFileError::Duplicate(name));
            }
        }
        let ring = KeyRing::new(self.sealing.active, keys).ok_or(KeyFileError::NoActiveKey("sealing key"))?;
        let (mut signing, mut kids) = (Vec::new(), BTreeSet::new());
        for WireSigning { kid, seed } in self.signing.keys {
            let name = format!("signing key {kid:?}");
            if !kids.insert(kid.clone()) {
                return Err(KeyFileError::Duplicate(name));
            }
            signing.push(SigningKey { seed: seed.decode(&name)?, kid });
        }
        if !kids.contains(&self.signing.active) {
            return Err(KeyFileError::NoActiveKey("signing key"));
        }
        Ok(KeyFile { ring, active_signing: self.signing.active, signing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{base::ids::OrgId, core::sealing::SealContext};

    #[test]
    fn is_made_once_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data/keys.toml");
        let made = KeyFile::load_or_create(&path).unwrap();
        let place = SealContext::new(OrgId(1), "t", 1, "f");
        let sealed = made.ring().seal(&"x".into(), &place);
        let again = KeyFile::load_or_create(&path).unwrap();
        assert_eq!(again.ring().open(&sealed, &place).unwrap().expose_secret(), "x");
        assert_eq!(again.active_signing(), made.active_signing());
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
            assert!(matches!(KeyFile::load(&path), Err(KeyFileError::Exposed(_))));
        }
    }

    #[test]
    fn rotated_keys_are_saved_and_old_values_still_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        let mut keys = KeyFile::load_or_create(&path).unwrap();
        let place = SealContext::new(OrgId(1), "t", 1, "f");
        let sealed = keys.ring().seal(&"x".into(), &place);
        assert_eq!(keys.rotate_sealing(), 2);
        keys.rotate_signing();
        keys.save(&path).unwrap();
        let loaded = KeyFile::load(&path).unwrap();
        assert_eq!((loaded.ring().active_id(), loaded.signing().len()), (2, 2));
        assert_eq!(loaded.active_signing(), loaded.signing()[1].kid);
        assert!(loaded.ring().open(&sealed, &place).is_ok());
        let mut retired = loaded;
        assert!(!retired.retire_sealing(2), "the active key stays");
        assert!(retired.retire_sealing(1) && !retired.retire_sealing(1));
        assert!(retired.ring().open(&sealed, &place).is_err());
        assert_eq!(
            (retired.prepare_sealing(), retired.prepare_sealing(), retired.ring().active_id()),
            (3, 3, 2)
        );
        assert_eq!(retired.rotate_sealing(), 3);
    }

    #[test]
    fn mistakes_are_named_without_the_keys() {
        let good = KeyFile::generate().text().to_string();
        let key = good.lines().find(|line| line.starts_with("key")).unwrap().to_owned();
        for (bad, expected) in [
            (good.replace("active = 1", "active = 9"), "the active sealing key is not"),
            (good.replace(&key, "key = \"c2hvcnQ=\""), "sealing key 1 is not 32 bytes"),
            (good.replace("id = 1", "ib = 1"), "is not valid (line"),
            (good.replace(&key, key.trim_end_matches('"')), "is not valid (line 9)"),
            (format!("{good}\n[[sealing.keys]]\nid = 1\n{key}\n"), "sealing key 1 appears twice"),
            (String::new(), "is not valid"),
        ] {
            let error = KeyFile::parse(&bad).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(shown.contains(expected), "{shown}");
            assert!(!shown.contains(&key[8..20]), "{shown}");
        }
    }
}
