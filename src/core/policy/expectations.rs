//! Expectations: required results of the policy, written next to it and checked before any edit takes effect.
//!
//! `expectations.csv` has the operator's, one per line: `<who>, <where>, <permission>, <allow or deny>`. *Where* is `*`
//! (every organization, no matter what its own file says), `default` (organizations without rules of their own) or an
//! organization's id. A policy that fails one is refused as a whole, like one that can't be read.
//!
//! An organization's own are the `e` lines of its rules: `e, <who>, <permission>, <allow or deny>`. An edit that fails
//! one is refused. But they never keep rules out of force, so that no organization can keep the operator from changing
//! `policy.csv`: one that fails there is a warning.

use std::collections::HashMap;

use serde::Serialize;

use super::{
    compile::Table,
    explain::{Book, number},
    line::{Effect, LintProblem, POLICY_CSV, Subject, numbered, org_file},
    reader::{effect_of, noted, shown, subject_of, unknown, without_mark, wrong_count},
    rules::{Expectation, ExpectationScope, Rules},
    source::{File, Sources},
};
use crate::base::{
    ids::{MAX_ID, OrgId},
    permission::Permission,
};

/// An expectation of an organization's own rules, and whether it is met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwnExpectation {
    /// The number of its line, starting at 1.
    pub line: i64,
    /// A role, or `service_token` for the most that a token can have.
    pub subject: String,
    pub permission: Permission,
    /// The expected result.
    pub allowed: bool,
    pub met: bool,
}

/// Reads the file, if there is one.
pub(super) fn read(sources: &Sources, problems: &mut Vec<LintProblem>) -> Vec<Expectation> {
    let Some(file) = &sources.expectations else { return Vec::new() };
    let text = match &file.text {
        Ok(text) => text,
        Err(reason) => {
            problems.push(LintProblem::of_file(&file.name, reason.as_str()));
            return Vec::new();
        }
    };
    let (mut read, mut seen) = (Vec::new(), Seen::default());
    for (line, text) in numbered(text) {
        match read_line(line, text).and_then(|one| seen.require_new(one)) {
            Ok(one) => read.push(one),
            Err(reasons) => {
                problems.extend(reasons.into_iter().map(|reason| LintProblem::at(&file.name, line, reason)));
            }
        }
    }
    read
}

fn read_line(line: usize, text: &str) -> Result<Expectation, Vec<String>> {
    without_mark(text)?;
    if let Some(at) = text.find('#') {
        let comment = shown(&text[at..]);
        return Err(vec![format!(
            "a comment must be on a line of its own, not at the end of one: \"{comment}\""
        )]);
    }
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    let [subject, place, permission, effect] = fields[..] else {
        let form = "<who>, <where>, <permission>, <effect>";
        return Err(vec![wrong_count(form, 4, fields.len())]);
    };
    let one = read_fields(line, [subject, permission, effect], place_of(place))?;
    if one.subject == Subject::ServiceToken && one.place != ExpectationScope::Everywhere {
        return Err(vec!["the cap of service_token applies everywhere: write *".to_owned()]);
    }
    Ok(one)
}

/// Reads the fields of a line. The place is not a field of an organization's own.
pub(super) fn read_fields(
    line: usize,
    [subject, permission, effect]: [&str; 3],
    place: Result<ExpectationScope, String>,
) -> Result<Expectation, Vec<String>> {
    let mut reasons = Vec::new();
    let subject = noted(subject_of(subject), &mut reasons);
    let place = noted(place, &mut reasons);
    let permission = noted(permission.parse::<Permission>().map_err(unknown), &mut reasons);
    let effect = noted(effect_of(effect), &mut reasons);
    match (subject, place, permission, effect) {
        (Some(subject), Some(place), Some(permission), Some(effect)) => {
            Ok(Expectation { line, subject, place, permission, effect })
        }
        _ => Err(reasons),
    }
}

/// Where an expectation was last seen, by its fields without the effect.
#[derive(Default)]
pub(super) struct Seen(HashMap<(Subject, ExpectationScope, Permission), (usize, Effect)>);

impl Seen {
    /// Refuses an expectation that an earlier line repeats or contradicts.
    pub fn require_new(&mut self, one: Expectation) -> Result<Expectation, Vec<String>> {
        match self.0.insert((one.subject, one.place, one.permission), (one.line, one.effect)) {
            None => Ok(one),
            Some((first, effect)) if effect == one.effect => Err(vec![format!("duplicates line {first}")]),
            Some((first, effect)) => {
                Err(vec![format!("contradicts line {first}, which expects {}", effect.as_str())])
            }
        }
    }
}

fn place_of(text: &str) -> Result<ExpectationScope, String> {
    match text {
        "*" => Ok(ExpectationScope::Everywhere),
        "default" => Ok(ExpectationScope::Default),
        _ => text
            .parse()
            .ok()
            .filter(|id| (1..=MAX_ID).contains(id))
            .map(|id| ExpectationScope::Organization(OrgId(id)))
            .ok_or_else(|| {
                format!("unknown place \"{}\": must be *, default or an organization's id", shown(text))
            }),
    }
}

