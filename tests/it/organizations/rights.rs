//! What people may demand: an organization is exported and deleted, a person is erased. Every table of the schema says
//! what becomes of its rows.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    future::poll_fn,
    io::Read,
    pin::pin,
    task::Poll,
    time::Duration,
};

use muster::{
    core::{
        audit::{self, AuditKey},
        store::{ColumnKind, TABLES},
    },
    domain::rights::{self, Deleted, ERASED, Exported, RIGHTS},
};
use serde_json::{Value, json};

use crate::{
    channels::deliveries::DAY,
    harness::{Actor, Answer, TestApp, is_postgres, until},
};

const SCHEDULE: &str = "mutation($o: Id!, $n: String!) { scheduleDeletion(orgId: $o, name: $n) { id } }";
const CANCEL: &str = "mutation($o: Id!, $id: Id!) { cancelErasure(orgId: $o, erasureId: $id) { id } }";
const ERASURES: &str = "query($o: Id!) { organization(orgId: $o) { erasures { id subject userId contactId state requestedBy dueAt } } }";

async fn schedule(app: &TestApp, actor: &Actor, name: &str) -> Answer {
    actor.gql(SCHEDULE, json!({ "o": app.org, "n": name })).await
}

async fn erasures(app: &TestApp, actor: &Actor) -> Vec<Value> {
    let found = actor.gql(ERASURES, json!({ "o": app.org })).await.data();
    found["organization"]["erasures"].as_array().unwrap().clone()
}

async fn run(app: &TestApp) -> u64 {
    rights::carry_out_due(&app.core).await.unwrap()
}

/// The table that only the other database has.
fn absent() -> &'static str {
    if is_postgres() { "messages_fts" } else { "message_search" }
}

/// How many rows an organization has in each table.
async fn rows_of(app: &TestApp, org: i64) -> BTreeMap<&'static str, i64> {
    let mut counts = BTreeMap::new();
    for table in RIGHTS.iter().filter(|table| table.table != absent()) {
        let Some(rows) = table.rows else { continue };
        let sql = format!("SELECT COUNT(*) FROM {} WHERE {rows}", table.table);
        counts.insert(table.table, app.one(&sql, vec![org.into()]).await);
    }
    counts
}

/// How many rows each table without organizations has.
async fn rows_of_none(app: &TestApp) -> BTreeMap<&'static str, i64> {
    let mut counts = BTreeMap::new();
    for table in RIGHTS.iter().filter(|table| matches!(table.deleted, Deleted::Kept(_))) {
        let sql = format!("SELECT COUNT(*) FROM {}", table.table);
        counts.insert(table.table, app.one(&sql, vec![]).await);
    }
    counts
}

/// The columns of all tables that contain a text, as `table.column`.
async fn places_of(app: &TestApp, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for table in TABLES.values().filter(|table| table.name != absent()) {
        for column in &table.columns {
            if matches!(column.kind, ColumnKind::Text | ColumnKind::Json) {
                let sql = format!(
                    "SELECT COUNT(*) FROM {} WHERE CAST(\"{}\" AS TEXT) LIKE '%' || $1 || '%'",
                    table.name, column.name
                );
                if app.one::<i64>(&sql, vec![text.into()]).await > 0 {
                    found.push(format!("{}.{}", table.name, column.name));
                }
            }
        }
    }
    found
}

async fn is_sound(app: &TestApp, chain: i64) -> bool {
    let keys = AuditKey::known(&app.core.config.keys().unwrap());
    audit::verify(&app.core, chain, &keys, None).await.unwrap().ok
}

#[tokio::test]
async fn every_table_says_what_becomes_of_its_rows() {
    let app = TestApp::start().await;
    let tables = if is_postgres() {
        "SELECT CAST(table_name AS TEXT) FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
    } else {
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
         AND name NOT LIKE 'messages\\_fts\\_%' ESCAPE '\\'"
    };
    let mut tables: BTreeSet<String> = app.column(tables).await.into_iter().collect();
    tables.remove("_sqlx_migrations");
    let named: Vec<&str> =
        RIGHTS.iter().map(|rights| rights.table).filter(|table| *table != absent()).collect();
    let known: BTreeSet<String> = named.iter().map(|table| (*table).to_owned()).collect();
    assert_eq!(known, tables, "src/domain/rights/tables.rs has a line for each table");
    assert_eq!(known.len(), named.len(), "a table is listed twice");
    for (name, table) in &*TABLES {
        let is_of_org = table.columns.iter().any(|column| column.name == "organization_id");
        let rights = RIGHTS.iter().find(|rights| rights.table == *name).unwrap();
        assert!(!is_of_org || !matches!(rights.deleted, Deleted::Kept(_)), "{name} has organizations' rows");
    }
}

