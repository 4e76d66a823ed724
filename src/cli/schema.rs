//! `muster schema`: writes the generated schema, OpenAPI document, frames of the gateway and payloads of events, which are
//! committed and reviewed with the code.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Failure, Output};
use crate::{
    api::rest::{Routes, openapi},
    domain::event_endpoints,
    graphql,
};

/// Write or compare `schema.graphql`, `openapi.json`, `gateway.json` and `events.json`
#[derive(Debug, clap::Subcommand)]
pub enum Schema {
    /// Write the files
    Dump {
        /// The folder
        #[arg(long, default_value = "schema")]
        dir: PathBuf,
    },
    /// Fail if a file differs from what this program would write
    Check {
        /// The folder
        #[arg(long, default_value = "schema")]
        dir: PathBuf,
    },
}

impl Schema {
    pub(super) fn run(self) -> Result<Output, Failure> {
        match self {
            Self::Dump { dir } => dump(&dir),
            Self::Check { dir } => check(&dir),
        }
    }
}

/// Each file's name and content.
///
/// # Errors
/// The schema does not fit the stored documents.
pub fn files() -> anyhow::Result<[(&'static str, String); 4]> {
    let catalogue = graphql::catalogue()?;
    let document = openapi::text(&Routes::load(&catalogue)?, &catalogue);
    let frames = format!("{:#}\n", muster_protocol::schema());
    let events = format!("{:#}\n", event_endpoints::schema());
    Ok([
        ("schema.graphql", graphql::sdl()),
        ("openapi.json", document),
        ("gateway.json", frames),
        ("events.json", events),
    ])
}

fn dump(dir: &Path) -> Result<Output, Failure> {
    let mut written = Vec::new();
    for (name, text) in files()? {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
        written.push(path.display().to_string());
    }
    let text = format!("wrote {}", written.join(", "));
    Ok(Output::with_text(json!({ "written": written }), text))
}

fn check(dir: &Path) -> Result<Output, Failure> {
    let differs =
        |name: &str, text: &str| std::fs::read_to_string(dir.join(name)).ok().as_deref() != Some(text);
    let stale: Vec<String> = files()?
        .iter()
        .filter(|(name, text)| differs(name, text))
        .map(|(name, _)| dir.join(name).display().to_string())
        .collect();
    let text = if stale.is_empty() {
        "The files are up to date.".to_owned()
    } else {
        format!("out of date (run `muster schema dump`): {}", stale.join(", "))
    };
    let bad = !stale.is_empty();
    Ok(Output::with_text(json!({ "ok": !bad, "stale": stale }), text).failed_if(bad))
}
