//! Clients that generators make from the schema and the OpenAPI document (`tests/peers/clients`), compiled, and run
//! against a service whose agent runs.

use std::fs;

use muster_testing::peers::{file, on_this_machine, output};
use serde_json::Value;
use tokio::process::Command;

use crate::{
    agents::running::House,
    harness::{Crew, Scripts, peer_folder},
};

const TASK: &str = r#"do execute Deploy {"command":"make deploy"}"#;

/// Runs a client that gives the agent a task, and allows what it asks for.
async fn does_a_task(mut client: Command, house: &House, crew: &Crew) {
    let (org, agent) = (house.tenant.org.to_string(), crew.agent.to_string());
    client.env("MUSTER_URL", house.actor.base()).env("MUSTER_TOKEN", &house.tenant.token);
    client.env("ORG", org).env("AGENT", agent).env("TASK", TASK);
    assert_eq!(output(client, "").await, "approved: Deploy\nDONE\n");
}

/// A program of `tests/peers/clients/requirements.txt`.
fn python(program: &str) -> Command {
    let program = file("target/clients/bin").join(program);
    assert!(program.exists(), "the peers are not installed: tests/install");
    on_this_machine(Command::new(program))
}

#[tokio::test(flavor = "multi_thread")]
async fn once_clients_from_the_schema_and_openapi_work() {
    let (house, crew) = House::with_crew("generated").await;
    let scripts = Scripts::new();
    for name in ["codegen.json", "graphql.ts", "python.yml", "rest.py", "rest.ts"] {
        fs::copy(peer_folder("clients").join(name), scripts.path().join(name)).unwrap();
    }
    let openapi = house.actor.get("/openapi.json").await.expect(200);
    scripts.add("openapi.json", &openapi.to_string());
    fs::copy(file("schema/schema.graphql"), scripts.path().join("schema.graphql")).unwrap();
    let documents = scripts.path().join("documents");
    fs::create_dir(&documents).unwrap();
    for document in fs::read_dir(file("schema/rest")).unwrap() {
        let document = document.unwrap();
        fs::copy(document.path(), documents.join(document.file_name())).unwrap();
    }
    scripts.node("@graphql-codegen/cli/esm/bin.js", &["--config", "codegen.json"]).await;
    scripts.node("openapi-typescript/bin/cli.js", &["openapi.json", "--output", "openapi.ts"]).await;
    let operations = fs::read_to_string(scripts.path().join("operations.ts")).unwrap();
    assert!(!operations.contains(": any"), "every value has a type");
    scripts.compile().await;
    for name in ["graphql.ts", "rest.ts"] {
        does_a_task(scripts.command(name), &house, &crew).await;
    }

    let mut generator = python("openapi-python-client");
    generator.args(["generate", "--path", "openapi.json", "--output-path", "muster_client"]);
    generator.args(["--meta", "none", "--config", "python.yml", "--fail-on-warning"]);
    generator.current_dir(scripts.path());
    output(generator, "").await;
    let mut client = python("python3");
    client.arg("rest.py").current_dir(scripts.path());
    does_a_task(client, &house, &crew).await;
}

/// `strictScalars` refuses a scalar without a type.
#[test]
fn once_the_scalars_for_code_generators_are_documented() {
    let settings = fs::read_to_string(peer_folder("clients").join("codegen.json")).unwrap();
    let settings: Value = serde_json::from_str(&settings).unwrap();
    let scalars = settings["generates"]["operations.ts"]["config"]["scalars"].as_object().unwrap();
    let told = fs::read_to_string(file("docs/api.md")).unwrap();
    for (name, ty) in scalars {
        let line = format!("{name}: {}", ty.as_str().unwrap());
        assert!(told.contains(&line), "docs/api.md does not say {line}");
    }
}
