//! The one algorithm of access tokens, Ed25519, for the JWT library. Its own provider would bring a dozen others and a
//! second generation of cryptography crates.

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use jsonwebtoken::{
    Algorithm, DecodingKey, EncodingKey,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    errors::{ErrorKind, Result},
    signature::{Error, Signer, Verifier},
};

static ED25519: CryptoProvider = CryptoProvider {
    signer_factory: |algorithm, key| Ok(Box::new(Ed25519Signer::new(*algorithm, key)?)),
    verifier_factory: |algorithm, key| Ok(Box::new(Ed25519Verifier::new(*algorithm, key)?)),
    // For key sets that the library would write; we don't use those.
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes the library sign and verify with Ed25519 only.
pub fn provide() {
    // Once per process; an existing provider can only be this one.
    let _ = ED25519.install_default();
}

struct Ed25519Signer(SigningKey);

impl Ed25519Signer {
    /// The key's bytes are the seed.
    fn new(algorithm: Algorithm, key: &EncodingKey) -> Result<Self> {
        only(algorithm)?;
        let seed = key.as_bytes().try_into().map_err(|_| ErrorKind::InvalidEddsaKey)?;
        Ok(Self(SigningKey::from_bytes(seed)))
    }
}

impl Signer<Vec<u8>> for Ed25519Signer {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        Ok(self.0.sign(message).to_bytes().to_vec())
    }
}

impl JwtSigner for Ed25519Signer {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

struct Ed25519Verifier(VerifyingKey);

impl Ed25519Verifier {
    fn new(algorithm: Algorithm, key: &DecodingKey) -> Result<Self> {
        only(algorithm)?;
        let bytes = key.try_get_as_bytes()?.try_into().map_err(|_| ErrorKind::InvalidEddsaKey)?;
        Ok(Self(VerifyingKey::from_bytes(bytes).map_err(|_| ErrorKind::InvalidEddsaKey)?))
    }
}

impl Verifier<Vec<u8>> for Ed25519Verifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let signature = Signature::from_slice(signature).map_err(|_| Error::new())?;
        self.0.verify_strict(message, &signature).map_err(|_| Error::new())
    }
}

impl JwtVerifier for Ed25519Verifier {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

fn only(algorithm: Algorithm) -> Result<()> {
    if algorithm == Algorithm::EdDSA { Ok(()) } else { Err(ErrorKind::InvalidAlgorithm.into()) }
}
