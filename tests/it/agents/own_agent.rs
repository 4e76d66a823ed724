//! The agent of `docs/own-agent.md`, as it stands there, on a host.

use std::{
    fs,
    path::{Path, PathBuf},
};

use muster_testing::peers::file;
use serde_json::json;

use crate::{agents::running::House, harness::Scripts};

/// What the Python of `tests/peers/agent` reads: its packages, and the Python that it was made from unless that is the
/// system's.
fn readable(python: &Path) -> Vec<PathBuf> {
    assert!(python.exists(), "the peers are not installed: tests/install");
    let prefix = |program: &Path| program.parent().and_then(Path::parent).unwrap().to_owned();
    let made_from = prefix(&fs::canonicalize(python).unwrap());
    let all = [prefix(python), made_from].into_iter();
    all.filter(|folder| !folder.starts_with("/usr")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn once_the_agent_of_the_manual_remembers_and_asks() {
    let house = House::open().await;
    let scripts = Scripts::of_page("docs/own-agent.md", "tests/it/agents/own_agent.rs");
    let python = file("target/agent/bin/python3");
    let mut readable = readable(&python);
    readable.push(scripts.path().to_owned());
    let program =
        json!({ "command": python, "args": [scripts.path().join("agent.py")], "readable": readable });
    scripts.add("programs.toml", &toml::to_string(&json!({ "shop": program })).unwrap());
    let image = house.image(json!({ "name": "Shop", "reference": "shop" })).await;
    let list = scripts.path().join("programs.toml");
    let crew = house.crew_with("shop", image, &[("MUSTER_HOST_PROGRAMS", list.to_str().unwrap())]).await;
    house.stays_down(crew.agent).await;
    house.starts(&crew).await;

    let conversation = house.says(&crew, "Hello").await;
    house.hears(&crew, conversation, "This is message 1. The first one was: Hello").await;
    for (option, answer) in [("deny", "A person said no."), ("approve", "It is refunded.")] {
        house.adds(conversation, "refund 17").await;
        let (approval, kind) = house.asked(&crew, conversation).await;
        assert_eq!(kind, "ACTION");
        house.answers(approval, json!({ "options": [option] })).await;
        house.hears(&crew, conversation, answer).await;
    }
    assert_eq!(house.rests(conversation).await, ["DONE"; 3]);

    crew.machine.kill_one("shim");
    crew.until(&house.actor, house.tenant.org, "ERROR").await;
    house.starts(&crew).await;
    house.adds(conversation, "Still there?").await;
    house.hears(&crew, conversation, "This is message 4. The first one was: Hello").await;
}
