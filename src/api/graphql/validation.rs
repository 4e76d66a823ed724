//! Validates each cached document once: the executor's rules, and those it lacks.
//!
//! A document is validated as it was sent, without values; whether those fit is checked for each request
//! ([`coerce`](super::execution::coerce); REST has its own validator). The executed part may be smaller, such as a
//! document without its root fields' selections, and isn't checked again.

use std::sync::Arc;

use async_graphql::{
    CacheControl, Request, Response, ServerError, ValidationResult, Value,
    extensions::{Extension, ExtensionContext, ExtensionFactory, NextExecute, NextValidation},
};
use futures::FutureExt;

use super::{Document, conflicts, literals, single_root};
use crate::graphql::MusterSchema;

/// Validates a document that hasn't been validated yet.
///
/// # Errors
/// The errors in the document, or in the operation's name.
pub fn validate(
    schema: &MusterSchema,
    document: &Arc<Document>,
    name: Option<&str>,
) -> Result<(), Vec<ServerError>> {
    if document.validated().is_some() && document.operation(name).is_some() {
        return Ok(());
    }
    let mut request = Request::new("").data(Arc::clone(document)).data(ValidateOnly);
    if let Some(name) = name {
        request = request.operation_name(name);
    }
    request.set_parsed_query(document.parsed());
    // Validation awaits nothing.
    match schema.execute(request).now_or_never() {
        Some(Response { errors, .. }) if errors.is_empty() && document.operation(name).is_some() => Ok(()),
        Some(Response { errors, .. }) if !errors.is_empty() => Err(errors),
        _ => Err(vec![ServerError::new("The document could not be validated.", None)]),
    }
}

/// Marks a request that is only validated, not executed.
struct ValidateOnly;

/// The executor's validation step, for cached documents.
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
        literals::check(document.executable(), &ctx.schema_env.registry)?;
        let result = next.run(ctx).await?;
        single_root::check(document.executable())?;
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
        if ctx.data_opt::<ValidateOnly>().is_some() {
            return Response::new(Value::Null);
        }
        next.run(ctx, operation_name).await
    }
}
