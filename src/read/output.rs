//! The results of root fields: one record, a list, or a page. All are resolved by plan, fetch, and write.

use std::{borrow::Cow, marker::PhantomData, sync::Arc};

use async_graphql::{
    ContextSelectionSet, OutputType, Positioned, ServerResult, Value,
    indexmap::IndexMap,
    parser::types::{Field, SelectionSet},
    registry::{MetaTypeId, Registry},
};
use futures::FutureExt;
use sea_orm::QueryResult;
use secrecy::SecretString;

use super::{
    Reading,
    fetch::{Level, Rows, expand, shared},
    plan::{Plan, Planner, json_string, lead},
    schema::{ObjectOf, meta_field, object_type, register_list},
    spec::Record,
    write,
};
use crate::{
    base::{
        enums::DecidedVia,
        permission::Permission,
        problem::{Problem, Result},
    },
    core::access::Scope,
    read::{below, context::ContextExt},
};

/// One record by its id, or `NOT_FOUND` if the organization has no such record.
pub struct One<R> {
    rows: Rows<R>,
    id: i64,
    secret: Option<SecretString>,
    /// The refusal that is answered instead, with the record.
    refused: Option<Problem>,
}

impl<R: Record> One<R> {
    /// The record with this id in the scope's organization. No I/O yet.
    pub fn by_id(scope: &Scope, id: impl Into<sea_orm::Value>) -> Self {
        let id = id.into();
        let shown = if let sea_orm::Value::BigInt(Some(id)) = id { id } else { 0 };
        Self::of(Rows::of(scope).filter("t.id = ?", [id]), shown)
    }

    /// The record after a change. If it was refused because someone else has changed the record meanwhile, the answer
    /// is the refusal, with the record's current state in `details.current`, in the mutation's selection, if the caller
    /// may see it. `/v1` only answers the refusal.
    ///
    /// # Errors
    /// Any other refusal.
    pub fn after(
        scope: &Scope,
        id: impl Into<sea_orm::Value>,
        view: Permission,
        changed: Result<()>,
    ) -> Result<Self> {
        let refused = match changed {
            Ok(()) => None,
            Err(problem)
                if problem.is_outdated() && scope.request.via == DecidedVia::Graphql && scope.may(view) =>
            {
                // The request's earlier reads are older.
                scope.request.changed();
                Some(problem)
            }
            Err(problem) => return Err(problem),
        };
        Ok(Self { refused, ..Self::by_id(scope, id) })
    }

    /// The only row of `rows`. A `NOT_FOUND` error names `id`.
    #[must_use]
    pub fn of(rows: Rows<R>, id: i64) -> Self {
        Self { rows, id, secret: None, refused: None }
    }
}

impl<R> One<R> {
    /// Shows `secret` in the record's secret field, in this answer only.
    #[must_use]
    pub fn with_secret(mut self, secret: SecretString) -> Self {
        self.secret = Some(secret);
        self
    }
}

impl<R: Record> OutputType for One<R> {
    fn type_name() -> Cow<'static, str> {
        Cow::Borrowed(R::spec().name)
    }

    fn create_type_info(registry: &mut Registry) -> String {
        ObjectOf::<R>::create_type_info(registry)
    }

    async fn resolve(&self, ctx: &ContextSelectionSet<'_>, field: &Positioned<Field>) -> ServerResult<Value> {
        answer(ctx, field, async {
            let shape = shape(ctx, field, |planner, set| Shape::Rows(planner.plan(R::spec(), &[set], None)));
            let Shape::Rows(plan) = &*shape else { return Err(wrong_shape()) };
            let rows = self.rows.fetch_shared(plan).await?;
            if rows.is_empty() {
                return Err(Problem::not_found(&kind(R::spec().name), self.id));
            }
            let mut level = expand(reading(ctx), &self.rows.scope, plan, rows).await?;
            level.secret.clone_from(&self.secret);
            let mut out = Vec::with_capacity(plan.width * 32);
            write::object(plan, &level, 0, &mut out)?;
            match &self.refused {
                Some(refused) => Err(with_current(refused, &out)?),
                None => Ok(out),
            }
        })
        .await
    }
}

