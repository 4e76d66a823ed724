//! Sealing: how secrets that must be readable again are stored in the database.
//!
//! Envelope encryption. Every secret gets its own random data key; the data key is encrypted ("wrapped") with a key
//! from the key ring; both encryptions are XChaCha20-Poly1305 with random 192-bit nonces. The database stores one byte
//! string:
//!
//! | bytes | content |
//! |---|---|
//! | 1 | format version (1) |
//! | 4 | id of the key-ring key, big endian |
//! | 24 + 48 | nonce and wrapped data key (32 bytes and the tag) |
//! | 24 + n + 16 | nonce and ciphertext with its tag |
//!
//! The place of the secret ([`SealContext`]: organization, table, record, field) is authenticated with it, so a sealed
//! value that was copied to another row, column or tenant does not open. The data key is bound to the same place, and
//! to the id of the key that wraps it.
//!
//! Rotation: add a key and make it the active one ([`KeyFile::rotate_sealing`]). Older values still open, and
//! [`KeyRing::rewrap`] moves a value to the active key without touching its ciphertext. The ring of a running service
//! is a [`LiveRing`], which `keys/watch.rs` replaces when the file changes.
//!
//! This module knows no tables and no configuration; it only reads and writes the key file.

use std::collections::BTreeMap;

use chacha20poly1305::{
    Key, KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

use crate::base::ids::OrgId;

mod keyfile;
mod live;

pub use keyfile::{KeyFile, KeyFileError, SigningKey};
pub use live::LiveRing;

const VERSION: u8 = 1;
const KEY_LEN: usize = 32;
const NONCE_LEN: usize = 24;
const TAG_LEN: usize = 16;
const WRAPPED_LEN: usize = KEY_LEN + TAG_LEN;
/// Format version and key id.
const HEADER_LEN: usize = 5;
/// Everything before the nonce of the ciphertext.
const PREFIX_LEN: usize = HEADER_LEN + NONCE_LEN + WRAPPED_LEN;

/// Separates the two encryptions of a value: neither can take the other's place.
const DATA: &[u8] = b"muster.data.1";
const WRAP: &[u8] = b"muster.wrap.1";
/// For derived secrets.
const DERIVE: &[u8] = b"muster.derive.1";

/// A 256-bit secret key. Wiped when dropped; `Debug` prints nothing.
pub type SecretKey = Zeroizing<[u8; KEY_LEN]>;

/// Bytes from the operating system's generator: the only source of randomness for keys and tokens.
///
/// # Panics
/// If the system can't provide randomness. Continuing without it would not be safe.
#[must_use]
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    match getrandom::fill(&mut bytes) {
        Ok(()) => bytes,
        Err(error) => panic!("the system's random generator failed: {error}"),
    }
}

/// The record that a sealed value belongs to: its id, or a name if it is sealed before it has an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locator<'a> {
    Id(i64),
    /// Another value that never changes and is unique in its table and organization.
    Name(&'a str),
}

impl From<i64> for Locator<'_> {
    fn from(id: i64) -> Self {
        Self::Id(id)
    }
}

impl<'a> From<&'a str> for Locator<'a> {
    fn from(name: &'a str) -> Self {
        Self::Name(name)
    }
}

/// The place of a sealed value. It opens only where it was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealContext<'a> {
    /// The organization that owns the record.
    pub organization: OrgId,
    pub table: &'a str,
    pub record: Locator<'a>,
    /// The record's column.
    pub field: &'a str,
}

impl<'a> SealContext<'a> {
    /// The place `table.field` of `record` in `organization`.
    #[must_use]
    pub fn new(organization: OrgId, table: &'a str, record: impl Into<Locator<'a>>, field: &'a str) -> Self {
        Self { organization, table, record: record.into(), field }
    }

    /// The associated data of one encryption. Each part of variable length is preceded by its length, so different
    /// places never yield the same bytes.
    fn bytes(&self, purpose: &[u8], header: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(96);
        let mut part = |tag: u8, bytes: &[u8]| {
            out.push(tag);
            out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
            out.extend_from_slice(bytes);
        };
        part(b'p', purpose);
        part(b'h', header);
        part(b'o', &self.organization.0.to_be_bytes());
        part(b't', self.table.as_bytes());
        match self.record {
            Locator::Id(id) => part(b'i', &id.to_be_bytes()),
            Locator::Name(name) => part(b'n', name.as_bytes()),
        }
        part(b'f', self.field.as_bytes());
        out
    }
}

