//! The operators' concerns: metrics, traces, migrations, keys, recurring work.

mod certificates;
mod database_tls;
mod jobs;
mod log_lines;
mod metrics;
mod migrations;
mod monitoring;
mod poolers;
mod queue;
pub mod sealing_keys;
mod signing_keys;
mod traces;
