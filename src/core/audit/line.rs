//! A line of the log: its contents, its columns, and the only code that writes lines.
//!
//! A line is written to `audit_unsealed` in the transaction of its change. The sealer (`seal.rs`) reads it there,
//! assigns its place, and has the database move the row to `audit_log`.

use std::{borrow::Cow, net::IpAddr};

use sea_orm::{DbErr, QueryResult, Value};
use serde::Serialize;

use super::{
    chain::{INSTANCE, canonical_bytes, sorted},
    changes::CHANGED,
};
use crate::{
    base::{
        enums::{ActorKind, AuditOutcome},
        time::Timestamp,
    },
    core::{
        access::Caller,
        store::{
            Transaction,
            sql::{InstallationSql, Row, installation_sql},
        },
    },
};

macro_rules! columns {
    ($changes:literal) => {
        concat!(
            "organization_id, at, last_at, count, actor_kind, actor_id, actor_name, credential_kind, credential_id, \
             credential_hint, operation, permission, decided_by, outcome, code, target_kind, target_id, ",
            $changes,
            ", request_id, ip"
        )
    };
}

/// The columns of a line, apart from its id and its place.
pub(super) const COLUMNS: &str = columns!("changes");

/// [`COLUMNS`], with the changes as text: a line with damaged JSON must neither abort the verification nor keep later
/// lines from being sealed.
pub(super) const READ_COLUMNS: &str = columns!("CAST(changes AS TEXT) AS changes");

const INSERT: InstallationSql = installation_sql!(
    "INSERT INTO audit_unsealed (",
    COLUMNS,
    ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)"
);

/// The deepest nesting that is written: readers of JSON stop at 128 levels, with those around it.
const DEPTH: usize = 100;

/// A wire text of an enumeration. It is a string because the log keeps the values of every version.
pub(super) type Word = Cow<'static, str>;

/// An action or a refusal, with its actor. It stores the actor's name as it was, unless that person has been erased, and
/// refers to nothing that may be deleted.
///
/// All fields are serialized, in alphabetical order: that makes the JSON canonical, and it is this JSON that is hashed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct AuditLine {
    pub actor_id: Option<i64>,
    pub actor_kind: Word,
    pub actor_name: Option<String>,
    pub at: Timestamp,
    /// The changes: an object.
    #[serde(serialize_with = "sorted")]
    pub changes: serde_json::Value,
    /// The problem's code, if something was refused.
    pub code: Option<Word>,
    /// The number of events: a burst of the same refusal is one line.
    pub count: i64,
    pub credential_hint: Option<String>,
    pub credential_id: Option<i64>,
    pub credential_kind: Option<Word>,
    /// The policy line that decided.
    pub decided_by: Option<String>,
    /// Assigned by the database when the line is written.
    pub id: i64,
    pub ip: Option<String>,
    /// When the last event of a burst happened; `None` for a single event.
    pub last_at: Option<Timestamp>,
    /// The root field of the schema: `createServer`.
    pub operation: Word,
    /// `None`: concerns the whole instance.
    pub organization_id: Option<i64>,
    pub outcome: Word,
    pub permission: Option<Word>,
    pub request_id: Option<String>,
    /// Its place in the chain; 0 until it is sealed.
    pub seq: i64,
    pub target_id: Option<i64>,
    pub target_kind: Option<Word>,
    /// The version of the hashed format.
    pub v: u8,
}

impl AuditLine {
    /// A line about the service itself.
    pub fn new(operation: impl Into<Word>, at: Timestamp) -> Self {
        Self {
            actor_id: None,
            actor_kind: ActorKind::System.as_str().into(),
            actor_name: None,
            at,
            changes: serde_json::Value::Object(serde_json::Map::new()),
            code: None,
            count: 1,
            credential_hint: None,
            credential_id: None,
            credential_kind: None,
            decided_by: None,
            id: 0,
            ip: None,
            last_at: None,
            operation: operation.into(),
            organization_id: None,
            outcome: AuditOutcome::Allowed.as_str().into(),
            permission: None,
            request_id: None,
            seq: 0,
            target_id: None,
            target_kind: None,
            v: 1,
        }
    }

