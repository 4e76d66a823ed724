//! Two running programs on one database, each with its own policy folder: an edit through one is live on the
//! other, and rules move between the folders and the database.

use std::{
    fs,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::harness::{self, Actor, Program, empty_database};

const LINE: &str = "mutation($o: Id!, $allow: Boolean!) { \
    allowPermission(orgId: $o, input: { role: OPERATOR, permission: \"conversation.view\", reason: \"on call\" }) \
        @include(if: $allow) { text } \
    resetPermission(orgId: $o, input: { role: OPERATOR, permission: \"conversation.view\", reason: \"no more\" }) \
        @skip(if: $allow) { text } }";

/// How long until the answer has this status.
async fn until(actor: &Actor, path: &str, status: u16) -> Duration {
    let began = Instant::now();
    harness::until(&format!("{path}: {status}"), async || actor.get(path).await.status == status).await;
    began.elapsed()
}

/// An SQLite database has one owner (`cli/installation.rs`).
#[tokio::test(flavor = "multi_thread")]
async fn postgres_rules_are_live_on_every_replica() {
    let shared = tempfile::tempdir().unwrap();
    let (url, keys) = (empty_database(shared.path()).await, shared.path().join("keys.toml"));
    let folders = ["one", "two"].map(|name| shared.path().join(name));
    let programs = folders.each_ref().map(|folder| {
        muster::cli::write_defaults(folder).unwrap();
        Program::new(&[
            ("MUSTER_DATABASE_URL", &url),
            ("MUSTER_KEYS_FILE", keys.to_str().unwrap()),
            ("MUSTER_POLICY_DIR", folder.to_str().unwrap()),
            ("MUSTER_LOG", "off"),
        ])
    });
    let tenant = programs[0].tenant();
    let org = tenant.org.to_string();
    let json = |arguments: &[&str]| programs[0].json(arguments);
    let person =
        ["user", "create", "--email", "o@example.org", "--name", "O", "--password-stdin", "--confirmed"];
    programs[0].json_told(&person, "correct horse\n");
    json(&["member", "add", "--org", &org, "--email", "o@example.org", "--role", "OPERATOR"]);
    let session =
        |email| json(&["session", "create", "--email", email])["access_token"].as_str().unwrap().to_owned();
    let [owner, operator] = ["a@example.org", "o@example.org"].map(session);
    let [first, second] = programs.each_ref().map(Program::serve);
    let owner = first.actor(&tenant).with_bearer(owner);
    let operator = second.actor(&tenant).with_bearer(operator);
    let path = format!("/v1/org/{org}/conversation?limit=10&offset=0");
    let files = folders.each_ref().map(|folder| folder.join(format!("orgs/{org}.csv")));

    assert_eq!(operator.get(&path).await.problem(), (403, "PERMISSION_DENIED"));
    for (allow, status) in [(true, 200), (false, 403)] {
        owner.gql(LINE, json!({ "o": tenant.org, "allow": allow })).await.data();
        let took = until(&operator, &path, status).await;
        println!("{status} on the other replica after {took:?}");
    }
    assert!(!files.iter().any(|file| file.exists()), "no replica writes a folder");
    // In every folder: live on each replica, and the operator's.
    let text = format!("p, OPERATOR, {org}, conversation.view, allow\n");
    fs::write(&files[0], &text).unwrap();
    let differing = async || {
        let health = second.actor(&tenant).get("/health").await.expect(200);
        health["policy"]["differing_replicas"].as_array().unwrap().len()
    };
    harness::until("the differing folder is reported", async || differing().await > 0).await;
    fs::write(&files[1], &text).unwrap();
    for replica in [&first, &second] {
        until(&operator.at(&replica.base), &path, 200).await;
        let edited = owner.at(&replica.base).gql(LINE, json!({ "o": tenant.org, "allow": false })).await;
        assert_eq!(edited.code(), "POLICY_OWNED_BY_FILE");
    }
    // Back into the database: in force once the file is gone from both.
    programs[1].json(&["policy", "publish", "--org", "House", "--reason", "to the panel"]);
    for file in &files {
        fs::remove_file(file).unwrap();
    }
    for replica in [&first, &second] {
        until(&owner.at(&replica.base), &path, 200).await;
        let owner = owner.at(&replica.base);
        let is_done = async || {
            let done = owner.set_permission(tenant.org, "denyPermission", "VIEWER", "contact.view").await;
            done.body["errors"].is_null()
        };
        harness::until("the database owns the rules again", is_done).await;
        assert_eq!(operator.at(&replica.base).get(&path).await.status, 200);
    }
    let history = json(&["policy", "history", "--org", &org]);
    let authors: Vec<_> =
        history["versions"].as_array().unwrap().iter().map(|it| &it["author_kind"]).collect();
    assert_eq!(authors, ["USER", "OPERATOR", "USER", "USER"]);
}
