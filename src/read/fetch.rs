//! Step two: fetches rows. One statement for a root field, and one for each relation of the whole list.

use std::{borrow::Cow, collections::HashMap, fmt::Write, marker::PhantomData, ops::Range, sync::Arc};

use dataloader::{BatchFn, cached::Loader};
use futures::future::{BoxFuture, FutureExt, try_join_all};
use parking_lot::Mutex;
use sea_orm::{QueryResult, Value};
use secrecy::SecretString;

use super::{
    Reading,
    plan::{NOW, Plan, Relation, VIEWER},
    spec::Record,
    write::read_int,
};
use crate::{
    base::{
        ids::OrgId,
        problem::{Code, Problem, Result},
        time::Timestamp,
    },
    core::{Core, access::Scope, events::Memo, store::Db},
};

/// The rows of a root field's answer, always from one organization.
///
/// Conditions are our own SQL text with `?` for each value. Input from callers is only ever a value.
pub struct Rows<R> {
    pub(super) scope: Scope,
    conditions: String,
    values: Vec<Value>,
    order: String,
    limit: Option<u64>,
    offset: u64,
    pub(super) reversed: bool,
    parent: Option<ParentRecord>,
    /// The time of reading.
    now: Timestamp,
    record: PhantomData<R>,
}

/// The record that the rows are parts of.
#[derive(Clone)]
struct ParentRecord {
    kind: &'static str,
    id: i64,
    /// A statement that selects how many parts it has in all. No row means that the record doesn't exist.
    count: String,
    /// The number of values that statement uses. It is sent with only these: PostgreSQL caches the statement by its
    /// text, and refuses it with a different number of values.
    values: usize,
}

impl<R: Record> Rows<R> {
    /// All rows of the scope's organization, unordered.
    #[must_use]
    pub fn of(scope: &Scope) -> Self {
        let spec = R::spec();
        let mut conditions = format!("{} = $1", spec.tenant);
        if !spec.visible.is_empty() {
            let _ = write!(conditions, " AND {}", spec.visible);
        }
        Self {
            scope: scope.clone(),
            conditions,
            values: vec![scope.org.0.into()],
            order: String::new(),
            limit: None,
            offset: 0,
            reversed: false,
            parent: None,
            now: scope.core.clock.now(),
            record: PhantomData,
        }
    }

    /// Keeps only rows that meet `condition`. Each `?` in it stands for the next of `values`.
    #[must_use]
    pub fn filter(mut self, condition: &str, values: impl IntoIterator<Item = Value>) -> Self {
        let condition = self.numbered(condition, values);
        self.conditions.push_str(" AND ");
        self.conditions.push_str(&condition);
        self
    }

