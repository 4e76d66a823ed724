//! Tries a candidate on recorded decisions: which calls of recent days it decides differently than the rules in force
//! now, and which of its lines decided no call. The outcome at the time doesn't matter: the rules may have changed since.

use std::collections::{BTreeMap, BTreeSet};

use async_graphql::SimpleObject;
use serde::Serialize;

use super::edit::run_in_cpu_pool;
use crate::{
    base::{
        ids::{Id, OrgId},
        permission::Permission,
        problem::Result,
    },
    core::{
        Core,
        access::decisions::{self, Decision, Outcome},
        policy::{Compiled, PolicyLine, Subject, org_file},
    },
};

/// Calls that the candidate decides differently than the policy in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, SimpleObject)]
#[graphql(name = "PolicyFlip")]
pub struct Flip {
    /// The organization they were made in.
    pub organization_id: OrgId,
    /// A role, or `service_token`.
    pub subject: String,
    /// The service token, if one made the calls.
    pub token_id: Option<Id>,
    /// The root field that was called.
    pub operation: String,
    /// The permission it requires.
    pub permission: Permission,
    /// Whether the candidate allows them. The policy in force does the opposite.
    pub allowed: bool,
    /// The number of calls.
    pub count: i64,
    /// The candidate's line that decides.
    pub decided_by: Option<PolicyLine>,
}

/// The calls that needed a permission, by subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, SimpleObject)]
#[graphql(name = "PolicyCellUse")]
pub struct CellUse {
    /// A role, or `service_token`.
    pub subject: String,
    /// The permission.
    pub permission: Permission,
    /// The number of allowed calls.
    pub allowed: i64,
    /// The number of calls refused by the policy in force at the time.
    pub refused: i64,
}

/// The effect a candidate would have had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, SimpleObject)]
#[graphql(name = "PolicySimulation")]
pub struct Simulation {
    /// The number of days examined.
    pub days: i64,
    /// The number of calls examined.
    pub calls: i64,
    /// The number of calls that the candidate decides differently than the policy in force.
    pub flipped: i64,
    /// The changed calls, most frequent first.
    pub flips: Vec<Flip>,
    /// The candidate's lines that didn't decide any call.
    pub unused_lines: Vec<PolicyLine>,
    /// The examined calls by subject and permission, as they were decided at the time.
    pub uses: Vec<CellUse>,
}

impl serde::Serialize for Id {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0)
    }
}

/// Tries a candidate on the decisions of the last `days`, for one organization and its own rules or for all.
pub async fn simulate(core: &Core, candidate: Compiled, org: Option<OrgId>, days: i64) -> Result<Simulation> {
    let (now, recorded) = (core.policy.now(), decisions::recorded(core, org, days).await?);
    let mut simulation = run_in_cpu_pool(core, org, move || replay(&now, &candidate, &recorded)).await?;
    simulation.days = days;
    if let Some(org) = org {
        let own = org_file(org);
        simulation.unused_lines.retain(|line| line.file == own);
    }
    Ok(simulation)
}

fn replay(now: &Compiled, candidate: &Compiled, recorded: &[Decision]) -> Simulation {
    let (mut flips, mut calls, mut used) = (BTreeMap::new(), 0, BTreeSet::new());
    for one in recorded {
        calls += one.count;
        let (org, subject) = (Some(one.org), one.role.map_or(Subject::ServiceToken, Subject::Role));
        let decided_by = candidate.decided_by(org, subject, one.permission);
        if let Some(line) = &decided_by {
            used.insert((line.file.clone(), line.line));
        }
        let allows = |policy: &Compiled| policy.permissions(org, subject).contains(one.permission);
        let allowed = allows(candidate);
        if one.outcome == Outcome::NotIssued || allowed == allows(now) {
            continue;
        }
        // The same calls may have ended both ways.
        let key = (one.org, subject.as_str(), one.token, one.operation.as_str(), one.permission);
        let flip = flips.entry(key).or_insert_with(|| Flip {
            organization_id: one.org,
            subject: subject.as_str().to_owned(),
            token_id: (one.token != 0).then_some(Id(one.token)),
            operation: one.operation.clone(),
            permission: one.permission,
            allowed,
            count: 0,
            decided_by,
        });
        flip.count += one.count;
    }
    let mut flips: Vec<Flip> = flips.into_values().collect();
    flips.sort_by_key(|flip| (std::cmp::Reverse(flip.count), flip.organization_id, flip.operation.clone()));
    let unused = candidate.lines().into_iter().filter(|line| !used.contains(&(line.file.clone(), line.line)));
    Simulation {
        days: 0,
        calls,
        flipped: flips.iter().map(|flip| flip.count).sum(),
        unused_lines: unused.collect(),
        flips,
        uses: uses(recorded),
    }
}

