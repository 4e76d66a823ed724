//! The command line: `join`, `rejoin`, `run`, `stop`, `doctor`, `unit`.

use std::{
    ffi::OsString,
    io::{self, IsTerminal, Read, Write},
    net::SocketAddr,
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use ipnet::IpNet;
use muster_protocol::Secret;
use rustix::fs::Mode;
use tracing_subscriber::EnvFilter;

use crate::{
    config,
    doctor::{self, Level},
    folder::Folder,
    join::{self, Outcome},
    programs::{self, ProgramArgs},
    rejoin,
    run::{self, AddressArgs},
    runtime::{BoundArgs, Bounds, EngineArgs, Runtime, RuntimeArgs},
    shared::Options,
    stop, unit,
};

/// Runs agents on this machine for a Muster control plane.
#[derive(Debug, Parser)]
#[command(name = "host", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Join a control plane, once.
    Join(JoinArgs),
    /// Rejoin from a folder that has joined, after a restore of the control plane or the folder from a backup.
    Rejoin(Box<RejoinArgs>),
    /// Run agents for the control plane.
    Run(Box<RunArgs>),
    /// End every agent of a folder without a running host and without the control plane.
    Stop(Box<StopArgs>),
    /// Show how this machine isolates agents, and any problems.
    Doctor(DoctorArgs),
    /// Build the reference agent's image, `muster/agent`, in the engine.
    BuildImage(EngineArgs),
    /// Print a systemd unit for this host.
    Unit(UnitArgs),
}

#[derive(Debug, Args)]
struct Dir {
    /// The host's folder.
    #[arg(long, env = "MUSTER_HOST_DIR")]
    dir: PathBuf,
}

#[derive(Debug, Args)]
struct MetricsArgs {
    /// Show metrics for Prometheus at this address, at /metrics; without an address at 127.0.0.1:9465. The page needs
    /// no credential.
    #[arg(
        long,
        env = "MUSTER_HOST_METRICS",
        value_name = "ADDRESS",
        num_args = 0..=1,
        default_missing_value = "127.0.0.1:9465"
    )]
    metrics: Option<SocketAddr>,
}

#[derive(Debug, Args)]
struct DoctorArgs {
    #[command(flatten)]
    dir: Dir,
    #[command(flatten)]
    runtime: RuntimeArgs,
}

