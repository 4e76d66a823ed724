//! The operator's commands beside a running service: backup and restore, the doctor, the configuration check. With the
//! real program.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use serde_json::{Value, json};

use super::store_secret;
use crate::harness::{Ran, TestApp, is_postgres, muster};

fn elsewhere(folder: &Path) -> Vec<(String, String)> {
    vec![
        ("MUSTER_DATA_DIR".into(), folder.to_str().unwrap().into()),
        ("MUSTER_LISTEN".into(), "127.0.0.1:0".into()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_made_during_writes_is_restored_in_full() {
    // A disk that others use may take seconds to commit, for which the other writers wait.
    let app = TestApp::start_with(|config| config.database.acquire_timeout_seconds = 60).await;
    let out = app.folder().join("muster.backup");
    let path = out.to_str().unwrap();
    if is_postgres() {
        let refused = muster(&["backup", "--out", path], &app.variables()).await;
        assert!(!refused.good() && refused.err.contains("pg_dump"), "{}", refused.err);
        return;
    }
    let agent = app.agent().await;
    store_secret(&app).await;
    let unlimited = "UPDATE organizations SET max_servers_override = 1000000 WHERE id = $1";
    app.execute(unlimited, vec![app.org.into()]).await;
    // Writers: each creates a server and, in the same transaction, its audit entry.
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let writers = (0..3).map(|writer| {
        let (actor, stop, written) = (app.owner.clone(), Arc::clone(&stop), Arc::clone(&written));
        let path = format!("/v1/org/{}/server", app.org);
        async move {
            for n in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                actor.post(&path, json!({ "name": format!("{writer}-{n}") })).await.expect(201);
                written.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let backing = async {
        while written.load(Ordering::Relaxed) < 20 {
            tokio::task::yield_now().await;
        }
        let before = written.load(Ordering::Relaxed);
        let made = muster(&["backup", "--out", path], &app.variables()).await;
        stop.store(true, Ordering::Relaxed);
        (before, made)
    };
    let ((before, made), _) = tokio::join!(backing, futures::future::join_all(writers));
    assert!(made.good(), "{}", made.err);
    let files = made.out["manifest"]["files"].as_array().unwrap();
    assert_eq!(files[0]["name"], "muster.db");
    assert!(made.out["manifest"]["left_out"].as_str().unwrap().contains("key file"));
    let bytes = fs::read(&out).unwrap();
    let keys = fs::read_to_string(app.folder().join("keys.toml")).unwrap();
    for line in keys.lines().filter_map(|line| line.split_once(" = \"")) {
        let key = line.1.trim_end_matches('"');
        assert!(key.len() < 40 || !contains(&bytes, key.as_bytes()), "a key is in the backup");
    }

    // Another machine: the archive, then the keys.
    let place = tempfile::tempdir().unwrap();
    let there = elsewhere(place.path());
    let restored = muster(&["restore", path], &there).await;
    assert!(restored.good() && restored.out["keys_in_place"] == false, "{}", restored.err);
    fs::copy(app.folder().join("keys.toml"), place.path().join("keys.toml")).unwrap();
    let doctor = muster(&["doctor"], &there).await;
    assert!(doctor.good(), "{:#}", doctor.out);
    assert_eq!(finding(&doctor, "sealed values")["level"], "good");
    let database = crate::harness::connect(&format!("sqlite://{}/muster.db", place.path().display())).await;
    let count = async |sql: &str| -> i64 {
        use sea_orm::{ConnectionTrait, DbBackend, Statement};
        let row = database.query_one_raw(Statement::from_string(DbBackend::Sqlite, sql)).await.unwrap();
        row.unwrap().try_get_by(0).unwrap()
    };
    let servers = count("SELECT COUNT(*) FROM servers WHERE name LIKE '%-%'").await;
    assert!(servers >= i64::from(before), "{servers} of {before}: it contains what was acknowledged before");
    let lines = count("SELECT COUNT(*) FROM audit_lines WHERE operation = 'createServer'").await;
    let all = count("SELECT COUNT(*) FROM servers").await;
    assert!(lines <= all && lines >= servers, "a change and its entry are atomic");
    assert_eq!(count(&format!("SELECT COUNT(*) FROM agents WHERE id = {agent}")).await, 1);
    // Nothing is overwritten, in either direction.
    let again = muster(&["restore", path], &there).await;
    assert!(!again.good() && again.err.contains("already exists"), "{}", again.err);
    let again = muster(&["backup", "--out", path], &app.variables()).await;
    assert!(!again.good() && again.err.contains("already exists"), "{}", again.err);
    assert_eq!(fs::read(&out).unwrap(), bytes);
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[tokio::test]
async fn sqlite_a_modified_backup_is_not_restored() {
    let app = TestApp::start().await;
    let out = app.folder().join("muster.backup");
    assert!(muster(&["backup", "--out", out.to_str().unwrap()], &app.variables()).await.good());
    let good = fs::read(&out).unwrap();
    let refused = async |bytes: &[u8]| -> String {
        let place = tempfile::tempdir().unwrap();
        let bad: PathBuf = place.path().join("bad.backup");
        fs::write(&bad, bytes).unwrap();
        let data = place.path().join("data");
        let ran = muster(&["restore", bad.to_str().unwrap()], &elsewhere(&data)).await;
        assert!(!ran.good(), "{:#}", ran.out);
        let left = fs::read_dir(&data).into_iter().flatten().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = left.filter(|name| name != "muster.db.lock").collect();
        assert!(left.is_empty(), "left behind: {left:?}");
        ran.err
    };
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    assert!(refused(&flipped).await.contains("damaged"));
    refused(&good[..good.len() / 3]).await;
    refused(b"").await;
    refused(b"nothing of ours").await;
    let text = String::from_utf8_lossy(&good[..4096]).into_owned();
    let key = "\"migrated_to\": ";
    let at = text.find(key).expect("which step it needs") + key.len();
    let mut newer = good.clone();
    newer[at..at + 2].copy_from_slice(b"99");
    assert!(refused(&newer).await.contains("later migrations"));
}

fn finding<'a>(ran: &'a Ran, check: &str) -> &'a Value {
    let findings = ran.out["findings"].as_array().unwrap_or_else(|| panic!("{}", ran.err));
    findings
        .iter()
        .find(|finding| finding["check"] == check)
        .unwrap_or_else(|| panic!("{check}: {findings:#?}"))
}

#[tokio::test]
async fn the_doctor_says_what_is_wrong_and_what_to_do() {
    let app = TestApp::start().await;
    let well = muster(&["doctor"], &app.variables()).await;
    assert!(well.good(), "{:#}", well.out);
    for check in
        ["settings", "keys", "policy", "plans", "database", "migrations", "disk", "open files", "address"]
    {
        finding(&well, check);
    }
    // Rules for an unknown organization.
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("strays");
    muster::cli::write_defaults(&folder).unwrap();
    let mut strays = app.variables();
    strays.push(("MUSTER_POLICY_DIR".into(), folder.to_str().unwrap().into()));
    fs::write(
        folder.join(format!("orgs/{}.csv", app.org)),
        format!("p, VIEWER, {}, contact.view, allow\n", app.org),
    )
    .unwrap();
    let well = muster(&["doctor"], &strays).await;
    assert!(!well.out.to_string().contains("no organization exists"), "{:#}", well.out);
    fs::write(folder.join("orgs/987654.csv"), "p, VIEWER, 987654, contact.view, allow\n").unwrap();
    let found = muster(&["doctor"], &strays).await;
    assert!(
        found.good() && found.out.to_string().contains("no organization exists for orgs/987654.csv"),
        "{:#}",
        found.out
    );
    // Keys of another installation.
    store_secret(&app).await;
    let other = place.path().join("other.toml");
    muster::core::sealing::KeyFile::load_or_create(&other).unwrap();
    let mut strange = app.variables();
    strange.push(("MUSTER_KEYS_FILE".into(), other.to_str().unwrap().into()));
    let ill = muster(&["doctor"], &strange).await;
    let found = finding(&ill, "sealed values");
    assert!(!ill.good() && found["level"] == "bad" && found["advice"].is_string(), "{:#}", ill.out);
    // No one listening, a world-readable key file, an address of another machine, an invalid policy.
    std::os::unix::fs::PermissionsExt::set_mode(&mut fs::metadata(&other).unwrap().permissions(), 0o644);
    fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let policies = place.path().join("policies");
    fs::create_dir(&policies).unwrap();
    fs::write(policies.join("policy.csv"), "p, KING, *, agent.edti, allow\n").unwrap();
    let ill = muster(
        &["doctor"],
        &[
            ("MUSTER_DATA_DIR", place.path().to_str().unwrap()),
            ("MUSTER_DATABASE_URL", "postgres://app:hunter2hunter2@127.0.0.1:1/nothing"),
            ("MUSTER_KEYS_FILE", other.to_str().unwrap()),
            ("MUSTER_POLICY_DIR", policies.to_str().unwrap()),
            ("MUSTER_LISTEN", "192.0.2.1:80"),
            ("MUSTER_OTLP_ENDPOINT", "http://127.0.0.1:1"),
        ],
    )
    .await;
    assert!(!ill.good());
    for check in ["database", "keys", "policy", "address"] {
        let found = finding(&ill, check);
        assert_eq!(found["level"], "bad", "{found}");
        assert!(found["advice"].as_str().is_some_and(|advice| advice.len() > 10), "{found}");
    }
    assert_eq!(finding(&ill, "traces")["level"], "warning");
    assert!(!format!("{}{}", ill.out, ill.err).contains("hunter2"));
}

#[tokio::test]
async fn all_mistakes_are_named_before_anything_is_opened() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().to_str().unwrap();
    let checked = muster(&["config", "check"], &[("MUSTER_DATA_DIR", folder)]).await;
    assert!(checked.good() && checked.out["ok"] == true, "{:#}", checked.out);
    let wrong =
        [("MUSTER_LISTEN", "nowhere"), ("MUSTER_LIMITS_GRAPHQL_DEPTH", "deep"), ("MUSTER_DATA_DRI", "x")];
    let checked = muster(&["config", "check"], &wrong).await;
    assert!(!checked.good());
    assert_eq!(checked.out["findings"].as_array().unwrap().len(), 3, "{:#}", checked.out);
    // Files named in the settings: all their mistakes in one start.
    let plans = place.path().join("plans.toml");
    fs::write(&plans, "[FRE]\nmax_agents = 1\n").unwrap();
    let keys = place.path().join("keys.toml");
    fs::write(&keys, "nothing").unwrap();
    fs::set_permissions(&keys, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let wrong = [
        ("MUSTER_DATA_DIR", folder),
        ("MUSTER_PLANS_FILE", plans.to_str().unwrap()),
        ("MUSTER_POLICY_DIR", "/nowhere"),
        ("MUSTER_PANEL_DIR", "/nowhere"),
        ("MUSTER_MAIL_CA_FILE", "/nowhere"),
        ("MUSTER_CA_FILE", "/nowhere"),
        ("MUSTER_LISTEN", "127.0.0.1:0"),
    ];
    let started = muster(&["serve"], &wrong).await;
    assert!(!started.good());
    for part in ["keys: ", "plans: ", "policy: ", "panel: ", "mail: ", "certificates: "] {
        assert!(started.err.contains(part), "{part}: {}", started.err);
    }
    assert!(!place.path().join("muster.db").exists(), "nothing was opened");
}

#[tokio::test]
async fn commands_leave_the_plans_and_categories_of_the_service() {
    let app = TestApp::start().await;
    app.execute("UPDATE plans SET max_agents = 7", vec![]).await;
    app.execute("INSERT INTO risk_categories (folded) VALUES ('of the house')", vec![]).await;
    let limits = "SELECT DISTINCT max_agents FROM plans";
    let category = "SELECT COUNT(*) FROM risk_categories WHERE folded = 'of the house'";
    // This shell has not the service's settings.
    app.cli(&["org", "list"]).await.expect();
    app.cli(&["org", "create", "--name", "House", "--owner-email", "a@example.org"]).await.expect();
    assert_eq!(app.column::<i64>(limits).await, [7]);
    assert_eq!(app.one::<i64>(category, vec![]).await, 1);
    app.cli(&["migrate"]).await.expect();
    assert_ne!(app.column::<i64>(limits).await, [7]);
    assert_eq!(app.one::<i64>(category, vec![]).await, 0);
}

#[tokio::test]
async fn a_restore_plan_changes_nothing() {
    let app = TestApp::start().await;
    let shown = muster(&["migrate", "--plan"], &app.variables()).await;
    assert!(shown.good() && shown.out["pending"] == json!([]), "{} {:#}", shown.err, shown.out);
}

#[cfg(unix)]
#[tokio::test]
async fn sqlite_a_new_installations_files_are_private_to_their_owner() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let create = ["org", "create", "--name", "House", "--owner-email", "a@example.org", "--plan", "FREE"];
    muster(&create, &elsewhere(&data)).await.expect();
    let (backup, restored) = (folder.path().join("backup"), folder.path().join("restored"));
    muster(&["backup", "--out", backup.to_str().unwrap()], &elsewhere(&data)).await.expect();
    muster(&["restore", backup.to_str().unwrap()], &elsewhere(&restored)).await.expect();
    let mut kept = Vec::new();
    for entry in fs::read_dir(&data).unwrap().chain(fs::read_dir(&restored).unwrap()).map(Result::unwrap) {
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", entry.path().display());
        kept.push(entry.file_name());
    }
    assert!(kept.contains(&"muster.db".into()) && kept.contains(&"keys.toml".into()), "{kept:?}");
}

#[tokio::test]
async fn the_demo_listens_only_on_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("demo");
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let demo = ["demo", "--data-dir", data.to_str().unwrap(), "--listen", address];
        let said = muster(&demo, &elsewhere(&data)).await.refused(1, "VALIDATION_FAILED");
        assert!(said.contains("only serves this machine"), "{said}");
        assert!(!data.exists(), "nothing was created");
    }
}
