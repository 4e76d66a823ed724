//! Lines in and out, the spool, and access to it.

use std::{
    fs,
    io::{Read, Write},
    os::unix::{
        fs::PermissionsExt,
        net::{UnixListener, UnixStream},
    },
    process::Stdio,
    time::Duration,
};

use muster_shim::wire::{FromClient, FromShim, Reading, Reason};

use crate::harness::{Shim, Talk, program, until};

#[test]
fn lines_go_through_as_they_are_and_are_numbered() {
    let shim = Shim::script("cat");
    let (mut client, greeting) = shim.hello(0);
    assert_eq!((greeting.version, greeting.generation), (1, 3));
    assert_eq!((greeting.taken, greeting.first, greeting.next), (0, 1, 1));
    assert_eq!(greeting.pid, shim.record().agent.pid);
    let long = vec![b'x'; 300_000];
    let lines: [&[u8]; 5] = [b"{}", b"", b"\xff\x00\xfe no text", b"with a return\r", &long];
    for (seq, line) in (1..).zip(lines) {
        client.line(seq, line).unwrap();
        client.until(|said| *said == FromShim::Took(seq));
    }
    drop(client);
    let (mut client, greeting) = shim.hello(1);
    assert_eq!(greeting.taken, 5);
    let expected: Vec<_> = (1..).zip(lines.map(<[u8]>::to_vec)).collect();
    assert_eq!(client.lines(5), expected);
}

#[test]
fn each_line_is_written_once_despite_repeats_and_gaps() {
    let shim = Shim::script("cat");
    let (mut client, _) = shim.hello(1);
    let gap = "REFUSED GAP the next line is 1, and this is 2";
    assert_eq!(client.refused(FromClient::In { seq: 2, len: 1 }, b"b"), gap);
    for (seq, line) in [(1, "a"), (1, "a"), (2, "b"), (1, "a"), (2, "b"), (3, "c")] {
        client.line(seq, line.as_bytes()).unwrap();
        client.until(|said| *said == FromShim::Took(seq));
    }
    assert!(
        client.refused(FromClient::In { seq: 5, len: 0 }, b"").starts_with("REFUSED GAP the next line is 4")
    );
    assert!(client.refused(FromClient::In { seq: 4, len: 3 }, b"d\ne").starts_with("REFUSED LINE "));
    client.line(4, b"d").unwrap();
    drop(client);
    let (mut client, _) = shim.hello(1);
    client.line(4, b"d").unwrap();
    client.line(5, b"e").unwrap();
    assert_eq!(client.texts(5), ["a", "b", "c", "d", "e"]);
    client.say(FromClient::Close, b"").unwrap();
    let (more, reason) = client.rest();
    assert_eq!((more, reason), (vec![], Reason::Exited));
    assert!(client.refused(FromClient::In { seq: 6, len: 0 }, b"").starts_with("REFUSED CLOSED "));
}

#[test]
fn malformed_input_ends_only_the_connection() {
    let mut shim = Shim::of("cat");
    shim.launch.line_bytes = 1000;
    let shim = shim.start();
    let (mut good, _) = shim.hello(1);
    let headers: [&[u8]; 5] =
        [b"TRIM 1\n", b"GET / HTTP/1.1\n", &[b'x'; 4000], b"IN 1 1001\n", b"\xff\xfe\n"];
    for header in headers {
        let mut client = shim.connect();
        client.say("", b"").unwrap_or(());
        client.say(String::from_utf8_lossy(header), b"").unwrap_or(());
        let ((said, _), _) = client.until(|said| matches!(said, FromShim::Refused { .. }));
        assert!(said.to_string().starts_with("REFUSED MALFORMED "), "{said}");
        assert!(client.ends());
    }
    good.line(1, b"still here").unwrap();
    assert_eq!(good.texts(1), ["still here"]);
}

