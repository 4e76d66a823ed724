//! Rights of an agent in a container, tested from inside.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use muster_protocol::plan::{SecretFile, Skill, Variable};
use serde_json::Value;

use crate::{
    engine::{Contained, PROBE, list, plan},
    support::{Plane, action},
};

/// Tries all forbidden actions, prints the results on stderr, and becomes the reference agent.
const TRIES: &str = r#"
try() { what=$1; shift; if out=$("$@" 2>&1 </dev/null); then echo "CAN $what: $out" >&2; else echo "CANNOT $what" >&2; fi; }
try open-folder ls /.muster/launch
try open-spool cat /.muster/launch/spool/1
try open-pipe cat /.muster/launch/environment
try read-environ cat /proc/1/environ
try read-files ls /proc/1/fd
try read-memory head -c 1 /proc/1/mem
try read-program cat /proc/1/exe
try end-shim kill -9 1
try stop-shim kill -STOP 1
try connect /.muster/shim connect /.muster/launch/socket
try write-root touch /x
try write-shim sh -c 'echo x >/.muster/shim'
try write-skills touch "$HOME/skills/x"
try be-root su -c true
try mount mount -t tmpfs none "$HOME"
try make-device mknod "$HOME/disk" b 8 0
try trace-shim cat /proc/1/syscall
try write-home touch "$HOME/mine"
try write-tmp touch /tmp/mine
grep -E '^(Cap|NoNewPrivs|Uid|Groups|Seccomp:)' /proc/self/status >&2
ls /sys/class/net >&2
echo "MEMORY $(cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null)" >&2
echo "PIDS $(cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null)" >&2
echo "SKILL $(cat "$HOME/skills/greeting/SKILL.md" | tail -n 1)" >&2
echo "TOKEN $SHOP_TOKEN" >&2
echo "FILE $(stat -c '%a %u' "$HOME/.keys/one") $(cat "$HOME/.keys/one")" >&2
echo "GATE $(wget -q -O - http://10.0.0.1/ 2>&1)" >&2
ulimit -c >&2
exec /muster-agent
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine: tests/containers"]
async fn an_agent_reaches_its_home_and_nothing_of_its_shim() {
    let plane = Plane::start().await;
    let (_folder, path) = list("/busybox", &["sh", "-c", TRIES]);
    let host = Contained::start(&plane, &["--programs", &path, "--pids", "99"]);
    let skill = Skill {
        name: "greeting".to_owned(),
        description: None,
        content: "Say hello.".to_owned(),
        version: 1,
    };
    plan(&plane, 7, |plan| {
        plan.limits.memory_mb = Some(256);
        plan.limits.cpus = Some(0.5);
        plan.skills = vec![skill];
        plan.environment =
            vec![Variable { name: "SHOP_TOKEN".to_owned(), value: "canary-in-the-cage".to_owned().into() }];
        plan.files =
            vec![SecretFile { path: ".keys/one".to_owned(), content: "canary-in-a-file".to_owned().into() }];
    });
    plane.begin(7, 1, PROBE);
    plane.wait("it runs", |state| state.started(7, 1).then_some(())).await;
    let said = fs::read_to_string(host.launch(7, 1).join("stderr")).unwrap();
    let can: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("CAN ")?.split_once(':').map(|(what, _)| what))
        .collect();
    assert_eq!(can, ["write-home", "write-tmp"], "{said}");
    for set in ["Inh", "Prm", "Eff", "Bnd", "Amb"] {
        assert!(said.contains(&format!("Cap{set}:\t0000000000000000")), "{set}: {said}");
    }
    assert!(said.contains("NoNewPrivs:\t1") && said.contains("Uid:\t20007\t20007\t20007\t20007"), "{said}");
    assert!(said.contains("Seccomp:\t2"), "system calls are filtered: {said}");
    assert!(said.contains("\nlo\nMEMORY 268435456\n") && said.contains("PIDS 99\n"), "{said}");
    assert!(said.contains("SKILL Say hello.\n") && said.contains("TOKEN canary-in-the-cage\n"), "{said}");
    assert!(said.contains("FILE 600 20007 canary-in-a-file\n"), "{said}");
    let gate = said.lines().find(|line| line.starts_with("GATE ")).unwrap_or_default();
    assert!(gate.contains("403"), "the gate answers, and says no: {said}");
    // The engine stores a container's definition in files. The agent's environment isn't in them.
    let told = host.says(&["inspect", &host.name(7, 1)]);
    assert!(!told.contains("canary-in"));
    let told: Value = serde_json::from_str(&told).unwrap();
    let told = &told[0]["HostConfig"];
    assert_eq!(
        (told["NanoCpus"].as_i64(), told["ReadonlyRootfs"].as_bool()),
        (Some(500_000_000), Some(true))
    );
    assert_eq!(told["NetworkMode"], "none");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine: tests/containers"]
