//! ETags of records: a client changes exactly the state that it has read, or learns that the record has changed.
//!
//! An ETag is a hash of the record as answered, so it also covers computed fields and fields that depend on the
//! caller. It is strong, meaning the same ETag stands for the same bytes, except for fields that are constantly
//! measured ([`MEASURED`]): no one edits those, and otherwise a record with a live host would differ on every
//! read. Lists have no ETag, and neither does an answer that shows a secret once.
//!
//! `If-Match` is checked inside the change's transaction ([`IfMatch`]), while no one else can change the
//! record: SQLite has a single writer, and on PostgreSQL the row is locked first. The ETag compared is that of
//! the record as this same operation would answer it, read through the schema like everything else.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_graphql::{
    Name, Positioned, Value, Variables,
    parser::types::{DocumentOperations, OperationType, Selection},
};
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, header};
use tokio::sync::Semaphore;

use super::{Operation, serve::execute_document};
use crate::{
    api::{
        graphql::{Document, Graphql},
        middleware::etag,
    },
    base::{
        enums::RecordKind,
        problem::{Code, Problem, Result},
        spelling::camel_case,
    },
    core::store::{self, Tx},
    domain::locks::lock_record,
    read::{AnswerBudget, Reading},
    resolvers::Catalogue,
};

const TAGGED: &[(&str, RecordKind)] = &[
    ("Agent", RecordKind::Agent),
    ("Approval", RecordKind::Approval),
    ("Channel", RecordKind::Channel),
    ("Conversation", RecordKind::Conversation),
    ("Credential", RecordKind::Credential),
    ("McpServer", RecordKind::McpServer),
    ("Organization", RecordKind::Organization),
    ("Server", RecordKind::Server),
    ("Skill", RecordKind::Skill),
];

/// Fields that hosts report every few seconds or that depend on the time, as `/v1` spells them. A GET that answers with
/// them is never answered with 304.
const MEASURED: &[&str] =
    &["cpu_pct", "ram_pct", "load_1", "load_5", "load_15", "uptime_seconds", "last_seen_at"];

/// How to compute the ETag of the record that an operation answers with.
pub struct EtagSource {
    /// Whether it has any of the [`MEASURED`] fields.
    measured: bool,
    kind: RecordKind,
    /// The root field and the document that read its current state. None for an operation that only reads.
    reads: Option<(String, Arc<Document>)>,
}

impl EtagSource {
    /// Whether a request may make its change conditional on the record's state.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.reads.is_some()
    }

    /// Whether the ETag covers every byte: it leaves no measured field out.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.measured
    }

    /// The ETag source for the record that `operation` answers with. None if the answer isn't a record or shows
    /// a secret.
    pub(super) fn for_operation(operation: &Operation, catalogue: &Catalogue) -> Option<Self> {
        let root = catalogue.root_field(&operation.root)?;
        let ty = root.field.ty.trim_end_matches('!');
        let (_, kind) = TAGGED.iter().find(|(known, _)| *known == ty)?;
        let shows_secret = operation.selects("provisioningToken");
        let reader = catalogue.registry.types.get("Query")?.fields()?.values().find(|field| {
            let args: Vec<&str> = field.args.keys().map(String::as_str).collect();
            field.ty.trim_end_matches('!') == ty && (args == ["orgId", "id"] || args == ["id", "orgId"])
        });
        let takes_id = operation.inputs.iter().any(|input| input.variable == "id");
        let reads = match reader {
            Some(reader) if takes_id && root.root == "Mutation" => {
                let document = Document::new(read_instead(operation, &reader.name)?);
                Some((reader.name.clone(), Arc::new(document)))
            }
            _ => None,
        };
        let measured = MEASURED.iter().any(|name| operation.selects(&camel_case(name)));
        (!shows_secret).then_some(Self { measured, kind: *kind, reads })
    }

    /// The ETag of the record answered as `json`.
    #[must_use]
    pub fn etag(&self, json: &[u8]) -> HeaderValue {
        if self.measured
            && let Ok(mut record) =
                muster_json::from_slice::<serde_json::Map<String, serde_json::Value>>(json)
        {
            record.retain(|name, _| !MEASURED.contains(&name.as_str()));
            return etag::hash(serde_json::Value::Object(record).to_string().as_bytes());
        }
        etag::hash(json)
    }
}

