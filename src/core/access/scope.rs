//! A caller inside one organization: the first argument of every operation.

use std::{net::IpAddr, ops::Deref, sync::Arc};

use super::{Caller, Membership};
use crate::{
    base::{
        ids::OrgId,
        permission::{Permission, Role},
    },
    core::{
        Core, Request,
        events::Memo,
        policy::{Explanation, Subject},
        store::Precondition,
    },
};

/// The acting caller, the organization, and the caller's rights there. Cheap to clone.
///
/// An organization's rows are reached only through a scope, and a scope only through membership
/// (`resolvers/context.rs`).
#[derive(Clone)]
pub struct Scope(Arc<Inner>);

/// The contents of a [`Scope`].
pub struct Inner {
    pub core: Arc<Core>,
    /// The request that the scope belongs to.
    pub request: Arc<Request>,
    pub org: OrgId,
    /// The caller's membership there.
    pub membership: Membership,
    /// The root field that was entered; `None` for the service's own work.
    pub operation: Option<Arc<str>>,
    /// Shared with other subscribers of the same event.
    pub(crate) memo: Option<Arc<Memo>>,
    /// The precondition of the first transaction.
    pub(crate) expected: Option<Arc<dyn Precondition>>,
}

impl Deref for Scope {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Scope {
    /// The scope of a caller whose membership has been established.
    pub(crate) fn new(
        request: &Arc<Request>,
        org: OrgId,
        membership: Membership,
        operation: Option<Arc<str>>,
    ) -> Self {
        let (core, request) = (Arc::clone(&request.core), Arc::clone(request));
        Self(Arc::new(Inner { core, request, org, membership, operation, memo: None, expected: None }))
    }

    /// A copy for a subscriber who shares an event with others.
    pub(crate) fn with_memo(&self, memo: Arc<Memo>) -> Self {
        self.with(Some(memo), None)
    }

    /// A copy whose first transaction must meet the precondition.
    pub(crate) fn with_precondition(&self, expected: Arc<dyn Precondition>) -> Self {
        self.with(self.memo.clone(), Some(expected))
    }

    fn with(&self, memo: Option<Arc<Memo>>, expected: Option<Arc<dyn Precondition>>) -> Self {
        let Inner { core, request, org, membership, operation, .. } = &**self;
        Self(Arc::new(Inner {
            core: Arc::clone(core),
            request: Arc::clone(request),
            org: *org,
            membership: *membership,
            operation: operation.clone(),
            memo,
            expected,
        }))
    }

    /// The operator's scope, for the command line and the service's own work. No request can reach it.
    #[must_use]
    pub fn system(core: &Arc<Core>, org: OrgId) -> Self {
        Self::system_for(&Request::system(core), org)
    }

    /// The service's own scope for a request that a link has authorized; it also applies the request's idempotency key.
    #[must_use]
    pub fn system_for(request: &Request, org: OrgId) -> Self {
        Self::own(request.on_behalf(), org)
    }

    /// The service's own scope for a host's actions, from this address.
    #[must_use]
    pub fn host(core: &Arc<Core>, org: OrgId, ip: Option<IpAddr>, request_id: &str) -> Self {
        let mut own = Request::system(core);
        own.ip = ip;
        request_id.clone_into(&mut own.id);
        Self::own(own, org)
    }

    fn own(request: Request, org: OrgId) -> Self {
        let membership = Membership { role: None, permissions: Permission::ALL.iter().copied().collect() };
        Self::new(&Arc::new(request), org, membership, None)
    }

    /// Whether this is the scope of `request` for the root field `operation` in `org`.
    #[must_use]
    pub fn is_of(&self, request: &Arc<Request>, operation: &str, org: OrgId) -> bool {
        Arc::ptr_eq(&self.request, request) && self.operation.as_deref() == Some(operation) && self.org == org
    }

    /// Whether the caller holds `permission` here.
    #[must_use]
    pub fn may(&self, permission: Permission) -> bool {
        self.membership.permissions.contains(permission)
    }

    /// The caller's permissions of these kinds, as JSON: the actions that a record offers its reader.
    #[must_use]
    pub fn permissions_json(&self, kinds: &[&str]) -> String {
        let of_kind = |name: &&str| {
            kinds.iter().any(|kind| name.strip_prefix(kind).is_some_and(|rest| rest.starts_with('.')))
        };
        let names: Vec<&str> = self.membership.permissions.names().filter(of_kind).collect();
        serde_json::Value::from(names).to_string()
    }

    /// The policy's explanation for the caller and `permission`. `None` where the policy does not apply: to the service
    /// itself, and to a service token that was not issued with the permission.
    #[must_use]
    pub fn explain(&self, permission: Permission) -> Option<Explanation> {
        let subject = match (self.membership.role, &self.request.caller) {
            (Some(role), _) => Subject::Role(role),
            (None, Caller::Token(token)) if token.permissions.contains(permission) => Subject::ServiceToken,
            (None, _) => return None,
        };
        Some(self.core.policy.explain(Some(self.org), subject, permission))
    }

    /// An explanation in a sentence; with policy lines if the caller may read the policy.
    #[must_use]
    pub fn explain_in_words(&self, permission: Permission, why: Option<&Explanation>) -> String {
        match (why, &self.request.caller) {
            (Some(why), _) if self.may(Permission::PolicyView) => why.reason.clone(),
            (Some(why), _) => {
                let who = plural(self.membership.role);
                let may = if why.allowed { "may" } else { "may not" };
                format!("{who} {may} do this: it needs the permission {permission}.")
            }
            (None, Caller::Token(_)) => format!("The service token was not issued for {permission}."),
            (None, _) => "The service itself may do everything.".to_owned(),
        }
    }
}

/// Those who have a role, or service tokens.
const fn plural(role: Option<Role>) -> &'static str {
    match role {
        Some(Role::Owner) => "Owners",
        Some(Role::Admin) => "Admins",
        Some(Role::Operator) => "Operators",
        Some(Role::Viewer) => "Viewers",
        None => "Service tokens",
    }
}
