//! The panel's files, and the addresses at which browsers may cache them forever.
//!
//! The build names its files without hashes, so that two branches change the same files. A hash of the whole panel goes
//! into the addresses here: `index.html` names `/assets/<hash>/…`, and the files name each other relatively.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use arc_swap::ArcSwap;
use bytes::Bytes;
use http::HeaderValue;
use rust_embed::{EmbeddedFile, RustEmbed};
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

/// The page that starts the panel.
const INDEX: &str = "index.html";
/// The renderer of the reference of `/v1`.
const RENDERER: &str = "assets/reference.js";

/// The committed build, also in debug builds.
#[derive(RustEmbed)]
#[folder = "panel/dist"]
struct Built;

pub(super) struct Asset {
    pub bytes: Bytes,
    pub media_type: HeaderValue,
    /// A hash of the content, for the `ETag`.
    pub digest: String,
    /// Compressed on first use; `None` if that saves nothing.
    pub brotli: OnceCell<Option<Bytes>>,
    /// The same, for clients without brotli.
    pub gzip: OnceCell<Option<Bytes>>,
}

impl Asset {
    pub fn new(name: &str, bytes: Bytes, digest: [u8; 32]) -> Arc<Self> {
        let guessed = mime_guess::from_path(name).first_or_octet_stream();
        let charset = if guessed.type_() == mime_guess::mime::TEXT { "; charset=utf-8" } else { "" };
        let media_type = HeaderValue::try_from(format!("{guessed}{charset}"));
        Arc::new(Self {
            bytes,
            media_type: media_type.unwrap_or(HeaderValue::from_static("application/octet-stream")),
            digest: hex::encode(&digest[..8]),
            brotli: OnceCell::new(),
            gzip: OnceCell::new(),
        })
    }
}

pub(super) struct Site {
    /// Identifies the build.
    pub hash: String,
    /// The page, with the addresses of this build.
    pub index: Arc<Asset>,
    /// The page of the reference of `/v1`, if the build has its renderer.
    pub reference: Option<Arc<Asset>>,
    files: BTreeMap<String, Arc<Asset>>,
}

/// A file's content and its SHA-256.
type Content = (Bytes, [u8; 32]);

impl Site {
    fn from_files(files: BTreeMap<String, Content>) -> anyhow::Result<Self> {
        let mut all = Sha256::new();
        for (name, (_, digest)) in &files {
            all.update(name.as_bytes());
            all.update([0]);
            all.update(digest);
        }
        let hash = hex::encode(&all.finalize()[..8]);
        let (index, _) = files.get(INDEX).with_context(|| format!("there is no {INDEX}"))?;
        let index = std::str::from_utf8(index).with_context(|| format!("{INDEX} is not UTF-8"))?;
        let page = |name: &str, text: &str| {
            let page = addressed(text, &hash);
            let digest = Sha256::digest(page.as_bytes()).into();
            Asset::new(name, page.into(), digest)
        };
        let index = page(INDEX, index);
        let has_renderer = files.contains_key(RENDERER);
        let reference = has_renderer.then(|| page("reference.html", include_str!("reference.html")));
        let files = files.into_iter().map(|(name, (bytes, digest))| {
            let asset = Asset::new(&name, bytes, digest);
            (name, asset)
        });
        Ok(Self { hash, index, reference, files: files.collect() })
    }

    fn built() -> anyhow::Result<Self> {
        let files = Built::iter().filter_map(|name| {
            let file = Built::get(&name)?;
            Some((name.into_owned(), (bytes_of(&file), file.metadata.sha256_hash())))
        });
        Self::from_files(files.collect())
    }

    fn in_folder(folder: &Path) -> anyhow::Result<Self> {
        let mut files = BTreeMap::new();
        read(folder, "", &mut files).with_context(|| format!("{} can't be read", folder.display()))?;
        Self::from_files(files).with_context(|| format!("{} is not a build of the panel", folder.display()))
    }

    /// The file with this path in the build.
    pub fn file(&self, name: &str) -> Option<Arc<Asset>> {
        self.files.get(name).map(Arc::clone)
    }

    /// The names of the files next to the page.
    pub fn root_files(&self) -> Vec<String> {
        let beside = |name: &&String| !name.contains(['/', '{', '}']) && *name != INDEX;
        self.files.keys().filter(beside).cloned().collect()
    }
}

/// The content of a built-in file, without a copy.
pub(super) fn bytes_of(file: &EmbeddedFile) -> Bytes {
    match &file.data {
        std::borrow::Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        std::borrow::Cow::Owned(bytes) => bytes.clone().into(),
    }
}

/// The page with this build's addresses in place of those that the build tool wrote.
fn addressed(page: &str, hash: &str) -> String {
    let address = format!("\"/assets/{hash}/");
    page.replace("\"./assets/", "\"/assets/").replace("\"/assets/", &address)
}

fn read(folder: &Path, prefix: &str, files: &mut BTreeMap<String, Content>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(|name| format!("{prefix}{name}")) else { continue };
        if entry.path().is_dir() {
            read(&entry.path(), &format!("{name}/"), files)?;
        } else {
            let bytes = fs::read(entry.path())?;
            let digest = Sha256::digest(&bytes).into();
            files.insert(name, (bytes.into(), digest));
        }
    }
    Ok(())
}

/// Where the panel comes from.
pub(super) struct Source {
    /// The folder that it is read from, for development.
    folder: Option<PathBuf>,
    site: ArcSwap<Site>,
}

impl Source {
    /// The built-in panel, or the one in this folder.
    pub fn open(folder: Option<&Path>) -> anyhow::Result<Self> {
        let site = match folder {
            Some(folder) => Site::in_folder(folder)?,
            None => Site::built()?,
        };
        Ok(Self { folder: folder.map(Path::to_owned), site: ArcSwap::from_pointee(site) })
    }

    /// The panel as it was when a page was last served.
    pub fn now(&self) -> Arc<Site> {
        self.site.load_full()
    }

    /// The current panel: a folder is read again.
    pub async fn newest(&self) -> anyhow::Result<Arc<Site>> {
        if let Some(folder) = self.folder.clone() {
            let site = tokio::task::spawn_blocking(move || Site::in_folder(&folder)).await??;
            self.site.store(Arc::new(site));
        }
        Ok(self.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_its_files_under_the_hash_of_the_build() {
        let page =
            r#"<link href="/assets/a.css"><script src="./assets/index.js"></script><a href="/o/assets/x">"#;
        let expected = r#"<link href="/assets/h/a.css"><script src="/assets/h/index.js"></script><a href="/o/assets/x">"#;
        assert_eq!(addressed(page, "h"), expected);
    }

    #[test]
    fn the_hash_covers_every_name_and_every_byte() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
            Site::in_folder(folder.path()).map(|site| site.hash)
        };
        assert!(write("assets/index.js", "1").is_err(), "no page");
        let hashes = [
            write("index.html", "<!doctype html>").unwrap(),
            write("assets/index.js", "2").unwrap(),
            write("icon.svg", "").unwrap(),
            write("assets/deep/x.js", "").unwrap(),
        ];
        let mut different = hashes.to_vec();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), 4);
        assert_eq!(write("assets/index.js", "2").unwrap(), hashes[3], "the same files, the same hash");
        assert_eq!(Site::in_folder(folder.path()).unwrap().root_files(), ["icon.svg"]);
    }

    #[test]
    fn the_built_panel_is_the_committed_one() {
        let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("panel/dist");
        assert_eq!(Site::built().unwrap().hash, Site::in_folder(&committed).unwrap().hash);
    }
}