#[tokio::test]
async fn a_deleted_organization_leaves_nothing_behind() {
    let app = TestApp::start().await;
    app.populate(4).await;
    app.populate_other(4).await;
    app.seal().await;
    let (ours, theirs, others) =
        (rows_of(&app, app.org).await, rows_of(&app, app.other_org).await, rows_of_none(&app).await);
    assert!(ours.values().filter(|count| **count > 0).count() > 35, "{ours:#?}");
    schedule(&app, &app.owner, "Meridian Freight").await.data();
    app.clock.advance(DAY * 14);
    // Its members lose access, then its agents stop; hosts that do not answer hold it up for a day.
    assert_eq!(run(&app).await, 1);
    app.forget_sessions();
    run(&app).await;
    assert_eq!(schedule(&app, &app.owner, "Meridian Freight").await.code(), "NOT_A_MEMBER");
    app.clock.advance(DAY);
    assert_eq!(run(&app).await, 1);
    app.seal().await;
    run(&app).await;
    assert_eq!(
        app.one::<i64>("SELECT COUNT(*) FROM messages WHERE organization_id = $1", vec![app.org.into()])
            .await,
        0
    );
    // Lines of the log that are still in memory get a place before it goes.
    app.clock.advance(Duration::from_mins(3));
    run(&app).await;
    let left: Vec<_> = rows_of(&app, app.org).await.into_iter().filter(|(_, count)| *count > 0).collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(rows_of(&app, app.other_org).await, theirs, "another tenant is touched");
    let mut now = rows_of_none(&app).await;
    let mails = now.insert("mails", others["mails"]).unwrap();
    assert_eq!(now, others);
    assert_eq!(mails - others["mails"], 2, "two mails for the OWNER");
    assert_eq!(run(&app).await, 0);
    // The instance's log says so, and every log is sound.
    app.seal().await;
    let said = "SELECT COUNT(*) FROM audit_log WHERE operation = 'deleteOrganization' AND organization_id IS NULL AND target_id = $1";
    assert_eq!(app.one::<i64>(said, vec![app.org.into()]).await, 1);
    let chains = audit::chains(&app.core).await.unwrap();
    assert_eq!(chains, [audit::INSTANCE, app.other_org]);
    for chain in chains {
        assert!(is_sound(&app, chain).await, "{chain}");
    }
}

