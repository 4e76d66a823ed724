//! The command line: one file per command, and one line in [`Command`].
//!
//! A command is a clap type with `async fn run(self, cli: &Cli) -> Result<Output, Failure>`. It opens the core with
//! [`Cli::open`], which never creates an installation, and acts as the installation's operator (`Scope::system`), to
//! whom no policy applies. Output goes to standard output, as text or, with `--json`, as one JSON object. A failure
//! goes to standard error in the same form, with exit code 1 (2 if the command line itself is wrong, 3 for a plan that
//! is not empty).
//!
//! The commands in `remote` and `apply` open nothing: they call a running service, under the permissions of a token.

mod apply;
mod audit;
mod backup;
mod completions;
mod config;
mod demo;
mod doctor;
mod failure;
mod health;
mod key;
mod listen;
mod member;
mod message;
mod migrate;
mod open;
mod org;
mod output;
mod policy;
mod remote;
pub mod schema;
mod secret;
mod seed;
mod serve;
mod session;
mod token;
mod unit;
mod user;
mod vacuum;
mod version;

use std::{ffi::OsString, path::PathBuf, process::ExitCode, sync::Arc};

use clap::{Parser, Subcommand};
use secrecy::{ExposeSecret, SecretString};

pub use self::{failure::Failure, output::Output, policy::write_defaults, serve::serve};
use crate::{
    base::{
        ids::{AN_ID, MAX_ID, OrgId},
        time::Timestamp,
    },
    core::{
        Core,
        access::org_policies,
        config::{Config, ConfigError},
        keys,
        store::Db,
    },
    domain::orgs,
};

/// Arguments of every command.
#[derive(Debug, clap::Args)]
pub struct Cli {
    /// The settings file (or set MUSTER_CONFIG)
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

/// A self-hosted, multi-tenant control plane for the AI agents of organizations.
#[derive(Debug, Parser)]
#[command(name = "muster", version)]
struct Arguments {
    #[command(flatten)]
    cli: Cli,
    #[command(subcommand)]
    choice: Choice,
}

/// The choices for the first word.
#[derive(Debug, Subcommand)]
enum Choice {
    #[command(flatten)]
    Command(Command),
    #[command(flatten)]
    Program(Program),
}

/// The programs that are built in. They open no installation, and have command lines of their own.
#[derive(Debug, Subcommand)]
enum Program {
    /// Run agents on this machine, for a control plane
    #[command(disable_help_flag = true)]
    Host(ProgramArguments),
    /// Own one agent's pipes; the host starts it
    #[command(disable_help_flag = true, hide = true)]
    Shim(ProgramArguments),
    /// The reference agent: speaks the Agent Client Protocol on standard input and output. `muster agent` without a
    /// subcommand is [`Command::Agent`].
    #[command(skip)]
    Agent(ProgramArguments),
}

/// The arguments of a program.
#[derive(Debug, clap::Args)]
struct ProgramArguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    words: Vec<OsString>,
}

impl Program {
    /// The program that the executable's name asks for, if it isn't `muster`. A container has the static `muster` as its
    /// shim, and the reference agent's image as its agent, each under its own name. A link `muster-host` is the host.
    /// A shim restarts its own executable as `muster shim`, under any name.
    fn by_name() -> Option<Self> {
        let mut words = std::env::args_os().peekable();
        let path = PathBuf::from(words.next()?);
        match path.file_name()?.to_str()? {
            "muster-host" => Some(Self::Host(ProgramArguments { words: words.collect() })),
            "muster-shim" | "shim" => {
                words.next_if(|word| word == "shim");
                Some(Self::Shim(ProgramArguments { words: words.collect() }))
            }
            "muster-agent" => Some(Self::Agent(ProgramArguments { words: words.collect() })),
            _ => None,
        }
    }

