//! Request signatures: Standard Webhooks, `sha256=<hex>` over the body, and Slack's.
//!
//! All are HMAC-SHA256 over the raw bytes, compared in constant time. Standard Webhooks and Slack also sign a
//! timestamp, accepted within five minutes; `sha256=` has none, so it does not protect against replay.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
    prelude::BASE64_STANDARD,
};
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::{bounds, contract::Refusal};

/// Standard Webhooks libraries accept secrets with and without padding.
const SECRET_ENCODING: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The bytes of a secret.
#[derive(Clone)]
pub struct Key(SecretSlice<u8>);

/// An empty secret, or `whsec_` followed by invalid base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("A secret that starts with whsec_ must continue in base64")]
pub struct KeyError;

impl Key {
    /// `whsec_…` is decoded from base64; any other secret is used as is.
    pub fn new(secret: &SecretString) -> Result<Self, KeyError> {
        let text = secret.expose_secret();
        let bytes = match text.strip_prefix("whsec_") {
            Some(encoded) => SECRET_ENCODING.decode(encoded).map_err(|_| KeyError)?,
            None => text.as_bytes().to_vec(),
        };
        if bytes.is_empty() {
            return Err(KeyError);
        }
        Ok(Self(bytes.into()))
    }

    /// The keys of these secrets.
    pub fn all(secrets: &[SecretString]) -> Result<Vec<Self>, KeyError> {
        secrets.iter().map(Self::new).collect()
    }

    /// Slack's `v0=<hex>`, for servers that play Slack.
    pub fn sign_slack(&self, timestamp: &str, body: &[u8]) -> String {
        let mac = self.mac(&[b"v0:", timestamp.as_bytes(), b":", body]);
        format!("v0={}", hex::encode(mac.finalize().into_bytes()))
    }

    /// A ten-byte token for a text that only holders of the secret can produce.
    pub(crate) fn token(&self, text: &str) -> String {
        hex::encode(&self.mac(&[text.as_bytes()]).finalize().into_bytes()[..10])
    }

    /// Whether a text has the form of such a token.
    pub(crate) fn is_token(text: &str) -> bool {
        text.len() == 20 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    }

    fn mac(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = match Hmac::<Sha256>::new_from_slice(self.0.expose_secret()) {
            Ok(mac) => mac,
            Err(error) => unreachable!("HMAC takes keys of any length: {error}"),
        };
        for part in parts {
            mac.update(part);
        }
        mac
    }

    fn matches(&self, parts: &[&[u8]], signature: &[u8]) -> bool {
        self.mac(parts).verify_slice(signature).is_ok()
    }
}

/// The signed values beside the body.
#[derive(Clone, Copy, Debug)]
pub struct SignedFields<'a> {
    /// `webhook-id`: the same for every attempt.
    pub id: &'a str,
    /// `webhook-timestamp`: this attempt, in seconds.
    pub timestamp: &'a str,
}

/// `webhook-signature` for a body: one signature per key.
pub fn sign(keys: &[Key], signed: SignedFields<'_>, body: &[u8]) -> String {
    let one = |key: &Key| {
        let bytes = key.mac(&signed.content(body)).finalize().into_bytes();
        format!("v1,{}", BASE64_STANDARD.encode(bytes))
    };
    keys.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Accepts a body if any signature in `webhook-signature` matches any key, and the timestamp is current.
pub fn verify(
    keys: &[Key],
    signed: SignedFields<'_>,
    signatures: &str,
    body: &[u8],
    now: Timestamp,
) -> Result<(), Refusal> {
    check_time(signed.timestamp, now)?;
    let given = signatures.split(' ').filter_map(|one| one.strip_prefix("v1,"));
    let given = given.take(bounds::LIST).filter_map(|text| BASE64_STANDARD.decode(text).ok());
    let parts = signed.content(body);
    match_any(given.flat_map(|bytes| keys.iter().map(move |key| (key, bytes.clone()))), &parts)
}

impl<'a> SignedFields<'a> {
    fn content(self, body: &'a [u8]) -> [&'a [u8]; 5] {
        [self.id.as_bytes(), b".", self.timestamp.as_bytes(), b".", body]
    }
}

/// Accepts a secret that was sent as it is.
pub fn verify_secret(secret: &SecretString, given: &str) -> Result<(), Refusal> {
    let matches = secret.expose_secret().as_bytes().ct_eq(given.as_bytes());
    if bool::from(matches) { Ok(()) } else { Err(Refusal::BadSignature) }
}

pub fn sign_body(key: &Key, body: &[u8]) -> String {
    format!("sha256={}", hex::encode(key.mac(&[body]).finalize().into_bytes()))
}

/// Accepts a body if `sha256=<hex>` matches any key.
pub fn verify_body(keys: &[Key], signature: &str, body: &[u8]) -> Result<(), Refusal> {
    let text = signature.trim().strip_prefix("sha256=").ok_or(Refusal::BadSignature)?;
    let bytes = hex::decode(text).map_err(|_| Refusal::BadSignature)?;
    match_any(keys.iter().map(|key| (key, bytes.clone())), &[body])
}

/// Accepts a body if Slack's `v0=<hex>` matches, and the timestamp is current.
pub fn verify_slack(
    key: &Key,
    timestamp: &str,
    signature: &str,
    body: &[u8],
    now: Timestamp,
) -> Result<(), Refusal> {
    check_time(timestamp, now)?;
    let text = signature.strip_prefix("v0=").ok_or(Refusal::BadSignature)?;
    let bytes = hex::decode(text).map_err(|_| Refusal::BadSignature)?;
    match_any([(key, bytes)].into_iter(), &[b"v0:", timestamp.as_bytes(), b":", body])
}

fn match_any<'a>(pairs: impl Iterator<Item = (&'a Key, Vec<u8>)>, parts: &[&[u8]]) -> Result<(), Refusal> {
    // Tries all pairs, so that the timing does not reveal the matching one.
    let matched = pairs.filter(|(key, bytes)| key.matches(parts, bytes)).count();
    if matched > 0 { Ok(()) } else { Err(Refusal::BadSignature) }
}

