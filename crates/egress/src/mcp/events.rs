//! Streams of server-sent events.

use futures::StreamExt;
use http_body_util::{BodyExt, BodyStream};
use hyper::body::Incoming;
use tokio::time::timeout;

use super::lines::{GrowingLine, MessageLine};
use crate::{bounds, memory::MemoryBudget};

/// The events of a response.
pub struct Events {
    body: BodyStream<Incoming>,
    piece: bytes::Bytes,
    memory: MemoryBudget,
}

/// An event: its name (`message` by default), and its data.
pub struct Event {
    pub name: String,
    pub data: MessageLine,
}

impl Events {
    pub fn new(body: Incoming, memory: MemoryBudget) -> Self {
        Self { body: BodyStream::new(body), piece: bytes::Bytes::new(), memory }
    }

    /// The next event with data. `None` at the end, or if it is too long, too slow, or out of memory budget.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            // Reserves no memory before data arrives.
            self.piece().await?;
            if let Some(event) = timeout(bounds::WAIT, self.event()).await.ok()?? {
                return Some(event);
            }
        }
    }

    async fn piece(&mut self) -> Option<()> {
        while self.piece.is_empty() {
            let frame = self.body.next().await?.ok()?;
            self.piece = frame.into_data().unwrap_or_default();
        }
        Some(())
    }

    /// Reads up to an empty line or a comment: an event, if it has data.
    async fn event(&mut self) -> Option<Option<Event>> {
        let (mut name, mut data) = (None, None::<GrowingLine>);
        loop {
            let (field, value) = self.line().await?;
            match (field.as_slice(), value) {
                (b"", None) => {
                    let name = name.unwrap_or_else(|| "message".to_owned());
                    return Some(data.map(|GrowingLine { line: data, .. }| Event { name, data }));
                }
                (b"", Some(_)) if name.is_none() && data.is_none() => return Some(None),
                (b"data", Some(more)) => match &mut data {
                    Some(data) => {
                        data.add(b"\n").await?;
                        data.add(&more.line.bytes).await?;
                    }
                    None => data = Some(more),
                },
                (b"event", Some(value)) => {
                    name = Some(String::from_utf8_lossy(&value.line.bytes).into_owned());
                }
                _ => {}
            }
        }
    }

    /// A line's field and value. An empty line has none.
    async fn line(&mut self) -> Option<(Vec<u8>, Option<GrowingLine>)> {
        let (mut field, mut value) = (Vec::new(), None::<GrowingLine>);
        loop {
            self.piece().await?;
            let end = self.piece.iter().position(|byte| *byte == b'\n');
            let mut part = self.piece.split_to(end.unwrap_or(self.piece.len()));
            if value.is_none() {
                let colon = part.iter().position(|byte| *byte == b':');
                field.extend_from_slice(&part.split_to(colon.unwrap_or(part.len())));
                if field.len() > bounds::TEXT {
                    return None;
                }
                if colon.is_some() {
                    let _ = part.split_to(1);
                    value = Some(GrowingLine::begin(&self.memory).await?);
                }
            }
            if let Some(value) = &mut value {
                value.add(&part).await?;
            }
            if end.is_some() {
                let _ = self.piece.split_to(1);
                break;
            }
        }
        let bytes = value.as_mut().map_or(&mut field, |value| &mut value.line.bytes);
        if bytes.ends_with(b"\r") {
            bytes.pop();
        }
        if let Some(value) = &mut value
            && value.line.bytes.first() == Some(&b' ')
        {
            value.line.bytes.remove(0);
        }
        Some((field, value))
    }
}

/// The complete body, within size and memory limits.
pub async fn read_whole(mut body: Incoming, memory: &MemoryBudget) -> Option<MessageLine> {
    let mut all = GrowingLine::begin(memory).await?;
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.ok()?.into_data() {
            all.add(&data).await?;
        }
    }
    Some(all.line)
}