#[test]
fn the_newest_client_that_says_hello_is_the_client() {
    let shim = Shim::script("cat");
    let (mut first, _) = shim.hello(1);
    first.line(1, b"one").unwrap();
    assert_eq!(first.texts(1), ["one"]);
    // A mere connection test.
    drop(shim.connect());
    let silent = shim.connect();
    first.line(2, b"two").unwrap();
    assert_eq!(first.texts(1), ["two"]);
    drop(silent);
    let (mut second, greeting) = shim.hello(2);
    assert_eq!((greeting.taken, greeting.next), (2, 3));
    let ((said, _), _) = first.until(|said| matches!(said, FromShim::Refused { .. }));
    assert_eq!(said.to_string(), "REFUSED SUPERSEDED another client has taken over");
    assert!(first.ends());
    second.line(3, b"three").unwrap();
    assert_eq!(second.texts(2), ["two", "three"]);
}

#[test]
fn lines_are_replayed_until_they_are_trimmed() {
    let shim = Shim::script("seq 1 5000; cat");
    until("all is written", || shim.hello(1).1.next == 5001);
    for from in [1, 2500, 5000, 5001] {
        let (mut client, _) = shim.hello(from);
        let count = 5001 - from;
        let expected: Vec<String> = (from..=5000).map(|n| n.to_string()).collect();
        assert_eq!(client.texts(usize::try_from(count).unwrap()), expected);
    }
    let (mut client, _) = shim.hello(5001);
    client.say(FromClient::Trim(3000), b"").unwrap();
    assert!(
        client.refused(FromClient::Trim(5001), b"").starts_with("REFUSED GAP line 5001 does not exist yet")
    );
    let (mut client, greeting) = shim.hello(1);
    assert_eq!((greeting.first, greeting.next), (3001, 5001));
    assert_eq!(client.texts(1), ["3001"]);
    let mut client = shim.connect();
    assert!(
        client.hello(5002).unwrap_err().to_string().starts_with("REFUSED GAP the next line will be 5001")
    );
}

#[test]
fn a_flood_waits_for_a_slow_reader_and_arrives_once_in_order() {
    let lines = 200_000;
    let mut shim = Shim::of(&format!("exec seq -f 'line %.0f of many' 1 {lines}"));
    shim.launch.spool_bytes = 1 << 20;
    let shim = shim.start();
    let (mut client, _) = shim.hello(1);
    client.until(|said| *said == FromShim::Spool(Reading::Full));
    let (mut client, greeting) = shim.hello(1);
    assert!(greeting.next < lines / 2, "the agent waits, but {} lines are there", greeting.next);
    let before = shim.memory();
    let (mut seen, mut most) = (0, before);
    while seen < lines {
        for (seq, bytes) in client.lines(1) {
            assert_eq!((seq, bytes), (seen + 1, format!("line {} of many", seen + 1).into_bytes()));
            seen = seq;
        }
        if seen % 5000 == 0 {
            client.say(FromClient::Trim(seen), b"").unwrap();
            most = most.max(shim.memory());
        }
    }
    assert_eq!(client.rest(), (vec![], Reason::Exited));
    assert!(most < before + 2048 && most < 16 << 10, "{before} KiB became {most} KiB");
}

#[test]
fn a_client_that_asks_and_never_reads_costs_little() {
    let shim = Shim::script("head -c 300000 /dev/zero | tr '\\0' e >&2; cat");
    until("the agent has written to its stderr", || {
        muster_shim::folder::stderr(shim.dir()).unwrap().len() == 256 << 10
    });
    let mut stream = UnixStream::connect(shim.dir().join("socket")).unwrap();
    stream.write_all(b"HELLO 1\n").unwrap();
    let before = shim.memory();
    // Until the shim stops reading.
    stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let asked = (0..1_000_000).take_while(|_| stream.write_all(b"STDERR\nBYE\nTRIM 9\n").is_ok()).count();
    assert!(asked < 1_000_000, "it reads everything");
    let most = shim.memory();
    assert!(most < before + 8192, "{before} KiB became {most} KiB");
    let (mut client, _) = shim.hello(1);
    client.line(1, b"still here").unwrap();
    assert_eq!(client.texts(1), ["still here"]);
}