/// The operator's expectations that the table fails, each with the line that decides otherwise and the organization
/// whose rules are at fault.
pub(super) fn unmet(table: &Table, book: &Book) -> Vec<LintProblem> {
    let Some(File { name, .. }) = &book.sources.expectations else { return Vec::new() };
    let mut problems = Vec::new();
    for one in &book.rules.expectations {
        for org in places(one.place, table).filter(|org| !is_met(one, *org, table)) {
            problems.push(LintProblem::at(name, one.line, shortfall(one, org, book)).in_org(org));
        }
    }
    problems
}

/// The expectations of organizations' own rules that the table fails, in the same words.
pub(super) fn unmet_own(table: &Table, book: &Book) -> Vec<LintProblem> {
    let mut problems = Vec::new();
    for own in &book.rules.orgs {
        let (org, file) = (Some(own.org), org_file(own.org));
        for one in own.expectations.iter().filter(|one| !is_met(one, org, table)) {
            problems.push(LintProblem::at(&file, one.line, shortfall(one, org, book)).in_org(org));
        }
    }
    problems
}

/// All expectations of an organization's own rules.
pub(super) fn results(table: &Table, rules: &Rules, org: OrgId) -> Vec<OwnExpectation> {
    let own = rules.of_org(org).map_or(&[][..], |own| own.expectations.as_slice());
    let result = |one: &Expectation| OwnExpectation {
        line: number(one.line),
        subject: one.subject.as_str().to_owned(),
        permission: one.permission,
        allowed: one.effect == Effect::Allow,
        met: is_met(one, Some(org), table),
    };
    own.iter().map(result).collect()
}

fn is_met(one: &Expectation, org: Option<OrgId>, table: &Table) -> bool {
    table.allows(org, one.subject, one.permission) == (one.effect == Effect::Allow)
}

fn places(place: ExpectationScope, table: &Table) -> Box<dyn Iterator<Item = Option<OrgId>> + '_> {
    match place {
        ExpectationScope::Default => Box::new([None].into_iter()),
        ExpectationScope::Organization(org) => Box::new([Some(org)].into_iter()),
        ExpectationScope::Everywhere => {
            Box::new([None].into_iter().chain(table.overridden().into_iter().map(Some)))
        }
    }
}

