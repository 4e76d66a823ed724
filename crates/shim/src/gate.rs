//! `muster-shim gate`: the agent's only connection to the outside, a port of 127.0.0.1 that is relayed to a socket of
//! the host.
//!
//! The relay is a separate process, so the program can't disturb it; it ends with the program. A single thread copies
//! for all connections, since an agent may have hundreds.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io::{self, ErrorKind, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::Path,
    process::{Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{geteuid, getpid},
};

use crate::{about, args::Gate, exec, folder::Address, output};

/// Connections of an agent at a time. Further ones wait.
const MOST: usize = 1024;
/// Tolerated absence of the host, for example during a restart.
const AWAY: Duration = Duration::from_secs(30);
/// The system's tables of connections.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

impl Gate {
    /// Wraps the gate around a program and its arguments.
    pub(crate) fn around(
        &self,
        prefix: &[&str],
        program: &OsStr,
        args: &[OsString],
    ) -> io::Result<(OsString, Vec<OsString>)> {
        let mut all: Vec<OsString> = prefix.iter().map(OsString::from).collect();
        all.extend(["gate".into(), self.socket.clone().into(), self.port.to_string().into()]);
        all.extend(["--".into(), program.to_owned()]);
        all.extend(args.iter().cloned());
        Ok((std::env::current_exe()?.into(), all))
    }
}

/// Starts the relay, and replaces this process with the program. Returns only on failure.
pub(crate) fn exec(prefix: &[&str], gate: &Gate, program: &OsStr, args: &[OsString]) -> ExitCode {
    let error = match start(prefix, gate) {
        Ok(()) => about(program.display(), Command::new(program).args(args).exec()),
        Err(error) => about(format!("port {} of 127.0.0.1", gate.port), error),
    };
    output::print_error(error);
    ExitCode::from(126)
}

fn start(prefix: &[&str], gate: &Gate) -> io::Result<()> {
    // The relay listens before the program starts.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, gate.port))?;
    let mut relay = Command::new(std::env::current_exe()?);
    relay.args(prefix).arg("serve-gate").arg(&gate.socket).env_clear();
    // This process becomes the program. The relay can't find its id by itself: the program may already be dead.
    relay.arg(getpid().as_raw_nonzero().to_string());
    relay.stdin(OwnedFd::from(listener)).stdout(Stdio::null()).stderr(Stdio::null());
    // The relay must survive signals to the agent's process group: the agent may still have requests.
    relay.process_group(0).spawn()?;
    Ok(())
}

/// Relays connections to standard input, a listening socket, while the program lives. The program is the parent.
pub(crate) fn serve(socket: &Path, program: i32) -> io::Result<()> {
    exec::die_with(program)?;
    let listener = TcpListener::from(io::stdin().as_fd().try_clone_to_owned()?);
    listener.set_nonblocking(true)?;
    // A burst of connections must not be refused.
    rustix::net::listen(&listener, 1024)?;
    let address = Address::for_socket(socket)?;
    let (owner, port) = (geteuid().as_raw().to_string(), listener.local_addr()?.port());
    let mut pairs: Vec<Pair> = Vec::new();
    let mut waiting: Vec<(TcpStream, Instant)> = Vec::new();
    loop {
        for (near, since) in std::mem::take(&mut waiting) {
            match Pair::connect(near, address.path()) {
                Ok(pair) => pairs.push(pair),
                Err(near) if since.elapsed() < AWAY => waiting.push((near, since)),
                Err(_) => {}
            }
        }
        let room = MOST.saturating_sub(pairs.len() + waiting.len());
        let mut fds = Vec::with_capacity(1 + pairs.len() * 2);
        fds.push(PollFd::new(&listener, if room > 0 { PollFlags::IN } else { PollFlags::empty() }));
        for pair in &pairs {
            fds.push(PollFd::new(&pair.near, poll_flags(&pair.out, &pair.back)));
            fds.push(PollFd::new(&pair.far, poll_flags(&pair.back, &pair.out)));
        }
        let pause = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
        match poll(&mut fds, (!waiting.is_empty()).then_some(&pause)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        let mut at = 1;
        pairs.retain_mut(|pair| {
            let is_ready = ready[at] || ready[at + 1];
            at += 2;
            !is_ready || pair.copy_both().is_ok_and(|goes_on| goes_on)
        });
        if ready[0] {
            let now = Instant::now();
            let accepted = keep_own_user(accept(&listener, room), port, &owner);
            waiting.extend(accepted.into_iter().map(|near| (near, now)));
        }
    }
}

/// Accepts waiting connections up to the limit.
fn accept(listener: &TcpListener, room: usize) -> Vec<(TcpStream, SocketAddr)> {
    let mut all = Vec::new();
    while all.len() < room {
        match listener.accept() {
            Ok(accepted) => all.push(accepted),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            // Most likely too many open files.
            Err(_) => {
                thread::sleep(Duration::from_millis(200));
                break;
            }
        }
    }
    all
}

/// Keeps connections of this user only. In a shared network others can reach the port too. Unidentified clients count
/// as others, for example those that have already left.
fn keep_own_user(accepted: Vec<(TcpStream, SocketAddr)>, port: u16, owner: &str) -> Vec<TcpStream> {
    let (mut mine, mut unknown) = (Vec::new(), accepted);
    unknown.retain(|(_, from)| from.ip() == Ipv4Addr::LOCALHOST);
    // Connections change while the system lists them, and the list can miss one.
    for _ in 0..3 {
        if unknown.is_empty() {
            break;
        }
        let tables = TABLES.map(|table| std::fs::read_to_string(table).unwrap_or_default());
        let owners = connection_owners(&tables, port);
        for (near, from) in std::mem::take(&mut unknown) {
            match owners.get(&from.port()) {
                Some(found) if *found == owner => mine.push(near),
                Some(_) => {}
                None => unknown.push((near, from)),
            }
        }
    }
    mine
}

/// Owners of the connections to a port of 127.0.0.1, by client port. Closed ones have no owner: the system lists them
/// as root's.
fn connection_owners(tables: &[String], port: u16) -> BTreeMap<u16, &str> {
    let lines = tables.iter().flat_map(|table| table.lines());
    let found = lines.filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, remote, _, _, _, _, owner, _, inode, ..] = fields[..] else { return None };
        let client = local_port(local)?;
        (local_port(remote)? == port && inode != "0").then_some((client, owner))
    });
    found.collect()
}