#[derive(Debug, Args)]
struct JoinArgs {
    #[command(flatten)]
    dir: Dir,
    /// The control plane's address, such as https://muster.example.org.
    #[arg(long)]
    url: String,
    /// Read the provisioning token from standard input instead of MUSTER_HOST_TOKEN. A terminal asks for it.
    #[arg(long)]
    token_stdin: bool,
    /// Allow plain HTTP to another machine over a private network.
    #[arg(long)]
    insecure_http: bool,
    /// Certificates (PEM) of authorities that vouch for the control plane, beside the system's. The folder keeps them.
    #[arg(long, value_name = "FILE", env = "MUSTER_HOST_CA_FILE")]
    ca_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct RejoinArgs {
    #[command(flatten)]
    dir: Dir,
    #[command(flatten)]
    place: AddressArgs,
    /// Read a new provisioning token of the server from standard input. Without it the host shows its own token, which
    /// the control plane may not know.
    #[arg(long)]
    token_stdin: bool,
    #[command(flatten)]
    runtime: RuntimeArgs,
    /// Time limit for each step of stopping an agent, in milliseconds.
    #[arg(long, default_value_t = 3000)]
    grace_ms: u64,
}

#[derive(Debug, Args)]
struct RunArgs {
    #[command(flatten)]
    dir: Dir,
    #[command(flatten)]
    place: AddressArgs,
    #[command(flatten)]
    runtime: RuntimeArgs,
    #[command(flatten)]
    bounds: BoundArgs,
    #[command(flatten)]
    programs: ProgramArgs,
    /// Whether agents run in a sandbox: if possible, always, or never.
    #[arg(long, value_enum, default_value_t = Isolation::Auto)]
    isolation: Isolation,
    /// Bytes of an agent's output to keep on the disk while the control plane is unreachable. Beyond that the agent
    /// waits.
    #[arg(long, default_value_t = muster_shim::args::SPOOL_BYTES)]
    spool_bytes: u64,
    /// The longest line of an agent, in bytes. A longer one ends the agent.
    #[arg(long, default_value_t = muster_shim::args::LINE_BYTES)]
    line_bytes: usize,
    /// Limit of processes and threads of this user, agents included.
    #[arg(long)]
    nproc: Option<u64>,
    /// A network that agents may reach in addition to the public internet, such as 10.20.0.0/16, if the organization
    /// lists a host in it. May be repeated; same as `allow_net` in host.toml of the host's folder.
    #[arg(long, value_name = "CIDR", value_parser = config::network)]
    allow_net: Vec<IpNet>,
    /// Time that `ask_person` waits for a person before the agent should end its turn, in seconds.
    #[arg(long, default_value_t = 45)]
    ask_seconds: u64,
    /// Time limit for an agent's start in seconds, unless the control plane sets one.
    #[arg(long, default_value_t = 60)]
    start_seconds: u64,
    /// Idle time in seconds after which a session is closed. The next message opens it again.
    #[arg(long, default_value_t = 900)]
    idle_seconds: u64,
    /// Disk space that backups of agents' homes leave free, in MiB.
    #[arg(long, default_value_t = 512)]
    reserve_mb: u64,
    /// Time limit for each step of stopping an agent, in milliseconds.
    #[arg(long, default_value_t = 3000)]
    grace_ms: u64,
    #[command(flatten)]
    metrics: MetricsArgs,
    /// Run until standard input ends, for a program that starts its own host. Agents stay up.
    #[arg(long)]
    while_stdin: bool,
}

#[derive(Debug, Args)]
struct StopArgs {
    #[command(flatten)]
    dir: Dir,
    #[command(flatten)]
    runtime: RuntimeArgs,
    /// Time limit for each step of stopping an agent, in milliseconds.
    #[arg(long, default_value_t = 3000)]
    grace_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Isolation {
    /// bubblewrap if it works, otherwise none.
    Auto,
    /// bubblewrap, or the host doesn't start.
    Bubblewrap,
    /// None.
    None,
}

#[derive(Debug, Args)]
struct UnitArgs {
    #[command(flatten)]
    dir: Dir,
    #[command(flatten)]
    runtime: RuntimeArgs,
    /// The user for the host. By default the folder's owner, or `muster-host` if that is root.
    #[arg(long)]
    user: Option<String>,
    #[command(flatten)]
    programs: ProgramArgs,
    #[command(flatten)]
    metrics: MetricsArgs,
}

/// The command line, for completions.
pub fn command_line() -> clap::Command {
    Cli::command()
}

/// Runs the program. `prefix` are the words between the executable and `args`: none for `muster-host`, `["host"]` for
/// `muster host`.
pub fn main(prefix: &[&str], args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let name = ["muster-host".to_owned(), format!("muster {}", prefix.join(" "))];
    let name = name[usize::from(!prefix.is_empty())].clone();
    let args = [OsString::from(name)].into_iter().chain(args);
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            return usage(&error);
        }
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info,rmcp=off"));
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(muster_printing::to_stderr())
        .with_ansi(muster_printing::is_terminal())
        .log_internal_errors(false)
        .try_init();
    muster_printing::log_panics();
    // An earlier call has installed the same provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // The host's files are private, however open the folder was before.
    rustix::process::umask(Mode::from_raw_mode(0o077));
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return print_failure(&error.to_string()),
    };
    let code = runtime.block_on(command(prefix, cli.command));
    // Unfinished work is in the journal.
    runtime.shutdown_timeout(Duration::from_secs(1));
    muster_printing::finish();
    code
}

async fn command(prefix: &[&str], command: Command) -> ExitCode {
    match command {
        Command::Join(args) => join(args).await,
        Command::Rejoin(args) => rejoin(*args).await,
        Command::Run(args) => run(*args).await,
        Command::Stop(args) => end_all(*args).await,
        Command::Doctor(args) => examine(args).await,
        Command::BuildImage(args) => build_image(args).await,
        Command::Unit(args) => print_unit(prefix, args),
    }
}

fn print_failure(text: &str) -> ExitCode {
    muster_printing::print_error(text);
    ExitCode::FAILURE
}

/// Rejects an invalid command line, or shows the requested help.
fn usage(error: &clap::Error) -> ExitCode {
    let shown = error.print().and_then(|()| io::stdout().flush());
    match muster_printing::ignore_broken_pipe(shown) {
        _ if error.use_stderr() => ExitCode::from(2),
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print_failure(&format!("Standard output can't be written: {error}.")),
    }
}

/// Prints a result. If standard output fails, standard error gets it.
fn print_result(text: &str) -> ExitCode {
    match muster_printing::print(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_failure(&format!("Standard output can't be written: {error}. The output was:\n{text}"))
        }
    }
}

