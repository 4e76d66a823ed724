//! The real program as a separate process, and databases that can be taken away from it.

use std::{
    ffi::OsStr,
    fs,
    io::{self, BufRead, BufReader, Seek, Write},
    ops::{Deref, DerefMut},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use reqwest::Client;
use sea_orm::{ConnectionTrait, DbBackend, Statement};
use serde_json::Value;
use tempfile::TempDir;

use super::{Actor, Address, PATIENCE, TestApp, connect, found, until};

/// The output of a command.
pub struct Ran {
    pub code: Option<i32>,
    /// Standard output as JSON. Null if it isn't JSON.
    pub out: Value,
    /// The raw standard output.
    pub text: String,
    pub err: String,
}

/// `muster … --json` with exactly these environment variables.
pub async fn muster<K: AsRef<OsStr>, V: AsRef<OsStr>>(arguments: &[&str], variables: &[(K, V)]) -> Ran {
    muster_told(arguments, variables, b"").await
}

/// [`muster`] with standard input.
async fn muster_told<K: AsRef<OsStr>, V: AsRef<OsStr>>(
    arguments: &[&str],
    variables: &[(K, V)],
    input: &[u8],
) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
    command.args(arguments).arg("--json").env_clear();
    command.envs(variables.iter().map(|(name, value)| (name, value))).stdin(on_input(input));
    Ran::of(&tokio::process::Command::from(command).kill_on_drop(true).output().await.unwrap())
}

/// A file with this content, for reading.
fn on_input(input: &[u8]) -> Stdio {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(input).unwrap();
    file.rewind().unwrap();
    file.into()
}

impl Ran {
    fn of(output: &Output) -> Self {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let out = serde_json::from_str(&text).unwrap_or_default();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        Self { code: output.status.code(), out, text, err }
    }

    pub fn good(&self) -> bool {
        self.code == Some(0)
    }

    /// The answer of a command, which must succeed.
    #[track_caller]
    pub fn expect(self) -> Value {
        assert!(self.good(), "{:?}: {}{}", self.code, self.text, self.err);
        self.out
    }

    /// The error text of a command that must fail with this exit code and error code, without other output.
    #[track_caller]
    pub fn refused(&self, exit: i32, code: &str) -> String {
        let said = self.err.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok());
        let error = said.map(|said| said["error"].clone()).unwrap_or_default();
        let found = (self.code, error["code"].as_str(), self.text.as_str());
        assert_eq!(found, (Some(exit), Some(code), ""), "{}", self.err);
        error["detail"].as_str().expect("it says what is wrong").to_owned()
    }
}

impl TestApp {
    /// The environment for commands on this service's database and key file.
    pub fn variables(&self) -> Vec<(String, String)> {
        let folder = self.folder().to_str().unwrap().to_owned();
        let url = secrecy::ExposeSecret::expose_secret(&self.core.config.database.url).to_owned();
        [("MUSTER_DATA_DIR", folder), ("MUSTER_DATABASE_URL", url), ("MUSTER_LISTEN", "127.0.0.1:0".into())]
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec()
    }

    /// `muster … --json` as the operator of this service.
    pub async fn cli(&self, arguments: &[&str]) -> Ran {
        muster(arguments, &self.variables()).await
    }

    /// [`Self::cli`] with standard input, for a password.
    pub async fn cli_with_input(&self, arguments: &[&str], input: &str) -> Ran {
        muster_told(arguments, &self.variables(), input.as_bytes()).await
    }

    /// Such a command must fail with this exit code and error code. Returns the error text.
    pub async fn refuses(&self, arguments: &[&str], exit: i32, code: &str) -> String {
        let ran = self.cli(arguments).await;
        assert!(!ran.good(), "{arguments:?} is not refused: {}", ran.text);
        ran.refused(exit, code)
    }
}

/// `muster` with its own folder and settings.
pub struct Program {
    /// Lives as long as the program.
    _folder: TempDir,
    variables: Vec<(String, String)>,
}

/// A process that is killed when this is dropped.
pub struct ChildProcess(Child);

impl ChildProcess {
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        command.spawn().map(Self)
    }
}

