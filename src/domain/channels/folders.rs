//! The folders of a drive, for a person who chooses one.

use std::time::Duration;

use muster_channels::{Failure, Folder};
use tokio::time::timeout;

use super::{authorization::find, open::open};
use crate::{
    base::{ids::ChannelId, problem::Result},
    core::access::Scope,
};

/// Lists the folders in a folder, as the channel sees them. `None`: the topmost ones. The inner error says why they can't be
/// listed.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn drive_folders(
    scope: &Scope,
    id: ChannelId,
    parent: Option<&str>,
) -> Result<std::result::Result<Vec<Folder>, String>> {
    let channel = find(scope, id).await?;
    let Some(transport) = open(&scope.core, &channel)? else {
        return Ok(Err("The channel has no account yet.".to_owned()));
    };
    // A person is waiting for the answer.
    let listed = timeout(Duration::from_secs(10), transport.folders(parent)).await;
    let listed = listed.unwrap_or_else(|_| Err(Failure::NotSent("There was no answer in time.".into())));
    Ok(listed.map_err(|failure| failure.to_string()))
}
