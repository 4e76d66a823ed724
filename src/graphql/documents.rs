//! Documents that are kept: parsed and validated once, and their plans with them.
//!
//! Parsing and validating costs more than answering most requests. The operations behind `/v1` are prepared at
//! start; what GraphQL callers send is kept by its text, bounded in number and size. A kept document is the
//! very same `ExecutableDocument` that the executor would have parsed; only the work is not repeated.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use async_graphql::{
    CacheControl, ServerError, ValidationResult, Variables,
    extensions::{Extension, ExtensionContext, ExtensionFactory, NextValidation},
    parser::types::{
        DocumentOperations, ExecutableDocument, OperationDefinition, OperationType, Selection, SelectionSet,
    },
    registry::Registry,
};
use moka::sync::Cache;

use super::{
    record::Plans,
    validate::{Spelling, Validator},
};
use crate::config::Limits;

/// Texts longer than this are not kept: they are no document that somebody repeats.
const LONGEST_KEPT: usize = 16 << 10;

/// A document that has been parsed, and what is known about it.
pub struct Document {
    parsed: ExecutableDocument,
    validated: OnceLock<(usize, usize)>,
    /// The document without what its root fields select: all that is read of it once their plans are kept.
    planned: OnceLock<ExecutableDocument>,
    /// Where the plans of its root fields are kept; none if a plan would depend on variables.
    pub plans: Option<Arc<Plans>>,
    /// Whether each root field has a response key of its own. If two share one, the executor merges their
    /// values, which it can't do with bytes.
    pub raw: bool,
}

impl Document {
    /// Looks at a parsed document.
    #[must_use]
    pub fn new(parsed: ExecutableDocument) -> Self {
        let static_shape = !parsed
            .operations
            .iter()
            .any(|(_, op)| has_directives(&op.node.selection_set.node))
            && !parsed.fragments.values().any(|fragment| has_directives(&fragment.node.selection_set.node));
        let raw = parsed.operations.iter().all(|(_, op)| has_distinct_roots(&op.node));
        let plans = static_shape.then(Arc::<Plans>::default);
        Self { parsed, validated: OnceLock::new(), planned: OnceLock::new(), plans, raw }
    }

    /// The document, to look at.
    #[must_use]
    pub fn executable(&self) -> &ExecutableDocument {
        &self.parsed
    }

    /// The document for one request.
    #[must_use]
    pub fn parsed(&self) -> ExecutableDocument {
        self.parsed.clone()
    }

    /// The document for a request whose variables were checked. The executor wants one to own: once every root field
    /// has its plan, copying and walking what they select would be most of the work that is left, and for nothing.
    #[must_use]
    pub fn planned(&self) -> ExecutableDocument {
        if self.planned.get().is_none()
            && self.validated.get().is_some()
            && let Some(planned) = self.without_selections()
        {
            let _ = self.planned.set(planned);
        }
        self.planned.get().unwrap_or(&self.parsed).clone()
    }

    /// The document without selections and fragments; none as long as a root field has no plan of its own.
    fn without_selections(&self) -> Option<ExecutableDocument> {
        let plans = self.plans.as_ref()?;
        let mut operations = self.parsed.operations.clone();
        let all = match &mut operations {
            DocumentOperations::Single(operation) => vec![operation],
            DocumentOperations::Multiple(operations) => operations.values_mut().collect(),
        };
        for root in all.into_iter().flat_map(|operation| &mut operation.node.selection_set.node.items) {
            let Selection::Field(field) = &mut root.node else { return None };
            let selected = &mut field.node.selection_set.node.items;
            if !selected.is_empty() && !plans.has(field.pos) {
                return None;
            }
            selected.clear();
        }
        Some(ExecutableDocument { operations, fragments: HashMap::new() })
    }

    /// The operation that a request means; none if its name fits none, or none is named and there are several.
    #[must_use]
    pub fn operation(&self, name: Option<&str>) -> Option<&OperationDefinition> {
        let mut operations = self.parsed.operations.iter();
        match name {
            Some(name) => operations.find(|(known, _)| known.is_some_and(|known| known == name)),
            None => operations.next().filter(|_| operations.next().is_none()),
        }
        .map(|(_, operation)| &operation.node)
    }

    /// Whether the request means an operation that only reads.
    #[must_use]
    pub fn is_query(&self, name: Option<&str>) -> bool {
        self.operation(name).is_some_and(|operation| operation.ty == OperationType::Query)
    }

    /// Whether the request means a subscription.
    #[must_use]
    pub fn is_subscription(&self, name: Option<&str>) -> bool {
        self.operation(name).is_some_and(|operation| operation.ty == OperationType::Subscription)
    }

    /// Whether the values fit the variables of the operation, so that validating again would say nothing new.
    #[must_use]
    pub fn accepts(&self, name: Option<&str>, variables: &Variables, registry: &Registry) -> bool {
        let Some(operation) = self.operation(name) else { return false };
        let mut validator = Validator::new(registry, Spelling::Camel);
        operation.variable_definitions.iter().all(|definition| {
            let definition = &definition.node;
            match variables.get(definition.name.node.as_str()) {
                Some(value) => validator.is_of_type(&definition.var_type.node.to_string(), value),
                None => definition.default_value.is_some() || definition.var_type.node.nullable,
            }
        })
    }
}

fn has_directives(set: &SelectionSet) -> bool {
    set.items.iter().any(|selection| {
        !selection.node.directives().is_empty()
            || match &selection.node {
                Selection::Field(field) => has_directives(&field.node.selection_set.node),
                Selection::InlineFragment(fragment) => has_directives(&fragment.node.selection_set.node),
                Selection::FragmentSpread(_) => false,
            }
    })
}

/// Whether every root selection is a field with a response key of its own.
fn has_distinct_roots(operation: &OperationDefinition) -> bool {
    let mut seen = std::collections::HashSet::new();
    operation.selection_set.node.items.iter().all(|selection| match &selection.node {
        Selection::Field(field) => seen.insert(field.node.response_key().node.as_str()),
        Selection::InlineFragment(_) | Selection::FragmentSpread(_) => false,
    })
}

/// The documents that GraphQL callers have sent lately.
pub struct Documents {
    kept: Cache<String, Arc<Document>>,
    limits: Limits,
}

impl Documents {
    /// Keeps as many documents as the limits say.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self { kept: Cache::new(limits.document_cache), limits: limits.clone() }
    }

    /// The document of this text, parsed at most once while it is kept.
    ///
    /// # Errors
    /// The text is no document.
    pub fn get(&self, text: &str) -> Result<Arc<Document>, ServerError> {
        if let Some(document) = self.kept.get(text) {
            return Ok(document);
        }
        super::limits::check_text(text)?;
        let document = Arc::new(Document::new(async_graphql::parser::parse_query(text)?));
        super::limits::check_document(&document.parsed, &self.limits)?;
        if text.len() <= LONGEST_KEPT {
            self.kept.insert(text.to_owned(), Arc::clone(&document));
        }
        Ok(document)
    }
}

/// Skips the validation of a document that this schema has validated before.
///
/// Validation in async-graphql looks at the values of variables as well. A document is therefore put into the
/// request's data only after its variables were checked: by [`Document::accepts`], or by REST's own validator.
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
        if let Some(&(complexity, depth)) = document.validated.get() {
            return Ok(ValidationResult { cache_control: CacheControl::default(), complexity, depth });
        }
        let result = next.run(ctx).await?;
        let _ = document.validated.set((result.complexity, result.depth));
        Ok(result)
    }
}