    fn run(self) -> ExitCode {
        match self {
            Self::Host(given) => muster_host::main(&["host"], given.words),
            Self::Shim(given) => muster_shim::main(&["shim"], given.words),
            Self::Agent(given) => muster_agent::main(given.words),
        }
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
enum Command {
    /// Bring the database up to date for this version
    Migrate(migrate::Migrate),
    /// Save the database (SQLite) and the policies to one file while the service runs
    Backup(backup::Backup),
    /// Restore a backup where no database exists yet
    Restore(backup::Restore),
    /// Rewrite the database file (SQLite) without its free space, which has deleted data
    Vacuum,
    /// Check that everything is in order, and say what to do if it is not
    Doctor(doctor::Doctor),
    /// Show and check the settings
    #[command(subcommand)]
    Config(config::Settings),
    /// Manage organizations
    #[command(subcommand)]
    Org(org::Org),
    /// Manage user accounts
    #[command(subcommand)]
    User(user::User),
    /// Manage the members of an organization
    #[command(subcommand)]
    Member(member::Member),
    /// Parse stored mails again
    #[command(subcommand)]
    Message(message::Message),
    /// Manage sessions
    #[command(subcommand)]
    Session(session::Session),
    /// Manage an organization's service tokens
    #[command(subcommand)]
    Token(token::Token),
    /// Manage the keys that seal secrets and sign access tokens
    #[command(subcommand)]
    Key(key::Key),
    /// Verify and export the audit log
    #[command(subcommand)]
    Audit(audit::Audit),
    /// Work with the permission policies
    #[command(subcommand)]
    Policy(policy::Policy),
    /// Work with the agents of a running service; without a subcommand: run the reference agent, which speaks the
    /// Agent Client Protocol on standard input and output
    Agent(remote::Agent),
    /// Decide the requests of agents, in a running service
    Approval(remote::Approval),
    /// Work with the servers of a running service
    Server(remote::Server),
    /// Change an organization of a running service to what files say, or only show the changes
    Apply(apply::Apply),
    /// Write an organization of a running service as a file for `muster apply`
    Export(apply::Export),
    /// Add plausible test data to an organization; the same options give the same data
    Seed(seed::Seed),
    /// Generate the schema and the OpenAPI document
    #[command(subcommand)]
    Schema(schema::Schema),
    /// Serve a demo organization with its own database
    Demo(demo::Demo),
    /// Run the service
    Serve(serve::Serve),
    /// Print a systemd unit for the service
    Unit(unit::Unit),
    /// Print the version, the newest migration, the protocols and the platform
    Version,
    /// Ask the service whether it is ready
    Health(health::Health),
    /// Print a script with which a shell completes this command line
    Completions(completions::Completions),
}

impl Command {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        match self {
            Self::Migrate(command) => command.run(cli).await,
            Self::Backup(command) => command.run(cli).await,
            Self::Restore(command) => command.run(cli).await,
            Self::Vacuum => vacuum::vacuum(cli).await,
            Self::Doctor(command) => command.run(cli).await,
            Self::Config(command) => command.run(cli),
            Self::Org(command) => command.run(cli).await,
            Self::User(command) => command.run(cli).await,
            Self::Member(command) => command.run(cli).await,
            Self::Message(command) => command.run(cli).await,
            Self::Session(command) => command.run(cli).await,
            Self::Token(command) => command.run(cli).await,
            Self::Key(command) => command.run(cli).await,
            Self::Audit(command) => command.run(cli).await,
            Self::Policy(command) => command.run(cli).await,
            Self::Agent(command) => command.run(cli).await,
            Self::Approval(command) => command.run(cli).await,
            Self::Server(command) => command.run(cli).await,
            Self::Apply(command) => Box::pin(command.run(cli)).await,
            Self::Export(command) => Box::pin(command.run(cli)).await,
            Self::Seed(command) => command.run(cli).await,
            Self::Schema(command) => command.run(),
            Self::Demo(command) => Box::pin(command.run(cli)).await,
            Self::Serve(command) => command.run(cli).await,
            Self::Unit(command) => command.run(cli),
            Self::Version => Ok(version::version()),
            Self::Health(command) => command.run(cli).await,
            Self::Completions(command) => Ok(command.run()),
        }
    }
}

impl Cli {
    /// The settings.
    ///
    /// # Errors
    /// Lists every mistake.
    pub fn settings(&self) -> Result<Config, Failure> {
        Ok(self.read_settings()?)
    }

    fn read_settings(&self) -> Result<Config, ConfigError> {
        Config::load(self.config.as_deref())
    }

    /// Opens the core of an existing installation, with its tables up to date. Listens on nothing.
    ///
    /// # Errors
    /// Invalid settings, keys, policy files or database; a missing installation.
    pub async fn open(&self) -> Result<Arc<Core>, Failure> {
        load(open::found(self.settings()?).await?).await
    }

    /// The same, but creates an installation if there is none.
    ///
    /// # Errors
    /// Invalid settings, keys, policy files or database.
    async fn open_or_make(&self) -> Result<Arc<Core>, Failure> {
        load(open::made(self.settings()?).await?).await
    }

