//! Pages that stay consistent while others write: each begins after the last record of the page before, so that no
//! record is shown twice or left out when others are added or removed.
//!
//! A feed is sorted by [`Keys`], which end with the id. `next` is a cursor: the keys of the page's last record. The
//! database continues from there, at any depth.

use std::borrow::Cow;

use async_graphql::{
    ContextSelectionSet, OutputType, Positioned, ServerResult, Value,
    indexmap::IndexMap,
    parser::types::Field,
    registry::{MetaTypeId, Registry},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sea_orm::{QueryResult, Value as SqlValue};
use serde_json::Value as Json;

use super::{
    Reading,
    fetch::{Rows, expand, shared},
    output::{PageShape, Shape, answer, reading, shape, wrong_shape},
    plan::Plan,
    schema::{meta_field, object_type, register_list},
    spec::Record,
    write::{read_int, read_text},
};
use crate::base::{
    enums::SortOrder,
    problem::{Problem, Result},
};

/// The fields of a feed besides `data` and `total`.
const OTHERS: [(&str, &str); 1] =
    [("next", "Where the next page begins: `after` takes it. Null on the last.")];

/// The sort keys of a feed: expressions over the row, none of them ever null. All have the same direction, so that one
/// comparison finds the rows after a record.
pub struct Keys {
    /// Names the order in cursors.
    name: &'static str,
    order: SortOrder,
    keys: Vec<(&'static str, Kind)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Int,
    Text,
}

impl Keys {
    /// Starts with only the id. `name` identifies the order among those of the list.
    #[must_use]
    pub fn new(name: &'static str, order: SortOrder) -> Self {
        Self { name, order, keys: Vec::new() }
    }

    /// Then by a number.
    #[must_use]
    pub fn int(mut self, sql: &'static str) -> Self {
        self.keys.push((sql, Kind::Int));
        self
    }

    /// Then by a text, which both databases must sort alike: a folded one.
    #[must_use]
    pub fn text(mut self, sql: &'static str) -> Self {
        self.keys.push((sql, Kind::Text));
        self
    }

    /// The keys, and last of all the id.
    fn all(&self) -> impl Iterator<Item = (&'static str, Kind)> + '_ {
        self.keys.iter().copied().chain([("t.id", Kind::Int)])
    }

    fn order_by(&self) -> String {
        let way = self.order.as_str();
        self.all().map(|(sql, _)| format!("{sql} {way}")).collect::<Vec<_>>().join(", ")
    }

    /// The condition that a row follows a position, which has a value for each key.
    fn follows(&self) -> String {
        let keys: Vec<_> = self.all().map(|(sql, _)| sql).collect();
        let than = match self.order {
            SortOrder::Asc => ">",
            SortOrder::Desc => "<",
        };
        format!("({}) {than} ({})", keys.join(", "), vec!["?"; keys.len()].join(", "))
    }

    /// The keys as columns.
    fn columns(&self) -> Vec<Cow<'static, str>> {
        let column = |(sql, kind)| match kind {
            Kind::Int => Cow::Owned(format!("CAST({sql} AS BIGINT)")),
            Kind::Text => Cow::Borrowed(sql),
        };
        self.all().map(column).collect()
    }

    /// The cursor after a row whose keys begin at this column.
    fn cursor(&self, row: &QueryResult, at: usize) -> Result<String> {
        let mut place = vec![Json::from(self.name), Json::from(self.order.as_str())];
        for (n, (_, kind)) in self.all().enumerate() {
            place.push(match kind {
                Kind::Int => read_int(row, at + n)?.into(),
                Kind::Text => read_text(row, at + n)?.into(),
            });
        }
        Ok(URL_SAFE_NO_PAD.encode(Json::from(place).to_string()))
    }

    /// The values of a cursor. `None` if it does not belong to this order.
    fn place(&self, cursor: &str) -> Option<Vec<SqlValue>> {
        let place: Vec<Json> = muster_json::from_slice(&URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
        let [name, order, values @ ..] = place.as_slice() else { return None };
        if *name != self.name || *order != self.order.as_str() || values.len() != self.keys.len() + 1 {
            return None;
        }
        let read = |(value, (_, kind)): (&Json, (&str, Kind))| {
            Some(match kind {
                Kind::Int => value.as_i64()?.into(),
                // No name contains a character that PostgreSQL can't store.
                Kind::Text => value.as_str().filter(|text| !text.contains('\0'))?.into(),
            })
        };
        values.iter().zip(self.all()).map(read).collect()
    }
}

/// A page of a feed: `data`, `next`, `total`.
pub struct Feed<R> {
    /// All of them, for the total.
    all: Rows<R>,
    /// The rows of the page, and one more.
    page: Rows<R>,
    keys: Keys,
    limit: usize,
}

impl<R: Record> Feed<R> {
    /// The `limit` rows that follow the cursor `after`, or the first ones.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` for a cursor that this list, sorted this way, did not give.
    pub fn after(rows: Rows<R>, keys: Keys, after: Option<&str>, limit: i64) -> Result<Self> {
        let limit = limit.max(1).cast_unsigned();
        let mut page = rows.copy();
        if let Some(cursor) = after {
            let Some(place) = keys.place(cursor) else {
                let detail =
                    "`after` is not a cursor of this list in this order. Use `next` of the page before.";
                return Err(Problem::invalid_parameter("after", "WRONG_TYPE", detail));
            };
            page = page.filter(&keys.follows(), place);
        }
        let page = page.order_by(keys.order_by()).window(limit + 1, 0);
        Ok(Self { all: rows, page, keys, limit: usize::try_from(limit).map_err(Problem::internal)? })
    }

    async fn write(&self, reading: &std::sync::Arc<Reading>, page: &PageShape) -> Result<Vec<u8>> {
        let (columns, mut next) = (self.keys.columns(), None);
        let mut levels = Vec::with_capacity(page.lists.len());
        for plan in &page.lists {
            let mut rows = self.page.fetch(plan, &columns).await?;
            next = self.next(plan, &rows)?;
            rows.truncate(self.limit);
            levels.push(expand(reading, &self.page.scope, plan, shared(rows)).await?);
        }
        let total = if page.wants_total { self.all.count().await? } else { 0 };
        page.write(&self.page, &levels, total, &[Json::from(next).to_string()])
    }

    /// The cursor after the last row of the page, if there is one more.
    fn next(&self, plan: &Plan, rows: &[QueryResult]) -> Result<Option<String>> {
        match rows.get(self.limit - 1) {
            Some(last) if rows.len() > self.limit => Ok(Some(self.keys.cursor(last, plan.width)?)),
            _ => Ok(None),
        }
    }
}

impl<R: Record> OutputType for Feed<R> {
    fn type_name() -> Cow<'static, str> {
        Cow::Owned(format!("{}Feed", R::spec().name))
    }

    fn create_type_info(registry: &mut Registry) -> String {
        registry.create_output_type::<Self, _>(MetaTypeId::Object, |registry| {
            let mut fields = IndexMap::new();
            let mut add = |name: &str, about: &str, ty: String| {
                fields.insert(name.to_owned(), meta_field(name, about, ty));
            };
            add("data", "The records.", register_list::<R>(registry));
            add(
                "total",
                "The total number of records. Counted only if selected.",
                i64::create_type_info(registry),
            );
            for (name, about) in OTHERS {
                add(name, about, <Option<String>>::create_type_info(registry));
            }
            let about =
                "A page that begins where the one before ended, also after records were added or removed.";
            object_type(&Self::type_name(), about, fields, std::any::type_name::<Self>())
        })
    }

    async fn resolve(&self, ctx: &ContextSelectionSet<'_>, field: &Positioned<Field>) -> ServerResult<Value> {
        answer(ctx, field, async {
            let shape = shape(ctx, field, |planner, set| {
                Shape::Page(PageShape::plan::<R>(planner, &Self::type_name(), &OTHERS, true, set))
            });
            let Shape::Page(page) = &*shape else { return Err(wrong_shape()) };
            self.write(reading(ctx), page).await
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys() -> Keys {
        Keys::new("NAME", SortOrder::Asc).int("t.a").text("t.b")
    }

    fn made(place: &Json) -> String {
        URL_SAFE_NO_PAD.encode(place.to_string())
    }

    #[test]
    fn what_follows_is_one_comparison() {
        assert_eq!(keys().order_by(), "t.a asc, t.b asc, t.id asc");
        assert_eq!(keys().follows(), "(t.a, t.b, t.id) > (?, ?, ?)");
        assert_eq!(Keys::new("NEW", SortOrder::Desc).follows(), "(t.id) < (?)");
    }

    #[test]
    fn a_cursor_is_of_one_order() {
        let order = SortOrder::Asc.as_str();
        let good = made(&serde_json::json!(["NAME", order, 5, "ärger", 7]));
        let place: Vec<SqlValue> = vec![5_i64.into(), "ärger".into(), 7_i64.into()];
        assert_eq!(keys().place(&good), Some(place));
        for wrong in [
            serde_json::json!(["OTHER", order, 5, "a", 7]),
            serde_json::json!(["NAME", SortOrder::Desc.as_str(), 5, "a", 7]),
            serde_json::json!(["NAME", order, "5", "a", 7]),
            serde_json::json!(["NAME", order, 5, null, 7]),
            serde_json::json!(["NAME", order, 5, "a\u{0}", 7]),
            serde_json::json!(["NAME", order, 5, "a"]),
            serde_json::json!(["NAME", order, 5, "a", 7, 8]),
            serde_json::json!({ "NAME": order }),
        ] {
            assert_eq!(keys().place(&made(&wrong)), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_cursor_or_none(text in "\\PC{0,60}") {
            let _ = keys().place(&text);
            let _ = keys().place(&URL_SAFE_NO_PAD.encode(text));
        }
    }
}
