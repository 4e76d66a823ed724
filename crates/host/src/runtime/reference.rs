//! The reference agent's image: the static program, and nothing else.

use std::{io, path::Path};

use bollard::{body_full, query_parameters::BuildImageOptionsBuilder};
use futures::StreamExt;

use super::{
    client::{Client, EngineError},
    docker::Engine,
};

/// Its name.
pub(super) const NAME: &str = "muster/agent";
/// What is in it: where a profile finds it by its name, too.
const RECIPE: &str =
    "FROM scratch\nCOPY muster-agent /bin/muster-agent\nENTRYPOINT [\"/bin/muster-agent\"]\n";

impl Engine {
    /// Builds it from the static program.
    pub async fn build_reference(&self, program: &Path) -> Result<(), EngineError> {
        build(&self.client().await?, program).await
    }
}

async fn build(client: &Client<'_>, program: &Path) -> Result<(), EngineError> {
    let archive = pack(program).map_err(|source| EngineError::Io {
        what: format!("{} can't be packed", program.display()),
        source,
    })?;
    let options = BuildImageOptionsBuilder::default().dockerfile("Dockerfile").t(NAME).rm(true).build();
    let mut steps = client.build_image(options, None, Some(body_full(archive.into())));
    while let Some(step) = steps.next().await {
        let step = step.map_err(|error| client.error("The image can't be built", error))?;
        if let Some(reason) = step.error_detail.and_then(|detail| detail.message) {
            return Err(EngineError::Refused { what: "The image can't be built", reason });
        }
    }
    Ok(())
}

fn pack(program: &Path) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut add = |name: &str, mode: u32, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(mode);
        header.set_cksum();
        archive.append_data(&mut header, name, bytes)
    };
    add("Dockerfile", 0o644, RECIPE.as_bytes())?;
    add("muster-agent", 0o755, &std::fs::read(program)?)?;
    archive.into_inner()
}
