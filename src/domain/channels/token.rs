//! One bot, one channel: two that ask the vendor with the same token would take each other's messages.
//!
//! A digest of each token is kept, under a key of the key file, so that the same token is found in any organization without
//! any of them being opened.

use async_graphql::MaybeUndefined;

use super::{merge::Secrets, queries::has_another};
use crate::{
    base::{
        enums::Transport,
        ids::ChannelId,
        problem::{Result, Violation},
    },
    core::{keys, store::Tx},
};

/// Refuses a token that another channel has. Returns the digest to be kept. `None`: the token stays.
pub(super) async fn check(
    tx: &Tx,
    channel: ChannelId,
    transport: Transport,
    secrets: &Secrets,
) -> Result<std::result::Result<Option<Vec<u8>>, Violation>> {
    let MaybeUndefined::Value(token) = &secrets.bot_token else { return Ok(Ok(None)) };
    let digests = keys::bot_digests(&tx.scope.core.keys.current(), transport.as_str(), &token.0);
    if !has_another(tx, channel, &digests).await? {
        return Ok(Ok(digests.into_iter().next()));
    }
    let detail = "Another channel has this token. Make a bot of its own for each channel.";
    Ok(Err(Violation::at("/bot_token", "NOT_ALLOWED", detail)))
}
