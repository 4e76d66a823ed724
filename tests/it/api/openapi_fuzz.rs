//! Third-party tools, against the OpenAPI document and the service that implements it
//! (`tests/peers/schemathesis`).

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use muster::{api::rest::ROUTES, base::permission::Permission};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, process::Command, time::timeout};

use crate::harness::TestApp;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A program in the tools' own Python environment.
fn tool(program: &str) -> Command {
    let path: PathBuf = [ROOT, "target", "schemathesis", "bin", program].iter().collect();
    assert!(
        path.exists(),
        "Schemathesis is not installed: python3 -m venv target/schemathesis && \
         target/schemathesis/bin/pip install -r tests/peers/schemathesis/requirements.txt"
    );
    let mut command = Command::new(path);
    command.current_dir(Path::new(ROOT)).kill_on_drop(true);
    for name in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"] {
        command.env_remove(name);
    }
    command
}

/// The output of a command and its exit code.
async fn run(mut command: Command, input: &Value) -> (String, Option<i32>) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process.stdin.take().unwrap().write_all(input.to_string().as_bytes()).await.unwrap();
    let output = timeout(Duration::from_mins(12), process.wait_with_output());
    let output = output.await.expect("it ends").unwrap();
    let said = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&said).into_owned(), output.status.code())
}

#[tokio::test]
async fn the_service_keeps_what_the_openapi_document_promises() {
    let (app, all) = TestApp::populated(10).await;
    let permissions: Vec<&str> = Permission::ALL.iter().map(|one| one.as_str()).collect();
    let token = app.token(&permissions).await;
    let given = json!({
        "url": app.base,
        "token": token.bearer(),
        "org": app.org,
        "ids": {
            "server": all.servers,
            "image": all.images,
            "member": all.members,
            "agent": all.agents,
            "approval": all.approvals,
            "conversation": all.conversations,
            "turn": all.turns,
            "channel": all.channels,
            "credential": all.credentials,
            "mcp_server": all.mcp_servers,
            "skill": all.skills,
        },
        // The run must report unneeded rules and exemptions without a rule, and only those.
        "rules": [["POST /agent", "/invented", "NOT_FOUND", "invented"]],
        "rare": [["POST /agent", "/gone", "NOT_FOUND"]],
    });
    let mut schemathesis = tool("python3");
    schemathesis.args(["tests/peers/schemathesis/run", "--max-examples=10"]);
    let (said, code) = run(schemathesis, &given).await;
    let found = ["No case of this run", "In RARE"];
    let unneeded: Vec<&str> =
        said.lines().filter(|line| found.iter().any(|text| line.starts_with(text))).collect();
    let invented = [
        "No case of this run has needed: POST /agent /invented NOT_FOUND",
        "In RARE but not a rule: POST /agent /gone NOT_FOUND",
    ];
    assert_eq!((code, unneeded.as_slice()), (Some(3), invented.as_slice()), "{said}");
}

#[tokio::test]
async fn another_validator_accepts_the_openapi_document() {
    let mut validator = tool("openapi-spec-validator");
    validator.arg("schema/openapi.json");
    let (said, code) = run(validator, &Value::Null).await;
    assert_eq!(code, Some(0), "{said}");
}

#[tokio::test]
async fn every_example_fits_its_schema() {
    let mut examples = tool("python3");
    examples.args(["tests/peers/schemathesis/examples", "schema/openapi.json"]);
    let (said, code) = run(examples, &Value::Null).await;
    assert_eq!(code, Some(0), "{said}");
    // An answer of each operation but the specification's, and the bodies.
    let ours = ROUTES.iter().filter(|route| !route.is_specified()).count();
    assert!(said.trim().parse::<usize>().unwrap() > ours, "{said}");
}
