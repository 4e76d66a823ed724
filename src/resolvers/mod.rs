//! The grammar of root fields: the declarations on each, and the checks before it runs.
//!
//! - `permit`, [`bounds`]: directives that declare a field's callers and its accepted values. `catalogue` reads them at
//!   start, [`validate`] checks arguments against them.
//! - `context`: [`Enter::enter`], the only way into an organization.
//! - `live`: subscriptions.

pub mod bounds;
mod catalogue;
mod context;
mod live;
pub mod permit;
pub mod validate;

use futures::FutureExt;

pub use self::{
    catalogue::{Catalogue, RootField, values_of_scalar},
    context::{Enter, authorize, authorize_again},
    live::{RECHECK, subscribe, subscribe_to_kind, while_permitted},
};
use crate::base::problem::Result;

/// The answer of a root field. A failure makes only this field null.
pub type Answer<T> = Option<Result<T>>;

/// Runs a root field's steps.
///
/// ```ignore
/// answer(async {
///     let scope = ctx.enter(org_id).await?;
///     Ok(One::by_id(&scope, id))
/// })
/// .await
/// ```
///
/// Boxes the steps: the executor holds one future as large as the largest root field's, and moves it several
/// times per request.
pub fn answer<'a, T: Send + 'a>(
    steps: impl Future<Output = Result<T>> + Send + 'a,
) -> impl Future<Output = Answer<T>> + Send + 'a {
    steps.boxed().map(Some)
}
