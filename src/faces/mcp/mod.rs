//! The `/mcp` face: the operations of `/v1` as tools, for programs that speak the Model Context Protocol.
//!
//! There is no second list of operations and no second way to run one: a tool is a line of `rest/routes.rs`, its schema
//! is made of the same shapes as the OpenAPI document, and a call executes the same stored document after the same
//! checks, under the same tokens. What a caller may do nowhere is not shown to them.
//!
//! - `offer.rs`: the tools, derived from the routes.
//! - `face.rs`: listing and calling, for one caller.
//! - `http.rs`: the endpoint. Every request stands for itself: there are no sessions to keep, to steal or to exhaust.

mod face;
mod http;
mod offer;

pub use self::{
    http::router,
    offer::{Offer, Offers, offers},
};
