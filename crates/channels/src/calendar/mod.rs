//! Calendars: by CalDAV, or at Google.
//!
//! Changes of events come in as messages: an event, with all its recurrences, is a thread. So are reminders, which the
//! transport makes from the events that are about to begin. No message is sent: a text has no place in a calendar. Agents
//! act instead. A change that an action made is recognized by what it leaves in the event, and does not come in.
//!
//! - `caldav.rs`, `google.rs`: the two kinds of accounts; `listening.rs`: the position in each calendar, and reminders.
//! - `actions.rs`: what agents do.

mod actions;
mod caldav;
mod google;
mod listening;

use std::convert::Infallible;

use futures::future::BoxFuture;
use jiff::{Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};

use self::{caldav::CalDav, google::Google};
#[cfg(test)]
pub use self::{google::to_icalendar, listening::decode};
use crate::{
    bounds,
    contract::{
        Abilities, ActionCall, CalendarAccount, CalendarConfig, Choice, Cursor, Dialect, Failure, Files,
        Identity, Inlet, Kind, Longest, Part, Receipt, Sink, Traits, Transport, Unit,
    },
    dav::DavClient,
    network::Network,
};

static TRAITS: Traits = Traits {
    kind: Kind::Calendar,
    dialect: Dialect::Plain,
    longest: Longest { count: 0, unit: Unit::Characters },
    limits: &[],
    // Reading an event, the account's addresses, and writing.
    longest_send: bounds::ANSWER.saturating_mul(4),
    idempotent_send: true,
    reconciles: false,
    inlet: Inlet::Pull,
    files: Files::Apart,
    abilities: Abilities { buttons: false, edits: false, typing: None },
    actions: &actions::ACTIONS,
    largest_in: 0,
    largest_out: 0,
};

/// Calendars of an account.
pub struct Calendars {
    /// `None`: no account is connected yet.
    account: Option<Account>,
    config: CalendarConfig,
    clock: fn() -> Timestamp,
}

/// An account with calendars.
enum Account {
    CalDav(CalDav),
    Google(Google),
}

/// The position in a calendar.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    /// The server's name of it. `None`: it has none.
    token: Option<String>,
    /// The same by the server's clock, for a server that no longer knows the token.
    until: Timestamp,
}

/// The changes of a calendar since a position.
#[derive(Default)]
struct Changes {
    changed: Vec<Changed>,
    removed: Vec<String>,
    /// All events, if these changes are found by reading the whole calendar.
    present: Vec<String>,
    is_whole: bool,
    /// Only what its author changed later is new: the server does not say when it was changed.
    since: Option<Timestamp>,
    /// The position after them.
    next: Seen,
}

impl Changes {
    fn until(next: Seen) -> Self {
        Self { next, ..Self::default() }
    }
}

/// An event that was found, such as a new or changed one.
struct Changed {
    event: String,
    version: String,
    /// The event, if it came with that.
    text: Option<String>,
}

/// An event, as iCalendar.
struct Object {
    event: String,
    version: String,
    text: String,
}

impl Account {
    async fn calendars(&self) -> Result<Vec<Choice>, Failure> {
        match self {
            Self::CalDav(server) => server.calendars().await,
            Self::Google(google) => google.calendars().await,
        }
    }

    async fn time_zone(&self, calendar: &str) -> Result<TimeZone, Failure> {
        match self {
            Self::CalDav(server) => server.time_zone(calendar).await,
            Self::Google(google) => google.time_zone(calendar).await,
        }
    }

    /// The addresses by which the account is invited. Google marks them itself.
    async fn addresses(&self) -> Result<Vec<String>, Failure> {
        match self {
            Self::CalDav(server) => server.addresses().await,
            Self::Google(_) => Ok(Vec::new()),
        }
    }

    async fn begin(&self, calendar: &str) -> Result<Seen, Failure> {
        match self {
            Self::CalDav(server) => server.begin(calendar).await,
            Self::Google(google) => google.begin(calendar).await,
        }
    }