/// A refusal with the record's current state.
fn with_current(refused: &Problem, record: &[u8]) -> Result<Problem> {
    let current: serde_json::Value = muster_json::from_slice(record).map_err(Problem::internal)?;
    Ok(refused.clone().with("current", current))
}

/// The name of a kind of record in messages: `McpServer` becomes `mcp server`.
fn kind(type_name: &str) -> String {
    crate::base::spelling::snake_case(type_name).trim_start_matches('_').replace('_', " ")
}

/// A plain list of records, cut off after the first `most`.
pub struct List<R>(Rows<R>);

impl<R: Record> List<R> {
    /// The first `most` of the rows.
    #[must_use]
    pub fn first(rows: Rows<R>, most: u64) -> Self {
        Self(rows.window(most, 0))
    }
}

impl<R: Record> OutputType for List<R> {
    fn type_name() -> Cow<'static, str> {
        Cow::Owned(format!("[{}!]", R::spec().name))
    }

    fn create_type_info(registry: &mut Registry) -> String {
        ObjectOf::<R>::create_type_info(registry);
        Self::qualified_type_name()
    }

    async fn resolve(&self, ctx: &ContextSelectionSet<'_>, field: &Positioned<Field>) -> ServerResult<Value> {
        answer(ctx, field, async {
            let shape = shape(ctx, field, |planner, set| Shape::Rows(planner.plan(R::spec(), &[set], None)));
            let Shape::Rows(plan) = &*shape else { return Err(wrong_shape()) };
            let rows = self.0.fetch(plan, &[]).await?;
            if rows.is_empty() && self.0.are_parts() {
                self.0.count().await?; // NOT_FOUND if the parent record does not exist
            }
            let mut out = Vec::new();
            write_rows(reading(ctx), &self.0, plan, rows, &mut out).await?;
            Ok(out)
        })
        .await
    }
}

/// The fields of a page besides `data` and `total`.
pub trait Numbers: Send + Sync + 'static {
    /// The name and description of each.
    const FIELDS: &'static [(&'static str, &'static str)];
    /// Whether the fields are flags for more records on either side, instead of the requested window.
    const SIDES: bool = false;
}

/// `page` and `limit`.
pub struct PageNumbers;

impl Numbers for PageNumbers {
    const FIELDS: &'static [(&'static str, &'static str)] =
        &[("page", "The page number, starting at 1."), ("limit", "The number of records per page.")];
}

/// `limit` and `offset`.
pub struct OffsetNumbers;

impl Numbers for OffsetNumbers {
    const FIELDS: &'static [(&'static str, &'static str)] =
        &[("limit", "The number of records per page."), ("offset", "The number of records skipped.")];
}

/// `hasBefore` and `hasAfter`.
pub struct Sides;

impl Numbers for Sides {
    const FIELDS: &'static [(&'static str, &'static str)] = &[
        ("hasBefore", "Whether there are older ones than these."),
        ("hasAfter", "Whether there are newer ones than these."),
    ];
    const SIDES: bool = true;
}

/// SQL that tells whether there are other rows before and after a row, and on which side the rows are if the page has
/// none.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// For each side, an expression over the row.
    pub of_row: [&'static str; 2],
    /// For each side, whether all records lie on it if the page has no rows.
    pub of_none: [bool; 2],
}

/// A page of records: `data`, `total`, and the fields of `N`.
pub struct Paged<R, N> {
    rows: Rows<R>,
    numbers: Vec<i64>,
    ends: Option<Ends>,
    numbered: PhantomData<N>,
}

