//! Subscriptions: from changes to what a subscriber may see of them.

use futures::{StreamExt, stream::BoxStream};
use tokio_stream::wrappers::{BroadcastStream, errors::BroadcastStreamRecvError};

use super::authorize;
use crate::{
    access::{Permission, Scope},
    app::Event,
    error::{Code, Problem, Result},
    graphql::Permit,
};

/// The changes that `pick` takes, each with a scope made anew: a subscriber who is no longer a member, or has lost
/// the permission, or whose token has ended, hears no more.
///
/// A subscriber who is too slow to follow is told so and may ask again; nothing is left out in silence.
pub fn watch<T: Send + 'static>(
    scope: &Scope,
    permission: Permission,
    pick: impl Fn(Event) -> Option<T> + Send + 'static,
) -> BoxStream<'static, Result<(Scope, T)>> {
    let (request, org) = (scope.request.clone(), scope.org);
    let stopping = scope.app.stopping.clone();
    let permit = Permit::InOrganization { permission, confirmed_email: false };
    let changes = BroadcastStream::new(scope.app.subscribe()).filter_map(move |event| {
        std::future::ready(match event {
            Ok(event) => pick(event).map(Ok),
            Err(BroadcastStreamRecvError::Lagged(missed)) => Some(Err(Problem::new(
                Code::Conflict,
                format!("{missed} changes came faster than they were taken; read the records again."),
            ))),
        })
    });
    let changes = changes.boxed().take_until(async move { stopping.cancelled().await });
    let checked = changes.then(move |change| {
        let request = request.clone();
        async move {
            let picked = change?;
            request.caller.require_current(request.app.clock.now())?;
            Ok((authorize(&request, permit, org).await?, picked))
        }
    });
    checked.boxed()
}
