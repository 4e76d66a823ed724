//! Edits: an absent field leaves a column alone, null clears it, a value sets it. Setting a column to its current value
//! is not a change, so that an edit can tell whether it changes anything.

use async_graphql::MaybeUndefined;
use sea_orm::ActiveValue;

/// Applies one field of an edit to a column that may be null.
pub fn patch<T>(column: &mut ActiveValue<Option<T>>, edit: MaybeUndefined<T>)
where
    T: PartialEq,
    Option<T>: Into<sea_orm::Value>,
{
    match edit {
        MaybeUndefined::Undefined => {}
        MaybeUndefined::Null => column.set_if_not_equals(None),
        MaybeUndefined::Value(value) => column.set_if_not_equals(Some(value)),
    }
}

/// Applies one field of an edit to a column that is never null. The input declares `not_null()`, so null can't get
/// here.
pub fn patch_required<T: PartialEq + Into<sea_orm::Value>>(
    column: &mut ActiveValue<T>,
    edit: MaybeUndefined<T>,
) {
    if let MaybeUndefined::Value(value) = edit {
        column.set_if_not_equals(value);
    }
}

/// Applies fields of an edit to the columns of the same names: first required ones, then nullable ones.
macro_rules! patch_all {
    ($row:ident, $edit:ident; required $($required:ident),+; optional $($optional:ident),+ $(,)?) => {
        $( $crate::domain::patch::patch_required(&mut $row.$required, $edit.$required); )+
        $( $crate::domain::patch::patch(&mut $row.$optional, $edit.$optional); )+
    };
}
pub(crate) use patch_all;
