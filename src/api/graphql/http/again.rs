//! Stores a mutation's answer under an idempotency key, without secrets, and replays it to callers who may still make
//! the request.

use async_graphql::{Value, Variables, parser::types::Field};
use bytes::Bytes;

use super::{request::Operation, run::Session};
use crate::{
    api::{
        graphql::{execution::coerce, without_secrets},
        middleware::idempotency,
    },
    base::{
        ids::OrgId,
        problem::{Code, Problem, Result},
    },
    core::access::Permit,
    read::{argument, is_included, merged},
    resolvers::authorize,
};

impl Session {
    /// The answer to store. None if it contains a temporary refusal or a failure.
    pub fn kept(&self, operation: &Operation, json: &[u8]) -> Option<Bytes> {
        let mut answer: serde_json::Value = muster_json::from_slice(json).ok()?;
        let errors = answer.get("errors").and_then(serde_json::Value::as_array);
        let status = |error: &serde_json::Value| u16::try_from(error["extensions"]["status"].as_u64()?).ok();
        if !errors.into_iter().flatten().all(|error| status(error).is_some_and(idempotency::is_lasting)) {
            return None;
        }
        let document = self.document(operation).ok()?;
        let name = operation.name.as_deref();
        let hidden =
            without_secrets(&document, name, &self.graphql.catalogue.registry, answer.get_mut("data")?);
        Some(if hidden { answer.to_string().into() } else { Bytes::copy_from_slice(json) })
    }

    /// Checks that the caller may still request every root field of the operation. Runs nothing.
    ///
    /// # Errors
    /// Those of [`authorize`].
    pub async fn authorize(&self, operation: &Operation) -> Result<()> {
        let unread = |_| Problem::new(Code::ValidationFailed, "The document could not be parsed.");
        let document = self.document(operation).map_err(unread)?;
        let Some(definition) = document.operation(operation.name.as_deref()) else { return Ok(()) };
        let given = operation.variables.clone();
        let variables = coerce(definition, given, &self.graphql.catalogue.registry).map_err(unread)?;
        let wanted = |directives: &[_]| is_included(directives, &variables);
        let roots = merged([&definition.selection_set.node], &document.executable().fragments, &wanted);
        let request = self.request();
        for field in roots.into_values().flatten() {
            let name = field.node.name.node.as_str();
            match self.graphql.core.access.permits.required_by(name) {
                None | Some(Permit::Anyone) => {}
                Some(Permit::SignedIn) => request.caller.require_identity()?,
                Some(permit @ (Permit::Member | Permit::InOrganization { .. })) => {
                    authorize(&request, name, permit, org_of(&field.node, &variables)).await?;
                }
            }
        }
        Ok(())
    }
}

/// The organization a field is called for. If the document names none, one that doesn't exist.
fn org_of(field: &Field, variables: &Variables) -> OrgId {
    OrgId(match argument(field, "orgId", variables) {
        Some(Value::Number(id)) => id.as_i64().unwrap_or_default(),
        Some(Value::String(id)) => id.parse().unwrap_or_default(),
        _ => 0,
    })
}
