//! The handling of every request, regardless of the interface.
//!
//! - `arrival.rs`, `path.rs`, `body.rs`: reading a request: id, address, credential; ids in the path; the body, once
//!   the caller is known.
//! - `observe.rs`: wraps every request: its id, its span and log line, and the headers on every response.
//! - `cookie.rs`: the session cookie of browsers · `cors.rs`: pages of other origins.
//! - `problem.rs`, `refusals.rs`: problem documents, also for errors from the HTTP stack itself (unknown route,
//!   wrong method, body too large, timeout, panic).
//! - `idempotency.rs`: a change that is requested twice is made once · `etag.rs`: entity tags.
//! - `connections.rs`, `slow_client.rs`: how many connections there may be, and how slowly they may send and receive.
//! - `probes.rs`, `scrape.rs`: `/health`, `/ready`, and the metrics page.

mod arrival;
pub mod body;
mod connections;
mod cookie;
mod cors;
pub mod etag;
pub mod idempotency;
mod observe;
mod path;
mod probes;
mod problem;
mod refusals;
pub mod scrape;
mod slow_client;

pub use self::{
    arrival::{Arrival, HoldsCore, Prepaid, bearer_of, is_json},
    connections::serve,
    cookie::{Visit, two_credentials, write_cookie},
    idempotency::refusal,
    observe::{Outermost, observe},
    path::{id_in_path, org_in_path},
    probes::{health, ready},
    problem::{problem_document, problem_page, problem_response},
    refusals::no_route,
};