#[tokio::test]
async fn a_deletion_that_is_killed_goes_on() {
    let app = TestApp::start().await;
    app.populate(4).await;
    schedule(&app, &app.owner, "Meridian Freight").await.data();
    app.clock.advance(DAY * 14);
    let mut killed = 0;
    // Each attempt gets a little further.
    for allowed in (1..40).step_by(3) {
        let last = app.writes() + allowed;
        let mut running = pin!(rights::carry_out_due(&app.core));
        let is_killed = poll_fn(|context| match app.writes() {
            writes if writes >= last => Poll::Ready(true),
            _ => running.as_mut().poll(context).map(|ended| ended.is_err()),
        });
        killed += u32::from(is_killed.await);
        app.clock.advance(Duration::from_hours(5));
    }
    assert!(killed > 3, "only {killed} were killed");
    until("it is gone", async || {
        run(&app).await;
        app.seal().await;
        app.clock.advance(Duration::from_mins(1));
        app.one::<i64>("SELECT COUNT(*) FROM organizations WHERE id = $1", vec![app.org.into()]).await == 0
    })
    .await;
    let left: Vec<_> = rows_of(&app, app.org).await.into_iter().filter(|(_, count)| *count > 0).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn agents_stop_before_anything_is_deleted() {
    let (app, agent) = TestApp::with_agent().await;
    let running = "UPDATE agents SET status = 'RUNNING', launch_generation = 1 WHERE id = $1";
    app.execute(running, vec![agent.into()]).await;
    schedule(&app, &app.owner, "Meridian Freight").await.data();
    app.clock.advance(DAY * 14);
    run(&app).await;
    assert_eq!(run(&app).await, 0, "it waits for the host");
    let stops = "SELECT COUNT(*) FROM commands WHERE kind = 'STOP' AND acknowledged_at IS NULL";
    assert_eq!(app.one::<i64>(stops, vec![]).await, 1);
    assert_eq!(app.column::<String>("SELECT state FROM erasures").await, ["ENDING"]);
    app.execute("UPDATE agents SET status = 'STOPPED' WHERE id = $1", vec![agent.into()]).await;
    app.execute("UPDATE commands SET acknowledged_at = 1", vec![]).await;
    assert_eq!(run(&app).await, 1);
    assert_eq!(app.column::<String>("SELECT state FROM erasures").await, ["DELETING"]);
    let servers =
        "SELECT COUNT(*) FROM servers WHERE provisioning_token_hash IS NOT NULL AND organization_id = $1";
    assert_eq!(app.one::<i64>(servers, vec![app.org.into()]).await, 0);
}

#[tokio::test]
async fn owners_schedule_a_deletion_and_can_cancel_it() {
    let app = TestApp::with_mail().await;
    let name = "Meridian Freight";
    for (actor, code) in [(&app.admin, "PERMISSION_DENIED"), (&app.stranger, "NOT_A_MEMBER")] {
        assert_eq!(schedule(&app, actor, name).await.code(), code);
    }
    assert_eq!(schedule(&app, &app.owner, "Another House").await.code(), "VALIDATION_FAILED");
    assert!(erasures(&app, &app.viewer).await.is_empty());
    schedule(&app, &app.owner, name).await.data();
    schedule(&app, &app.owner, name).await.data();
    let mail = app.mail().await;
    assert_eq!(
        (mail.to.as_str(), mail.subject.as_str()),
        ("owner@example.com", "Your organization will be deleted")
    );
    assert!(mail.text.contains(name) && mail.text.contains("2026-06-15"), "{}", mail.text);
    // Everyone sees it.
    let [found] = &erasures(&app, &app.viewer).await[..] else { panic!("one is scheduled") };
    assert_eq!((&found["subject"], &found["state"]), (&json!("ORGANIZATION"), &json!("SCHEDULED")));
    assert_eq!(
        (&found["dueAt"], &found["requestedBy"]),
        (&json!("2026-06-15T12:00:00.000Z"), &json!(app.owner.user))
    );
    assert_eq!(run(&app).await, 0, "it is not due");
    let cancel = json!({ "o": app.org, "id": found["id"] });
    assert_eq!(app.admin.gql(CANCEL, cancel.clone()).await.code(), "PERMISSION_DENIED");
    app.owner.gql(CANCEL, cancel.clone()).await.data();
    assert_eq!(app.mail().await.subject, "An erasure was cancelled");
    assert_eq!(app.owner.gql(CANCEL, cancel).await.code(), "NOT_FOUND");
    app.clock.advance(DAY * 20);
    assert_eq!(run(&app).await, 0);
    // Once it has begun it can't be cancelled, and the operator can begin it at once.
    let org = app.org.to_string();
    app.cli(&["org", "delete", "--org", &org, "--now"]).await.expect();
    app.execute("UPDATE erasures SET due_at = 0", vec![]).await;
    app.mails().await;
    assert_eq!(run(&app).await, 1);
    assert_eq!(app.mail().await.subject, "Your organization is being deleted");
    app.refuses(&["org", "keep", "--org", &org], 1, "CONFLICT").await;
}

/// The files of an archive.
fn unpacked(path: &std::path::Path) -> BTreeMap<String, Vec<u8>> {
    let mut archive = tar::Archive::new(File::open(path).unwrap());
    let mut files = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        assert!(files.insert(name.clone(), bytes).is_none(), "{name} is there twice");
    }
    files
}

