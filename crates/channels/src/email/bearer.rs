//! Access tokens in place of passwords: SASL XOAUTH2, as Google and Microsoft want it.
//! <https://developers.google.com/workspace/gmail/imap/xoauth2-protocol>

use async_imap::Authenticator;

/// The access token, if a secret is one: `Bearer <token>`.
pub fn token(secret: &str) -> Option<&str> {
    secret.strip_prefix("Bearer ").map(str::trim)
}

/// Who signs in to a mailbox with a token.
pub struct Bearer<'a> {
    user: &'a str,
    /// `None` once it was shown.
    token: Option<&'a str>,
}

impl<'a> Bearer<'a> {
    pub fn new(user: &'a str, token: &'a str) -> Self {
        Self { user, token: Some(token) }
    }
}

impl Authenticator for Bearer<'_> {
    type Response = String;

    /// A server that refuses the token asks again, with its reason, and waits for an empty answer before it says no.
    fn process(&mut self, _: &[u8]) -> String {
        let shown =
            self.token.take().map(|token| format!("user={}\x01auth=Bearer {token}\x01\x01", self.user));
        shown.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bearer_is_a_token() {
        assert_eq!(token("Bearer ya29.a0"), Some("ya29.a0"));
        assert_eq!((token("bearer of news"), token("secret")), (None, None));
    }

    /// The example of the protocol's page, as it is before base64.
    #[test]
    fn the_published_vector() {
        let mut bearer = Bearer::new("someuser@example.com", "ya29.vF9dft4qmTc2Nvb3RlckBhdHRhdmlzdGEuY29tCg");
        let expected =
            "user=someuser@example.com\x01auth=Bearer ya29.vF9dft4qmTc2Nvb3RlckBhdHRhdmlzdGEuY29tCg\x01\x01";
        assert_eq!((bearer.process(b""), bearer.process(b"{}")), (expected.to_owned(), String::new()));
    }
}
