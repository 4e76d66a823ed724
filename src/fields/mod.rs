//! The grammar of root fields: what each of them says about itself, and what happens before it runs.
//!
//! - `permit`, [`bounds`]: directives that say who may call a field, and what values it takes; `catalogue` reads them at
//!   start, [`validate`] checks arguments by them.
//! - `context`: [`Enter::enter`], the one door into an organization.
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
    context::{Enter, authorize},
    live::{RECHECK, follow, watch},
};
use crate::base::problem::Result;

/// The answer of a root field: a failure nulls this field and leaves the others of the request alone.
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
/// The steps get a place of their own: the executor holds one future that is as large as the largest root field's, and
/// moves it several times a request.
pub fn answer<'a, T: Send + 'a>(
    steps: impl Future<Output = Result<T>> + Send + 'a,
) -> impl Future<Output = Answer<T>> + Send + 'a {
    steps.boxed().map(Some)
}
