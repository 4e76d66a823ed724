//! Tests of WebDAV against WsgiDAV, with rclone editing beside us.

use std::{
    fs,
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use muster_channels::{ActionCall, Attachment, Choice, DriveLogin, Failure, Link, Part, Transport};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::{
    discord::{listen, outwait},
    drive::{folder, folder_in, looked, next_one},
    peers::{on_this_machine, output, peer},
    support::{Names, SinkCall, TestSink, network, part, serve, text},
};

/// A WebDAV server for the user agent with the password "secret", and the folder that it shows.
struct Server {
    url: String,
    place: TempDir,
    _process: Child,
}

impl Server {
    async fn start() -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("Shared files/2026")).unwrap();
        let mut process = peer("dav.py").arg(place.path()).stderr(Stdio::null()).spawn().unwrap();
        let first =
            BufReader::new(process.stdout.take().unwrap()).lines().next_line().await.unwrap().unwrap();
        let url = format!("http://127.0.0.1:{}/dav", first.strip_prefix("listening ").unwrap());
        Self { url, place, _process: process }
    }

    fn write(&self, path: &str, content: &str) {
        fs::write(self.path(path), content).unwrap();
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.place.path().join("Shared files").join(path)
    }

    /// The names in the folder, in their order.
    fn names(&self) -> Vec<String> {
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<String> = fs::read_dir(self.path("")).unwrap().map(name).collect();
        names.sort();
        names
    }
}

fn login(url: &str, pass: &str) -> DriveLogin {
    DriveLogin::WebDav { url: url.to_owned(), user: "agent".to_owned(), pass: pass.into() }
}

fn shared(server: &Server) -> Arc<dyn Transport> {
    folder(login(&server.url, "secret"), "Shared files", None)
}

/// Copies a file by rclone.
async fn rclone(server: &Server, from: &Path, to: &str) {
    let mut command = on_this_machine(Command::new("rclone"));
    let remote = format!(":webdav,url='{}',vendor=other,user=agent:Shared files/{to}", server.url);
    let hidden = output(obscure(), "").await;
    command.args(["--config", "/dev/null", "--webdav-pass", hidden.trim(), "copyto"]).arg(from).arg(remote);
    output(command, "").await;
}

/// rclone takes passwords in a form of its own.
fn obscure() -> Command {
    let mut command = on_this_machine(Command::new("rclone"));
    command.args(["obscure", "secret"]);
    command
}

#[tokio::test]
async fn files_of_others_are_messages() {
    let server = Server::start().await;
    server.write("old.txt", "old");
    let drive = shared(&server);
    drive.probe().await.unwrap();
    let (sink, mut calls) = TestSink::new(99);
    let cursor = listen(&*drive, None, &sink, async {
        looked(&mut calls).await;
        let local = server.place.path().join("R&D ü.txt");
        fs::write(&local, "by rclone").unwrap();
        rclone(&server, &local, "2026/R&D ü.txt").await;
        let (new, _) = next_one(&mut calls).await;
        assert_eq!(new.text, "[A new file of Reports came with this message: R&D ü.txt]");
        assert_eq!((new.origin.id.as_str(), new.thread.title.as_deref()), ("folder", Some("R&D ü.txt")));
        let mut read = Vec::new();
        drive.fetch(&new.files[0], &mut read, 100).await.unwrap();
        assert_eq!(read, b"by rclone");
        assert!(matches!(drive.fetch(&new.files[0], &mut read, 3).await, Err(Failure::Refused(_))));
        // What is still written, and what programs keep for themselves.
        server.write(".~lock.plan.txt#", "");
        server.write("plan.txt.part", "half");
        server.write("old.txt", "another content");
        let (changed, cursor) = next_one(&mut calls).await;
        assert_eq!(changed.text, "[A changed file of Reports came with this message: old.txt]");
        cursor
    })
    .await;
    fs::rename(server.path("plan.txt.part"), server.path("plan.txt")).unwrap();
    fs::remove_file(server.path("old.txt")).unwrap();
    let (sink, mut calls) = TestSink::new(99);
    listen(&*drive, cursor, &sink, async {
        assert_eq!(next_one(&mut calls).await.0.thread.target, "plan.txt");
        server.write("old.txt", "another content");
        let (again, _) = next_one(&mut calls).await;
        assert!(again.text.starts_with("[A new file of"), "{}", again.text);
    })
    .await;
}