    async fn changes(&self, calendar: &str, seen: &Seen) -> Result<Changes, Failure> {
        match self {
            Self::CalDav(server) => server.changes(calendar, seen).await,
            Self::Google(google) => google.changes(calendar, seen).await,
        }
    }

    async fn fetch(&self, calendar: &str, changed: &[Changed]) -> Result<Vec<Object>, Failure> {
        if let Self::CalDav(server) = self {
            return server.fetch(calendar, changed).await;
        }
        let object = |one: &Changed| {
            let text = one.text.clone()?;
            Some(Object { event: one.event.clone(), version: one.version.clone(), text })
        };
        Ok(changed.iter().filter_map(object).collect())
    }

    /// Finds events around this time, and perhaps others. They can be fetched.
    async fn around(&self, calendar: &str, from: Timestamp, to: Timestamp) -> Result<Vec<Changed>, Failure> {
        match self {
            Self::CalDav(server) => server.around(calendar, from, to).await,
            Self::Google(google) => google.around(calendar, from, to).await,
        }
    }
}

/// What is missing before anything can come in.
const NO_ACCOUNT: &str =
    "No account is connected. Connect a Google account, or set the address of a CalDAV server.";
const NO_CALENDAR: &str = "No calendar is chosen, so nothing comes in.";

impl Calendars {
    pub const TRAITS: &'static Traits = &TRAITS;

    pub fn new(config: CalendarConfig, network: &Network) -> Self {
        let account = match &config.account {
            CalendarAccount::CalDav { url, user, pass } => {
                let client = DavClient::new(network, url.clone(), user.clone(), pass.clone());
                Some(Account::CalDav(CalDav::new(client)))
            }
            CalendarAccount::Google(tokens) => {
                tokens.clone().map(|tokens| Account::Google(Google::new(network, tokens)))
            }
        };
        Self { account, config, clock: network.clock }
    }

    fn account(&self) -> Result<&Account, Failure> {
        self.account.as_ref().ok_or_else(|| Failure::NotSent(NO_ACCOUNT.into()))
    }

    async fn identify(&self) -> Result<Identity, Failure> {
        let Some(account) = &self.account else {
            return Ok(Identity { warnings: vec![NO_ACCOUNT.to_owned()], ..Identity::default() });
        };
        let known = account.calendars().await?;
        let chosen = &self.config.calendars;
        let missing = chosen.iter().filter(|chosen| known.iter().all(|calendar| calendar.id != chosen.id));
        let missing = missing.map(|calendar| format!("The account has no calendar \"{}\".", calendar.name));
        let none = chosen.is_empty().then(|| NO_CALENDAR.to_owned());
        Ok(Identity { warnings: missing.chain(none).collect(), ..Identity::default() })
    }
}

impl Transport for Calendars {
    fn traits(&self) -> &'static Traits {
        Self::TRAITS
    }

    fn probe(&self) -> BoxFuture<'_, Result<Identity, Failure>> {
        Box::pin(self.identify())
    }

    fn choices<'a>(&'a self, _: Option<&'a str>) -> BoxFuture<'a, Result<Vec<Choice>, Failure>> {
        Box::pin(async { self.account()?.calendars().await })
    }

    fn listen<'a>(
        &'a self,
        cursor: Option<Cursor>,
        sink: &'a dyn Sink,
    ) -> BoxFuture<'a, Result<Infallible, Failure>> {
        Box::pin(listening::listen(self, cursor, sink))
    }

    fn send<'a>(&'a self, _: &'a Part<'a>) -> BoxFuture<'a, Result<Receipt, Failure>> {
        Box::pin(async { Err(Failure::Refused("A calendar takes no messages.".into())) })
    }

    fn act<'a>(&'a self, call: &'a ActionCall<'a>) -> BoxFuture<'a, Result<Receipt, Failure>> {
        Box::pin(actions::act(self, call))
    }
}
