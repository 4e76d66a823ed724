//! A real aiosmtpd (`tests/peers/channels/smtp.py`).

use std::{path::Path, process::Stdio};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout},
};

use super::peers::peer;

/// An SMTP server.
pub struct Smtp {
    pub port: u16,
    lines: Lines<BufReader<ChildStdout>>,
    _process: Child,
}

impl Smtp {
    /// Starts a server with the certificate in `folder`. `mode` is `tls`, `starttls`, or `open` without a certificate.
    pub async fn start(host: &str, port: u16, mode: &str, folder: &Path) -> Self {
        let mut command = peer("smtp.py");
        command.args([host, &port.to_string()]).args([folder.join("cert.pem"), folder.join("key.pem")]);
        let mut process = command.arg(mode).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let first = lines.next_line().await.unwrap().expect("it starts");
        let port = first.strip_prefix("listening ").unwrap().parse().unwrap();
        Self { port, lines, _process: process }
    }

    /// The next received mail.
    pub async fn mail(&mut self) -> Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().unwrap()).unwrap()
    }
}
