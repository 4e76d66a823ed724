//! `muster version`: what this program is, and what it fits, for scripts and reports of problems.

use muster_protocol::VERSIONS;
use muster_shim::wire;
use serde_json::json;

use super::Output;
use crate::core::store::newest_step;

/// The commit that it was built from, if the build said so.
const COMMIT: Option<&str> = option_env!("BUILD_COMMIT");
/// The target that it was built for, such as `x86_64-unknown-linux-musl`.
const PLATFORM: &str = env!("BUILD_TARGET");

/// The program's version, its newest migration, and the versions of its protocols (of the gateway: the oldest and the
/// newest).
pub(super) fn version() -> Output {
    Output::from_json(json!({
        "name": "muster",
        "version": env!("CARGO_PKG_VERSION"),
        "commit": COMMIT,
        "schema_step": newest_step(),
        "protocols": { "gateway": VERSIONS, "shim": wire::VERSION },
        "platform": PLATFORM,
    }))
}