    /// Adds the actor and the credential.
    pub fn by(self, caller: &Caller) -> Self {
        let (credential_kind, credential_id) = caller.audited_credential();
        Self {
            actor_kind: caller.kind().as_str().into(),
            actor_id: caller.actor(),
            actor_name: Some(caller.name().to_owned()).filter(|name| !name.is_empty()),
            credential_kind: credential_kind.map(|kind| kind.as_str().into()),
            credential_id,
            credential_hint: caller.hint().map(str::to_owned),
            ..self
        }
    }

    /// Adds the origin.
    pub fn from(self, ip: Option<IpAddr>, request_id: &str) -> Self {
        let request_id = Some(request_id.to_owned()).filter(|id| !id.is_empty());
        Self { ip: ip.map(|ip| ip.to_string()), request_id, ..self }
    }

    /// The chain that it belongs to: its organization's, or the instance's.
    pub fn chain(&self) -> i64 {
        self.organization_id.unwrap_or(INSTANCE)
    }

    /// The bytes that are hashed: without the actor's name, so that a person can be erased from a sealed log. The id
    /// stays.
    pub fn canonical(&mut self) -> Vec<u8> {
        let name = self.actor_name.take();
        let bytes = canonical_bytes(&*self);
        self.actor_name = name;
        bytes
    }

    pub fn value(&self) -> serde_json::Value {
        // An object of texts and numbers, which can't fail.
        serde_json::to_value(self).unwrap_or_default()
    }

    fn values(self) -> [Value; 20] {
        let changes = legible(unnamed(self.changes, self.target_kind.as_deref()));
        [
            self.organization_id.into(),
            self.at.into(),
            self.last_at.into(),
            self.count.into(),
            self.actor_kind.into(),
            self.actor_id.into(),
            self.actor_name.into(),
            self.credential_kind.map(Word::into_owned).into(),
            self.credential_id.into(),
            self.credential_hint.into(),
            self.operation.into(),
            self.permission.map(Word::into_owned).into(),
            self.decided_by.into(),
            self.outcome.into(),
            self.code.map(Word::into_owned).into(),
            self.target_kind.map(Word::into_owned).into(),
            self.target_id.into(),
            changes.into(),
            self.request_id.into(),
            self.ip.into(),
        ]
    }
}

/// Reads `id`, [`READ_COLUMNS`] and `chain_seq`.
impl Row for AuditLine {
    fn read(row: &QueryResult) -> Result<Self, DbErr> {
        let word = |column: &str| row.try_get_by::<String, _>(column).map(Word::Owned);
        let some_word =
            |column: &str| row.try_get_by::<Option<String>, _>(column).map(|text| text.map(Word::Owned));
        Ok(Self {
            id: row.try_get_by("id")?,
            organization_id: row.try_get_by("organization_id")?,
            at: row.try_get_by("at")?,
            last_at: row.try_get_by("last_at")?,
            count: row.try_get_by("count")?,
            actor_kind: word("actor_kind")?,
            actor_id: row.try_get_by("actor_id")?,
            actor_name: row.try_get_by("actor_name")?,
            credential_kind: some_word("credential_kind")?,
            credential_id: row.try_get_by("credential_id")?,
            credential_hint: row.try_get_by("credential_hint")?,
            operation: word("operation")?,
            permission: some_word("permission")?,
            decided_by: row.try_get_by("decided_by")?,
            outcome: word("outcome")?,
            code: some_word("code")?,
            target_kind: some_word("target_kind")?,
            target_id: row.try_get_by("target_id")?,
            changes: read_changes(row.try_get_by("changes")?),
            request_id: row.try_get_by("request_id")?,
            ip: row.try_get_by("ip")?,
            seq: row.try_get_by("chain_seq")?,
            v: 1,
        })
    }
}

