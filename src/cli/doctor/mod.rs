//! `muster doctor` and `muster config check`: is everything in order, and if not, what is to be done?
//!
//! A check returns a finding. Checks change nothing, and a failed check does not stop the others.

mod policies;
mod providers;

use std::{net::TcpListener, path::Path, time::Instant};

use rustix::{
    fs::{Access, access},
    io::Errno,
};
use secrecy::ExposeSecret;
use serde_json::json;

use super::{Cli, Failure, Output};
use crate::{
    api::web,
    base::{
        bounds,
        finding::{Finding, Level},
        numerals::with_noun,
        time::Clock,
    },
    core::{
        audit::{self, INSTANCE},
        config::{Config, ConfigError},
        keys::{self, SEALED},
        outbound, policy, resource_limits,
        sealing::{KeyFile, KeyFileError},
        store::{Db, StepMismatch, backup::database_file},
    },
};

/// The minimum free disk space, in bytes: below it the database may soon stop; below ten times as much, doctor warns.
const LEAST_ROOM: u64 = 100 << 20;

/// Check that everything is in order, and say what to do if it is not
#[derive(Debug, clap::Args)]
pub struct Doctor {
    /// Check only the OpenID providers, or the one with this name, as far as possible without a browser
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    oidc: Option<String>,
}

fn report(findings: &[Finding]) -> Output {
    let bad = findings.iter().any(|finding| finding.level == Level::Bad);
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    Output::with_text(json!({ "ok": !bad, "findings": findings }), lines.join("\n")).failed_if(bad)
}

/// Lists every mistake in the settings and in the files that they name.
pub(super) fn check_settings(cli: &Cli) -> Output {
    match cli.read_settings() {
        Ok(config) => report(&good_settings(&config)),
        Err(error) => report(&wrong_settings(error)),
    }
}

/// Checks what settings without mistakes lead to: an unprotected service, and the files that they name.
fn good_settings(config: &Config) -> Vec<Finding> {
    let mut findings = vec![Finding::good("settings", "all known and valid")];
    if config.is_in_clear() {
        findings.push(Finding::warning(
            "TLS",
            format!("{} can be reached from other machines without TLS", config.listen),
            "put a proxy with TLS in front, and set public_url to its https:// URL and trusted_proxies to its address",
        ));
    }
    if config.public_url.is_none() && config.oidc().is_ok_and(|providers| !providers.is_empty()) {
        let advice = "set public_url: the providers in oidc_file send people back to it";
        findings.push(Finding::bad(
            "identity provider",
            "public_url: missing, which oidc_file needs",
            advice,
        ));
    }
    findings.extend(files(config));
    findings
}

/// Reports everything that keeps the service from starting, all at once.
///
/// # Errors
/// Lists every mistake in the files that the settings name.
pub(super) fn require_good_files(config: &Config) -> Result<(), Failure> {
    let mistakes = |findings: Vec<Finding>| -> Vec<String> {
        let bad = findings.into_iter().filter(|finding| finding.level == Level::Bad);
        bad.map(|finding| format!("{}: {}", finding.check, finding.found)).collect()
    };
    // Reading the policy takes longer than everything else, and starting does it anyway.
    if mistakes(quick_files(config)).is_empty() {
        return Ok(());
    }
    Err(ConfigError(mistakes(files(config))).into())
}

fn wrong_settings(error: ConfigError) -> Vec<Finding> {
    let mistakes = error.0.into_iter();
    mistakes
        .map(|mistake| Finding::bad("settings", mistake, "`muster config defaults` describes every setting"))
        .collect()
}

