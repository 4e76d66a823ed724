//! The schema's metadata, read once at start: the permit and the arguments of every root field.

use std::{collections::HashMap, sync::Arc};

use async_graphql::registry::{MetaField, MetaType, Registry};

use super::permit;
use crate::{
    base::{enums::CredentialKind, permission::Permission},
    core::access::{Permit, Permits},
};

const ROOTS: [&str; 3] = ["Query", "Mutation", "Subscription"];

/// The schema's types, and the requirements of its root fields.
pub struct Catalogue {
    /// Every type reachable from the roots.
    pub registry: Registry,
    permits: Permits,
}

#[derive(Clone, Copy)]
pub struct RootField<'a> {
    /// `Query`, `Mutation` or `Subscription`.
    pub root: &'static str,
    /// The field as the registry has it.
    pub field: &'a MetaField,
    /// Its requirement for callers.
    pub permit: Permit,
}

impl Catalogue {
    /// Reads a schema whose types are in `registry`.
    ///
    /// # Errors
    /// Names root fields without a permit, and names used by two roots.
    pub fn read(registry: Registry) -> anyhow::Result<Self> {
        let mut permits: HashMap<Arc<str>, Permit> = HashMap::new();
        for root in ROOTS {
            for field in root_fields(&registry, root) {
                let Some(permit) = permit::read(&field.directive_invocations) else {
                    anyhow::bail!("{root}.{} declares no permit", field.name);
                };
                if permits.insert(field.name.as_str().into(), permit).is_some() {
                    anyhow::bail!("two root fields have the name {}", field.name);
                }
            }
        }
        Ok(Self { registry, permits: permits.into_iter().collect() })
    }

    /// The requirements of all root fields.
    #[must_use]
    pub fn permits(&self) -> &Permits {
        &self.permits
    }

    #[must_use]
    pub fn root_field(&self, name: &str) -> Option<RootField<'_>> {
        // Called on every request to /graphql, so looked up by name rather than by a scan.
        let permit = self.permits.required_by(name)?;
        ROOTS.into_iter().find_map(|root| match self.registry.types.get(root)? {
            MetaType::Object { fields, .. } => Some(RootField { root, field: fields.get(name)?, permit }),
            _ => None,
        })
    }

    pub fn root_fields(&self) -> impl Iterator<Item = RootField<'_>> {
        ROOTS.into_iter().flat_map(move |root| {
            root_fields(&self.registry, root).filter_map(move |field| {
                Some(RootField { root, field, permit: self.permits.required_by(&field.name)? })
            })
        })
    }
}

fn root_fields<'a>(registry: &'a Registry, root: &str) -> impl Iterator<Item = &'a MetaField> + use<'a> {
    let fields = match registry.types.get(root) {
        Some(MetaType::Object { fields, .. }) => Some(fields.values()),
        _ => None,
    };
    fields.into_iter().flatten().filter(|field| !field.name.starts_with("__"))
}

/// The values of a scalar of ours that is a closed set. Empty for other scalars.
#[must_use]
pub fn values_of_scalar(name: &str) -> Vec<&'static str> {
    match name {
        "Permission" => Permission::ALL.iter().map(|permission| permission.as_str()).collect(),
        "CredentialKind" => CredentialKind::ALL.iter().map(|kind| kind.as_str()).collect(),
        _ => Vec::new(),
    }
}