/// The port of 127.0.0.1, also as an IPv4-mapped address.
fn local_port(address: &str) -> Option<u16> {
    let (address, port) = address.split_once(':')?;
    let own = format!("{:08X}", u32::from_ne_bytes(Ipv4Addr::LOCALHOST.octets()));
    let mapped = format!("0000000000000000{:08X}{own}", u32::from_ne_bytes([0, 0, 0xff, 0xff]));
    (address == own || address == mapped).then(|| u16::from_str_radix(port, 16).ok())?
}

/// A connection of the agent, and its continuation to the host.
struct Pair {
    near: TcpStream,
    far: UnixStream,
    out: Flow,
    back: Flow,
}

/// One direction of a connection.
#[derive(Default)]
struct Flow {
    kept: Vec<u8>,
    written: usize,
    has_ended: bool,
    is_shut: bool,
}

/// Poll events for an end: `reads` takes its data, `writes` has data for it.
fn poll_flags(reads: &Flow, writes: &Flow) -> PollFlags {
    let read = if reads.has_room() { PollFlags::IN } else { PollFlags::empty() };
    let write = if writes.kept.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
    read | write
}

impl Pair {
    /// Connects to the host. Returns the connection if that fails for now.
    fn connect(near: TcpStream, socket: &Path) -> Result<Self, TcpStream> {
        let prepared = UnixStream::connect(socket).and_then(|far| {
            near.set_nonblocking(true)?;
            near.set_nodelay(true)?;
            far.set_nonblocking(true)?;
            Ok(far)
        });
        match prepared {
            Ok(far) => Ok(Self { near, far, out: Flow::default(), back: Flow::default() }),
            Err(_) => Err(near),
        }
    }

    /// Copies available data. Returns whether more may come.
    fn copy_both(&mut self) -> io::Result<bool> {
        let Self { near, far, out, back } = self;
        // The response may be complete even if the request can't be sent completely.
        let asked = out.copy(near, far);
        back.copy(far, near)?;
        asked?;
        if out.is_done() {
            let _ = far.shutdown(Shutdown::Write);
        }
        if back.is_done() {
            let _ = near.shutdown(Shutdown::Write);
        }
        Ok(!(out.is_shut && back.is_shut))
    }
}

impl Flow {
    fn has_room(&self) -> bool {
        self.kept.is_empty() && !self.has_ended
    }

    /// True once, when the direction completes.
    fn is_done(&mut self) -> bool {
        let is_done = self.has_ended && self.kept.is_empty() && !self.is_shut;
        self.is_shut |= is_done;
        is_done
    }

    fn copy(&mut self, from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
        loop {
            if self.has_room() {
                let mut piece = [0; 16 * 1024];
                match from.read(&mut piece) {
                    Ok(0) => self.has_ended = true,
                    Ok(count) => self.kept = piece[..count].to_vec(),
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
            if self.kept.is_empty() {
                return Ok(());
            }
            match to.write(&self.kept[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
            if self.written == self.kept.len() {
                (self.kept, self.written) = (Vec::new(), 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv6Addr, SocketAddrV6};

    use super::*;

    #[test]
    fn only_clients_that_are_known_to_be_the_users_are_relayed() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let me = geteuid().as_raw().to_string();
        // Java and others use IPv6 sockets, which another table lists.
        let mapped = SocketAddrV6::new(Ipv4Addr::LOCALHOST.to_ipv6_mapped(), port, 0, 0);
        assert_ne!(*mapped.ip(), Ipv6Addr::LOCALHOST);
        let comes = |to: SocketAddr| (TcpStream::connect(to).unwrap(), listener.accept().unwrap());
        for to in [SocketAddr::from((Ipv4Addr::LOCALHOST, port)), mapped.into()] {
            let (_client, (near, from)) = comes(to);
            assert_eq!(keep_own_user(vec![(near.try_clone().unwrap(), from)], port, &me).len(), 1, "{to}");
            assert!(
                keep_own_user(vec![(near.try_clone().unwrap(), from)], port, "4294967294").is_empty(),
                "{to}"
            );
            assert!(
                keep_own_user(vec![(near, from)], port.wrapping_add(1), &me).is_empty(),
                "to another port: {to}"
            );
        }
        // The system reports a closed connection as root's.
        let (client, accepted) = comes((Ipv4Addr::LOCALHOST, port).into());
        drop(client);
        assert!(keep_own_user(vec![accepted], port, "0").is_empty());
    }

    #[test]
    fn a_client_of_another_address_is_another_one() {
        let line = |local: &str, inode: u64| {
            format!(
                "   0: {local}:1F90 0100007F:0050 01 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1"
            )
        };
        let found = |line: String| connection_owners(&["  sl  local_address\n".to_owned() + &line], 80).len();
        assert_eq!(found(line("0100007F", 7)), 1);
        assert_eq!(found(line("0200007F", 7)), 0);
        assert_eq!(found(line("0100007F", 0)), 0);
    }
}
