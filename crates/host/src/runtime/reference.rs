//! Images that are made here: the reference agent's, which is the static program and nothing else, and one without anything.

use std::{io, path::Path};

use bollard::{body_full, query_parameters::BuildImageOptionsBuilder};
use futures::StreamExt;

use super::{
    client::{Client, EngineError},
    docker::Engine,
    image,
};

/// The name of the reference agent's.
pub(super) const NAME: &str = "muster/agent";
/// What is in it: where a profile finds it by its name, too.
const RECIPE: &str =
    "FROM scratch\nCOPY muster-agent /bin/muster-agent\nENTRYPOINT [\"/bin/muster-agent\"]\n";
/// The name of the empty one, in which the shim runs alone.
const EMPTY: &str = "muster/empty";
/// Engines make no image without a file.
const NOTHING: &str = "FROM scratch\nCOPY Dockerfile /\n";

impl Engine {
    /// Builds the reference agent's, from the static program.
    pub async fn build_reference(&self, program: &Path) -> Result<(), EngineError> {
        let bytes = std::fs::read(program).map_err(|source| EngineError::Io {
            what: format!("{} can't be packed", program.display()),
            source,
        })?;
        build(&self.client().await?, NAME, RECIPE, Some(("muster-agent", bytes.as_slice()))).await
    }
}

/// The id of the image without anything, which is made once.
pub(super) async fn empty(client: &Client<'_>) -> Result<String, EngineError> {
    if image::inspect(client, EMPTY).await?.is_none() {
        build(client, EMPTY, NOTHING, None).await?;
    }
    let found = image::inspect(client, EMPTY).await?;
    found
        .and_then(|found| found.id)
        .ok_or_else(|| EngineError::Image { image: EMPTY.to_owned(), reason: "it was removed".to_owned() })
}

async fn build(
    client: &Client<'_>,
    name: &str,
    recipe: &str,
    program: Option<(&str, &[u8])>,
) -> Result<(), EngineError> {
    let archive = pack(recipe, program)
        .map_err(|source| EngineError::Io { what: "The image can't be packed".to_owned(), source })?;
    let options = BuildImageOptionsBuilder::default().dockerfile("Dockerfile").t(name).rm(true).build();
    let mut steps = client.build_image(options, None, Some(body_full(archive.into())));
    while let Some(step) = steps.next().await {
        let step = step.map_err(|error| client.error("The image can't be built", error))?;
        if let Some(reason) = step.error_detail.and_then(|detail| detail.message) {
            return Err(EngineError::Refused { what: "The image can't be built", reason });
        }
    }
    Ok(())
}

fn pack(recipe: &str, program: Option<(&str, &[u8])>) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut add = |name: &str, mode: u32, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(mode);
        header.set_cksum();
        archive.append_data(&mut header, name, bytes)
    };
    add("Dockerfile", 0o644, recipe.as_bytes())?;
    if let Some((name, bytes)) = program {
        add(name, 0o755, bytes)?;
    }
    archive.into_inner()
}
