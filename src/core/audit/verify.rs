//! Checks that a chain is as it was sealed: line by line, with the statements about it. Reports the first line that is
//! not.
//!
//! Pure: the lines come one at a time from the database (`database.rs`) or from a file (`muster audit verify --file`).

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{
    chain::{GENESIS, canonical, hash},
    key::PublicKey,
    statement::mistrust,
};

/// The kind of fault of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Fault {
    /// It was changed after it was sealed.
    Changed,
    /// It is missing.
    Missing,
    /// It was never sealed in this chain.
    Inserted,
    /// It is in another line's place.
    Reordered,
    /// It and everything after it is missing.
    Truncated,
    /// A signed statement can't be trusted.
    BadStatement,
    /// The file's line does not belong to an export.
    Unreadable,
}

/// The first line that is not as it was sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BrokenLine {
    /// Its place in the chain.
    pub seq: i64,
    /// Its id, if known.
    pub id: Option<i64>,
    /// The kind of fault.
    pub fault: Fault,
    pub detail: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The organization; `None` for the instance's own log.
    pub organization_id: Option<i64>,
    /// Whether every line is as it was sealed.
    pub ok: bool,
    /// The place of the first line checked.
    pub first_seq: Option<i64>,
    /// The place of the last good line.
    pub last_seq: i64,
    /// The number of good lines.
    pub lines: u64,
    /// The number of good signed statements.
    pub statements: u64,
    /// The last line that a valid signature vouches for; later lines are only chained.
    pub signed_up_to: i64,
    /// Whether retention removed the lines before the first one, as a signed tombstone says.
    pub begins_after_tombstone: bool,
    /// Whether the file holds only part of the log, not from its start.
    pub partial: bool,
    /// The number of lines not sealed yet, which can't be verified.
    pub unsealed: u64,
    /// The first line that is not as it was sealed.
    pub broken: Option<BrokenLine>,
}

pub struct Verifier<'a> {
    keys: &'a [PublicKey],
    report: Report,
    next: i64,
    prev: Vec<u8>,
    /// The hashes that valid statements give for lines still to come, by place.
    expected: BTreeMap<i64, String>,
    /// The place of a missing line, which may still turn up before the end.
    gap: Option<i64>,
    /// The last line known from elsewhere.
    reach: i64,
}

/// A line known from elsewhere, such as the service's own log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownLine {
    pub seq: i64,
    /// Its hash, if that is known.
    pub hash: Option<[u8; 32]>,
}

impl<'a> Verifier<'a> {
    #[must_use]
    pub fn new(organization_id: Option<i64>, keys: &'a [PublicKey]) -> Self {
        let report = Report {
            organization_id,
            ok: true,
            first_seq: None,
            last_seq: 0,
            lines: 0,
            statements: 0,
            signed_up_to: 0,
            begins_after_tombstone: false,
            partial: false,
            unsealed: 0,
            broken: None,
        };
        let (expected, gap) = (BTreeMap::new(), None);
        Self { keys, report, next: 1, prev: GENESIS.to_vec(), expected, gap, reach: 0 }
    }

    /// Takes the next line of an export: an entry, a checkpoint, a tombstone or the header.
    pub fn take_line(&mut self, mut line: Value) {
        let fields = line.as_object_mut();
        let kind = fields.as_ref().and_then(|fields| fields.get("type")?.as_str().map(str::to_owned));
        match (kind.as_deref(), fields) {
            (Some("entry"), Some(fields)) => {
                fields.remove("type");
                let mut bytes = |name: &str| {
                    fields.remove(name).and_then(|text| hex::decode(text.as_str()?).ok()).unwrap_or_default()
                };
                let (prev, own) = (bytes("prev_hash"), bytes("hash"));
                self.entry(line, &prev, &own);
            }
            (Some("checkpoint" | "tombstone" | "export"), _) => self.statement(&line),
            _ => self.unreadable("it is neither an entry nor a statement"),
        }
    }