/// The lines of a table.
fn lines(files: &BTreeMap<String, Vec<u8>>, table: &str) -> Vec<String> {
    let of_table = files.iter().filter(|(name, _)| name.starts_with(&format!("tables/{table}/")));
    let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).unwrap();
    of_table.flat_map(|(_, bytes)| text(bytes).lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[tokio::test]
async fn an_export_has_every_row_once() {
    let app = TestApp::start().await;
    app.populate(4).await;
    app.populate_other(4).await;
    // More than two pages, with a key of several columns.
    let channel: i64 =
        app.one("SELECT MIN(id) FROM channels WHERE organization_id = $1", vec![app.org.into()]).await;
    for n in 0..230 {
        let sql = "INSERT INTO channel_whitelist (organization_id, channel_id, origin_id, created_at) VALUES ($1, $2, $3, 0)";
        app.execute(sql, vec![app.org.into(), channel.into(), format!("someone {n}").into()]).await;
    }
    app.seal().await;
    let (org, out) = (app.org.to_string(), app.folder().join("all.tar"));
    let made = app.cli(&["org", "export", "--org", &org, "--out", out.to_str().unwrap()]).await.expect();
    assert_eq!(made["bytes"], fs::metadata(&out).unwrap().len());
    let files = unpacked(&out);
    let counts = rows_of(&app, app.org).await;
    for table in RIGHTS.iter().filter(|table| table.rows.is_some() && table.table != absent()) {
        let lines = lines(&files, table.table);
        if let Exported::No(_) = table.exported {
            assert!(lines.is_empty(), "{}", table.table);
            continue;
        }
        assert_eq!(lines.len(), usize::try_from(counts[table.table]).unwrap(), "{}", table.table);
        assert_eq!(lines.iter().collect::<BTreeSet<_>>().len(), lines.len(), "{}: a row twice", table.table);
        for line in &lines {
            let row: Value = serde_json::from_str(line).unwrap();
            let owner = &row["organization_id"];
            assert!(owner.is_null() || *owner == app.org, "{}: {line}", table.table);
            let secret = |name: &String| {
                name.ends_with("_sealed") || name.ends_with("token_hash") || name == "inbound_slug"
            };
            assert!(!row.as_object().unwrap().keys().any(secret), "{}: {line}", table.table);
        }
    }
    assert_eq!(lines(&files, "users").len(), 8);
    let manifest: Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
    assert_eq!((&manifest["format"], &manifest["organization_id"]), (&json!(1), &json!(app.org)));
    assert_eq!(manifest["tables"]["agents"]["columns"]["name"], "string");
    let files_of =
        |folder: &str| i64::try_from(files.keys().filter(|name| name.starts_with(folder)).count()).unwrap();
    assert_eq!(files_of("files/attachments/"), counts["attachment_blobs"]);
    assert_eq!(files_of("files/avatars/"), counts["avatars"]);
    // In the panel, the same for an OWNER.
    let path = format!("/export/organization/{}", app.org);
    assert_eq!(app.admin.get(&path).await.problem(), (403, "PERMISSION_DENIED"));
    assert_eq!(app.anonymous.get(&path).await.problem(), (401, "UNAUTHENTICATED"));
    let answer = app.owner.request(reqwest::Method::GET, &path).send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "application/x-tar");
    let again = app.folder().join("again.tar");
    fs::write(&again, answer.bytes().await.unwrap()).unwrap();
    assert_eq!(lines(&unpacked(&again), "messages"), lines(&files, "messages"));
}

const NAME: &str = "Zephyrine Quillfeather";
const ADDRESS: &str = "zephyrine@example.org";

