//! SASL XOAUTH2: access tokens in place of passwords, for Google and Microsoft.
//! <https://developers.google.com/workspace/gmail/imap/xoauth2-protocol>

/// The access token in a secret of the form `Bearer <token>`.
pub fn parse_token(secret: &str) -> Option<&str> {
    secret.strip_prefix("Bearer ").map(str::trim)
}

/// The initial client response, before base64.
pub fn client_response(user: &str, token: &str) -> String {
    format!("user={user}\x01auth=Bearer {token}\x01\x01")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bearer_is_a_token() {
        assert_eq!(parse_token("Bearer ya29.a0"), Some("ya29.a0"));
        assert_eq!((parse_token("bearer of news"), parse_token("secret")), (None, None));
    }

    /// The example in the protocol's documentation, before base64.
    #[test]
    fn the_published_vector() {
        let shown = client_response("someuser@example.com", "ya29.vF9dft4qmTc2Nvb3RlckBhdHRhdmlzdGEuY29tCg");
        let expected =
            "user=someuser@example.com\x01auth=Bearer ya29.vF9dft4qmTc2Nvb3RlckBhdHRhdmlzdGEuY29tCg\x01\x01";
        assert_eq!(shown, expected);
    }
}