impl Deref for ChildProcess {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for ChildProcess {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `muster serve`, running.
pub struct Serving {
    pub base: String,
    child: ChildProcess,
}

/// An organization to work in, created on the command line.
pub struct Tenant {
    pub org: i64,
    /// A service token with every permission a token can have.
    pub token: String,
}

impl Program {
    pub fn new(variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut all = vec![
            ("MUSTER_DATA_DIR".to_owned(), folder.path().display().to_string()),
            ("MUSTER_LISTEN".to_owned(), "127.0.0.1:0".to_owned()),
            ("MUSTER_RATE_LIMITS_ENABLED".to_owned(), "false".to_owned()),
        ];
        // More than any test creates.
        let plans = folder.path().join("plans.toml");
        fs::write(&plans, "[ENTERPRISE]\nmax_servers = 1000000\n").unwrap();
        all.push(("MUSTER_PLANS_FILE".to_owned(), plans.display().to_string()));
        // A panel that was built after the program.
        if let Some(panel) = std::env::var_os("MUSTER_PANEL_DIR") {
            all.push(("MUSTER_PANEL_DIR".to_owned(), panel.into_string().expect("valid UTF-8")));
        }
        all.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Self { _folder: folder, variables: all }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
        command.args(arguments).env_clear().envs(self.variables.clone());
        // Anyone who works on the panel tests a build of it without building the service again.
        command.envs(std::env::vars_os().filter(|(name, _)| name == "MUSTER_PANEL_DIR"));
        command
    }

    /// The value of one of its environment variables.
    pub fn variable(&self, name: &str) -> &str {
        self.variables.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// The result of a command.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(&self.command(arguments).output().unwrap())
    }

    /// The answer of a command with `--json`, which must succeed.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        self.run(&[arguments, &["--json"]].concat()).expect()
    }

    /// [`Self::json`] with standard input, for a password.
    #[track_caller]
    pub fn json_told(&self, arguments: &[&str], input: &str) -> Value {
        let mut command = self.command(&[arguments, &["--json"]].concat());
        Ran::of(&command.stdin(on_input(input.as_bytes())).output().unwrap()).expect()
    }

    pub fn tenant(&self) -> Tenant {
        let made =
            ["org", "create", "--name", "House", "--owner-email", "a@example.org", "--plan", "ENTERPRISE"];
        let org = self.json(&made)["id"].as_i64().unwrap();
        let id = org.to_string();
        let token = self.json(&["token", "create", "--org", &id, "--name", "t", "--all"]);
        Tenant { org, token: token["token"].as_str().unwrap().to_owned() }
    }

    /// Starts the service and waits until it is ready.
    pub fn serve(&self) -> Serving {
        Self::ready(self.command(&["serve", "--json"]))
    }

    /// [`Self::serve`], with the log going there.
    pub fn serve_logging_to(&self, log: impl Into<Stdio>) -> Serving {
        let mut command = self.command(&["serve", "--json"]);
        command.stderr(log);
        Self::ready(command)
    }

    /// [`Self::serve`], without changing the database's tables.
    pub fn serve_as_is(&self) -> Serving {
        Self::ready(self.command(&["serve", "--no-migrate", "--json"]))
    }

    /// [`Self::serve`] with these arguments.
    pub fn serve_with(&self, arguments: &[&str]) -> Serving {
        Self::ready(self.command(&[&["serve", "--json"][..], arguments].concat()))
    }

    /// [`Self::serve`], beside another one, at this address.
    pub fn serve_at(&self, listen: &str) -> Serving {
        let mut command = self.command(&["serve", "--json"]);
        command.env("MUSTER_LISTEN", listen);
        Self::ready(command)
    }

    /// [`Self::serve`], with a limit on the size of files until [`Serving::lift`]: what a full disk looks like
    /// to a program, without a separate disk. Writes beyond it fail with an error, because the signal is
    /// ignored.
    pub fn serve_with_files_of(&self, bytes: u64) -> Serving {
        self.serve_within(&format!("--fsize={bytes}:"))
    }

    /// [`Self::serve`] with a system limit, as `prlimit` takes it.
    pub fn serve_within(&self, limit: &str) -> Serving {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh", "prlimit", limit, "--"]);
        self.serve_by(command)
    }

