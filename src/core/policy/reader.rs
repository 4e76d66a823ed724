//! Our own reader of policy files: each line becomes a typed line, or a problem with line number and reason.
//!
//! Casbin receives the typed lines, not the text, so it can neither misread them nor fail on them.

use std::collections::HashMap;

use super::{
    expectations::{Seen, read_fields},
    line::{Effect, Grant, LintProblem, SERVICE_TOKEN, Subject, numbered},
    rules::{Expectation, ExpectationScope},
    source::File,
};
use crate::base::{
    ids::OrgId,
    permission::{Permission, Role, UnknownName, closest, did_you_mean},
};

/// Reads the lines of one file.
pub(super) struct Reader<'a> {
    file: &'a File,
    /// `None`: the base policy.
    org: Option<OrgId>,
    domain: String,
    pub grants: Vec<Grant>,
    pub expectations: Vec<Expectation>,
    pub inherits: Vec<(Role, Role)>,
    /// The first unreadable line.
    pub unread: Option<usize>,
    /// Where a line was first seen, by its fields without the effect.
    seen: HashMap<(Subject, Permission), (usize, Effect)>,
    expected: Seen,
    problems: &'a mut Vec<LintProblem>,
}

impl<'a> Reader<'a> {
    pub fn new(file: &'a File, org: Option<OrgId>, problems: &'a mut Vec<LintProblem>) -> Self {
        let domain = org.map_or_else(|| "*".to_owned(), |org| org.to_string());
        Self {
            file,
            org,
            domain,
            grants: Vec::new(),
            expectations: Vec::new(),
            inherits: Vec::new(),
            unread: None,
            seen: HashMap::new(),
            expected: Seen::default(),
            problems,
        }
    }

    fn problem(&mut self, line: Option<usize>, reason: impl Into<String>) {
        self.unread = self.unread.or(line).or(Some(1));
        let problem = LintProblem::of_file(&self.file.name, reason).in_org(self.org);
        self.problems.push(LintProblem { line, ..problem });
    }

    pub fn read_all(&mut self) {
        let file = self.file;
        let text = match &file.text {
            Ok(text) => text,
            Err(reason) => return self.problem(None, reason.as_str()),
        };
        let mut empty = true;
        for (line, text) in numbered(text) {
            empty = false;
            if let Err(reasons) = self.read_line(line, text) {
                for reason in reasons {
                    self.problem(Some(line), reason);
                }
            }
        }
        // An organization's file may be empty: then it has no rules of its own.
        if empty && self.org.is_none() {
            self.problem(None, "the file is empty: an empty policy permits nothing");
        }
    }

    fn read_line(&mut self, line: usize, text: &str) -> Result<(), Vec<String>> {
        without_mark(text)?;
        if let Some(at) = text.find('#') {
            let comment = shown(&text[at..]);
            return Err(vec![format!(
                "a comment must be on a line of its own, not at the end of one: \"{comment}\""
            )]);
        }
        if text.contains('"') {
            return Err(vec!["fields must not be quoted".to_owned()]);
        }
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        match fields[..] {
            ["p", subject, domain, permission, effect] => {
                self.read_grant(line, [subject, domain, permission, effect])
            }
            ["p", ..] => Err(vec![wrong_count("p, <who>, <where>, <permission>, <effect>", 5, fields.len())]),
            ["g", role, parent] => self.read_inheritance(role, parent).map_err(|reason| vec![reason]),
            ["g", ..] => Err(vec![wrong_count("g, <role>, <lower role>", 3, fields.len())]),
            ["e", subject, permission, effect] => self.read_expectation(line, [subject, permission, effect]),
            ["e", ..] => Err(vec![wrong_count("e, <who>, <permission>, <effect>", 4, fields.len())]),
            [kind, ..] => {
                let kinds = if self.org.is_some() { "p or e" } else { "p or g" };
                Err(vec![format!("unknown kind of line \"{}\": must be {kinds}", shown(kind))])
            }
            [] => Ok(()),
        }
    }

