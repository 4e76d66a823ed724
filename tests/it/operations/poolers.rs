//! A pooler between the service and PostgreSQL: it works as long as it keeps sessions, and is refused otherwise.

use std::{
    fs,
    process::{Command, Stdio},
};

use tokio::net::TcpStream;

use crate::harness::{Address, ChildProcess, Postgres, Program, Socket, reaches, until};

/// pgbouncer.
struct Pooler {
    _process: ChildProcess,
    address: Address,
}

impl Pooler {
    async fn start(postgres: &Postgres, mode: &str) -> Self {
        let (address, socket) = (Address::free(), postgres.socket());
        let folder = socket.parent().unwrap();
        let settings = format!(
            "[databases]\npostgres = host={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\ndefault_pool_size = 50\n",
            folder.display(),
            address.port()
        );
        let file = folder.join("pgbouncer.ini");
        fs::write(&file, settings).unwrap();
        // It refuses to be root.
        let mut command = Command::new("pgbouncer");
        command.args(["-u", "postgres"]).arg(file).stdin(Stdio::null()).stderr(Stdio::null());
        let process = ChildProcess::spawn(&mut command).expect("pgbouncer is installed (tests/install)");
        let this = Self { _process: process, address };
        until("it listens", async || TcpStream::connect(this.address.as_str()).await.is_ok()).await;
        this
    }

    fn program(&self) -> Program {
        let url = format!("postgres://postgres@{}/postgres", self.address.as_str());
        let variables = [("MUSTER_DATABASE_MAX_CONNECTIONS", "4"), ("MUSTER_LOG", "off")];
        Program::new(&[&variables[..], &[("MUSTER_DATABASE_URL", url.as_str())]].concat())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn once_a_pooler_of_transactions_is_refused() {
    let postgres = Postgres::start();
    let pooler = Pooler::start(&postgres, "transaction").await;
    let program = pooler.program();
    for command in ["migrate", "serve"] {
        let said = program.run(&[command, "--json"]).refused(1, "FAILED");
        assert!(said.contains("transaction mode") && said.contains("pool_mode = session"), "{said}");
    }
    let doctor = program.run(&["doctor"]);
    assert!(!doctor.good() && doctor.text.contains("pool_mode = session"), "{}", doctor.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn once_a_pooler_of_sessions_works() {
    let postgres = Postgres::start();
    let pooler = Pooler::start(&postgres, "session").await;
    let program = pooler.program();
    let tenant = program.tenant();
    let (first, second) = (program.serve(), program.serve());
    let mut client = Socket::of(&second.actor(&tenant)).await;
    reaches(&mut client, &first.actor(&tenant), tenant.org, "here").await;
}
