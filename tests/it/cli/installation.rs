//! Which commands create an installation, which only look for one, and who owns its database: with the real program, on
//! its first use.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::json;

use super::store_secret;
use crate::harness::{Postgres, Program, Ran, TestApp, empty_database, is_postgres, muster};

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Every command that reads an installation or changes its rows.
const LOOKING: [&[&str]; 13] = [
    &["org", "list"],
    &["user", "list"],
    &["user", "show", "a@example.org"],
    &["token", "list", "--org", "1"],
    &["token", "create", "--org", "1", "--name", "x", "--all"],
    &["session", "create", "--email", "a@example.org"],
    &["key", "list"],
    &["audit", "verify"],
    &["audit", "export", "--org", "1"],
    &["policy", "history", "--org", "1"],
    &["migrate", "--plan"],
    &["seed", "--org", "1"],
    &["serve", "--no-migrate"],
];

#[tokio::test]
async fn a_command_without_an_installation_creates_none() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let url = empty_database(folder.path()).await;
    for arguments in LOOKING {
        let mut variables = vec![
            ("MUSTER_DATA_DIR", data.to_str().unwrap()),
            ("MUSTER_LISTEN", "127.0.0.1:0"),
            ("MUSTER_LOG", "off"),
        ];
        if is_postgres() {
            variables.push(("MUSTER_DATABASE_URL", &url));
            // Commands that only need the database say what is missing.
            if arguments.contains(&"--plan") {
                continue;
            }
        }
        let said = muster(arguments, &variables).await.refused(1, "NOT_FOUND");
        let expected = if is_postgres() {
            "The database has no Muster tables, or the role is not allowed to see them (database.url)."
                .to_owned()
        } else {
            format!("There is no database at {} (data_dir).", data.join("muster.db").display())
        };
        assert!(said.starts_with(&expected) && said.contains("`muster migrate`"), "{arguments:?}: {said}");
        assert!(!data.exists(), "{arguments:?} has made {:?}", files(&data));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_file_is_created_next_to_sealed_values() {
    let app = TestApp::start().await;
    store_secret(&app).await;
    let keys = app.folder().join("elsewhere.toml");
    let mut variables = app.variables();
    variables.push(("MUSTER_KEYS_FILE".to_owned(), keys.to_str().unwrap().to_owned()));
    let make = ["org", "create", "--name", "House", "--owner-email", "a@example.org"];
    for arguments in [&["serve"][..], &["migrate"], &["org", "list"], &["key", "list"], &make] {
        let said = muster(arguments, &variables).await.refused(1, "FAILED");
        assert!(
            said.contains(keys.to_str().unwrap()) && said.contains("Copy it there"),
            "{arguments:?}: {said}"
        );
        assert!(!keys.exists(), "{arguments:?}");
    }
    let found = muster(&["doctor"], &variables).await;
    let first = &found.out["findings"][0];
    assert_eq!((found.code, &first["check"], &first["level"]), (Some(1), &json!("keys"), &json!("bad")));
    assert!(first["found"].as_str().unwrap().contains(keys.to_str().unwrap()), "{first}");
    assert!(!keys.exists());
    // A running service doesn't create one either when the file disappears.
    let own = &app.core.config.keys_file;
    fs::remove_file(own).unwrap();
    muster::core::keys::reload(&app.core);
    assert!(!own.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_owns_an_sqlite_database_and_others_learn_which() {
    let program = Program::new(&[("MUSTER_LOG", "off")]);
    let tenant = program.tenant();
    let mut serving = program.serve();
    let backup = tempfile::tempdir().unwrap();
    let file = backup.path().join("backup").display().to_string();
    program.json(&["backup", "--out", &file]);
    for arguments in [&["serve"][..], &["migrate"], &["restore", &file]] {
        let said = program.run(&[arguments, &["--json"]].concat()).refused(1, "FAILED");
        for part in ["`muster serve` (process ", serving.base.as_str(), "muster.db"] {
            assert!(said.contains(part), "{arguments:?}: {part}: {said}");
        }
    }
    // The others work alongside it.
    program.json(&["org", "list"]);
    program.json(&["token", "create", "--org", &tenant.org.to_string(), "--name", "beside", "--all"]);
    program.json(&["migrate", "--plan"]);
    serving.actor(&tenant).get("/health").await.expect(200);
    serving.terminate();
    assert_eq!(serving.ended().await, Some(0));
    assert_eq!(program.json(&["migrate"])["steps"], json!([]));
    // A killed process no longer owns anything.
    let killed = program.serve();
    drop(killed);
    program.json(&["migrate"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_taken_address_is_named_before_any_write() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let variables = [("MUSTER_DATA_DIR", data.to_str().unwrap()), ("MUSTER_LISTEN", &address)];
    for (arguments, way_out) in [
        (&["serve"][..], "MUSTER_LISTEN=127.0.0.1:"),
        (&["demo", "--data-dir", data.to_str().unwrap()], "muster demo --listen 127.0.0.1:"),
    ] {
        let said = muster(arguments, &variables).await.refused(1, "FAILED");
        let expected = format!("{address} is in use by another program. Choose another address: {way_out}");
        assert!(said.starts_with(&expected), "{said}");
        assert!(!data.exists(), "{arguments:?} has made {:?}", files(&data));
    }
}

/// The first line of `muster demo --json`, and its end.
fn demo(folder: &Path, variables: &[(&str, &str)]) -> serde_json::Value {
    use std::io::{BufRead, BufReader};
    let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
    command.args(["demo", "--json", "--data-dir"]).arg(folder).env_clear().envs(variables.iter().copied());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    serde_json::from_str(&said).expect("it becomes ready")
}

#[tokio::test]
async fn the_demo_has_its_own_data_and_one_token() {
    let folder = tempfile::tempdir().unwrap();
    let (data, other) = (folder.path().join("demo"), folder.path().join("other"));
    let variables = [("MUSTER_LISTEN", "127.0.0.1:0"), ("MUSTER_DATA_DIR", other.to_str().unwrap())];
    let first = demo(&data, &variables);
    assert_ne!(first["address"], "http://127.0.0.1:8080", "the setting applies");
    for place in ["documentation", "explorer", "OpenAPI", "tools", "health", "ready"] {
        let at = first["places"][place].as_str().unwrap_or_default();
        assert!(at.starts_with(first["address"].as_str().unwrap()), "{place}: {at}");
    }
    let link = first["link"].as_str().unwrap();
    assert!(
        link.starts_with(&format!("{}/sign-in#code=mst_code_", first["address"].as_str().unwrap())),
        "{link}"
    );
    let second = demo(&data, &variables);
    assert_eq!(first["service_token"], second["service_token"]);
    assert!(!other.exists(), "its data is in its own folder");
    let variables = [("MUSTER_DATA_DIR", data.to_str().unwrap()), ("MUSTER_LOG", "off")];
    let listed = muster(&["token", "list", "--org", "1"], &variables).await.expect();
    assert_eq!(listed["tokens"].as_array().unwrap().len(), 1);
    let arguments = ["demo", "--data-dir", data.to_str().unwrap()];
    let said = muster(&arguments, &[("MUSTER_LISTN", "127.0.0.1:0")]).await.refused(1, "VALIDATION_FAILED");
    assert!(said.contains("MUSTER_LISTN") && said.contains("MUSTER_LISTEN"), "{said}");
}

#[tokio::test]
async fn a_database_problem_is_reported_once_with_the_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().to_str().unwrap(), folder.path().join("muster.db"));
    fs::write(&file, "this is not a database, and longer than the head of one: ".repeat(20)).unwrap();
    let said = muster(&["migrate"], &[("MUSTER_DATA_DIR", data)]).await.refused(1, "FAILED");
    assert!(said.starts_with(file.to_str().unwrap()) && said.contains("muster restore"), "{said}");
    let found = muster(&["doctor"], &[("MUSTER_DATA_DIR", data)]).await;
    assert!(
        !found.good() && !found.out.to_string().contains("that the server is running"),
        "{:#}",
        found.out
    );
    let unwritable = [("MUSTER_DATA_DIR", "/proc/x"), ("MUSTER_LISTEN", "127.0.0.1:0")];
    let said = muster(&["serve"], &unwritable).await.refused(1, "FAILED");
    assert!(said.starts_with("The data folder /proc/x can't be created"), "{said}");
    // No one is listening.
    let keys = folder.path().join("keys.toml");
    muster::core::sealing::KeyFile::load_or_create(&keys).unwrap();
    let away = [
        ("MUSTER_DATA_DIR", data),
        ("MUSTER_DATABASE_URL", "postgres://app:hunter2hunter2@127.0.0.1:1/muster"),
    ];
    let said = muster(&["org", "list"], &away).await.refused(1, "UNAVAILABLE");
    assert_eq!(said, "PostgreSQL at 127.0.0.1:1 refuses connections (database.url). Is it running?");
    let nothing = folder.path().join("nothing.tar").display().to_string();
    let said = muster(&["restore", &nothing], &[("MUSTER_DATA_DIR", data)]).await.refused(1, "NOT_FOUND");
    assert!(said.starts_with(&nothing), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_refusals_come_with_the_fixing_command() {
    let server = Postgres::start();
    let program = |url: &str| Program::new(&[("MUSTER_DATABASE_URL", url), ("MUSTER_LOG", "off")]);
    let migrate = |url: &str| -> String {
        let ran: Ran = program(url).run(&["migrate", "--json"]);
        ran.refused(1, "FAILED")
    };
    let url = server.url();
    let said = migrate(&url.replace("/postgres?", "/m5?"));
    assert!(
        said.contains("has no database \"m5\"") && said.contains("createdb --owner=postgres m5"),
        "{said}"
    );
    let admin = crate::harness::connect(&url).await;
    sea_orm::ConnectionTrait::execute_unprepared(&admin, "CREATE ROLE app LOGIN").await.unwrap();
    let said = migrate(&url.replace("postgres@localhost", "app@localhost"));
    assert!(said.contains("ALTER DATABASE \"postgres\" OWNER TO \"app\""), "{said}");
    assert_eq!(said.matches("permission denied").count(), 1, "{said}");
}

#[tokio::test]
async fn a_duplicate_organization_name_needs_a_flag() {
    let folder = tempfile::tempdir().unwrap();
    let url = empty_database(folder.path()).await;
    let program = Program::new(&[("MUSTER_DATABASE_URL", &url), ("MUSTER_LOG", "off")]);
    let make = ["org", "create", "--name", "Acme", "--owner-email", "ada@example.org"];
    let made = program.run(&make);
    assert!(made.good() && made.text.contains("No account had the address ada@example.org"), "{}", made.text);
    let said = program.run(&[&make[..], &["--json"]].concat()).refused(1, "NAME_TAKEN");
    assert!(said.starts_with("An organization named `Acme` already exists"), "{said}");
    let second = program.run(&[&make[..], &["--same-name"]].concat());
    assert!(second.good() && !second.text.contains("No account"), "{}", second.text);
    assert_eq!(program.json(&["org", "list"])["organizations"].as_array().unwrap().len(), 2);
}
