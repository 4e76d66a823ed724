//! Validation, once for each document that is kept: the executor's rules, and those that it lacks.
//!
//! A document is validated as it was sent, without values: whether those fit is asked each time
//! ([`coerce`](super::execution::coerce); REST has a validator of its own). What is executed then may be less, such as a
//! document without what its root fields select, and is not looked at again.

use std::sync::Arc;

use async_graphql::{
    CacheControl, Request, Response, ServerError, ValidationResult, Value,
    extensions::{Extension, ExtensionContext, ExtensionFactory, NextExecute, NextValidation},
};
use futures::FutureExt;

use super::{Document, conflicts, literals};
use crate::schema::MusterSchema;

/// Validates a document, if it was not before.
///
/// # Errors
/// What is wrong with it, or with the name of the operation.
pub fn validate(
    schema: &MusterSchema,
    document: &Arc<Document>,
    name: Option<&str>,
) -> Result<(), Vec<ServerError>> {
    if document.validated().is_some() && document.operation(name).is_some() {
        return Ok(());
    }
    let mut request = Request::new("").data(Arc::clone(document)).data(NothingElse);
    if let Some(name) = name {
        request = request.operation_name(name);
    }
    request.set_parsed_query(document.parsed());
    // Nothing in it waits for anything.
    match schema.execute(request).now_or_never() {
        Some(Response { errors, .. }) if errors.is_empty() && document.operation(name).is_some() => Ok(()),
        Some(Response { errors, .. }) if !errors.is_empty() => Err(errors),
        _ => Err(vec![ServerError::new("The document could not be validated.", None)]),
    }
}

/// Marks a request that is validated and not executed.
struct NothingElse;

/// The executor's step, for documents that are kept.
pub struct KeepValidation;

impl ExtensionFactory for KeepValidation {
    fn create(&self) -> Arc<dyn Extension> {
        Arc::new(Self)
    }
}

#[async_graphql::async_trait::async_trait]
impl Extension for KeepValidation {
    async fn validation(
        &self,
        ctx: &ExtensionContext<'_>,
        next: NextValidation<'_>,
    ) -> Result<ValidationResult, Vec<ServerError>> {
        let Some(document) = ctx.data_opt::<Arc<Document>>() else { return next.run(ctx).await };
        if let Some((complexity, depth)) = document.validated() {
            return Ok(ValidationResult { cache_control: CacheControl::default(), complexity, depth });
        }
        let result = next.run(ctx).await?;
        literals::check(document.executable(), &ctx.schema_env.registry)?;
        conflicts::check(document.executable())?;
        document.is_valid(result.complexity, result.depth);
        Ok(result)
    }

    async fn execute(
        &self,
        ctx: &ExtensionContext<'_>,
        operation_name: Option<&str>,
        next: NextExecute<'_>,
    ) -> Response {
        if ctx.data_opt::<NothingElse>().is_some() {
            return Response::new(Value::Null);
        }
        next.run(ctx, operation_name).await
    }
}