/// Why a sealed value does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Not a sealed value, or one of a later format version.
    #[error("not a sealed value of a known version")]
    Malformed,
    /// The key that sealed it is not on the key ring.
    #[error("sealed with key {0}, which is not in the key file")]
    UnknownKey(u32),
    /// It was changed, moved to another place, or sealed with a different key of the same id.
    #[error("the sealed value was changed or moved from another place")]
    Tampered,
}

/// The keys that seal. Opens with any of them, seals with the active one.
#[derive(Clone)]
pub struct KeyRing {
    active: u32,
    keys: BTreeMap<u32, SecretKey>,
}

impl std::fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyRing")
            .field("active", &self.active)
            .field("ids", &self.keys.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl KeyRing {
    /// A ring of these keys; `None` if the active one is not among them.
    #[must_use]
    pub fn new(active: u32, keys: BTreeMap<u32, SecretKey>) -> Option<Self> {
        keys.contains_key(&active).then_some(Self { active, keys })
    }

    /// A ring with one random key that is stored nowhere: for tests.
    #[must_use]
    pub fn ephemeral() -> Self {
        Self { active: 1, keys: BTreeMap::from([(1, Zeroizing::new(random_bytes()))]) }
    }

    /// The id of the key that seals.
    #[must_use]
    pub fn active_id(&self) -> u32 {
        self.active
    }

    /// The ids of all keys, ascending.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        self.keys.keys().copied()
    }

    /// The first bytes of every value wrapped with the key `id`.
    #[must_use]
    pub fn begins(id: u32) -> [u8; HEADER_LEN] {
        header(id)
    }

    /// Seals a text for the place `context`.
    #[must_use]
    pub fn seal(&self, plain: &SecretString, context: &SealContext<'_>) -> Vec<u8> {
        self.seal_bytes(plain.expose_secret().as_bytes(), context)
    }

    /// Seals bytes for the place `context`.
    #[must_use]
    pub fn seal_bytes(&self, plain: &[u8], context: &SealContext<'_>) -> Vec<u8> {
        let data_key: SecretKey = Zeroizing::new(random_bytes());
        let nonce: [u8; NONCE_LEN] = random_bytes();
        let mut out = self.wrap(&data_key, context);
        out.extend_from_slice(&nonce);
        out.extend_from_slice(&encrypt(&data_key, &nonce, plain, &context.bytes(DATA, &[VERSION])));
        out
    }

    /// Opens a text sealed for the place `context`.
    ///
    /// # Errors
    /// See [`SealError`].
    pub fn open(&self, sealed: &[u8], context: &SealContext<'_>) -> Result<SecretString, SealError> {
        let mut plain = self.decrypt(sealed, context)?;
        let text = String::from_utf8(std::mem::take(&mut *plain)).map_err(|error| {
            error.into_bytes().zeroize();
            SealError::Malformed
        })?;
        Ok(SecretString::from(text))
    }

    /// Opens bytes sealed for the place `context`.
    ///
    /// # Errors
    /// See [`SealError`].
    pub fn open_bytes(&self, sealed: &[u8], context: &SealContext<'_>) -> Result<SecretSlice<u8>, SealError> {
        let mut plain = self.decrypt(sealed, context)?;
        Ok(SecretSlice::from(std::mem::take(&mut *plain)))
    }

    /// The same value under the active key, or `None` if it already is. Neither decrypts the secret nor changes its
    /// ciphertext.
    ///
    /// # Errors
    /// See [`SealError`].
    pub fn rewrap(&self, sealed: &[u8], context: &SealContext<'_>) -> Result<Option<Vec<u8>>, SealError> {
        let parts = Parts::read(sealed)?;
        if parts.key_id == self.active {
            return Ok(None);
        }
        let data_key = self.unwrap(&parts, context)?;
        let mut out = self.wrap(&data_key, context);
        out.extend_from_slice(parts.rest);
        Ok(Some(out))
    }

    /// Secrets that only a holder of the key file can derive from `material`: one for each key, the active key's first.
    /// For secrets that must be shown twice but not stored. One of them reveals no key and no other secret.
    pub fn derive(&self, purpose: &str, material: &[&[u8]]) -> impl Iterator<Item = SecretKey> {
        let older = self.keys.iter().filter(|(id, _)| **id != self.active).map(|(_, key)| key);
        std::iter::once(&self.keys[&self.active]).chain(older).map(move |key| {
            let keyed = |bytes: &[&[u8]]| -> SecretKey {
                let mut hash = Sha256::new().chain_update(DERIVE).chain_update(&key[..]);
                for part in bytes {
                    hash.update((part.len() as u64).to_be_bytes());
                    hash.update(part);
                }
                Zeroizing::new(hash.finalize().into())
            };
            // Twice, like HMAC, against length extension.
            let inner = keyed(&[&[purpose.as_bytes()], material].concat());
            keyed(&[&inner[..]])
        })
    }

    fn decrypt(&self, sealed: &[u8], context: &SealContext<'_>) -> Result<Zeroizing<Vec<u8>>, SealError> {
        let parts = Parts::read(sealed)?;
        let data_key = self.unwrap(&parts, context)?;
        let (nonce, ciphertext) = parts.rest.split_first_chunk().ok_or(SealError::Malformed)?;
        decrypt(&data_key, nonce, ciphertext, &context.bytes(DATA, &[VERSION]))
    }

    /// Header, nonce and wrapped data key: the first [`PREFIX_LEN`] bytes of a sealed value.
    fn wrap(&self, data_key: &SecretKey, context: &SealContext<'_>) -> Vec<u8> {
        let header = header(self.active);
        let nonce: [u8; NONCE_LEN] = random_bytes();
        let wrapped = encrypt(&self.keys[&self.active], &nonce, &data_key[..], &context.bytes(WRAP, &header));
        let mut out = Vec::with_capacity(PREFIX_LEN + NONCE_LEN + TAG_LEN + 64);
        for part in [&header[..], &nonce[..], &wrapped[..]] {
            out.extend_from_slice(part);
        }
        out
    }

    fn unwrap(&self, parts: &Parts<'_>, context: &SealContext<'_>) -> Result<SecretKey, SealError> {
        let key = self.keys.get(&parts.key_id).ok_or(SealError::UnknownKey(parts.key_id))?;
        let plain = decrypt(key, parts.nonce, parts.wrapped, &context.bytes(WRAP, &header(parts.key_id)))?;
        let mut data_key = SecretKey::default();
        if plain.len() != data_key.len() {
            return Err(SealError::Malformed);
        }
        data_key.copy_from_slice(&plain);
        Ok(data_key)
    }
}

