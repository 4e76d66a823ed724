//! Messages as they came, which are kept for a while beside what was read of them (`conversations/sources.rs`).

use muster_channels::Inbound;

use super::writer::Load;
use crate::{core::Core, domain::conversations::Source};

/// Takes the source out of a message, and counts it. `read` is the length of the text that was read of it. `None` if it has none,
/// or is not kept: the settings say so, it is longer than an attachment may be, or there is no memory for it.
pub(super) fn take(core: &Core, message: &mut Inbound, read: usize, load: &mut Load) -> Option<Source> {
    let bytes = message.source.take()?;
    let is_wanted = core.config.email.keep_source > 0 && bytes.len() <= core.config.limits.attachment_bytes;
    let is_kept = is_wanted && load.hold(core, bytes.len()).is_ok();
    is_kept.then_some(Source { bytes, read })
}
