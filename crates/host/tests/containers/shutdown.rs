//! How agents in containers end, and the leftovers.

use muster_protocol::{Command, HostEvent, event::EndReason};

use crate::{
    engine::{Contained, PROBE, docker, kind, list, plan},
    support::{Plane, within},
};

/// Waits for a launch's end, and returns its reason.
async fn end(plane: &Plane, agent_id: i64) -> (EndReason, Option<String>) {
    let ended = plane.wait("it ends", |state| state.ended(agent_id, 1)).await;
    let HostEvent::Ended { reason, detail, .. } = ended else { panic!("{ended:?}") };
    (reason, detail)
}

/// Waits until this host has no container.
async fn empty(host: &Contained) {
    for _ in 0..200 {
        if host.containers().is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("containers are left: {:?}", host.containers());
}

/// In MiB.
fn half_of_the_memory() -> i64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap();
    total.trim().trim_end_matches(" kB").parse::<i64>().unwrap() / 1024 / 2
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine: tests/containers"]
async fn exceeding_the_memory_limit_ends_the_agent_with_that_reason() {
    let plane = Plane::start().await;
    let (_folder, path) = list("/busybox", &["tail", "/dev/zero"]);
    let host = Contained::start(&plane, &["--programs", &path]);
    plan(&plane, 7, |plan| plan.limits.memory_mb = Some(64));
    plane.begin(7, 1, PROBE);
    assert_eq!(end(&plane, 7).await.0, EndReason::OutOfMemory);
    empty(&host).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine: tests/containers"]
async fn a_stop_removes_the_container_and_a_missing_program_is_named() {
    let plane = Plane::start().await;
    let (_folder, path) = list("/no/such/program", &[]);
    let host = Contained::start(&plane, &["--programs", &path]);
    plane.launch(8, 1).await;
    assert_eq!(plane.say(8, 1, 80, "Hello").await.error, None);
    plane.order(8, 1, Command::Stop);
    assert_eq!(end(&plane, 8).await.0, EndReason::Stopped);
    plane.begin(7, 1, PROBE);
    let (reason, detail) = end(&plane, 7).await;
    assert_eq!(reason, EndReason::SpawnFailed, "{detail:?}");
    assert!(detail.unwrap_or_default().contains("/no/such/program"));
    empty(&host).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine: tests/containers"]
async fn an_agent_with_a_hung_shim_is_stopped_with_its_container() {
    let plane = Plane::start().await;
    let host = Contained::start(&plane, &[]);
    plane.launch(7, 1).await;
    host.says(&["kill", "--signal", "STOP", &host.name(7, 1)]);
    plane.order(7, 1, Command::Stop);
    assert_eq!(end(&plane, 7).await, (EndReason::Stopped, None));
    empty(&host).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine: tests/containers"]
async fn a_folder_keeps_its_engine_and_stop_ends_what_runs_there() {
    let plane = Plane::start().await;
    let mut host = Contained::start(&plane, &[]);
    plane.launch(7, 1).await;
    let memory = host.says(&["inspect", "--format", "{{.HostConfig.Memory}}", &host.name(7, 1)]);
    assert_eq!(memory.trim(), (half_of_the_memory() * 1024 * 1024).to_string(), "default memory limit");
    host.terminate();
    let says = |words: &[&str], socket: Option<&str>| {
        let mut command = host.command(words[0]);
        command.args(&words[1..]).args(socket.iter().flat_map(|socket| ["--engine", socket]));
        let output = within(|| command.output().unwrap());
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    };
    let (is_done, refused) = says(&["run", "--runtime", "process"], None);
    assert!(
        !is_done && refused.contains("and their homes are there: as plain processes they would"),
        "{refused}"
    );
    let (is_done, away) = says(&["stop"], Some("/no/such/socket"));
    assert!(!is_done && away.starts_with("Nothing was stopped. "), "{away}");
    assert!(away.contains("doesn't answer on /no/such/socket: the socket does not exist."), "{away}");
    assert_eq!(host.containers().len(), 1);
    let other = if kind() == "docker" { "podman" } else { "docker" };
    let (is_done, doctor) = says(&["doctor", "--runtime", other], Some(&host.socket));
    assert!(!is_done && doctor.contains(&format!("answers on {}, and not ", host.socket)), "{doctor}");
    let (_, doctor) = says(&["doctor"], None);
    assert!(doctor.contains(&format!("answers on {}\n", host.socket)), "{doctor}");
    let bound = half_of_the_memory();
    assert!(doctor.contains(&format!("an agent may take {bound} MiB of memory, half of this")), "{doctor}");
    let (is_done, stopped) = says(&["stop"], None);
    assert!(is_done && stopped.contains("Agent 7 (launch 1) has ended."), "{stopped}");
    assert_eq!(host.containers(), [""; 0]);
    host.run();
    assert_eq!(end(&plane, 7).await.0, EndReason::Stopped);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine: tests/containers"]
async fn a_removed_container_is_a_lost_shim_and_leftovers_are_swept() {
    let plane = Plane::start().await;
    let mut host = Contained::start(&plane, &[]);
    plane.launch(7, 1).await;
    plane.launch(8, 1).await;
    host.says(&["rm", "--force", &host.name(7, 1)]);
    let lost = |detail: &str| (EndReason::ShimLost, Some(detail.to_owned()));
    let removed = end(&plane, 7).await;
    // It may be visible while it is being removed.
    let killed = lost("Its container was killed, by a person or with the engine.");
    assert!(removed == lost("Its container was removed.") || removed == killed, "{removed:?}");
    host.says(&["kill", &host.name(8, 1)]);
    assert_eq!(end(&plane, 8).await, killed);
    host.kill();
    // Leftovers of an earlier host, and containers of another one.
    let label = |host: &str| format!("muster.host={host}");
    let socket = host.socket.clone();
    let make = |name: &str, host: &str, what: &str| {
        let labels = [&label(host)[..], "muster.agent=9", what];
        let labels: Vec<&str> = labels.iter().flat_map(|label| ["--label", label]).collect();
        docker(&socket, &[&["create", "--name", name], &labels[..], &[PROBE, "/muster-agent"]].concat())
    };
    let (launch, keeper) = ("muster.generation=4", "muster.keeper-of=17-1");
    let copies = format!("{}-pack", host.name(9, 4));
    let others = ["launch", "keeper"].map(|what| format!("other-{what}-{}", host.id()));
    assert!(make(&host.name(9, 4), &host.id(), launch).status.success());
    assert!(make(&copies, &host.id(), keeper).status.success());
    assert!(make(&others[0], "someone", launch).status.success());
    assert!(make(&others[1], "someone", keeper).status.success());
    host.run();
    empty(&host).await;
    let removed = docker(&host.socket, &["rm", &others[0], &others[1]]);
    assert!(removed.status.success(), "they are left alone");
}