    /// Makes the rows parts of one record that must exist: otherwise `NOT_FOUND`, found out in the same statement if
    /// there are rows. `count` selects how many parts it has in all, a number stored in the record, so that a total
    /// costs the same for any number of parts. `$1` is the organization.
    #[must_use]
    pub fn parts_of(
        mut self,
        kind: &'static str,
        id: i64,
        count: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> Self {
        let count = self.numbered(count, values);
        self.parent = Some(ParentRecord { kind, id, count, values: self.values.len() });
        self
    }

    /// Our SQL text with each `?` replaced by the number of its value.
    fn numbered(&mut self, sql: &str, values: impl IntoIterator<Item = Value>) -> String {
        let mut values = values.into_iter();
        let mut out = String::with_capacity(sql.len() + 8);
        for piece in sql.split_inclusive('?') {
            match piece.strip_suffix('?') {
                Some(text) => {
                    self.values.extend(values.next());
                    let _ = write!(out, "{text}${}", self.values.len());
                }
                None => out.push_str(piece),
            }
        }
        out
    }

    /// [`Self::filter`], if there is a value to filter by.
    #[must_use]
    pub fn filter_if<V: Into<Value>>(self, condition: &str, value: Option<V>) -> Self {
        match value {
            Some(value) => self.filter(condition, [value.into()]),
            None => self,
        }
    }

    /// Leaves out archived rows unless they are wanted.
    #[must_use]
    pub fn unless_archived(self, wanted: bool) -> Self {
        if wanted { self } else { self.filter("t.archived_at IS NULL", []) }
    }

    /// The order, as in SQL.
    #[must_use]
    pub fn order_by(mut self, order: impl Into<String>) -> Self {
        self.order = order.into();
        self
    }

    /// At most `limit` rows, after `offset`.
    #[must_use]
    pub fn window(mut self, limit: u64, offset: u64) -> Self {
        self.limit = Some(limit);
        self.offset = offset;
        self
    }

    /// Returns the rows in the reverse of the order they are found in: for example the newest hundred, oldest
    /// first.
    #[must_use]
    pub fn reversed(mut self) -> Self {
        self.reversed = true;
        self
    }

    /// Fetches the rows, with `more` expressions after the plan's columns.
    pub(super) async fn fetch(&self, plan: &Plan, more: &[Cow<'_, str>]) -> Result<Vec<QueryResult>> {
        let (sql, values) = self.statement(plan, more);
        Ok(self.scope.core.db.all(sql, values).await?)
    }

    /// Fetches the rows. If they are found only by keys, they are shared with everyone who handles the same event.
    pub(super) async fn fetch_shared(&self, plan: &Plan) -> Result<Vec<Arc<QueryResult>>> {
        let (sql, values) = self.statement(plan, &[]);
        find(&self.scope.core, self.scope.memo.as_deref(), sql, values).await
    }

    fn statement(&self, plan: &Plan, more: &[Cow<'_, str>]) -> (String, Vec<Value>) {
        let spec = R::spec();
        let mut values = self.values.clone();
        let mut sql = String::with_capacity(plan.columns.len() + self.conditions.len() * 2 + 160);
        let _ = write!(sql, "SELECT {}", plan.columns);
        for (n, more) in more.iter().enumerate() {
            let _ = write!(sql, ", {more} AS m{n}");
        }
        let mut order = String::new();
        if !self.order.is_empty() {
            let _ = write!(order, " ORDER BY {}", self.order);
        }
        let mut found = format!("FROM {} WHERE {}{order}", spec.from, self.conditions);
        if let Some(limit) = self.limit {
            let _ = write!(found, " LIMIT ${} OFFSET ${}", values.len() + 1, values.len() + 2);
            values.push(Value::BigInt(Some(limit.cast_signed())));
            values.push(Value::BigInt(Some(self.offset.cast_signed())));
        }
        // PostgreSQL computes the whole select list even for rows that OFFSET skips, so skip them in a
        // subquery.
        let _ = if self.offset > 0 && !spec.is_joined() {
            write!(sql, " FROM (SELECT t.* {found}) t{order}")
        } else {
            write!(sql, " {found}")
        };
        (filled(sql, &mut values, || self.now, self.viewer()), values)
    }

    /// Counts the rows, ignoring the window.
    pub(super) async fn count(&self) -> Result<i64> {
        let values = self.parent.as_ref().map_or(self.values.len(), |parent| parent.values);
        let mut values = self.values[..values].to_vec();
        let sql = filled(self.count_sql().into_owned(), &mut values, || self.now, self.viewer());
        let row = self.scope.core.db.one(sql, values).await?;
        self.counted(row.and_then(|row| read_int(&row, 0).ok().flatten()))
    }

    /// The result of counting, or `NOT_FOUND` if the counted record doesn't exist.
    pub(super) fn counted(&self, count: Option<i64>) -> Result<i64> {
        match (&self.parent, count) {
            (_, Some(count)) => Ok(count),
            (Some(parent), None) => Err(Problem::not_found(parent.kind, parent.id)),
            (None, None) => Ok(0),
        }
    }

    /// A statement that counts the rows.
    pub(super) fn count_sql(&self) -> Cow<'_, str> {
        match &self.parent {
            Some(parent) => Cow::Borrowed(&parent.count),
            None => format!("SELECT COUNT(*) FROM {} WHERE {}", R::spec().from, self.conditions).into(),
        }
    }

    /// The time of reading: [`NOW`] in columns and conditions.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The calling person: [`VIEWER`] in columns and conditions.
    fn viewer(&self) -> Option<i64> {
        self.scope.request.caller.user().map(|user| user.0)
    }

    /// The same rows again, to be narrowed further.
    pub(super) fn copy(&self) -> Self {
        Self {
            scope: self.scope.clone(),
            conditions: self.conditions.clone(),
            values: self.values.clone(),
            order: self.order.clone(),
            parent: self.parent.clone(),
            record: PhantomData,
            ..*self
        }
    }

    /// Whether the rows are parts of a record that must exist.
    pub(super) fn are_parts(&self) -> bool {
        self.parent.is_some()
    }

    /// Whether the window may have skipped rows.
    pub(super) fn is_offset(&self) -> bool {
        self.offset > 0
    }
}

/// Runs a statement; once for everyone who shares `memo`, if it finds rows only by keys.
async fn find(
    core: &Core,
    memo: Option<&Memo>,
    sql: String,
    values: Vec<Value>,
) -> Result<Vec<Arc<QueryResult>>> {
    let key = |value: &Value| if let Value::BigInt(key) = value { *key } else { None };
    let keys = values.iter().map(key).collect::<Option<Vec<i64>>>();
    let question = memo.zip(keys).map(|(memo, keys)| (memo, (sql.clone(), keys)));
    let read = async { Ok(shared(core.db.all(sql, values).await?)) };
    match question {
        Some((memo, question)) => memo.rows(question, read).await,
        None => read.await,
    }
}

/// A statement with the time of reading and the calling person as extra values, if it uses them.
fn filled(
    mut sql: String,
    values: &mut Vec<Value>,
    now: impl FnOnce() -> Timestamp,
    viewer: Option<i64>,
) -> String {
    if sql.contains(NOW) {
        values.push(now().0.into());
        sql = sql.replace(NOW, &format!("${}", values.len()));
    }
    if sql.contains(VIEWER) {
        values.push(Value::BigInt(viewer));
        sql = sql.replace(VIEWER, &format!("${}", values.len()));
    }
    sql
}

/// The most rows of one relation of a whole list. They are read into memory before the limit on the response applies,
/// and a caller could fill the memory.
const MAX_RELATED: usize = 50_000;

/// Wraps rows so that they can be held more than once.
pub(super) fn shared(rows: Vec<QueryResult>) -> Vec<Arc<QueryResult>> {
    rows.into_iter().map(Arc::new).collect()
}

/// Rows with all relations that their plan loads.
pub(super) struct Level {
    pub rows: Vec<Arc<QueryResult>>,
    pub relations: Vec<Related>,
    /// Values that depend on the caller, as JSON.
    pub callers: Vec<String>,
    /// For each permission that fields need, whether the caller has it.
    pub allowed: Vec<bool>,
    /// The secret shown in this answer only.
    pub secret: Option<SecretString>,
    /// When the rows were read.
    pub now: Timestamp,
    /// The request they are read for.
    pub reading: Arc<Reading>,
}

/// The rows of one relation: a range of `level` for each key.
pub(super) struct Related {
    pub by_key: HashMap<i64, Range<usize>>,
    pub level: Level,
}

/// Loads the relations of `rows` level by level, siblings concurrently.
pub(super) fn expand<'a>(
    reading: &'a Arc<Reading>,
    scope: &'a Scope,
    plan: &'a Plan,
    rows: Vec<Arc<QueryResult>>,
) -> BoxFuture<'a, Result<Level>> {
    async move {
        let relations =
            try_join_all(plan.relations.iter().map(|relation| related(reading, scope, relation, &rows)))
                .await?;
        let callers = plan.callers.iter().map(|json| json(scope)).collect();
        let is_person = scope.request.caller.token().is_none();
        let allowed = plan
            .needed
            .iter()
            .map(|(permission, is_for_people)| scope.may(*permission) && (is_person || !is_for_people));
        let allowed: Vec<bool> = allowed.collect();
        if let Some(key) = scope.request.key() {
            let shown = plan.needed.iter().zip(&allowed).filter(|(_, may)| **may);
            shown.for_each(|((permission, _), _)| key.needs(scope.org, *permission));
        }
        let (now, reading) = (scope.core.clock.now(), Arc::clone(reading));
        Ok(Level { rows, relations, callers, allowed, secret: None, now, reading })
    }
    .boxed()
}

