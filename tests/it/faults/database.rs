//! The database goes away, hangs, is killed, or runs out of space: acknowledged changes are there, nothing is
//! half written, callers get 503 (507 without space), and the service continues without a restart.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use muster::{
    core::{Options, config as settings, store::Db},
    jobs::{self, PERIODIC_JOBS},
};
use reqwest::StatusCode;
use sea_orm::{ConnectionTrait, Database, Statement};
use serde_json::json;
use tokio::{sync::oneshot, time::sleep};

use crate::harness::{
    Actor, Cable, Postgres, Program, Serving, Tenant, TestApp, config, connect, empty_database, until,
};

/// The responses that the writers got.
#[derive(Default)]
pub struct Heard {
    /// Names whose creation was acknowledged.
    made: Mutex<BTreeSet<String>>,
    pub refused: AtomicUsize,
    pub stop: AtomicBool,
}

impl Heard {
    pub fn made(&self) -> usize {
        self.made.lock().unwrap().len()
    }
}

/// Creates servers with unique names until told to stop, or `most` of them.
async fn write(actor: Actor, org: i64, writer: usize, most: usize, heard: Arc<Heard>) {
    for n in 0.. {
        if heard.stop.load(Ordering::Relaxed) || heard.made() >= most {
            return;
        }
        let name = format!("w{writer}-{n}");
        let answer = actor.post(&format!("/v1/org/{org}/server"), json!({ "name": name })).await;
        if answer.status == StatusCode::CREATED {
            heard.made.lock().unwrap().insert(name);
            continue;
        }
        assert_eq!(answer.problem(), (503, "UNAVAILABLE"), "{}", answer.text);
        assert!(!answer.header("retry-after").is_empty());
        heard.refused.fetch_add(1, Ordering::Relaxed);
        sleep(Duration::from_millis(50)).await;
    }
}

pub fn start(
    actor: &Actor,
    tenant: &Tenant,
    writers: usize,
    most: usize,
) -> (Arc<Heard>, Vec<tokio::task::JoinHandle<()>>) {
    let heard = Arc::<Heard>::default();
    let writers =
        (0..writers).map(|writer| write(actor.clone(), tenant.org, writer, most, Arc::clone(&heard)));
    let handles = writers.map(spawn).collect();
    (heard, handles)
}

#[expect(clippy::disallowed_methods, reason = "not our service but a client of the test")]
fn spawn(work: impl Future<Output = ()> + Send + 'static) -> tokio::task::JoinHandle<()> {
    tokio::spawn(work)
}

async fn strings(url: &str, sql: &str) -> Vec<String> {
    let db = Database::connect(url).await.unwrap();
    let rows = db.query_all_raw(Statement::from_string(db.get_database_backend(), sql)).await.unwrap();
    let found = rows.iter().map(|row| row.try_get_by(0).unwrap()).collect();
    db.close().await.unwrap();
    found
}

/// Every acknowledged server is there, and each server has the one audit entry written with it.
pub async fn nothing_is_lost_or_halved(url: &str, heard: &Heard) {
    let stored: BTreeSet<String> = strings(url, "SELECT name FROM servers").await.into_iter().collect();
    let made = heard.made.lock().unwrap().clone();
    let lost: Vec<_> = made.difference(&stored).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    let lines =
        "SELECT CAST(target_id AS TEXT) FROM audit_lines WHERE operation = 'createServer' ORDER BY target_id";
    let ids = strings(url, "SELECT CAST(id AS TEXT) FROM servers ORDER BY id").await;
    assert_eq!(strings(url, lines).await, ids, "a change and its entry are atomic");
}