#[test]
fn stderr_is_kept_up_to_a_bound() {
    let shim = Shim::script("seq 1 200000 >&2; echo done; cat");
    let (mut client, _) = shim.hello(1);
    assert_eq!(client.texts(1), ["done"]);
    let all: String = (1..=200_000).map(|n| format!("{n}\n")).collect();
    let expected = &all.as_bytes()[all.len() - (256 << 10)..];
    until("the shim has read it all", || muster_shim::folder::stderr(shim.dir()).unwrap() == expected);
    client.say(FromClient::Stderr, b"").unwrap();
    let ((_, bytes), _) = client.until(|said| matches!(said, FromShim::Stderr { .. }));
    assert!(bytes == expected, "it ends with {:?}", String::from_utf8_lossy(&bytes[bytes.len() - 20..]));
    let sizes = ["stderr", "stderr.1"].map(|name| fs::metadata(shim.dir().join(name)).unwrap().len());
    assert!(sizes.iter().sum::<u64>() < 700 << 10, "{sizes:?}");
}

#[test]
fn only_its_user_gets_at_a_launch_and_its_path_may_be_long() {
    let mut shim = Shim::of("cat");
    let long = "a-name-that-is-rather-long-for-a-folder".repeat(4);
    shim.launch.dir = shim.home().join(&long).join(&long).join("3");
    let shim = shim.start();
    assert!(shim.dir().as_os_str().len() > 300);
    let mode = |name: &str| fs::metadata(shim.dir().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode(""), mode("socket"), mode("spool"), mode("shim")], [0o700, 0o600, 0o700, 0o600]);
    let (mut client, _) = shim.hello(1);
    client.line(1, b"hello").unwrap();
    assert_eq!(client.texts(1), ["hello"]);
}

#[test]
fn connect_is_the_socket_for_a_program() {
    let shim = Shim::script("cat");
    let mut relay = shim.relay();
    let mut to = relay.stdin.take().unwrap();
    to.write_all(b"HELLO 1\nIN 1 2\nhi").unwrap();
    let expected = format!("SHIM 1 3 {} 0 1 1\n", shim.record().agent.pid);
    let mut from = relay.stdout.take().unwrap();
    let mut text = String::new();
    while !text.ends_with("OUT 1 2\nhi") {
        let mut byte = [0];
        from.read_exact(&mut byte).unwrap();
        text.push(char::from(byte[0]));
    }
    assert!(text.starts_with(&expected) && text.contains("TOOK 1\n"), "{text}");
    drop(to);
    assert!(relay.wait().unwrap().success());
}

#[test]
fn mcp_copies_both_ways_and_ends_with_either_side() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp");
    let listener = UnixListener::bind(&path).unwrap();
    let start = || {
        let mut relay = program();
        relay.arg("mcp").arg(&path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    };
    // The agent leaves.
    let mut relay = start();
    let (mut server, _) = listener.accept().unwrap();
    relay.stdin.take().unwrap().write_all(b"{\"id\":1}\n").unwrap();
    let mut asked = String::new();
    server.read_to_string(&mut asked).unwrap();
    assert_eq!(asked, "{\"id\":1}\n");
    server.write_all(b"{\"result\":1}\n").unwrap();
    drop(server);
    let output = relay.wait_with_output().unwrap();
    assert_eq!((output.status.success(), &output.stdout[..]), (true, &b"{\"result\":1}\n"[..]));
    // The host leaves.
    let mut relay = start();
    let (server, _) = listener.accept().unwrap();
    drop(server);
    assert!(relay.wait().unwrap().success());
    // Without a host.
    drop(listener);
    let output = start().wait_with_output().unwrap();
    assert!(!output.status.success());
}
