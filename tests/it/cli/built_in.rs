//! What the program does without an installation: the programs that are built in, completions, and the health check.

use std::{os::unix::fs::symlink, process::Command};

use crate::harness::{TestApp, muster};

const NO_VARIABLES: [(&str, &str); 0] = [];

#[test]
fn a_link_runs_the_program_that_it_is_named_after() {
    let folder = tempfile::tempdir().unwrap();
    for (name, argument, expected) in [
        ("muster-agent", "--version", "muster-agent "),
        ("muster-host", "--version", "host "),
        ("muster-shim", "help", "Usage:\n  muster-shim run "),
        ("shim", "help", "Usage:\n  muster-shim run "),
        ("muster-2", "--version", "muster "),
    ] {
        let link = folder.path().join(name);
        symlink(env!("CARGO_BIN_EXE_muster"), &link).unwrap();
        let said = Command::new(&link).arg(argument).output().unwrap();
        let text = String::from_utf8(said.stdout).unwrap();
        assert!(said.status.success() && text.starts_with(expected), "{name}: {text}");
    }
}

#[tokio::test]
async fn shells_complete_muster_and_its_host() {
    for shell in ["bash", "zsh", "fish"] {
        let script = muster(&["completions", shell], &NO_VARIABLES).await.expect()["script"].to_string();
        assert!(script.contains("build-image") && script.contains("break-glass"), "{shell}: {script}");
        let ran =
            muster(&["completions", shell, "--host"], &NO_VARIABLES).await.expect()["script"].to_string();
        assert!(ran.contains("build-image") && ran.contains("muster-host"), "{shell}: {ran}");
        assert!(!ran.contains("break-glass"), "{shell}: {ran}");
    }
}

#[tokio::test]
async fn the_health_check_asks_a_running_service() {
    let app = TestApp::start().await;
    let ready = app.cli(&["health", "--url", &app.base]).await.expect();
    assert_eq!(ready["ready"], true);
    // The address in the settings has port 0, which nothing listens on.
    let refused = app.refuses(&["health"], 1, "UNAVAILABLE").await;
    assert!(refused.contains("127.0.0.1:0"), "{refused}");
}
