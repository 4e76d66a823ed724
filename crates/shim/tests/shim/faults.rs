//! After any crash nothing is lost, and nothing happens twice.

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    os::fd::OwnedFd,
    process::{Command, Stdio},
};

use muster_shim::{
    spool,
    wire::{FromClient, FromShim, Reading, Reason},
};
use rustix::process::Signal;

use crate::harness::{Shim, Talk, kill, program, runs, until};

#[test]
fn the_agent_survives_its_starter() {
    // Echoes each line, and writes some by itself.
    let shim = Shim::of(
        "i=0; while [ $i -lt 300 ]; do echo own $i; i=$((i+1)); [ $i -ne 100 ] || cat go; done; cat",
    );
    let fifo = shim.home().join("go");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // The starter waits forever after `run`, as a host would.
    let mut starter = Command::new("sh");
    starter
        .arg("-c")
        .arg("\"$0\" \"$@\" && echo up && exec sleep 1000")
        .arg(env!("CARGO_BIN_EXE_muster-shim"));
    starter.arg("run").args(shim.launch.to_args()).stdout(Stdio::piped());
    let mut starter = std::os::unix::process::CommandExt::process_group(&mut starter, 0).spawn().unwrap();
    let mut up = [0; 3];
    starter.stdout.take().unwrap().read_exact(&mut up).unwrap();
    let (mut client, _) = shim.hello(1);
    assert_eq!(client.lines(50).last().unwrap().0, 50);
    // The whole group, in the middle of the lines.
    let group = rustix::process::Pid::from_child(&starter);
    rustix::process::kill_process_group(group, Signal::KILL).unwrap();
    starter.wait().unwrap();
    drop(client);
    fs::write(&fifo, "").unwrap();
    let (mut client, _) = shim.hello(51);
    let lines = client.lines(250);
    let expected: Vec<_> = (51..=300).map(|seq| (seq, format!("own {}", seq - 1).into_bytes())).collect();
    assert_eq!(lines, expected);
    let record = shim.record();
    assert!(record.is_alive() && record.agent.is_alive());
    let session = rustix::process::getsid(rustix::process::Pid::from_raw(record.shim.pid)).unwrap();
    assert_eq!(session.as_raw_nonzero().get(), record.shim.pid, "it has a session of its own");
}

#[test]
fn a_client_that_breaks_off_anywhere_loses_and_doubles_nothing() {
    let lines = 5000_u64;
    let shim = Shim::script("cat");
    let text =
        |seq: u64| format!("{{\"line\":{seq},\"text\":\"{}\"}}", "x".repeat(seq as usize % 700)).into_bytes();
    let mut state = 7_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut got, mut rounds) = (Vec::new(), 0);
    while (got.len() as u64) < lines {
        let (mut client, greeting) = shim.hello(got.len() as u64 + 1);
        // More than the shim takes at once: the rest is refused, and sent again on the next connection.
        let last = lines.min(greeting.taken + random(150));
        for seq in greeting.taken + 1..=last {
            client.line(seq, &text(seq)).unwrap();
        }
        if last < lines {
            client
                .say(FromClient::In { seq: last + 1, len: 900 }, &vec![b'y'; random(900) as usize])
                .unwrap();
        }
        if greeting.taken >= got.len() as u64 {
            let there = greeting.taken - got.len() as u64;
            got.extend(client.lines(random(there + 1) as usize));
        }
        let through = got.len() as u64;
        if through > 0 && random(3) == 0 {
            client.say(FromClient::Trim(through), b"").unwrap();
        }
        rounds += 1;
        assert!(rounds < 10_000, "{through} lines after {rounds} connections");
    }
    let expected: Vec<_> = (1..=lines).map(|seq| (seq, text(seq))).collect();
    assert!(got == expected, "after {rounds} connections");
}

