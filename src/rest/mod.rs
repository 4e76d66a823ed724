//! The `/v1` face: stored GraphQL documents behind paths.
//!
//! - `routes.rs` is THE table: method, path, operation, success status. A new route is one line there and one
//!   document in `schema/rest/`; there are no handlers.
//! - `etag.rs`: what a client has read is what it changes.
//! - `operation.rs` turns a document into an operation, and a request into its variables.
//! - `problem.rs` writes errors as RFC 9457 problem documents.
//! - `openapi.rs` describes all of it, from the same table and the same schema, with the schemas of `shapes.rs`.

mod etag;
pub mod openapi;
mod operation;
mod problem;
mod routes;
mod serve;
mod shapes;

pub use etag::{Current, is_known};
pub(crate) use operation::id_in_path;
pub use operation::{Given, Operation, Source};
pub use problem::{problem_document, problem_page, problem_response};
pub use routes::{ROUTES, Route, Routes};
pub use serve::router;
pub(crate) use serve::{execute, org_in_path, prepared, refusal};
pub(crate) use shapes::{Shapes, is_required};
