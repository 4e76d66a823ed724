//! A caller inside one organization: the first argument of every operation.

use std::{ops::Deref, sync::Arc};

use super::{Membership, Permission};
use crate::{
    app::App,
    error::{Code, Problem, Result},
    graphql::Request,
    ids::OrgId,
};

/// Who does it, where, and with which rights. Cheap to clone.
///
/// There is no other way to rows of an organization, and no way to a scope but through membership
/// (`graphql/context.rs`).
#[derive(Clone)]
pub struct Scope(Arc<Inner>);

/// What a [`Scope`] holds.
pub struct Inner {
    /// The service.
    pub app: Arc<App>,
    /// The request that the scope belongs to.
    pub request: Arc<Request>,
    /// The organization.
    pub org: OrgId,
    /// What the caller is there.
    pub membership: Membership,
    /// The root field that was entered; none for the service's own work.
    pub operation: Option<Arc<str>>,
}

impl Deref for Scope {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Scope {
    /// The scope of a caller whose membership was established.
    pub(crate) fn new(
        request: &Arc<Request>,
        org: OrgId,
        membership: Membership,
        operation: Option<Arc<str>>,
    ) -> Self {
        let (app, request) = (Arc::clone(&request.app), Arc::clone(request));
        Self(Arc::new(Inner { app, request, org, membership, operation }))
    }

    /// The operator's own scope: the command line and the service's own work. No request leads here.
    #[must_use]
    pub fn system(app: &Arc<App>, org: OrgId) -> Self {
        let membership = Membership { role: None, permissions: Permission::ALL.iter().copied().collect() };
        Self::new(&Arc::new(Request::system(app)), org, membership, None)
    }

    /// Whether the caller holds `permission` here.
    #[must_use]
    pub fn may(&self, permission: Permission) -> bool {
        self.membership.permissions.contains(permission)
    }

    /// Refuses a caller who does not hold `permission` here.
    ///
    /// # Errors
    /// `PERMISSION_DENIED`, naming the permission.
    pub fn require(&self, permission: Permission) -> Result<()> {
        if self.may(permission) {
            return Ok(());
        }
        let detail = format!("You lack the permission {permission} in this organization.");
        Err(Problem::new(Code::PermissionDenied, detail).with("permission", permission.as_str()))
    }
}
