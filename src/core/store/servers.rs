//! The PostgreSQL servers that `database.url` names, and which of them is the primary: the one that can be written.
//!
//! The URL lists several as libpq's does: `postgres://muster@a:5432,b:5432/muster`. A new connection asks one after the
//! other, beginning with the last primary, and skips standbys and servers that don't answer. When one finds another
//! primary, all connections to the last one count as lost: it may have vanished without closing them.

use std::{io, str::FromStr, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use futures::FutureExt;
use parking_lot::Mutex;
use sqlx::{
    AssertSqlSafe, Connection, PgConnection, Row,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::base::{
    bounds::{ANSWER_WAIT, BRIEF_WAIT},
    problem::is_unavailable,
};

/// How several servers are listed.
const LISTED: &str = "list the servers in front of the path: postgres://USER@A:5432,B:5432/DATABASE";

/// Cancelled once another server is the primary. None if there is only one server.
pub(crate) type Replaced = Option<CancellationToken>;

#[derive(Clone)]
pub(crate) struct Servers {
    each: Arc<[PgConnectOptions]>,
    /// Whether a server that can't be written is skipped.
    needs_primary: bool,
    /// The first statement on a connection: sets its limits, and asks whether the server can be written.
    greeting: String,
    /// How long each of several servers may take to answer: one whose machine is gone never does, and the next one may be
    /// the primary now.
    patience: Duration,
    /// The last primary that a connection of any pool has found, and what tells its connections that it is replaced.
    primary: Arc<Mutex<Option<(usize, CancellationToken)>>>,
}

impl Servers {
    /// The servers of a URL. Within `wait` each of them can be asked.
    ///
    /// # Errors
    /// It is not valid.
    pub(super) fn of(url: &str, wait: Duration) -> anyhow::Result<Self> {
        let (urls, needs_primary) = split(url).context("database.url")?;
        let options = |url: &String| {
            let options = PgConnectOptions::from_str(url)?.application_name("muster");
            // pgbouncer refuses extra_float_digits, and PostgreSQL's default is exact as well.
            Ok::<_, sqlx::Error>(options.statement_cache_capacity(256).extra_float_digits(None::<i8>))
        };
        let each: Vec<_> = urls.iter().map(options).collect::<Result<_, _>>().context("database.url")?;
        Ok(Self {
            patience: BRIEF_WAIT.min(wait / (each.len() as u32 + 1)),
            each: each.into(),
            needs_primary,
            greeting: "SELECT current_setting('transaction_read_only') AS read_only".to_owned(),
            primary: Arc::default(),
        })
    }

    /// The same servers, with a setting for each connection. Not in its startup message, because pgbouncer refuses it
    /// there.
    pub(super) fn setting(mut self, name: &str, value: &str) -> Self {
        self.greeting += &format!(", set_config('{name}', '{value}', false)");
        self
    }

    /// The connection options of a server, of which only the address differs.
    pub(super) fn options(&self) -> &PgConnectOptions {
        &self.each[0]
    }

    /// The addresses.
    pub(super) fn names(&self) -> String {
        self.each.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn are_several(&self) -> bool {
        self.each.len() > 1
    }

    /// Connects to the primary.
    pub(super) async fn connect(&self) -> Result<(PgConnection, Replaced), sqlx::Error> {
        let (at, connection) = self.find().await?;
        Ok((connection, self.settle(at)))
    }

    /// Listens to these channels on the primary. A lost connection is reported, and not opened again.
    pub(crate) async fn listen(&self, channels: &[&str]) -> Result<(PgListener, Replaced), sqlx::Error> {
        let at = if self.needs_primary { self.find().await?.0 } else { 0 };
        let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(ANSWER_WAIT);
        let pool = pool.connect_with(self.each[at].clone()).await?;
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.eager_reconnect(false);
        listener.listen_all(channels.iter().copied()).await?;
        Ok((listener, self.settle(at)))
    }

    /// Asks every server whether it can be written.
    pub(crate) async fn states(&self) -> Vec<(String, Result<bool, sqlx::Error>)> {
        let mut states = Vec::new();
        for options in &*self.each {
            let asked = timeout(self.patience, self.greet(options)).await;
            let asked = asked.unwrap_or_else(|_| Err(sqlx::Error::Io(io::ErrorKind::TimedOut.into())));
            states.push((name(options), asked.map(|(_, is_primary)| is_primary)));
        }
        states
    }

    /// Connects to the first server that will do, and says which one it is.
    async fn find(&self) -> Result<(usize, PgConnection), sqlx::Error> {
        if !self.needs_primary {
            return Ok((0, self.greet(&self.each[0]).await?.0));
        }
        let first = self.primary.lock().as_ref().map_or(0, |(at, _)| *at);
        let count = self.each.len();
        let mut skipped = Vec::new();
        for at in (first..first + count).map(|at| at % count) {
            let options = &self.each[at];
            let why = match timeout(self.patience, self.greet(options)).await {
                Ok(Ok((connection, true))) => return Ok((at, connection)),
                Ok(Ok((_, false))) => "a standby, or read-only".to_owned(),
                // The role or the database is wrong, most likely on every server.
                Ok(Err(error)) if !is_unavailable(&error) => return Err(error),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer".to_owned(),
            };
            skipped.push(format!("{} ({why})", name(options)));
        }
        let none = format!("no PostgreSQL server can be written: {}", skipped.join(", "));
        Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::NotConnected, none)))
    }

    /// Connects to one server. Also returns whether it can be written.
    async fn greet(&self, options: &PgConnectOptions) -> Result<(PgConnection, bool), sqlx::Error> {
        let mut connection = PgConnection::connect_with(options).boxed().await?;
        let greeting = sqlx::raw_sql(AssertSqlSafe(self.greeting.clone()));
        let row = greeting.fetch_one(&mut connection).await?;
        let read_only: String = row.try_get("read_only")?;
        Ok((connection, read_only == "off"))
    }

    /// Notes the primary. If it is another one than before, the connections to that one are lost.
    fn settle(&self, at: usize) -> Replaced {
        if !self.are_several() {
            return None;
        }
        let mut primary = self.primary.lock();
        if let Some((known, replaced)) = &*primary {
            if *known == at {
                return Some(replaced.clone());
            }
            tracing::warn!(server = %name(&self.each[at]), "database.primary_replaced");
            replaced.cancel();
        }
        let replaced = CancellationToken::new();
        *primary = Some((at, replaced.clone()));
        Some(replaced)
    }
}

