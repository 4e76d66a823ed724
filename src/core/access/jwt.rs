//! Access tokens: short-lived JWTs that name the user and the session of a request.
//!
//! Only Ed25519 is accepted: the token's algorithm is compared, never followed. The header's `kid` names the key; any
//! key of the [`KeySet`] verifies until it is retired, and the active one signs. Signature, type, issuer and audience
//! are checked first and the expiry last, against the [`Clock`](crate::base::time::Clock) and without leeway, so
//! `Expired` is only returned for a token that was valid. The caller must check that the session still exists.
//!
//! The set changes while the service runs (`keys/signing.rs` maintains it); readers never wait for that.

use std::{collections::HashMap, time::Duration};

use arc_swap::ArcSwap;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};

use super::eddsa;
use crate::{
    base::{
        ids::{SessionId, UserId},
        time::Timestamp,
    },
    core::sealing::{KeyFile, SigningKey},
};

/// The `typ` of an access token (RFC 9068), so that another JWT of the same key can't pass for one.
const TYPE: &str = "at+jwt";
/// The audience of access tokens.
const AUDIENCE: &str = "muster";
/// The longest text that is parsed: anyone can send one. Our tokens have about 300 characters.
const MAX_LENGTH: usize = 2048;

/// The contents of an access token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claims {
    pub user: UserId,
    /// The session, which may have ended since.
    pub session: SessionId,
    /// When it was issued, in whole seconds.
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
}

/// Why an access token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwtError {
    /// It was valid, but has expired.
    #[error("the access token has expired")]
    Expired,
    /// Not one of our tokens.
    #[error("not a valid access token")]
    Invalid,
    /// It may be one of ours, but names a key that is not known here yet.
    #[error("signed with an unknown key")]
    UnknownKey,
}

/// The public half of a signing key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    /// The key's name in a token's header.
    pub kid: String,
    /// The Ed25519 public key.
    pub bytes: [u8; 32],
    /// When it stops verifying; set for a retired key.
    pub until: Option<Timestamp>,
}

impl PublicKey {
    /// The public half of `key`.
    #[must_use]
    pub fn from_signing_key(key: &SigningKey) -> Self {
        let public = ed25519_dalek::SigningKey::from_bytes(&key.seed).verifying_key();
        Self { kid: key.kid.clone(), bytes: public.to_bytes(), until: None }
    }
}

/// The keys in use at one time.
#[derive(Clone, Debug)]
pub struct KeySet {
    pub active: SigningKey,
    /// The keys that verify: the active one, the next one, and retired ones.
    pub verifying: Vec<PublicKey>,
}

impl KeySet {
    /// The signing keys of the key file, with which a new installation starts.
    ///
    /// # Errors
    /// [`JwtError::Invalid`] if the active key is not among the keys (a loaded key file always has it).
    pub fn of_file(keys: &KeyFile) -> Result<Self, JwtError> {
        let active =
            keys.signing().iter().find(|key| key.kid == keys.active_signing()).ok_or(JwtError::Invalid)?;
        Ok(Self {
            active: active.clone(),
            verifying: keys.signing().iter().map(PublicKey::from_signing_key).collect(),
        })
    }
}

/// The claims as serialized. Unknown claims are ignored.
#[derive(Serialize, Deserialize)]
struct Wire {
    iss: String,
    aud: String,
    sub: String,
    sid: i64,
    iat: i64,
    exp: i64,
}

/// The keys that sign and verify access tokens.
pub struct JwtKeys {
    issuer: String,
    validation: Validation,
    current: ArcSwap<Current>,
}

/// A [`KeySet`], ready to use.
struct Current {
    header: Header,
    signing: EncodingKey,
    verifying: HashMap<String, (DecodingKey, PublicKey)>,
}

impl Current {
    fn from_set(set: &KeySet) -> Self {
        let mut header = Header::new(Algorithm::EdDSA);
        header.typ = Some(TYPE.to_owned());
        header.kid = Some(set.active.kid.clone());
        let verifying = set
            .verifying
            .iter()
            .map(|key| (key.kid.clone(), (DecodingKey::from_ed_der(&key.bytes), key.clone())));
        Self {
            header,
            signing: EncodingKey::from_ed_der(&set.active.seed[..]),
            verifying: verifying.collect(),
        }
    }
}

