//! A cache of documents, parsed and validated once, together with their plans.
//!
//! Parsing and validating costs more than answering most requests. The operations behind `/v1` are prepared at
//! start. Documents from GraphQL callers with a credential are cached by their text, up to a total weight. A
//! cached document is exactly the `ExecutableDocument` that the executor would have parsed; only the work isn't
//! repeated.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use async_graphql::{
    ServerError, Variables,
    parser::types::{
        DocumentOperations, ExecutableDocument, OperationDefinition, OperationType, Selection, SelectionSet,
    },
};
use moka::sync::Cache;

use super::{
    document_cost::{Size, check_document, check_text},
    escapes,
    execution::Execution,
    introspection::is_about_schema,
};
use crate::core::config::RequestLimits;
use crate::read::Plans;

/// A parsed document with the results of its validation and planning.
pub struct Document {
    parsed: ExecutableDocument,
    validated: OnceLock<(usize, usize)>,
    /// The document without its root fields' selections: all the executor reads once their plans are cached.
    planned: OnceLock<ExecutableDocument>,
    /// The cached plans of its root fields. None if a plan would depend on variables.
    pub plans: Option<Arc<Plans>>,
    /// Whether its operations can be executed as they were sent.
    plain: bool,
}

impl Document {
    /// Examines a parsed document.
    #[must_use]
    pub fn new(parsed: ExecutableDocument) -> Self {
        let static_shape = !parsed
            .operations
            .iter()
            .any(|(_, op)| has_directives(&op.node.selection_set.node))
            && !parsed.fragments.values().any(|fragment| has_directives(&fragment.node.selection_set.node));
        let plain = parsed.operations.iter().all(|(_, op)| is_plain(&op.node));
        // A plan is identified by the position of its root field. A fragment used by two operations may be
        // merged with different fields in each.
        let one_place = plain || parsed.operations.iter().count() == 1;
        let plans = (static_shape && one_place).then(Arc::<Plans>::default);
        Self { parsed, validated: OnceLock::new(), planned: OnceLock::new(), plans, plain }
    }

    /// A document of our own, which needs no examination.
    #[must_use]
    pub fn trusted(parsed: ExecutableDocument) -> Self {
        let document = Self::new(parsed);
        document.is_valid(0, 0);
        document
    }

    /// Records that it is valid, with its complexity and depth.
    pub fn is_valid(&self, complexity: usize, depth: usize) {
        let _ = self.validated.set((complexity, depth));
    }

    /// Its complexity and depth, once validated.
    #[must_use]
    pub fn validated(&self) -> Option<(usize, usize)> {
        self.validated.get().copied()
    }

    /// The part of it that a request with these variables executes. It must be valid, and the variables must
    /// fit.
    #[must_use]
    pub fn execution(&self, operation: &OperationDefinition, variables: &Variables) -> Execution {
        if self.plain {
            Execution::plain(self.planned(), operation, variables)
        } else {
            Execution::merged(&self.parsed, operation, variables)
        }
    }

    #[must_use]
    pub fn executable(&self) -> &ExecutableDocument {
        &self.parsed
    }

    /// A copy of the document for one request.
    #[must_use]
    pub fn parsed(&self) -> ExecutableDocument {
        self.parsed.clone()
    }

    /// The document for a request whose variables are checked. The executor needs an owned one. Once every root
    /// field has its plan, copying and walking the selections would be most of the remaining work, for nothing.
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

    /// The document without selections and fragments. None until every root field has its plan.
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

    /// The operation a request asks for. None if the name is unknown, or missing although there are several.
    #[must_use]
    pub fn operation(&self, name: Option<&str>) -> Option<&OperationDefinition> {
        let mut operations = self.parsed.operations.iter();
        match name {
            Some(name) => operations.find(|(known, _)| known.is_some_and(|known| known == name)),
            None => operations.next().filter(|_| operations.next().is_none()),
        }
        .map(|(_, operation)| &operation.node)
    }

    #[must_use]
    pub fn is_query(&self, name: Option<&str>) -> bool {
        self.operation(name).is_some_and(|operation| operation.ty == OperationType::Query)
    }

    #[must_use]
    pub fn is_subscription(&self, name: Option<&str>) -> bool {
        self.operation(name).is_some_and(|operation| operation.ty == OperationType::Subscription)
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

/// Whether every root is a field with its own response key, without directives that may skip it, and not
/// introspection.
fn is_plain(operation: &OperationDefinition) -> bool {
    let mut seen = std::collections::HashSet::new();
    operation.selection_set.node.items.iter().all(|selection| match &selection.node {
        Selection::Field(field) => {
            let field = &field.node;
            field.directives.is_empty()
                && !is_about_schema(field)
                && seen.insert(field.response_key().node.as_str())
        }
        Selection::InlineFragment(_) | Selection::FragmentSpread(_) => false,
    })
}

/// The documents that callers with a credential sent recently.
pub struct Documents {
    kept: Cache<String, CachedDocument>,
    limits: RequestLimits,
}

#[derive(Clone)]
struct CachedDocument {
    document: Arc<Document>,
    weight: u32,
}

impl Documents {
    #[must_use]
    pub fn new(limits: &RequestLimits) -> Self {
        let kept = Cache::builder()
            .max_capacity(limits.document_cache_bytes)
            .weigher(|_, kept: &CachedDocument| kept.weight);
        Self { kept: kept.build(), limits: limits.clone() }
    }

    /// The document for this text, parsed only once while it is cached. Only documents from a `known` caller
    /// are cached, so that strangers can't fill the cache or evict others.
    ///
    /// # Errors
    /// The text isn't a valid document.
    pub fn get(&self, text: &str, known: bool) -> Result<Arc<Document>, ServerError> {
        if let Some(kept) = self.kept.get(text) {
            return Ok(kept.document);
        }
        check_text(text)?;
        let document =
            Arc::new(Document::new(async_graphql::parser::parse_query(&*escapes::readable(text)?)?));
        let size = check_document(&document.parsed, &self.limits)?;
        // Longer documents are rarely repeated.
        if known && text.len() <= 16 << 10 {
            let kept = CachedDocument { document: Arc::clone(&document), weight: weight(text, &size) };
            self.kept.insert(text.to_owned(), kept);
        }
        Ok(document)
    }

    #[must_use]
    pub fn weight(&self) -> (u64, u64) {
        self.kept.run_pending_tasks();
        (self.kept.weighted_size(), self.kept.entry_count())
    }
}

/// Roughly how many bytes a document takes in the cache, with its plans: about 240 for each parsed selection or
/// value, and 290 for each selection in a plan. Measured as growth of resident memory by 300 documents of each
/// of several shapes: a panel's document with 16 selections took 9.5 KB and weighs 9.9 KB; one that follows 80
/// relations took 168 KB and weighs 179 KB. If the same fields are selected repeatedly, the plan is smaller.
fn weight(text: &str, size: &Size) -> u32 {
    let bytes = 1_000 + text.len() + 250 * size.nodes + 300 * size.written_out;
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
