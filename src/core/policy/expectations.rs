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