    /// Takes a line that could not be parsed.
    pub fn unreadable(&mut self, why: &str) {
        self.fail(self.next, None, Fault::Unreadable, why);
    }

    /// Takes a signed statement. One about a line still to come is kept until then.
    pub fn statement(&mut self, statement: &Value) {
        if self.report.broken.is_some() {
            return;
        }
        let (kind, seq) =
            (statement["type"].as_str().unwrap_or_default(), statement["seq"].as_i64().unwrap_or(-1));
        let said = statement["hash"].as_str().unwrap_or_default().to_owned();
        let about = format!("the {kind} at {seq}");
        if let Some(why) = mistrust(statement, self.keys) {
            return self.fail(seq, None, Fault::BadStatement, format!("{about}: {why}"));
        }
        if statement["organization_id"].as_i64() != self.report.organization_id {
            return self.fail(seq, None, Fault::BadStatement, format!("{about} belongs to another log"));
        }
        self.report.statements += 1;
        let begun = self.report.first_seq.is_some();
        match kind {
            "export" if !begun => {
                let from = statement["from_seq"].as_i64().unwrap_or(1);
                self.next = from;
                self.prev = statement["from_hash"]
                    .as_str()
                    .and_then(|text| hex::decode(text).ok())
                    .unwrap_or_default();
                self.report.partial = from > 1;
                self.report.last_seq = from - 1;
            }
            "tombstone" if !begun && (self.next <= 1 || self.next == seq + 1) => {
                self.next = seq + 1;
                self.prev = hex::decode(&said).unwrap_or_default();
                (self.report.begins_after_tombstone, self.report.partial) = (true, false);
                (self.report.signed_up_to, self.report.last_seq) = (seq, seq);
                return;
            }
            "export" | "tombstone" => {
                return self.fail(seq, None, Fault::BadStatement, format!("{about} is in the wrong place"));
            }
            _ => {}
        }
        if seq >= self.next {
            self.expected.insert(seq, said);
        } else if seq == self.next - 1 {
            self.compare(seq, &said);
        }
    }

    /// Takes a line known from elsewhere, which the chain must reach. Call it before any line.
    pub fn expect(&mut self, known: KnownLine) {
        self.reach = self.reach.max(known.seq);
        if let Some(hash) = known.hash {
            self.expected.insert(known.seq, hex::encode(hash));
        }
    }

    pub fn entry(&mut self, mut content: Value, prev: &[u8], own: &[u8]) {
        // The hash does not cover it.
        content["actor_name"] = Value::Null;
        let (seq, id) = (content["seq"].as_i64().unwrap_or(-1), content["id"].as_i64());
        if let Some(gap) = self.gap {
            // The missing line turns up here: it was moved, not removed.
            if seq == gap && is_hash(own, prev, &content) {
                let detail = "it is in the wrong place".to_owned();
                self.report.broken = Some(BrokenLine { seq, id, fault: Fault::Reordered, detail });
                self.gap = None;
            }
            return;
        }
        if self.report.broken.is_some() {
            return;
        }
        if content["organization_id"].as_i64() != self.report.organization_id {
            return self.fail(self.next, id, Fault::Inserted, "it belongs to another organization");
        }
        self.report.first_seq.get_or_insert(seq);
        if seq > self.next {
            self.gap = Some(self.next);
            let detail = format!("{} is followed by {seq}", self.next - 1);
            return self.fail(self.next, None, Fault::Missing, detail);
        }
        if seq < self.next {
            let detail = format!("place {seq} is already taken, or was removed with everything before it");
            return self.fail(seq, id, Fault::Inserted, detail);
        }
        if !is_hash(own, prev, &content) {
            let (fault, detail) = match home(content, prev, own, seq) {
                Some(home) => (Fault::Reordered, format!("it was sealed at place {home}")),
                None => (Fault::Changed, "its hash does not match its content".to_owned()),
            };
            return self.fail(seq, id, fault, detail);
        }
        if prev != self.prev && self.report.lines > 0 {
            let detail = "it was changed and rehashed: the next line follows a different one";
            return self.fail(seq - 1, None, Fault::Changed, detail);
        }
        if prev != self.prev {
            let detail = "the first line does not follow the line known to precede it";
            return self.fail(seq, id, Fault::Missing, detail);
        }
        (self.next, self.prev) = (seq + 1, own.to_vec());
        if let Some(said) = self.expected.remove(&seq) {
            self.compare(seq, &said);
        }
        if self.report.broken.is_none() {
            self.report.lines += 1;
            self.report.last_seq = seq;
        }
    }

