//! Documents that are kept: parsed and validated once, and their plans with them.
//!
//! Parsing and validating costs more than answering most requests. The operations behind `/v1` are prepared at
//! start; what GraphQL callers with a credential send is kept by its text, bounded by what it weighs. A kept document is
//! the very same `ExecutableDocument` that the executor would have parsed; only the work is not repeated.

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
    execution::Execution,
    introspection::is_about_schema,
};
use crate::core::config::RequestLimits;
use crate::read::Plans;

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
    /// Whether its operations can be executed as they were sent.
    plain: bool,
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
        let plain = parsed.operations.iter().all(|(_, op)| is_plain(&op.node));
        // A plan is known by where its root field stands. A fragment of two operations may be merged with different
        // fields in each.
        let one_place = plain || parsed.operations.iter().count() == 1;
        let plans = (static_shape && one_place).then(Arc::<Plans>::default);
        Self { parsed, validated: OnceLock::new(), planned: OnceLock::new(), plans, plain }
    }

    /// A document of our own, to be executed without looking at it.
    #[must_use]
    pub fn trusted(parsed: ExecutableDocument) -> Self {
        let document = Self::new(parsed);
        document.is_valid(0, 0);
        document
    }

    /// Notes that it is valid, how complex it is and how deep.
    pub fn is_valid(&self, complexity: usize, depth: usize) {
        let _ = self.validated.set((complexity, depth));
    }

    /// How complex it is and how deep, once it was validated.
    #[must_use]
    pub fn validated(&self) -> Option<(usize, usize)> {
        self.validated.get().copied()
    }

    /// What a request with these variables executes of it. It must be valid, and the variables must fit.
    #[must_use]
    pub fn execution(&self, operation: &OperationDefinition, variables: &Variables) -> Execution {
        if self.plain {
            Execution::plain(self.planned(), operation, variables)
        } else {
            Execution::merged(&self.parsed, operation, variables)
        }
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

/// Whether every root is a field with a response key of its own, which no directive leaves out and which is not about
/// the schema.
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

/// The documents that callers with a credential have sent lately.
pub struct Documents {
    kept: Cache<String, Kept>,
    limits: RequestLimits,
}

#[derive(Clone)]
struct Kept {
    document: Arc<Document>,
    weight: u32,
}

impl Documents {
    /// Keeps as many documents as the limits have room for.
    #[must_use]
    pub fn new(limits: &RequestLimits) -> Self {
        let kept =
            Cache::builder().max_capacity(limits.document_cache_bytes).weigher(|_, kept: &Kept| kept.weight);
        Self { kept: kept.build(), limits: limits.clone() }
    }

    /// The document of this text, parsed at most once while it is kept. Only a `known` caller's is: what strangers send
    /// takes no room, and drives nothing out.
    ///
    /// # Errors
    /// The text is no document.
    pub fn get(&self, text: &str, known: bool) -> Result<Arc<Document>, ServerError> {
        if let Some(kept) = self.kept.get(text) {
            return Ok(kept.document);
        }
        check_text(text)?;
        let document = Arc::new(Document::new(async_graphql::parser::parse_query(text)?));
        let size = check_document(&document.parsed, &self.limits)?;
        if known && text.len() <= LONGEST_KEPT {
            let kept = Kept { document: Arc::clone(&document), weight: weight(text, &size) };
            self.kept.insert(text.to_owned(), kept);
        }
        Ok(document)
    }

    /// How many bytes what is kept takes, and how many documents that is.
    #[must_use]
    pub fn weight(&self) -> (u64, u64) {
        self.kept.run_pending_tasks();
        (self.kept.weighted_size(), self.kept.entry_count())
    }
}

/// About how many bytes a document takes while it is kept, with its plans: some 240 for each selection or value as it was
/// parsed, and 290 for each selection in a plan. Measured as growth of resident memory by 300 documents of each of several
/// shapes: a panel's document of 16 selections took 9.5 KB, and weighs 9.9 KB; one that follows 80 relations took 168 KB,
/// and weighs 179 KB. Where the same is selected again and again, a plan is smaller than that.
fn weight(text: &str, size: &Size) -> u32 {
    let bytes = 1_000 + text.len() + 250 * size.nodes + 300 * size.written_out;
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
