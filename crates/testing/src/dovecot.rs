//! A real dovecot without root privileges.

use std::{
    fs,
    io::Write,
    net::{SocketAddr, TcpListener as StdListener},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, SystemTime},
};

use tempfile::TempDir;
use tokio::{io::AsyncReadExt as _, net::TcpStream};

/// The owner of the mailbox.
pub const USER: &str = "agent";

/// An IMAP server with one mailbox.
pub struct Dovecot {
    process: Child,
    folder: TempDir,
    pub address: SocketAddr,
}

impl Dovecot {
    /// Starts a server, and waits until it listens.
    pub async fn start() -> Self {
        Self::start_with(None).await
    }

    /// Starts a server that also accepts access tokens and checks them with `GET /<token>` at `tokens`.
    pub async fn start_with(tokens: Option<SocketAddr>) -> Self {
        let folder = TempDir::with_prefix("channels-").unwrap();
        let port = reserved_port();
        let path = folder.path().join("dovecot.conf");
        certify(folder.path());
        let passwords = tokens.map_or_else(String::new, |at| by_token(folder.path(), at));
        fs::write(&path, config(folder.path(), port) + passwords.as_str()).unwrap();
        for name in ["new", "cur", "tmp"] {
            fs::create_dir_all(folder.path().join("mail").join(name)).unwrap();
        }
        let dovecot = ["/usr/sbin/dovecot", "dovecot"]
            .into_iter()
            .find(|path| Path::new(path).exists())
            .unwrap_or("dovecot");
        let mut command = Command::new(dovecot);
        if said_by("id", "-u") == "0" {
            // dovecot delivers no mail as root.
            assert!(
                Command::new("chown")
                    .args(["-R", "nobody:nogroup"])
                    .arg(folder.path())
                    .status()
                    .unwrap()
                    .success()
            );
            command = Command::new("setpriv");
            command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", dovecot]);
        }
        let process = command.arg("-F").arg("-c").arg(&path).stderr(Stdio::null()).spawn();
        let process = process.expect("dovecot is missing: apt-get install dovecot-imapd");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let started = Self { process, folder, address };
        for _ in 0..500 {
            if greets(address).await {
                return started;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!(
            "dovecot does not start: {}",
            fs::read_to_string(started.folder.path().join("log")).unwrap_or_default()
        );
    }

    /// The server's certificate, for `mail.test`.
    pub fn certificate(&self) -> Vec<u8> {
        fs::read(self.folder.path().join("cert.der")).unwrap()
    }

    /// The folder with `cert.pem` and `key.pem`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn deliver(&self, name: &str, mail: &str) {
        self.deliver_at(name, mail, SystemTime::now());
    }

    /// Delivers a mail with this time of arrival.
    pub fn deliver_at(&self, name: &str, mail: &str, at: SystemTime) {
        let tmp = self.mail().join("tmp").join(name);
        let mut file = fs::File::create(&tmp).unwrap();
        file.write_all(mail.replace('\n', "\r\n").as_bytes()).unwrap();
        file.set_modified(at).unwrap();
        file.set_permissions(fs::Permissions::from_mode(0o644)).unwrap();
        fs::rename(tmp, self.mail().join("new").join(name)).unwrap();
    }

    /// Changes the UIDVALIDITY of the mailbox.
    pub async fn forget_numbers(&self) {
        // A process that is still ending writes files with these names.
        while self.is_read() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for entry in fs::read_dir(self.mail()).unwrap().flatten() {
            if entry.file_name().to_string_lossy().starts_with("dovecot") {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        let list = self.mail().join("dovecot-uidlist");
        // Without a valid GUID, dovecot writes a UIDVALIDITY of the current second, which can equal the old one.
        fs::write(&list, "3 V99999 N1 G0123456789abcdef0123456789abcdef\n").unwrap();
        fs::set_permissions(list, fs::Permissions::from_mode(0o666)).unwrap();
    }

    /// The number of mails marked as seen.
    pub fn seen(&self) -> usize {
        let all = fs::read_dir(self.mail().join("cur")).unwrap().flatten();
        all.filter(|entry| {
            entry.file_name().to_string_lossy().split(":2,").nth(1).is_some_and(|flags| flags.contains('S'))
        })
        .count()
    }

    /// Whether a client is connected: dovecot runs a process for each.
    fn is_read(&self) -> bool {
        let server = self.process.id().to_string();
        fs::read_dir("/proc").unwrap().flatten().any(|entry| {
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let mut fields = stat.split(' ');
            fields.nth(1) == Some("(imap)") && fields.nth(1) == Some(server.as_str())
        })
    }

    fn mail(&self) -> PathBuf {
        self.folder.path().join("mail")
    }
}

impl Drop for Dovecot {
    fn drop(&mut self) {
        // On SIGTERM, dovecot also ends its child processes.
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}

/// A free port below the ephemeral range, different for each process. Binding port 0 never returns it.
pub fn reserved_port() -> u16 {
    let start = u16::try_from(std::process::id() % 20_000).unwrap();
    let mut ports = (start..20_000).chain(0..start).map(|port| 10_000 + port);
    ports.find(|port| StdListener::bind(("127.0.0.1", *port)).is_ok()).expect("a free port")
}

/// Whether an IMAP server answers at this address.
async fn greets(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address).await else { return false };
    let mut greeting = [0; 4];
    stream.read_exact(&mut greeting).await.is_ok() && greeting == *b"* OK"
}

fn config(folder: &Path, port: u16) -> String {
    let (me, group) = match said_by("id", "-un").as_str() {
        "root" => ("nobody".to_owned(), "nogroup".to_owned()),
        me => (me.to_owned(), said_by("id", "-gn")),
    };
    let folder = folder.display();
    format!(
        "base_dir = {folder}/run\nlog_path = {folder}/log\nprotocols = imap\nssl = yes\nssl_cert = <{folder}/cert.pem\nssl_key = <{folder}/key.pem\ndisable_plaintext_auth = no\n\
         listen = 127.0.0.1\ndefault_internal_user = {me}\ndefault_internal_group = {group}\ndefault_login_user = {me}\n\
         first_valid_uid = 0\nmail_location = maildir:{folder}/mail\nmail_fsync = never\n\
         passdb {{\n  driver = static\n  mechanisms = plain login\n  args = password=secret\n}}\n\
         userdb {{\n  driver = static\n  args = uid={me} gid={group} home={folder}\n}}\n\
         service imap-login {{\n  chroot =\n  inet_listener imap {{\n    address = 127.0.0.1\n    port = {port}\n  }}\n\
           inet_listener imaps {{\n    port = 0\n  }}\n}}\n\
         service anvil {{\n  chroot =\n}}\nservice stats {{\n  chroot =\n}}\n"
    )
}

/// The configuration for logins with access tokens.
fn by_token(folder: &Path, tokens: SocketAddr) -> String {
    let path = folder.join("oauth2.conf");
    let asked = format!("tokeninfo_url = http://{tokens}/\n");
    fs::write(&path, asked + "username_attribute = user\nactive_attribute = active\nactive_value = true\n")
        .unwrap();
    let path = path.display();
    format!(
        "auth_mechanisms = plain login xoauth2\npassdb {{\n  driver = oauth2\n  mechanisms = xoauth2\n  args = {path}\n}}\n"
    )
}

/// Creates a certificate for `mail.test`: `cert.pem`, `cert.der`, `key.pem`.
pub fn certify(folder: &Path) {
    let openssl = |arguments: &str| {
        let made = Command::new("openssl")
            .args(arguments.split(' '))
            .current_dir(folder)
            .stderr(Stdio::null())
            .status();
        assert!(made.expect("openssl is missing").success(), "{arguments}");
    };
    openssl(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=mail.test -keyout key.pem \
         -out cert.pem -addext subjectAltName=DNS:mail.test -addext basicConstraints=critical,CA:FALSE",
    );
    openssl("x509 -in cert.pem -outform DER -out cert.der");
}

fn said_by(command: &str, argument: &str) -> String {
    let output = Command::new(command).arg(argument).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