impl Doctor {
    pub(super) async fn run(self, cli: &Cli) -> Result<Output, Failure> {
        let config = match cli.read_settings() {
            Ok(config) => config,
            Err(error) => return Ok(report(&wrong_settings(error))),
        };
        if let Some(name) = self.oidc {
            return Ok(report(
                &providers::tried(&config, Some(&*name).filter(|name| !name.is_empty())).await,
            ));
        }
        let mut findings = good_settings(&config);
        let lost = lost_keys(&config).await;
        if lost.is_some() {
            findings.retain(|finding| finding.check != KEYS);
            findings.splice(0..0, lost);
        }
        findings.extend(database(&config).await);
        findings.push(room(&config.data_dir));
        findings.push(open_files(&config));
        findings.extend(addresses(&config));
        findings.extend(others(&config).await);
        Ok(report(&findings))
    }
}

/// The files that the settings name.
fn files(config: &Config) -> Vec<Finding> {
    let mut findings = quick_files(config);
    findings.push(match config.policy_dir() {
        None => Finding::good("policy", "built in"),
        Some(dir) => {
            let mut checked = policy::check(dir);
            // The expectations may cover organizations whose rules are in the database, not in a file.
            let is_elsewhere = |org| !dir.join(policy::org_file(org)).exists();
            checked.problems.retain(|problem| !problem.org.is_some_and(is_elsewhere));
            if checked.problems.is_empty() && !checked.warnings.is_empty() {
                Finding::warning("policy", policy::listed(&checked.warnings), policies::UNMET)
            } else if checked.problems.is_empty() {
                Finding::good("policy", format!("{}, no problems", with_noun(checked.files, "file")))
            } else {
                Finding::bad(
                    "policy",
                    policy::listed(&checked.problems),
                    "`muster policy check` lists the problems",
                )
            }
        }
    });
    findings
}

fn quick_files(config: &Config) -> Vec<Finding> {
    let plans = match config.plans() {
        Ok(_) => Finding::good("plans", "every plan has its limits"),
        Err(error) => Finding::bad(
            "plans",
            error.0.join("; "),
            "correct plans_file; src/core/config/plans.toml shows the format",
        ),
    };
    let mut findings = vec![data_folder(&config.data_dir), key_file(config), plans];
    if let Err(error) = config.risk() {
        findings.push(Finding::bad(
            "risk rules",
            error.0.join("; "),
            "correct risk_file; policies/risk.toml shows the format",
        ));
    }
    if let Err(error) = config.profiles() {
        findings.push(Finding::bad(
            "profiles",
            error.0.join("; "),
            "correct the files in profiles_dir; crates/profiles/files/README.md describes them",
        ));
    }
    if let Err(error) = config.prices() {
        findings.push(Finding::bad(
            "prices of models",
            error.0.join("; "),
            "correct prices_file; policies/prices.toml shows the format",
        ));
    }
    if let Err(error) = config.oidc() {
        findings.push(Finding::bad("identity provider", error.0.join("; "), "correct oidc_file"));
    }
    if let Err(error) = outbound::own_certificates(config) {
        findings.push(Finding::bad(
            "certificates",
            error.to_string(),
            "correct ca_file: a file of certificates in PEM",
        ));
    }
    if let Some(Err(error)) = config.mail.ca_file.as_deref().map(muster_certificates::read) {
        findings.push(Finding::bad(
            "mail",
            format!("{error:#}"),
            "correct mail.ca_file: a file of certificates in PEM",
        ));
    }
    if let Some(Err(error)) = config.panel_dir.as_deref().map(web::check_folder) {
        findings.push(Finding::bad(
            "panel",
            format!("{error:#}"),
            "build the panel in panel_dir, or remove the setting",
        ));
    }
    if let Err(error) = Db::check_url(&config.database) {
        findings.push(Finding::bad("database", format!("{error:#}"), "correct database.url"));
    }
    findings
}

