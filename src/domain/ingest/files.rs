//! Files that come with messages. They are read before the message is stored, so that it is stored with them; what can't be
//! read is named in its text. Their bytes are in the resource limits until then.

use std::{
    io, mem,
    pin::Pin,
    task::{Context, Poll},
};

use muster_channels::{Content, Failure, Inbound, RemoteFile, Transport};
use tokio::{
    io::AsyncWrite,
    time::{Instant, timeout_at},
};

use super::writer::Load;
use crate::{
    base::{
        bounds,
        problem::{Problem, Result},
    },
    core::Core,
    domain::conversations::{self, Upload},
};

/// The most files of one message that are read: a sender can attach any number.
const FILES: usize = 10;

/// Takes the files out of a message. Together they are at most as long as one attachment may be.
///
/// # Errors
/// `RATE_LIMITED`, `UNAVAILABLE`: the channel, or all together, hold too many bytes.
pub(super) async fn fetch(
    core: &Core,
    transport: &dyn Transport,
    message: &mut Inbound,
    load: &mut Load,
) -> Result<Vec<Upload>> {
    let files = mem::take(&mut message.files);
    // Less than a request that brings one may take (`limits.request_timeout_seconds`).
    let until = Instant::now() + bounds::NETWORK_WAIT;
    let mut room = core.config.limits.attachment_bytes as u64;
    let mut uploads = Vec::new();
    for (n, file) in files.into_iter().enumerate() {
        let mut kept = Kept { core, load: &mut *load, bytes: Vec::new(), refused: None };
        let read = if n < FILES {
            read(transport, &file, room, until, &mut kept).await
        } else {
            Err("too many files".to_owned())
        };
        let Kept { bytes, refused, .. } = kept;
        if let Some(problem) = refused {
            return Err(problem);
        }
        match read {
            Ok(()) => {
                room -= bytes.len() as u64;
                uploads.push(Upload {
                    filename: file.name,
                    mime_type: Some(file.media_type),
                    content: bytes,
                });
            }
            Err(why) => {
                load.give_back(bytes.len());
                message.text.push_str(&conversations::missing_file_note(&file.name, &why));
            }
        }
    }
    Ok(uploads)
}

async fn read(
    transport: &dyn Transport,
    file: &RemoteFile,
    most: u64,
    until: Instant,
    kept: &mut Kept<'_>,
) -> std::result::Result<(), String> {
    let too_long = || format!("it is longer than {most} bytes");
    if file.size.is_some_and(|size| size > most) {
        return Err(too_long());
    }
    match &file.content {
        Content::Here(bytes) if bytes.len() as u64 > most => Err(too_long()),
        Content::Here(bytes) => kept.add(bytes).map_err(|error| error.to_string()),
        Content::There(_) => {
            let read = timeout_at(until, transport.fetch(file, kept, most)).await;
            let late = || Failure::NotSent("there was no answer in time".into());
            read.unwrap_or_else(|_| Err(late())).map(drop).map_err(|failure| failure.to_string())
        }
    }
}

/// The bytes of a file, as they come.
struct Kept<'a> {
    core: &'a Core,
    load: &'a mut Load,
    bytes: Vec<u8>,
    /// Why no more of them are taken.
    refused: Option<Problem>,
}

impl Kept<'_> {
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(problem) = self.load.hold(self.core, bytes.len()) {
            let error = io::Error::other(problem.to_string());
            self.refused = Some(problem);
            return Err(error);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

impl AsyncWrite for Kept<'_> {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.get_mut().add(bytes).map(|()| bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