/// A page by number: `data`, `total`, `page`, `limit`.
pub type Page<R> = Paged<R, PageNumbers>;
/// A page by offset: `data`, `total`, `limit`, `offset`.
pub type OffsetPage<R> = Paged<R, OffsetNumbers>;
/// Some of the parts of a record: `data`, `total`, `hasBefore`, `hasAfter`.
pub type Stretch<R> = Paged<R, Sides>;

impl<R: Record> Page<R> {
    /// Page `page` (from 1) with `limit` rows. A page past the end is empty, with the real total.
    #[must_use]
    pub fn numbered(rows: Rows<R>, page: i64, limit: i64) -> Self {
        let offset = page.saturating_sub(1).saturating_mul(limit).max(0).cast_unsigned();
        let rows = rows.window(limit.max(0).cast_unsigned(), offset);
        Self { rows, numbers: vec![page, limit], ends: None, numbered: PhantomData }
    }
}

impl<R: Record> OffsetPage<R> {
    /// `limit` rows after `offset`.
    #[must_use]
    pub fn at(rows: Rows<R>, limit: i64, offset: i64) -> Self {
        let rows = rows.window(limit.max(0).cast_unsigned(), offset.max(0).cast_unsigned());
        Self { rows, numbers: vec![limit, offset], ends: None, numbered: PhantomData }
    }
}

impl<R: Record> Stretch<R> {
    /// The parts of a record that stores their count (see [`Rows::parts_of`]).
    #[must_use]
    pub fn parts(rows: Rows<R>, ends: Ends) -> Self {
        Self { rows, numbers: Vec::new(), ends: Some(ends), numbered: PhantomData }
    }
}

impl<R: Record, N: Numbers> Paged<R, N> {
    async fn write(&self, reading: &Arc<Reading>, page: &PageShape) -> Result<Vec<u8>> {
        let (mut total, mut sides): (Option<i64>, Option<[bool; 2]>) = (None, None);
        let mut levels = Vec::with_capacity(page.lists.len());
        for plan in &page.lists {
            let count_in_row = total.is_none() && (page.wants_total || self.rows.are_parts());
            let count = count_in_row.then(|| Cow::Owned(format!("({})", self.rows.count_sql())));
            let ends = self.ends.filter(|_| page.wants_others);
            let ends = ends.map(|ends| ends.of_row.map(Cow::Borrowed));
            let more: Vec<_> = count.into_iter().chain(ends.into_iter().flatten()).collect();
            let rows = self.rows.fetch(plan, &more).await?;
            if count_in_row {
                total = match rows.first() {
                    Some(row) => Some(self.rows.counted(write::read_int(row, plan.width)?)?),
                    None if self.rows.are_parts() => Some(self.rows.count().await?),
                    // No row carries the count: the page is past the end, or there are no rows.
                    None if self.rows.is_offset() => None,
                    None => Some(0),
                };
            }
            if self.ends.is_some() && page.wants_others {
                sides = self.sides(&rows, plan.width + usize::from(count_in_row))?;
            }
            levels.push(expand(reading, &self.rows.scope, plan, shared(rows)).await?);
        }
        let total = match total {
            None if page.wants_total => self.rows.count().await?,
            known => known.unwrap_or(0),
        };
        let others: Vec<String> = match self.ends {
            Some(ends) => {
                sides.unwrap_or(ends.of_none.map(|all| all && total > 0)).map(|it| it.to_string()).into()
            }
            None => self.numbers.iter().map(i64::to_string).collect(),
        };
        page.write(&self.rows, &levels, total, &others)
    }

    /// Whether there are others before the first and after the last of the rows. None without rows.
    fn sides(&self, rows: &[QueryResult], at: usize) -> Result<Option<[bool; 2]>> {
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(None) };
        let (first, last) = if self.rows.reversed { (last, first) } else { (first, last) };
        Ok(Some([write::read_flag(first, at)?, write::read_flag(last, at + 1)?]))
    }
}

