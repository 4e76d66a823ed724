//! What operators rely on: metrics, traces, migrations, keys, recurring work.

mod database_tls;
mod log_lines;
mod metrics;
mod migrations;
mod queue;
mod rounds;
pub mod sealing_keys;
mod signing_keys;
mod traces;