    /// Opens an existing installation even if its signing keys can't be opened, for the commands that repair them.
    ///
    /// # Errors
    /// As [`Self::open`].
    async fn open_for_key_repair(&self) -> Result<Arc<Core>, Failure> {
        load_keys_if_possible(open::found(self.settings()?).await?).await
    }

    /// Opens the core for commands that no policy governs, mainly accounts: with the built-in policy, and in any
    /// state of the signing keys. An operator must be able to lock someone out while a policy file is broken.
    async fn open_unbound(&self) -> Result<Arc<Core>, Failure> {
        load_keys_if_possible(open::found(self.unbound_settings()?).await?).await
    }

    /// The same, but creates an installation if there is none.
    async fn open_or_make_unbound(&self) -> Result<Arc<Core>, Failure> {
        load_keys_if_possible(open::made(self.unbound_settings()?).await?).await
    }

    fn unbound_settings(&self) -> Result<Config, Failure> {
        let mut config = self.settings()?;
        config.policy_dir = None;
        Ok(config)
    }

    /// Opens only the database, unchanged and without logging: for commands that must work regardless of the state of
    /// the policy folder and the keys.
    ///
    /// # Errors
    /// The database is missing or unreachable, or its tables are not this version's.
    async fn database(&self) -> Result<Db, Failure> {
        let db = self.any_database().await?;
        if let Some(mismatch) = db.mismatch().await? {
            return Err(mismatch.into());
        }
        if db.is_migrated().await? {
            return Ok(db);
        }
        Err(Failure::new("the database does not have this version's tables: run `muster migrate`"))
    }

    /// The same, regardless of the database's version.
    async fn any_database(&self) -> Result<Db, Failure> {
        let config = self.settings()?;
        open::require_file(&config)?;
        Ok(Db::open(&config.database).await?)
    }

    /// Resolves an organization argument without opening the core. If no database can be asked, an id is accepted as
    /// it is.
    ///
    /// # Errors
    /// No organization has that name or id, or several have the name; for a name also those of [`Self::database`].
    async fn organization(&self, reference: &str) -> Result<OrgId, Failure> {
        let db = match (self.database().await, reference.trim().parse()) {
            (Err(_), Ok(id)) => return Ok(OrgId(id)),
            (db, _) => db?,
        };
        let found = orgs::find_in(&db, reference).await;
        db.close().await;
        Ok(found?)
    }

    /// Opens the core without changing the database.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_as_is(&self) -> Result<Arc<Core>, Failure> {
        load(open::as_is(self.settings()?, false).await?).await
    }
}

/// Loads the keys, and the organizations' rules from the database.
async fn load(core: Arc<Core>) -> Result<Arc<Core>, Failure> {
    keys::load(&core).await?;
    org_policies::follow(&core).await?;
    Ok(core)
}

/// Loads the keys. A failure is only logged.
async fn load_keys_if_possible(core: Arc<Core>) -> Result<Arc<Core>, Failure> {
    if let Err(problem) = keys::load(&core).await {
        let why = problem.cause().map(|cause| format!("{cause:#}"));
        tracing::error!(%problem, why, "keys.signing_keys_not_read");
    }
    Ok(core)
}

/// Parses an instant from the command line.
fn instant(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "give a time such as 2027-01-31T08:00:00Z".to_owned())
}

/// Parses a record's id from the command line.
fn read_id(text: &str) -> Result<i64, String> {
    let id = text.parse().ok().filter(|id: &i64| (1..=MAX_ID).contains(id));
    id.ok_or_else(|| format!("an id is {AN_ID}, such as 7"))
}

/// The URL of a page with a link's token, for the operator to hand over.
fn link(core: &Core, page: &str, token: &SecretString) -> String {
    core.mailer.link(page, token.expose_secret())
}

/// Runs the command given on the command line.
#[must_use]
pub fn run() -> ExitCode {
    if let Some(program) = Program::by_name() {
        return program.run();
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return failure::usage(&error),
    };
    let json = arguments.cli.json;
    let command = match arguments.choice {
        Choice::Program(program) => return program.run(),
        Choice::Command(Command::Agent(agent)) if agent.is_program() => {
            return Program::Agent(ProgramArguments { words: Vec::new() }).run();
        }
        Choice::Command(command) => command,
    };
    let finished = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failure::from)
        .and_then(|runtime| runtime.block_on(command.run(&arguments.cli)));
    let printed = match finished {
        Ok(output) => output.print(json),
        Err(failure) => Err(failure),
    };
    let code = printed.unwrap_or_else(|failure| failure.print(json));
    muster_printing::finish();
    code
}
