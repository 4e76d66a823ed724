//! Explains to the operator why a database can't be used: which one, what is wrong, and what to do.

use std::io::ErrorKind;

use sea_orm::{DbErr, RuntimeErr};
use sqlx::sqlite::SqliteConnectOptions;

use super::{connections::Opener, servers::Servers};
use crate::base::problem::is_unavailable;

/// A database that can't be used.
#[derive(Debug, thiserror::Error)]
#[error("{words}")]
pub struct Unusable {
    words: String,
    /// Whether it may be available soon: a server that is starting.
    pub may_come: bool,
}

impl Unusable {
    /// A connection error, explained.
    pub(super) fn explain(opener: &Opener, error: DbErr) -> anyhow::Error {
        let explained = match &error {
            DbErr::Conn(RuntimeErr::SqlxError(error))
            | DbErr::Exec(RuntimeErr::SqlxError(error))
            | DbErr::Query(RuntimeErr::SqlxError(error)) => Self::explained(opener, error),
            _ => None,
        };
        explained.map_or_else(|| error.into(), Into::into)
    }

    /// A database error, explained, if there is more to say than the database does.
    pub(super) fn explained(opener: &Opener, error: &sqlx::Error) -> Option<Self> {
        let words = match opener {
            Opener::Postgres(servers) => of_postgres(servers, error),
            Opener::Sqlite(options) => of_sqlite(options, error),
        };
        let may_come = matches!(opener, Opener::Postgres(_)) && is_unavailable(error);
        words.map(|words| Self { words, may_come })
    }
}

fn of_postgres(servers: &Servers, error: &sqlx::Error) -> Option<String> {
    let at = format!("PostgreSQL at {}", servers.names());
    let options = servers.options();
    let role = options.get_username();
    let database = options.get_database().unwrap_or(role);
    Some(match error {
        sqlx::Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => {
            format!("{at} refuses connections (database.url). Is it running?")
        }
        // Says why of each of several servers.
        sqlx::Error::Io(error) if error.kind() == ErrorKind::NotConnected => {
            format!("{error} (database.url)")
        }
        sqlx::Error::Io(error) => format!("{at} can't be reached (database.url): {error}"),
        sqlx::Error::Tls(error) => format!("TLS with {at} failed (database.url): {error}"),
        sqlx::Error::PoolTimedOut => format!("{at} does not answer (database.url)"),
        sqlx::Error::Database(error) => {
            let message = error.message();
            match error.code().unwrap_or_default().as_ref() {
                "3D000" => format!(
                    "{at} has no database \"{database}\" (database.url). Create it: createdb --owner={role} {database}"
                ),
                "28P01" | "28000" => format!(
                    "{at} refuses the role \"{role}\": {message}. Check the role and password in database.url, and the server's \
                     pg_hba.conf"
                ),
                "42501" => format!(
                    "the role \"{role}\" is not allowed to do this in the database \"{database}\": {message}. Use the role that owns \
                     Muster's tables; for a new database, make it the owner: ALTER DATABASE \"{database}\" OWNER TO \"{role}\""
                ),
                _ => format!("{at}: {message}"),
            }
        }
        _ => return None,
    })
}

fn of_sqlite(options: &SqliteConnectOptions, error: &sqlx::Error) -> Option<String> {
    let file = options.get_filename().display();
    let sqlx::Error::Database(error) = error else { return None };
    // The last byte of an extended code is the basic code.
    let code: i32 = error.code()?.parse().ok()?;
    Some(match code & 0xff {
        11 | 26 => format!(
            "{file} is damaged, or is not an SQLite database. Move it away and restore a backup with `muster restore`"
        ),
        14 => {
            format!("the database {file} can't be opened: its folder must exist and be writable by this user")
        }
        8 => format!("this user can't write to the database {file}"),
        5 => format!("another process is keeping the database {file} busy"),
        _ => return None,
    })
}
