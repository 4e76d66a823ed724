//! Refusals: counted in memory, written in batches in the background.
//!
//! A refusal costs its request a map lookup. Repeated refusals of the same actor from the same address are one line
//! with a count: the first of a burst is written at the next run, the rest once a minute. So a flood of any kind
//! writes no more than the map holds, once a minute; refusals beyond that are counted, and the count gets a line
//! as well. Unknown callers have a separate quota, so they can't crowd out refusals of members.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    Entry, deciding_line,
    line::{self, AuditLine, Word},
    line_of,
};
use crate::{
    base::{
        enums::{ActorKind, AuditOutcome},
        ids::{AgentId, OrgId, UserId},
        network::client_network,
        permission::Permission,
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::access::Permit,
    core::{
        Core, Request,
        access::{Caller, Membership},
        store::Tx,
    },
};

/// The maximum number of distinct refusals of known callers kept at a time: callers could fill the memory and the log
/// with them.
const MAX_KNOWN: usize = 1_024;
/// The same for callers without a valid credential.
const MAX_UNKNOWN: usize = 128;
/// The same for one known caller.
const MAX_OF_ONE: usize = 32;

/// Refusals that have not been written yet.
#[derive(Default)]
pub struct Refusals {
    kept: Mutex<PendingRefusals>,
    /// How many did not fit and have not been reported yet.
    lost: AtomicU64,
}

#[derive(Default)]
struct PendingRefusals {
    lines: HashMap<Key, Burst>,
    unknown: usize,
    of_one: HashMap<Actor, usize>,
}

type Actor = (ActorKind, Option<i64>);

/// Refusals with the same key are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    org: Option<OrgId>,
    actor: Actor,
    credential: Option<i64>,
    operation: String,
    /// The permission that was missing, or else the one that the operation requires.
    permission: Option<Permission>,
    /// The problem's code, or the reason in words.
    why: Word,
    target: Option<i64>,
    ip: Option<IpAddr>,
}

impl Key {
    fn is_unknown(&self) -> bool {
        self.actor.0 == ActorKind::Anonymous
    }
}

/// Repeats of the same refusal.
struct Burst {
    /// The line of the first one.
    line: AuditLine,
    first: Timestamp,
    last: Timestamp,
    /// How many have not been written.
    count: i64,
    /// When to write them.
    due: Timestamp,
}

impl Refusals {
    fn add(&self, key: Key, now: Timestamp, line: impl FnOnce() -> AuditLine) {
        let mut kept = self.kept.lock();
        if let Some(burst) = kept.lines.get_mut(&key) {
            if burst.count == 0 {
                (burst.line, burst.first) = (line(), now);
            }
            burst.count += 1;
            burst.last = now;
            return;
        }
        if !kept.make_room(&key) {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        kept.lines.insert(key, Burst { line: line(), first: now, last: now, count: 1, due: now });
    }

    /// Takes the refusals that are due; with `all`, every one.
    fn take_due(&self, now: Timestamp, all: bool) -> Vec<(Key, AuditLine, i64)> {
        let mut kept = self.kept.lock();
        let mut due = Vec::new();
        kept.lines.retain(|key, burst| {
            if burst.due > now && !all {
                return true;
            }
            if burst.count == 0 {
                return false;
            }
            let line = AuditLine {
                at: burst.first,
                last_at: (burst.last != burst.first).then_some(burst.last),
                count: burst.count,
                ..burst.line.clone()
            };
            due.push((key.clone(), line, burst.count));
            // Repeats until then are written as one line.
            (burst.count, burst.due) = (0, now.plus(Duration::from_mins(1)));
            true
        });
        kept.recount();
        due
    }

    /// Puts back lines that the database did not accept, to be written with the next ones.
    fn put_back(&self, now: Timestamp, lines: Vec<(Key, AuditLine, i64)>) {
        let mut kept = self.kept.lock();
        for (key, line, count) in lines {
            if let Some(burst) = kept.lines.get_mut(&key) {
                burst.first = line.at;
                burst.last = burst.last.max(burst.first);
                burst.count += count;
                burst.due = now;
                burst.line = line;
            }
        }
    }
}

impl PendingRefusals {
    fn make_room(&mut self, key: &Key) -> bool {
        if key.is_unknown() {
            let room = self.unknown < MAX_UNKNOWN;
            self.unknown += usize::from(room);
            return room;
        }
        if self.lines.len() - self.unknown >= MAX_KNOWN {
            return false;
        }
        let of_one = self.of_one.entry(key.actor).or_default();
        let room = *of_one < MAX_OF_ONE;
        *of_one += usize::from(room);
        room
    }

