//! Whom the host believes to be its control plane: a server with a certificate of the system's authorities, or of those
//! in `ca.pem` of the host's folder, which `--ca-file` puts there.

use std::{path::Path, sync::Arc};

use muster_certificates::FileError;
use rustls::ClientConfig;

use crate::folder::{Folder, FolderError};

pub struct Trust {
    /// TLS towards the control plane.
    pub tls: Arc<ClientConfig>,
    /// What was read from the owner's file: a pipe, such as `/dev/stdin`, can be read only once.
    given: Option<Vec<u8>>,
}

impl Trust {
    /// `given` takes the place of the folder's authorities.
    pub fn read(folder: &Folder, given: Option<&Path>) -> Result<Self, FileError> {
        let kept = folder.authorities();
        let file = given.or_else(|| kept.exists().then_some(kept.as_path()));
        let read = file.map(muster_certificates::read_with_text).transpose()?;
        let (more, pem) = read.unwrap_or_default();
        let tls = muster_certificates::client_config(muster_certificates::with_system(&more));
        Ok(Self { tls: Arc::new(tls), given: given.map(|_| pem) })
    }

    /// Keeps the given authorities in the folder, for later commands.
    pub fn keep(&self, folder: &Folder) -> Result<(), FolderError> {
        self.given.as_deref().map_or(Ok(()), |pem| folder.keep_authorities(pem))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use muster_testing::servers::certificates;

    use super::*;

    #[test]
    fn what_was_read_is_kept_without_reading_again() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let given = dir.path().join("given.pem");
        fs::write(&given, &certificates().root).unwrap();
        let trust = Trust::read(&folder, Some(&given)).unwrap();
        fs::remove_file(&given).unwrap();
        trust.keep(&folder).unwrap();
        assert_eq!(fs::read_to_string(folder.authorities()).unwrap(), certificates().root);
        // The folder's own are not written again.
        let later = Trust::read(&folder, None).unwrap();
        fs::remove_file(folder.authorities()).unwrap();
        later.keep(&folder).unwrap();
        assert!(!folder.authorities().exists());
    }
}
