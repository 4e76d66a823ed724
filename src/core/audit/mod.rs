//! The audit log: every action and refusal, with its actor, credential and record.
//!
//! - this file: a line for a change, written in the transaction of the change, so that neither exists without the
//!   other.
//! - `line.rs`: the contents of a line, and how it is written.
//! - `changes.rs`: the changes of an edit. Secrets never get here; the log only says that they changed.
//! - `refusals.rs`: lines for refusals, collected in memory and written in the background; `required.rs`: the checks
//!   that refuse.
//! - `chain.rs`, `statement.rs`, `key.rs`: hashing of lines, signed statements, and the key that signs them.
//! - `seal.rs`: gives committed lines their places and signs checkpoints; `retention.rs`: removes old lines.
//! - `checkpoint_memory.rs`: whether the database's log can be believed before it is signed.
//! - `verify.rs`: checks that a chain is as it was sealed; `database.rs`: reads and exports chains.
//!
//! Lines are only ever added. Events outside any organization (accounts, bad credentials, unknown callers) go to the
//! log of the instance, which its operator reads.

mod chain;
mod changes;
mod checkpoint_memory;
mod database;
mod key;
mod line;
mod personal;
mod refusals;
mod required;
mod retention;
mod seal;
mod statement;
mod verify;

use std::{collections::HashSet, sync::Arc};

use parking_lot::Mutex;
use serde_json::Value;

pub use self::{
    chain::INSTANCE,
    changes::{CHANGED, changed, from_to},
    checkpoint_memory::{doubts, mend},
    database::{chains, export, verify},
    key::{AuditKey, PublicKey},
    personal::{Origin, PersonalEntry, record_personal},
    refusals::{
        Refusals, rate_limited, refused, refused_account, refused_action, refused_credential, write_refusals,
    },
    retention::retain,
    seal::{Lag, UNSEALED, checkpoint, floor, lag, resume, seal},
    verify::{BrokenLine, Fault, KnownLine, Report, Verifier},
};
use self::{checkpoint_memory::Trust, line::AuditLine, seal::Floor};
use crate::{
    base::{
        enums::{ChangeOp, RecordKind},
        ids::OrgId,
        permission::Permission,
    },
    core::{
        Core, Event,
        access::{Caller, Membership, Permit},
        policy::{NO_LINE, Subject},
        sealing::KeyFile,
        store::Tx,
    },
};

/// The state of the audit log in this process.
pub struct Recorder {
    pub(crate) refusals: Refusals,
    /// Signs checkpoints.
    pub(crate) key: Option<AuditKey>,
    /// False only when measuring the cost of the log.
    audited: bool,
    /// Where the sealer starts to look.
    floor: Floor,
    /// The last ends that this process signed.
    trust: Trust,
    /// The organizations whose log is being exported.
    pub(crate) exporting: Arc<Mutex<HashSet<OrgId>>>,
}

impl Recorder {
    /// Starts without refusals.
    #[must_use]
    pub fn new(keys: &KeyFile, audited: bool) -> Self {
        Self {
            refusals: Refusals::default(),
            key: AuditKey::derive(keys),
            audited,
            floor: Floor::default(),
            trust: Trust::new(keys),
            exporting: Arc::default(),
        }
    }

    /// The number of chains for which this process refuses to sign, because they do not continue the last signed
    /// statement.
    pub(crate) fn refused(&self) -> usize {
        self.trust.refused()
    }
}

/// An event for the log.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The root field of the schema: `createServer`.
    pub operation: &'static str,
    pub op: ChangeOp,
    pub kind: RecordKind,
    pub id: i64,
    /// The changes: an object.
    pub changes: Value,
}

/// Writes a line in the name of the transaction's caller when it commits, and notifies subscribers of the organization.
pub fn record(tx: &Tx, entry: Entry) {
    let Entry { kind, id, op, .. } = entry;
    tx.announce(Event::new(tx.scope.org, op, kind, id));
    if tx.scope.core.audit.audited {
        line::write(tx.connection(), [line_of(tx, entry)]);
    }
}

/// The line for an action of the transaction's caller.
fn line_of(tx: &Tx, entry: Entry) -> AuditLine {
    let (scope, request) = (&tx.scope, &tx.scope.request);
    let permission = match scope.core.access.permits.required_by(entry.operation) {
        Some(Permit::InOrganization { permission, .. }) => Some(permission),
        _ => None,
    };
    let decided_by = permission.and_then(|permission| {
        deciding_line(&scope.core, scope.org, &scope.membership, &request.caller, permission)
    });
    let line = AuditLine {
        organization_id: Some(scope.org.0),
        permission: permission.map(|permission| permission.as_str().into()),
        decided_by,
        target_kind: Some(entry.kind.noun().into()),
        target_id: Some(entry.id),
        changes: entry.changes,
        ..AuditLine::new(entry.operation, tx.now)
    };
    line.by(&request.caller).from(request.ip, &request.id)
}

/// The policy line that admits or refuses the caller; `None` for the operator, to whom no policy applies.
fn deciding_line(
    core: &Core,
    org: OrgId,
    membership: &Membership,
    caller: &Caller,
    permission: Permission,
) -> Option<String> {
    let subject = match caller {
        Caller::Token(token) if !token.permissions.contains(permission) => {
            return Some("the token's own list of permissions".into());
        }
        Caller::Token(_) => Subject::ServiceToken,
        _ => Subject::Role(membership.role?),
    };
    let line = core.policy.deciding_line(org, subject, permission);
    Some(line.map_or_else(|| NO_LINE.to_owned(), |line| line.to_string()))
}
