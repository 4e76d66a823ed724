//! Names of the agent's files at WebDAV, which knows neither authors nor ids of clients. A name holds the delivery's id,
//! so that each attempt writes the same file, and a code that only Muster can make, so that it is recognized.

use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::quoting::single_line;

/// The name of a file that a delivery writes: `report-0123456789abcdef.pdf`.
pub fn own_name(key: &SecretString, id: &str, name: &str) -> String {
    let name = single_line(name).replace(['/', '\\'], "-");
    let name = name.trim_start_matches(['.', '~']);
    let (stem, end) = split(name);
    // Most file systems take 255 bytes.
    let stem = &stem[..stem.floor_char_boundary(200)];
    let stem = if stem.is_empty() { "file" } else { stem };
    let nonce = hex::encode(&Sha256::digest(id)[..4]);
    format!("{stem}-{nonce}{}{end}", mark(key, stem, end, &nonce))
}

/// Whether this is such a name.
pub fn is_own(key: &SecretString, name: &str) -> bool {
    let (stem, end) = split(name);
    let Some((stem, code)) = stem.rsplit_once('-') else { return false };
    code.len() == 16
        && code.is_ascii()
        && code.split_at_checked(8).is_some_and(|(nonce, given)| given == mark(key, stem, end, nonce))
}

/// The id of a file that a delivery writes, where files have ids of ours. Another installation may have a delivery with
/// the same id.
pub fn own_id(key: &SecretString, id: &str) -> String {
    format!("{id}-{}", mark(key, "", "", id))
}

/// The name without its ending, and the ending with its dot.
fn split(name: &str) -> (&str, &str) {
    let dot = name.rfind('.').filter(|dot| *dot > 0 && name.len() - dot <= 10);
    name.split_at(dot.unwrap_or(name.len()))
}

fn mark(key: &SecretString, stem: &str, end: &str, nonce: &str) -> String {
    let Ok(mac) = Hmac::<Sha256>::new_from_slice(key.expose_secret().as_bytes()) else {
        unreachable!("keys of any length are keys of HMAC")
    };
    let mac = mac.chain_update(nonce).chain_update(stem).chain_update(end);
    hex::encode(&mac.finalize().into_bytes()[..4])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_muster_makes_such_names() {
        let (key, other) = (SecretString::from("a"), SecretString::from("b"));
        let name = own_name(&key, "A-1_7", "../Bericht ö.pdf");
        assert!(name.starts_with("-Bericht ö-") && split(&name).1 == ".pdf", "{name}");
        assert_eq!(name, own_name(&key, "A-1_7", "../Bericht ö.pdf"));
        assert_ne!(name, own_name(&key, "A-1_8", "../Bericht ö.pdf"));
        assert!(is_own(&key, &name) && !is_own(&other, &name));
        for theirs in [
            name.replace("Bericht", "Berichte"),
            name.replace(".pdf", ".txt"),
            "a-0123456789abcdef.css".into(),
        ] {
            assert!(!is_own(&key, &theirs), "{theirs}");
        }
        for odd in ["", ".hidden", "ä".repeat(400).as_str(), "no ending", "a.b.c"] {
            let name = own_name(&key, "A-1_7", odd);
            assert!(is_own(&key, &name) && name.len() <= 255 && !name.starts_with('.'), "{name}");
        }
    }
}