impl std::fmt::Debug for JwtKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JwtKeys")
            .field("issuer", &self.issuer)
            .field("active", &self.current.load().header.kid)
            .finish_non_exhaustive()
    }
}

impl JwtKeys {
    /// Starts with the signing keys of the key file. Tokens of another `issuer` are refused.
    ///
    /// # Errors
    /// See [`KeySet::of_file`].
    pub fn new(keys: &KeyFile, issuer: &str) -> Result<Self, JwtError> {
        eddsa::provide();
        let current = ArcSwap::from_pointee(Current::from_set(&KeySet::of_file(keys)?));
        Ok(Self { issuer: issuer.to_owned(), validation: validation(issuer), current })
    }

    pub fn replace(&self, set: &KeySet) {
        self.current.store(std::sync::Arc::new(Current::from_set(set)));
    }

    /// The name of the key that signs.
    #[must_use]
    pub fn active(&self) -> String {
        self.current.load().header.kid.clone().unwrap_or_default()
    }

    /// The keys that verify at `now`, for other verifiers: a JSON Web Key Set (RFC 7517, RFC 8037).
    #[must_use]
    pub fn jwks(&self, now: Timestamp) -> serde_json::Value {
        let current = self.current.load();
        let mut keys: Vec<&PublicKey> = current.verifying.values().map(|(_, key)| key).collect();
        keys.retain(|key| key.until.is_none_or(|until| now < until));
        keys.sort_by(|a, b| a.kid.cmp(&b.kid));
        let keys: Vec<_> = keys.into_iter().map(|key| {
            let x = URL_SAFE_NO_PAD.encode(key.bytes);
            serde_json::json!({ "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": key.kid, "x": x })
        }).collect();
        serde_json::json!({ "keys": keys })
    }

    /// The name of the key that `token` claims to be signed with, if it looks like one of our access tokens. Verifies
    /// nothing.
    #[must_use]
    pub fn named_key(token: &str) -> Option<String> {
        header_of(token)?.kid.filter(|kid| is_kid(kid))
    }