async fn an_agent_cannot_answer_its_own_request() {
    let plane = Plane::start().await;
    let (_folder, path) = list("/muster-agent", &[]);
    let host = Contained::start(&plane, &["--programs", &path]);
    plane.begin(7, 1, PROBE);
    plane.wait("it runs", |state| state.started(7, 1).then_some(())).await;
    let turn = plane.turn(7, 1, 70, "do execute Go");
    let asked = plane.wait("it asks", |state| state.asked(70).first().cloned()).await;
    assert_eq!(action(&asked), "Go");
    // As if the folder were open to all: the shim still checks who connects.
    let dir = host.launch(7, 1);
    let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    open(&dir, 0o755);
    open(&dir.join("socket"), 0o666);
    let script = r"{ printf 'HELLO 1\n'; printf 'IN 9 2\n{}'; sleep 1; } | /.muster/shim connect /.muster/launch/socket";
    let tried = host.as_agent(7, 1, &["/busybox", "sh", "-c", script]);
    assert_eq!(String::from_utf8_lossy(&tried.stdout), "", "no output: {tried:?}");
    open(&dir, 0o700);
    assert!(plane.lock().end_of(turn).is_none(), "it still waits");
    let decision = muster_protocol::plan::Decision::Approved { comment: None };
    plane.answer(7, 1, &asked.request, decision);
    plane.end_of(turn).await;
    assert_eq!(plane.lock().texts(turn), ["I was allowed to: Go"]);
}

/// Where only programs can be run, `connect` leads to the shim, for the shim's own user only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine: tests/containers"]
async fn only_its_own_user_reaches_a_shim_through_the_engine() {
    let plane = Plane::start().await;
    let (_folder, path) = list("/muster-agent", &[]);
    let mut host = Contained::start(&plane, &["--programs", &path]);
    plane.begin(7, 1, PROBE);
    plane.wait("it runs", |state| state.started(7, 1).then_some(())).await;
    host.kill();
    let (own, name) = (format!("{}:0", rustix::process::geteuid().as_raw()), host.name(7, 1));
    let script = r"{ printf 'HELLO 1\n'; sleep 1; } | /.muster/shim connect /.muster/launch/socket";
    let said = host.says(&["exec", "--user", &own, &name, "/busybox", "sh", "-c", script]);
    assert!(said.starts_with("SHIM 1 1 "), "{said}");
    let tried = host.as_agent(7, 1, &["/busybox", "sh", "-c", script]);
    assert_eq!(String::from_utf8_lossy(&tried.stdout), "", "{tried:?}");
    host.run();
    let turn = plane.turn(7, 1, 70, "Hello");
    plane.end_of(turn).await;
    assert!(plane.lock().texts(turn).concat().contains("Hello"));
    plane.lock().check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs an engine: tests/containers"]
async fn a_home_file_is_sent_and_survives_the_next_launch() {
    let plane = Plane::start().await;
    let (_folder, path) = list("/muster-agent", &[]);
    let host = Contained::start(&plane, &["--programs", &path]);
    plane.begin(7, 1, PROBE);
    plane.wait("it runs", |state| state.started(7, 1).then_some(())).await;
    let script = "echo beans >list.txt; ln -s /.muster/launch/shim link; mkfifo pipe";
    assert!(
        host.as_agent(7, 1, &["/busybox", "sh", "-c", &format!("cd /home/agent; {script}")]).status.success()
    );
    let call = |path: &str| format!("call send_file {{\"path\": {path:?}}}");
    let end = plane.say(7, 1, 70, &call("list.txt")).await;
    assert_eq!(format!("{:?}", end.outcome), "Done");
    let sent = plane.lock().messages(70).into_iter().find_map(|message| match message.content {
        muster_protocol::event::Content::File { base64, .. } => Some(base64),
        _ => None,
    });
    assert_eq!(sent.as_deref(), Some("YmVhbnMK"));
    for name in ["link", "pipe", "/proc/1/environ"] {
        plane.say(7, 1, 70, &call(name)).await;
    }
    let files = |message: &muster_protocol::event::Message| {
        matches!(message.content, muster_protocol::event::Content::File { .. })
    };
    assert_eq!(plane.lock().messages(70).iter().filter(|message| files(message)).count(), 1);
    plane.begin(7, 2, PROBE);
    plane.wait("it runs again", |state| state.started(7, 2).then_some(())).await;
    let kept = host.as_agent(7, 2, &["/busybox", "cat", "/home/agent/list.txt"]);
    assert_eq!(String::from_utf8_lossy(&kept.stdout), "beans\n");
    assert_eq!(host.containers(), [host.name(7, 2)], "the one before is gone");
}
