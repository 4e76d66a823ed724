//! Carries out a plan, step by step, and ends at the first refusal. What is done stays: the next plan has the rest.

use serde_json::{Map, Value, json};

use super::{
    existing::Existing,
    inputs::{Call, Inputs},
    kinds::Kind,
    plan::{Plan, PlannedChange, Work},
    records::Names,
    wanted::Wanted,
};
use crate::{
    base::numerals::with_noun,
    cli::{
        Failure,
        remote::{Refusal, Remote},
    },
    resolvers::Catalogue,
};

/// Why a step failed: where in its record, if known, and what.
type Why = (String, String);

struct Executing<'a> {
    remote: &'a Remote,
    catalogue: &'a Catalogue,
    names: Names,
    reason: &'a str,
}

/// Carries out all steps. `reason` is for the policy's history.
pub async fn execute(
    remote: &Remote,
    catalogue: &Catalogue,
    plan: &Plan,
    existing: Existing,
    wanted: &Wanted,
    reason: &str,
) -> Result<(), Failure> {
    let mut executing = Executing { remote, catalogue, names: existing.names, reason };
    for (done, step) in plan.steps.iter().enumerate() {
        if let Err((pointer, what)) = executing.step(step).await {
            let place = match &step.work {
                Work::Create { kind, key, .. } | Work::Update { kind, key, .. } => wanted.find(*kind, key),
                _ => None,
            };
            let place = place.map(|record| format!("{}: ", record.place(&pointer))).unwrap_or_default();
            let left = plan.steps.len() - done;
            return Err(Failure::new(format!(
                "{place}could not {}: {what}\n{} made, {left} left. Correct the cause, and run it again for what is left.",
                step.title,
                with_noun(done, "change"),
            )));
        }
    }
    Ok(())
}

impl Executing<'_> {
    async fn step(&mut self, step: &PlannedChange) -> Result<(), Why> {
        match &step.work {
            Work::Create { kind, key, fields } => {
                let calls = self.inputs(|inputs| inputs.create(kind.about(), fields))?;
                let mut id = None;
                for call in calls {
                    let made = self.call(*kind, call, id).await?;
                    if id.is_none() {
                        id = made["id"].as_i64();
                        self.names.add(*kind, id.unwrap_or_default(), key, false);
                    }
                }
                Ok(())
            }
            Work::Update { kind, key, fields } => {
                let id = self.id(*kind, key)?;
                for call in self.inputs(|inputs| inputs.update(kind.about(), fields))? {
                    self.call(*kind, call, Some(id)).await?;
                }
                Ok(())
            }
            Work::Assign { kind, key, agents } => {
                let id = self.id(*kind, key)?;
                let agents: Vec<i64> =
                    agents.iter().map(|agent| self.id(Kind::Agent, agent)).collect::<Result<_, _>>()?;
                self.send(kind.about().assign, Some(id), json!({ "input": { "agentIds": agents } })).await
            }
            Work::Share { key, members } => {
                let id = self.id(Kind::Credential, key)?;
                let users: Vec<i64> =
                    members.iter().filter_map(|address| self.names.member(address)).collect();
                self.send("setCredentialMembers", Some(id), json!({ "input": { "userIds": users } })).await
            }
            Work::Origins { key, added, removed } => {
                let id = Some(self.id(Kind::Channel, key)?);
                for origin in added {
                    self.send("addWhitelistOrigin", id, json!({ "input": { "originId": origin } })).await?;
                }
                for origin in removed {
                    self.send("removeWhitelistOrigin", id, json!({ "originId": origin })).await?;
                }
                Ok(())
            }
            Work::AllowHost { host, port } => {
                self.send("allowHost", None, json!({ "input": { "host": host, "port": port } })).await
            }
            Work::RemoveHost { id } => self.send("removeAllowedHost", Some(*id), json!({})).await,
            Work::Remove { kind, key } => {
                self.send(kind.about().remove, Some(self.id(*kind, key)?), json!({})).await
            }
            Work::Policy { text, version } => {
                let input = json!({ "text": text, "version": version, "reason": self.reason });
                self.send("editPolicy", None, json!({ "input": input })).await
            }
            Work::Restart { agent } => {
                self.send("restartAgent", Some(self.id(Kind::Agent, agent)?), json!({})).await
            }
        }
    }

    /// Makes the calls of a record, with the ids that are known by now.
    fn inputs(&self, make: impl FnOnce(&mut Inputs<'_>) -> Vec<Call>) -> Result<Vec<Call>, Why> {
        let mut inputs = Inputs::new(self.catalogue, &self.names, false);
        let calls = make(&mut inputs);
        match inputs.wrong.into_iter().next() {
            None => Ok(calls),
            Some(wrong) => Err(wrong),
        }
    }

    fn id(&self, kind: Kind, key: &str) -> Result<i64, Why> {
        let missing = || (String::new(), format!("there is no {} {key}", kind.about().word));
        self.names.id(kind, key).ok_or_else(missing)
    }

    /// Sends a call for a record. A refused value is named by its place in the file.
    async fn call(&self, kind: Kind, call: Call, id: Option<i64>) -> Result<Value, Why> {
        let mut variables = call.variables;
        if let Some(id) = id.filter(|_| kind != Kind::Settings) {
            variables.insert("id".to_owned(), id.into());
        }
        let refused = |refusal: Refusal| refused_value(kind, &refusal);
        self.remote.change(call.operation, variables).await.map_err(refused)
    }

    /// Sends any other call.
    async fn send(&self, operation: &str, id: Option<i64>, variables: Value) -> Result<(), Why> {
        let mut variables = match variables {
            Value::Object(variables) => variables,
            _ => Map::new(),
        };
        if let Some(id) = id {
            variables.insert("id".to_owned(), id.into());
        }
        let sent = self.remote.change(operation, variables).await;
        sent.map(drop).map_err(|refusal| (String::new(), Failure::from(refusal).to_string()))
    }
}

/// The place and the reason of a refusal: GraphQL names values by `/input/camelCase`.
fn refused_value(kind: Kind, refusal: &Refusal) -> Why {
    match refusal.errors.as_slice() {
        [] => (String::new(), refusal.detail.clone()),
        errors => {
            let first = crate::base::spelling::snake_case(errors[0].0.trim_start_matches("/input"));
            let all: Vec<&str> = errors.iter().map(|(_, why)| why.as_str()).collect();
            (super::inputs::in_file(kind.about().fields, &first), all.join(" "))
        }
    }
}