fn uses(recorded: &[Decision]) -> Vec<CellUse> {
    let mut counts: BTreeMap<(&str, Permission), (i64, i64)> = BTreeMap::new();
    for one in recorded {
        let subject = one.role.map_or(Subject::ServiceToken, Subject::Role);
        let (allowed, refused) = match one.outcome {
            Outcome::Allowed => (one.count, 0),
            Outcome::Refused => (0, one.count),
            Outcome::NotIssued => continue,
        };
        let sums = counts.entry((subject.as_str(), one.permission)).or_default();
        *sums = (sums.0 + allowed, sums.1 + refused);
    }
    counts
        .into_iter()
        .map(|((subject, permission), (allowed, refused))| CellUse {
            subject: subject.to_owned(),
            permission,
            allowed,
            refused,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{base::permission::Role, core::policy::Policy};

    #[test]
    fn only_calls_decided_differently_than_now_are_flipped() {
        let now = Policy::embedded().unwrap().now();
        let own = "p, OPERATOR, 7, agent.create, deny\np, VIEWER, 7, contact.view, allow\n";
        let candidate = now.with_org(OrgId(7), Some(own)).unwrap();
        let one = |org, role, permission, outcome, count| Decision {
            org: OrgId(org),
            role,
            token: i64::from(role.is_none()),
            operation: "op".to_owned(),
            permission,
            outcome,
            count,
        };
        let recorded = [
            one(7, Some(Role::Operator), Permission::AgentCreate, Outcome::Allowed, 5),
            one(8, Some(Role::Operator), Permission::AgentCreate, Outcome::Allowed, 6),
            one(7, Some(Role::Viewer), Permission::AgentView, Outcome::Allowed, 7),
            one(7, Some(Role::Viewer), Permission::AgentView, Outcome::Refused, 2),
            one(7, None, Permission::PolicyEdit, Outcome::NotIssued, 8),
            one(7, None, Permission::AgentCreate, Outcome::Allowed, 9),
            // Decided otherwise before.
            one(7, Some(Role::Operator), Permission::AgentCreate, Outcome::Refused, 1),
        ];
        let found = replay(&now, &candidate, &recorded);
        assert_eq!((found.calls, found.flipped, found.flips.len()), (38, 6, 1));
        assert_eq!(replay(&candidate, &candidate, &recorded).flips, [], "nothing changes");
        let used = |subject: &str, permission, allowed, refused| CellUse {
            subject: subject.to_owned(),
            permission,
            allowed,
            refused,
        };
        let uses = [
            used("OPERATOR", Permission::AgentCreate, 11, 1),
            used("VIEWER", Permission::AgentView, 7, 2),
            used("service_token", Permission::AgentCreate, 9, 0),
        ];
        assert_eq!(found.uses, uses);
        let flip = &found.flips[0];
        assert_eq!((flip.organization_id, flip.allowed, flip.count), (OrgId(7), false, 6));
        assert_eq!(
            flip.decided_by.as_ref().unwrap().to_string(),
            "orgs/7.csv:1: p, OPERATOR, 7, agent.create, deny"
        );
        let unused: Vec<i64> = found
            .unused_lines
            .iter()
            .filter(|line| line.file == "orgs/7.csv")
            .map(|line| line.line)
            .collect();
        assert_eq!(unused, [2]);
    }
}