impl<R: Record, N: Numbers> OutputType for Paged<R, N> {
    fn type_name() -> Cow<'static, str> {
        Cow::Owned(format!("{}Page", R::spec().name))
    }

    fn create_type_info(registry: &mut Registry) -> String {
        registry.create_output_type::<Self, _>(MetaTypeId::Object, |registry| {
            let mut fields = IndexMap::new();
            let mut add = |name: &str, about: &str, ty: String| {
                fields.insert(name.to_owned(), meta_field(name, about, ty));
            };
            add("data", "The records.", register_list::<R>(registry));
            add("total", "The total number of records.", i64::create_type_info(registry));
            let ty =
                if N::SIDES { bool::create_type_info(registry) } else { i64::create_type_info(registry) };
            for (name, about) in N::FIELDS {
                add(name, about, ty.clone());
            }
            let about = format!("A page of {} records.", kind(R::spec().name));
            object_type(&Self::type_name(), &about, fields, std::any::type_name::<Self>())
        })
    }

    async fn resolve(&self, ctx: &ContextSelectionSet<'_>, field: &Positioned<Field>) -> ServerResult<Value> {
        answer(ctx, field, async {
            let shape = shape(ctx, field, |planner, set| {
                Shape::Page(PageShape::plan::<R>(planner, &Self::type_name(), N::FIELDS, N::SIDES, set))
            });
            let Shape::Page(page) = &*shape else { return Err(wrong_shape()) };
            self.write(reading(ctx), page).await
        })
        .await
    }
}

/// The planned selection set of a root field.
pub(super) enum Shape {
    Rows(Plan),
    Page(PageShape),
}

/// The plan of a page: its own fields, and the plans for the records.
pub(super) struct PageShape {
    fields: Vec<(Box<[u8]>, PageSlot)>,
    pub lists: Vec<Plan>,
    pub wants_total: bool,
    /// Whether any of the other fields is selected.
    pub wants_others: bool,
}

enum PageSlot {
    /// The records as selected by the n-th plan: aliases of `data` may select different fields.
    Data(usize),
    Total,
    /// The n-th of the other fields.
    Other(usize),
    Literal(Box<[u8]>),
}

impl PageShape {
    /// `others` are the fields besides `data` and `total`; if it `is_of_rows`, selecting only them also reads the rows.
    pub fn plan<'a, R: Record>(
        planner: Planner<'a>,
        type_name: &str,
        others: &[(&str, &str)],
        is_of_rows: bool,
        set: &'a SelectionSet,
    ) -> Self {
        let mut page =
            Self { fields: Vec::new(), lists: Vec::new(), wants_total: false, wants_others: false };
        for (key, fields) in planner.merge(&[set]) {
            let slot = match fields[0].node.name.node.as_str() {
                "data" => {
                    let sets: Vec<_> = below(&fields).collect();
                    page.lists.push(planner.plan(R::spec(), &sets, None));
                    PageSlot::Data(page.lists.len() - 1)
                }
                "total" => {
                    page.wants_total = true;
                    PageSlot::Total
                }
                "__typename" => PageSlot::Literal(json_string(type_name)),
                name => match others.iter().position(|(known, _)| *known == name) {
                    Some(n) => {
                        page.wants_others = true;
                        PageSlot::Other(n)
                    }
                    None => continue, // validation has already refused unknown fields
                },
            };
            page.fields.push((lead(page.fields.is_empty(), key), slot));
        }
        if is_of_rows && page.wants_others && page.lists.is_empty() {
            page.lists.push(planner.plan(R::spec(), &[], None));
        }
        page
    }

    /// The page as JSON. `others` are the values of the other fields, as JSON.
    pub fn write<R: Record>(
        &self,
        rows: &Rows<R>,
        levels: &[Level],
        total: i64,
        others: &[String],
    ) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        if self.fields.is_empty() {
            out.push(b'{');
        }
        for (lead, slot) in &self.fields {
            out.extend_from_slice(lead);
            match slot {
                PageSlot::Data(n) => write_level(rows, &self.lists[*n], &levels[*n], &mut out)?,
                PageSlot::Total => out.extend_from_slice(total.to_string().as_bytes()),
                PageSlot::Other(n) => out.extend_from_slice(others[*n].as_bytes()),
                PageSlot::Literal(bytes) => out.extend_from_slice(bytes),
            }
        }
        out.push(b'}');
        Ok(out)
    }
}

