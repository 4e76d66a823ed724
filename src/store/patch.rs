//! Edits: absent leaves a column alone, null clears it, a value sets it.

use async_graphql::MaybeUndefined;
use sea_orm::{ActiveValue, Set};

/// Applies one field of an edit to a column that may be null.
pub fn patch<T>(column: &mut ActiveValue<Option<T>>, edit: MaybeUndefined<T>)
where
    Option<T>: Into<sea_orm::Value>,
{
    match edit {
        MaybeUndefined::Undefined => {}
        MaybeUndefined::Null => *column = Set(None),
        MaybeUndefined::Value(value) => *column = Set(Some(value)),
    }
}

/// Applies one field of an edit to a column that is never null. The input declares `not_null()`, so null does not
/// get here.
pub fn patch_required<T: Into<sea_orm::Value>>(column: &mut ActiveValue<T>, edit: MaybeUndefined<T>) {
    if let MaybeUndefined::Value(value) = edit {
        *column = Set(value);
    }
}