    /// [`Self::serve`], within what this systemd unit leaves the service.
    pub fn serve_confined(&self, unit: &Path) -> Serving {
        let mut command = Command::new("python3");
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/systemd/confine")).arg(unit);
        self.serve_by(command)
    }

    /// [`Self::serve`], by a program that runs the command in its last arguments.
    fn serve_by(&self, mut command: Command) -> Serving {
        command.args([env!("CARGO_BIN_EXE_muster"), "serve", "--json"]);
        command
            .env_clear()
            .envs(self.variables.clone())
            .envs(std::env::vars_os().filter(|(name, _)| name == "PATH"));
        Self::ready(command)
    }

    fn ready(mut command: Command) -> Serving {
        let mut child = ChildProcess::spawn(command.stdout(Stdio::piped())).unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
        let ready: Value = serde_json::from_str(&ready).expect("the service becomes ready");
        Serving { base: format!("http://{}", ready["address"].as_str().unwrap()), child }
    }
}

impl Serving {
    pub fn actor(&self, tenant: &Tenant) -> Actor {
        muster::core::outbound::install_tls_provider();
        let client = Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        Actor::anonymous(&client, &self.base).with_bearer(tenant.token.as_str())
    }

    /// Host and port.
    pub fn address(&self) -> &str {
        self.base.trim_start_matches("http://")
    }

    /// Lifts the limit on the size of files.
    pub fn lift(&self) {
        let mut command = Command::new("prlimit");
        let lifted = command.args(["--pid", &self.child.id().to_string(), "--fsize=unlimited:"]).status();
        assert!(lifted.expect("prlimit is installed (util-linux)").success());
    }

    pub fn terminate(&self) {
        signal("TERM", self.child.id());
    }

    /// Suspends or resumes it. Meanwhile the kernel accepts connections for it.
    pub fn pause(&self, paused: bool) {
        signal(if paused { "STOP" } else { "CONT" }, self.child.id());
    }

    /// Waits for the process to end and returns the exit code.
    pub async fn ended(&mut self) -> Option<i32> {
        found(async || self.child.try_wait().unwrap()).await.expect("the service stops").code()
    }
}

fn signal(name: &str, process: u32) {
    let sent = Command::new("kill").args([format!("-{name}"), process.to_string()]).status().unwrap();
    assert!(sent.success(), "kill -{name} {process}");
}

/// The test's own PostgreSQL, which keeps what it has acknowledged.
pub struct Postgres {
    folder: TempDir,
    programs: PathBuf,
    /// Where it listens with TLS, in addition to its socket.
    tls: Option<Address>,
}

impl Postgres {
    pub fn start() -> Self {
        let this = Self::new(None);
        this.bring_up();
        this
    }

    /// One that also listens on 127.0.0.1, with TLS. The certificate, in `cert.pem`, is self-signed for
    /// `localhost`.
    pub fn start_with_tls() -> Self {
        let this = Self::new(Some(Address::free()));
        let (key, certificate) = (this.path("key.pem"), this.certificate());
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
            .args(["-nodes", "-days", "2", "-subj", "/CN=localhost"])
            .args([
                "-addext",
                "subjectAltName=DNS:localhost",
                "-addext",
                "basicConstraints=critical,CA:FALSE",
            ])
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output()
            .expect("openssl is installed");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let owned = Command::new("chown").arg("postgres").args([&key, &certificate]).status().unwrap();
        assert!(owned.success());
        this.bring_up();
        this
    }

    /// A standby of this one, which acknowledges a change from now on only when both have it.
    pub async fn standby(&self) -> Self {
        let this = Self::without_data(None);
        let from = self.folder.path().to_str().unwrap();
        this.run("pg_basebackup", &["-h", from, "-U", "postgres", "-R", "-c", "fast"]);
        this.bring_up();
        let admin = connect(&self.url()).await;
        for sql in ["ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"] {
            admin.execute_unprepared(sql).await.unwrap();
        }
        let synced = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'";
        let synced = || Statement::from_string(DbBackend::Postgres, synced);
        let has_all = async || admin.query_one_raw(synced()).await.unwrap().is_some();
        until("the standby has every change", has_all).await;
        admin.close().await.unwrap();
        this
    }

