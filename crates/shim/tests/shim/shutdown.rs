//! How agents end, and the processes they leave.

use std::fs;

use muster_shim::{
    record::Exit,
    wire::{FromClient, FromShim, Reading, Reason},
};
use rustix::process::Signal;

use crate::harness::{Shim, Talk, kill, runs, until};

#[test]
fn an_unobserved_end_is_recorded_and_replayed() {
    let shim = Shim::script("echo one; echo two; printf three; exit 7");
    let exit = shim.exit();
    assert_eq!((exit.generation, exit.lines, exit.detail.as_str()), (3, 3, ""));
    assert_eq!((exit.ended.code, exit.ended.signal, exit.ended.reason), (Some(7), None, Reason::Exited));
    for _ in 0..2 {
        let (mut client, greeting) = shim.hello(2);
        assert_eq!((greeting.first, greeting.next), (1, 4));
        let ((said, _), lines) = client.until(|said| matches!(said, FromShim::Exit(_)));
        assert_eq!(said, FromShim::Exit(exit.ended));
        assert_eq!(lines, [(2, b"two".to_vec()), (3, b"three".to_vec())]);
    }
    let (mut client, _) = shim.hello(4);
    client.rest();
    assert_eq!(client.refused(FromClient::Bye, b""), "REFUSED EARLY line 1 is not trimmed");
    client.say(FromClient::Trim(3), b"").unwrap();
    client.say(FromClient::Bye, b"").unwrap();
    assert!(client.ends());
    let record = shim.record();
    until("the shim leaves", || !record.is_alive());
    assert!(!shim.dir().join("socket").exists());
    assert_eq!(Exit::read(shim.dir()).unwrap(), exit);
}

#[test]
fn bye_is_refused_while_the_agent_runs() {
    let shim = Shim::script("cat");
    let (mut client, _) = shim.hello(1);
    assert_eq!(client.refused(FromClient::Bye, b""), "REFUSED EARLY the agent has not ended");
}

#[test]
fn signals_reach_the_whole_process_group() {
    let shim = Shim::script(
        "trap : TERM; sh -c 'trap \"echo child\" TERM; echo up; while :; do sleep 0.01; done' & while :; do wait; done",
    );
    let (mut client, _) = shim.hello(1);
    assert_eq!(client.texts(1), ["up"]);
    client.say(FromClient::Signal(15), b"").unwrap();
    assert_eq!(client.texts(1), ["child"]);
    assert_eq!(client.refused(FromClient::Signal(4711), b""), "REFUSED SIGNAL unknown signal 4711");
    client.say(FromClient::Signal(9), b"").unwrap();
    assert_eq!(client.rest().1, Reason::Killed);
    assert_eq!(shim.exit().ended.signal, Some(9));
    assert!(
        client.refused(FromClient::Signal(9), b"").starts_with("REFUSED CLOSED "),
        "the id may be reused"
    );
}

#[test]
fn signals_reach_an_agent_that_has_left_its_process_group() {
    for signal in [15, 9] {
        // It joins its child's group, so its own is empty.
        let shim = Shim::script(
            "exec perl -e 'pipe R, W; $child = fork; if (!$child) { setpgrp 0, 0; syswrite W, 1; sleep 1000 }
             sysread R, $moved, 1; setpgrp 0, $child or die; $| = 1; print \"$child\\n\"; sleep 1000'",
        );
        let (mut client, _) = shim.hello(1);
        let child = client.texts(1)[0].parse().unwrap();
        client.say(FromClient::Signal(signal), b"").unwrap();
        assert_eq!(client.rest().1, Reason::Killed);
        assert_eq!(shim.exit().ended.signal, Some(signal));
        assert!(!runs(child), "after signal {signal}");
    }
}

#[test]
fn an_agent_that_closes_its_stdout_lives_on() {
    let shim = Shim::script("echo last; exec >&-; read line; exit 3");
    let (mut client, _) = shim.hello(1);
    client.until(|said| *said == FromShim::Spool(Reading::Closed));
    let (mut client, _) = shim.hello(1);
    assert_eq!(client.lines(1), [(1, b"last".to_vec())]);
    assert!(shim.record().agent.is_alive());
    client.line(1, b"go").unwrap();
    client.rest();
    assert_eq!(shim.exit().ended.code, Some(3));
}

#[test]
fn an_agent_that_closes_its_stdin_lives_on() {
    let shim = Shim::script("exec <&-; echo up; while [ ! -e go ]; do sleep 0.01; done; echo bye");
    let (mut client, _) = shim.hello(1);
    assert_eq!(client.texts(1), ["up"]);
    assert!(client.refused(FromClient::In { seq: 1, len: 2 }, b"hi").starts_with("REFUSED CLOSED "));
    fs::write(shim.home().join("go"), "").unwrap();
    assert_eq!(client.texts(1), ["bye"]);
}

#[test]
fn descendants_do_not_outlive_their_agent() {
    // One in its group, one in its own session, one orphan; all hold the pipes.
    let shim = Shim::script(
        "sleep 1000 & echo $! >group
         setsid sleep 1000 & echo $! >session
         sh -c 'setsid sh -c \"echo \\$\\$ >orphan; exec sleep 1000\" &'
         while [ ! -s orphan ]; do sleep 0.01; done
         echo bye",
    );
    let (mut client, _) = shim.hello(1);
    assert_eq!(client.rest(), (vec![(1, b"bye".to_vec())], Reason::Exited));
    for name in ["group", "session", "orphan"] {
        let pid = shim.pid_in(name);
        assert!(!runs(pid), "{name}");
    }
}