    /// Compares the line at `seq`, the last one taken, with a statement about it.
    fn compare(&mut self, seq: i64, said: &str) {
        if hex::encode(&self.prev) == said {
            self.report.signed_up_to = seq;
            return;
        }
        let detail = format!(
            "the chain was rehashed: a line from {} to {seq} is not what was signed",
            self.report.signed_up_to + 1
        );
        self.fail(seq, None, Fault::Changed, detail);
    }

    fn fail(&mut self, seq: i64, id: Option<i64>, fault: Fault, detail: impl Into<String>) {
        self.report.broken.get_or_insert_with(|| BrokenLine { seq, id, fault, detail: detail.into() });
    }

    /// The result. `last` is the chain's end according to its row in the database, 0 without one; `None` for a file.
    #[must_use]
    pub fn finish(mut self, last: Option<i64>, unsealed: u64) -> Report {
        let signed = self.expected.keys().next_back().copied();
        if let Some(end) = signed.max(last).max(Some(self.reach)).filter(|end| *end >= self.next) {
            let what = if signed == Some(end) { "the signed part" } else { "the chain's end" };
            let (next, detail) = (self.next, format!("{what} reaches {end}"));
            self.fail(next, None, Fault::Truncated, detail);
        }
        if let Some(last) = last.filter(|last| *last < self.report.last_seq) {
            let detail = format!("the chain's row in audit_chains ends it at {last}");
            self.fail(last + 1, None, Fault::Inserted, detail);
        }
        self.report.unsealed = unsealed;
        self.report.ok = self.report.broken.is_none();
        self.report
    }
}

/// Whether `own` is the hash of this line after `prev`.
fn is_hash(own: &[u8], prev: &[u8], content: &Value) -> bool {
    hash(prev, &canonical(content))[..] == *own
}

/// The place near `seq` at which the line was sealed.
fn home(mut content: Value, prev: &[u8], own: &[u8], seq: i64) -> Option<i64> {
    (seq - 64..=seq + 64).find(|at| {
        content["seq"] = (*at).into();
        is_hash(own, prev, &content)
    })
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.organization_id {
            Some(org) => write!(f, "organization {org}: ")?,
            None => f.write_str("instance: ")?,
        }
        if let Some(BrokenLine { seq, id, fault, detail }) = &self.broken {
            let id = id.map(|id| format!(" (id {id})")).unwrap_or_default();
            return write!(f, "BROKEN at line {seq}{id}: {fault:?}: {detail}");
        }
        if self.last_seq == 0 {
            f.write_str("no lines")?;
            return match self.unsealed {
                0 => Ok(()),
                unsealed => write!(f, "; {unsealed} not sealed yet"),
            };
        }
        let first = self.first_seq.unwrap_or(self.last_seq + 1);
        write!(
            f,
            "good: {} ({first} to {}), signed up to {}",
            crate::base::numerals::with_noun(self.lines, "line"),
            self.last_seq,
            self.signed_up_to
        )?;
        if self.begins_after_tombstone {
            write!(f, "; retention removed the lines before {first}")?;
        }
        if self.partial {
            write!(f, "; part of the log: lines before {first} are not included")?;
        }
        if self.unsealed > 0 {
            write!(f, "; {} not sealed yet", self.unsealed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
