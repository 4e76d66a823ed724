//! The key that signs statements about the log, and the public keys that verify them.
//!
//! It is derived one way from a seed in the key file: the audit key reveals no other key, and an installation needs no
//! extra file. It differs from the key that signs access tokens.

use base64::{Engine, engine::general_purpose::STANDARD};
use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::core::sealing::KeyFile;

/// Signs statements about the log.
pub struct AuditKey {
    signing: SigningKey,
    public: PublicKey,
}

/// Verifies statements about the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    id: String,
    key: VerifyingKey,
}

impl AuditKey {
    #[must_use]
    pub fn derive(keys: &KeyFile) -> Option<Self> {
        let active = keys.signing().iter().find(|key| key.kid == keys.active_signing())?;
        Some(Self::from_seed(&active.seed))
    }

    /// The public keys for every seed in the key file.
    #[must_use]
    pub fn known(keys: &KeyFile) -> Vec<PublicKey> {
        keys.signing().iter().map(|key| Self::from_seed(&key.seed).public).collect()
    }

    fn from_seed(seed: &[u8; 32]) -> Self {
        let seed: Zeroizing<[u8; 32]> = Zeroizing::new(
            Sha256::new().chain_update(b"muster audit key 1").chain_update(seed).finalize().into(),
        );
        let signing = SigningKey::from_bytes(&seed);
        let public = PublicKey::new(signing.verifying_key());
        Self { signing, public }
    }

    #[must_use]
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    pub(super) fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        self.signing.sign(bytes).to_bytes()
    }
}

impl PublicKey {
    fn new(key: VerifyingKey) -> Self {
        let digest: [u8; 32] = Sha256::digest(key.as_bytes()).into();
        Self { id: hex::encode(&digest[..8]), key }
    }

    /// Parses what `muster audit key` prints.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = <[u8; 32]>::try_from(STANDARD.decode(text.trim()).ok()?).ok()?;
        VerifyingKey::from_bytes(&bytes).ok().map(Self::new)
    }

    /// The key's name in a signature: the start of its digest.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn verifies(&self, bytes: &[u8], signature: &[u8]) -> bool {
        let Ok(signature) = ed25519_dalek::Signature::from_slice(signature) else { return false };
        self.key.verify_strict(bytes, &signature).is_ok()
    }
}

impl std::fmt::Display for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&STANDARD.encode(self.key.as_bytes()))
    }
}
