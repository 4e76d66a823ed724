//! Two running programs over one database, each with a policy folder of its own: an edit through one of them is live
//! on the other.

use std::{
    fs,
    time::{Duration, Instant, UNIX_EPOCH},
};

use muster::core::policy;
use serde_json::json;

use crate::harness::{Actor, Program, empty_database, is_postgres};

const LINE: &str = "mutation($o: Id!, $allow: Boolean!) { \
    allowPermission(orgId: $o, input: { role: OPERATOR, permission: \"conversation.view\", reason: \"on call\" }) \
        @include(if: $allow) { text } \
    resetPermission(orgId: $o, input: { role: OPERATOR, permission: \"conversation.view\", reason: \"no more\" }) \
        @skip(if: $allow) { text } }";

/// How long it takes until the answer has this status. The bound is for a machine with much else to do.
async fn until(actor: &Actor, path: &str, status: u16) -> Duration {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(10) {
        if actor.get(path).await.status == status {
            return began.elapsed();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{path} is never answered {status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_through_one_replica_is_live_on_the_other() {
    if !is_postgres() {
        // An SQLite database has one owner (`installation.rs`).
        return;
    }
    let shared = tempfile::tempdir().unwrap();
    let (url, keys) = (empty_database(shared.path()).await, shared.path().join("keys.toml"));
    let folders = ["one", "two"].map(|name| shared.path().join(name));
    let programs = folders.each_ref().map(|folder| {
        policy::write_defaults(folder).unwrap();
        Program::new(&[
            ("MUSTER_DATABASE_URL", &url),
            ("MUSTER_KEYS_FILE", keys.to_str().unwrap()),
            ("MUSTER_POLICY_DIR", folder.to_str().unwrap()),
            ("MUSTER_LOG", "off"),
        ])
    });
    let house = programs[0].house();
    let org = house.org.to_string();
    let json = |arguments: &[&str]| programs[0].json(arguments);
    let person =
        ["user", "create", "--email", "o@example.org", "--name", "O", "--password-stdin", "--confirmed"];
    programs[0].json_told(&person, "correct horse\n");
    json(&["member", "add", "--org", &org, "--email", "o@example.org", "--role", "OPERATOR"]);
    json(&["org", "create", "--name", "Other", "--owner-email", "s@example.org"]);
    let session =
        |email| json(&["session", "create", "--email", email])["access_token"].as_str().unwrap().to_owned();
    let [owner, operator, stranger] = ["a@example.org", "o@example.org", "s@example.org"].map(session);
    // What a process that was killed long ago has left, and what one has prepared just now.
    let [old, fresh] = [0x0123, 0x4567].map(|n| folders[0].join(format!("orgs/.new-{n:016x}")));
    fs::write(&fresh, "").unwrap();
    fs::File::create(&old).unwrap().set_modified(UNIX_EPOCH).unwrap();
    let [first, second] = programs.each_ref().map(Program::serve);
    let owner = first.actor(&house).with_bearer(owner);
    let operator = second.actor(&house).with_bearer(operator);
    let stranger = second.actor(&house).with_bearer(stranger);
    let path = format!("/v1/org/{org}/conversation?limit=10&offset=0");
    let files = folders.each_ref().map(|folder| folder.join(format!("orgs/{org}.csv")));

    assert_eq!(operator.get(&path).await.problem(), (403, "PERMISSION_DENIED"));
    for (allow, status) in [(true, 200), (false, 403)] {
        owner.gql(LINE, json!({ "o": house.org, "allow": allow })).await.data();
        let took = until(&operator, &path, status).await;
        println!("{status} on the other replica after {took:?}");
        let [here, there] = files.each_ref().map(|file| fs::read_to_string(file).ok());
        assert_eq!(here, there, "each folder has the file");
        assert_eq!(here.is_some(), allow);
        assert_eq!(stranger.get(&path).await.problem(), (403, "NOT_A_MEMBER"));
    }
    // A third process, which shares its folder with the second.
    let candidate = shared.path().join("candidate");
    fs::create_dir_all(candidate.join("orgs")).unwrap();
    let text = format!("p, OPERATOR, {org}, conversation.view, allow\n");
    fs::write(candidate.join(format!("orgs/{org}.csv")), &text).unwrap();
    let candidate = candidate.to_str().unwrap();
    programs[1].json(&[
        "policy",
        "publish",
        "--org",
        "House",
        "--dir",
        candidate,
        "--reason",
        "by the command",
    ]);
    for replica in [&first, &second] {
        let took = until(&operator.at(&replica.base), &path, 200).await;
        println!("published by a command, live after {took:?}");
    }
    let history = json(&["policy", "history", "--org", &org]);
    let authors: Vec<_> =
        history["versions"].as_array().unwrap().iter().map(|it| &it["author_kind"]).collect();
    assert_eq!(authors, ["OPERATOR", "USER", "USER"], "what a replica writes is no hand edit");
    assert!(!old.exists() && fresh.exists(), "the start has swept");
}
