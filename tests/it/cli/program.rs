//! What the program prints about itself: its version, and a unit that runs it.

use std::{fs, path::Path, process::Command};

use muster::core::store::newest_step;
use serde_json::json;

use crate::harness::Program;

#[test]
fn once_the_version_says_what_the_program_fits() {
    let program = Program::new(&[]);
    let shown = program.json(&["version"]);
    assert_eq!((&shown["name"], &shown["version"]), (&json!("muster"), &json!(env!("CARGO_PKG_VERSION"))));
    assert_eq!(shown["schema_step"], newest_step());
    assert_eq!(shown["protocols"]["gateway"], json!(muster_protocol::VERSIONS));
    assert!(shown["protocols"]["shim"].is_u64() && shown.get("commit").is_some(), "{shown}");
    assert!(shown["platform"].as_str().unwrap().starts_with(std::env::consts::ARCH), "{shown}");
    // It opens no installation.
    assert!(!Path::new(program.variable("MUSTER_DATA_DIR")).join("muster.db").exists());
    let text = program.run(&["version"]).text;
    assert!(text.starts_with("name: muster\nversion: "), "{text}");
    let short = program.run(&["--version"]).text;
    assert_eq!(short, concat!("muster ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn once_the_unit_names_the_program_the_settings_and_the_user() {
    let program = Program::new(&[]);
    let own = fs::canonicalize(env!("CARGO_BIN_EXE_muster")).unwrap();
    let own = own.display();
    let unit = program.run(&["unit"]).text;
    let line = format!("\nExecStart=\"{own}\" serve --config \"/etc/muster/muster.toml\"\n");
    assert!(unit.contains(&line) && unit.contains("\nDynamicUser=yes\nUser=muster\n"), "{unit}");
    let given = ["unit", "--user", "ada", "--config", "/srv/a b.toml"];
    let unit = program.run(&given).text;
    let line = format!("\nExecStart=\"{own}\" serve --config \"/srv/a b.toml\"\n");
    assert!(unit.contains(&line), "{unit}");
    assert!(unit.contains("\nUser=ada\n") && !unit.contains("DynamicUser"), "{unit}");
    assert_eq!(program.json(&given)["unit"], unit);
}

#[test]
fn once_systemd_accepts_the_unit_and_rates_it_under_2() {
    let (program, place) = (Program::new(&[]), tempfile::tempdir().unwrap());
    let path = place.path().join("muster.service");
    let ask = |arguments: &[&str]| {
        let ran = Command::new("systemd-analyze").args(arguments).arg(&path).output().ok()?;
        Some((ran.status.success(), String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned()))
    };
    for user in [vec![], vec!["--user", "daemon"]] {
        fs::write(&path, program.run(&[&["unit"][..], &user].concat()).text).unwrap();
        let Some((_, said)) = ask(&["verify", "--man=no"]) else {
            eprintln!("skipped: systemd-analyze is not installed");
            return;
        };
        assert!(!said.contains("muster.service:"), "{said}");
        // In tenths.
        let (is_under, said) = ask(&["security", "--offline=true", "--no-pager", "--threshold=19"]).unwrap();
        assert!(is_under, "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn once_the_service_works_within_its_unit() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!("skipped: systemd-analyze is not installed");
        return;
    }
    let (program, place) = (Program::new(&[]), tempfile::tempdir().unwrap());
    let unit = place.path().join("muster.service");
    fs::write(&unit, program.run(&["unit"]).text).unwrap();
    let tenant = program.tenant();
    let mut serving = program.serve_confined(&unit);
    let org = serving.actor(&tenant).get(&format!("/v1/org/{}", tenant.org)).await.expect(200);
    assert_eq!(org["name"], "House");
    serving.terminate();
    assert_eq!(serving.ended().await, Some(0));
}
