//! Original mails, stored for a while next to their messages and sealed like secrets, so that a later version of Muster
//! can read them again (`reparsing.rs`). They are removed with their message, or after `email.keep_source`.

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

/// An original mail, and the length of the text that was read from it.
pub struct Source {
    pub bytes: Bytes,
    /// In bytes. The rest of the message's text was added: notes about files that were not stored.
    pub read: usize,
}

impl Source {
    /// The bytes, and the notes that were added to the text.
    pub(super) fn with_notes_of(&self, text: &str) -> (Bytes, String) {
        // PostgreSQL stores no NUL.
        let notes = text.get(self.read..).unwrap_or_default().replace('\0', "\u{fffd}");
        (self.bytes.clone(), notes)
    }
}

fn seal_context(org: OrgId, message: MessageId) -> SealContext<'static> {
    SealContext::new(org, "message_sources", message.0, "source")
}

/// Stores an original mail, if the plan has room for it.
pub(super) async fn store_source(tx: &Tx, message: MessageId, source: Bytes, notes: &str) -> Result<()> {
    let (ring, place) = (tx.scope.core.sealing.current(), seal_context(tx.scope.org, message));
    let seal = move || ring.seal_bytes(&source, &place);
    let sealed = spawn_blocking(seal).await.map_err(Problem::internal)?;
    let size = (sealed.len() + notes.len()).cast_signed() as i64;
    queries::insert_source(tx, message, sealed, notes, size).await?;
    if !orgs::optional_data_fits(tx).await? {
        queries::delete_source(tx, message).await?;
    }
    Ok(())
}

/// An original mail, and the notes that were added to its text.
pub(super) struct OpenedSource {
    pub source: std::result::Result<Bytes, SealError>,
    pub notes: String,
}

/// The original mail of a message, if it is still stored and can be opened.
pub async fn source(scope: &Scope, message: MessageId) -> Result<Option<Bytes>> {
    Ok(load_source(scope, message).await?.and_then(|found| found.source.ok()))
}

/// Loads and opens the original mail of a message.
pub(super) async fn load_source(scope: &Scope, message: MessageId) -> Result<Option<OpenedSource>> {
    let Some(found) = queries::sealed_source(scope, message).await? else { return Ok(None) };
    let (ring, place) = (scope.core.sealing.current(), seal_context(scope.org, message));
    let open = move || {
        let opened = ring.open_bytes(&found.source_sealed, &place)?;
        Ok(Bytes::copy_from_slice(opened.expose_secret()))
    };
    let source = spawn_blocking(open).await.map_err(Problem::internal)?;
    Ok(Some(OpenedSource { source, notes: found.notes }))
}
