//! Step three: writes rows as JSON, by column position, in one pass.

use sea_orm::QueryResult;
use secrecy::ExposeSecret;
use serde_json::value::RawValue;
use sqlx::Row;

use super::{
    fetch::Level,
    plan::{Object, Part, Parts, Plan, Slot},
    spec::Make,
};
use crate::base::column::Kind;
use crate::base::{
    problem::{Problem, Result},
    time::Timestamp,
};

/// Reads a column by position. Not checked against the declared type: the spec is the declaration, and SQLite
/// has no types for expressions.
macro_rules! read {
    ($row:expr, $at:expr, $type:ty) => {
        match ($row.try_as_pg_row(), $row.try_as_sqlite_row()) {
            (Some(row), _) => row.try_get_unchecked::<Option<$type>, usize>($at),
            (_, Some(row)) => row.try_get_unchecked::<Option<$type>, usize>($at),
            _ => Ok(None),
        }
        .map_err(Problem::internal)
    };
}

/// The integer in column `at`.
pub(super) fn read_int(row: &QueryResult, at: usize) -> Result<Option<i64>> {
    read!(row, at, i64)
}

/// The text in column `at`.
pub(super) fn read_text(row: &QueryResult, at: usize) -> Result<Option<String>> {
    read!(row, at, String)
}

/// The flag in column `at`.
pub(super) fn read_flag(row: &QueryResult, at: usize) -> Result<bool> {
    Ok(read!(row, at, bool)?.unwrap_or_default())
}

/// Writes all rows of a level as a JSON array.
pub(super) fn array<'a>(
    plan: &Plan,
    level: &Level,
    rows: impl Iterator<Item = usize> + 'a,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(b'[');
    for (n, row) in rows.enumerate() {
        if n > 0 {
            out.push(b',');
        }
        object(plan, level, row, out)?;
    }
    out.push(b']');
    Ok(())
}

/// Writes one row of a level as a JSON object.
pub(super) fn object(plan: &Plan, level: &Level, row: usize, out: &mut Vec<u8>) -> Result<()> {
    level.reading.answered.check(out.len())?;
    fields(&plan.object, plan, level, row, out)
}