/// The address of a server.
fn name(options: &PgConnectOptions) -> String {
    match options.get_socket() {
        Some(folder) => folder.join(format!(".s.PGSQL.{}", options.get_port())).display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    }
}

/// A URL for each server of a URL, which sqlx does not split; and whether it asks for the primary.
fn split(url: &str) -> anyhow::Result<(Vec<String>, bool)> {
    let (scheme, rest) = url.split_once("://").context("must start with postgres://")?;
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let hosts: Vec<&str> = hosts.split(',').collect();
    let is_list = hosts.len() > 1;
    let has_no_name = |host: &&str| host.is_empty() || host.starts_with(':');
    if is_list && hosts.iter().any(has_no_name) {
        bail!("one of the servers has no name");
    }
    let (mut kept, mut needs_primary) = (Vec::new(), is_list);
    for parameter in query.split('&') {
        match parameter.split_once('=') {
            Some(("target_session_attrs", "read-write" | "primary")) => needs_primary = true,
            Some(("target_session_attrs", _)) => bail!("target_session_attrs must be read-write"),
            Some(("host" | "hostaddr" | "port", value)) if is_list || value.contains(',') => bail!(LISTED),
            _ => kept.push(parameter),
        }
    }
    let query = kept.join("&");
    let query = if query.is_empty() { query } else { format!("?{query}") };
    let urls = hosts.iter().map(|host| format!("{scheme}://{user}{host}{path}{query}"));
    Ok((urls.collect(), needs_primary))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> anyhow::Result<Servers> {
        Servers::of(url, BRIEF_WAIT)
    }

    #[test]
    fn a_url_lists_its_servers() {
        for (url, names) in [
            ("postgres://muster@a:6000/muster", "a:6000"),
            ("postgres://muster:pw@a:6000,b.example:6001/muster", "a:6000, b.example:6001"),
            (
                "postgresql://a:6000,[::1]:6001,[fe80::1]:6002/muster?sslmode=disable",
                "a:6000, [::1]:6001, [fe80::1]:6002",
            ),
            (
                "postgres://muster@%2Frun%2Fa:6000,%2Frun%2Fb:6001/muster",
                "/run/a/.s.PGSQL.6000, /run/b/.s.PGSQL.6001",
            ),
            ("postgres://muster@localhost:6000/muster?host=/run/a", "/run/a/.s.PGSQL.6000"),
            ("postgres://mu%40ster:p,%2C@w@a:6000,b:6001/muster?sslmode=disable", "a:6000, b:6001"),
        ] {
            let servers = of(url).unwrap();
            assert_eq!(servers.names(), names, "{url}");
            assert!(servers.each.iter().all(|options| options.get_database() == Some("muster")), "{url}");
        }
        let servers = of("postgres://mu%40ster@a:6000,b:6001/muster").unwrap();
        assert!(servers.each.iter().all(|options| options.get_username() == "mu@ster"));
    }

    #[test]
    fn one_server_keeps_its_url() {
        for url in [
            "postgres://muster:p,w@db/muster",
            "postgres:///muster?host=/run/postgresql",
            "postgres://db?sslmode=verify-full&sslrootcert=/etc/muster/ca,b.pem",
            "postgres://postgres@localhost/postgres?host=/dev/shm/x&options=-c%20geqo%3Doff",
        ] {
            assert_eq!(split(url).unwrap(), (vec![url.to_owned()], false), "{url}");
        }
    }

    #[test]
    fn a_list_asks_for_the_primary() {
        let (one, two) = ("postgres://a/m".to_owned(), "postgres://b/m".to_owned());
        for attribute in ["", "?target_session_attrs=read-write", "?target_session_attrs=primary"] {
            let split = split(&format!("postgres://a,b/m{attribute}")).unwrap();
            assert_eq!(split, (vec![one.clone(), two.clone()], true), "{attribute}");
        }
        let alone = split("postgres://a/m?sslmode=require&target_session_attrs=read-write&user=x").unwrap();
        assert_eq!(alone, (vec!["postgres://a/m?sslmode=require&user=x".to_owned()], true));
    }

    #[test]
    fn another_primary_ends_the_connections_to_the_last() {
        let servers = of("postgres://a,b/m").unwrap();
        let of_other_pool = servers.clone();
        let (one, same) = (servers.settle(0).unwrap(), of_other_pool.settle(0).unwrap());
        assert!(!one.is_cancelled());
        let two = of_other_pool.settle(1).unwrap();
        assert!(one.is_cancelled() && same.is_cancelled() && !two.is_cancelled());
        assert!(of("postgres://a/m").unwrap().settle(0).is_none());
    }

    #[test]
    fn a_list_that_can_not_be_meant_is_refused() {
        for (url, why) in [
            ("postgres://a,,b/m", "no name"),
            ("postgres://m@,b/m", "no name"),
            ("postgres://a,:5433/m", "no name"),
            ("postgres://a:x,b/m", "port"),
            ("postgres://a,b/m?target_session_attrs=any", "read-write"),
            ("postgres://a/m?target_session_attrs=standby", "read-write"),
            ("postgres:///m?host=a,b", "in front of the path"),
            ("postgres://a,b/m?port=5433", "in front of the path"),
        ] {
            let Err(error) = of(url) else { panic!("{url}") };
            let said = format!("{error:#}");
            assert!(said.starts_with("database.url: ") && said.contains(why), "{url}: {said}");
        }
    }
}