/// An OWNER with this name, who has done all kinds of things.
async fn busy_person(app: &TestApp) -> i64 {
    let person = app.person("OWNER", true).await;
    let user = person.user.unwrap();
    let named =
        "UPDATE users SET name = $1, name_folded = 'zephyrine', email = $2, email_folded = $2 WHERE id = $3";
    app.execute(named, vec![NAME.into(), ADDRESS.into(), user.into()]).await;
    app.forget_sessions();
    let agent = app.agent().await;
    let conversation = app.conversation(agent).await;
    let org = app.org;
    for (call, variables) in [
        ("createServer(orgId: $o, input: $i) { id }", json!({ "name": "hers" })),
        ("createSkill(orgId: $o, input: $i) { id }", json!({ "name": "hers", "content": "# Hers" })),
        ("allowHost(orgId: $o, input: $i) { id }", json!({ "host": "hers.example" })),
        ("updateOrganization(orgId: $o, input: $i) { id }", json!({ "timezone": "Europe/Vienna" })),
    ] {
        let kind = match call.split('(').next().unwrap() {
            "createServer" => "CreateServerInput",
            "createSkill" => "CreateSkillInput",
            "allowHost" => "AllowHostInput",
            _ => "UpdateOrganizationInput",
        };
        let document = format!("mutation($o: Id!, $i: {kind}!) {{ {call} }}");
        person.gql(&document, json!({ "o": org, "i": variables })).await.data();
    }
    let post = "mutation($o: Id!, $c: Id!) { postMessage(orgId: $o, conversationId: $c, input: { text: \"hello\" }) { id } }";
    person.gql(post, json!({ "o": org, "c": conversation })).await.data();
    let stop = "mutation($o: Id!) { stopOrganization(orgId: $o, reason: \"so\") { id } }";
    person.gql(stop, json!({ "o": org })).await.data();
    let invite = "mutation($o: Id!) { inviteMember(orgId: $o, input: { email: \"other@example.org\", role: VIEWER }) { id } }";
    person.gql(invite, json!({ "o": org })).await.data();
    app.seal().await;
    user
}

#[tokio::test]
async fn an_erased_person_is_nowhere_to_be_found() {
    let app = TestApp::start().await;
    app.populate(1).await;
    let user = busy_person(&app).await;
    let before = places_of(&app, NAME).await;
    for place in [
        "users.name",
        "messages.author_name",
        "audit_log.actor_name",
        "organizations.stopped_by_name",
        "skill_versions.author_name",
        "servers.provisioned_by_name",
        "allowed_hosts.created_by_name",
        "edits.actor_name",
    ] {
        assert!(before.iter().any(|found| found == place), "{place}: {before:?}");
    }
    app.refuses(&["user", "erase", ADDRESS], 1, "VALIDATION_FAILED").await;
    let done = app.cli(&["user", "erase", ADDRESS, "--forever"]).await.expect();
    assert_eq!((&done["id"], &done["organizations"]), (&json!(user), &json!([app.org])));
    for column in ["messages.author_name", "servers.provisioned_by_name"] {
        assert!(done["names"][column].as_i64() >= Some(1), "{done:#}");
    }
    // The texts of messages stay: a notice says who stopped the organization.
    assert_eq!(places_of(&app, NAME).await, ["conversations.last_message_preview", "messages.content"]);
    assert_eq!(places_of(&app, ADDRESS).await, [""; 0]);
    let row = "SELECT name || ' ' || email FROM users WHERE id = $1";
    assert_eq!(
        app.one::<String>(row, vec![user.into()]).await,
        format!("{ERASED} erased-{user}@erased.invalid")
    );
    // The log still says that the same person did it, and is sound.
    let lines = "SELECT COUNT(*) FROM audit_log WHERE actor_kind = 'USER' AND actor_id = $1 AND actor_name = 'Erased person'";
    assert!(app.one::<i64>(lines, vec![user.into()]).await >= 6);
    app.seal().await;
    for chain in audit::chains(&app.core).await.unwrap() {
        assert!(is_sound(&app, chain).await, "{chain}");
    }
    // Again, it changes nothing.
    let again = app.cli(&["user", "erase", &user.to_string(), "--forever"]).await.expect();
    assert_eq!((&again["names"], &again["organizations"]), (&json!({}), &json!([])));
    app.refuses(&["user", "erase", ADDRESS, "--forever"], 1, "NOT_FOUND").await;
}

#[tokio::test]
async fn sqlite_a_vacuum_leaves_no_erased_name_in_the_file() {
    let app = TestApp::start().await;
    app.populate(4).await;
    let user = app.person("VIEWER", true).await.user.unwrap();
    let named = "UPDATE users SET name = $1, name_folded = 'z', email = $2, email_folded = $2 WHERE id = $3";
    app.execute(named, vec![NAME.into(), ADDRESS.into(), user.into()]).await;
    let written = "UPDATE messages SET author_name = $1, author_user_id = $2";
    app.execute(written, vec![NAME.into(), user.into()]).await;
    let is_in_a_file = || {
        ["muster.db", "muster.db-wal"].iter().any(|name| {
            let bytes = fs::read(app.folder().join(name)).unwrap_or_default();
            bytes.windows(NAME.len()).any(|part| part == NAME.as_bytes())
        })
    };
    assert!(is_in_a_file());
    let done = app.cli(&["user", "erase", ADDRESS, "--forever"]).await.expect();
    assert!(done["names"]["messages.author_name"].as_i64().unwrap() > 1, "{done:#}");
    assert_eq!(places_of(&app, NAME).await, [""; 0]);
    app.cli(&["vacuum"]).await.expect();
    assert!(!is_in_a_file());
}

