//! `connect` and `mcp`: stdin and stdout as a Unix socket. `connect` reaches a shim where only programs can be run;
//! agents start `mcp` as Muster's MCP server.

use std::{
    io::{self, Read, Write, stdin, stdout},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::Path,
    sync::mpsc,
    thread,
};

use crate::{
    about,
    bounds::{LAST_WORDS, PIECE},
    folder::Address,
};

/// Copies both ways until either side ends.
pub(crate) fn relay(path: &Path) -> io::Result<()> {
    let address = Address::for_socket(path)?;
    let socket = UnixStream::connect(address.path()).map_err(|error| about(path.display(), error))?;
    let (mut from, mut to) = (socket.try_clone()?, socket.try_clone()?);
    let (ended, ends) = mpsc::channel();
    let also_ended = ended.clone();
    thread::spawn(move || {
        let copied = copy(&mut from, &mut stdout());
        drop(ended.send((true, copied)));
    });
    thread::spawn(move || {
        let copied = copy(&mut stdin(), &mut to);
        drop(to.shutdown(Shutdown::Write));
        drop(also_ended.send((false, copied)));
    });
    match ends.recv() {
        Ok((true, copied)) => copied,
        Ok((false, Ok(()))) => match ends.recv_timeout(LAST_WORDS) {
            Ok((_, copied)) => copied,
            Err(_) => Ok(()),
        },
        Ok((false, copied)) => copied,
        Err(_) => Ok(()),
    }
}

/// Forwards data without buffering.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; PIECE];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                to.write_all(&buffer[..count])?;
                to.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
