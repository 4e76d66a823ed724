//! The relay of an MCP server next to the agent: every message goes to the host.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::net::{UnixListener, UnixStream},
    process::{Child, Command, Stdio},
};

use crate::harness::until;

/// A relay with its program, and the host's end.
struct Relay {
    process: Child,
    host: BufReader<UnixStream>,
    _folder: tempfile::TempDir,
}

impl Relay {
    fn of(script: &str) -> Self {
        Self::begun_by(Command::new(env!("CARGO_BIN_EXE_muster-shim")), script)
    }

    fn begun_by(mut command: Command, script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        command.arg("mcp").arg(socket).args(["--", "sh", "-c", script]);
        let process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut host = BufReader::new(listener.accept().unwrap().0);
        assert_eq!(line(&mut host), "+");
        Self { process: process.unwrap(), host, _folder: folder }
    }

    /// The next line at the host.
    fn hears(&mut self) -> String {
        line(&mut self.host)
    }

    fn says(&mut self, text: &str) {
        self.host.get_mut().write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    fn client(&mut self, text: &str) {
        self.process.stdin.as_mut().unwrap().write_all(format!("{text}\n").as_bytes()).unwrap();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn line(from: &mut impl BufRead) -> String {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    line.trim_end_matches('\n').to_owned()
}

#[test]
fn all_messages_pass_through_the_host() {
    let mut relay = Relay::of("echo begun >&2; while read -r line; do echo \"heard $line\"; done; exit 7");
    assert_eq!(relay.hears(), "!begun");
    relay.client("one");
    assert_eq!(relay.hears(), ">one", "the program has not heard it");
    relay.says(">two");
    assert_eq!(relay.hears(), "<heard two", "the client has not heard it");
    relay.says("<three");
    let mut client = BufReader::new(relay.process.stdout.take().unwrap());
    assert_eq!(line(&mut client), "three");
    // A program that reads nothing must not delay the client.
    let mut slow = Relay::of("sleep 60");
    for _ in 0..64 {
        slow.says(&format!(">{}", "x".repeat(64 << 10)));
    }
    slow.says("<four");
    assert_eq!(line(&mut BufReader::new(slow.process.stdout.take().unwrap())), "four");
}

#[test]
fn the_host_hears_how_a_program_ends() {
    let mut relay = Relay::of("echo last; echo why >&2; exit 7");
    let mut heard = vec![relay.hears(), relay.hears(), relay.hears()];
    heard[..2].sort();
    assert_eq!(heard, ["!why", "<last", ".code 7"]);
    assert_eq!(relay.hears(), "");
    drop(relay.host.get_ref().shutdown(std::net::Shutdown::Both));
    assert!(relay.process.wait().unwrap().success());
    let mut unended = Relay::of("printf 'no newline' >&2");
    assert_eq!([unended.hears(), unended.hears()], ["!no newline", ".code 0"]);
    let mut absent = Relay::of("exec /srv/no-such-program");
    assert!(absent.hears().starts_with('!'), "it says why it can't start");
}

#[test]
fn a_program_ends_with_its_client_or_the_host() {
    for is_client in [true, false] {
        let mut relay = Relay::of("echo $$; trap '' TERM; while :; do sleep 0.1; done");
        let pid = relay.hears().trim_start_matches('<').to_owned();
        let is_there = || std::path::Path::new(&format!("/proc/{pid}")).exists();
        assert!(is_there());
        if is_client {
            drop(relay.process.stdin.take());
            assert_eq!(relay.hears(), "");
        }
        drop(relay.host.get_ref().shutdown(std::net::Shutdown::Both));
        until("the program has ended", || !is_there());
    }
}

#[test]
fn a_program_and_its_relay_may_have_no_standard_error() {
    let script = "exec 2>&-; while read -r line; do echo \"heard $line\"; done; exit 7";
    let mut closed = Command::new("sh");
    closed.args(["-c", "exec \"$0\" \"$@\" 2>&-", env!("CARGO_BIN_EXE_muster-shim")]);
    for mut relay in [Relay::of(script), Relay::begun_by(closed, script)] {
        for _ in 0..3 {
            relay.client("one");
            assert_eq!(relay.hears(), ">one");
            relay.says(">two");
            assert_eq!(relay.hears(), "<heard two");
        }
        relay.says(">");
        assert_eq!(relay.hears(), "<heard ");
        drop(relay.process.stdin.take());
        assert_eq!(relay.hears(), "", "its client has left");
    }
}