async fn related(
    reading: &Arc<Reading>,
    scope: &Scope,
    relation: &Relation,
    parents: &[Arc<QueryResult>],
) -> Result<Related> {
    if let Some(permission) = relation.plan.spec.permission {
        scope.require(permission)?;
        if let Some(key) = scope.request.key() {
            key.needs(scope.org, permission);
        }
    }
    let mut keys = Vec::with_capacity(parents.len());
    for parent in parents {
        keys.extend(read_int(parent, relation.key)?);
    }
    keys.sort_unstable();
    keys.dedup();
    let mut by_key = HashMap::with_capacity(keys.len());
    let mut rows = Vec::with_capacity(keys.len());
    if !keys.is_empty() {
        let loader = reading.loaders.get(scope, relation);
        let mut loaded = loader.try_load_many(keys.clone()).await.map_err(Problem::internal)?;
        for key in keys {
            let found = loaded.remove(&key).unwrap_or_else(|| Ok(Arc::default()))?;
            by_key.insert(key, rows.len()..rows.len() + found.len());
            rows.extend(found.iter().cloned());
        }
    }
    Ok(Related { by_key, level: expand(reading, scope, &relation.plan, rows).await? })
}

/// The rows for one key. Errors travel in the value, because a batch must answer every key.
type Loaded = Result<Arc<Vec<Shared>>>;