    /// A token for this session of this user, valid for `ttl` from `now`.
    ///
    /// # Errors
    /// [`JwtError::Invalid`] if signing fails, which it can't with a 32-byte key.
    pub fn issue(
        &self,
        user: UserId,
        session: SessionId,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<String, JwtError> {
        let claims = Wire {
            iss: self.issuer.clone(),
            aud: AUDIENCE.to_owned(),
            sub: user.to_string(),
            sid: session.0,
            iat: now.unix_seconds(),
            exp: now.plus(ttl).unix_seconds(),
        };
        let current = self.current.load();
        jsonwebtoken::encode(&current.header, &claims, &current.signing).map_err(|_| JwtError::Invalid)
    }

    /// The token's claims, if it is one of ours and still valid at `now`.
    ///
    /// # Errors
    /// See [`JwtError`].
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, JwtError> {
        let kid = header_of(token).and_then(|header| header.kid).ok_or(JwtError::Invalid)?;
        let current = self.current.load();
        let Some((key, public)) = current.verifying.get(&kid) else {
            return Err(if is_kid(&kid) { JwtError::UnknownKey } else { JwtError::Invalid });
        };
        if public.until.is_some_and(|until| until <= now) {
            return Err(JwtError::Invalid);
        }
        let claims = jsonwebtoken::decode::<Wire>(token, key, &self.validation)
            .map_err(|_| JwtError::Invalid)?
            .claims
            .read()?;
        if now.unix_seconds() >= claims.expires_at.unix_seconds() {
            return Err(JwtError::Expired);
        }
        Ok(claims)
    }
}

impl Wire {
    fn read(self) -> Result<Claims, JwtError> {
        let user = self.sub.parse().map(UserId).map_err(|_| JwtError::Invalid)?;
        let instant = |seconds: i64| seconds.checked_mul(1000).map(Timestamp).ok_or(JwtError::Invalid);
        Ok(Claims {
            user,
            session: SessionId(self.sid),
            issued_at: instant(self.iat)?,
            expires_at: instant(self.exp)?,
        })
    }
}

/// The header, if it is that of an access token.
fn header_of(token: &str) -> Option<Header> {
    if token.len() > MAX_LENGTH {
        return None;
    }
    let header = jsonwebtoken::decode_header(token).ok()?;
    // The library ignores `crit`, but a token with critical extensions must be refused.
    (header.typ.as_deref() == Some(TYPE) && header.crit.is_none()).then_some(header)
}

/// Whether it looks like one of our key names: 8 or 16 hexadecimal digits.
fn is_kid(text: &str) -> bool {
    matches!(text.len(), 8 | 16) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The library's checks: algorithm, signature, issuer and audience. Not the expiry, for which it would use the system
/// time.
fn validation(issuer: &str) -> Validation {
    let mut validation = Validation::new(Algorithm::EdDSA);
    validation.validate_exp = false;
    validation.leeway = 0;
    validation.set_issuer(&[issuer]);
    validation.set_audience(&[AUDIENCE]);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    validation
}

#[cfg(test)]
mod tests {
    use hmac::{Hmac, KeyInit, Mac};
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use sha2::Sha256;

    use super::*;

    const NOW: Timestamp = Timestamp(1_750_000_000_500);

    fn keys() -> JwtKeys {
        JwtKeys::new(&KeyFile::generate(), "https://muster.example").unwrap()
    }

    fn issue(keys: &JwtKeys) -> String {
        keys.issue(UserId(7), SessionId(9), NOW, Duration::from_mins(15)).unwrap()
    }

    /// A token with these changes, signed by the active key.
    fn forged(keys: &JwtKeys, header: impl FnOnce(&mut Header), claims: impl FnOnce(&mut Value)) -> String {
        let mut forged = (keys.current.load().header.clone(), part(&issue(keys), 1));
        header(&mut forged.0);
        claims(&mut forged.1);
        jsonwebtoken::encode(&forged.0, &forged.1, &keys.current.load().signing).unwrap()
    }

    fn part(token: &str, at: usize) -> Value {
        let bytes = URL_SAFE_NO_PAD.decode(token.split('.').nth(at).unwrap()).unwrap();
        muster_json::from_slice(&bytes).unwrap()
    }

    #[test]
    fn is_valid_until_the_second_of_its_expiry() {
        let keys = keys();
        let token = issue(&keys);
        let claims = keys.verify(&token, NOW).unwrap();
        assert_eq!((claims.user, claims.session), (UserId(7), SessionId(9)));
        assert_eq!(claims.expires_at, Timestamp(1_750_000_900_000));
        assert!(keys.verify(&token, Timestamp(1_750_000_899_999)).is_ok());
        assert_eq!(keys.verify(&token, claims.expires_at), Err(JwtError::Expired));
    }

    #[test]
    fn says_what_rfc_9068_asks() {
        let keys = keys();
        let token = issue(&keys);
        let kid = keys.active();
        assert_eq!(part(&token, 0), json!({"typ": "at+jwt", "alg": "EdDSA", "kid": kid}));
        assert_eq!(
            part(&token, 1),
            json!({"iss": "https://muster.example", "aud": "muster", "sub": "7", "sid": 9,
                   "iat": 1_750_000_000, "exp": 1_750_000_900})
        );
    }

    #[test]
    fn an_older_key_verifies_and_a_strange_one_does_not() {
        let mut file = KeyFile::generate();
        let token = issue(&JwtKeys::new(&file, "https://muster.example").unwrap());
        file.rotate_signing();
        let rotated = JwtKeys::new(&file, "https://muster.example").unwrap();
        assert!(rotated.verify(&token, NOW).is_ok());
        assert_ne!(part(&issue(&rotated), 0)["kid"], part(&token, 0)["kid"]);
        assert_eq!(keys().verify(&token, NOW), Err(JwtError::UnknownKey));
        let other_issuer = JwtKeys::new(&file, "https://other.example").unwrap();
        assert_eq!(other_issuer.verify(&token, NOW), Err(JwtError::Invalid));
    }

    #[test]
    fn a_retired_key_verifies_until_it_expires() {
        let (mut file, keys) = (KeyFile::generate(), keys());
        let old = KeySet::of_file(&file).unwrap();
        keys.replace(&old);
        let token = issue(&keys);
        file.rotate_signing();
        let mut new = KeySet::of_file(&file).unwrap();
        new.verifying[0].until = Some(Timestamp(NOW.0 + 60_000));
        keys.replace(&new);
        assert!(keys.verify(&token, NOW).is_ok());
        assert_eq!(keys.jwks(NOW)["keys"].as_array().unwrap().len(), 2);
        let late = Timestamp(NOW.0 + 60_000);
        assert_eq!(keys.verify(&token, late), Err(JwtError::Invalid));
        assert_eq!(keys.jwks(late)["keys"][0]["kid"], keys.active());
        assert_eq!(keys.jwks(late)["keys"].as_array().unwrap().len(), 1);
        assert!(!keys.jwks(NOW).to_string().contains("\"d\""), "no private half");
    }

    #[test]
    fn what_is_signed_but_not_an_access_token_is_refused() {
        let keys = keys();
        let bad = [
            forged(&keys, |h| h.typ = Some("JWT".into()), |_| ()),
            forged(&keys, |h| h.kid = None, |_| ()),
            forged(&keys, |h| h.kid = Some("unknown".into()), |_| ()),
            forged(&keys, |h| h.crit = Some(vec!["b64".into()]), |_| ()),
            forged(&keys, |_| (), |c| c["aud"] = json!("another")),
            forged(&keys, |_| (), |c| c["aud"] = json!(["another"])),
            forged(&keys, |_| (), |c| c["iss"] = json!("another")),
            forged(&keys, |_| (), |c| c["sub"] = json!("root")),
            forged(&keys, |_| (), |c| c["exp"] = json!(i64::MAX)),
            forged(&keys, |_| (), |c| c["exp"] = json!("tomorrow")),
            forged(&keys, |_| (), |c| drop(c.as_object_mut().unwrap().remove("exp"))),
            forged(&keys, |_| (), |c| drop(c.as_object_mut().unwrap().remove("iss"))),
            forged(&keys, |_| (), |c| drop(c.as_object_mut().unwrap().remove("aud"))),
        ];
        for token in bad {
            assert_eq!(keys.verify(&token, NOW), Err(JwtError::Invalid), "{}", part(&token, 1));
        }
    }

    #[test]
    fn another_algorithm_is_refused() {
        let keys = keys();
        let token = issue(&keys);
        let claims = part(&token, 1);
        let kid = keys.active();
        // The classic: the public key as the secret of a MAC.
        let current = keys.current.load();
        let public = &current.verifying[&kid].1.bytes;
        let header = json!({"typ": "at+jwt", "alg": "HS256", "kid": kid}).to_string();
        let signed =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims.to_string()));
        let mut mac = Hmac::<Sha256>::new_from_slice(public).unwrap();
        mac.update(signed.as_bytes());
        let mac = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()));
        assert_eq!(keys.verify(&mac, NOW), Err(JwtError::Invalid));
        let none = json!({"typ": "at+jwt", "alg": "none", "kid": kid}).to_string();
        let unsigned = format!("{}.{}.", URL_SAFE_NO_PAD.encode(none), token.split('.').nth(1).unwrap());
        assert_eq!(keys.verify(&unsigned, NOW), Err(JwtError::Invalid));
    }

    #[test]
    fn debug_prints_no_key() {
        let shown = format!("{:?}", keys());
        assert!(shown.starts_with("JwtKeys { issuer: \"https://muster.example\", active: Some("), "{shown}");
    }

    proptest! {
        #[test]
        fn a_changed_token_is_refused(at in any::<prop::sample::Index>(), to in "[0-9A-Za-z_.-]") {
            let keys = keys();
            let token = issue(&keys);
            let mut changed = token.clone();
            let at = at.index(changed.len());
            changed.replace_range(at..=at, &to);
            prop_assert!(changed == token || matches!(keys.verify(&changed, NOW), Err(JwtError::Invalid | JwtError::UnknownKey)));
            prop_assert_eq!(keys.verify(&token[..at], NOW), Err(JwtError::Invalid));
        }

        #[test]
        fn no_text_panics(text in "\\PC*", parts in "[0-9A-Za-z_-]{0,80}\\.[0-9A-Za-z_-]{0,80}\\.[0-9A-Za-z_-]{0,90}") {
            let keys = keys();
            prop_assert_eq!(keys.verify(&text, NOW), Err(JwtError::Invalid));
            prop_assert_eq!(keys.verify(&parts, NOW), Err(JwtError::Invalid));
            let header = issue(&keys).split('.').next().unwrap().to_owned();
            let behind_header = [
                format!("{header}.{text}"),
                format!("{header}.{}", parts.split_once('.').unwrap().1),
            ];
            for token in behind_header {
                prop_assert_eq!(keys.verify(&token, NOW), Err(JwtError::Invalid));
            }
        }
    }
}
