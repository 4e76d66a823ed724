//! Access tokens in place of passwords: SASL XOAUTH2, as Google and Microsoft want it.
//! <https://developers.google.com/workspace/gmail/imap/xoauth2-protocol>

/// The access token, if a secret is one: `Bearer <token>`.
pub fn token(secret: &str) -> Option<&str> {
    secret.strip_prefix("Bearer ").map(str::trim)
}

/// What shows a mail server the token, before base64.
pub fn shown(user: &str, token: &str) -> String {
    format!("user={user}\x01auth=Bearer {token}\x01\x01")
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
        let shown = shown("someuser@example.com", "ya29.vF9dft4qmTc2Nvb3RlckBhdHRhdmlzdGEuY29tCg");
        let expected =
            "user=someuser@example.com\x01auth=Bearer ya29.vF9dft4qmTc2Nvb3RlckBhdHRhdmlzdGEuY29tCg\x01\x01";
        assert_eq!(shown, expected);
    }
}
