//! Inserts many related rows straight into the tables, for laws that look at every field of every record.
//! Values differ from row to row, and nullable columns are null in some. What an area consists of is in the file of its name.

mod contained;
mod events;
mod fleet;
mod people;
mod talk;
mod tools;

use std::sync::atomic::Ordering;

use muster::base::folding;
use sea_orm::Value;

use super::{Actor, TestApp};

/// The ids created, one list per table.
#[derive(Clone, Debug, Default)]
pub struct Population {
    pub servers: Vec<i64>,
    pub images: Vec<i64>,
    pub agents: Vec<i64>,
    pub channels: Vec<i64>,
    pub contacts: Vec<i64>,
    pub identities: Vec<i64>,
    pub conversations: Vec<i64>,
    pub turns: Vec<i64>,
    pub messages: Vec<i64>,
    pub attachments: Vec<i64>,
    pub approvals: Vec<i64>,
    pub credentials: Vec<i64>,
    pub credential_fields: Vec<i64>,
    pub mcp_servers: Vec<i64>,
    pub model_credentials: Vec<i64>,
    pub allowed_hosts: Vec<i64>,
    pub event_endpoints: Vec<i64>,
    pub event_deliveries: Vec<i64>,
    pub backups: Vec<i64>,
    pub skills: Vec<i64>,
    pub service_tokens: Vec<i64>,
    pub invitations: Vec<i64>,
    pub members: Vec<i64>,
    pub sessions: Vec<i64>,
    pub policy_versions: Vec<i64>,
    pub erasures: Vec<i64>,
}

impl TestApp {
    /// Creates `n` of everything in [`TestApp::org`].
    pub async fn populate(&self, n: usize) -> Population {
        let mut all = Population::default();
        self.grow(&mut all, n).await;
        all
    }

    /// Creates `n` more. What is related to one of the first is related to them too.
    pub async fn grow(&self, all: &mut Population, n: usize) {
        Filler { app: self, org: self.org, author: &self.owner }.fill(all, n).await;
    }

    /// Creates `n` of everything in the stranger's organization.
    pub async fn populate_other(&self, n: usize) -> Population {
        let mut all = Population::default();
        Filler { app: self, org: self.other_org, author: &self.stranger }.fill(&mut all, n).await;
        all
    }
}

struct Filler<'a> {
    app: &'a TestApp,
    org: i64,
    author: &'a Actor,
}

/// A row to insert: columns and values.
type Row = Vec<(&'static str, Value)>;

/// Columns that are also stored folded: the table, the column, and its folded form.
const FOLDED: [(&str, &str, &str); 14] = [
    ("approvals", "title", "title_folded"),
    ("conversations", "title", "title_folded"),
    ("credentials", "name", "name_folded"),
    ("images", "name", "name_folded"),
    ("mcp_servers", "name", "name_folded"),
    ("servers", "name", "name_folded"),
    ("service_tokens", "name", "name_folded"),
    ("skills", "name", "name_folded"),
    ("agents", "name", "name_folded"),
    ("channels", "name", "name_folded"),
    ("contacts", "name", "name_folded"),
    ("identities", "origin_id", "origin_id_folded"),
    ("identities", "display_name", "display_name_folded"),
    ("invitations", "email", "email_folded"),
];

fn text(text: impl Into<String>) -> Value {
    text.into().into()
}

impl Filler<'_> {
    async fn fill(&self, all: &mut Population, n: usize) {
        for i in all.agents.len()..all.agents.len() + n {
            self.people(all, i).await;
            self.home(all, i).await;
            self.agent(all, i).await;
            self.channel(all, i).await;
            self.conversation(all, i).await;
            self.approval(all, i).await;
            self.tools(all, i).await;
            self.policy(all, i).await;
            self.contained(all, i).await;
            self.events(all, i).await;
        }
    }

    /// Every other one belongs to the first agent, so that it has many of everything.
    fn agent_of(all: &Population, i: usize) -> Value {
        all.agents[if i.is_multiple_of(2) { 0 } else { i }].into()
    }

    /// Inserts a row in this organization and returns its id.
    async fn insert(&self, table: &str, row: Row) -> i64 {
        let (sql, values) = self.statement(table, row);
        self.app.one(&format!("{sql} RETURNING id"), values).await
    }

    /// Inserts a row without an id.
    async fn link(&self, table: &str, row: Row) {
        let (sql, values) = self.statement(table, row);
        self.app.execute(&sql, values).await;
    }

    fn statement(&self, table: &str, mut row: Row) -> (String, Vec<Value>) {
        row.push(("organization_id", self.org.into()));
        for (_, column, folded) in FOLDED.iter().filter(|(of, ..)| *of == table) {
            let fold = if *column == "email" { folding::address } else { folding::name };
            let given = row.iter().find(|(name, _)| name == column).map(|(_, value)| value.clone());
            if let Some(Value::String(Some(given))) = given {
                row.push((folded, fold(&given).into()));
            }
        }
        let columns: Vec<&str> = row.iter().map(|(column, _)| *column).collect();
        let places: Vec<String> = (1..=row.len()).map(|place| format!("${place}")).collect();
        let sql = format!("INSERT INTO {table} ({}) VALUES ({})", columns.join(", "), places.join(", "));
        (sql, row.into_iter().map(|(_, value)| value).collect())
    }

    fn at(&self, i: usize) -> Value {
        (self.app.clock.now().0 - 1000 * number(i)).into()
    }

    fn maybe_at(&self, i: usize, is: bool) -> Value {
        is.then_some(self.app.clock.now().0 + number(i)).into()
    }

    /// A number that no other row in this test has.
    fn fresh(&self) -> u32 {
        self.app.named.fetch_add(1, Ordering::Relaxed)
    }
}

/// A count as a column value.
fn number(n: usize) -> i64 {
    i64::try_from(n).unwrap()
}