    fn recount(&mut self) {
        self.unknown = self.lines.keys().filter(|key| key.is_unknown()).count();
        self.of_one.clear();
        for key in self.lines.keys().filter(|key| !key.is_unknown()) {
            *self.of_one.entry(key.actor).or_default() += 1;
        }
    }
}

/// Records that a caller was refused `operation`. Skips errors that are not refusals (an invalid value, a state that
/// does not allow the call) and callers without any credential.
pub fn refused(
    request: &Request,
    operation: &str,
    inside: Option<(OrgId, Option<&Membership>)>,
    problem: &Problem,
) {
    let refusals =
        [Code::NotAMember, Code::PermissionDenied, Code::EmailNotConfirmed, Code::PlanLimitReached];
    if !refusals.contains(&problem.code) {
        return;
    }
    let (core, caller) = (&request.core, &request.caller);
    if matches!(caller, Caller::Anonymous) {
        return;
    }
    // A non-member gets no lines in the organization's log: they must be able neither to place a name there nor to fill
    // it.
    let stranger = problem.code == Code::NotAMember;
    let (org, membership) = (inside.map(|(org, _)| org), inside.and_then(|(_, membership)| membership));
    let target = org.filter(|_| stranger);
    let org = org.filter(|_| !stranger);
    let missing = missing(problem);
    let permission = missing.or_else(|| required(core, operation));
    let key = Key {
        org,
        actor: (caller.kind(), caller.actor()),
        credential: caller.audited_credential().1,
        operation: operation.to_owned(),
        permission,
        why: problem.code.as_str().into(),
        target: target.map(|org| org.0),
        ip: request.ip.map(client_network),
    };
    let now = core.clock.now();
    core.audit.refusals.add(key, now, || {
        let line = AuditLine {
            organization_id: org.map(|org| org.0),
            permission: permission.map(|permission| permission.as_str().into()),
            // If another permission was missing, the caller holds the one that the operation requires: its line would
            // be one that allows.
            decided_by: membership.zip(org).zip(missing).and_then(|((membership, org), missing)| {
                deciding_line(core, org, membership, caller, missing)
            }),
            outcome: AuditOutcome::Refused.as_str().into(),
            code: Some(problem.code.as_str().into()),
            target_kind: target.map(|_| "organization".into()),
            target_id: target.map(|org| org.0),
            ..AuditLine::new(operation.to_owned(), now)
        };
        line.by(caller).from(request.ip, &request.id)
    });
}

/// The permission that the problem names.
fn missing(problem: &Problem) -> Option<Permission> {
    problem.details.get("permission").and_then(serde_json::Value::as_str)?.parse().ok()
}

fn required(core: &Core, operation: &str) -> Option<Permission> {
    match core.access.permits.required_by(operation)? {
        Permit::InOrganization { permission, .. } => Some(permission),
        Permit::Anyone | Permit::SignedIn | Permit::Member => None,
    }
}

/// Records that an agent was refused an action without asking a person. Further refusals for the same reason within the
/// window are only counted, because an agent can try as often as it likes.
pub fn refused_action(tx: &Tx, agent: AgentId, reason: &str, entry: Entry) {
    let core = &tx.scope.core;
    if !core.audit.audited {
        return;
    }
    let key = Key {
        org: Some(tx.scope.org),
        // Its host reports it, but each agent has a quota of its own.
        actor: (ActorKind::System, Some(agent.0)),
        credential: None,
        operation: entry.operation.to_owned(),
        permission: None,
        why: reason.to_owned().into(),
        target: None,
        ip: None,
    };
    core.audit.refusals.add(key, tx.now, || line_of(tx, entry));
}

/// Records a refused sign-in or similar. `user` is the owner of the account, if it exists; the input itself is not
/// logged.
pub fn refused_account(
    core: &Core,
    operation: &'static str,
    user: Option<UserId>,
    code: Code,
    (ip, request_id): (Option<IpAddr>, &str),
) {
    let key = Key {
        org: None,
        actor: (ActorKind::Anonymous, None),
        credential: None,
        operation: operation.to_owned(),
        permission: None,
        why: code.as_str().into(),
        target: user.map(|id| id.0),
        ip: ip.map(client_network),
    };
    let now = core.clock.now();
    core.audit.refusals.add(key, now, || {
        let line = AuditLine {
            actor_kind: ActorKind::Anonymous.as_str().into(),
            outcome: AuditOutcome::Refused.as_str().into(),
            code: Some(code.as_str().into()),
            target_kind: user.map(|_| "user".into()),
            target_id: user.map(|id| id.0),
            ..AuditLine::new(operation, now)
        };
        line.from(ip, request_id)
    });
}

/// Records that a caller, or an address without a credential, hit the rate limit. The operation is not known yet.
pub fn rate_limited(core: &Core, caller: &Caller, ip: Option<IpAddr>, request_id: &str) {
    let org = match caller {
        Caller::Token(token) => Some(token.org),
        _ => None,
    };
    let key = Key {
        org,
        actor: (caller.kind(), caller.actor()),
        credential: caller.audited_credential().1,
        operation: "request".to_owned(),
        permission: None,
        why: Code::RateLimited.as_str().into(),
        target: None,
        ip: ip.map(client_network),
    };
    let now = core.clock.now();
    core.audit.refusals.add(key, now, || {
        let line = AuditLine {
            organization_id: org.map(|org| org.0),
            outcome: AuditOutcome::Refused.as_str().into(),
            code: Some(Code::RateLimited.as_str().into()),
            ..AuditLine::new("request", now)
        };
        line.by(caller).from(ip, request_id)
    });
}

/// Records an invalid credential. The credential itself is not logged: it may be one letter off a valid one.
pub fn refused_credential(core: &Core, problem: &Problem, ip: Option<IpAddr>, request_id: &str) {
    if matches!(problem.code, Code::Unauthenticated | Code::TokenExpired) {
        refused_account(core, "authenticate", None, problem.code, (ip, request_id));
    }
}

/// Writes the refusals that are due, or all of them when the service ends. Returns the number of lines.
///
/// # Errors
/// The database did not accept them; they are kept for the next time.
pub async fn write_refusals(core: &Core, all: bool) -> Result<usize> {
    let now = core.clock.now();
    let mut lines = core.audit.refusals.take_due(now, all);
    let lost = core.audit.refusals.lost.swap(0, Ordering::Relaxed);
    if lines.is_empty() && lost == 0 {
        return Ok(0);
    }
    let written = insert(core, &lines, lost).await;
    if written.is_err() {
        core.audit.refusals.lost.fetch_add(lost, Ordering::Relaxed);
        core.audit.refusals.put_back(now, std::mem::take(&mut lines));
    }
    written
}

async fn insert(core: &Core, lines: &[(Key, AuditLine, i64)], lost: u64) -> Result<usize> {
    let mut rows: Vec<AuditLine> = lines.iter().map(|(_, line, _)| line.clone()).collect();
    if lost > 0 {
        rows.push(AuditLine {
            outcome: AuditOutcome::Failed.as_str().into(),
            count: i64::try_from(lost).unwrap_or(i64::MAX),
            ..AuditLine::new("auditOverflow", core.clock.now())
        });
    }
    let written = rows.len();
    let tx = core.db.begin().await?;
    line::write(&tx, rows);
    tx.commit().await?;
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(actor: Option<i64>, operation: &str) -> Key {
        let kind = if actor.is_some() { ActorKind::User } else { ActorKind::Anonymous };
        Key {
            org: None,
            actor: (kind, actor),
            credential: None,
            operation: operation.to_owned(),
            permission: None,
            why: Code::PermissionDenied.as_str().into(),
            target: None,
            ip: None,
        }
    }

    fn add(refusals: &Refusals, key: Key, at: i64) {
        refusals.add(key, Timestamp(at), || AuditLine::new("a", Timestamp(at)));
    }

    #[test]
    fn a_burst_is_a_line_at_once_and_one_a_minute() {
        let refusals = Refusals::default();
        let take = |at, all| -> Vec<i64> {
            refusals.take_due(Timestamp(at), all).into_iter().map(|(.., count)| count).collect()
        };
        (0..5).for_each(|at| add(&refusals, key(Some(1), "a"), at));
        assert_eq!(take(5, false), [5]);
        (6..100).for_each(|at| add(&refusals, key(Some(1), "a"), at));
        assert_eq!(take(1_000, false), [0_i64; 0]);
        assert_eq!(take(60_005, false), [94]);
        add(&refusals, key(Some(1), "a"), 60_006);
        assert_eq!(take(60_007, true), [1], "the end of the service waits for no window");
        assert_eq!(take(200_000, false), [0_i64; 0]);
        assert!(refusals.kept.lock().lines.is_empty(), "what is over is forgotten");
    }

    #[test]
    fn a_later_line_shows_the_first_of_its_own() {
        let refusals = Refusals::default();
        let shown = |at| refusals.take_due(Timestamp(at), true).remove(0).1.operation;
        for (at, operation) in [(1, "a"), (2, "b"), (3, "c")] {
            refusals.add(key(Some(1), "x"), Timestamp(at), || AuditLine::new(operation, Timestamp(at)));
            assert_eq!(shown(at), operation);
        }
    }

    #[test]
    fn no_caller_crowds_out_another() {
        let refusals = Refusals::default();
        for n in 0..10_000 {
            add(&refusals, key(None, &format!("o{n}")), 1);
            add(&refusals, key(Some(7), &format!("o{n}")), 1);
        }
        add(&refusals, key(Some(8), "a"), 1);
        assert_eq!(refusals.lost.load(Ordering::Relaxed) as usize, 20_000 - MAX_UNKNOWN - MAX_OF_ONE);
        let taken = refusals.take_due(Timestamp(1), false);
        assert_eq!(taken.len(), MAX_UNKNOWN + MAX_OF_ONE + 1);
        assert!(taken.iter().any(|(key, ..)| key.actor.1 == Some(8)));
    }

    #[test]
    fn what_the_database_did_not_take_is_written_later() {
        let refusals = Refusals::default();
        add(&refusals, key(Some(1), "a"), 1);
        let lines = refusals.take_due(Timestamp(2), false);
        add(&refusals, key(Some(1), "a"), 3);
        refusals.put_back(Timestamp(4), lines);
        let again = refusals.take_due(Timestamp(4), false);
        assert_eq!(again[0].2, 2);
        assert_eq!(again[0].1.at, Timestamp(1));
    }
}