/// The parts of a sealed value, not authenticated yet.
struct Parts<'a> {
    key_id: u32,
    nonce: &'a [u8; NONCE_LEN],
    wrapped: &'a [u8],
    /// Nonce and ciphertext.
    rest: &'a [u8],
}

impl<'a> Parts<'a> {
    fn read(sealed: &'a [u8]) -> Result<Self, SealError> {
        let Some((&[VERSION, a, b, c, d], body)) = sealed.split_first_chunk::<HEADER_LEN>() else {
            return Err(SealError::Malformed);
        };
        let (nonce, body) = body.split_first_chunk().ok_or(SealError::Malformed)?;
        let (wrapped, rest) = body.split_at_checked(WRAPPED_LEN).ok_or(SealError::Malformed)?;
        if rest.len() < NONCE_LEN + TAG_LEN {
            return Err(SealError::Malformed);
        }
        Ok(Self { key_id: u32::from_be_bytes([a, b, c, d]), nonce, wrapped, rest })
    }
}

fn header(key_id: u32) -> [u8; HEADER_LEN] {
    let [a, b, c, d] = key_id.to_be_bytes();
    [VERSION, a, b, c, d]
}

/// # Panics
/// If the plaintext reaches 256 GiB, the most that one nonce may encrypt.
fn encrypt(key: &SecretKey, nonce: &[u8; NONCE_LEN], plain: &[u8], associated: &[u8]) -> Vec<u8> {
    let cipher = XChaCha20Poly1305::new(&Key::from(**key));
    match cipher.encrypt(&XNonce::from(*nonce), Payload { msg: plain, aad: associated }) {
        Ok(ciphertext) => ciphertext,
        Err(_) => unreachable!("a secret is smaller than 256 GiB"),
    }
}

