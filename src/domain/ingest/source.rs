//! Raw messages, which are kept for a while in addition to the parsed message (`conversations/sources.rs`).

use muster_channels::Inbound;

use super::writer::Load;
use crate::{core::Core, domain::conversations::Source};

/// Takes the source out of a message and reserves its memory. `read` is the length of the parsed text. `None` if the
/// message has no source, the settings don't keep it, it exceeds the limit of an attachment, or its memory can't be
/// reserved.
pub(super) fn take_source(
    core: &Core,
    message: &mut Inbound,
    read: usize,
    load: &mut Load,
) -> Option<Source> {
    let bytes = message.source.take()?;
    let is_wanted = core.config.email.keep_source > 0 && bytes.len() <= core.config.limits.attachment_bytes;
    let is_kept = is_wanted && load.reserve(core, bytes.len()).is_ok();
    is_kept.then_some(Source { bytes, read })
}
