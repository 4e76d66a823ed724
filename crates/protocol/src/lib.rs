//! What the control plane and the hosts of servers say to each other (`docs/gateway.md`).
//!
//! A host joins once over HTTP ([`join`]), then keeps one WebSocket open. On it both sides send JSON text frames: the
//! host [`FromHost`], the control plane [`ToHost`]. Commands and events are numbered, kept until they are acknowledged,
//! and take effect once; everything else may be lost.
//!
//! Both sides build on this crate, so it knows neither the database nor GraphQL. Ids are the numbers that `/v1` shows;
//! times are milliseconds since 1970.

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

/// The JSON Schema of everything that both sides send: `schema/gateway.json`.
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
        /// Its answer.
        joined: join::Joined,
    }
    schemars::schema_for!(Gateway).to_value()
}

/// The versions of this protocol that this build speaks: the oldest and the newest.
pub const VERSIONS: [u16; 2] = [1, 1];

/// The largest frame, in bytes. A larger one closes the connection.
pub const LARGEST_FRAME: usize = 1024 * 1024;

/// How deep lists and objects may be nested in the input or the output of a tool. Readers of JSON stop at 128 levels, and what
/// an agent says is written deeper than it came: in a frame, in the host's journal, in an answer of the API.
pub const DEEPEST: usize = 64;

/// Whether lists and objects are nested deeper than that in a value.
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

/// The path of the WebSocket. A host sends `Authorization: Bearer <its token>` with the handshake.
pub const PATH: &str = "/gateway";
