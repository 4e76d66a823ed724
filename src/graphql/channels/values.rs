//! Inputs and answers of operations on channels.

use async_graphql::{InputObject, SimpleObject};

use crate::{
    base::{secret::shown_once, time::Timestamp},
    resolvers::bounds::{bounds, name},
};

/// An origin that may write to a channel.
#[derive(InputObject)]
pub struct AddWhitelistOriginInput {
    /// The sender, in the transport's own notation.
    #[graphql(directive = bounds::apply(name(255)))]
    pub origin_id: String,
}

/// An authorization that has begun.
#[derive(SimpleObject)]
pub struct ChannelAuthorization {
    /// The vendor's page, for the browser of this session. It leads back to the panel's page `/oauth/channel`.
    #[graphql(directive = shown_once::apply())]
    pub url: String,
    /// When it stops working.
    pub expires_at: Timestamp,
}

/// A folder of a drive.
#[derive(SimpleObject)]
pub struct ChannelFolder {
    /// Identifies the folder, for `drive.folderId`.
    pub id: String,
    /// The name.
    pub name: String,
}

/// The vendor's answer to a test message.
#[derive(SimpleObject)]
pub struct ChannelTest {
    /// Why the vendor did not take it, or may not have. Null: it did.
    pub error: Option<String>,
}
