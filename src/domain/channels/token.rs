//! One channel per bot: two channels with the same token would take each other's messages.
//!
//! Each channel keeps a digest of its token, under a key from the key file. It finds the same token in any organization
//! without opening a secret.

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

/// Refuses a token that another channel has. Returns the digest to store. `None`: the token is unchanged.
pub(super) async fn check_token(
    tx: &Tx,
    channel: ChannelId,
    transport: Transport,
    secrets: &Secrets,
) -> Result<std::result::Result<Option<Vec<u8>>, Violation>> {
    let MaybeUndefined::Value(token) = &secrets.bot_token else { return Ok(Ok(None)) };
    let digests = keys::bot_digests(&tx.scope.core.sealing.current(), transport.as_str(), &token.0);
    if !has_another(tx, channel, &digests).await? {
        return Ok(Ok(digests.into_iter().next()));
    }
    let detail = "Another channel has this token. Create a separate bot for each channel.";
    Ok(Err(Violation::at("/bot_token", "NOT_ALLOWED", detail)))
}
