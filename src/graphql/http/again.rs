//! What it takes to keep a mutation's answer under an idempotency key and to give it again: its secrets are left out, and
//! whoever asks again has to be somebody who could ask now.

use async_graphql::{
    Name, Positioned, Value, Variables,
    parser::types::{Directive, ExecutableDocument, Field, OperationDefinition, Selection, SelectionSet},
};
use bytes::Bytes;

use super::{request::Operation, run::Session};
use crate::{
    edge::{idempotency, limits::Class},
    error::{Code, Problem, Result},
    graphql::{Permit, authorize, without_secrets},
    ids::OrgId,
};

impl Session {
    /// The answer as it may be kept; none for one with a refusal that may pass, or with a failure.
    pub fn kept(&self, operation: &Operation, json: &[u8]) -> Option<Bytes> {
        let mut answer: serde_json::Value = serde_json::from_slice(json).ok()?;
        let errors = answer.get("errors").and_then(serde_json::Value::as_array);
        let status = |error: &serde_json::Value| u16::try_from(error["extensions"]["status"].as_u64()?).ok();
        if !errors.into_iter().flatten().all(|error| status(error).is_some_and(idempotency::is_lasting)) {
            return None;
        }
        let document = self.document(operation).ok()?;
        let name = operation.name.as_deref();
        let hidden = without_secrets(&document, name, &self.app.catalogue.registry, answer.get_mut("data")?);
        Some(if hidden { answer.to_string().into() } else { Bytes::copy_from_slice(json) })
    }

    /// Refuses a caller who may not, as of now, ask for every root field of the operation. Nothing is run.
    ///
    /// # Errors
    /// `RATE_LIMITED`, and what [`authorize`] refuses.
    pub async fn authorize(&self, operation: &Operation) -> Result<()> {
        self.arrival.charge(&self.app, self.caller(), Class::Writes)?;
        let unread = |_| Problem::new(Code::ValidationFailed, "The document can't be read.");
        let document = self.document(operation).map_err(unread)?;
        let Some(definition) = document.operation(operation.name.as_deref()) else { return Ok(()) };
        let roots = Roots { document: document.executable(), definition, given: &operation.variables };
        let mut fields = Vec::new();
        roots.collect(&definition.selection_set.node, &mut fields);
        let request = self.request(None, false);
        for field in fields {
            let name = field.name.node.as_str();
            match self.app.catalogue.permit(name) {
                None | Some(Permit::Anyone) => {}
                Some(Permit::SignedIn) => request.caller.require_identity()?,
                Some(permit @ Permit::InOrganization { .. }) => {
                    authorize(&request, name, permit, roots.org(field)).await?;
                }
            }
        }
        Ok(())
    }
}

/// The root fields of an operation with its variables.
struct Roots<'a> {
    document: &'a ExecutableDocument,
    definition: &'a OperationDefinition,
    given: &'a Variables,
}

impl<'a> Roots<'a> {
    fn collect(&self, set: &'a SelectionSet, fields: &mut Vec<&'a Field>) {
        for selection in &set.items {
            if self.is_left_out(selection.node.directives()) {
                continue;
            }
            match &selection.node {
                Selection::Field(field) => fields.push(&field.node),
                Selection::InlineFragment(fragment) => {
                    self.collect(&fragment.node.selection_set.node, fields);
                }
                Selection::FragmentSpread(spread) => {
                    if let Some(fragment) = self.document.fragments.get(&spread.node.fragment_name.node) {
                        self.collect(&fragment.node.selection_set.node, fields);
                    }
                }
            }
        }
    }

    /// Whether `@skip` or `@include` leaves a selection out.
    fn is_left_out(&self, directives: &[Positioned<Directive>]) -> bool {
        directives.iter().any(|directive| {
            let directive = &directive.node;
            let given = directive.get_argument("if").map(|value| value.node.clone());
            let condition = given.and_then(|value| value.into_const_with(|name| self.variable(&name)).ok());
            let is_met = condition == Some(Value::Boolean(true));
            match directive.name.node.as_str() {
                "skip" => is_met,
                "include" => !is_met,
                _ => false,
            }
        })
    }

    /// The organization that a field is asked of; none that there is where the document does not say.
    fn org(&self, field: &Field) -> OrgId {
        let given = field.get_argument("orgId").map(|value| value.node.clone());
        OrgId(match given.and_then(|value| value.into_const_with(|name| self.variable(&name)).ok()) {
            Some(Value::Number(id)) => id.as_i64().unwrap_or_default(),
            Some(Value::String(id)) => id.parse().unwrap_or_default(),
            _ => 0,
        })
    }

    /// What stands for a variable.
    fn variable(&self, name: &Name) -> Result<Value, ()> {
        let default = || {
            let mut declared = self.definition.variable_definitions.iter();
            let declared = declared.find(|variable| variable.node.name.node == *name)?;
            declared.node.default_value.as_ref().map(|value| value.node.clone())
        };
        self.given.get(name.as_str()).cloned().or_else(default).ok_or(())
    }
}