/// A row that a loader caches and hands out.
type Shared = Arc<QueryResult>;

/// The data loaders of one request. Two places in a document that ask the same question of the same
/// organization share a loader, and so its batch and its rows.
#[derive(Default)]
pub(super) struct Loaders(Mutex<CachedLoaders>);

#[derive(Default)]
struct CachedLoaders {
    /// The request's [`changes`](Request::changes) when the rows were read.
    changes: u64,
    loaders: HashMap<Question, Loader<i64, Loaded, ByKey>>,
}

/// The question of a loader: an organization and its SQL.
type Question = (OrgId, String);

impl Loaders {
    fn get(&self, scope: &Scope, relation: &Relation) -> Loader<i64, Loaded, ByKey> {
        let sql = relation_sql(relation, &scope.core.db);
        let mut kept = self.0.lock();
        let changes = scope.request.changes();
        if kept.changes != changes {
            *kept = CachedLoaders { changes, ..CachedLoaders::default() };
        }
        let question = (scope.org, sql);
        if let Some(loader) = kept.loaders.get(&question) {
            return loader.clone();
        }
        let viewer = scope.request.caller.user().map(|user| user.0);
        let batch = ByKey { core: Arc::clone(&scope.core), org: scope.org, viewer, sql: question.1.clone() };
        // A list asks for all its keys at once, so waiting for more gains nothing.
        let loader = Loader::new(batch).with_yield_count(1).with_max_batch_size(1000);
        kept.loaders.insert(question, loader.clone());
        loader
    }
}

fn relation_sql(relation: &Relation, db: &Db) -> String {
    let (spec, load) = (relation.plan.spec, &relation.load);
    let keys = db.is_among();
    let mut sql = format!(
        "SELECT {} FROM {} WHERE {} = $1 AND {} {keys}",
        relation.plan.columns,
        load.from.unwrap_or(spec.from),
        spec.tenant,
        load.by,
    );
    for condition in [spec.visible, load.filter].into_iter().filter(|condition| !condition.is_empty()) {
        let _ = write!(sql, " AND {condition}");
    }
    if !load.order.is_empty() {
        let _ = write!(sql, " ORDER BY {}", load.order);
    }
    let _ = write!(sql, " LIMIT {}", MAX_RELATED + 1);
    sql
}

/// One question: the rows of a relation by key, within one organization. It holds no scope, because that would
/// keep the request alive.
struct ByKey {
    core: Arc<Core>,
    org: OrgId,
    viewer: Option<i64>,
    sql: String,
}

impl BatchFn<i64, Loaded> for ByKey {
    async fn load(&mut self, keys: &[i64]) -> HashMap<i64, Loaded> {
        let found = self.rows(keys).await;
        keys.iter()
            .map(|key| {
                let rows = match &found {
                    Ok(found) => Ok(Arc::new(found.get(key).cloned().unwrap_or_default())),
                    Err(problem) => Err(problem.clone()),
                };
                (*key, rows)
            })
            .collect()
    }
}

impl ByKey {
    async fn rows(&self, keys: &[i64]) -> Result<HashMap<i64, Vec<Shared>>> {
        let mut values = vec![self.org.0.into(), self.core.db.keys(keys)];
        let sql = filled(self.sql.clone(), &mut values, || self.core.clock.now(), self.viewer);
        let rows = self.core.db.all(sql, values).await?;
        if rows.len() > MAX_RELATED {
            let detail = format!(
                "A relation of this list has more than {MAX_RELATED} records. Ask for fewer at once."
            );
            return Err(Problem::new(Code::QueryTooComplex, detail));
        }
        let mut by_key: HashMap<i64, Vec<Shared>> = HashMap::with_capacity(keys.len());
        for row in rows {
            if let Some(key) = read_int(&row, 0)? {
                by_key.entry(key).or_default().push(Arc::new(row));
            }
        }
        Ok(by_key)
    }
}
