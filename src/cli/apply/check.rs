//! Checks a plan as a whole, before anything changes.

use std::collections::BTreeSet;

use super::{
    existing::Existing,
    inputs::Inputs,
    kinds::Kind,
    plan::{Plan, Work},
    records::Fields,
    wanted::{FileLine, Mistakes, Wanted},
};
use crate::{base::permission::Permission, core::access::Permit, resolvers::Catalogue};

/// Checks inputs by the schema. Returns the caller's missing permissions, with the lines of the files that need them.
pub fn check(
    plan: &Plan,
    catalogue: &Catalogue,
    existing: &Existing,
    wanted: &Wanted,
    mistakes: &mut Mistakes,
) -> Vec<(Option<FileLine>, String)> {
    let mut missing = Vec::new();
    for step in &plan.steps {
        let mut inputs = Inputs::new(catalogue, &existing.names, true);
        let (changed, calls) = match &step.work {
            Work::Create { kind, key, fields } => {
                (Some((*kind, key, fields)), inputs.create(kind.about(), fields))
            }
            Work::Update { kind, key, fields } => {
                (Some((*kind, key, fields)), inputs.update(kind.about(), fields))
            }
            _ => (None, Vec::new()),
        };
        if let Some(record) = changed.and_then(|(kind, key, _)| wanted.find(kind, key)) {
            for (pointer, what) in inputs.wrong {
                mistakes.at(&record.place(&pointer), what);
            }
        }
        if let (Work::Share { members, .. }, Some(place)) = (&step.work, &step.place) {
            for address in members.iter().filter(|address| existing.names.member(address).is_none()) {
                mistakes.at(place, format!("no member has the address {address}"));
            }
        }
        let sent = calls.iter().map(|call| call.operation).chain(operations(&step.work));
        let needed = needed(sent, changed.map(|(kind, _, fields)| (kind, fields)), catalogue);
        for permission in needed.iter().filter(|needed| !existing.permissions.contains(**needed)) {
            let what = format!("to {} needs {permission}, which the caller does not have", step.title);
            missing.push((step.place.clone(), what));
        }
    }
    missing
}

/// The mutations that it consists of, except those that take inputs of records.
fn operations(work: &Work) -> Vec<&'static str> {
    match work {
        Work::Create { .. } | Work::Update { .. } => Vec::new(),
        Work::Assign { kind, .. } => vec![kind.about().assign],
        Work::Share { .. } => vec!["setCredentialMembers"],
        Work::Origins { .. } => vec!["addWhitelistOrigin", "removeWhitelistOrigin"],
        Work::AllowHost { .. } => vec!["allowHost"],
        Work::RemoveHost { .. } => vec!["removeAllowedHost"],
        Work::Remove { kind, .. } => vec![kind.about().remove],
        Work::Policy { .. } => vec!["editPolicy"],
        Work::Restart { .. } => vec!["restartAgent"],
    }
}

/// The permissions that operations need, and those that the changed fields need in addition.
fn needed<'o>(
    operations: impl Iterator<Item = &'o str>,
    changed: Option<(Kind, &Fields)>,
    catalogue: &Catalogue,
) -> BTreeSet<&'static str> {
    let permit = |operation: &str| match catalogue.root_field(operation)?.permit {
        Permit::InOrganization { permission, .. } => Some(permission),
        Permit::Anyone | Permit::SignedIn | Permit::Member => None,
    };
    let of_fields = changed.into_iter().flat_map(|(kind, fields)| {
        let changed = kind.about().fields.iter().filter(|field| fields.contains_key(field.key));
        changed.filter_map(|field| field.needs)
    });
    operations.filter_map(permit).chain(of_fields).map(Permission::as_str).collect()
}
