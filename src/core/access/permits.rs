//! The requirements of the schema's root fields for their callers: read from their directives at start, and checked at
//! each call.

use std::{collections::HashMap, sync::Arc};

use crate::base::permission::Permission;

/// A root field's requirement for its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// Nothing: signing in.
    Anyone,
    /// A person with a session, of any organization.
    SignedIn,
    /// Membership of the organization that the argument `orgId` names.
    Member,
    /// A permission in the organization that the argument `orgId` names.
    InOrganization {
        permission: Permission,
        /// Whether the caller's e-mail address must be confirmed.
        confirmed_email: bool,
    },
}

/// The requirements of all root fields.
#[derive(Clone, Debug, Default)]
pub struct Permits(Arc<HashMap<Arc<str>, Permit>>);

impl FromIterator<(Arc<str>, Permit)> for Permits {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Permit)>>(permits: I) -> Self {
        Self(Arc::new(permits.into_iter().collect()))
    }
}

impl Permits {
    /// The requirement of the root field with this name.
    #[must_use]
    pub fn required_by(&self, field: &str) -> Option<Permit> {
        self.0.get(field).copied()
    }

    /// A root field's name as a shared string.
    #[must_use]
    pub fn name(&self, field: &str) -> Option<Arc<str>> {
        self.0.get_key_value(field).map(|(name, _)| Arc::clone(name))
    }
}
