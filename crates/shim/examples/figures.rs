//! Costs of a shim: `cargo run --release -p muster-shim --example figures` (build the program in release first).
//!
//! Prints the resident memory of an idle shim and of one after a flood, the lines per second, and the round trip of a
//! line to the agent and back.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "who runs it sees what fails")]

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use muster_shim::{
    args::Launch,
    client::Client,
    record::Record,
    wire::{FromClient, FromShim},
};

fn main() {
    let (lines, rounds) = (1_000_000, 20_000_usize);
    let own = std::env::current_exe().unwrap();
    let program = own.parent().and_then(Path::parent).unwrap().join("muster-shim");
    let folder = std::env::temp_dir().join(format!("muster-shim-figures-{}", std::process::id()));
    let start = |generation: u64, script: &str| {
        let mut launch = Launch::new(folder.join(generation.to_string()), generation, "sh");
        launch.spec.args = vec!["-c".into(), script.into()];
        let begun = Instant::now();
        let started = Command::new(&program)
            .arg("run")
            .args(launch.to_args())
            .status()
            .expect("build muster-shim first");
        assert!(started.success());
        println!("start: {:.1} ms", begun.elapsed().as_secs_f64() * 1000.0);
        let mut client = Client::connect(&launch.dir, 1 << 20).unwrap();
        client.hello(1).unwrap();
        (client, launch.dir)
    };

    let (mut client, dir) = start(1, "exec cat");
    println!(
        "memory, idle: {} KiB, of which its own: {} KiB",
        memory(&dir, "VmRSS:"),
        memory(&dir, "RssAnon:")
    );
    let line = vec![b'x'; 300];
    let mut times: Vec<Duration> =
        (1..=rounds as u64).map(|seq| round_trip(&mut client, seq, &line)).collect();
    times.sort();
    println!(
        "round trip of 300 bytes: median {:?}, 99 of 100 {:?}",
        times[rounds / 2],
        times[rounds * 99 / 100]
    );
    let reconnected = Instant::now();
    Client::connect(&dir, 1 << 20).unwrap().hello(rounds as u64).unwrap();
    println!("reconnect: {:?}", reconnected.elapsed());
    end(&dir);

    let (mut client, dir) = start(2, &format!("exec seq -f '%0300.0f' 1 {lines}"));
    let begun = Instant::now();
    let mut most = 0;
    loop {
        match client.read().unwrap().expect("the shim serves") {
            (FromShim::Out { seq, .. }, _) if seq % 10_000 == 0 => {
                client.say(FromClient::Trim(seq), b"").unwrap();
                most = most.max(memory(&dir, "VmRSS:"));
            }
            (FromShim::Exit(_), _) => break,
            _ => {}
        }
    }
    let rate = f64::from(lines) / begun.elapsed().as_secs_f64();
    println!("lines of 300 bytes: {rate:.0} a second; memory meanwhile: at most {most} KiB");
    end(&dir);
    fs::remove_dir_all(&folder).unwrap();
}

fn round_trip(client: &mut Client, seq: u64, line: &[u8]) -> Duration {
    let begun = Instant::now();
    client.line(seq, line).unwrap();
    loop {
        match client.read().unwrap().expect("the shim serves") {
            (FromShim::Out { seq: out, .. }, _) if out == seq => break,
            _ => {}
        }
    }
    let time = begun.elapsed();
    if seq.is_multiple_of(100) {
        client.say(FromClient::Trim(seq), b"").unwrap();
    }
    time
}

/// In KiB, without pages shared by all shims: the program and its libraries.
fn memory(dir: &Path, kind: &str) -> u64 {
    let pid = Record::read(dir).unwrap().shim.pid;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(kind)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn end(dir: &Path) {
    let pid = Record::read(dir).unwrap().shim.pid;
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
}
