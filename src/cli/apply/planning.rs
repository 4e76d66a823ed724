//! Plans what has to change so that an organization is as the files say, in an order that works.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::{
    check, compare,
    existing::{self, Existing},
    kinds::{Field, Form, KINDS, Kind},
    plan::{Plan, PlannedChange, Work},
    policy,
    records::{Fields, texts},
    wanted::{FileLine, Mistakes, Record, Wanted},
    words,
};
use crate::{
    cli::{Failure, remote::Remote},
    resolvers::Catalogue,
};

/// The options of the command.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlanOptions {
    /// Write secrets again, although a service shows none and so they look the same.
    pub secrets: bool,
    /// Remove the records that are in no file, for each kind that has a section in a file.
    pub prune: bool,
    /// Restart running agents if a change takes effect only at a start.
    pub restart: bool,
    /// Apply nothing: a missing permission is a note.
    pub plan: bool,
}

/// Plans the way from what exists to what files want. Mistakes are collected, and the plan is then useless.
pub async fn plan(
    remote: &Remote,
    catalogue: &Catalogue,
    existing: &Existing,
    wanted: &Wanted,
    options: PlanOptions,
    mistakes: &mut Mistakes,
) -> Result<Plan, Failure> {
    let mut planning =
        Planning { existing, wanted, options, mistakes: &mut *mistakes, plan: Plan::default() };
    planning.refuse_doubles();
    planning.check_names();
    for about in &KINDS {
        let of_kind = wanted.records.iter().filter(|record| record.kind == about.kind);
        of_kind.for_each(|record| planning.plan_record(record));
        if about.kind == Kind::Agent {
            planning.plan_assignments();
        }
    }
    planning.plan_hosts();
    planning.plan_removals();
    planning.plan_restarts();
    planning.plan_policy(remote).await?;
    let mut plan = planning.plan;
    let missing = check::check(&plan, catalogue, existing, wanted, mistakes);
    if options.plan {
        plan.notes.extend(missing.into_iter().map(|(_, what)| what));
    } else {
        for (place, what) in missing {
            match place {
                Some(place) => mistakes.at(&place, what),
                None => mistakes.add(what),
            }
        }
    }
    Ok(plan)
}

/// The agents that gain and lose a skill, an MCP server or a credential, and a line that says so.
struct AssignmentChange {
    gaining: Vec<String>,
    losing: Vec<String>,
    place: FileLine,
}

/// A plan in the making.
struct Planning<'a> {
    existing: &'a Existing,
    wanted: &'a Wanted,
    options: PlanOptions,
    mistakes: &'a mut Mistakes,
    plan: Plan,
}

