//! Joining, once, and its errors.

use std::{fs, os::unix::fs::chown, path::PathBuf, process::Stdio};

use muster_protocol::{
    Command, Event, HostEvent,
    event::{EndReason, RefusedReason},
    frame::RefusedCode,
};

use crate::support::{Host, Plane, program, within};

fn said(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joining_again_with_the_same_token_repairs_a_lost_response() {
    let plane = Plane::start().await;
    let (host, token, url) = (Host::empty(), plane.token(), plane.lock().url.clone());
    plane.lock().loses_responses = true;
    let first = within(|| host.join(&url, &token));
    assert!(!first.status.success(), "{first:?}");
    let sent = plane.lock().host.clone().unwrap();
    let identity = fs::read_to_string(host.path().join("identity.json")).unwrap();
    assert!(identity.contains(&sent.0), "it was kept before it was sent");
    let second = within(|| host.join(&url, &token));
    assert!(second.status.success(), "{}", said(&second));
    assert_eq!(plane.lock().host.clone().unwrap(), sent, "the same token, the same machine");
    let third = within(|| host.join("http://localhost:1", "any"));
    assert!(third.status.success() && said(&third).contains("Nothing was changed"), "{}", said(&third));
    assert_eq!(fs::read_to_string(host.path().join("identity.json")).unwrap(), identity);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_refusal_says_what_to_do() {
    let plane = Plane::start().await;
    let (token, url) = (plane.token(), plane.lock().url.clone());
    let says = |url: &str, token: &str, expected: &str| {
        let output = within(|| Host::empty().join(url, token));
        assert!(!output.status.success(), "{}", said(&output));
        assert!(said(&output).contains(expected), "{}", said(&output));
        assert!(!said(&output).contains(token), "the token is not printed");
    };
    says(&url, "mst_prov_short", "Copy it again");
    says(&url, "mst_svc_4711", "one begins with `mst_prov_`");
    says(&format!("{url}/v1"), &token, &format!("own: {url}/."));
    says(&url.replace("http", "https"), &token, "this port doesn't speak TLS");
    says("ftp://x", &token, "not a valid address");
    says("http://muster.example", &token, "not encrypted");
    says("http://127.0.0.1:1", &token, "can't be reached: Connection refused");
    let other = Host::empty();
    assert!(within(|| other.join(&url, &token)).status.success());
    says(&url, &token, "Token used. The token was used by another machine.");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_token_may_be_in_a_file() {
    let plane = Plane::start().await;
    let (host, token, url) = (Host::empty(), plane.token(), plane.lock().url.clone());
    let file = host.path().with_file_name("token");
    let join = |given: &str| {
        let mut command = host.command("join");
        command.args(["--url", &url]).env("MUSTER_HOST_TOKEN_FILE", &file).env_remove("MUSTER_HOST_TOKEN");
        if !given.is_empty() {
            command.env("MUSTER_HOST_TOKEN", given);
        }
        within(|| command.output().unwrap())
    };
    let missing = join("");
    assert!(
        !missing.status.success() && said(&missing).contains("MUSTER_HOST_TOKEN_FILE"),
        "{}",
        said(&missing)
    );
    assert!(!said(&missing).contains(file.to_str().unwrap()), "it may be the token: {}", said(&missing));
    fs::write(&file, format!("{token}\n")).unwrap();
    let both = join(&token);
    assert!(!both.status.success() && said(&both).contains("both set"), "{}", said(&both));
    let joined = join("");
    assert!(joined.status.success(), "{}", said(&joined));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_host_runs_in_a_folder_and_only_after_joining() {
    let empty = Host::empty();
    let refused = within(|| empty.command("run").output().unwrap());
    assert!(said(&refused).contains("has not joined"), "{}", said(&refused));
    let plane = Plane::start().await;
    let host = Host::start(&plane, &[]);
    plane.wait("it says hello", |state| state.hellos.first().map(drop)).await;
    let second = within(|| host.command("run").args(["--isolation", "none"]).output().unwrap());
    assert!(!second.status.success() && said(&second).contains("(process "), "{}", said(&second));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn root_neither_joins_nor_runs_in_the_folder_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: this is not root");
        return;
    }
    let plane = Plane::start().await;
    let (host, token, url) = (Host::empty(), plane.token(), plane.lock().url.clone());
    let refuses = |refused: &std::process::Output| {
        assert!(!refused.status.success(), "{}", said(refused));
        assert!(said(refused).contains("belongs to another user (uid 1)"), "{}", said(refused));
        assert!(said(refused).contains("`sudo -u '#1' muster host"), "{}", said(refused));
    };
    fs::create_dir(host.path()).unwrap();
    chown(host.path(), Some(1), None).unwrap();
    refuses(&within(|| host.join(&url, &token)));
    assert_eq!(fs::read_dir(host.path()).unwrap().count(), 0, "nothing of root is there");
    chown(host.path(), Some(0), None).unwrap();
    let joined = within(|| host.join(&url, &token));
    assert!(joined.status.success(), "{}", said(&joined));
    chown(host.path(), Some(1), None).unwrap();
    refuses(&within(|| host.command("run").output().unwrap()));
    let doctor = within(|| host.command("doctor").output().unwrap());
    assert!(said(&doctor).contains("belongs to another user (uid 1)"), "{}", said(&doctor));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_host_stays_up_logs_advice_and_reconnects() {
    let plane = Plane::start().await;
    plane.lock().refuses = Some((RefusedCode::JournalLost, Some(0)));
    let host = Host::start(&plane, &[]);
    plane.wait("it tries again", |state| (state.hellos.len() >= 3).then_some(())).await;
    assert!(host.log().contains("lacks confirmed events"), "{}", host.log());
    plane.set(|state| state.refuses = None);
    plane.wait("it is welcome", |state| (state.epoch >= 1).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_control_plane_is_reported_and_agents_stay() {
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    plane.say(7, 1, 70, "Hello").await;
    host.kill();
    host.run();
    // WELCOME acknowledges earlier events; a kill forgets that until the next durable write.
    plane.say(7, 1, 70, "And again").await;
    host.kill();
    plane.set(|state| state.events.truncate(1));
    host.run();
    let known = plane.wait("it tries again", |state| state.hellos.get(2).cloned()).await;
    assert!(known.acknowledged > 1 && known.acknowledged <= known.events, "{known:?}");
    plane.wait("it says why", |_| host.log().contains("was restored from a backup").then_some(())).await;
    assert!(host.record(7, 1).is_alive());
    assert_eq!(plane.lock().events.len(), 1, "nothing is sent that could not be understood");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_address_that_a_host_is_given_is_kept() {
    let (plane, other) = (Plane::start().await, Plane::start().await);
    let mut host = Host::start(&plane, &[]);
    plane.wait("it says hello", |state| state.hellos.first().map(drop)).await;
    host.kill();
    let (url, known) = (other.lock().url.clone(), plane.lock().host.clone());
    other.lock().host = known;
    let mut moved = host.command("run");
    let mut moved = moved.args(["--isolation", "none", "--url", &url]).stdin(Stdio::null()).spawn().unwrap();
    other.wait("it says hello there", |state| state.hellos.first().map(drop)).await;
    moved.kill().unwrap();
    moved.wait().unwrap();
    let doctor = within(|| host.command("doctor").output().unwrap());
    assert!(said(&doctor).contains(&format!("joined {url}/ as")), "{}", said(&doctor));
    host.run();
    other.wait("it comes back without being told", |state| state.hellos.get(1).map(drop)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_keeps_how_its_agents_are_run() {
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    host.terminate();
    let docker = ["--runtime", "docker"];
    for word in ["run", "stop", "unit"] {
        let refused = within(|| host.command(word).args(docker).output().unwrap());
        assert!(!refused.status.success(), "{word}: {}", said(&refused));
        assert!(
            said(&refused).contains("ran as plain processes, and their homes are there"),
            "{}",
            said(&refused)
        );
    }
    assert!(host.record(7, 1).is_alive(), "nothing was stopped");
    let doctor = within(|| host.command("doctor").args(docker).output().unwrap());
    assert!(said(&doctor).contains("BAD   The agents of "), "{}", said(&doctor));
    // As if they had run in containers.
    let (path, socket) = (host.path().join("joined.json"), host.path().join("no-engine"));
    let mut joined: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(joined["runtime"]["runtime"], "PROCESS");
    joined["runtime"] = serde_json::json!({ "runtime": "DOCKER", "engine": socket });
    fs::write(&path, joined.to_string()).unwrap();
    let unit = within(|| host.command("unit").output().unwrap());
    let words = format!("--runtime docker --engine \"{}\"\n", socket.display());
    assert!(said(&unit).contains(&words), "{}", said(&unit));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_is_found_as_its_clients_find_it() {
    let host = Host::empty();
    let unit = |variable: &str, value: &str, options: &[&str]| {
        let mut command = host.command("unit");
        command.args(options).env(variable, value);
        said(&within(|| command.output().unwrap()))
    };
    let (docker, podman) = (["--runtime", "docker"], ["--runtime", "podman"]);
    for (variable, options) in [("DOCKER_HOST", docker), ("CONTAINER_HOST", podman)] {
        for value in ["unix:///v/sock", "/v/sock"] {
            let text = unit(variable, value, &options);
            assert!(text.contains("--engine \"/v/sock\"\n"), "{text}");
        }
        let text = unit(variable, "unix:///v/sock", &[&options[..], &["--engine", "/o/sock"]].concat());
        assert!(text.contains("--engine \"/o/sock\"\n") && !text.contains("/v/sock"), "{text}");
        for value in ["tcp://192.0.2.7:2376", "ssh://me@192.0.2.7"] {
            let text = unit(variable, value, &options);
            let expected =
                format!("{variable} is {value:?}, and agents can only run in an engine of this machine.");
            assert!(text.contains(&expected) && text.contains("with `--engine`"), "{text}");
        }
        assert!(
            unit(variable, "tcp://192.0.2.7:2376", &[]).contains("[Service]"),
            "plain processes need none"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_of_root_warns_and_names_the_remedy() {
    let plane = Plane::start().await;
    let host = Host::start(&plane, &[]);
    plane.wait("it says hello", |state| state.hellos.first().map(drop)).await;
    let doctor = said(&within(|| host.command("doctor").output().unwrap()));
    let is_root = rustix::process::geteuid().is_root();
    for (text, warning) in [(host.log(), "this host runs as root."), (doctor, "this is root. A host needs")] {
        assert_eq!(text.contains(warning), is_root, "{text}");
        assert_eq!(text.contains("`muster host unit`"), is_root, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_options_are_refused_with_valid_ones() {
    let host = Host::empty();
    let cases = [
        ("--memory-mb", "1", "16..=16777216"),
        ("--cpus", "0", "from 0.01 to 1024"),
        ("--cpus", "NaN", "from 0.01 to 1024"),
        ("--pids", "0", "16..=4194304"),
        ("--container-network", "container:x", "begins with a letter or a digit"),
        ("--allow-net", "127.0.0.1/33", "\"127.0.0.1/33\" is not a network"),
    ];
    for (option, value, expected) in cases {
        let refused = within(|| host.command("run").args([option, value]).output().unwrap());
        assert!(!refused.status.success(), "{option} {value}");
        assert!(said(&refused).contains(option) && said(&refused).contains(expected), "{}", said(&refused));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_command_lists_the_options_that_it_uses() {
    let run = |word: &str| std::process::Command::new(program()).args(["host", word, "--help"]).output();
    let help = |word: &str| said(&within(|| run(word).unwrap()));
    for word in ["build-image", "stop", "rejoin", "doctor", "unit"] {
        let text = help(word);
        assert!(text.contains("--runtime") && text.contains("--engine"), "{text}");
        assert!(!text.contains("--memory-mb") && !text.contains("--container-network"), "{text}");
    }
    assert!(!help("build-image").contains("process"), "it has no image");
    assert!(help("run").contains("--memory-mb"));
}

/// A host after a first run, restarted with an unreachable engine; and the path for that engine's socket.
async fn without_engine(plane: &Plane, start_seconds: &str) -> (Host, PathBuf) {
    let mut host = Host::start(plane, &["--start-seconds", start_seconds]);
    plane.wait("it says hello", |state| state.hellos.first().map(drop)).await;
    host.kill();
    // Headers of a static program. It never runs: nothing answers on the socket.
    let (shim, socket) = (host.path().join("shim"), host.path().join("socket"));
    fs::write(&shim, [&b"\x7fELF\x02\x01"[..], &[0; 60]].concat()).unwrap();
    let engine = ["--runtime", "docker", "--engine", socket.to_str().unwrap()];
    host.options.extend(engine.map(str::to_owned));
    host.within = vec!["env".to_owned(), format!("MUSTER_SHIM={}", shim.display())];
    host.run();
    (host, socket)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_engine_is_logged_once_in_words() {
    let plane = Plane::start().await;
    let (host, socket) = without_engine(&plane, "4").await;
    plane.begin(7, 1, "muster/agent");
    let expected =
        format!("Docker Engine doesn't answer on {}: the socket does not exist. Start", socket.display());
    let ended = plane.wait("it is given up", |state| state.ended(7, 1)).await;
    let HostEvent::Ended { detail, .. } = ended else { panic!("{ended:?}") };
    let is_said =
        |what: &&HostEvent| matches!(what, HostEvent::EngineAway { detail } if detail.starts_with(&expected));
    assert_eq!(plane.lock().events_of(7).filter(is_said).count(), 1, "the agent says what it waits for");
    assert!(detail.as_deref().unwrap_or_default().starts_with(&expected), "{detail:?}");
    let told = host.log();
    assert_eq!(told.matches("agents that are started wait for their engine").count(), 1, "{told}");
    plane.order(7, 1, Command::Backup { backup_id: 1 });
    let failed = plane
        .wait("it is not backed up", |state| {
            state.events_of(7).find_map(|what| match what {
                HostEvent::BackedUp { error, .. } => error.clone(),
                _ => None,
            })
        })
        .await;
    assert!(failed.contains(&expected) && !failed.contains("hyper"), "{failed}");
    let kept = fs::read_to_string(host.path().join("joined.json")).unwrap();
    assert!(kept.contains("DOCKER"), "no agent had a home, so it may change: {kept}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_launch_that_is_stopped_waits_for_its_engine_no_longer() {
    let plane = Plane::start().await;
    let (_host, _) = without_engine(&plane, "3600").await;
    let waits = async |generation: i64| {
        let is_it = |event: &Event| {
            event.generation == generation && matches!(event.what, HostEvent::EngineAway { .. })
        };
        plane.wait("it waits", |state| state.events.iter().any(is_it).then_some(())).await;
    };
    let is_stopped = async |generation: i64| {
        let ended = plane.wait("it is stopped", |state| state.ended(7, generation)).await;
        let HostEvent::Ended { reason, code, signal, detail } = ended else { panic!("{ended:?}") };
        assert_eq!((reason, code, signal, detail), (EndReason::Stopped, None, None, None));
    };
    plane.begin(7, 1, "muster/agent");
    waits(1).await;
    let turn_id = plane.plan_turn(70, "Are you there?");
    let turn = plane.order(7, 1, Command::Turn { turn_id });
    plane.order(7, 1, Command::Stop);
    is_stopped(1).await;
    plane.begin(7, 2, "muster/agent");
    waits(2).await;
    // A launch ends the previous one.
    plane.begin(7, 3, "muster/agent");
    is_stopped(2).await;
    waits(3).await;
    // A launch stopped before its start ends at once, and the previous one reports its own end.
    plane.set(|state| {
        state.order(0, 7, 4, Command::Launch);
        state.order(0, 7, 4, Command::Stop);
    });
    is_stopped(4).await;
    is_stopped(3).await;
    let state = plane.lock();
    let ended = state.events.iter().filter(|event| matches!(event.what, HostEvent::Ended { .. }));
    let mut ended = ended.map(|event| event.generation).collect::<Vec<_>>();
    ended.sort_unstable();
    assert_eq!(ended, [1, 2, 3, 4], "each ends once");
    let refused = state.events_of(7).filter_map(|what| match what {
        HostEvent::Refused { command_id, reason } => Some((*command_id, *reason)),
        _ => None,
    });
    assert_eq!(refused.collect::<Vec<_>>(), [(turn, RefusedReason::NotRunning)], "what came is carried out");
    state.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_ends_every_agent_of_a_folder() {
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    plane.launch(8, 1).await;
    plane.turn(8, 1, 80, "hang hard");
    plane
        .wait("it hangs", |state| {
            state.events_of(8).any(|what| matches!(what, HostEvent::TurnStarted { .. })).then_some(())
        })
        .await;
    let refused = within(|| host.command("stop").output().unwrap());
    assert!(!refused.status.success() && said(&refused).contains("Stop it first"), "{}", said(&refused));
    host.terminate();
    let records = [host.record(7, 1), host.record(8, 1)];
    assert!(records.iter().all(muster_shim::record::Record::is_alive));
    let stopped = within(|| host.command("stop").args(["--grace-ms", "500"]).output().unwrap());
    assert!(
        stopped.status.success() && said(&stopped).contains("Agent 8 (launch 1) has ended"),
        "{}",
        said(&stopped)
    );
    assert!(records.iter().all(|record| !record.is_alive() && !record.agent.is_alive()));
    let again = within(|| host.command("stop").output().unwrap());
    assert!(again.status.success() && said(&again).contains("No agent runs"), "{}", said(&again));
    host.run();
    for agent in [7, 8] {
        let ended = plane.wait("its end is reported", |state| state.ended(agent, 1)).await;
        let HostEvent::Ended { reason, code, signal, detail } = ended else { panic!("{ended:?}") };
        assert_eq!((reason, code, signal), (EndReason::Stopped, None, None), "however it took it");
        assert_eq!(detail.as_deref(), Some("By its host's owner, with `muster host stop`."));
    }
    plane.lock().check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_may_end_with_its_starter() {
    let plane = Plane::start().await;
    let mut host = Host::start(&plane, &[]);
    plane.launch(7, 1).await;
    host.kill();
    let mut child = host.command("run");
    let child = child.args(["--isolation", "none", "--while-stdin"]).stdin(Stdio::piped());
    let mut child = child.spawn().unwrap();
    plane.wait("it says hello", |state| state.hellos.get(1).map(drop)).await;
    drop(child.stdin.take());
    assert!(within(|| child.wait().unwrap()).success());
    assert!(host.record(7, 1).is_alive(), "its agents stay up");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_says_what_is_wrong_by_its_exit_code_too() {
    let plane = Plane::start().await;
    let host = Host::start(&plane, &[]);
    plane.wait("it says hello", |state| state.hellos.first().map(drop)).await;
    let fine = within(|| host.command("doctor").output().unwrap());
    assert!(fine.status.success(), "{}", said(&fine));
    assert!(said(&fine).contains("accepts the host's token"), "{}", said(&fine));
    assert!(said(&fine).contains("ok    a host runs in this folder (process "), "{}", said(&fine));
    assert!(
        said(&fine).contains("agents run without a sandbox"),
        "it was started like this: {}",
        said(&fine)
    );
    plane.lock().host.as_mut().unwrap().0 = "another".to_owned();
    let refused = within(|| host.command("doctor").output().unwrap());
    assert!(!refused.status.success() && said(&refused).contains("401"), "{}", said(&refused));
    let empty = Host::empty();
    let not_joined = within(|| empty.command("doctor").output().unwrap());
    assert!(
        !not_joined.status.success() && said(&not_joined).contains("has not joined"),
        "{}",
        said(&not_joined)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn systemd_accepts_the_unit_and_rates_it_as_documented() {
    let host = Host::empty();
    let unit = within(|| host.command("unit").args(["--user", "daemon"]).output().unwrap());
    let text = String::from_utf8(unit.stdout).unwrap();
    assert!(text.contains("KillMode=process") && text.contains(host.path().to_str().unwrap()), "{text}");
    let path = host.path().with_file_name("muster-host.service");
    fs::write(&path, text).unwrap();
    let analyze = |arguments: &[&str]| {
        let mut command = std::process::Command::new("systemd-analyze");
        command.args(arguments).arg(&path).stdin(Stdio::null()).output()
    };
    let Ok(verify) = analyze(&["verify", "--man=no"]) else {
        eprintln!("skipped: systemd-analyze is not installed");
        return;
    };
    let says = String::from_utf8_lossy(&verify.stderr).into_owned();
    assert!(!says.contains("muster-host.service:"), "{says}");
    // docs/hosts.md has this number.
    let rated = analyze(&["security", "--offline=true", "--no-pager"]).unwrap();
    let says = String::from_utf8_lossy(&rated.stdout).into_owned();
    assert!(says.contains("exposure level for muster-host.service: 8.3 "), "{says}");
}