#[tokio::test]
async fn our_files_are_written_once_and_replace_none() {
    let server = Server::start().await;
    let drive = shared(&server);
    let answer = text("**Read**");
    let sent = drive.send(&part(&answer, "plan.txt")).await.unwrap().vendor_id.unwrap();
    assert!(sent.starts_with("plan.txt - answer-") && sent.len() == 37, "{sent}");
    // An earlier attempt broke off.
    server.write(&sent, "**Re");
    drive.send(&part(&answer, "plan.txt")).await.unwrap();
    assert_eq!(fs::read_to_string(server.path(&sent)).unwrap(), "**Read**");
    let (sink, mut calls) = TestSink::new(99);
    listen(&*drive, None, &sink, async {
        looked(&mut calls).await;
        let file =
            Attachment { name: "../b.txt".into(), media_type: "text/plain".into(), content: "b".into() };
        let (none, files) = (text(""), [file]);
        drive.send(&Part { id: "d-2", files: &files, ..part(&none, "plan.txt") }).await.unwrap();
        let arguments = json!({"name": "c.md", "text": "# C"});
        let call =
            ActionCall { id: "d-3", name: "put_file", arguments: &arguments, target: "", received: &[] };
        let put = drive.act(&call).await.unwrap();
        assert_eq!(drive.act(&call).await.unwrap(), put);
        let other = drive.act(&ActionCall { id: "d-4", ..call }).await.unwrap();
        assert_ne!(other, put);
        let names = server.names();
        assert_eq!(names.len(), 5, "{names:?}");
        assert!(drive.traits().action("comment").is_none());
        // None of them comes in, unless a person changes it.
        server.write("theirs.txt", "theirs");
        assert_eq!(next_one(&mut calls).await.0.thread.target, "theirs.txt");
        server.write(&sent, "**Read** and corrected");
        assert_eq!(next_one(&mut calls).await.0.thread.target, sent);
    })
    .await;
}

#[tokio::test]
async fn wrong_logins_paths_and_addresses() {
    let server = Server::start().await;
    let probe = async |url: &str, pass: &str, path: &str| folder(login(url, pass), path, None).probe().await;
    assert!(matches!(probe(&server.url, "wrong", "Shared files").await, Err(Failure::Credentials(_))));
    assert!(matches!(probe(&server.url, "secret", "None").await, Err(Failure::TargetGone(_))));
    server.write("a.txt", "a");
    assert!(matches!(probe(&server.url, "secret", "Shared files/a.txt").await, Err(Failure::Refused(_))));
    assert!(probe(&server.url, "secret", "/../Shared files/").await.is_ok());
    assert!(matches!(probe("http://192.168.7.7/dav", "secret", "a").await, Err(Failure::NotPublic(_))));
    // A password would be readable on its way.
    let names = Names(vec![("dav.test", vec!["203.0.112.1".parse().unwrap()])]);
    let readable = folder_in(&network(&[], names, None), login("http://dav.test/dav", "secret"), "a");
    let refused = readable.probe().await;
    assert!(
        matches!(&refused, Err(Failure::Refused(cause)) if cause.as_str().contains("https")),
        "{refused:?}"
    );
    let gone = folder(login(&server.url, "secret"), "None", None);
    assert!(matches!(gone.listen(None, &TestSink::new(9).0).await, Err(Failure::Gone(_))));
    let found = shared(&server).choices(None).await.unwrap();
    let folder = |id: &str, name: &str| Choice { id: id.to_owned(), name: name.to_owned() };
    assert_eq!(found, [folder("Shared files", "Shared files")]);
    let found = shared(&server).choices(Some("Shared files")).await.unwrap();
    assert_eq!(found, [folder("Shared files/2026", "2026")]);
}

/// Answers with this status, or not at all.
async fn misbehaves(State(status): State<Arc<Mutex<Option<u16>>>>) -> Response {
    let status = *status.lock().unwrap();
    let Some(status) = status else { return std::future::pending().await };
    let headers: HeaderMap = [("retry-after".parse().unwrap(), "7".parse().unwrap())].into_iter().collect();
    (StatusCode::from_u16(status).unwrap(), headers, "<html>").into_response()
}