fn data_folder(folder: &Path) -> Finding {
    const CHECK: &str = "data folder";
    let advice = format!("make {} a folder that the service's user can write to", folder.display());
    match folder.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Finding::good(CHECK, format!("{} will be created at the first start", folder.display()))
        }
        Err(error) => Finding::bad(CHECK, error.to_string(), advice),
        Ok(about) if !about.is_dir() => Finding::bad(CHECK, "not a folder", advice),
        Ok(_) => match access(folder, Access::WRITE_OK) {
            Ok(()) => Finding::good(CHECK, folder.display().to_string()),
            Err(Errno::ROFS) => {
                Finding::warning(CHECK, "on a read-only disk: only commands that read work", advice)
            }
            Err(error) => Finding::bad(CHECK, error.to_string(), advice),
        },
    }
}

/// The name of this check.
const KEYS: &str = "keys";

/// Reports a missing key file next to a database that needs it: nothing works until it is back.
async fn lost_keys(config: &Config) -> Option<Finding> {
    if !config.lacks_keys() || database_file(config).is_ok_and(|file| !file.exists()) {
        return None;
    }
    let asked = async {
        let db = Db::open(&config.database).await.ok()?;
        let lost = keys::require_presence(config, &db).await.err();
        db.close().await;
        lost
    };
    let lost = tokio::time::timeout(bounds::ANSWER_WAIT, asked).await.ok()??;
    let advice = format!("copy the installation's key file to {}", config.keys_file.display());
    Some(Finding::bad(KEYS, lost.to_string(), advice))
}

fn key_file(config: &Config) -> Finding {
    const CHECK: &str = KEYS;
    if config.keys_are_given() {
        return match config.keys() {
            Ok(_) => Finding::good(CHECK, "given by MUSTER_KEYS"),
            Err(error) => Finding::bad(CHECK, error.to_string(), "correct the text in MUSTER_KEYS"),
        };
    }
    match KeyFile::load(&config.keys_file) {
        Ok(keys) => Finding::good(
            CHECK,
            format!("{}, {}", config.keys_file.display(), with_noun(keys.signing().len(), "signing key")),
        ),
        Err(KeyFileError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            Finding::warning(
                CHECK,
                format!("{} will be created at the first start", config.keys_file.display()),
                "nothing to do for a new installation",
            )
        }
        Err(error) => Finding::bad(CHECK, error.to_string(), "correct it, or restore your copy"),
    }
}

async fn database(config: &Config) -> Vec<Finding> {
    const CHECK: &str = "database";
    if let Ok(file) = database_file(config)
        && !file.exists()
    {
        return vec![Finding::warning(
            CHECK,
            format!("{} does not exist yet", file.display()),
            "`muster migrate` creates it",
        )];
    }
    let advice = if config.database.is_sqlite() {
        "check data_dir and database.url, and the permissions there; `muster restore` restores a backup"
    } else {
        "check database.url, that the server is running, and its log"
    };
    let db = match tokio::time::timeout(bounds::ANSWER_WAIT, Db::open(&config.database)).await {
        Ok(Ok(db)) => db,
        Ok(Err(error)) => return vec![Finding::bad(CHECK, format!("{error:#}"), advice)],
        Err(_) => return vec![Finding::bad(CHECK, "no answer", advice)],
    };
    let mut findings = match tokio::time::timeout(bounds::ANSWER_WAIT, asked(&db)).await {
        Ok(Ok(findings)) => findings,
        Ok(Err(error)) => vec![Finding::bad(CHECK, error.to_string(), advice)],
        Err(_) => vec![Finding::bad(CHECK, "no answer", advice)],
    };
    findings.extend(servers(&db).await);
    // Further checks need all of the tables.
    if findings.iter().all(|found| found.level != Level::Bad) {
        if let Ok(keys) = config.existing_keys() {
            findings.push(
                canary(&db, &keys)
                    .await
                    .unwrap_or_else(|error| Finding::bad("sealed values", error.to_string(), advice)),
            );
            findings.push(audit_log(&db, &keys).await);
        }
        findings.extend(policies::found(&db, config).await);
    }
    db.close().await;
    findings
}

