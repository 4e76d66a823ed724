//! Request bodies. They are only read once the caller is known.
//!
//! Anonymous callers may only send little. Bodies count in the resource limits while they arrive and for as long as
//! they are held.

use std::{sync::Arc, time::Instant};

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;

use super::Arrival;
use crate::core::resource_limits::{Held, Holder, Resource, SMALL};
use crate::{
    base::problem::{Code, Problem, Result},
    core::{
        Core,
        access::{CREDENTIALS_KEPT, Caller, authn::require_valid},
    },
};

/// Reads a complete body of at most `most` bytes from `caller`. If that took long, the caller's credential is checked
/// again, but not their permissions: see [`authorize_again`](crate::resolvers::authorize_again).
///
/// # Errors
/// `PAYLOAD_TOO_LARGE`; `UNAUTHENTICATED` if the credential has become invalid; `MALFORMED_REQUEST` if it breaks off;
/// `RATE_LIMITED` or `UNAVAILABLE` if too much is in flight.
pub async fn read(
    core: &Arc<Core>,
    arrival: &Arrival,
    caller: &Caller,
    body: Body,
    most: usize,
) -> Result<Bytes> {
    let anonymous = matches!(caller, Caller::Anonymous);
    let most = if anonymous { most.min(core.config.limits.anonymous_body_bytes) } else { most };
    let began = Instant::now();
    let bytes = read_for(core, Holder::of(caller, arrival.ip), body, most).await?;
    if began.elapsed() > CREDENTIALS_KEPT {
        require_valid(core, caller).await?;
    }
    Ok(bytes)
}

/// Reads a complete body of at most `most` bytes for a holder that is not a caller.
///
/// # Errors
/// `PAYLOAD_TOO_LARGE`; `MALFORMED_REQUEST` if it breaks off; `RATE_LIMITED` or `UNAVAILABLE` if too much is in flight.
pub async fn read_for(core: &Core, holder: Holder, body: Body, most: usize) -> Result<Bytes> {
    let announced = usize::try_from(http_body::Body::size_hint(&body).lower()).unwrap_or(usize::MAX);
    if announced > most {
        return Err(too_large(most));
    }
    let mut reading = Reading { core, holder, held: None, bytes: Bytes::new() };
    reading.read_to_end(body, most).await?;
    let Reading { held, bytes, .. } = reading;
    Ok(match held {
        Some(held) => Arc::new(held).with_bytes(bytes),
        None => bytes,
    })
}

struct Reading<'a> {
    core: &'a Core,
    holder: Holder,
    held: Option<Held>,
    bytes: Bytes,
}

impl Reading<'_> {
    async fn read_to_end(&mut self, mut body: Body, most: usize) -> Result<()> {
        let mut several = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|_| Problem::new(Code::MalformedRequest, "The request body ended early."))?;
            let Ok(data) = frame.into_data() else { continue };
            let length = self.bytes.len() + several.len() + data.len();
            if length > most {
                return Err(too_large(most));
            }
            self.enter(length)?;
            // Most bodies arrive in one piece, which is passed on without a copy.
            if self.bytes.is_empty() && several.is_empty() {
                self.bytes = data;
                continue;
            }
            several.extend_from_slice(&std::mem::take(&mut self.bytes));
            several.extend_from_slice(&data);
        }
        if !several.is_empty() {
            self.bytes = several.freeze();
        }
        Ok(())
    }

    /// Enters the received bytes into the resource limits, once they exceed [`SMALL`].
    fn enter(&mut self, length: usize) -> Result<()> {
        if length <= SMALL {
            return Ok(());
        }
        match &mut self.held {
            Some(held) => held.grow(length - held.amount()),
            None => {
                self.held =
                    Some(self.core.resource_limits.limit(Resource::Bodies).take(self.holder, length)?);
                Ok(())
            }
        }
    }
}

fn too_large(most: usize) -> Problem {
    let detail = format!("The body is too large: the maximum is {most} bytes.");
    Problem::new(Code::PayloadTooLarge, detail).with("limit", most)
}