#[tokio::test]
async fn servers_that_limit_fail_or_hang() {
    let status = Arc::new(Mutex::new(Some(429)));
    let router = Router::new().fallback(misbehaves).with_state(Arc::clone(&status));
    let drive = folder(login(&format!("http://{}/dav", serve(router).await), "secret"), "a", None);
    let answer = text("Hello");
    let send = async || drive.send(&part(&answer, "a.txt")).await;
    let limited = send().await;
    let Err(Failure::RateLimited { wait, .. }) = limited else { panic!("{limited:?}") };
    assert_eq!(wait.as_secs(), 7);
    let kind = |failure: &Failure| match failure {
        Failure::NotSent(_) => "not sent",
        Failure::Refused(_) => "refused",
        Failure::Unknown(_) => "unknown",
        _ => "another",
    };
    let expected =
        [(302, "refused"), (403, "refused"), (423, "not sent"), (500, "unknown"), (507, "not sent")];
    for (code, expected) in expected {
        *status.lock().unwrap() = Some(code);
        let failure = send().await.unwrap_err();
        assert_eq!(kind(&failure), expected, "{code}: {failure:?}");
    }
    // A page instead of a listing.
    *status.lock().unwrap() = Some(207);
    assert!(matches!(drive.probe().await, Err(Failure::NotSent(_))));
    *status.lock().unwrap() = None;
    let (sink, mut calls) = TestSink::new(9);
    let down = async {
        match calls.recv().await.unwrap() {
            SinkCall::Link(link) => format!("{link:?}"),
            other => panic!("{other:?}"),
        }
    };
    let down = outwait(listen(&*drive, None, &sink, down), || true).await;
    assert!(down.contains("no answer in time"), "{down}");
}

/// Lists a file with an ETag of 6 MiB in each folder.
async fn overflows(uri: Uri) -> Response {
    let (path, etag) = (uri.path(), "e".repeat(6 << 20));
    let listing = format!(
        "<multistatus xmlns=\"DAV:\"><response><href>{path}</href></response><response><href>{path}a.txt</href>\
         <propstat><prop><getetag>{etag}</getetag></prop><status>HTTP/1.1 200 OK</status></propstat></response>\
         </multistatus>"
    );
    (StatusCode::MULTI_STATUS, listing).into_response()
}

#[tokio::test]
async fn a_server_can_not_fill_the_memory() {
    let address = serve(Router::new().fallback(overflows)).await;
    let drive = folder(login(&format!("http://{address}/dav"), "secret"), "a", None);
    let ended = drive.listen(None, &TestSink::new(9).0).await;
    assert!(matches!(&ended, Err(Failure::Refused(cause)) if cause.as_str().contains("5,000")), "{ended:?}");
}

/// Lists a file, and a folder into which the account may not look.
async fn is_partly_closed(uri: Uri) -> Response {
    let path = uri.path();
    if path.ends_with("/closed/") {
        return StatusCode::FORBIDDEN.into_response();
    }
    let listing = format!(
        "<multistatus xmlns=\"DAV:\"><response><href>{path}</href></response><response><href>{path}a.txt</href>\
         </response><response><href>{path}closed/</href><propstat><prop><resourcetype><collection/></resourcetype>\
         </prop><status>HTTP/1.1 200 OK</status></propstat></response></multistatus>"
    );
    (StatusCode::MULTI_STATUS, listing).into_response()
}

#[tokio::test]
async fn a_closed_folder_does_not_close_the_others() {
    let address = serve(Router::new().fallback(is_partly_closed)).await;
    let drive = folder(login(&format!("http://{address}/dav"), "secret"), "a", None);
    let (sink, mut calls) = TestSink::new(9);
    assert!(listen(&*drive, None, &sink, looked(&mut calls)).await.is_some());
}

#[tokio::test]
async fn files_of_a_storage_that_was_away_are_not_new() {
    let server = Server::start().await;
    server.write("a.txt", "a");
    server.write("b.txt", "b");
    let drive = shared(&server);
    let (sink, mut calls) = TestSink::new(99);
    let mut cursor = listen(&*drive, None, &sink, looked(&mut calls)).await;
    let (there, away) = (server.path(""), server.place.path().join("away"));
    fs::rename(&there, &away).unwrap();
    fs::create_dir(&there).unwrap();
    let (sink, mut calls) = TestSink::new(99);
    listen(&*drive, cursor.clone(), &sink, async {
        loop {
            match calls.recv().await.unwrap() {
                SinkCall::Admitted(_, later) => cursor = later,
                SinkCall::Link(Link::Up) => break,
                other => panic!("{other:?}"),
            }
        }
    })
    .await;
    fs::remove_dir(&there).unwrap();
    fs::rename(&away, &there).unwrap();
    let (sink, mut calls) = TestSink::new(99);
    listen(&*drive, cursor, &sink, async {
        for name in ["c.txt", "d.txt"] {
            server.write(name, name);
            assert_eq!(next_one(&mut calls).await.0.thread.target, name);
        }
    })
    .await;
}