/// Which of several PostgreSQL servers is the primary.
async fn servers(db: &Db) -> Vec<Finding> {
    const CHECK: &str = "database server";
    let Some(servers) = db.servers().filter(|servers| servers.are_several()) else { return Vec::new() };
    let states = servers.states().await;
    let primaries = states.iter().filter(|(_, state)| matches!(state, Ok(true))).count();
    let found = states.into_iter().map(|(name, state)| match state {
        Ok(true) if primaries > 1 => Finding::bad(
            CHECK,
            format!("{name} can be written, and another one as well"),
            "stop the one that was replaced, and make it a standby again",
        ),
        Ok(true) => Finding::good(CHECK, format!("{name} is the primary")),
        Ok(false) => Finding::good(CHECK, format!("{name} is a standby, or read-only")),
        Err(error) => {
            Finding::warning(CHECK, format!("{name}: {error}"), "start it, or take it out of database.url")
        }
    });
    found.collect()
}

async fn asked(db: &Db) -> Result<Vec<Finding>, sea_orm::DbErr> {
    let sqlite = db.backend() == sea_orm::DbBackend::Sqlite;
    let began = Instant::now();
    let version = db.version().await?;
    let name = if sqlite { "SQLite" } else { "PostgreSQL" };
    let micros = began.elapsed().as_micros();
    let mut findings = vec![Finding::good("database", format!("{name} {version}, answered in {micros} µs"))];
    findings.push(migrations(db).await?);
    if !sqlite {
        findings.push(skew(db).await?);
    }
    Ok(findings)
}

async fn migrations(db: &Db) -> Result<Finding, sea_orm::DbErr> {
    const CHECK: &str = "migrations";
    if let Some(StepMismatch { found, remedy }) = db.mismatch().await? {
        return Ok(Finding::bad(CHECK, found, remedy));
    }
    let missing: Vec<String> = db.pending().await?.iter().map(ToString::to_string).collect();
    Ok(if missing.is_empty() {
        Finding::good(CHECK, "all applied")
    } else {
        let found = format!("missing: {}", missing.join(", "));
        Finding::bad(CHECK, found, "`muster migrate --plan`, then `muster migrate`")
    })
}

/// The difference between the clocks, less the round trip.
async fn skew(db: &Db) -> Result<Finding, sea_orm::DbErr> {
    let clock = Clock::system();
    let before = clock.now().0;
    let there = db.time().await?;
    let after = clock.now().0;
    let there = there.map_or(before, |there| there.0);
    let off = if there < before { before - there } else { (there - after).max(0) };
    Ok(if off <= 2_000 {
        Finding::good("clock", format!("{off} ms from the database's"))
    } else {
        Finding::bad(
            "clock",
            format!("{off} ms from the database's"),
            "synchronize both machines with a time server (NTP)",
        )
    })
}

/// Opens one sealed value of each column, to see that the keys belong to this database.
async fn canary(db: &Db, keys: &KeyFile) -> Result<Finding, sea_orm::DbErr> {
    const CHECK: &str = "sealed values";
    let (mut opened, mut closed) = (0, Vec::new());
    for column in SEALED {
        match keys::open_one(db, keys.ring(), column).await? {
            None => {}
            Some(Ok(())) => opened += 1,
            Some(Err(why)) => closed.push(format!("{}.{}: {why}", column.table, column.column)),
        }
    }
    Ok(match closed.as_slice() {
        [] => Finding::good(
            CHECK,
            format!("the keys open one value of each of {}", with_noun(opened, "column")),
        ),
        closed => {
            Finding::bad(CHECK, closed.join("; "), "restore the key file that belongs to this database")
        }
    })
}

/// Whether the service signs every chain of the audit log.
async fn audit_log(db: &Db, keys: &KeyFile) -> Finding {
    const CHECK: &str = "audit log";
    let advice = "`muster audit verify` shows more; docs/audit.md says what to do about a broken log";
    let named = |(chain, why): &(i64, String)| match *chain {
        INSTANCE => format!("instance: {why}"),
        org => format!("organization {org}: {why}"),
    };
    match audit::doubts(db, keys).await {
        Ok(doubts) if doubts.is_empty() => Finding::good(CHECK, "every chain continues what was signed"),
        Ok(doubts) => Finding::bad(CHECK, doubts.iter().map(named).collect::<Vec<_>>().join("; "), advice),
        Err(error) => Finding::bad(CHECK, error.to_string(), advice),
    }
}

