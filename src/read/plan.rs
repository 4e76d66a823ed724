//! Step one: turns a selection set into a plan.
//!
//! A plan is made once per selection set and serves every row: which expressions to select, the position of
//! each, and the JSON around them with keys already escaped. Fields are merged by response key as in the
//! GraphQL specification (sections 5.3.2 and 6.3.2), so fragments, aliases, and repeated fields cost nothing
//! later. `@skip` and `@include` are gone by now: the executor removes what they exclude.

use std::fmt::Write;

use async_graphql::{
    Positioned,
    parser::types::{Field, SelectionSet},
    registry::{MetaType, Registry},
};
use sea_orm::DbBackend;

use super::spec::{Load, Make, Source, Spec};
use crate::{
    base::{column::Kind, permission::Permission, spelling::snake_case},
    core::access::Scope,
    read::{Fragments, Merged, below, merged},
};

/// The placeholder in an SQL expression for the time of reading, in milliseconds.
pub const NOW: &str = ":now";
/// The placeholder for the id of the calling person; null for a service token.
pub const VIEWER: &str = ":viewer";

/// The plan of one selection set on a record.
pub struct Plan {
    /// The select list, to put after `SELECT`. It may contain [`NOW`] and [`VIEWER`].
    pub(super) columns: String,
    pub(super) object: Object,
    pub(super) relations: Vec<Relation>,
    /// Values that depend on the caller, computed once per list.
    pub(super) callers: Vec<fn(&Scope) -> String>,
    /// Permissions needed for some of the fields, checked once per list.
    pub(super) needed: Vec<Needed>,
    pub(super) spec: &'static Spec,
    pub(super) width: usize,
}

/// A JSON object: for each field, the bytes before its value and the source of the value.
#[derive(Default)]
pub(super) struct Object(pub Vec<(Box<[u8]>, Slot)>);

/// A permission that a field needs, and whether only people see the field.
pub(super) type Needed = (Permission, bool);

pub(super) enum Slot {
    /// Fixed bytes, the same for every row (`__typename`).
    Literal(Box<[u8]>),
    Value {
        at: usize,
        kind: Kind,
    },
    /// The n-th value that depends on the caller.
    Caller(usize),
    /// Null for a caller without the n-th needed permission.
    Guarded(usize, Box<Slot>),
    /// The secret shown in this answer only.
    Secret,
    Parts {
        at: usize,
        parts: Parts,
        make: Option<Make>,
    },
    Embedded {
        present: usize,
        object: Object,
    },
    One(usize),
    Many(usize),
}

/// The selected parts of a JSON value. `None` takes all of it.
pub(super) struct Parts(pub Option<Vec<(Box<[u8]>, Part)>>);

pub(super) enum Part {
    Literal(Box<[u8]>),
    Key { name: String, parts: Parts },
}

/// Rows of another record, loaded for all rows at once.
pub(super) struct Relation {
    /// The position of the key in this plan's columns.
    pub key: usize,
    pub load: Load,
    /// The related rows' plan. Its first column is the key.
    pub plan: Plan,
}

/// The request data that planning uses.
#[derive(Clone, Copy)]
pub(super) struct Planner<'a> {
    pub fragments: &'a Fragments,
    pub registry: &'a Registry,
    pub backend: DbBackend,
}

