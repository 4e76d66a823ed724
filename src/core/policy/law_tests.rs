//! The law of `explain`: its verdict matches casbin's for every cell, and its remedies work.

use proptest::prelude::*;

use super::{source::Sources, *};
use crate::base::{
    ids::OrgId,
    permission::{Permission, Role},
};

/// The permissions of each subject, according to the table.
fn table_says(policy: &Compiled, org: OrgId, subject: Subject, permission: Permission) -> bool {
    policy.permissions(Some(org), subject).contains(permission)
}

/// Compares the two for every cell of an organization.
fn agree(policy: &Compiled, org: OrgId) {
    for subject in Subject::all() {
        for permission in Permission::ALL {
            let explained = policy.explain(Some(org), subject, permission);
            let allowed = table_says(policy, org, subject, permission);
            assert_eq!(explained.allowed, allowed, "{}", explained.reason);
            let line = policy.deciding_line(org, subject, permission);
            assert_eq!(explained.decided_by.as_ref().map(ToString::to_string).as_deref(), line.as_deref());
            assert_eq!(explained.remedy.is_none(), allowed, "{}", explained.reason);
            for line in explained.decided_by.iter().chain(&explained.lines) {
                assert!(line.text.contains(permission.as_str()), "{line}");
            }
        }
    }
}

/// The built-in policy, with this as organization 7's file.
fn with_own(own: &str) -> Result<Compiled, Vec<LintProblem>> {
    let built_in = Compiled::build(Sources::embedded(), None).unwrap();
    built_in.with_org(OrgId(7), Some(own).filter(|own| !own.is_empty()))
}

#[test]
fn the_built_in_policy_is_explained_as_casbin_decides_it() {
    let policy =
        with_own("p, OPERATOR, 7, agent.create, deny\np, VIEWER, 7, approval.resolve, allow\n").unwrap();
    agree(&policy, OrgId(7));
    agree(&policy, OrgId(8));
    let why = policy.explain(Some(OrgId(7)), Subject::Role(Role::Viewer), Permission::AgentCreate);
    assert_eq!(
        why.decided_by.as_ref().unwrap().to_string(),
        "orgs/7.csv:1: p, OPERATOR, 7, agent.create, deny"
    );
    assert_eq!(why.inheritance, [Role::Operator, Role::Viewer]);
    let why = policy.explain(Some(OrgId(7)), Subject::Role(Role::Owner), Permission::ApprovalResolve);
    assert!(why.allowed);
    assert!(why.decided_by.unwrap().to_string().starts_with("policy.csv:"));
    let why = policy.explain(Some(OrgId(8)), Subject::Role(Role::Viewer), Permission::PolicyEdit);
    assert!(!why.remedy.as_ref().unwrap().within_ceiling, "{}", why.reason);
}

fn own_lines() -> impl Strategy<Value = String> {
    let line = (0..Role::ALL.len(), 0..Permission::ALL.len(), any::<bool>());
    prop::collection::vec(line, 0..12).prop_map(|lines| {
        let text = |(role, permission, allow): (usize, usize, bool)| {
            let (role, permission) = (Role::ALL[role], Permission::ALL[permission]);
            format!("# why\np, {role}, 7, {permission}, {}\n", if allow { "allow" } else { "deny" })
        };
        lines.into_iter().map(text).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_policy_is_explained_as_casbin_decides_it(own in own_lines()) {
        // A policy that the lint refuses is never in force.
        if let Ok(policy) = with_own(&own) {
            agree(&policy, OrgId(7));
        }
    }

    #[test]
    fn what_would_allow_it_allows_it(own in own_lines(), role in 0..4_usize, permission in 0..Permission::ALL.len()) {
        let Ok(policy) = with_own(&own) else { return Ok(()) };
        let (org, subject, permission) = (OrgId(7), Subject::Role(Role::ALL[role]), Permission::ALL[permission]);
        let why = policy.explain(Some(org), subject, permission);
        let Some(remedy) = why.remedy.filter(|remedy| remedy.within_ceiling) else { return Ok(()) };
        let mut lines: Vec<String> = own.lines().map(str::to_owned).collect();
        match (remedy.change, remedy.line) {
            (ChangeKind::Add, _) => lines.push(remedy.text.unwrap()),
            (_, Some(at)) => lines[usize::try_from(at).unwrap() - 1] = remedy.text.unwrap_or("# out".to_owned()),
            (_, None) => panic!("which line?"),
        }
        let (before, after) = (table_says(&policy, org, subject, permission), with_own(&(lines.join("\n") + "\n")));
        prop_assert!(!before);
        // Each change removes one obstacle; if there are several denials, the next one is then reported.
        if let Ok(after) = after {
            let next = after.explain(Some(org), subject, permission);
            prop_assert!(next.allowed || next.decided_by != why.decided_by, "{}", next.reason);
        }
    }
}