/// The request's reading context.
pub(super) fn reading<'a>(ctx: &ContextSelectionSet<'a>) -> &'a Arc<Reading> {
    ctx.data_unchecked::<Arc<Reading>>()
}

/// The plan for this selection set: the document's cached one, or a new one.
pub(super) fn shape<'a>(
    ctx: &ContextSelectionSet<'a>,
    field: &Positioned<Field>,
    plan: impl FnOnce(Planner<'a>, &'a SelectionSet) -> Shape,
) -> Arc<Shape> {
    let make = || {
        let planner = Planner {
            fragments: &ctx.query_env.fragments,
            registry: &ctx.schema_env.registry,
            backend: ctx.request().core.db.backend(),
        };
        Arc::new(plan(planner, &ctx.item.node))
    };
    match reading(ctx).plans() {
        Some(plans) => plans.get_or_insert(field.pos, make),
        None => make(),
    }
}

/// Boxes the three steps, runs them, and passes the bytes to the executor.
pub(super) fn answer<'a>(
    ctx: &'a ContextSelectionSet<'_>,
    field: &'a Positioned<Field>,
    steps: impl Future<Output = Result<Vec<u8>>> + Send + 'a,
) -> impl Future<Output = ServerResult<Value>> + Send + 'a {
    steps.boxed().map(|done| {
        if let Ok(json) = &done {
            reading(ctx).answered.take(json.len());
        }
        let value = match done {
            // The edge copies these bytes into the response unchanged.
            Ok(json) if reading(ctx).is_raw() => Ok(Value::Binary(json.into())),
            Ok(json) => muster_json::from_slice(&json).map_err(Problem::internal),
            Err(problem) => Err(problem),
        };
        value.map_err(|problem| {
            ctx.set_error_path(async_graphql::Error::from(problem).into_server_error(field.pos))
        })
    })
}

async fn write_rows<R: Record>(
    reading: &Arc<Reading>,
    source: &Rows<R>,
    plan: &Plan,
    rows: Vec<QueryResult>,
    out: &mut Vec<u8>,
) -> Result<()> {
    write_level(source, plan, &expand(reading, &source.scope, plan, shared(rows)).await?, out)
}

fn write_level<R: Record>(source: &Rows<R>, plan: &Plan, level: &Level, out: &mut Vec<u8>) -> Result<()> {
    let count = level.rows.len();
    // Extra room for the page's JSON around the rows.
    out.reserve(count * plan.width * 24 + 96);
    if source.reversed {
        write::array(plan, level, (0..count).rev(), out)
    } else {
        write::array(plan, level, 0..count, out)
    }
}

pub(super) fn wrong_shape() -> Problem {
    Problem::internal(anyhow::anyhow!("a plan of a different shape was cached for this position"))
}

/// The plans of a cached document, by the position of the root field.
#[derive(Default)]
pub struct Plans(parking_lot::Mutex<std::collections::HashMap<async_graphql::Pos, Arc<Shape>>>);

impl Plans {
    /// Whether the root field at this position has its plan.
    pub fn has(&self, at: async_graphql::Pos) -> bool {
        self.0.lock().contains_key(&at)
    }

    fn get_or_insert(&self, at: async_graphql::Pos, make: impl FnOnce() -> Arc<Shape>) -> Arc<Shape> {
        let mut plans = self.0.lock();
        plans.entry(at).or_insert_with(make).clone()
    }
}