fn decrypt(
    key: &SecretKey,
    nonce: &[u8; NONCE_LEN],
    ciphertext: &[u8],
    associated: &[u8],
) -> Result<Zeroizing<Vec<u8>>, SealError> {
    let cipher = XChaCha20Poly1305::new(&Key::from(**key));
    cipher
        .decrypt(&XNonce::from(*nonce), Payload { msg: ciphertext, aad: associated })
        .map(Zeroizing::new)
        .map_err(|_| SealError::Tampered)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place(record: i64) -> SealContext<'static> {
        SealContext::new(OrgId(1), "channels", record, "bot_token")
    }

    fn ring_of(keys: &[(u32, [u8; 32])], active: u32) -> KeyRing {
        KeyRing::new(active, keys.iter().map(|(id, key)| (*id, Zeroizing::new(*key))).collect()).unwrap()
    }

    #[test]
    fn opens_where_it_was_sealed_and_nowhere_else() {
        let ring = KeyRing::ephemeral();
        let sealed = ring.seal(&"s3cret".into(), &place(7));
        assert_eq!(ring.open(&sealed, &place(7)).unwrap().expose_secret(), "s3cret");
        for elsewhere in [
            place(8),
            SealContext { organization: OrgId(2), ..place(7) },
            SealContext { table: "credentials", ..place(7) },
            SealContext { field: "inbound_secret", ..place(7) },
            SealContext { record: Locator::Name("7"), ..place(7) },
            SealContext { table: "channelsb", field: "ot_token", ..place(7) },
        ] {
            assert_eq!(ring.open(&sealed, &elsewhere).unwrap_err(), SealError::Tampered, "{elsewhere:?}");
        }
    }

    #[test]
    fn two_seals_of_one_secret_share_nothing() {
        let ring = KeyRing::ephemeral();
        let (a, b) = (ring.seal(&"x".into(), &place(1)), ring.seal(&"x".into(), &place(1)));
        assert_ne!(a[HEADER_LEN..PREFIX_LEN], b[HEADER_LEN..PREFIX_LEN]);
        assert_ne!(a[PREFIX_LEN..], b[PREFIX_LEN..]);
    }

    #[test]
    fn another_key_does_not_open() {
        let sealed = ring_of(&[(1, [1; 32])], 1).seal(&"x".into(), &place(1));
        let same_id = ring_of(&[(1, [2; 32])], 1);
        assert_eq!(same_id.open(&sealed, &place(1)).unwrap_err(), SealError::Tampered);
        let other_id = ring_of(&[(2, [1; 32])], 2);
        assert_eq!(other_id.open(&sealed, &place(1)).unwrap_err(), SealError::UnknownKey(1));
    }

    #[test]
    fn rotation_keeps_old_values_readable_and_moves_them() {
        let old = ring_of(&[(1, [1; 32])], 1);
        let both = ring_of(&[(1, [1; 32]), (2, [2; 32])], 2);
        let new = ring_of(&[(2, [2; 32])], 2);
        let sealed = old.seal(&"kept".into(), &place(1));
        assert_eq!(both.open(&sealed, &place(1)).unwrap().expose_secret(), "kept");
        let moved = both.rewrap(&sealed, &place(1)).unwrap().unwrap();
        assert_eq!(moved[PREFIX_LEN..], sealed[PREFIX_LEN..]);
        assert_eq!(new.open(&moved, &place(1)).unwrap().expose_secret(), "kept");
        assert_eq!(both.rewrap(&moved, &place(1)).unwrap(), None);
        assert_eq!(both.rewrap(&sealed, &place(2)).unwrap_err(), SealError::Tampered);
    }

    #[test]
    fn debug_prints_no_key() {
        let ring = ring_of(&[(1, [0xab; 32])], 1);
        assert_eq!(format!("{ring:?}"), "KeyRing { active: 1, ids: [1], .. }");
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(plain in proptest::collection::vec(any::<u8>(), 0..300)) {
            let ring = KeyRing::ephemeral();
            let sealed = ring.seal_bytes(&plain, &place(1));
            prop_assert_eq!(sealed.len(), PREFIX_LEN + NONCE_LEN + plain.len() + TAG_LEN);
            let opened = ring.open_bytes(&sealed, &place(1)).unwrap();
            prop_assert_eq!(opened.expose_secret(), &plain[..]);
        }

        #[test]
        fn a_flipped_bit_or_a_cut_end_does_not_open(at in any::<prop::sample::Index>(), bit in 0..8_u8) {
            let ring = KeyRing::ephemeral();
            let mut sealed = ring.seal(&"a secret".into(), &place(1));
            let at = at.index(sealed.len());
            prop_assert!(ring.open(&sealed[..at], &place(1)).is_err());
            prop_assert!(ring.rewrap(&sealed[..at.min(PREFIX_LEN)], &place(1)).is_err());
            sealed[at] ^= 1 << bit;
            prop_assert!(ring.open(&sealed, &place(1)).is_err());
        }

        #[test]
        fn no_input_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300), versioned in any::<bool>()) {
            let mut bytes = bytes;
            if versioned && bytes.len() >= HEADER_LEN {
                bytes[..HEADER_LEN].copy_from_slice(&header(1));
            }
            prop_assert!(KeyRing::ephemeral().open(&bytes, &place(1)).is_err());
        }
    }
}