/// The operation's document with another root field, which reads by organization and id what the operation
/// answers.
fn read_instead(
    operation: &Operation,
    reader: &str,
) -> Option<async_graphql::parser::types::ExecutableDocument> {
    let mut document = operation.document.parsed();
    let DocumentOperations::Single(definition) = &mut document.operations else { return None };
    let definition = &mut definition.node;
    definition.ty = OperationType::Query;
    definition
        .variable_definitions
        .retain(|variable| ["orgId", "id"].contains(&variable.node.name.node.as_str()));
    let Some(Positioned { node: Selection::Field(root), .. }) =
        definition.selection_set.node.items.first_mut()
    else {
        return None;
    };
    root.node.name.node = Name::new(reader);
    root.node.alias = None;
    root.node.arguments.retain(|(name, _)| ["orgId", "id"].contains(&name.node.as_str()));
    Some(document)
}

/// The state that a request requires of the record before changing it.
pub(super) struct IfMatch {
    wanted: Vec<String>,
    operation: Arc<Operation>,
    variables: Variables,
    graphql: Arc<Graphql>,
    id: i64,
    checked: AtomicBool,
}

/// The maximum number of reads at a time within open transactions: each holds one connection and needs a second.
static READERS: Semaphore = Semaphore::const_new(4);

impl IfMatch {
    /// What `If-Match` requires, if it was sent and the operation changes a record.
    pub(super) fn from_headers(
        headers: &HeaderMap,
        operation: &Arc<Operation>,
        variables: &Variables,
        graphql: &Arc<Graphql>,
    ) -> Option<Arc<Self>> {
        let wanted = etag::tags(headers, &header::IF_MATCH)?;
        operation.etag_source.as_ref()?.reads.as_ref()?;
        let Some(Value::Number(id)) = variables.get("id") else { return None };
        let kept = |name: &str| Some((Name::new(name), variables.get(name)?.clone()));
        Some(Arc::new(Self {
            wanted: wanted.into_iter().map(str::to_owned).collect(),
            operation: Arc::clone(operation),
            variables: Variables::from_value(Value::Object(
                ["orgId", "id"].into_iter().filter_map(kept).collect(),
            )),
            graphql: Arc::clone(graphql),
            id: id.as_i64()?,
            checked: AtomicBool::new(false),
        }))
    }

    async fn present(&self, tx: &Tx) -> Result<HeaderValue> {
        let missing = || Problem::internal(anyhow::anyhow!("a precondition without a way to read"));
        let current = self.operation.etag_source.as_ref().ok_or_else(missing)?;
        let (root, document) = current.reads.as_ref().ok_or_else(missing)?;
        lock_record(tx, current.kind, self.id).await?;
        let _permit = READERS.acquire().await.map_err(Problem::internal)?;
        let reading = Reading::new(document.plans.clone(), true, AnswerBudget::default());
        let (scope, variables) = (tx.scope.clone(), self.variables.clone());
        let json = execute_document(&self.graphql, document, root, scope, reading, variables).await?;
        Ok(current.etag(&json))
    }
}

impl store::Precondition for IfMatch {
    fn check<'a>(&'a self, tx: &'a Tx) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            // If a request runs several transactions, only the first one checks.
            if self.checked.swap(true, Ordering::Relaxed) {
                return Ok(());
            }
            let etag = self.present(tx).await?;
            if self.wanted.iter().any(|tag| tag == "*" || tag.as_bytes() == etag.as_bytes()) {
                return Ok(());
            }
            let problem = Problem::new(
                Code::PreconditionFailed,
                "The record has changed since you read it. Read it again.",
            );
            Err(problem.with("etag", etag.to_str().unwrap_or_default()))
        })
    }
}
