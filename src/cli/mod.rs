//! The command line: one file a command, one line in [`Command`].
//!
//! A command is a clap type with `async fn run(self, cli: &Cli) -> Result<Output, Failure>`; it opens the service
//! with [`Cli::open`], which makes no installation where there is none, and works as the installation's operator
//! (`Scope::system`), whom no policy binds. What it answers goes to standard output, as lines or, with `--json`, as one JSON
//! object; a failure goes to standard error, in the same form, with the exit code 1 (2 where the command line itself is
//! wrong).

mod audit;
mod backup;
mod demo;
mod doctor;
mod failure;
mod key;
mod listen;
mod member;
mod migrate;
mod open;
mod org;
mod output;
mod policy;
pub mod schema;
mod secret;
mod seed;
mod serve;
mod session;
mod token;
mod user;

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use clap::{Parser, Subcommand};
use secrecy::{ExposeSecret, SecretString};

pub use self::{failure::Failure, output::Output, policy::write_defaults, serve::serve};
use crate::{
    base::{ids::OrgId, time::Timestamp},
    core::{
        Core,
        access::rules,
        config::{Config, ConfigError},
        keys,
        store::Db,
    },
    slices::orgs,
};

/// What every command takes.
#[derive(Debug, clap::Args)]
pub struct Cli {
    /// The file with the settings (also: the variable MUSTER_CONFIG)
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Answer with JSON
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
    command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
enum Command {
    /// Bring the database to what this version needs
    Migrate(migrate::Migrate),
    /// Save the database (SQLite) and the policies in one file, while the service serves
    Backup(backup::Backup),
    /// Put a backup in place of a database that does not exist
    Restore(backup::Restore),
    /// Say whether everything is as it should be, and what to do where it is not
    Doctor(doctor::Doctor),
    /// The settings
    #[command(subcommand)]
    Config(doctor::Settings),
    /// Organizations
    #[command(subcommand)]
    Org(org::Org),
    /// Persons who can sign in
    #[command(subcommand)]
    User(user::User),
    /// Who belongs to an organization
    #[command(subcommand)]
    Member(member::Member),
    /// Sessions of users
    #[command(subcommand)]
    Session(session::Session),
    /// Service tokens of organizations
    #[command(subcommand)]
    Token(token::Token),
    /// The keys that seal secrets and sign access tokens
    #[command(subcommand)]
    Key(key::Key),
    /// The audit log: check it, take it out
    #[command(subcommand)]
    Audit(audit::Audit),
    /// Work with the permission policies
    #[command(subcommand)]
    Policy(policy::Policy),
    /// Add plenty of plausible data to an organization: the same for the same numbers
    Seed(seed::Seed),
    /// The generated descriptions of both faces
    #[command(subcommand)]
    Schema(schema::Schema),
    /// Serve an organization with some of everything, on a database of its own
    Demo(demo::Demo),
    /// Run the service
    Serve(serve::Serve),
}

impl Command {
    async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        match self {
            Self::Migrate(command) => command.run(cli).await,
            Self::Backup(command) => command.run(cli).await,
            Self::Restore(command) => command.run(cli).await,
            Self::Doctor(command) => command.run(cli).await,
            Self::Config(command) => Ok(command.run(cli)),
            Self::Org(command) => command.run(cli).await,
            Self::User(command) => command.run(cli).await,
            Self::Member(command) => command.run(cli).await,
            Self::Session(command) => command.run(cli).await,
            Self::Token(command) => command.run(cli).await,
            Self::Key(command) => command.run(cli).await,
            Self::Audit(command) => command.run(cli).await,
            Self::Policy(command) => command.run(cli).await,
            Self::Seed(command) => command.run(cli).await,
            Self::Schema(command) => command.run(),
            Self::Demo(command) => command.run(cli).await,
            Self::Serve(command) => command.run(cli).await,
        }
    }
}

impl Cli {
    /// The settings.
    ///
    /// # Errors
    /// Names every mistake.
    pub fn settings(&self) -> Result<Config, Failure> {
        Ok(self.read_settings()?)
    }

    fn read_settings(&self) -> Result<Config, ConfigError> {
        Config::load(self.config.as_deref())
    }

