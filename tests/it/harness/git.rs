//! A git server: `git http-backend` behind HTTP, for those who know the password.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use tokio::io::AsyncWriteExt;

use super::served;

/// The server.
pub struct GitServer {
    /// Its port on the loopback interface.
    pub port: u16,
    folder: tempfile::TempDir,
}

impl GitServer {
    /// Serves one repository, `work.git`, whose branch `main` has these files, to anyone who gives this password.
    pub async fn start(files: &[(&str, &str)], password: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let first = folder.path().join("first");
        std::fs::create_dir(&first).unwrap();
        for (name, text) in files {
            std::fs::write(first.join(name), text).unwrap();
        }
        git(&first, &["init", "--quiet", "--initial-branch=main"]);
        git(&first, &["add", "."]);
        git(&first, &["commit", "--quiet", "--message=first"]);
        git(folder.path(), &["clone", "--quiet", "--bare", "first", "work.git"]);
        git(&folder.path().join("work.git"), &["config", "http.receivepack", "true"]);
        let wanted = format!("Basic {}", STANDARD.encode(format!("x:{password}")));
        let state = Arc::new((folder.path().to_owned(), wanted));
        let address = served(Router::new().fallback(answer).with_state(state)).await;
        Self { port: address.rsplit(':').next().unwrap().parse().unwrap(), folder }
    }

    /// The output of git for the repository.
    pub fn git(&self, arguments: &[&str]) -> String {
        git(&self.folder.path().join("work.git"), arguments)
    }
}

/// Runs git as someone, without the machine's own configuration.
fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]);
    command.args(arguments).current_dir(folder);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

async fn answer(State(state): State<Arc<(PathBuf, String)>>, request: Request) -> Response {
    let (folder, wanted) = &*state;
    let (parts, body) = request.into_parts();
    let header =
        |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if header("authorization") != wanted {
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Basic realm=\"git\"")])
            .into_response();
    }
    let body = axum::body::to_bytes(body, 64 * 1024 * 1024).await.unwrap();
    let mut program = tokio::process::Command::new("git");
    program.arg("http-backend").env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    program.env("GIT_PROJECT_ROOT", folder).env("GIT_HTTP_EXPORT_ALL", "1").env("REMOTE_USER", "x");
    program.env("PATH_INFO", parts.uri.path()).env("QUERY_STRING", parts.uri.query().unwrap_or_default());
    program.env("REQUEST_METHOD", parts.method.as_str()).env("CONTENT_TYPE", header("content-type"));
    program
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("CONTENT_LENGTH", body.len().to_string());
    program.env("GIT_PROTOCOL", header("git-protocol")).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", folder);
    program.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = program.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    #[expect(clippy::disallowed_methods, reason = "it belongs to no service")]
    tokio::task::spawn(async move { stdin.write_all(&body).await });
    let output = child.wait_with_output().await.unwrap();
    told(&output.stdout)
}

/// The answer that a CGI program prints.
fn told(output: &[u8]) -> Response {
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let (mut status, mut headers) = (StatusCode::OK, HeaderMap::new());
    for line in std::str::from_utf8(&output[..end]).unwrap().lines() {
        let (name, value) = line.split_once(": ").unwrap();
        if name.eq_ignore_ascii_case("status") {
            status = value[..3].parse().unwrap();
        } else {
            let name: header::HeaderName = name.parse().unwrap();
            headers.insert(name, value.parse().unwrap());
        }
    }
    (status, headers, Body::from(Bytes::copy_from_slice(&output[end + 4..]))).into_response()
}