impl<'a> Planner<'a> {
    /// Plans `sets`, the merged selection sets on one record. `first` becomes the first column.
    pub fn plan(self, spec: &'static Spec, sets: &[&'a SelectionSet], first: Option<&str>) -> Plan {
        let mut needs = Needs::default();
        if let Some(first) = first {
            needs.column(first);
        }
        let object = self.object(spec, sets, &mut needs);
        if needs.columns.is_empty() {
            needs.column("1");
        }
        let Needs { columns, sql, relations, callers, needed } = needs;
        Plan { width: columns.len(), columns: sql, object, relations, callers, needed, spec }
    }

    fn object(self, spec: &'static Spec, sets: &[&'a SelectionSet], needs: &mut Needs) -> Object {
        let mut object = Object::default();
        for (key, fields) in self.merge(sets) {
            let name = fields[0].node.name.node.as_str();
            let slot = match (name, spec.get(name)) {
                ("__typename", _) => Slot::Literal(json_string(spec.name)),
                (_, Some(field)) => {
                    let slot = self.slot(&field.source, &fields, (spec, name), needs);
                    match field.permission {
                        Some(permission) => {
                            let needed = (permission, field.is_for_people);
                            Slot::Guarded(needs.permission(needed), Box::new(slot))
                        }
                        None => slot,
                    }
                }
                (_, None) => continue, // validation has already refused unknown fields
            };
            object.0.push((lead(object.0.is_empty(), key), slot));
        }
        object
    }

    fn slot(
        self,
        source: &'static Source,
        fields: &[&'a Positioned<Field>],
        (owner, name): (&'static Spec, &str),
        needs: &mut Needs,
    ) -> Slot {
        let sets: Vec<_> = below(fields).collect();
        match source {
            Source::Value { sql, kind, .. } => {
                Slot::Value { at: needs.column(sql.for_backend(self.backend)), kind: *kind }
            }
            Source::Caller { json, .. } => {
                needs.callers.push(*json);
                Slot::Caller(needs.callers.len() - 1)
            }
            Source::Secret { .. } => Slot::Secret,
            Source::Parts { sql, make, .. } => {
                let parts = self.parts(self.type_of(owner.name, name), &sets);
                Slot::Parts { at: needs.column(sql), parts, make: *make }
            }
            Source::Embedded { spec, present, .. } => {
                let present = needs.column(present);
                Slot::Embedded { present, object: self.object(spec(), &sets, needs) }
            }
            Source::One { spec, key, load, .. } => {
                Slot::One(needs.relation(key, |key| self.relation(spec(), &sets, key, *load)))
            }
            Source::Many { spec, key, load, .. } => {
                Slot::Many(needs.relation(key, |key| self.relation(spec(), &sets, key, *load)))
            }
        }
    }

    fn relation(self, spec: &'static Spec, sets: &[&'a SelectionSet], key: usize, load: Load) -> Relation {
        Relation { key, load, plan: self.plan(spec, sets, Some(load.by)) }
    }

    fn parts(self, owner: Option<&'a MetaType>, sets: &[&'a SelectionSet]) -> Parts {
        // Decided by the type: directives may have emptied the selection on an object.
        let Some(owner) = owner.filter(|ty| ty.is_composite()) else { return Parts(None) };
        let mut parts: Vec<(Box<[u8]>, Part)> = Vec::new();
        for (key, fields) in self.merge(sets) {
            let name = fields[0].node.name.node.as_str();
            let part = if name == "__typename" {
                Part::Literal(json_string(owner.name()))
            } else {
                let sets: Vec<_> = below(&fields).collect();
                let parts = self.parts(self.type_of(owner.name(), name), &sets);
                Part::Key { name: snake_case(name), parts }
            };
            parts.push((lead(parts.is_empty(), key), part));
        }
        Parts(Some(parts))
    }

    /// The named type of a field, without list and non-null wrappers.
    fn type_of(self, owner: &str, field: &str) -> Option<&'a MetaType> {
        let field = self.registry.types.get(owner)?.field_by_name(field)?;
        self.registry.types.get(field.ty.trim_matches(['[', ']', '!']))
    }

    /// Fields in order of first appearance, merged by response key.
    pub fn merge(self, sets: &[&'a SelectionSet]) -> Merged<'a> {
        merged(sets.iter().copied(), self.fragments, &|_| true)
    }
}

/// The columns a plan needs. An expression used twice is selected once.
#[derive(Default)]
struct Needs {
    columns: Vec<String>,
    sql: String,
    relations: Vec<Relation>,
    callers: Vec<fn(&Scope) -> String>,
    needed: Vec<Needed>,
}

impl Needs {
    fn permission(&mut self, needed: Needed) -> usize {
        let known = self.needed.iter().position(|known| *known == needed);
        known.unwrap_or_else(|| {
            self.needed.push(needed);
            self.needed.len() - 1
        })
    }

    fn column(&mut self, sql: &str) -> usize {
        if let Some(at) = self.columns.iter().position(|known| known == sql) {
            return at;
        }
        let separator = if self.columns.is_empty() { "" } else { ", " };
        // An alias keeps the driver's table of column names small and free of duplicates.
        let _ = write!(self.sql, "{separator}{sql} AS c{}", self.columns.len());
        self.columns.push(sql.to_owned());
        self.columns.len() - 1
    }

    fn relation(&mut self, key: &str, plan: impl FnOnce(usize) -> Relation) -> usize {
        let relation = plan(self.column(key));
        self.relations.push(relation);
        self.relations.len() - 1
    }
}

/// The bytes before a field's value: `{"key":` or `,"key":`.
pub fn lead(first: bool, key: &str) -> Box<[u8]> {
    let mut out = vec![if first { b'{' } else { b',' }];
    out.extend_from_slice(&json_string(key));
    out.push(b':');
    out.into()
}

pub(super) fn json_string(text: &str) -> Box<[u8]> {
    serde_json::Value::from(text).to_string().into_bytes().into()
}
