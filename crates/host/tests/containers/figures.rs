//! Memory of Muster's own processes with ten agents in containers: printed, for docs/performance.md.
//!
//! `tests/containers docker figures:: --no-capture`

use std::{collections::BTreeMap, fs};

use muster_protocol::{Command, event::TurnOutcome};

use crate::{
    client,
    engine::{Contained, PROBE, list},
    support::Plane,
};

/// A process's memory in KiB: private written memory, and the total with its program.
fn memory(process: i32) -> (u64, u64) {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let of = |name: &str| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim_end_matches("kB").trim().parse::<u64>().ok()).unwrap_or_default()
    };
    (of("Private_Dirty:"), of("Rss:"))
}

/// The role of a process in a container.
fn role(process: i32) -> &'static str {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let says = |word: &str| line.split(|byte| *byte == 0).any(|it| it == word.as_bytes());
    match () {
        () if says("contain") => "shim",
        () if says("serve-gate") => "relay",
        () if says("mcp") => "relay of Muster's MCP server",
        () => "agent",
    }
}

/// The host's process, once connected and idle.
async fn runs(plane: &Plane, host: &Contained) -> i32 {
    plane.launch(11, 1).await;
    plane.order(11, 1, Command::Stop);
    plane.wait("it ends", |state| state.ended(11, 1)).await;
    fs::read_to_string(host.path().join("lock")).unwrap().trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine: tests/containers"]
async fn ten_agents_take_little_besides_their_own() {
    let plane = Plane::start().await;
    let (_folder, path) = list("/muster-agent", &[]);
    let host = Contained::start(&plane, &["--programs", &path]);
    let process = runs(&plane, &host).await;
    let idle = memory(process);
    for agent in 1..=10 {
        plane.begin(agent, 1, PROBE);
    }
    for agent in 1..=10 {
        plane.wait("it runs", |state| state.started(agent, 1).then_some(())).await;
        assert_eq!(plane.say(agent, 1, agent * 10, "Hello").await.outcome, TurnOutcome::Done);
        let gate = "for i in 1 2 3 4 5; do http_proxy=http://127.0.0.1:3128 wget -O - http://10.0.0.1/; done";
        let said = host.as_agent(agent, 1, &["/busybox", "sh", "-c", gate]);
        assert!(String::from_utf8_lossy(&said.stderr).contains("403"), "{said:?}");
    }
    let mut all: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for agent in 1..=10 {
        for process in client::processes(&host.socket, &host.name(agent, 1)) {
            all.entry(role(process)).or_default().push(memory(process));
        }
    }
    let busy = memory(process);
    println!(
        "memory in KiB, its own and all: the host with its gates, idle {idle:?}, with ten agents {busy:?}"
    );
    let mut sum = busy.0.saturating_sub(idle.0);
    for (role, found) in &all {
        let (own, rss) = found.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let count = found.len() as u64;
        println!("{role}: {count}, each {:?}", (own / count, rss / count));
        if *role != "agent" {
            sum += own;
        }
    }
    assert_eq!(all["shim"].len(), 10, "{all:?}");
    // In KiB. It takes a tenth; more is a bug.
    assert!(sum / 10 < 20_000, "{sum} KiB for ten agents");
}
