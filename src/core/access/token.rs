//! Opaque tokens, which identify a service, a host or a session's refresh.
//!
//! `mst_svc_` + 43 characters + 6 characters: a prefix for the kind, 256 random bits, and a checksum
//! ([`muster_protocol::token`]: hosts make theirs themselves).
//! The text is shown once; the database has only its SHA-256. A slow hash would add nothing, since no one can guess 256
//! bits.

use muster_protocol::token;
use secrecy::SecretString;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::core::sealing::{SecretKey, random_bytes};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// An organization's service token, for integrations.
    Service,
    /// Lets a new host connect for the first time.
    Provisioning,
    /// A connected host.
    Host,
    /// Renews a person's session.
    Refresh,
    /// A person's session in a browser: the value of the cookie.
    Session,
    /// A link sent by mail.
    Link,
    /// A sign-in that is waiting for its second factor.
    Challenge,
    /// A sign-in through a provider or an operator's link, waiting to be exchanged for a session; or the first start.
    Code,
}

impl TokenKind {
    pub const ALL: [Self; 8] = [
        Self::Service,
        Self::Provisioning,
        Self::Host,
        Self::Refresh,
        Self::Session,
        Self::Link,
        Self::Challenge,
        Self::Code,
    ];

    /// The prefix of tokens of this kind.
    #[must_use]
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Service => "mst_svc_",
            Self::Provisioning => token::PROVISIONING,
            Self::Host => token::HOST,
            Self::Refresh => "mst_ref_",
            Self::Session => "mst_ses_",
            Self::Link => "mst_link_",
            Self::Challenge => "mst_chl_",
            Self::Code => "mst_code_",
        }
    }
}

/// The SHA-256 of a token, for storage and lookups. It reveals nothing about the token.
#[derive(Clone, Copy, Eq)]
pub struct TokenHash(pub [u8; 32]);

impl TokenHash {
    /// The hash of any text, whether or not it is a token.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// The hash as stored; `None` unless it is 32 bytes.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq for TokenHash {
    /// In constant time.
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl std::hash::Hash for TokenHash {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl std::fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TokenHash({:02x}{:02x}…)", self.0[0], self.0[1])
    }
}

/// A well-formed token that a client presented; it is not yet known to exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    /// The key for looking it up.
    pub hash: TokenHash,
}

impl Token {
    /// A new token: its text, to be shown once, and the hash to store.
    #[must_use]
    pub fn generate(kind: TokenKind) -> (SecretString, TokenHash) {
        Self::of_secret(kind, Zeroizing::new(random_bytes()))
    }

    /// The token made of these 256 secret bits.
    #[must_use]
    pub fn of_secret(kind: TokenKind, mut secret: SecretKey) -> (SecretString, TokenHash) {
        let text = token::of_secret(kind.prefix(), &mut secret);
        (SecretString::from(text.as_str()), TokenHash::of(&text))
    }

    /// Parses a token of any kind; `None` if it is malformed or its checksum is wrong.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let kind = TokenKind::ALL.into_iter().find(|kind| text.starts_with(kind.prefix()))?;
        token::is_well_formed(kind.prefix(), text).then(|| Self { kind, hash: TokenHash::of(text) })
    }

    /// Parses a token of this kind only.
    #[must_use]
    pub fn parse_kind(kind: TokenKind, text: &str) -> Option<Self> {
        Self::parse(text).filter(|token| token.kind == kind)
    }

    /// The last four characters, by which people recognize a token in a list. They are part of the checksum.
    #[must_use]
    pub fn hint(text: &str) -> &str {
        text.char_indices().rev().nth(3).map_or(text, |(at, _)| &text[at..])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn every_kind_is_read_back_as_itself_alone() {
        for kind in TokenKind::ALL {
            let (text, hash) = Token::generate(kind);
            let text = text.expose_secret();
            assert_eq!(text.len(), kind.prefix().len() + 49);
            assert_eq!(Token::parse(text), Some(Token { kind, hash }));
            for other in TokenKind::ALL {
                assert_eq!(Token::parse_kind(other, text).is_some(), other == kind);
            }
            assert_eq!(Token::hint(text), &text[text.len() - 4..]);
        }
    }

    #[test]
    fn hints_of_odd_texts_do_not_panic() {
        assert_eq!((Token::hint(""), Token::hint("äö"), Token::hint("xäöüß")), ("", "äö", "äöüß"));
    }

    proptest! {
        #[test]
        fn a_typo_is_told_apart(at in any::<prop::sample::Index>(), to in "[0-9A-Za-z_]") {
            let (text, _) = Token::generate(TokenKind::Service);
            let mut typo = text.expose_secret().to_owned();
            let at = at.index(typo.len());
            typo.replace_range(at..=at, &to);
            prop_assert!(typo == text.expose_secret() || Token::parse(&typo).is_none());
            prop_assert!(Token::parse(&text.expose_secret()[..at]).is_none());
        }

        #[test]
        fn no_text_panics(text in "\\PC*", prefix in 0..TokenKind::ALL.len()) {
            prop_assert!(Token::parse(&text).is_none());
            let prefixed = format!("{}{text}", TokenKind::ALL[prefix].prefix());
            prop_assert!(Token::parse(&prefixed).is_none());
            prop_assert!(text.ends_with(Token::hint(&text)));
        }
    }
}
