//! Content for curl, git, npm and pip: files, a repository, and packages.

use std::{fs, path::Path, process::Command};

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use serde_json::json;

use crate::servers::{Body, Handler, body, plainly};

/// Serves the files of a folder.
pub fn files(folder: &Path) -> Handler {
    let folder = folder.to_owned();
    plainly(move |request| file(&folder, &request))
}

/// A file of a folder. A folder's own content is its `index`.
pub fn file(folder: &Path, request: &Request<Bytes>) -> Response<Body> {
    let asked = request.uri().path().trim_matches('/');
    let path = folder.join(asked);
    let path = if path.is_dir() { path.join("index") } else { path };
    let Ok(bytes) = fs::read(&path) else {
        return Response::builder().status(404).body(body("")).unwrap();
    };
    // pip accepts a list only with this type.
    let kind = match path.extension().and_then(|ending| ending.to_str()) {
        Some("whl") => Some("application/octet-stream"),
        _ if asked.contains("simple/") => Some("text/html"),
        _ => None,
    };
    let mut answer = Response::new(body(bytes));
    if let Some(kind) = kind {
        answer.headers_mut().insert("content-type", HeaderValue::from_static(kind));
    }
    answer
}

/// Runs a script in a folder.
fn makes(folder: &Path, script: &str) {
    let made = Command::new("sh").args(["-c", script]).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// Creates `repo.git`, whose `file` contains "hello".
pub fn repository(folder: &Path) {
    makes(
        folder,
        "set -e; export GIT_CONFIG_GLOBAL=/dev/null; git init -q work; cd work; echo hello > file; git add file; \
         git -c user.name=t -c user.email=t@example.org commit -qm one; cd ..; git clone -q --bare work repo.git; \
         cd repo.git; git update-server-info",
    );
}

/// Creates the package `demo`: in `npm`, with this address, and in `pypi`.
pub fn packages(folder: &Path, npm: &str) {
    makes(
        folder,
        "set -e; mkdir -p npm/demo package pypi/simple/demo demo demo-1.0.dist-info; \
         echo '{\"name\":\"demo\",\"version\":\"1.0.0\"}' > package/package.json; tar czf npm/demo.tgz package; \
         echo 'x = 1' > demo/__init__.py; \
         printf 'Metadata-Version: 2.1\\nName: demo\\nVersion: 1.0\\n' > demo-1.0.dist-info/METADATA; \
         printf 'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n' > demo-1.0.dist-info/WHEEL; \
         printf 'demo/__init__.py,,\\n' > demo-1.0.dist-info/RECORD; \
         python3 -c 'import zipfile,glob; z=zipfile.ZipFile(\"pypi/demo-1.0-py3-none-any.whl\",\"w\"); [z.write(f) for f in glob.glob(\"demo*/*\")]'; \
         echo '<a href=\"../../demo-1.0-py3-none-any.whl\">demo-1.0-py3-none-any.whl</a>' > pypi/simple/demo/index",
    );
    let listing = json!({
        "name": "demo", "dist-tags": { "latest": "1.0.0" },
        "versions": {
            "1.0.0": { "name": "demo", "version": "1.0.0", "dist": { "tarball": format!("{npm}/demo.tgz") } },
        },
    });
    fs::write(folder.join("npm/demo/index"), listing.to_string()).unwrap();
}
