//! Images: found on the machine or pulled, and pinned by digest if their record has one.

use std::{collections::HashMap, fs, path::PathBuf};

use base64::{Engine, prelude::BASE64_STANDARD};
use bollard::{auth::DockerCredentials, models::ImageInspect, query_parameters::CreateImageOptionsBuilder};
use futures::StreamExt;
use serde::Deserialize;

use super::{
    client::{Client, EngineError},
    reference,
};

/// A runnable image.
#[derive(Debug)]
pub(super) struct Image {
    /// Its id on this machine, which identifies it even if its name moves.
    pub id: String,
    /// For people: its name with the digest, or its id if it was built here.
    pub used: String,
    /// Its program and arguments.
    pub own: Vec<String>,
}

/// The registry of names without one.
const HUB: &str = "docker.io";
/// The Hub's name in Docker's configuration.
const HUB_CONFIGURED: &str = "https://index.docker.io/v1/";

/// Finds an image, or pulls it.
pub(super) async fn find(
    client: &Client<'_>,
    reference: &str,
    digest: Option<&str>,
) -> Result<Image, EngineError> {
    let name = Name::parse(reference);
    let digest = digest.or(name.digest);
    let wanted = name.pinned(digest);
    if let Some(found) = inspect(client, &wanted).await? {
        return Ok(Image::from_inspect(reference, name.repository, found));
    }
    // A locally built image has no registry digest; its id serves as well.
    if let Some(found) = inspect(client, reference).await?
        && digest.is_some()
        && found.id.as_deref() == digest
    {
        return Ok(Image::from_inspect(reference, name.repository, found));
    }
    if name.repository == reference::NAME {
        let reason = "this machine has no such image. Build it with `muster host build-image`".to_owned();
        return Err(EngineError::Image { image: wanted, reason });
    }
    pull(client, &name, digest, &wanted).await?;
    match inspect(client, &wanted).await? {
        Some(found) => Ok(Image::from_inspect(reference, name.repository, found)),
        None => {
            let reason = "the registry returned a different image".to_owned();
            Err(EngineError::Image { image: wanted, reason })
        }
    }
}

pub(super) async fn inspect(client: &Client<'_>, name: &str) -> Result<Option<ImageInspect>, EngineError> {
    match client.inspect_image(name).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if super::client::status(&error) == Some(404) => Ok(None),
        Err(error) => Err(client.error("The image can't be looked at", error)),
    }
}

async fn pull(
    client: &Client<'_>,
    name: &Name<'_>,
    digest: Option<&str>,
    wanted: &str,
) -> Result<(), EngineError> {
    tracing::info!(image = wanted, "pulling an image");
    // An engine accepts a digest in place of a tag.
    let (repository, tag) = (name.full_repository(), digest.or(name.tag).unwrap_or("latest"));
    let options = CreateImageOptionsBuilder::default().from_image(&repository).tag(tag).build();
    let mut steps = client.create_image(Some(options), None, credentials(name.registry()));
    while let Some(step) = steps.next().await {
        if let Err(error) = step {
            return Err(match client.error("The image can't be pulled", error) {
                EngineError::Refused { reason, .. } => {
                    EngineError::Image { image: wanted.to_owned(), reason }
                }
                error => error,
            });
        }
    }
    Ok(())
}

impl Image {
    fn from_inspect(reference: &str, repository: &str, found: ImageInspect) -> Self {
        let id = found.id.unwrap_or_default();
        let digests = found.repo_digests.unwrap_or_default();
        let own = digests.iter().find(|digest| is_of(digest, repository)).or(digests.first());
        let used = own.cloned().unwrap_or_else(|| format!("{reference} {id}"));
        let config = found.config.unwrap_or_default();
        let words = config.entrypoint.unwrap_or_default().into_iter().chain(config.cmd.unwrap_or_default());
        Self { id, used, own: words.collect() }
    }
}

/// Whether this is a digest of the repository, with or without its registry.
fn is_of(digest: &str, repository: &str) -> bool {
    digest.split_once('@').is_some_and(|(of, _)| of == repository || of.ends_with(&format!("/{repository}")))
}

/// An image's name in parts: `registry/repository:tag@digest`.
#[derive(Debug, PartialEq, Eq)]
struct Name<'a> {
    repository: &'a str,
    tag: Option<&'a str>,
    digest: Option<&'a str>,
}

impl<'a> Name<'a> {
    fn parse(reference: &'a str) -> Self {
        let (rest, digest) = match reference.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (reference, None),
        };
        // A colon before the last slash belongs to a registry's port.
        match rest.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')) {
            Some((repository, tag)) => Self { repository, tag: Some(tag), digest },
            None => Self { repository: rest, tag: None, digest },
        }
    }

    /// The name of exactly this image.
    fn pinned(&self, digest: Option<&str>) -> String {
        match (digest, self.tag) {
            (Some(digest), _) => format!("{}@{digest}", self.repository),
            (None, Some(tag)) => format!("{}:{tag}", self.repository),
            (None, None) => format!("{}:latest", self.repository),
        }
    }

    /// As in Docker's names: a first part with a dot or a colon is a registry.
    fn registry(&self) -> &'a str {
        let first = self.repository.split_once('/').map(|(first, _)| first);
        first.filter(|first| first.contains(['.', ':']) || *first == "localhost").unwrap_or(HUB)
    }

    /// With its registry: engines complete short names differently.
    fn full_repository(&self) -> String {
        match (self.registry(), self.repository.contains('/')) {
            (HUB, _) if self.repository.starts_with(HUB) => self.repository.to_owned(),
            (HUB, true) => format!("{HUB}/{}", self.repository),
            (HUB, false) => format!("{HUB}/library/{}", self.repository),
            _ => self.repository.to_owned(),
        }
    }
}

/// Credentials of `docker login` for a registry, if stored in its file. Helper programs aren't used.
fn credentials(registry: &str) -> Option<DockerCredentials> {
    #[derive(Deserialize)]
    struct Config {
        #[serde(default)]
        auths: HashMap<String, Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        auth: Option<String>,
    }
    let folder = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from);
    let folder = folder.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".docker")))?;
    let config: Config = muster_json::from_slice(&fs::read(folder.join("config.json")).ok()?).ok()?;
    let name = if registry == HUB { HUB_CONFIGURED } else { registry };
    let bytes = BASE64_STANDARD.decode(config.auths.get(name)?.auth.as_ref()?).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (username, password) = text.split_once(':')?;
    Some(DockerCredentials {
        username: Some(username.to_owned()),
        password: Some(password.to_owned()),
        serveraddress: Some(name.to_owned()),
        ..DockerCredentials::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_docker_reads_it() {
        let cases = [
            ("agent", "docker.io/library/agent", "docker.io", "agent:latest"),
            ("a/b:1", "docker.io/a/b", "docker.io", "a/b:1"),
            ("host:5000/a/b", "host:5000/a/b", "host:5000", "host:5000/a/b:latest"),
            ("localhost/a", "localhost/a", "localhost", "localhost/a:latest"),
            ("ghcr.io/a/b:1@sha256:0", "ghcr.io/a/b", "ghcr.io", "ghcr.io/a/b@sha256:0"),
        ];
        for (reference, full, registry, pinned) in cases {
            let name = Name::parse(reference);
            let said = (name.full_repository(), name.registry(), name.pinned(name.digest));
            assert_eq!(said, (full.to_owned(), registry, pinned.to_owned()), "{reference}");
        }
    }
}
