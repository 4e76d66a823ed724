//! Messages as they came: mails are kept for a while beside what was read of them, sealed like secrets, so that a later version can
//! read them again (`reparsing.rs`). They go with their message, or when their time is over (`email.keep_source`).

use bytes::Bytes;
use secrecy::ExposeSecret;
use tokio::task::spawn_blocking;

use super::queries;
use crate::{
    base::{
        ids::{MessageId, OrgId},
        problem::{Problem, Result},
    },
    core::{
        access::Scope,
        sealing::{SealContext, SealError},
        store::Tx,
    },
    domain::orgs,
};

/// A message as it came, and how much of its text was read of that.
pub struct Source {
    /// The message as it came.
    pub bytes: Bytes,
    /// The length of the text that was read. The rest was added: the names of files that were not kept.
    pub read: usize,
}

impl Source {
    /// The bytes, and what was added to the text.
    pub(super) fn with_notes_of(&self, text: &str) -> (Bytes, String) {
        // A database keeps no NUL.
        let notes = text.get(self.read..).unwrap_or_default().replace('\0', "\u{fffd}");
        (self.bytes.clone(), notes)
    }
}

/// Where a source is sealed.
fn seal_context(org: OrgId, message: MessageId) -> SealContext<'static> {
    SealContext::new(org, "message_sources", message.0, "source")
}

/// Keeps a message as it came, if the plan has room for more than messages.
pub(super) async fn store_source(tx: &Tx, message: MessageId, source: Bytes, notes: &str) -> Result<()> {
    let (ring, place) = (tx.scope.core.keys.current(), seal_context(tx.scope.org, message));
    let seal = move || ring.seal_bytes(&source, &place);
    let sealed = spawn_blocking(seal).await.map_err(Problem::internal)?;
    let size = (sealed.len() + notes.len()).cast_signed() as i64;
    queries::insert_source(tx, message, sealed, notes, size).await?;
    if !orgs::fits(tx).await? {
        queries::delete_source(tx, message).await?;
    }
    Ok(())
}

/// A message as it came, and what was added to its text.
pub(super) struct OpenedSource {
    pub source: std::result::Result<Bytes, SealError>,
    pub notes: String,
}

/// What is kept of a message.
pub(super) async fn load_source(scope: &Scope, message: MessageId) -> Result<Option<OpenedSource>> {
    let Some(found) = queries::sealed_source(scope, message).await? else { return Ok(None) };
    let (ring, place) = (scope.core.keys.current(), seal_context(scope.org, message));
    let open = move || {
        let opened = ring.open_bytes(&found.source_sealed, &place)?;
        Ok(Bytes::copy_from_slice(opened.expose_secret()))
    };
    let source = spawn_blocking(open).await.map_err(Problem::internal)?;
    Ok(Some(OpenedSource { source, notes: found.notes }))
}