fn fields(object: &Object, plan: &Plan, level: &Level, row: usize, out: &mut Vec<u8>) -> Result<()> {
    if object.0.is_empty() {
        out.push(b'{');
    }
    for (lead, slot) in &object.0 {
        out.extend_from_slice(lead);
        write_slot(slot, plan, level, row, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn write_slot(slot: &Slot, plan: &Plan, level: &Level, row: usize, out: &mut Vec<u8>) -> Result<()> {
    match slot {
        Slot::Literal(bytes) => out.extend_from_slice(bytes),
        Slot::Caller(n) => out.extend_from_slice(level.callers[*n].as_bytes()),
        Slot::Guarded(n, slot) if level.allowed[*n] => write_slot(slot, plan, level, row, out)?,
        Slot::Guarded(..) => out.extend_from_slice(b"null"),
        Slot::Secret => match &level.secret {
            Some(secret) => string(secret.expose_secret(), out)?,
            None => out.extend_from_slice(b"null"),
        },
        Slot::Value { at, kind } => value(&level.rows[row], *at, *kind, level.now, out)?,
        Slot::Parts { at, parts, make } => selected(&level.rows[row], *at, (parts, *make), out)?,
        Slot::Embedded { present, object } => match read!(level.rows[row], *present, bool)? {
            Some(true) => fields(object, plan, level, row, out)?,
            _ => out.extend_from_slice(b"null"),
        },
        Slot::One(relation) => one(plan, level, *relation, row, out)?,
        Slot::Many(relation) => many(plan, level, *relation, row, out)?,
    }
    Ok(())
}

fn related(plan: &Plan, level: &Level, relation: usize, row: usize) -> Result<std::ops::Range<usize>> {
    let key = read_int(&level.rows[row], plan.relations[relation].key)?;
    let found = key.and_then(|key| level.relations[relation].by_key.get(&key));
    Ok(found.cloned().unwrap_or_default())
}

fn one(plan: &Plan, level: &Level, relation: usize, row: usize, out: &mut Vec<u8>) -> Result<()> {
    match related(plan, level, relation, row)?.next() {
        Some(row) => object(&plan.relations[relation].plan, &level.relations[relation].level, row, out),
        None => {
            out.extend_from_slice(b"null");
            Ok(())
        }
    }
}

fn many(plan: &Plan, level: &Level, relation: usize, row: usize, out: &mut Vec<u8>) -> Result<()> {
    let rows = related(plan, level, relation, row)?;
    array(&plan.relations[relation].plan, &level.relations[relation].level, rows, out)
}

fn value(row: &QueryResult, at: usize, kind: Kind, now: Timestamp, out: &mut Vec<u8>) -> Result<()> {
    match kind {
        Kind::Int => match read_int(row, at)? {
            Some(number) => out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes()),
            None => out.extend_from_slice(b"null"),
        },
        Kind::Text => match read!(row, at, &str)? {
            Some(text) => string(text, out)?,
            None => out.extend_from_slice(b"null"),
        },
        Kind::Bool => out.extend_from_slice(match read!(row, at, bool)? {
            Some(true) => b"true".as_slice(),
            Some(false) => b"false",
            None => b"null",
        }),
        Kind::Timestamp => match read_int(row, at)? {
            Some(millis) => {
                out.push(b'"');
                Timestamp(millis).write(out);
                out.push(b'"');
            }
            None => out.extend_from_slice(b"null"),
        },
        Kind::Float => match read!(row, at, f64)? {
            Some(number) => serde_json::to_writer(&mut *out, &number).map_err(Problem::internal)?,
            None => out.extend_from_slice(b"null"),
        },
        Kind::Elapsed => match read_int(row, at)? {
            Some(since) => {
                let seconds = (now.0 - since).max(0) / 1000;
                out.extend_from_slice(itoa::Buffer::new().format(seconds).as_bytes());
            }
            None => out.extend_from_slice(b"null"),
        },
        Kind::Decimal => match read_int(row, at)? {
            Some(number) => {
                out.push(b'"');
                out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
                out.push(b'"');
            }
            None => out.extend_from_slice(b"null"),
        },
        Kind::Json => out.extend_from_slice(read!(row, at, &str)?.unwrap_or("null").as_bytes()),
    }
    Ok(())
}

/// Writes a JSON string. Text without characters to escape, which is nearly all text, is copied unchanged.
fn string(text: &str, out: &mut Vec<u8>) -> Result<()> {
    if text.bytes().any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        return serde_json::to_writer(out, text).map_err(Problem::internal);
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
    Ok(())
}

fn selected(
    row: &QueryResult,
    at: usize,
    (parts, make): (&Parts, Option<Make>),
    out: &mut Vec<u8>,
) -> Result<()> {
    match (read!(row, at, &str)?, make) {
        (Some(stored), Some(make)) => write_parts(&make(stored)?, parts, out),
        (Some(json), None) => write_parts(json, parts, out),
        (None, _) => {
            out.extend_from_slice(b"null");
            Ok(())
        }
    }
}

/// Copies the selected parts of stored JSON. Lists are walked; missing parts become null.
fn write_parts(json: &str, parts: &Parts, out: &mut Vec<u8>) -> Result<()> {
    let Parts(Some(selected)) = parts else {
        out.extend_from_slice(json.as_bytes());
        return Ok(());
    };
    match json.trim_start().as_bytes().first() {
        Some(b'[') => {
            let items: Vec<&RawValue> = muster_json::from_str(json).map_err(Problem::internal)?;
            out.push(b'[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                write_parts(item.get(), parts, out)?;
            }
            out.push(b']');
        }
        Some(b'{') => {
            let known: std::collections::HashMap<std::borrow::Cow<'_, str>, &RawValue> =
                muster_json::from_str(json).map_err(Problem::internal)?;
            if selected.is_empty() {
                out.push(b'{');
            }
            for (lead, part) in selected {
                out.extend_from_slice(lead);
                match part {
                    Part::Literal(bytes) => out.extend_from_slice(bytes),
                    Part::Key { name, parts } => {
                        write_parts(
                            known.get(name.as_str()).map_or("null", |value| value.get()),
                            parts,
                            out,
                        )?;
                    }
                }
            }
            out.push(b'}');
        }
        _ => out.extend_from_slice(b"null"),
    }
    Ok(())
}