fn check_time(timestamp: &str, now: Timestamp) -> Result<(), Refusal> {
    let signed: i64 = timestamp.parse().map_err(|_| Refusal::BadSignature)?;
    if signed.abs_diff(now.as_second()) <= 5 * 60 { Ok(()) } else { Err(Refusal::Stale) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(secret: &str) -> Key {
        Key::new(&secret.into()).unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// <https://github.com/standard-webhooks/standard-webhooks>, the specification's example.
    #[test]
    fn the_published_vector_of_standard_webhooks() {
        let keys = [key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")];
        let signed = SignedFields { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: "1614265330" };
        let body = br#"{"test": 2432232314}"#;
        let signature = sign(&keys, signed, body);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(verify(&keys, signed, &signature, body, at(1_614_265_330)), Ok(()));
        assert_eq!(verify(&keys, signed, &signature, b"{}", at(1_614_265_330)), Err(Refusal::BadSignature));
    }

    #[test]
    fn five_minutes_both_ways() {
        let keys = [key("secret")];
        let signed = SignedFields { id: "1", timestamp: "1000000" };
        let signature = sign(&keys, signed, b"x");
        for (now, expected) in [
            (1_000_300, Ok(())),
            (999_700, Ok(())),
            (1_000_301, Err(Refusal::Stale)),
            (999_699, Err(Refusal::Stale)),
        ] {
            assert_eq!(verify(&keys, signed, &signature, b"x", at(now)), expected, "{now}");
        }
    }

    #[test]
    fn while_a_secret_is_rotated_both_count() {
        let (old, new) = (key("old"), key("new"));
        let signed = SignedFields { id: "1", timestamp: "1000000" };
        let both = sign(&[new.clone(), old.clone()], signed, b"x");
        assert_eq!(both.split(' ').count(), 2);
        let now = at(1_000_000);
        assert_eq!(verify(std::slice::from_ref(&old), signed, &both, b"x", now), Ok(()));
        assert_eq!(verify(std::slice::from_ref(&new), signed, &both, b"x", now), Ok(()));
        let by_old = sign(&[old], signed, b"x");
        assert_eq!(verify(&[new], signed, &by_old, b"x", now), Err(Refusal::BadSignature));
    }

    #[test]
    fn only_whsec_is_decoded() {
        // Valid base64, but used as is.
        let signed = SignedFields { id: "1", timestamp: "1" };
        assert_ne!(sign(&[key("password")], signed, b""), sign(&[key("whsec_password")], signed, b""));
        for bad in ["whsec_pass word", "whsec_", ""] {
            assert!(matches!(Key::new(&bad.into()), Err(KeyError)), "{bad}");
        }
        let of = |secret| sign(&[key(secret)], signed, b"");
        assert_eq!(of("whsec_c2VjcmV0cw=="), of("whsec_c2VjcmV0cw"));
        assert_eq!(of("whsec_c2VjcmV0cw"), of("secrets"));
    }

    /// <https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries>
    #[test]
    fn the_published_vector_of_github() {
        let keys = [key("It's a Secret to Everybody")];
        let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert_eq!(sign_body(&keys[0], b"Hello, World!"), signature);
        assert_eq!(verify_body(&keys, signature, b"Hello, World!"), Ok(()));
        assert_eq!(verify_body(&keys, signature, b"Hello, World"), Err(Refusal::BadSignature));
        assert_eq!(verify_body(&keys, "sha1=757107ea", b"Hello, World!"), Err(Refusal::BadSignature));
    }

    /// <https://docs.slack.dev/authentication/verifying-requests-from-slack>
    #[test]
    fn the_published_vector_of_slack() {
        let key = key("8f742231b10e8888abcd99yyyzzz85a5");
        let body = b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V\
            &channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=\
            &response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN\
            &trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
        let signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
        let now = at(1_531_420_618);
        assert_eq!(verify_slack(&key, "1531420618", signature, body, now), Ok(()));
        assert_eq!(verify_slack(&key, "1531420618", signature, b"", now), Err(Refusal::BadSignature));
        assert_eq!(verify_slack(&key, "1531420618", signature, body, at(1_531_421_000)), Err(Refusal::Stale));
    }
}
