//! The text of tokens: a prefix for the kind (which lets scanners detect leaks), 256 random bits in base62, and the
//! CRC-32 of both in base62, which detects a mistyped or truncated token without a database.
//!
//! Both sides create and check tokens: the control plane all kinds, a host its own. Storage and validity are up to
//! them.

use zeroize::Zeroizing;

/// The prefix of a server's provisioning token.
pub const PROVISIONING: &str = "mst_prov_";
/// The prefix of a host's token.
pub const HOST: &str = "mst_host_";

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// 62^43 > 2^256.
const RANDOM_LEN: usize = 43;
/// 62^6 > 2^32.
const CHECKSUM_LEN: usize = 6;

/// Creates a token from these 256 secret bits, and zeroes them.
#[must_use]
pub fn of_secret(prefix: &str, secret: &mut [u8; 32]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(prefix.len() + RANDOM_LEN + CHECKSUM_LEN));
    text.push_str(prefix);
    push_base62(&mut text, secret, RANDOM_LEN);
    push_checksum(&mut text);
    text
}

/// Whether the text is a well-formed token of this kind. It may still be unknown.
#[must_use]
pub fn is_well_formed(prefix: &str, text: &str) -> bool {
    let Some(body) = text.strip_prefix(prefix) else { return false };
    if body.len() != RANDOM_LEN + CHECKSUM_LEN || !body.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return false;
    }
    let mut expected = text[..text.len() - CHECKSUM_LEN].to_owned();
    push_checksum(&mut expected);
    expected == text
}

fn push_checksum(text: &mut String) {
    let mut checksum = crc32fast::hash(text.as_bytes()).to_be_bytes();
    push_base62(text, &mut checksum, CHECKSUM_LEN);
}

/// Appends a big-endian number as exactly `width` digits with leading zeros; leaves zero in `number`.
fn push_base62(out: &mut String, number: &mut [u8], width: usize) {
    let mut digits = Zeroizing::new(vec![0_u8; width]);
    for digit in digits.iter_mut().rev() {
        let remainder = number.iter_mut().fold(0_u32, |remainder, byte| {
            let value = remainder << 8 | u32::from(*byte);
            *byte = (value / 62) as u8;
            value % 62
        });
        *digit = ALPHABET[remainder as usize];
    }
    out.extend(digits.iter().map(|&digit| char::from(digit)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_fixed_width() {
        let written = |mut number: Vec<u8>, width| {
            let mut out = String::new();
            push_base62(&mut out, &mut number, width);
            assert!(number.iter().all(|&byte| byte == 0), "{width} digits are too few");
            out
        };
        assert_eq!(written(vec![0; 32], 43), "0".repeat(43));
        assert_eq!(written(vec![0xff; 4], 6), "4gfFC3");
        assert_eq!(written(vec![0xff; 32], 43).len(), 43);
        assert_eq!(written(vec![0, 0, 0, 62], 6), "000010");
    }

    #[test]
    fn a_token_is_known_by_its_kind_and_a_typo_by_its_checksum() {
        let token = of_secret(HOST, &mut [7; 32]);
        let text = token.as_str();
        assert_eq!(text.len(), HOST.len() + 49);
        assert!(is_well_formed(HOST, text));
        assert!(!is_well_formed(PROVISIONING, text));
        for at in HOST.len()..text.len() {
            let other = if &text[at..=at] == "x" { "y" } else { "x" };
            let mut typo = text.to_owned();
            typo.replace_range(at..=at, other);
            assert!(!is_well_formed(HOST, &typo), "{typo}");
        }
        assert!(!is_well_formed(HOST, &text[..text.len() - 1]));
        assert!(!is_well_formed(HOST, "mst_host_äöü"));
    }
}
