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
    base::problem::{Problem, Result},
    core::{ContextExt, access::Scope},
    read::below,
};

/// One record by its id, or `NOT_FOUND` if the organization has no such record.
pub struct One<R> {
    rows: Rows<R>,
    id: i64,
    secret: Option<SecretString>,
}

impl<R: Record> One<R> {
    /// The record with this id in the scope's organization. No I/O yet.
    pub fn by_id(scope: &Scope, id: impl Into<sea_orm::Value>) -> Self {
        let id = id.into();
        let shown = if let sea_orm::Value::BigInt(Some(id)) = id { id } else { 0 };
        Self { rows: Rows::of(scope).filter("t.id = ?", [id]), id: shown, secret: None }
    }

    /// The only row of `rows`. `id` is what a `NOT_FOUND` error names.
    #[must_use]
    pub fn of(rows: Rows<R>, id: i64) -> Self {
        Self { rows, id, secret: None }
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
            Ok(out)
        })
        .await
    }
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
            let rows = self.0.fetch(plan, false).await?;
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

/// The numbers on a page besides `data` and `total`: the requested window.
pub trait Numbers: Send + Sync + 'static {
    /// The name and description of each.
    const FIELDS: &'static [(&'static str, &'static str)];
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

/// Only the total.
pub struct NoNumbers;

impl Numbers for NoNumbers {
    const FIELDS: &'static [(&'static str, &'static str)] = &[];
}

/// A page of records: `data`, `total`, and the fields of `N`.
pub struct Paged<R, N> {
    rows: Rows<R>,
    numbers: Vec<i64>,
    numbered: PhantomData<N>,
}

/// A page by number: `data`, `total`, `page`, `limit`.
pub type Page<R> = Paged<R, PageNumbers>;
/// A page by offset: `data`, `total`, `limit`, `offset`.
pub type OffsetPage<R> = Paged<R, OffsetNumbers>;
/// Records and their total: `data`, `total`.
pub type Counted<R> = Paged<R, NoNumbers>;

impl<R: Record> Page<R> {
    /// Page `page` (from 1) with `limit` rows. A page past the end is empty, with the real total.
    #[must_use]
    pub fn numbered(rows: Rows<R>, page: i64, limit: i64) -> Self {
        let offset = page.saturating_sub(1).saturating_mul(limit).max(0).cast_unsigned();
        let rows = rows.window(limit.max(0).cast_unsigned(), offset);
        Self { rows, numbers: vec![page, limit], numbered: PhantomData }
    }
}

impl<R: Record> OffsetPage<R> {
    /// `limit` rows after `offset`.
    #[must_use]
    pub fn at(rows: Rows<R>, limit: i64, offset: i64) -> Self {
        let rows = rows.window(limit.max(0).cast_unsigned(), offset.max(0).cast_unsigned());
        Self { rows, numbers: vec![limit, offset], numbered: PhantomData }
    }
}

impl<R: Record> Counted<R> {
    /// The parts of a record that stores their count (see [`Rows::parts_of`]).
    #[must_use]
    pub fn parts(rows: Rows<R>) -> Self {
        Self { rows, numbers: Vec::new(), numbered: PhantomData }
    }
}

impl<R: Record, N: Numbers> Paged<R, N> {
    async fn write(&self, reading: &Arc<Reading>, page: &PageShape) -> Result<Vec<u8>> {
        let mut total: Option<i64> = None;
        let mut levels = Vec::with_capacity(page.lists.len());
        for plan in &page.lists {
            let count_in_row = total.is_none() && (page.wants_total || self.rows.are_parts());
            let rows = self.rows.fetch(plan, count_in_row).await?;
            if count_in_row {
                total = match rows.first() {
                    Some(row) => Some(self.rows.counted(write::read_int(row, plan.width)?)?),
                    None if self.rows.are_parts() => Some(self.rows.count().await?),
                    // No row carries the count: the page is past the end, or there are no rows.
                    None if self.rows.is_offset() => None,
                    None => Some(0),
                };
            }
            levels.push(expand(reading, &self.rows.scope, plan, shared(rows)).await?);
        }
        let total = match total {
            None if page.wants_total => self.rows.count().await?,
            known => known.unwrap_or(0),
        };
        let mut out = Vec::new();
        if page.fields.is_empty() {
            out.push(b'{');
        }
        for (lead, slot) in &page.fields {
            out.extend_from_slice(lead);
            match slot {
                PageSlot::Data(n) => write_level(&self.rows, &page.lists[*n], &levels[*n], &mut out)?,
                PageSlot::Total => out.extend_from_slice(total.to_string().as_bytes()),
                PageSlot::Number(n) => out.extend_from_slice(self.numbers[*n].to_string().as_bytes()),
                PageSlot::Literal(bytes) => out.extend_from_slice(bytes),
            }
        }
        out.push(b'}');
        Ok(out)
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
            for (name, about) in N::FIELDS {
                add(name, about, i64::create_type_info(registry));
            }
            let about = format!("A page of {} records.", kind(R::spec().name));
            object_type(&Self::type_name(), &about, fields, std::any::type_name::<Self>())
        })
    }

    async fn resolve(&self, ctx: &ContextSelectionSet<'_>, field: &Positioned<Field>) -> ServerResult<Value> {
        answer(ctx, field, async {
            let shape = shape(ctx, field, |planner, set| {
                Shape::Page(PageShape::plan::<R, N>(planner, &Self::type_name(), set))
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
    lists: Vec<Plan>,
    wants_total: bool,
}

enum PageSlot {
    /// The records as selected by the n-th plan: aliases of `data` may select different fields.
    Data(usize),
    Total,
    Number(usize),
    Literal(Box<[u8]>),
}

impl PageShape {
    fn plan<'a, R: Record, N: Numbers>(planner: Planner<'a>, type_name: &str, set: &'a SelectionSet) -> Self {
        let mut page = Self { fields: Vec::new(), lists: Vec::new(), wants_total: false };
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
                name => match N::FIELDS.iter().position(|(known, _)| *known == name) {
                    Some(n) => PageSlot::Number(n),
                    None => continue, // validation has already refused unknown fields
                },
            };
            page.fields.push((lead(page.fields.is_empty(), key), slot));
        }
        page
    }
}

/// The request's reading context.
fn reading<'a>(ctx: &ContextSelectionSet<'a>) -> &'a Arc<Reading> {
    ctx.data_unchecked::<Arc<Reading>>()
}

/// The plan for this selection set: the document's cached one, or a new one.
fn shape<'a>(
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
fn answer<'a>(
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
            Ok(json) => serde_json::from_slice(&json).map_err(Problem::internal),
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
    // Extra room for what the page adds around its rows.
    out.reserve(count * plan.width * 24 + 96);
    if source.reversed {
        write::array(plan, level, (0..count).rev(), out)
    } else {
        write::array(plan, level, 0..count, out)
    }
}

fn wrong_shape() -> Problem {
    Problem::internal(anyhow::anyhow!("a plan of a different shape was cached for this position"))
}

/// The plans of a cached document, by the position of the root field.
#[derive(Default)]
pub struct Plans(std::sync::Mutex<std::collections::HashMap<async_graphql::Pos, Arc<Shape>>>);

impl Plans {
    /// Whether the root field at this position has its plan.
    pub fn has(&self, at: async_graphql::Pos) -> bool {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).contains_key(&at)
    }

    fn get_or_insert(&self, at: async_graphql::Pos, make: impl FnOnce() -> Arc<Shape>) -> Arc<Shape> {
        let mut plans = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        plans.entry(at).or_insert_with(make).clone()
    }
}
