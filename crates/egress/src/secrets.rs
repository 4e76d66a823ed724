//! Removes secrets from text for others, in every encoding.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD};
use muster_protocol::Secret;
use parking_lot::Mutex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::bounds;

const HIDDEN: &str = "•••";
/// Unescaped characters of a path segment.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Encoded forms of a secret: plain, in JSON, in an address, in base64 of a surrounding text. Empty for a very short
/// secret.
pub fn encoded_forms(secret: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    // Shorter ones would mask half of all texts.
    if secret.len() < 4 {
        return all;
    }
    let quoted = Value::from(secret).to_string();
    let json = quoted[1..quoted.len() - 1].to_owned();
    all.extend([secret.to_owned(), json.replace('/', "\\/"), json]);
    for kept in [NON_ALPHANUMERIC, PART] {
        let encoded = utf8_percent_encode(secret, kept).to_string();
        all.extend([lower_digits(&encoded), encoded.replace("%20", "+"), encoded]);
    }
    for before in 0..3 {
        let encoded = within_base64(secret, before);
        if encoded.len() >= 7 {
            all.extend([encoded.replace('+', "-").replace('/', "_"), encoded]);
        }
    }
    all
}

/// The base64 characters determined by a secret alone, with this many bytes before it in its group of three.
fn within_base64(secret: &str, before: usize) -> String {
    let bytes = [&vec![0; before], secret.as_bytes()].concat();
    let encoded = BASE64_STANDARD_NO_PAD.encode(&bytes);
    // A character encodes six bits, some of which may belong to neighbours.
    let (from, to) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
    encoded.get(from..to).unwrap_or_default().to_owned()
}

/// `%2F` as `%2f`.
fn lower_digits(encoded: &str) -> String {
    let mut digits = 0;
    let lower = |char: char| match (char, digits) {
        ('%', _) => {
            digits = 2;
            char
        }
        (char, 0) => char,
        (char, _) => {
            digits -= 1;
            char.to_ascii_lowercase()
        }
    };
    encoded.chars().map(lower).collect()
}

/// The secrets of a launch, including replaced ones: a program may still print them.
#[derive(Debug, Default)]
pub struct Secrets(Mutex<KnownSecrets>);

#[derive(Debug, Default)]
struct KnownSecrets {
    secrets: VecDeque<Secret>,
    /// Their encoded forms, longest first: a form that is part of another would leave the rest of it.
    forms: Arc<[Secret]>,
}

impl Secrets {
    pub fn add(&self, secrets: &[Secret]) {
        let mut known = self.0.lock();
        let mut is_changed = false;
        for secret in secrets {
            if !known.secrets.contains(secret) {
                known.secrets.push_back(secret.clone());
                is_changed = true;
            }
        }
        let many = known.secrets.len().saturating_sub(bounds::LIST.max(secrets.len()));
        known.secrets.drain(..many);
        if is_changed || many > 0 {
            known.forms = all_forms(&known.secrets);
        }
    }

    /// Masks all secrets in a text.
    pub fn hide(&self, text: &str) -> String {
        let forms = Arc::clone(&self.0.lock().forms);
        forms.iter().fold(text.to_owned(), |text, form| text.replace(form.expose(), HIDDEN))
    }
}

/// The encoded forms of secrets and their words, longest first.
fn all_forms(secrets: &VecDeque<Secret>) -> Arc<[Secret]> {
    let whole = secrets.iter().map(|secret| secret.expose().trim());
    let words = secrets.iter().flat_map(|secret| secret.expose().split_whitespace());
    // Shorter words of a file occur in many texts.
    let words = words.filter(|word| word.len() >= 6);
    let all: BTreeSet<String> = whole.chain(words).flat_map(encoded_forms).collect();
    let mut all: Vec<String> = all.into_iter().collect();
    all.sort_by_key(|form| std::cmp::Reverse(form.len()));
    all.into_iter().map(Secret::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-live/one two\"+three";

    fn secrets(all: &[&str]) -> Vec<Secret> {
        all.iter().map(|text| Secret::from((*text).to_owned())).collect()
    }

    #[test]
    fn a_secret_is_hidden_however_it_is_written() {
        let known = Secrets::default();
        known.add(&secrets(&[KEY]));
        for text in [
            KEY.to_owned(),
            Value::from(KEY).to_string(),
            Value::from(KEY).to_string().replace('/', "\\/"),
            "sk%2Dlive%2Fone%20two%22%2Bthree".to_owned(),
            "sk-live%2fone%20two%22%2bthree".to_owned(),
            "sk-live%2Fone+two%22%2Bthree".to_owned(),
        ] {
            assert_eq!(known.hide(&text).trim_matches('"'), "•••", "{text}");
        }
        for before in ["", "u:", "us:", "use:", "Basic "] {
            for after in ["", "x", "xy"] {
                let encoded = BASE64_STANDARD_NO_PAD.encode(format!("{before}{KEY}{after}"));
                for text in [encoded.clone(), encoded.replace('+', "-").replace('/', "_")] {
                    let hidden = known.hide(&text);
                    assert!(hidden.contains("•••") && hidden.len() <= 12 + "•••".len(), "{text}: {hidden}");
                }
            }
        }
    }

    #[test]
    fn a_secret_that_was_replaced_stays_hidden() {
        let known = Secrets::default();
        known.add(&secrets(&["older-key"]));
        known.add(&secrets(&["newer-key", "-----BEGIN KEY-----\nabcdefgh\nij\n"]));
        assert_eq!(known.hide("older-key, newer-key, abcdefgh ij"), "•••, •••, ••• ij");
        let forms = Arc::clone(&known.0.lock().forms);
        known.add(&secrets(&["newer-key"]));
        assert!(Arc::ptr_eq(&forms, &known.0.lock().forms), "known secrets are encoded once");
        let many: Vec<String> = (0..2 * bounds::LIST).map(|n| format!("secret-{n}")).collect();
        let many: Vec<Secret> = many.into_iter().map(Secret::from).collect();
        many.chunks(10).for_each(|some| known.add(some));
        assert_eq!(known.0.lock().secrets.len(), bounds::LIST);
        assert_eq!(known.hide("older-key"), "older-key", "long ago");
    }

    #[test]
    fn a_short_secret_is_a_word_like_others() {
        let known = Secrets::default();
        known.add(&secrets(&["", " ", "a", "no", "abc", "four"]));
        assert_eq!(known.hide("an abc of no use, but four"), "an abc of no use, but •••");
        assert!(encoded_forms("abc").is_empty() && !encoded_forms("abcd").is_empty());
    }
}
