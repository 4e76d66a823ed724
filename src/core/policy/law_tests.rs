//! The laws of the table, which matches casbin for every cell, and of `explain`: its verdict matches the table, and its
//! remedies work.

use std::collections::HashSet;

use casbin::{CoreApi, DefaultModel, Enforcer, StringAdapter};
use futures::FutureExt;
use proptest::prelude::*;

use super::{
    compile::compile,
    line::{Effect, Grant, SERVICE_TOKEN},
    rules::{OwnRules, Rules},
    source::{MODEL, Sources},
    *,
};
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
            assert!(explained.remedy.is_none() || !allowed, "{}", explained.reason);
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
    assert_eq!(why.remedy, None, "a denial for everyone is not lifted");
}

/// A text with the change of a remedy.
fn remedied(text: &str, remedy: Remedy) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    match (remedy.change, remedy.line) {
        (ChangeKind::Add, _) => lines.push(remedy.text.unwrap()),
        (_, Some(at)) => lines[usize::try_from(at).unwrap() - 1] = remedy.text.unwrap_or("# out".to_owned()),
        (_, None) => panic!("which line?"),
    }
    lines.join("\n") + "\n"
}

#[test]
fn what_would_allow_it_everywhere_is_accepted_and_allows_it() {
    let base = Sources::embedded().policy.text.unwrap();
    let built_in = Compiled::build(Sources::embedded(), None).unwrap();
    let mut remedies = 0;
    for subject in Subject::all() {
        for permission in Permission::ALL {
            let Some(remedy) = built_in.explain(None, subject, permission).remedy else { continue };
            assert!(!remedy.within_ceiling, "{remedy}");
            let dir = super::tests::folder(&[("policy.csv", &remedied(&base, remedy))]);
            let after = Compiled::read(dir.path(), &Given::new());
            let after = after.unwrap_or_else(|problems| panic!("{problems:?}"));
            assert!(
                after.permissions(None, subject).contains(permission),
                "{permission} {}",
                subject.as_str()
            );
            remedies += 1;
        }
    }
    assert!(remedies > 0);
}

#[test]
fn a_remedy_fails_no_expectation_and_lifts_no_general_denial() {
    let policy = with_own("e, VIEWER, contact.edit, deny\n").unwrap();
    for (subject, permission) in [
        (Subject::Role(Role::Viewer), Permission::AgentDelete),
        (Subject::Role(Role::Viewer), Permission::ContactEdit),
        (Subject::Role(Role::Viewer), Permission::OrganizationEdit),
        (Subject::ServiceToken, Permission::PolicyEdit),
    ] {
        let why = policy.explain(Some(OrgId(7)), subject, permission);
        assert_eq!((why.allowed, why.remedy), (false, None), "{}", why.reason);
    }
    let why = policy.explain(Some(OrgId(7)), Subject::Role(Role::Viewer), Permission::ContactView);
    assert_eq!(why.remedy.unwrap().text.unwrap(), "p, VIEWER, 7, contact.view, allow");
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
        prop_assert!(!table_says(&policy, org, subject, permission));
        let after = with_own(&remedied(&own, remedy));
        let after = after.map_err(|problems| TestCaseError::fail(format!("{problems:?}: {}", why.reason)))?;
        prop_assert!(table_says(&after, org, subject, permission), "{}", why.reason);
    }
}

/// The permissions that random lines name. Casbin asks about each on its own, so few of them make lines meet often.
const NAMED: [Permission; 3] = [Permission::AgentEdit, Permission::PolicyEdit, Permission::SkillEdit];

fn any_grants(subjects: usize) -> impl Strategy<Value = Vec<Grant>> {
    let grant = (0..subjects, prop::sample::select(NAMED.to_vec()), any::<bool>());
    prop::collection::vec(grant, 0..8).prop_map(|grants| {
        let (all, mut seen) = (Subject::all().collect::<Vec<_>>(), HashSet::new());
        let grants = grants.into_iter().map(|(subject, permission, allow)| {
            let effect = if allow { Effect::Allow } else { Effect::Deny };
            Grant { line: 1, subject: all[subject], permission, effect }
        });
        // The reader refuses a second line about the same cell.
        grants.filter(|grant| seen.insert((grant.subject, grant.permission))).collect()
    })
}

/// Each role may inherit from each lower one.
fn any_inheritance() -> impl Strategy<Value = Vec<(Role, Role)>> {
    let links: Vec<(Role, Role)> = Role::ALL
        .into_iter()
        .flat_map(|role| Role::ALL.map(|lower| (role, lower)))
        .filter(|(role, lower)| role.is_above(*lower))
        .collect();
    prop::sample::subsequence(links.clone(), 0..=links.len())
}

/// Rules as the files would have them, whether or not the lint would accept them.
fn any_rules() -> impl Strategy<Value = Rules> {
    let roles = Role::ALL.len();
    (any_inheritance(), any_grants(roles + 1), any_grants(roles), any_grants(roles)).prop_map(
        |(inherits, base, seven, eight)| {
            let own =
                |org, grants| OwnRules { org: OrgId(org), grants, expectations: Vec::new(), unread: None };
            Rules { inherits, base, orgs: vec![own(7, seven), own(8, eight)], expectations: Vec::new() }
        },
    )
}

/// An enforcer over all lines at once, as casbin itself reads them.
fn enforcer(rules: &Rules) -> Enforcer {
    let written = |domain: String, grants: &[Grant]| -> String {
        let line = |it: &Grant| {
            let (subject, effect) = (it.subject.as_str(), it.effect.as_str());
            format!("p, {subject}, {domain}, {}, {effect}\n", it.permission)
        };
        grants.iter().map(line).collect()
    };
    let links = rules.inherits.iter().map(|(role, lower)| format!("g, {role}, {lower}\n"));
    let own = rules.orgs.iter().map(|own| written(own.org.to_string(), &own.grants));
    let text: String = links.chain([written("*".to_owned(), &rules.base)]).chain(own).collect();
    let made = async {
        let model = DefaultModel::from_str(MODEL).await.unwrap();
        Enforcer::new(model, StringAdapter::new(text)).await.unwrap()
    };
    made.now_or_never().unwrap()
}

proptest! {
    // `tests/soak` tries 10,000.
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_table_of_any_rules_matches_casbin_in_every_cell(rules in any_rules()) {
        let (table, casbin) = (compile(&rules, None).unwrap(), enforcer(&rules));
        // 9 has no rules of its own.
        for org in [7, 8, 9].map(OrgId) {
            for subject in Role::ALL.map(Subject::Role) {
                for permission in NAMED {
                    let asked = (subject.as_str(), org.to_string(), permission.as_str());
                    let answer = casbin.enforce(asked).unwrap();
                    let cell = format!("{org} {} {permission}", subject.as_str());
                    prop_assert_eq!(table.allows(Some(org), subject, permission), answer, "{}", cell);
                }
                // No line names the others.
                let others = table.row(Some(org), subject).iter().filter(|it| !NAMED.contains(it));
                prop_assert_eq!(others.count(), 0);
            }
        }
        for permission in NAMED {
            let answer = casbin.enforce((SERVICE_TOKEN, "*", permission.as_str())).unwrap();
            prop_assert_eq!(table.token_cap().contains(permission), answer, "{}", permission);
        }
    }
}