#[test]
fn a_client_that_is_killed_in_mid_line_has_sent_nothing() {
    let shim = Shim::script("cat");
    let mut relay = shim.relay();
    let mut to = relay.stdin.take().unwrap();
    to.write_all(b"HELLO 1\nIN 1 3\noneIN 2 1000\n").unwrap();
    to.write_all(&[b'x'; 500]).unwrap();
    let mut text = Vec::new();
    while !text.ends_with(b"OUT 1 3\none") {
        let mut byte = [0];
        relay.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
        text.extend(byte);
    }
    kill(i32::try_from(relay.id()).unwrap(), Signal::KILL);
    relay.wait().unwrap();
    let (mut client, greeting) = shim.hello(1);
    assert_eq!(greeting.taken, 1);
    client.line(2, b"two").unwrap();
    assert_eq!(client.texts(2), ["one", "two"]);
}

#[test]
fn a_client_killed_amid_a_long_line_gets_it_again() {
    let shim = Shim::script("head -c 3000000 /dev/zero | tr '\\0' x; echo; cat");
    for _ in 0..3 {
        let mut relay = shim.relay();
        relay.stdin.as_mut().unwrap().write_all(b"HELLO 1\n").unwrap();
        relay.stdout.as_mut().unwrap().read_exact(&mut vec![0; 100_000]).unwrap();
        kill(i32::try_from(relay.id()).unwrap(), Signal::KILL);
        relay.wait().unwrap();
    }
    let (mut client, _) = shim.hello(1);
    let lines = client.lines(1);
    assert!(lines[0].1 == vec![b'x'; 3_000_000], "{} bytes", lines[0].1.len());
}

#[test]
fn garbage_passes_byte_by_byte() {
    // Every byte, in a pattern with a long period.
    let mut state = 1_u32;
    let mut garbage: Vec<u8> = (0..500_000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        })
        .collect();
    garbage.push(b'\n');
    let shim = Shim::of("cat garbage");
    fs::write(shim.home().join("garbage"), &garbage).unwrap();
    let shim = shim.start();
    let (mut client, _) = shim.hello(1);
    let (lines, reason) = client.rest();
    let all: Vec<u8> = lines.into_iter().flat_map(|(_, mut line)| (line.push(b'\n'), line).1).collect();
    assert!(all == garbage && reason == Reason::Exited, "{} of {} bytes", all.len(), garbage.len());
}

#[test]
fn no_agent_survives_its_shim_and_its_lines_can_be_read() {
    let shim = Shim::script("sleep 1000 & echo $! >left; seq 1 1000; exec sleep 1000");
    let left = shim.pid_in("left");
    until("all is written", || shim.hello(1).1.next == 1001);
    let (mut client, _) = shim.hello(1);
    let record = shim.kill();
    assert!(client.ends());
    until("the agent dies with its shim", || !record.agent.is_alive());
    assert!(runs(left), "what the agent started lives on");
    assert_eq!(record.sweep(), 1);
    until("the host has swept it away", || !runs(left));
    let lines: Vec<_> = spool::read(shim.dir(), 990).unwrap().map(Result::unwrap).collect();
    assert_eq!(lines, (990..=1000).map(|seq| (seq, seq.to_string().into_bytes())).collect::<Vec<_>>());
    assert!(muster_shim::record::Exit::read(shim.dir()).is_err(), "the exit was not observed");
}

#[test]
fn an_agent_whose_shim_has_died_already_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made");
    // Its parent is this test, not process 1.
    let output = program().args(["exec", "--parent", "1", "--", "touch"]).arg(&made).output().unwrap();
    assert_eq!(output.status.code(), Some(126));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "muster-shim: its parent has ended\n");
    assert!(!made.exists());
}

#[test]
fn a_relay_whose_agent_has_died_already_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    // Its parent is this test, not process 1 as after the agent's death.
    let mut relay = program();
    relay.arg("serve-gate").arg(folder.path().join("gate")).arg("1");
    relay.stdin(OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap()));
    let output = relay.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "muster-shim: its parent has ended\n");
}