#[test]
fn descendants_are_killed_to_the_last_generation() {
    // Each is the parent of the next, and none holds the pipes.
    let shim = Shim::of(
        "setsid sh generations 6 </dev/null >/dev/null 2>&1 & while [ ! -s last ]; do sleep 0.01; done",
    );
    let script = "[ $1 -gt 0 ] || { echo $$ >last; exec sleep 1000; }; setsid sh $0 $(($1-1)) & wait";
    fs::write(shim.home().join("generations"), script).unwrap();
    let shim = shim.start();
    shim.exit();
    assert!(!runs(shim.pid_in("last")));
}

#[test]
fn an_endless_line_ends_the_agent() {
    let mut shim = Shim::of("echo before; head -c 3000000 /dev/zero | tr '\\0' x; sleep 1000");
    shim.launch.line_bytes = 1 << 20;
    let shim = shim.start();
    let (mut client, _) = shim.hello(1);
    assert_eq!(client.rest(), (vec![(1, b"before".to_vec())], Reason::LineTooLong));
    let exit = shim.exit();
    assert_eq!((exit.ended.signal, exit.detail), (Some(9), "x".repeat(1024)));
}

#[test]
fn a_line_of_the_largest_size_passes() {
    let mut shim = Shim::of("head -c 100000 /dev/zero | tr '\\0' x; echo; cat");
    shim.launch.line_bytes = 100_000;
    shim.launch.spool_bytes = 64 << 10;
    let shim = shim.start();
    // More than the spool's limit, so the agent waits for trimming.
    let (mut client, _) = shim.hello(1);
    client.until(|said| *said == FromShim::Spool(Reading::Full));
    let (mut client, greeting) = shim.hello(1);
    assert_eq!((client.lines(1), greeting.next), (vec![(1, vec![b'x'; 100_000])], 2));
    client.line(1, b"next").unwrap();
    client.say(FromClient::Trim(1), b"").unwrap();
    assert_eq!(client.lines(1), [(2, b"next".to_vec())]);
}

#[test]
fn a_failed_start_is_reported_at_once_or_recorded() {
    let mut shim = Shim::of("");
    shim.launch.spec.program = "no-such-program".into();
    let output = shim.run();
    let says = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(says.starts_with("muster-shim: no-such-program: program not found"), "{says}");
    assert!(!shim.dir().exists(), "nothing is left");

    let script = shim.home().join("agent");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    shim.launch.spec.program = script.into();
    let shim = shim.start();
    let exit = shim.exit();
    assert_eq!((exit.ended.code, exit.ended.reason), (Some(126), Reason::SpawnFailed));
    assert!(exit.detail.contains("agent: No such file"), "{}", exit.detail);
}

#[test]
fn a_folder_belongs_to_one_launch() {
    let shim = Shim::script("cat");
    let output = shim.run();
    let says = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && says.contains("each launch needs a folder of its own"), "{says}");
    let (mut client, _) = shim.hello(1);
    client.line(1, b"still here").unwrap();
    assert_eq!(client.texts(1), ["still here"]);
}

#[test]
fn a_stopped_agent_blocks_no_other_request() {
    let shim = Shim::script("echo oops >&2; cat");
    let (mut client, _) = shim.hello(1);
    client.line(1, b"first").unwrap();
    assert_eq!(client.texts(1), ["first"]);
    let agent = shim.record().agent.pid;
    client.say(FromClient::Signal(Signal::STOP.as_raw()), b"").unwrap();
    let state = || fs::read_to_string(format!("/proc/{agent}/stat")).unwrap();
    until("the agent is stopped", || state().contains(") T "));
    // Until pipe and queue are full.
    let line = vec![b'x'; 10_000];
    let mut seq = 2;
    let refused = loop {
        client.line(seq, &line).unwrap();
        client.say(FromClient::Stderr, b"").unwrap();
        match client.until(|said| matches!(said, FromShim::Refused { .. } | FromShim::Stderr { .. })).0 {
            (FromShim::Refused { .. }, _) => break seq,
            (_, bytes) => assert_eq!(bytes, b"oops\n"),
        }
        seq += 1;
        if seq == 30 {
            // Repeats pending lines, as after a restart of the host.
            let (again, greeting) = shim.hello(2);
            client = again;
            assert!((2..20).contains(&greeting.taken), "{}", greeting.taken);
            (greeting.taken..30).for_each(|seq| client.line(seq, &line).unwrap());
        }
        assert!(seq < 1000, "it takes everything");
    };
    assert!((60..90).contains(&refused), "{refused}");
    client.until(|said| matches!(said, FromShim::Stderr { .. }));
    kill(agent, Signal::CONT);
    // Also for the child: `cat` is in the shell's group.
    client.say(FromClient::Signal(Signal::CONT.as_raw()), b"").unwrap();
    let lines = client.lines(usize::try_from(refused - 2).unwrap());
    assert_eq!(lines, (2..refused).map(|seq| (seq, line.clone())).collect::<Vec<_>>());
    client.line(refused, b"last").unwrap();
    assert_eq!(client.lines(1), [(refused, b"last".to_vec())]);
}