    /// The service of an installation that is there, with its tables and plans up to date. Listens to nothing.
    ///
    /// # Errors
    /// Whatever is wrong with the settings, the keys, the policy files or the database; there is no installation.
    pub async fn open(&self) -> Result<Arc<Core>, Failure> {
        load(open::found(self.settings()?).await?).await
    }

    /// The same, and an installation is made where there is none: for the commands that begin one.
    ///
    /// # Errors
    /// Whatever is wrong with the settings, the keys, the policy files or the database.
    async fn open_or_make(&self) -> Result<Arc<Core>, Failure> {
        load(open::made(self.settings()?).await?).await
    }

    /// The service of an installation that is there, even where the signing keys do not open: the commands that mend that.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    async fn open_to_mend(&self) -> Result<Arc<Core>, Failure> {
        mend_keys(open::found(self.settings()?).await?).await
    }

    /// The service for what no policy decides, accounts above all: with the built-in policy, and whatever the signing keys
    /// are like. Somebody can be locked out while a policy file is wrong.
    async fn open_unbound(&self) -> Result<Arc<Core>, Failure> {
        mend_keys(open::found(self.unbound_settings()?).await?).await
    }

    /// The same, and an installation is made where there is none.
    async fn open_or_make_unbound(&self) -> Result<Arc<Core>, Failure> {
        mend_keys(open::made(self.unbound_settings()?).await?).await
    }

    fn unbound_settings(&self) -> Result<Config, Failure> {
        let mut config = self.settings()?;
        config.policy_dir = None;
        Ok(config)
    }

    /// The database alone, left as it is and without a log: for what has to work whatever the policy folder and the keys
    /// are like.
    ///
    /// # Errors
    /// There is none, it can't be reached, or it lacks this version's tables.
    async fn database(&self) -> Result<Db, Failure> {
        let db = self.any_database().await?;
        if db.is_migrated().await? {
            return Ok(db);
        }
        Err(Failure::new("the database does not have this version's tables: run `muster migrate`"))
    }

    /// The same, of whatever version.
    async fn any_database(&self) -> Result<Db, Failure> {
        let config = self.settings()?;
        open::require_file(&config)?;
        Ok(Db::open(&config.database).await?)
    }

    /// The organization that an argument names where no service is opened. Where no database can be asked, an id is
    /// believed.
    ///
    /// # Errors
    /// Nothing has that name or id, or several have the name; those of [`Self::database`], of a name.
    async fn organization(&self, reference: &str) -> Result<OrgId, Failure> {
        let db = match (self.database().await, reference.trim().parse()) {
            (Err(_), Ok(id)) => return Ok(OrgId(id)),
            (db, _) => db?,
        };
        let found = orgs::find_in(&db, reference).await;
        db.close().await;
        Ok(found?)
    }

    /// The service over a database that is left as it is.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub async fn open_as_is(&self) -> Result<Arc<Core>, Failure> {
        load(open::as_is(self.settings()?).await?).await
    }
}

/// What a service has to know before anybody is served: its keys, and the organizations' rules in the database.
async fn load(core: Arc<Core>) -> Result<Arc<Core>, Failure> {
    keys::load(&core).await?;
    rules::follow(&core).await?;
    Ok(core)
}

async fn mend_keys(core: Arc<Core>) -> Result<Arc<Core>, Failure> {
    if let Err(problem) = keys::load(&core).await {
        let why = problem.cause().map(|cause| format!("{cause:#}"));
        tracing::error!(%problem, why, "keys.signing_keys_not_read");
    }
    Ok(core)
}

/// A moment on a command line.
fn instant(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "give a moment such as 2027-01-31T08:00:00Z".to_owned())
}

/// The address of a page with the token of a link, for the operator to hand over. Without an address of the installation
/// there is at least the one that it listens on.
fn link(core: &Core, page: &str, token: &SecretString) -> String {
    let link = core.mailer.link(page, token.expose_secret());
    if link.starts_with('/') { format!("http://{}{link}", core.config.listen) } else { link }
}

/// Runs the command that the process was started with.
#[must_use]
pub fn run() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return failure::usage(&error),
    };
    let json = arguments.cli.json;
    let finished = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failure::from)
        .and_then(|runtime| runtime.block_on(arguments.command.run(&arguments.cli)));
    match finished {
        Ok(output) => output.print(json),
        Err(failure) => failure.print(json),
    }
}
