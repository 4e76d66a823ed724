//! Digests of bots' tokens, by which the same bot is found in any organization without any token being opened. They are
//! derived from the sealing keys, so each moves to the active key together with its token.

use secrecy::{ExposeSecret, SecretString};

use crate::core::sealing::KeyRing;

/// The digests of a token under each key of the ring, the active key's first.
#[must_use]
pub fn bot_digests(ring: &KeyRing, transport: &str, token: &SecretString) -> Vec<Vec<u8>> {
    // Slack's second secret may differ where the app is the same.
    let bot = token.expose_secret().split_whitespace().next().unwrap_or_default();
    let material = [transport.as_bytes(), bot.as_bytes()];
    ring.derive("bot token", &material).map(|key| key.to_vec()).collect()
}