async fn join(args: JoinArgs) -> ExitCode {
    let token = match token(args.token_stdin) {
        Ok(token) => token,
        Err(text) => return print_failure(&text),
    };
    let folder = match Folder::open(&args.dir.dir) {
        Ok(folder) => folder,
        Err(error) => return print_failure(&error.to_string()),
    };
    let dir = folder.root().display().to_string();
    match join::join(&folder, &args.url, &token, args.insecure_http, args.ca_file.as_deref()).await {
        Ok(Outcome::Now(joined)) => print_result(&format!(
            "This machine is now {:?} of {}. Run it with `muster host run --dir {dir}`.\n",
            joined.server_name, joined.url
        )),
        Ok(Outcome::Before(joined)) => print_result(&format!(
            "{dir} has joined {} before, as {:?}. Nothing was changed; to join as another server, choose another folder.\n",
            joined.url, joined.server_name
        )),
        Err(error) => print_failure(&error.to_string()),
    }
}

async fn rejoin(args: RejoinArgs) -> ExitCode {
    let token = match args.token_stdin.then(|| token(true)).transpose() {
        Ok(token) => token,
        Err(text) => return print_failure(&text),
    };
    let folder = match Folder::open(&args.dir.dir) {
        Ok(folder) => folder,
        Err(error) => return print_failure(&error.to_string()),
    };
    let grace = Duration::from_millis(args.grace_ms);
    match rejoin::rejoin(&folder, token.as_ref(), &args.place, args.runtime.choice(), grace).await {
        Ok(rejoin::Rejoined { joined, stopped, lost }) => {
            let dir = folder.root().display();
            let ended = stopped
                .iter()
                .map(|agent| format!("Agent {} (launch {}) has ended.\n", agent.agent_id, agent.generation));
            print_result(&format!(
                "{}{lost}\nThis machine is {:?} of {} again. Start the host, such as with `muster host run --dir {dir}`.\n",
                ended.collect::<String>(),
                joined.server_name,
                joined.url
            ))
        }
        Err(error) => print_failure(&error.to_string()),
    }
}

fn token(from_stdin: bool) -> Result<Secret, String> {
    let mut text = String::new();
    if from_stdin {
        let read = if io::stdin().is_terminal() {
            // It is not shown: a terminal keeps what it has shown.
            let prompt = "Paste the server's provisioning token (it is not shown), and press Enter: ";
            rpassword::prompt_password(prompt).map(|typed| text = typed)
        } else {
            io::stdin().take(1024).read_to_string(&mut text).map(drop)
        };
        read.map_err(|error| format!("The token can't be read from standard input: {error}."))?;
    } else {
        text = token_of_environment()?;
    }
    Ok(text.trim().to_owned().into())
}

/// The text in `MUSTER_HOST_TOKEN`, or in the file that `MUSTER_HOST_TOKEN_FILE` names.
fn token_of_environment() -> Result<String, String> {
    let file = std::env::var_os("MUSTER_HOST_TOKEN_FILE").map(PathBuf::from);
    match (std::env::var_os("MUSTER_HOST_TOKEN"), file) {
        (Some(_), Some(_)) => {
            Err("MUSTER_HOST_TOKEN and MUSTER_HOST_TOKEN_FILE are both set: remove one.".to_owned())
        }
        (Some(value), None) => Ok(value.to_string_lossy().into_owned()),
        // The path is not shown: it may be the token itself, given by mistake.
        (None, Some(path)) => std::fs::read_to_string(&path)
            .map_err(|error| format!("The file that MUSTER_HOST_TOKEN_FILE names can't be read: {error}.")),
        (None, None) => Err("Give the server's provisioning token on standard input with --token-stdin, in \
                             MUSTER_HOST_TOKEN, or in a file named by MUSTER_HOST_TOKEN_FILE."
            .to_owned()),
    }
}

async fn run(args: RunArgs) -> ExitCode {
    let sandbox = match sandbox(args.isolation) {
        Ok(sandbox) => sandbox,
        Err(text) => return print_failure(&text),
    };
    let options = Options {
        spool_bytes: args.spool_bytes,
        line_bytes: args.line_bytes,
        nproc: args.nproc,
        sandbox,
        ask_wait: Duration::from_secs(args.ask_seconds),
        start: Duration::from_secs(args.start_seconds),
        idle: Duration::from_secs(args.idle_seconds),
        reserve: args.reserve_mb.saturating_mul(1024 * 1024),
        grace: Duration::from_millis(args.grace_ms),
        allow_net: args.allow_net,
        metrics: args.metrics.metrics,
    };
    let running = match Folder::open(&args.dir.dir) {
        Ok(folder) => {
            let (choice, bounds) = (args.runtime.choice(), args.bounds.bounds());
            run::run(folder, args.place, args.programs, choice, bounds, options, args.while_stdin).await
        }
        Err(error) => Err(error.into()),
    };
    match running {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print_failure(&error.to_string()),
    }
}