/// The changes. Unreadable ones stay a text.
fn read_changes(text: String) -> serde_json::Value {
    muster_json::from_str(&text).unwrap_or(serde_json::Value::String(text))
}

/// The kinds of records about people.
const OF_PEOPLE: [&str; 4] = ["user", "member", "contact", "invitation"];

/// Their fields that identify a person.
const NAMES: [&str; 5] = ["name", "name_folded", "email", "email_folded", "note"];

/// The field of any record that holds a sender's address.
const ADDRESS: &str = "origin_id";

/// The changes without people's names and addresses: a sealed line can't lose them later.
fn unnamed(mut changes: serde_json::Value, kind: Option<&str>) -> serde_json::Value {
    let is_of_people = kind.is_some_and(|kind| OF_PEOPLE.contains(&kind));
    for (name, value) in changes.as_object_mut().into_iter().flatten() {
        let name = name.as_str();
        if name == ADDRESS || (is_of_people && NAMES.contains(&name)) {
            *value = CHANGED.into();
        }
    }
    changes
}

/// The changes, in which values that are nested too deeply are replaced by their text. Tenants choose the values, and
/// an unreadable line would keep all later lines from being sealed.
fn legible(changes: serde_json::Value) -> serde_json::Value {
    let serde_json::Value::Object(mut fields) = changes else { return changes };
    for value in fields.values_mut().filter(|value| is_deeper(value, DEPTH)) {
        *value = value.to_string().into();
    }
    fields.into()
}

fn is_deeper(value: &serde_json::Value, levels: usize) -> bool {
    let is_deeper = |inner| levels == 0 || is_deeper(inner, levels - 1);
    match value {
        serde_json::Value::Array(inner) => inner.iter().any(is_deeper),
        serde_json::Value::Object(inner) => inner.values().any(is_deeper),
        _ => false,
    }
}

/// Writes lines just before the commit of the changes they describe.
pub(super) fn write(tx: &Transaction, lines: impl IntoIterator<Item = AuditLine>) {
    for line in lines {
        tx.execute_before_commit(INSERT, line.values());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::chain::canonical, *};

    #[test]
    fn a_line_is_hashed_as_its_value_without_the_name() {
        let mut line = AuditLine {
            id: 7,
            seq: 5,
            organization_id: Some(3),
            last_at: Some(Timestamp(2000)),
            count: 2,
            actor_name: Some("\"Ada\" é".to_owned()),
            changes: json!({ "b": [{ "d": 1, "c": 2 }], "a": null }),
            ..AuditLine::new("updateSkill", Timestamp(1000))
        };
        let mut value = line.value();
        assert_eq!(value["actor_name"], "\"Ada\" é");
        value["actor_name"] = serde_json::Value::Null;
        assert_eq!((line.canonical(), line.actor_name.as_deref()), (canonical(&value), Some("\"Ada\" é")));
        assert_eq!((&value["id"], &value["seq"], &value["v"]), (&json!(7), &json!(5), &json!(1)));
        assert_eq!(value["at"], "1970-01-01T00:00:01.000Z");
        assert_eq!(value["last_at"], "1970-01-01T00:00:02.000Z");
        assert_eq!(value.as_object().unwrap().len(), 23);
        assert_eq!((line.chain(), value["ip"].is_null()), (3, true));
        assert_eq!(line.values().len(), COLUMNS.split(", ").count());
    }

    #[test]
    fn changes_never_hold_the_names_of_people() {
        let changes =
            || json!({ "name": { "before": "Ada", "after": "Grace" }, "email": "a@x.test", "role": "OWNER" });
        let bare = json!({ "name": CHANGED, "email": CHANGED, "role": "OWNER" });
        for kind in OF_PEOPLE {
            assert_eq!(unnamed(changes(), Some(kind)), bare);
        }
        assert_eq!(unnamed(changes(), Some("agent")), changes());
        let sender = json!({ "origin_id": "a@x.test", "muted": true });
        assert_eq!(unnamed(sender, Some("channel")), json!({ "origin_id": CHANGED, "muted": true }));
    }
}
