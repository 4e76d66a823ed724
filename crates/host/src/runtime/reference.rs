//! Images built here: the reference agent's, with nothing but the static program, and an empty one.

use std::{io, path::Path};

use bollard::{body_full, query_parameters::BuildImageOptionsBuilder};
use futures::StreamExt;

use super::{
    client::{Client, EngineError},
    docker::Engine,
    image,
};

/// The reference agent's image.
pub(super) const NAME: &str = "muster/agent";
/// Its Dockerfile. Profiles can find the program by name too.
const RECIPE: &str =
    "FROM scratch\nCOPY muster-agent /bin/muster-agent\nENTRYPOINT [\"/bin/muster-agent\"]\n";
/// The empty image, for a shim alone.
const EMPTY: &str = "muster/empty";
/// Engines build no image without a file.
const NOTHING: &str = "FROM scratch\nCOPY Dockerfile /\n";

impl Engine {
    /// Builds the reference agent's image from the static program.
    pub async fn build_reference(&self, program: &Path) -> Result<(), EngineError> {
        let bytes = std::fs::read(program).map_err(|source| EngineError::Io {
            what: format!("{} can't be packed", program.display()),
            source,
        })?;
        build(&self.client().await?, NAME, RECIPE, Some(("muster-agent", bytes.as_slice()))).await
    }
}

/// The empty image's id; it is built once.
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