    fn read_grant(
        &mut self,
        line: usize,
        [subject, domain, permission, effect]: [&str; 4],
    ) -> Result<(), Vec<String>> {
        let mut reasons = Vec::new();
        let subject = noted(self.subject(subject), &mut reasons);
        let domain = noted(self.domain(domain), &mut reasons);
        let permission = permission.parse::<Permission>().map_err(unknown);
        let permission = noted(permission, &mut reasons);
        let effect = noted(effect_of(effect), &mut reasons);
        let (Some(subject), Some(()), Some(permission), Some(effect)) = (subject, domain, permission, effect)
        else {
            return Err(reasons);
        };
        match self.seen.get(&(subject, permission)) {
            Some((first, seen)) if *seen == effect => return Err(vec![format!("duplicates line {first}")]),
            Some((first, seen)) => {
                return Err(vec![format!("contradicts line {first}, which says {}", seen.as_str())]);
            }
            None => self.seen.insert((subject, permission), (line, effect)),
        };
        self.grants.push(Grant { line, subject, permission, effect });
        Ok(())
    }

    fn read_expectation(&mut self, line: usize, fields: [&str; 3]) -> Result<(), Vec<String>> {
        let Some(org) = self.org else {
            let reason = "e lines are only allowed in an organization's own rules: use expectations.csv";
            return Err(vec![reason.to_owned()]);
        };
        let one = read_fields(line, fields, Ok(ExpectationScope::Organization(org)))?;
        self.expectations.push(self.expected.require_new(one)?);
        Ok(())
    }

    fn subject(&self, text: &str) -> Result<Subject, String> {
        match subject_of(text)? {
            Subject::ServiceToken if self.org.is_some() => {
                Err("service_token is only allowed in policy.csv: its cap applies everywhere".to_owned())
            }
            subject => Ok(subject),
        }
    }

    fn domain(&self, text: &str) -> Result<(), String> {
        if text == self.domain {
            return Ok(());
        }
        let (wanted, given) = (&self.domain, shown(text));
        Err(match self.org {
            None => {
                format!("the domain must be *, not \"{given}\": organizations have their own files in orgs/")
            }
            Some(_) => format!("the domain in this file must be {wanted}, not \"{given}\""),
        })
    }

    fn read_inheritance(&mut self, role: &str, parent: &str) -> Result<(), String> {
        if self.org.is_some() {
            return Err(
                "g lines are only allowed in policy.csv: inheritance is the same everywhere".to_owned()
            );
        }
        let (role, parent) =
            (role.parse::<Role>().map_err(unknown)?, parent.parse::<Role>().map_err(unknown)?);
        if !role.is_above(parent) {
            return Err(format!("{role} can't inherit from {parent}: only from a lower role"));
        }
        if self.inherits.contains(&(role, parent)) {
            return Err(format!("an earlier line already lets {role} inherit from {parent}"));
        }
        self.inherits.push((role, parent));
        Ok(())
    }
}

/// The invisible mark that some editors put at the start of a file.
pub(super) fn without_mark(text: &str) -> Result<(), Vec<String>> {
    if text.starts_with('\u{feff}') {
        return Err(vec![
            "the file starts with a byte-order mark: save it as UTF-8 without a BOM".to_owned(),
        ]);
    }
    Ok(())
}

/// A role or service_token.
pub(super) fn subject_of(text: &str) -> Result<Subject, String> {
    if text == SERVICE_TOKEN {
        return Ok(Subject::ServiceToken);
    }
    let known = Role::ALL.map(Role::as_str).into_iter().chain([SERVICE_TOKEN]);
    text.parse().map(Subject::Role).map_err(|_| unknown(UnknownName::new("role", text, known)))
}

/// The value; or `None`, with its reason added to `reasons`.
pub(super) fn noted<T>(read: Result<T, String>, reasons: &mut Vec<String>) -> Option<T> {
    read.map_err(|reason| reasons.push(reason)).ok()
}

pub(super) fn wrong_count(form: &str, wanted: usize, given: usize) -> String {
    format!("{given} fields instead of {wanted}: {form}")
}

pub(super) fn effect_of(text: &str) -> Result<Effect, String> {
    match text {
        "allow" => Ok(Effect::Allow),
        "deny" => Ok(Effect::Deny),
        _ => {
            let meant = did_you_mean(closest(text, ["allow", "deny"]));
            Err(format!("unknown effect \"{}\"{meant}", shown(text)))
        }
    }
}

pub(super) fn unknown(mut name: UnknownName) -> String {
    name.text = shown(&name.text);
    name.to_string()
}

/// Text of a file, fit for messages and logs: short, and without control characters.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(60).flat_map(char::escape_debug).collect();
    if text.chars().nth(60).is_some() {
        shown.push('…');
    }
    shown
}