fn on(postgres: &Postgres) -> Program {
    Program::new(&[
        ("MUSTER_DATABASE_URL", &postgres.url()),
        ("MUSTER_DATABASE_ACQUIRE_TIMEOUT_SECONDS", "2"),
        ("MUSTER_LIMITS_REQUEST_TIMEOUT_SECONDS", "4"),
        ("MUSTER_LOG", "off"),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn once_a_database_that_goes_away_and_comes_back_loses_nothing() {
    let postgres = Postgres::start();
    let program = on(&postgres);
    let tenant = program.tenant();
    let serving = program.serve();
    let actor = serving.actor(&tenant);
    let (heard, writers) = start(&actor, &tenant, 4, usize::MAX);
    until("work", async || heard.made() > 20).await;
    postgres.stop();
    until("a refusal", async || heard.refused.load(Ordering::Relaxed) > 4).await;
    assert_eq!(actor.get("/ready").await.problem(), (503, "UNAVAILABLE"));
    assert_eq!(actor.get("/health").await.status, 200, "a restart would not help");
    postgres.bring_up();
    let before = heard.made();
    until("work again", async || heard.made() > before + 20).await;
    // The database hangs, and continues.
    let refused = heard.refused.load(Ordering::Relaxed);
    postgres.pause(true);
    until("a refusal", async || heard.refused.load(Ordering::Relaxed) > refused).await;
    postgres.pause(false);
    let before = heard.made();
    until("work again", async || heard.made() > before + 20).await;
    heard.stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(actor.get("/ready").await.status, 200);
    nothing_is_lost_or_halved(&postgres.url(), &heard).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn once_a_killed_database_has_every_acknowledged_write() {
    let postgres = Postgres::start();
    let program = on(&postgres);
    let tenant = program.tenant();
    let serving = program.serve();
    let (heard, writers) = start(&serving.actor(&tenant), &tenant, 8, 1_000);
    for kill_at in [150, 600] {
        until("the moment", async || heard.made() > kill_at).await;
        postgres.kill();
        postgres.bring_up();
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert!(heard.made() >= 1_000 && heard.refused.load(Ordering::Relaxed) > 0);
    nothing_is_lost_or_halved(&postgres.url(), &heard).await;
    let verified = program.json(&["audit", "verify"]);
    assert_eq!(verified["ok"], true, "{verified:#}");
}

/// There is only one connection: the dead one is returned before another is opened.
#[tokio::test]
async fn once_a_read_works_again_once_the_database_is_back() {
    let postgres = Postgres::start();
    let folder = tempfile::tempdir().unwrap();
    let settings = config(folder.path(), &postgres.url()).database;
    let db = Db::open(&settings::Database { max_connections: 1, ..settings }).await.unwrap();
    db.ping().await.unwrap();
    postgres.stop();
    postgres.bring_up();
    db.ping().await.unwrap();
}

/// Neither side learns that the other has gone.
#[tokio::test]
async fn once_a_round_survives_silent_connections() {
    let postgres = Postgres::start();
    let cable = Cable::to(&postgres).await;
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path(), &cable.url());
    config.limits.request_timeout_seconds = 1;
    muster::core::outbound::install_tls_provider();
    let core = muster::service::open(config, Options::default()).await.unwrap();
    core.db.migrate().await.unwrap();
    let follow = PERIODIC_JOBS.iter().find(|round| round.name == "policies.follow").unwrap();
    jobs::start(&core, std::slice::from_ref(follow));
    let goes_on = async || {
        // One read may be under way; the next one begins, and ends before another begins.
        let before = core.db.statements();
        until("the round goes on", async || core.db.statements() > before + 1).await;
    };
    goes_on().await;
    cable.mute();
    goes_on().await;
    core.tasks.stopping.cancel();
}

/// As long as anything reads what was written, the write-ahead log can't be emptied.
#[tokio::test]
async fn sqlite_an_abandoned_read_stops_before_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}?mode=rwc", folder.path().join("muster.db").display());
    let settings = config(folder.path(), &url).database;
    let db = Db::open(&settings::Database { max_connections: 1, ..settings }).await.unwrap();
    let writer = connect(&url).await;
    writer.execute_unprepared("CREATE TABLE numbers (number BIGINT)").await.unwrap();
    let first_and_endless = "WITH RECURSIVE n(i) AS (SELECT number FROM numbers UNION ALL SELECT i + 1 FROM n) \
                             SELECT 0 UNION ALL SELECT COUNT(*) FROM n";
    for round in 0..3 {
        writer.execute_unprepared("INSERT INTO numbers VALUES (1)").await.unwrap();
        let (begins, begun) = oneshot::channel();
        let mut begins = Some(begins);
        let read =
            db.each(first_and_endless.to_owned(), vec![], |_| begins.take().map(|begins| begins.send(())));
        tokio::select! {
            _ = read => panic!("it ended"),
            first = begun => first.unwrap(),
        }
        until("the only place is free", async || db.ping().await.is_ok()).await;
        let empty = Statement::from_string(writer.get_database_backend(), "PRAGMA wal_checkpoint(TRUNCATE)");
        let emptied = writer.query_one_raw(empty).await.unwrap().unwrap();
        let is_busy: i64 = emptied.try_get_by(0).unwrap();
        assert_eq!(is_busy, 0, "something still reads in round {round}");
    }
    db.close().await;
}

#[tokio::test]
async fn postgres_a_read_ends_with_its_request() {
    let app = TestApp::start_with(|config| config.limits.request_timeout_seconds = 7).await;
    let limit = async |db: &Db| {
        let row = db.one("SHOW statement_timeout".to_owned(), vec![]).await.unwrap().unwrap();
        row.try_get_by::<String, _>(0).unwrap()
    };
    assert_eq!(limit(&app.core.db).await, "12s");
    // Commands verify and count for as long as it takes.
    assert_eq!(limit(&Db::open(&app.core.config.database).await.unwrap()).await, "0");
}

#[tokio::test]
async fn postgres_reads_end_in_a_service_that_changes_no_tables() {
    let folder = tempfile::tempdir().unwrap();
    let url = empty_database(folder.path()).await;
    let program = Program::new(&[("MUSTER_DATABASE_URL", &url), ("MUSTER_LOG", "off")]);
    let tenant = program.tenant();
    let serving = program.serve_as_is();
    // The organization's name becomes what holds for the connection that reads it.
    let columns = "SELECT CAST(column_name AS TEXT) FROM information_schema.columns \
                   WHERE table_schema = 'public' AND table_name = 'organizations' ORDER BY ordinal_position";
    let columns = strings(&url, columns).await.join(", ");
    let columns = columns.replacen(", name,", ", current_setting('statement_timeout') AS name,", 1);
    let view = format!(
        "ALTER TABLE organizations RENAME TO kept; CREATE VIEW organizations AS SELECT {columns} FROM kept"
    );
    let db = connect(&url).await;
    db.execute_unprepared(&view).await.unwrap();
    db.close().await.unwrap();
    let read = serving.actor(&tenant).get(&format!("/v1/org/{}", tenant.org)).await.expect(200);
    assert_eq!(read["name"], "35s");
}

/// Killing the service does not test the disk, so this does: a commit waits until it is there.
#[tokio::test]
async fn once_acknowledged_changes_are_synced() {
    let folder = tempfile::tempdir().unwrap();
    let (file, postgres) = (folder.path().join("muster.db"), Postgres::start());
    for (url, setting, expected) in [
        (
            format!("sqlite://{}?mode=rwc", file.display()),
            "SELECT CAST(synchronous AS TEXT) FROM pragma_synchronous",
            "2",
        ),
        (postgres.url(), "SELECT setting FROM pg_settings WHERE name = 'synchronous_commit'", "on"),
    ] {
        let db = Db::open(&config(folder.path(), &url).database).await.unwrap();
        let row = db.one(setting.to_owned(), vec![]).await.unwrap().unwrap();
        assert_eq!(row.try_get_by::<String, _>(0).unwrap(), expected, "{setting}");
    }
}

/// A file system of four megabytes.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mount = ["-t", "tmpfs", "-o", "size=4m", "tmpfs"];
        let mounted = std::process::Command::new("mount").args(mount).arg(folder.path()).status().unwrap();
        assert!(mounted.success(), "only root may mount a disk");
        Self(folder)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn root_a_full_disk_is_reported_and_nothing_breaks() {
    let disk = SmallDisk::mount();
    let url = format!("sqlite://{}/muster.db", disk.0.path().display());
    let program = Program::new(&[("MUSTER_DATABASE_URL", &url), ("MUSTER_LOG", "off")]);
    let tenant = program.tenant();
    let serving = program.serve();
    // Space to free later.
    let ballast = disk.0.path().join("ballast");
    std::fs::write(&ballast, vec![1; 256 << 10]).unwrap();
    fills_up_and_goes_on(&url, &tenant, serving, |_| std::fs::remove_file(&ballast).unwrap()).await;
}

#[test]
fn root_commands_that_only_read_work_on_a_read_only_disk() {
    let disk = SmallDisk::mount();
    let folder = disk.0.path().display().to_string();
    let program = Program::new(&[("MUSTER_DATA_DIR", &folder), ("MUSTER_LOG", "warn")]);
    let tenant = program.tenant();
    let org = tenant.org.to_string();
    let remount = |how: &str| {
        let mut mount = std::process::Command::new("mount");
        assert!(mount.args(["-o", how]).arg(disk.0.path()).status().unwrap().success());
    };
    remount("remount,ro");
    for command in [
        &["org", "list"][..],
        &["user", "list"],
        &["token", "list", "--org", &org],
        &["key", "list"],
        &["audit", "verify"],
        &["policy", "history", "--org", &org],
    ] {
        let ran = program.run(&[command, &["--json"]].concat());
        assert!(ran.good(), "{command:?}: {}{}", ran.text, ran.err);
    }
    let ran = program.run(&["org", "create", "--name", "B", "--owner-email", "b@example.org", "--json"]);
    let said = ran.refused(1, "UNAVAILABLE");
    assert!(said.contains("readonly"), "{said}");
    // Changes that a killed process left beside the database can't be read without writing.
    remount("remount,rw");
    std::fs::write(disk.0.path().join("muster.db-wal"), "not yet in the database").unwrap();
    remount("remount,ro");
    let said = program.run(&["org", "list", "--json"]).refused(1, "VALIDATION_FAILED");
    assert!(said.contains("muster.db-wal") && said.contains("Copy both"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn once_a_file_size_limit_counts_as_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/muster.db?mode=rwc", folder.path().display());
    let program = Program::new(&[("MUSTER_DATABASE_URL", &url), ("MUSTER_LOG", "off")]);
    let tenant = program.tenant();
    let serving = program.serve_with_files_of(2 << 20);
    fills_up_and_goes_on(&url, &tenant, serving, Serving::lift).await;
}

/// Writes until the disk is full, which callers learn, reading meanwhile; then calls `make_room`, and it
/// continues.
async fn fills_up_and_goes_on(
    url: &str,
    tenant: &Tenant,
    serving: Serving,
    make_room: impl FnOnce(&Serving),
) {
    let actor = serving.actor(tenant);
    let path = format!("/v1/org/{}/server", tenant.org);
    let make = async |n: usize| {
        let body = json!({ "name": format!("w{n}"), "description": "x".repeat(500), "labels": { "l": "y".repeat(100) } });
        actor.post(&path, body).await
    };
    let mut made = 0;
    let full = loop {
        let answer = make(made).await;
        if answer.status != 201 {
            break answer;
        }
        made += 1;
        assert!(made < 20_000, "it never fills");
    };
    assert_eq!(full.problem(), (507, "STORAGE_FULL"), "after {made}: {}", full.text);
    // Reads still work.
    let list = actor.get(&format!("{path}?page=1&limit=1")).await.expect(200);
    assert_eq!(list["total"], made);
    // A change that is refused midway and rolled back: what follows must not run inside it.
    assert_eq!(make(0).await.problem(), (409, "NAME_TAKEN"));
    make_room(&serving);
    let mut again = make(made).await;
    for _ in 0..600 {
        if again.status == 201 {
            break;
        }
        sleep(Duration::from_millis(100)).await;
        again = make(made).await;
    }
    assert_eq!(again.status, 201, "it continues once there is room: {}", again.text);
    // Checked from outside, not only through the connection that wrote it.
    assert_eq!(strings(url, "SELECT name FROM servers").await.len(), made + 1);
    drop(serving);
    assert_eq!(strings(url, "PRAGMA integrity_check").await, ["ok"]);
    assert_eq!(strings(url, "SELECT name FROM servers").await.len(), made + 1);
}