fn room(folder: &Path) -> Finding {
    const CHECK: &str = "disk";
    let existing = folder.ancestors().find(|folder| folder.exists() && !folder.as_os_str().is_empty());
    let about = match rustix::fs::statvfs(existing.unwrap_or(Path::new("."))) {
        Ok(about) => about,
        Err(error) => return Finding::warning(CHECK, error.to_string(), "check how much space the disk has"),
    };
    let free = about.f_bavail.saturating_mul(about.f_frsize);
    let found = format!("{} MiB free", free >> 20);
    if free < LEAST_ROOM {
        Finding::bad(CHECK, found, "free up space: without it no change can be saved")
    } else if free < LEAST_ROOM * 10 {
        Finding::warning(CHECK, found, "free up space before it runs out")
    } else {
        Finding::good(CHECK, found)
    }
}

/// Every client connection takes a file descriptor, and so does every database connection.
fn open_files(config: &Config) -> Finding {
    const CHECK: &str = "open files";
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let wanted = resource_limits::descriptors(config, config.limits.connections) as u64;
    if most >= wanted {
        return Finding::good(CHECK, format!("the limit is {most}, {wanted} are needed"));
    }
    let advice = "raise `ulimit -n` (systemd: LimitNOFILE), or lower limits.connections: until then fewer connections are accepted";
    Finding::warning(CHECK, format!("the limit is {most}, {wanted} are needed"), advice)
}

fn addresses(config: &Config) -> Vec<Finding> {
    let metrics = config.metrics.listen.map(|address| ("metrics address", address));
    [("address", config.listen)]
        .into_iter()
        .chain(metrics)
        .map(|(check, address)| match TcpListener::bind(address) {
            Ok(_) => Finding::good(check, format!("{address} is free")),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Finding::warning(
                check,
                format!("{address} is in use"),
                "fine if Muster itself is using it; otherwise change the setting",
            ),
            Err(error) => {
                Finding::bad(check, format!("{address}: {error}"), "choose an address of this machine")
            }
        })
        .collect()
}

/// Every other service that the settings name: the collector, the mail server, the identity providers.
async fn others(config: &Config) -> Vec<Finding> {
    let mail = config.mail.url.as_ref().map(|url| ("mail", url.expose_secret().to_owned()));
    let traces = config.traces.endpoint.clone().map(|url| ("traces", url));
    let mut named: Vec<(&'static str, String)> = traces.into_iter().chain(mail).collect();
    let mut findings = Vec::new();
    if let Ok(providers) = config.oidc() {
        named.extend(providers.into_values().map(|provider| ("identity provider", provider.issuer)));
    }
    for (check, url) in named {
        let Ok(url) = url::Url::parse(&url) else { continue };
        let known = match url.scheme() {
            "smtp" => Some(587),
            "smtps" => Some(465),
            _ => None,
        };
        if let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default().or(known)) {
            findings.push(reachable(check, host, port).await);
        }
    }
    findings
}

/// Whether something accepts connections there.
async fn reachable(check: &'static str, host: &str, port: u16) -> Finding {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match tokio::time::timeout(bounds::ANSWER_WAIT, tokio::net::TcpStream::connect((bare, port))).await {
        Ok(Ok(_)) => Finding::good(check, format!("{host}:{port} accepts connections")),
        Ok(Err(error)) => Finding::warning(
            check,
            format!("{host}:{port}: {error}"),
            "check the setting, and that the server is running",
        ),
        Err(_) => Finding::warning(
            check,
            format!("{host}:{port} does not answer"),
            "check the setting and the network",
        ),
    }
}