#[test]
fn shims_that_are_killed_at_any_moment_leave_no_agent() {
    for round in 0..12_u32 {
        let shim = Shim::of("echo $$ >agent; exec sleep 1000");
        let mut run = program().arg("run").args(shim.launch.to_args()).spawn().unwrap();
        let own = fs::canonicalize(env!("CARGO_BIN_EXE_muster-shim")).unwrap();
        until("the shim is there", || !serving(&own, shim.dir()).is_empty());
        // From before the agent's start to after it, by a delay.
        for _ in 0..round {
            fs::read_dir("/proc").unwrap().for_each(drop);
        }
        for shim_pid in serving(&own, shim.dir()) {
            kill(shim_pid, Signal::KILL);
        }
        run.wait().unwrap();
        let record = muster_shim::record::Record::read(shim.dir());
        if let Ok(record) = record
            && !record.is_alive()
        {
            until("the agent is dead", || !record.agent.is_alive());
        }
        if let Ok(agent) =
            fs::read_to_string(shim.home().join("agent")).unwrap_or_default().trim().parse::<i32>()
            && serving(&own, shim.dir()).is_empty()
        {
            until("the agent is dead", || !runs(agent));
        }
    }
}

/// The shims of a folder.
fn serving(program: &std::path::Path, dir: &std::path::Path) -> Vec<i32> {
    let pids =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_it = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> = line.split(|byte| *byte == 0).collect();
        words.contains(&&b"serve"[..])
            && words.contains(&dir.as_os_str().as_encoded_bytes())
            && fs::canonicalize(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program)
    };
    pids.filter(is_it).collect()
}

/// A disk of 3 MiB.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mount = ["-t", "tmpfs", "-o", "size=3m", "tmpfs"];
        let mounted = Command::new("mount").args(mount).arg(folder.path()).status().unwrap();
        assert!(mounted.success(), "only root may mount a disk");
        Self(folder)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn root_a_full_disk_makes_the_agent_wait_and_loses_nothing() {
    let count = 100_000;
    let disk = SmallDisk::mount();
    let mut shim = Shim::of(&format!("exec seq -f 'line %.0f of many' 1 {count}"));
    shim.launch.dir = disk.0.path().join("3");
    fs::write(disk.0.path().join("ballast"), vec![1; 1 << 20]).unwrap();
    let shim = shim.start();
    let (mut client, _) = shim.hello(1);
    client.until(|said| *said == FromShim::Spool(Reading::Disk));
    let (mut client, greeting) = shim.hello(1);
    assert!(greeting.next < count, "the agent waits");
    let waiting = shim.memory();
    assert!(waiting < 16 << 10, "{waiting} KiB");
    // Someone else frees space.
    fs::remove_file(disk.0.path().join("ballast")).unwrap();
    let mut lines = client.until(|said| *said == FromShim::Spool(Reading::Open)).1;
    // The disk is full again; now the host frees space by trimming.
    let mut last = lines.last().map_or(0, |(seq, _)| *seq);
    while last < count {
        for (seq, bytes) in client.lines(1) {
            lines.push((seq, bytes));
            last = seq;
        }
        client.say(FromClient::Trim(last), b"").unwrap();
    }
    let expected: Vec<_> = (1..=count).map(|seq| (seq, format!("line {seq} of many").into_bytes())).collect();
    assert!(lines == expected, "{} lines, the last is {last}", lines.len());
    assert_eq!(client.rest(), (vec![], Reason::Exited));
    assert_eq!(shim.exit().lines, count);
}

#[test]
fn root_an_exit_is_sent_once_it_is_recorded() {
    let disk = SmallDisk::mount();
    let mut shim = Shim::of("echo one; read go; exit 5");
    shim.launch.dir = disk.0.path().join("3");
    let shim = shim.start();
    let (mut client, _) = shim.hello(1);
    assert_eq!(client.texts(1), ["one"]);
    let ballast = disk.0.path().join("ballast");
    drop(fs::write(&ballast, vec![1; 4 << 20]));
    let agent = shim.record().agent;
    client.line(1, b"go").unwrap();
    until("the agent has ended", || !agent.is_alive());
    assert!(muster_shim::record::Exit::read(shim.dir()).is_err());
    fs::remove_file(&ballast).unwrap();
    assert_eq!(client.rest(), (vec![], Reason::Exited));
    assert_eq!(shim.exit().ended.code, Some(5));
}
