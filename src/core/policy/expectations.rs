//! Expectations: what the policy has to come to, written down beside it and checked before any edit takes effect.
//!
//! `expectations.csv`, a line each: `<who>, <where>, <permission>, <allow or deny>`. *Where* is `*` (every
//! organization, whatever its own file says), `default` (organizations without a file of their own) or an
//! organization's id. A policy that falls short of one is refused as a whole, like one that can't be read.

use std::collections::HashMap;

use super::{
    compile::Table,
    explain::{Book, POLICY_CSV},
    lint::LintProblem,
    reader::{
        Effect, Subject, effect_of, noted, numbered, shown, subject_of, unknown, without_mark, wrong_count,
    },
    source::{File, Sources},
};
use crate::base::{
    ids::{MAX_ID, OrgId},
    numerals::counted,
    permission::Permission,
};

/// Where an expectation holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Everywhere,
    Default,
    Organization(OrgId),
}

/// A line of `expectations.csv`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expectation {
    line: usize,
    subject: Subject,
    place: Place,
    permission: Permission,
    effect: Effect,
}

/// In how many organizations one expectation is shown to fail; the rest is counted.
const SHOWN: usize = 3;

/// Reads the file, if there is one.
pub(super) fn read(sources: &Sources, problems: &mut Vec<LintProblem>) -> Vec<Expectation> {
    let Some(file) = &sources.expectations else { return Vec::new() };
    let text = match &file.text {
        Ok(text) => text,
        Err(reason) => {
            problems.push(LintProblem::of_file(&file.name, reason.clone()));
            return Vec::new();
        }
    };
    let (mut read, mut seen) = (Vec::new(), HashMap::new());
    for (line, text) in numbered(text) {
        let found = read_line(line, text).and_then(|one| {
            match seen.insert((one.subject, one.place, one.permission), (line, one.effect)) {
                None => Ok(one),
                Some((first, effect)) if effect == one.effect => {
                    Err(vec![format!("the same as line {first}")])
                }
                Some((first, effect)) => {
                    Err(vec![format!("contradicts line {first}, which expects {}", effect.as_str())])
                }
            }
        });
        match found {
            Ok(one) => read.push(one),
            Err(reasons) => {
                let problem = |reason| LintProblem { file: file.name.clone(), line: Some(line), reason };
                problems.extend(reasons.into_iter().map(problem));
            }
        }
    }
    read
}

fn read_line(line: usize, text: &str) -> Result<Expectation, Vec<String>> {
    without_mark(text)?;
    if let Some(at) = text.find('#') {
        let comment = shown(&text[at..]);
        return Err(vec![format!("a comment stands on a line of its own, not behind one: \"{comment}\"")]);
    }
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    let [subject, place, permission, effect] = fields[..] else {
        let form = "<who>, <where>, <permission>, <effect>";
        return Err(vec![wrong_count(form, 4, fields.len())]);
    };
    let mut reasons = Vec::new();
    let subject = noted(subject_of(subject), &mut reasons);
    let place = noted(place_of(place), &mut reasons);
    let permission = noted(permission.parse::<Permission>().map_err(unknown), &mut reasons);
    let effect = noted(effect_of(effect), &mut reasons);
    match (subject, place, permission, effect) {
        (Some(Subject::ServiceToken), Some(Place::Default | Place::Organization(_)), ..) => {
            Err(vec!["the cap of service_token holds everywhere: write *".to_owned()])
        }
        (Some(subject), Some(place), Some(permission), Some(effect)) => {
            Ok(Expectation { line, subject, place, permission, effect })
        }
        _ => Err(reasons),
    }
}

fn place_of(text: &str) -> Result<Place, String> {
    match text {
        "*" => Ok(Place::Everywhere),
        "default" => Ok(Place::Default),
        _ => text
            .parse()
            .ok()
            .filter(|id| (1..=MAX_ID).contains(id))
            .map(|id| Place::Organization(OrgId(id)))
            .ok_or_else(|| format!("unknown place \"{}\": *, default, or an organization's id", shown(text))),
    }
}

/// The expectations that the table falls short of, each with the line that decides otherwise.
pub(super) fn unmet(expectations: &[Expectation], table: &Table, book: &Book) -> Vec<LintProblem> {
    let Some(File { name, .. }) = &book.sources.expectations else { return Vec::new() };
    let mut problems = Vec::new();
    for one in expectations {
        let failing: Vec<Option<OrgId>> = places(one.place, table)
            .filter(|org| table.allows(*org, one.subject, one.permission) != (one.effect == Effect::Allow))
            .collect();
        for org in failing.iter().take(SHOWN) {
            let reason = shortfall(one, *org, book);
            problems.push(LintProblem { file: name.clone(), line: Some(one.line), reason });
        }
        if failing.len() > SHOWN {
            let reason = format!("and so in {}", counted(failing.len() - SHOWN, "more organization"));
            problems.push(LintProblem { file: name.clone(), line: Some(one.line), reason });
        }
    }
    problems
}

fn places(place: Place, table: &Table) -> Box<dyn Iterator<Item = Option<OrgId>> + '_> {
    match place {
        Place::Default => Box::new([None].into_iter()),
        Place::Organization(org) => Box::new([Some(org)].into_iter()),
        Place::Everywhere => Box::new([None].into_iter().chain(table.overridden().into_iter().map(Some))),
    }
}

fn shortfall(one: &Expectation, org: Option<OrgId>, book: &Book) -> String {
    let (who, permission) = (one.subject.as_str(), one.permission);
    let place = match (org, one.subject) {
        (Some(org), _) => format!(" in organization {org}"),
        (None, Subject::ServiceToken) => String::new(),
        (None, Subject::Role(_)) => " in organizations without a file of their own".to_owned(),
    };
    let may = if one.effect == Effect::Allow { "may not" } else { "may" };
    let why = match book.deciding_line(org, one.subject, permission) {
        Some(line) => format!("{}:{} decides: {}", line.file, line.line, line.text),
        None => format!("no line of {POLICY_CSV} allows it"),
    };
    format!("expected {} of {permission} to {who}, who {may}{place}: {why}", one.effect.as_str())
}
