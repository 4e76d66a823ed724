//! Tests of Google Drive against its fake.

use std::{net::SocketAddr, process::Stdio, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use futures::FutureExt;
use jiff::Timestamp;
use muster_channels::{
    ActionCall, Attachment, Choice, Config, Cursor, DriveConfig, DriveLogin, Event, Failure, Files, Inbound,
    Link, Network, Part, Proof, Transport, oauth::TokenSource, open,
};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::{
    discord::{listen, outwait},
    fakes::{
        self,
        drive::{Shared, TOKEN, refusal, service_account},
    },
    peers::on_this_machine,
    support::{SinkCall, TestSink, open_network, part, text},
};

/// A folder with this login.
pub fn folder(login: DriveLogin, id: &str, at: Option<SocketAddr>) -> Arc<dyn Transport> {
    folder_in(&open_network(at), login, id)
}

/// The same, over another network.
pub fn folder_in(network: &Network, login: DriveLogin, id: &str) -> Arc<dyn Transport> {
    open(Config::Drive(config(login, id, "key")), network)
}

fn config(login: DriveLogin, id: &str, key: &str) -> DriveConfig {
    DriveConfig {
        login,
        folder: id.to_owned(),
        folder_name: Some("Reports".to_owned()),
        id_key: key.into(),
        poll: Duration::from_millis(20),
    }
}

/// A folder at Google, as a person's account.
pub fn at_google(address: SocketAddr, token: &'static str) -> Arc<dyn Transport> {
    folder(account(token), "folder1", Some(address))
}

fn account(token: &'static str) -> DriveLogin {
    let tokens: TokenSource =
        Arc::new(move || async move { Ok::<SecretString, Failure>(token.into()) }.boxed());
    DriveLogin::Google(Some(tokens))
}

async fn drive() -> (Arc<dyn Transport>, Shared) {
    let (address, fake) = fakes::drive::drive().await;
    (at_google(address, TOKEN), fake)
}

/// Waits for the first look.
pub async fn looked(calls: &mut UnboundedReceiver<SinkCall>) -> Option<Cursor> {
    loop {
        if let SinkCall::Admitted(events, cursor) = calls.recv().await.unwrap() {
            assert!(events.is_empty(), "{events:?}");
            return cursor;
        }
    }
}

/// The next messages, with the position after them.
pub async fn next(calls: &mut UnboundedReceiver<SinkCall>) -> (Vec<Inbound>, Option<Cursor>) {
    loop {
        let SinkCall::Admitted(events, cursor) = calls.recv().await.unwrap() else { continue };
        let message = |event| match event {
            Event::Message(message) => *message,
            other => panic!("{other:?}"),
        };
        let messages: Vec<Inbound> = events.into_iter().map(message).collect();
        if !messages.is_empty() {
            return (messages, cursor);
        }
    }
}

/// The only message of the next ones.
pub async fn next_one(calls: &mut UnboundedReceiver<SinkCall>) -> (Inbound, Option<Cursor>) {
    let (mut messages, cursor) = next(calls).await;
    assert_eq!(messages.len(), 1, "{messages:?}");
    (messages.remove(0), cursor)
}

async fn bytes(transport: &dyn Transport, message: &Inbound) -> String {
    let mut read = Vec::new();
    transport.fetch(&message.files[0], &mut read, 100).await.unwrap();
    String::from_utf8(read).unwrap()
}

#[tokio::test]
async fn new_and_changed_files_are_messages() {
    let (drive, fake) = drive().await;
    fake.lock().unwrap().puts("F1", "old.txt", "folder1", "old");
    let (sink, mut calls) = TestSink::new(99);
    let cursor = listen(&*drive, None, &sink, async {
        looked(&mut calls).await;
        fake.lock().unwrap().puts("F2", "plan.txt", "folder2", "new");
        let (new, _) = next_one(&mut calls).await;
        assert_eq!(
            new.text,
            "[A new file of Reports came with this message: plan.txt]\n\nhttps://drive.test/F2"
        );
        let place = (new.origin.id.as_str(), new.origin.place.as_deref());
        assert_eq!((place, new.proof), (("ada@example.test", Some("folder")), Proof::Signed));
        assert_eq!((new.thread.target.as_str(), bytes(&*drive, &new).await.as_str()), ("F2", "new"));
        fake.lock().unwrap().puts("F2", "plan.txt", "folder2", "newer");
        let (changed, cursor) = next_one(&mut calls).await;
        assert!(changed.text.starts_with("[A changed file of Reports"), "{}", changed.text);
        assert_eq!((&changed.thread, bytes(&*drive, &changed).await.as_str()), (&new.thread, "newer"));
        // Bytes of a later version, or of another author, do not pass for those of this message.
        let mut read = Vec::<u8>::new();
        assert!(matches!(drive.fetch(&new.files[0], &mut read, 100).await, Err(Failure::NotSent(_))));
        let theirs = json!({"displayName": "Eve", "me": false, "permissionId": "6"});
        for file in &mut fake.lock().unwrap().files {
            file["lastModifyingUser"] = theirs.clone();
        }
        assert!(matches!(drive.fetch(&changed.files[0], &mut read, 100).await, Err(Failure::NotSent(_))));
        cursor
    })
    .await;
    // What came while nothing listened, once.
    {
        let mut fake = fake.lock().unwrap();
        fake.puts("F3", "missed.txt", "folder1", "missed");
        fake.forget_positions();
    }
    let (sink, mut calls) = TestSink::new(99);
    listen(&*drive, cursor, &sink, async {
        assert_eq!(next_one(&mut calls).await.0.thread.target, "F3");
        // A position that Google has forgotten, in the middle of listening.
        fake.lock().unwrap().puts("F4", "late.txt", "folder1", "late");
        fake.lock().unwrap().forget_positions();
        assert_eq!(next_one(&mut calls).await.0.thread.target, "F4");
    })
    .await;
}

#[tokio::test]
async fn a_file_that_is_not_stored_comes_again() {
    let (drive, fake) = drive().await;
    // The sink stores the first look, and no message.
    let (sink, mut calls) = TestSink::new(1);
    let putting = async {
        let cursor = looked(&mut calls).await;
        fake.lock().unwrap().puts("F1", "a.txt", "folder1", "a");
        cursor
    };
    let (ended, cursor) = tokio::join!(drive.listen(None, &sink), putting);
    assert!(matches!(ended, Err(Failure::NotSent(_))), "{ended:?}");
    let (sink, mut calls) = TestSink::new(9);
    let (again, _) = listen(&*drive, cursor, &sink, next_one(&mut calls)).await;
    assert_eq!(again.thread.target, "F1");
}

#[tokio::test]
async fn comments_become_threads() {
    let (drive, fake) = drive().await;
    fake.lock().unwrap().puts("F1", "plan.txt", "folder1", "plan");
    let (sink, mut calls) = TestSink::new(99);
    listen(&*drive, None, &sink, async {
        looked(&mut calls).await;
        fake.lock().unwrap().says("F1", "Bob, look");
        let (aside, _) = next_one(&mut calls).await;
        assert_eq!(
            (aside.is_addressed, aside.origin.id.as_str(), aside.proof),
            (false, "name:Ada", Proof::None)
        );
        let id = fake.lock().unwrap().says("F1", "@agent@example.test check it");
        let (asked, _) = next_one(&mut calls).await;
        assert!(asked.is_addressed);
        let target = format!("F1/{id}");
        assert_eq!((&asked.thread.target, asked.key.as_ref()), (&target, Some(&id)));
        let answer = text("Right");
        let (refs, written) = ([id.clone()], part(&answer, &target));
        let receipt = drive.send(&Part { refs: &refs, ..written.clone() }).await.unwrap();
        // The response is lost, and the answer sent again.
        assert_eq!(drive.send(&Part { refs: &refs, ..written.clone() }).await.unwrap(), receipt);
        // Another answer with the same text.
        let refs = [id.clone(), receipt.vendor_id.unwrap()];
        drive.send(&Part { refs: &refs, ..written }).await.unwrap();
        assert_eq!(fake.lock().unwrap().sent(), ["Right", "Right"]);
        fake.lock().unwrap().replies("F1", &id, "Thank you");
        let (reply, _) = next_one(&mut calls).await;
        assert_eq!(
            (reply.is_addressed, reply.thread, reply.text.as_str()),
            (true, asked.thread, "Thank you")
        );
        assert_eq!(reply.context, "");
    })
    .await;
}

#[tokio::test]
async fn answers_to_files_are_comments_and_files_are_put_once() {
    let (drive, fake) = drive().await;
    fake.lock().unwrap().puts("F1", "plan.txt", "folder1", "plan");
    let (sink, mut calls) = TestSink::new(99);
    listen(&*drive, None, &sink, async {
        looked(&mut calls).await;
        let answer = text("Read");
        let receipt = drive.send(&part(&answer, "F1")).await.unwrap();
        let comment = receipt.vendor_id.unwrap();
        assert_eq!(receipt.target.as_deref(), Some(format!("F1/{comment}").as_str()));
        let (none, content) = (text(""), "a\r\n--b\r\n");
        let file =
            Attachment { name: "b.txt".into(), media_type: "text/plain".into(), content: content.into() };
        let files = [file];
        let sending = Part { id: "d-2", files: &files, ..part(&none, "F1") };
        let put = drive.send(&sending).await.unwrap();
        assert_eq!(drive.send(&sending).await.unwrap(), put);
        let arguments = json!({"name": "c.md", "text": "# C"});
        let call =
            ActionCall { id: "d-3", name: "put_file", arguments: &arguments, target: "F1", received: &[] };
        drive.act(&call).await.unwrap();
        let arguments = json!({"text": "Look here"});
        let call = ActionCall { id: "d-4", name: "comment", arguments: &arguments, ..call };
        assert_eq!(drive.act(&call).await.unwrap().target, None);
        drive.act(&ActionCall { id: "d-5", ..call }).await.unwrap();
        // None of it comes in.
        fake.lock().unwrap().puts("F2", "theirs.txt", "folder1", "theirs");
        assert_eq!(next_one(&mut calls).await.0.thread.target, "F2");
        let fake = fake.lock().unwrap();
        assert_eq!(fake.bodies("POST upload").len(), 2);
        assert_eq!(fake.contents[put.vendor_id.as_ref().unwrap()], content.as_bytes());
        assert_eq!(fake.sent(), ["Read", "Look here", "Look here"]);
    })
    .await;
    assert_eq!(drive.traits().files, Files::Apart);
}

#[tokio::test]
async fn only_what_a_delivery_wrote_itself_passes_for_it() {
    let (address, fake) = fakes::drive::drive().await;
    let drive = at_google(address, TOKEN);
    fake.lock().unwrap().puts("F1", "plan.txt", "folder1", "plan");
    let answer = text("Done");
    let written = part(&answer, "F1");
    let receipt = drive.send(&written).await.unwrap();
    assert_eq!(drive.send(&written).await.unwrap(), receipt);
    // The same text of a conversation that does not know the first.
    let later = Part { written_at: "2101-01-01T00:00:00Z".parse().unwrap(), ..written };
    assert_ne!(drive.send(&later).await.unwrap(), receipt);
    assert_eq!(fake.lock().unwrap().sent(), ["Done", "Done"]);
    // Another installation has a delivery with the same id.
    let others =
        open(Config::Drive(config(account(TOKEN), "folder1", "other")), &open_network(Some(address)));
    let arguments = json!({"name": "c.md", "text": "# C"});
    let call = ActionCall { id: "d-3", name: "put_file", arguments: &arguments, target: "F1", received: &[] };
    let put = drive.act(&call).await.unwrap();
    assert_ne!(others.act(&call).await.unwrap(), put);
    assert_eq!(drive.act(&call).await.unwrap(), put);
}

#[tokio::test]
async fn the_root_of_another_account_is_another_folder() {
    let (address, fake) = fakes::drive::drive().await;
    let drive = folder(account(TOKEN), "root", Some(address));
    let (sink, mut calls) = TestSink::new(99);
    let cursor = listen(&*drive, None, &sink, looked(&mut calls)).await;
    {
        let mut fake = fake.lock().unwrap();
        fake.root = "root2";
        fake.puts("F1", "old.txt", "root", "old");
    }
    let (sink, mut calls) = TestSink::new(99);
    listen(&*drive, cursor, &sink, async {
        looked(&mut calls).await;
        fake.lock().unwrap().puts("F2", "new.txt", "root", "new");
        assert_eq!(next_one(&mut calls).await.0.thread.target, "F2");
    })
    .await;
}

#[tokio::test]
async fn folders_are_offered() {
    let (drive, _fake) = drive().await;
    let folder = |id: &str, name: &str| Choice { id: id.to_owned(), name: name.to_owned() };
    let (all, inner) =
        ([folder("folder1", "Reports"), folder("folder2", "2026")], [folder("folder2", "2026")]);
    assert_eq!(drive.choices(None).await.unwrap(), all);
    assert_eq!(drive.choices(Some("folder1")).await.unwrap(), inner);
    assert!(matches!(drive.choices(Some("x' or 'y")).await, Err(Failure::Refused(_))));
    let identity = drive.probe().await.unwrap();
    assert_eq!(
        (identity.handle.as_deref(), &identity.self_ids[..]),
        (Some("agent@example.test"), &["9".to_owned()][..])
    );
}

#[tokio::test]
async fn revoked_limited_and_missing() {
    let (drive, fake) = drive().await;
    let answers = |some: &[(u16, Value)]| fake.lock().unwrap().answers.extend(some.iter().cloned());
    answers(&[refusal(401, "authError", "Invalid Credentials")]);
    let ended = drive.listen(None, &TestSink::new(9).0).await;
    assert!(matches!(ended, Err(Failure::Credentials(_))), "{ended:?}");
    answers(&[(200, json!({})), refusal(404, "notFound", "File not found: .")]);
    let ended = drive.listen(None, &TestSink::new(9).0).await;
    assert!(matches!(ended, Err(Failure::Gone(_))), "{ended:?}");
    answers(&[refusal(403, "userRateLimitExceeded", "User Rate Limit Exceeded")]);
    let text = text("Hello");
    let limited = drive.send(&part(&text, "F1")).await;
    assert!(matches!(limited, Err(Failure::RateLimited { .. })), "{limited:?}");
    answers(&[refusal(403, "insufficientFilePermissions", "The user does not have sufficient permissions")]);
    assert!(matches!(drive.send(&part(&text, "F1")).await, Err(Failure::Refused(_))));
    assert!(matches!(drive.send(&part(&text, "F9")).await, Err(Failure::TargetGone(_))));
    answers(&[(500, json!({}))]);
    assert!(matches!(drive.send(&part(&text, "F1")).await, Err(Failure::Unknown(_))));
}

#[tokio::test]
async fn a_drive_that_hangs_is_asked_again() {
    let (drive, fake) = drive().await;
    let (sink, mut calls) = TestSink::new(99);
    let recovery = async {
        looked(&mut calls).await;
        fake.lock().unwrap().hangs = Some("GET changes");
        let down = loop {
            if let SinkCall::Link(Link::Down(cause)) = calls.recv().await.unwrap() {
                break cause.to_string();
            }
        };
        fake.lock().unwrap().hangs = None;
        fake.lock().unwrap().puts("F1", "a.txt", "folder1", "a");
        (down, next_one(&mut calls).await.0.thread.target)
    };
    let (down, target) =
        outwait(listen(&*drive, None, &sink, recovery), || fake.lock().unwrap().hangs.is_some()).await;
    assert!(down.contains("no answer in time"), "{down}");
    assert_eq!(target, "F1");
}

/// A program's output.
async fn openssl(arguments: &[&str]) -> String {
    let mut command = on_this_machine(tokio::process::Command::new("openssl"));
    let done = command.args(arguments).stdin(Stdio::null()).output().await.unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

#[tokio::test]
async fn a_service_account_signs_in_with_its_key() {
    let (address, fake) = fakes::drive::drive().await;
    let account = service_account().await;
    let login = || DriveLogin::GoogleService(account.as_str().into());
    let drive = folder(login(), "folder1", Some(address));
    drive.probe().await.unwrap();
    drive.choices(None).await.unwrap();
    let asked = fake.lock().unwrap().bodies("POST token");
    assert_eq!(asked.len(), 1, "the token is kept");
    let assertion = asked[0]["assertion"].as_str().unwrap().to_owned();
    let (signed, signature) = assertion.rsplit_once('.').unwrap();
    let claims: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(signed.split_once('.').unwrap().1).unwrap()).unwrap();
    let (from, now) = (claims["iat"].as_i64().unwrap(), Timestamp::now().as_second());
    assert_eq!((&claims["iss"], claims["exp"].as_i64()), (&json!("muster@project.test"), Some(from + 3600)));
    assert!((now - 400..now).contains(&from), "a clock may be ahead");
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let key: Value = serde_json::from_str(&account).unwrap();
    std::fs::write(path("key"), key["private_key"].as_str().unwrap()).unwrap();
    std::fs::write(path("signed"), signed).unwrap();
    std::fs::write(path("signature"), URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
    openssl(&["pkey", "-in", &path("key"), "-pubout", "-out", &path("public")]).await;
    let (public, signature, signed) = (path("public"), path("signature"), path("signed"));
    let files = ["-verify", &public, "-signature", &signature, &signed];
    let verified = openssl(&[&["dgst", "-sha256"], &files[..]].concat()).await;
    assert_eq!(verified.trim(), "Verified OK");
    fake.lock().unwrap().answers.push_back((400, json!({"error": "invalid_grant"})));
    let revoked = folder(login(), "folder1", Some(address)).probe().await;
    assert!(matches!(revoked, Err(Failure::Credentials(_))), "{revoked:?}");
    let wrong = folder(DriveLogin::GoogleService("{}".into()), "folder1", Some(address)).probe().await;
    assert!(matches!(wrong, Err(Failure::Credentials(_))), "{wrong:?}");
}
