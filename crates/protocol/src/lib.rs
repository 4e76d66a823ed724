//! The protocol between the control plane and hosts (`docs/gateway.md`).
//!
//! A host joins once over HTTP ([`join`]), then keeps one WebSocket open. On it both sides send JSON text frames: the
//! host [`FromHost`], the control plane [`ToHost`]. Commands and events are numbered, kept until they are acknowledged,
//! and take effect once; everything else may be lost.
//!
//! Both sides build on this crate, so it knows neither the database nor GraphQL. Ids are the numbers in `/v1`; times
//! are milliseconds since 1970.

#![forbid(unsafe_code)]

pub mod command;
pub mod event;
pub mod frame;
pub mod join;
pub mod plan;
pub mod profile;
mod secret;
pub mod spending;
pub mod token;

use serde_json::Value;

pub use self::{
    command::Command,
    event::{Event, HostEvent},
    frame::{FromHost, ToHost},
    secret::Secret,
};

/// The JSON Schema of all messages in both directions: `schema/gateway.json`.
#[must_use]
pub fn schema() -> Value {
    /// Everything that is sent on the gateway.
    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "described, and never made")]
    #[serde(rename_all = "snake_case")]
    struct Gateway {
        /// A frame from a host.
        from_host: FromHost,
        /// A frame for a host.
        to_host: ToHost,
        /// The body of `POST /gateway/join`.
        join: join::Join,
        /// Its response.
        joined: join::Joined,
    }
    schemars::schema_for!(Gateway).to_value()
}

/// The oldest and newest protocol version that this build supports.
pub const VERSIONS: [u16; 2] = [1, 1];

/// The largest frame, in bytes. A larger one closes the connection.
pub const LARGEST_FRAME: usize = 1024 * 1024;

/// The maximum nesting of lists and objects in a tool's input or output. JSON readers stop at 128 levels, and an
/// agent's output is wrapped further: in a frame, in the host's journal, in an API response.
pub const DEEPEST: usize = 64;

/// Whether a value is nested deeper than [`DEEPEST`].
#[must_use]
pub fn is_too_deep(value: &Value) -> bool {
    is_deeper(value, DEEPEST)
}

fn is_deeper(value: &Value, most: usize) -> bool {
    match value {
        Value::Array(items) => most == 0 || items.iter().any(|item| is_deeper(item, most - 1)),
        Value::Object(fields) => most == 0 || fields.values().any(|field| is_deeper(field, most - 1)),
        _ => false,
    }
}

/// The WebSocket's path. The handshake carries `Authorization: Bearer <the host's token>`.
pub const PATH: &str = "/gateway";