fn sandbox(wanted: Isolation) -> Result<bool, String> {
    use muster_shim::isolate::{Bubblewrap, isolation};
    if wanted == Isolation::None {
        return Ok(false);
    }
    match (isolation().bubblewrap, wanted) {
        (Bubblewrap::Works(_), _) => Ok(true),
        (_, Isolation::Auto) => Ok(false),
        (Bubblewrap::Fails { reason, .. }, _) => {
            Err(format!("bubblewrap can't make a sandbox here: {reason}."))
        }
        (Bubblewrap::Absent, _) => {
            Err("bubblewrap is not installed. Install it, or choose another --isolation.".to_owned())
        }
    }
}

async fn end_all(args: StopArgs) -> ExitCode {
    let folder = match Folder::open(&args.dir.dir) {
        Ok(folder) => folder,
        Err(error) => return print_failure(&error.to_string()),
    };
    let stopped = match stop::stop(&folder, args.runtime.choice(), Duration::from_millis(args.grace_ms)).await
    {
        Ok(stopped) => stopped,
        Err(error) => return print_failure(&error.to_string()),
    };
    let mut text = String::new();
    for agent in &stopped {
        let how = if agent.is_gone { "has ended" } else { "is still there" };
        text.push_str(&format!("Agent {} (launch {}) {how}.\n", agent.agent_id, agent.generation));
    }
    if stopped.is_empty() {
        text = format!("No agent runs in {}.\n", folder.root().display());
    }
    let code = print_result(&text);
    if stopped.iter().all(|agent| agent.is_gone) { code } else { ExitCode::FAILURE }
}

async fn examine(args: DoctorArgs) -> ExitCode {
    let folder = match Folder::open(&args.dir.dir) {
        Ok(folder) => folder,
        Err(error) => return print_failure(&error.to_string()),
    };
    let found = doctor::examine(&folder, &args.runtime.choice()).await;
    let code = print_result(&found.iter().map(|finding| format!("{finding}\n")).collect::<String>());
    let is_bad = found.iter().any(|finding| finding.level == Level::Bad);
    if is_bad { ExitCode::FAILURE } else { code }
}

async fn build_image(args: EngineArgs) -> ExitCode {
    let made = match args.chosen() {
        Ok(chosen) => chosen.build("", Bounds::default()),
        Err(error) => return print_failure(&error.to_string()),
    };
    let (engine, program) = match made.and_then(|runtime| Ok((runtime, programs::static_agent()?))) {
        Ok((Runtime::Engine(engine), program)) => (engine, program),
        Ok((Runtime::Process, _)) => return print_failure("Plain processes have no images."),
        Err(error) => return print_failure(&error.to_string()),
    };
    match engine.build_reference(&program).await {
        Ok(()) => print_result("The image muster/agent is built.\n"),
        Err(error) => print_failure(&error.to_string()),
    }
}

fn print_unit(prefix: &[&str], args: UnitArgs) -> ExitCode {
    let runtime = match Folder::open(&args.dir.dir).map(|folder| (folder.joined(), folder)) {
        Ok((joined, folder)) => {
            // The printing user may be unable to read the folder.
            let kept = joined.ok().flatten().and_then(|joined| joined.runtime);
            args.runtime.choice().in_folder(&folder, kept.as_ref())
        }
        Err(error) => return print_failure(&error.to_string()),
    };
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return print_failure(&error.to_string()),
    };
    let (own, dir) = match (std::env::current_exe(), std::path::absolute(&args.dir.dir)) {
        (Ok(own), Ok(dir)) => (own, dir),
        (Err(error), _) | (_, Err(error)) => return print_failure(&error.to_string()),
    };
    let list = args.programs.programs.as_ref().and_then(|path| std::path::absolute(path).ok());
    let options = unit::UnitOptions {
        program: &own,
        prefix,
        dir: &dir,
        list: list.as_deref(),
        allowed: &args.programs.allow,
        runtime: &runtime,
        metrics: args.metrics.metrics,
    };
    print_result(&unit::unit(&options, args.user.as_deref()))
}
