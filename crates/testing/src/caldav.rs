//! Real CalDAV servers, and a person who edits there (`tests/peers/channels/calendar_client.py`).

use std::{fs, process::Stdio, time::Duration};

use serde_json::Value;
use tempfile::TempDir;
use tokio::{net::TcpStream, process::Child, time::sleep};

use super::{
    dovecot::reserved_port,
    peers::{json_lines, peer, python},
};

/// The account, which is invited by this address.
pub const USER: &str = "me@a.test";
pub const PASSWORD: &str = "secret";

/// A server with one calendar, called Rota at radicale.
pub struct CalDav {
    pub url: String,
    /// The calendar's path.
    pub calendar: String,
    _process: Child,
    _folder: TempDir,
}

impl CalDav {
    /// Starts `radicale`, or `xandikos`, which knows no passwords.
    pub async fn start(name: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let at = |path: &str| folder.path().join(path).display().to_string();
        let port = reserved_port();
        let mut command = python();
        if name == "radicale" {
            fs::write(at("users"), format!("{USER}:{PASSWORD}\n")).unwrap();
            command.args(["-m", "radicale", "--server-hosts", &format!("127.0.0.1:{port}")]);
            command.args(["--auth-type", "htpasswd", "--auth-htpasswd-encryption", "plain"]);
            command.args(["--auth-htpasswd-filename", &at("users")]);
            command.args(["--storage-filesystem-folder", &at("store")]);
        } else {
            command.args(["-m", "xandikos", "--defaults", "-d", &at("store")]);
            command.args(["-l", "127.0.0.1", "-p", &port.to_string()]);
        }
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
        let url = format!("http://127.0.0.1:{port}/");
        let mut server = Self { url, calendar: String::new(), _process: process, _folder: folder };
        let made = server.person(&["make", "Rota"]).await;
        // As the servers write it.
        server.calendar = made[0]["calendar"].as_str().unwrap().replace('@', "%40");
        server
    }

    /// What a person does.
    pub async fn person(&self, command: &[&str]) -> Vec<Value> {
        let mut client = peer("calendar_client.py");
        client.args([&*self.url, USER, PASSWORD]).args(command);
        json_lines(client, "").await
    }

    /// A person adds an event, as Ada if she invites someone. Times are like `2026-12-01T10:00:00+00:00`.
    pub async fn add(&self, uid: &str, title: &str, start: &str, end: &str, invited: &[&str]) {
        self.person(&[&["add", &*self.calendar, uid, title, start, end][..], invited].concat()).await;
    }
}