impl Planning<'_> {
    fn step(&mut self, title: String, lines: Vec<String>, work: Work, place: Option<FileLine>) {
        self.plan.steps.push(PlannedChange { title, lines, work, place });
    }

    /// Files tell channels apart by agent and name.
    fn refuse_doubles(&mut self) {
        let (existing, wanted) = (self.existing, self.wanted);
        for double in existing.doubles() {
            if let Some(record) = wanted.find(double.kind, &double.key) {
                let what = format!("there are two channels {}: rename one of them", double.key);
                self.mistakes.at(&record.place(""), what);
            }
        }
    }

    /// Requires that each named record exists, or is in a file.
    fn check_names(&mut self) {
        let (existing, wanted) = (self.existing, self.wanted);
        let is_known = |kind: Kind, name: &str| {
            existing.names.id(kind, name).is_some() || wanted.find(kind, name).is_some()
        };
        for record in &wanted.records {
            for field in record.kind.about().fields {
                let (kind, value) = match (&field.form, record.fields.get(field.key)) {
                    (Form::Name(kind, _) | Form::Assigned(kind), Some(value)) => (*kind, value),
                    _ => continue,
                };
                // What an agent has may be archived by now.
                let before = existing.find(record.kind, &record.key);
                if before.is_some_and(|before| before.fields.get(field.key) == Some(value)) {
                    continue;
                }
                let names = value.as_str().map(str::to_owned).into_iter().chain(texts(value));
                for name in names.filter(|name| !is_known(kind, name)) {
                    let place = record.place(&format!("/{}", field.key));
                    let word = kind.about().word;
                    self.mistakes
                        .at(&place, format!("there is no {word} `{name}`, neither here nor in a file"));
                }
            }
        }
    }

    fn plan_record(&mut self, record: &Record) {
        let (kind, key) = (record.kind, record.key.clone());
        let (existing, about, none) = (self.existing, kind.about(), Fields::new());
        let before = existing.find(kind, &key);
        let old = before.map_or(&none, |before| &before.fields);
        let mut fields =
            compare::changes(about.fields, &record.fields, old, before.is_none() || self.options.secrets);
        if fields.contains_key("model_credential") && !fields.contains_key("credential_choice") {
            // Otherwise the service chooses OWN.
            let choice = record.fields.get("credential_choice").cloned().unwrap_or_else(|| json!("INHERIT"));
            fields.insert("credential_choice".to_owned(), choice);
        }
        let mut lines = Vec::new();
        words::changes(about.fields, "", &fields, before.map(|before| &before.fields), &mut lines);
        let title = |verb: &str| match kind {
            Kind::Settings => format!("{verb} the settings"),
            _ => format!("{verb} {} {}", about.word, record.key),
        };
        let place = Some(record.place(""));
        match before {
            None => self.step(title("create"), lines, Work::Create { kind, key, fields }, place),
            Some(before) => {
                self.refuse_moves(before, &fields, record);
                if !fields.is_empty() {
                    self.step(title("update"), lines, Work::Update { kind, key, fields }, place);
                }
            }
        }
        if kind == Kind::Server && before.is_none() {
            let name = &record.key;
            self.plan.notes.push(format!(
                "server {name} gets its host with the token that `muster server token {name}` issues"
            ));
        }
        self.plan_separate_lists(record, old);
    }

    /// A running agent keeps its server and its image.
    fn refuse_moves(&mut self, before: &existing::Record, fields: &Fields, record: &Record) {
        let moves = ["server", "image"].into_iter().filter(|key| before.is_up() && fields.contains_key(*key));
        for key in moves {
            let what = format!("agent {} runs: stop it before it gets another {key}", before.key);
            self.mistakes.at(&record.place(&format!("/{key}")), what);
        }
    }

    /// Plans the lists that have mutations of their own: a credential's members, a channel's permitted senders.
    fn plan_separate_lists(&mut self, record: &Record, before: &Fields) {
        for field in record.kind.about().fields {
            let is_people = matches!(field.form, Form::Members(""));
            if !is_people && !matches!(field.form, Form::Origins) {
                continue;
            }
            let (added, removed) = compare::difference(record.fields.get(field.key), before.get(field.key));
            if added.is_empty() && removed.is_empty() {
                continue;
            }
            let (gains, loses) =
                if is_people { ("gains it", "loses it") } else { ("may write", "may no longer write") };
            let gained = added.iter().map(|who| format!("{who} {gains}"));
            let lost = removed.iter().map(|who| format!("{who} {loses}"));
            let (lines, key) = (gained.chain(lost).collect(), record.key.clone());
            let place = Some(record.place(&format!("/{}", field.key)));
            if is_people {
                let members = record.fields.get(field.key).map_or_else(Vec::new, |all| texts(all).collect());
                let title = format!("set the members who may use credential {key}");
                self.step(title, lines, Work::Share { key, members }, place);
            } else {
                let title = format!("set who may write to channel {key}");
                self.step(title, lines, Work::Origins { key, added, removed }, place);
            }
        }
    }

    /// Sets who has which skills, MCP servers and credentials: as the files say for their agents, unchanged for
    /// others.
    fn plan_assignments(&mut self) {
        let mut changes: BTreeMap<(Kind, String), AssignmentChange> = BTreeMap::new();
        for record in self.wanted.records.iter().filter(|record| record.kind == Kind::Agent) {
            let before = self.existing.find(Kind::Agent, &record.key).map(|before| &before.fields);
            for field in Kind::Agent.about().fields {
                let Form::Assigned(kind) = field.form else { continue };
                let old = before.and_then(|before| before.get(field.key));
                let (added, removed) = compare::difference(record.fields.get(field.key), old);
                let place = record.place(&format!("/{}", field.key));
                let of = |name: String| (kind, name);
                let none = || AssignmentChange { gaining: vec![], losing: vec![], place: place.clone() };
                for name in added {
                    changes.entry(of(name)).or_insert_with(none).gaining.push(record.key.clone());
                }
                for name in removed {
                    changes.entry(of(name)).or_insert_with(none).losing.push(record.key.clone());
                }
            }
        }
        for ((kind, key), AssignmentChange { gaining, losing, place }) in changes {
            let mut agents = self.existing.find(kind, &key).map(|had| had.agents.clone()).unwrap_or_default();
            agents.retain(|agent| !losing.contains(agent));
            agents.extend(gaining.iter().cloned());
            let gained = gaining.iter().map(|agent| format!("agent {agent} gains it"));
            let lines = gained.chain(losing.iter().map(|agent| format!("agent {agent} loses it"))).collect();
            let title = format!("set the agents that have {} {key}", kind.about().word);
            self.step(title, lines, Work::Assign { kind, key, agents }, Some(place));
        }
    }

    fn plan_hosts(&mut self) {
        let Some((place, wanted)) = &self.wanted.hosts else { return };
        let existing = self.existing;
        let known: BTreeSet<&str> = existing.hosts.iter().map(|host| host.entry.as_str()).collect();
        for entry in wanted.iter().filter(|entry| !known.contains(entry.as_str())) {
            let (host, port) = entry.rsplit_once(':').unwrap_or((entry.as_str(), "443"));
            let work = Work::AllowHost { host: host.to_owned(), port: port.parse().unwrap_or(443) };
            self.step(format!("let agents reach {entry}"), Vec::new(), work, Some(place.clone()));
        }
        for host in existing.hosts.iter().filter(|host| !wanted.contains(&host.entry)) {
            let title = format!("let agents reach {} no longer", host.entry);
            self.step(title, Vec::new(), Work::RemoveHost { id: host.id }, Some(place.clone()));
        }
    }

    /// Removes the records that are in no file, users before what they use.
    fn plan_removals(&mut self) {
        if !self.options.prune {
            return;
        }
        let (existing, wanted) = (self.existing, self.wanted);
        let is_left = |record: &&existing::Record| {
            wanted.sections.contains(&record.kind)
                && record.kind != Kind::Settings
                && wanted.find(record.kind, &record.key).is_none()
        };
        for record in existing.records.iter().rev().filter(is_left) {
            let (kind, key) = (record.kind, record.key.clone());
            if record.is_up() {
                self.mistakes.add(format!("agent {key} is in no file, but runs: stop it first"));
            }
            let title = format!("remove {} {key}", kind.about().word);
            let lines = vec!["no file names it".to_owned()];
            self.step(title, lines, Work::Remove { kind, key }, None);
        }
    }

    async fn plan_policy(&mut self, remote: &Remote) -> Result<(), Failure> {
        let Some((place, text)) = &self.wanted.policy else { return Ok(()) };
        let Some(before) = &self.existing.policy else {
            self.mistakes.at(place, "comparing the policy needs policy.view, which the caller does not have");
            return Ok(());
        };
        if before.text == *text || (before.text.is_empty() && text.trim().is_empty()) {
            return Ok(());
        }
        if !before.is_editable {
            self.mistakes
                .at(place, "the rules are in a file of the operator, so only the operator can change them");
            return Ok(());
        }
        let proposal = policy::propose(remote, self.existing.id, text).await?;
        for problem in &proposal.problems {
            self.mistakes.at(place, problem);
        }
        let mut lines = proposal.effects;
        if lines.is_empty() {
            lines.push("no one gains or loses a permission".to_owned());
        }
        let work = Work::Policy { text: proposal.text, version: proposal.version };
        self.step("edit the organization's own rules".to_owned(), lines, work, Some(place.clone()));
        Ok(())
    }

    /// Restarts agents with a change that takes effect only at a start, or names them in a note.
    fn plan_restarts(&mut self) {
        for record in self.wanted.records.iter().filter(|record| record.kind == Kind::Agent) {
            let Some(before) = self.existing.find(Kind::Agent, &record.key).filter(|agent| agent.is_up())
            else {
                continue;
            };
            let late: Vec<&str> = Kind::Agent
                .about()
                .fields
                .iter()
                .filter(|field| {
                    field.restarts && self.changes(&record.key, field, &record.fields, &before.fields)
                })
                .map(|field| field.key)
                .collect();
            if late.is_empty() && !before.restart_pending {
                continue;
            }
            let what = if late.is_empty() { "an earlier change".to_owned() } else { late.join(", ") };
            let agent = record.key.clone();
            if self.options.restart {
                let lines = vec![format!("it gets {what} only when it is started again")];
                self.step(
                    format!("restart agent {agent}"),
                    lines,
                    Work::Restart { agent },
                    Some(record.place("")),
                );
            } else {
                let status = &before.status;
                self.plan.notes.push(format!(
                    "agent {agent} is {status}, and gets {what} only when it is started again (--restart)"
                ));
            }
        }
    }

    /// Whether the plan changes a field of an agent.
    fn changes(&self, agent: &str, field: &Field, wanted: &Fields, before: &Fields) -> bool {
        if matches!(field.form, Form::Assigned(_)) {
            return wanted.get(field.key) != before.get(field.key);
        }
        self.plan.steps.iter().any(|step| match &step.work {
            Work::Update { kind: Kind::Agent, key, fields } => key == agent && fields.contains_key(field.key),
            _ => false,
        })
    }
}
