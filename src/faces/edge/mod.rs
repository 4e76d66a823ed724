//! What happens to every request, whatever its face.
//!
//! - `arrival.rs`, `path.rs`, `body.rs`: what faces read of a request: id, address, credential; ids in its path; its body,
//!   when it is known whose it is.
//! - `observe.rs`: around every request: its id, its span and log line, the headers that every response carries.
//! - `problem.rs`, `refusals.rs`: problem documents, also for what the HTTP machinery refuses by itself (unknown route, wrong
//!   method, body too large, late, panicked).
//! - `idempotency.rs`: a change that is asked for twice is made once · `etag.rs`: entity tags.
//! - `connections.rs`, `pace.rs`: how many connections there may be, how long one may take to say what it wants, and how
//!   slowly it may take what it is given.
//! - `probes.rs`, `scrape.rs`: `/health`, `/ready`, and the page of metrics.

mod arrival;
pub mod body;
mod connections;
pub mod etag;
pub mod idempotency;
mod observe;
mod pace;
mod path;
mod probes;
mod problem;
mod refusals;
pub mod scrape;

pub use self::{
    arrival::{Arrival, HoldsCore, Prepaid, bearer_of, is_json},
    connections::serve,
    idempotency::refusal,
    observe::{Outermost, observe},
    path::{id_in_path, org_in_path},
    probes::{health, ready},
    problem::{problem_document, problem_page, problem_response},
    refusals::no_route,
};
