//! Opens the service for commands. Some create an installation; the others fail without one.
//!
//! An installation is a database with tables, and a key file. `serve`, `migrate`, `demo`, `user create` and `org
//! create` create one; every other command requires one, and reports where it looked. On SQLite the first three own the
//! database while they run ([`Owner`]).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Failure, doctor};
use crate::{
    base::{bounds, files},
    core::{
        Core, Options,
        config::{Config, Database},
        keys,
        store::{Db, MigrationStep, Owner, Unusable, backup::database_file},
        telemetry,
    },
    domain::{approvals, orgs},
    service,
};

/// How long a starting service waits for a database server that is starting as well, as after an outage of the whole
/// machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Opens an existing installation.
pub(super) async fn found(config: Config) -> Result<Arc<Core>, Failure> {
    Ok(update_tables(start_found(config, false).await?, None).await?.0)
}

/// The same, without changing its tables. `has_read_timeout`: see [`Options::has_read_timeout`].
pub(super) async fn as_is(config: Config, has_read_timeout: bool) -> Result<Arc<Core>, Failure> {
    let core = start_found(config, has_read_timeout).await?;
    match core.db.mismatch().await? {
        Some(mismatch) => Err(mismatch.into()),
        None => Ok(core),
    }
}

/// Opens an installation, and creates it if it does not exist.
pub(super) async fn made(config: Config) -> Result<Arc<Core>, Failure> {
    Ok(update_tables(start_made(config).await?, None).await?.0)
}

/// The same for the database's owner. Also returns the applied steps, and waits a while for a database server that is
/// not up yet. `has_read_timeout`: see [`Options::has_read_timeout`].
pub(super) async fn owned(
    config: Config,
    owner: &Owner,
    has_read_timeout: bool,
) -> Result<(Arc<Core>, Vec<MigrationStep>), Failure> {
    telemetry::init(&config)?;
    if !config.database.is_sqlite() {
        wait_for_database(&config.database).await?;
    }
    update_tables(open_or_create(config, has_read_timeout).await?, Some(owner)).await
}

/// Fails if the SQLite database does not exist.
pub(super) fn require_file(config: &Config) -> Result<(), Failure> {
    match database_file(config) {
        Ok(file) if !file.exists() => Err(Failure::not_found(format!(
            "There is no database at {} (data_dir). Set MUSTER_DATA_DIR or data_dir to the installation's folder, or create a \
             new installation with `muster migrate`.",
            file.display()
        ))),
        _ => Ok(()),
    }
}

/// Creates the folder for everything that the process stores.
pub(super) fn make_folder(config: &Config) -> Result<(), Failure> {
    let folder = config.data_dir.display();
    std::fs::create_dir_all(&config.data_dir).map_err(|error| {
        Failure::new(format!(
            "The data folder {folder} can't be created: {error}. Choose one that this user can write to, with MUSTER_DATA_DIR or data_dir."
        ))
    })
}

async fn start_found(config: Config, has_read_timeout: bool) -> Result<Arc<Core>, Failure> {
    doctor::require_good_files(&config)?;
    require_file(&config)?;
    require_keys(&config).await?;
    telemetry::init(&config)?;
    let core = Box::pin(service::open(config, Options { has_read_timeout, ..Options::default() })).await?;
    if core.db.is_blank().await? {
        return Err(blank());
    }
    Ok(core)
}

async fn start_made(config: Config) -> Result<Arc<Core>, Failure> {
    doctor::require_good_files(&config)?;
    make_folder(&config)?;
    telemetry::init(&config)?;
    open_or_create(config, false).await
}

async fn open_or_create(config: Config, has_read_timeout: bool) -> Result<Arc<Core>, Failure> {
    if let Ok(file) = database_file(&config) {
        // Readable by its owner only, like the keys and the backups; SQLite gives the files beside it the same mode. If
        // this fails, opening the database reports why.
        let _ = files::create_private(&file);
    }
    Ok(Box::pin(service::open(config, Options { has_read_timeout, ..Options::default() })).await?)
}

/// Fails without a key file: a command that expects an installation does not create one.
async fn require_keys(config: &Config) -> Result<(), Failure> {
    if !config.lacks_keys() {
        return Ok(());
    }
    let db = Db::open(&config.database).await?;
    let (is_blank, present) = (db.is_blank().await?, keys::require_presence(config, &db).await);
    db.close().await;
    present?;
    if is_blank {
        return Err(blank());
    }
    let file = config.keys_file.display();
    Err(Failure::not_found(format!(
        "There is no key file at {file} (keys_file). Copy the installation's key file there; `muster migrate` creates a new one."
    )))
}

fn blank() -> Failure {
    Failure::not_found(
        "The database has no Muster tables, or the role is not allowed to see them (database.url). Use the installation's \
         database and the role that owns it, or create a new installation with `muster migrate`.",
    )
}

/// Brings the tables up to date, and returns the steps applied. Plans and categories come from the service's settings,
/// which the environment of another command may lack: only the owner stores them, or a command that has applied steps.
async fn update_tables(
    core: Arc<Core>,
    owner: Option<&Owner>,
) -> Result<(Arc<Core>, Vec<MigrationStep>), Failure> {
    let plans = core.config.plans()?;
    let steps = migrate(&core.config, &core.db, owner).await?;
    if owner.is_some() || !steps.is_empty() {
        orgs::store_plans(&core, &plans).await?;
        approvals::store_categories(&core).await?;
    }
    Ok((core, steps))
}

/// Applies the steps that the database lacks: as its owner, or as a temporary owner if it has none.
pub(super) async fn migrate(
    config: &Config,
    db: &Db,
    owner: Option<&Owner>,
) -> Result<Vec<MigrationStep>, Failure> {
    let steps = db.pending().await?;
    let _owner = match owner {
        None if !steps.is_empty() => Some(Owner::acquire(config, "muster migrate")?),
        _ => None,
    };
    db.migrate().await?;
    Ok(steps)
}

/// Waits for the database server, which may be starting as well.
async fn wait_for_database(database: &Database) -> Result<(), Failure> {
    let began = Instant::now();
    let mut is_logged = false;
    loop {
        let error = match Db::open(database).await {
            Ok(db) => {
                db.close().await;
                return Ok(());
            }
            Err(error) => error,
        };
        let may_come = error.downcast_ref::<Unusable>().is_some_and(|unusable| unusable.may_come);
        if !may_come || began.elapsed() > PATIENCE {
            return Err(error.into());
        }
        if !is_logged {
            tracing::warn!(seconds = PATIENCE.as_secs(), why = %error, "serve.waits_for_database");
            is_logged = true;
        }
        tokio::time::sleep(bounds::RETRY).await;
    }
}