#[tokio::test]
async fn the_only_owner_is_not_erased() {
    let app = TestApp::start().await;
    let refusal = app.refuses(&["user", "erase", "owner@example.com", "--forever"], 1, "CONFLICT").await;
    assert!(refusal.contains("Meridian Freight"), "{refusal}");
    assert_eq!(app.owner.get(&format!("/v1/org/{}", app.org)).await.status, 200);
}

#[tokio::test]
async fn an_erased_member_is_gone_from_the_organization() {
    let app = TestApp::start().await;
    let user = busy_person(&app).await;
    let erase = "mutation($o: Id!, $u: Id!) { eraseMember(orgId: $o, userId: $u) { id } }";
    assert_eq!(app.admin.gql(erase, json!({ "o": app.org, "u": user })).await.code(), "PERMISSION_DENIED");
    app.owner.gql(erase, json!({ "o": app.org, "u": user })).await.data();
    app.clock.advance(DAY * 14);
    assert_eq!(run(&app).await, 1);
    app.seal().await;
    // The account, and what they did outside the organization, is theirs.
    let places = places_of(&app, NAME).await;
    assert_eq!(places, ["users.name"]);
    let members = "SELECT COUNT(*) FROM members WHERE user_id = $1";
    assert_eq!(app.one::<i64>(members, vec![user.into()]).await, 0);
    assert!(erasures(&app, &app.viewer).await.is_empty());
    assert!(is_sound(&app, app.org).await);
}

#[tokio::test]
async fn an_erased_contact_keeps_no_name_and_address() {
    let app = TestApp::start().await;
    let all = app.populate(4).await;
    let (contact, identity) = (all.contacts[0], all.identities[0]);
    for (sql, value) in [
        ("UPDATE contacts SET name = $1, name_folded = 'x', note = $1 WHERE id = $2", contact),
        (
            "UPDATE identities SET origin_id = $1, origin_id_folded = 'zephyrine quillfeather', display_name = $1 WHERE id = $2",
            identity,
        ),
        ("UPDATE conversations SET target = $1, thread_key = $1 WHERE contact_id = $2", contact),
        (
            "UPDATE messages SET author_name = $1, via_identity_id = $2 WHERE id = (SELECT MIN(id) FROM messages)",
            identity,
        ),
        (
            "UPDATE channel_refusals SET origin_id = $1, origin_name = $1 WHERE channel_id = $2",
            all.channels[0],
        ),
    ] {
        app.execute(sql, vec![NAME.into(), value.into()]).await;
    }
    assert!(places_of(&app, NAME).await.len() >= 8);
    let erase = "mutation($o: Id!, $c: Id!) { eraseContact(orgId: $o, contactId: $c) { id } }";
    let theirs = app.stranger.gql(erase, json!({ "o": app.other_org, "c": contact })).await;
    assert_eq!(theirs.code(), "NOT_FOUND");
    app.owner.gql(erase, json!({ "o": app.org, "c": contact })).await.data();
    app.clock.advance(DAY * 14);
    run(&app).await;
    assert_eq!(places_of(&app, NAME).await, [""; 0]);
    let name = "SELECT name FROM contacts WHERE id = $1";
    assert_eq!(app.one::<String>(name, vec![contact.into()]).await, ERASED);
    // The operator finds contacts by their address, without an account.
    app.execute(
        "UPDATE identities SET origin_id = $1, origin_id_folded = $1 WHERE id = $2",
        vec![ADDRESS.into(), all.identities[1].into()],
    )
    .await;
    let done = app.cli(&["user", "erase", ADDRESS, "--forever"]).await.expect();
    assert_eq!((&done["contacts"], &done["id"]), (&json!(1), &Value::Null));
    assert_eq!(places_of(&app, ADDRESS).await, [""; 0]);
}
