//! The files of a folder, and the messages that they become.

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::{
    contract::{Content, Event, Failure, Inbound, OneLine, Origin, Proof, RemoteFile, Thread},
    quoting::bracket_name,
};

/// On a whitelist, admits all who can write to the folder; in `mention_off`, makes all comments messages.
pub const PLACE: &str = "folder";

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// The path at WebDAV, the id at Google.
    pub id: String,
    pub name: String,
    /// Another one for another content.
    pub version: String,
    pub media_type: String,
    pub size: Option<u64>,
    pub modified: Option<Timestamp>,
    /// Who changed it last, with their name.
    pub author: Option<(String, String)>,
    pub is_ours: bool,
    /// A handle for its bytes, if it has any.
    pub handle: Option<String>,
    /// Its address for people.
    pub link: Option<String>,
    /// Where answers go.
    pub target: String,
}

impl File {
    /// Digests of its id and its version: those of all files fit the cursor.
    pub fn digests(&self) -> (u64, u64) {
        (digest(&self.id), digest(&self.version))
    }

    /// How many entries it counts as: one, and one for each KiB of its texts.
    pub fn weight(&self) -> usize {
        1 + (self.id.len() + self.name.len() + self.version.len() + self.media_type.len()) / 1024
    }

    /// The message about a new or a changed file. `folder`: its name for people.
    pub fn into_event(self, is_new: bool, folder: &str, now: Timestamp) -> Event {
        let (what, name) = (if is_new { "new" } else { "changed" }, bracket_name(&self.name));
        let mut text = format!("[A {what} file of {} came with this message: {name}]", bracket_name(folder));
        if let Some(link) = &self.link {
            text.push_str("\n\n");
            text.push_str(link);
        }
        // WebDAV does not tell who wrote a file: only that they may write there.
        let (author, name) = self.author.unzip();
        let content = self.handle.map(Content::There);
        let file = content.map(|content| RemoteFile {
            name: self.name.clone(),
            media_type: self.media_type,
            size: self.size,
            content,
        });
        Event::Message(Box::new(Inbound {
            // The cursor is stored with it, and a content that comes back is a message again.
            key: None,
            vendor_id: None,
            album: None,
            is_edit: false,
            answers: None,
            authors: author.clone().into_iter().collect(),
            origin: Origin {
                id: author.unwrap_or_else(|| PLACE.to_owned()),
                place: Some(PLACE.to_owned()),
                name: name.and_then(|name| OneLine::name(&name)),
            },
            is_automatic: false,
            proof: Proof::Signed,
            thread: Thread {
                key: format!("file:{:016x}", digest(&self.id)),
                refs: Vec::new(),
                readers: Vec::new(),
                target: self.target,
                title: OneLine::title(&self.name),
                is_private: false,
            },
            is_addressed: true,
            labels: Vec::new(),
            context: String::new(),
            text,
            files: file.into_iter().collect(),
            at: self.modified.unwrap_or(now),
            source: None,
        }))
    }
}

/// Bounds the files and folders below the channel's folder: people with access, or a server with long names, could
/// otherwise fill the memory, and the cursor, and a server could name a folder as its own parent.
pub fn check_count(entries: usize) -> Result<(), Failure> {
    if entries > 5_000 {
        return Err(Failure::Refused("The folder has more than 5,000 files.".into()));
    }
    Ok(())
}

pub fn digest(text: &str) -> u64 {
    Sha256::digest(text.as_bytes()).iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// Whether programs use such names for files that they are still writing, or for their own.
pub fn is_temporary(name: &str) -> bool {
    let name = name.to_lowercase();
    let ends = ["~", ".tmp", ".temp", ".part", ".partial", ".filepart", ".crdownload", ".download", ".swp"];
    name.is_empty() || name.starts_with(['.', '~']) || ends.iter().any(|end| name.ends_with(end))
}
