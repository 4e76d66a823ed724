//! Files attached to messages. They are fetched before the message, so that it is stored with them. The message's text
//! names files that can't be fetched. Until then, their bytes count against the resource limits.

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

/// The maximum number of files fetched for one message: a sender can attach any number.
const FILES: usize = 10;

/// Fetches the files of a message and removes them from it. Their total size is limited like that of one attachment.
///
/// # Errors
/// `RATE_LIMITED`, `UNAVAILABLE`: the channel, or all channels together, hold too many bytes.
pub(super) async fn fetch(
    core: &Core,
    transport: &dyn Transport,
    message: &mut Inbound,
    load: &mut Load,
) -> Result<Vec<Upload>> {
    let files = mem::take(&mut message.files);
    // Shorter than the timeout of an inbound request (`limits.request_timeout_seconds`).
    let until = Instant::now() + bounds::NETWORK_WAIT;
    let mut room = core.config.limits.attachment_bytes as u64;
    let mut uploads = Vec::new();
    for (n, file) in files.into_iter().enumerate() {
        let mut buffer = FileBuffer { core, load: &mut *load, bytes: Vec::new(), refused: None };
        let fetched = if n < FILES {
            read(transport, &file, room, until, &mut buffer).await
        } else {
            Err("too many files".to_owned())
        };
        let FileBuffer { bytes, refused, .. } = buffer;
        if let Some(problem) = refused {
            return Err(problem);
        }
        match fetched {
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
    buffer: &mut FileBuffer<'_>,
) -> std::result::Result<(), String> {
    let too_long = || format!("it is longer than {most} bytes");
    if file.size.is_some_and(|size| size > most) {
        return Err(too_long());
    }
    match &file.content {
        Content::Here(bytes) if bytes.len() as u64 > most => Err(too_long()),
        Content::Here(bytes) => buffer.add(bytes).map_err(|error| error.to_string()),
        Content::There(_) => {
            let read = timeout_at(until, transport.fetch(file, buffer, most)).await;
            let late = || Failure::NotSent("there was no answer in time".into());
            read.unwrap_or_else(|_| Err(late())).map(drop).map_err(|failure| failure.to_string())
        }
    }
}

/// Collects the bytes of a file, within the resource limits.
struct FileBuffer<'a> {
    core: &'a Core,
    load: &'a mut Load,
    bytes: Vec<u8>,
    /// Why it accepts no more bytes.
    refused: Option<Problem>,
}

impl FileBuffer<'_> {
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(problem) = self.load.reserve(self.core, bytes.len()) {
            let error = io::Error::other(problem.to_string());
            self.refused = Some(problem);
            return Err(error);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

impl AsyncWrite for FileBuffer<'_> {
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