fn shortfall(one: &Expectation, org: Option<OrgId>, book: &Book) -> String {
    let (who, permission) = (one.subject.as_str(), one.permission);
    let place = match (org, one.subject) {
        (Some(org), _) => format!(" in organization {org}"),
        (None, Subject::ServiceToken) => String::new(),
        (None, Subject::Role(_)) => " in organizations without rules of their own".to_owned(),
    };
    let may = if one.effect == Effect::Allow { "may not" } else { "may" };
    let why = match book.deciding_line(org, one.subject, permission) {
        Some(line) => format!("{}:{} decides: {}", line.file, line.line, line.text),
        None => format!("no line in {POLICY_CSV} allows it"),
    };
    format!("expected {} of {permission} to {who}, who {may}{place}: {why}", one.effect.as_str())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::super::{Compiled, Given, LintProblem, Policy, Subject, check, check_with, tests::folder};
    use crate::base::{
        ids::OrgId,
        permission::{Permission, Role},
    };

    const ORG: OrgId = OrgId(7);
    const RULE: &str = "p, VIEWER, 7, skill.edit, allow\n";

    fn edited(text: &str) -> Result<Compiled, Vec<LintProblem>> {
        Policy::embedded().unwrap().now().with_org(ORG, Some(text))
    }

    fn problems(text: &str) -> Vec<String> {
        edited(text).err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_bad_expectation_of_an_organization_is_named() {
        for (line, reason) in [
            ("e, VIEWER, agent.view", "3 fields instead of 4: e, <who>, <permission>, <effect>"),
            ("e, VIEWER, 7, agent.view, allow", "5 fields instead of 4: e, <who>, <permission>, <effect>"),
            ("e, VEIWER, agent.view, allow", r#"unknown role "VEIWER" (did you mean "VIEWER"?)"#),
            (
                "e, VIEWER, agent.edti, deny",
                r#"unknown permission "agent.edti" (did you mean "agent.edit"?)"#,
            ),
            ("e, VIEWER, agent.view, alow", r#"unknown effect "alow" (did you mean "allow"?)"#),
            ("x, VIEWER, agent.view, allow", r#"unknown kind of line "x": must be p or e"#),
        ] {
            let found = problems(&format!("{RULE}{line}\n"));
            assert_eq!(found, [format!("orgs/7.csv:2: {reason}")], "{line}");
        }
        let expected = "e, VIEWER, agent.view, allow\n";
        let twice = format!("{expected}{expected}e, VIEWER, agent.view, deny\n");
        let reasons = ["2: duplicates line 1", "3: contradicts line 2, which expects allow"];
        assert_eq!(problems(&twice), reasons.map(|reason| format!("orgs/7.csv:{reason}")));
        let dir = folder(&[]);
        let policy = dir.path().join("policy.csv");
        fs::write(&policy, fs::read_to_string(&policy).unwrap() + expected).unwrap();
        let found = check(dir.path()).problems;
        assert_eq!(
            found[0].reason,
            "e lines are only allowed in an organization's own rules: use expectations.csv"
        );
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn an_edit_that_fails_its_own_expectation_is_refused() {
        let met = "e, OWNER, skill.edit, allow\ne, service_token, policy.edit, deny\n";
        assert_eq!(problems(&format!("{RULE}{met}")), [] as [&str; 0]);
        assert_eq!(
            problems(&format!("{met}{RULE}e, VIEWER, skill.edit, deny\ne, VIEWER, agent.edit, allow\n")),
            [
                "orgs/7.csv:4: expected deny of skill.edit to VIEWER, who may in organization 7: orgs/7.csv:3 decides: \
                 p, VIEWER, 7, skill.edit, allow",
                "orgs/7.csv:5: expected allow of agent.edit to VIEWER, who may not in organization 7: no line in \
                 policy.csv allows it",
            ]
        );
        // Together with an expectation of the operator.
        let both = problems("e, VIEWER, agent.delete, deny\np, VIEWER, 7, agent.delete, allow\n");
        assert_eq!(both.len(), 2, "{both:?}");
        assert!(both[0].starts_with("expectations.csv:") && both[1].starts_with("orgs/7.csv:1:"), "{both:?}");
    }

    #[test]
    fn an_expectation_never_blocks_a_change_by_the_operator() {
        let own = format!("{RULE}e, OPERATOR, contact.view, allow\n");
        for is_file in [true, false] {
            let dir = folder(&[]);
            let given = if is_file {
                fs::write(dir.path().join("orgs/7.csv"), &own).unwrap();
                Given::new()
            } else {
                Given::from([(ORG, own.as_str().into())])
            };
            let started = || {
                let policy = Policy::load(dir.path()).unwrap();
                policy.set_given(given.iter().map(|(org, text)| (*org, Some(text.to_string()))));
                policy
            };
            let policy = started();
            assert_eq!(policy.status().warnings, []);
            let file = dir.path().join("policy.csv");
            let text = fs::read_to_string(&file).unwrap();
            let general = "p, OPERATOR, *, contact.view, allow";
            fs::write(&file, text.replace(general, "p, ADMIN, *, contact.view, allow")).unwrap();
            assert_eq!(policy.reload(), Ok(()));
            for policy in [&policy, &started()] {
                assert!(policy.allows(ORG, Role::Viewer, Permission::SkillEdit), "the rules stay in force");
                assert!(!policy.allows(ORG, Role::Operator, Permission::ContactView), "the operator wins");
                let warnings = policy.status().warnings;
                assert_eq!((warnings.len(), policy.status().problems), (1, Vec::new()));
                let words = "orgs/7.csv:2: expected allow of contact.view to OPERATOR, who may not";
                assert!(warnings[0].to_string().starts_with(words), "{warnings:?}");
                let report = check_with(dir.path(), &given);
                assert_eq!((report.ok, report.warnings), (true, warnings));
            }
            // The next edit has to repair it; other organizations' edits don't.
            let now = policy.now();
            assert!(now.with_org(ORG, Some(&format!("{own}# more\n"))).is_err());
            assert!(now.with_org(ORG, Some(RULE)).is_ok());
            assert!(now.with_org(OrgId(8), Some("p, VIEWER, 8, skill.edit, allow\n")).is_ok());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn expectations_decide_nothing_and_hold_if_the_table_says_so(
            lines in prop::collection::hash_map((0..5_usize, 0..Permission::ALL.len()), any::<bool>(), 0..8),
        ) {
            let subjects: Vec<Subject> = Subject::all().collect();
            let mut text = RULE.to_owned();
            for ((subject, permission), allow) in lines {
                let (subject, permission) = (subjects[subject].as_str(), Permission::ALL[permission]);
                text += &format!("e, {subject}, {permission}, {}\n", if allow { "allow" } else { "deny" });
            }
            let now = Policy::embedded().unwrap().now();
            let (plain, draft) = (edited(RULE).unwrap(), now.with_draft(ORG, Some(&text)).unwrap());
            prop_assert!(draft.changes(&plain).is_empty());
            let mut unmet = 0;
            for one in draft.expectations(ORG) {
                let subject = subjects.iter().find(|it| it.as_str() == one.subject).unwrap();
                let holds = plain.permissions(Some(ORG), *subject).contains(one.permission) == one.allowed;
                prop_assert_eq!(one.met, holds, "{}", text);
                unmet += usize::from(!holds);
            }
            prop_assert_eq!(draft.warnings_of(ORG).len(), unmet);
            prop_assert_eq!(now.with_org(ORG, Some(&text)).is_ok(), unmet == 0);
        }
    }
}