    /// Makes a standby the primary.
    pub fn promote(&self) {
        self.run("pg_ctl", &["-w", "-s", "promote"]);
    }

    fn new(tls: Option<Address>) -> Self {
        let this = Self::without_data(tls);
        this.run("initdb", &["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C"]);
        this
    }

    fn without_data(tls: Option<Address>) -> Self {
        let found = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
        let programs =
            found.map(|version| version.path().join("bin")).find(|bin| bin.join("pg_ctl").exists());
        let programs = programs.expect("PostgreSQL's programs (apt-get install postgresql)");
        // A short path: a socket's must fit in 107 bytes.
        let folder = tempfile::Builder::new().prefix("muster-pg").tempdir_in("/tmp").unwrap();
        let this = Self { folder, programs, tls };
        this.run_in_folder("chown", &["postgres"]);
        this
    }

    /// The certificate.
    pub fn certificate(&self) -> PathBuf {
        self.path("cert.pem")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The URL over the network, with the server named `host`.
    pub fn url_of(&self, host: &str, parameters: &str) -> String {
        format!("postgres://postgres@{host}:{}/postgres?{parameters}", self.tls.as_ref().unwrap().port())
    }

    pub fn url(&self) -> String {
        format!("postgres://postgres@localhost/postgres?host={}", self.folder.path().display())
    }

    /// The socket on which it listens.
    pub fn socket(&self) -> PathBuf {
        self.path(".s.PGSQL.5432")
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn run_in_folder(&self, program: &str, arguments: &[&str]) {
        let ran = Command::new(program).args(arguments).arg(self.folder.path()).status().unwrap();
        assert!(ran.success(), "{program}");
    }

    fn try_run(&self, program: &str, arguments: &[&str]) -> bool {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(self.programs.join(program)).arg("-D").arg(self.data());
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().unwrap().success()
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        assert!(self.try_run(program, arguments), "{program} {arguments:?}");
    }

    /// Starts it. After a crash, waits until the old processes are gone.
    pub fn bring_up(&self) {
        let mut options = format!("-k {} -c fsync=on", self.folder.path().display());
        options += &match &self.tls {
            Some(address) => format!(
                " -c listen_addresses=127.0.0.1 -p {} -c ssl=on -c ssl_cert_file={} -c ssl_key_file={}",
                address.port(),
                self.certificate().display(),
                self.path("key.pem").display()
            ),
            None => " -c listen_addresses=''".to_owned(),
        };
        let log = self.folder.path().join("log").display().to_string();
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if self.try_run("pg_ctl", &["-w", "-s", "-l", &log, "-o", &options, "start"]) {
                return;
            }
            std::thread::sleep(Duration::from_millis(250));
        }
        panic!("PostgreSQL does not start: {}", fs::read_to_string(log).unwrap_or_default());
    }

    /// Stops it without waiting for clients.
    pub fn stop(&self) {
        self.run("pg_ctl", &["-w", "-s", "-m", "fast", "stop"]);
    }

    /// Kills all its processes at once.
    pub fn kill(&self) {
        for process in self.processes() {
            let _ = Command::new("kill").args(["-KILL", &process.to_string()]).status();
        }
    }

    /// Suspends or resumes all its processes.
    pub fn pause(&self, paused: bool) {
        let name = if paused { "-STOP" } else { "-CONT" };
        for process in self.processes() {
            let _ = Command::new("kill").args([name, &process.to_string()]).status();
        }
    }

    /// The postmaster first, then its children.
    fn processes(&self) -> Vec<u32> {
        let Ok(text) = fs::read_to_string(self.data().join("postmaster.pid")) else { return Vec::new() };
        let Some(postmaster) = text.lines().next().and_then(|line| line.parse::<u32>().ok()) else {
            return Vec::new();
        };
        let is_child = |process: &u32| {
            let status = fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat"));
            let status = status.unwrap_or_default();
            let after_name = status.rsplit(')').next().unwrap_or_default();
            after_name.split_whitespace().nth(1) == Some(postmaster.to_string().as_str())
        };
        let all =
            fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        std::iter::once(postmaster).chain(all.filter(is_child)).collect()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.pause(false);
        let _ = self.try_run("pg_ctl", &["-w", "-s", "-m", "immediate", "stop"]);
    }
}
