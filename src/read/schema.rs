//! Adds record types to the GraphQL schema: one object type per [`Spec`].

use std::{borrow::Cow, marker::PhantomData};

use async_graphql::{
    ContextSelectionSet, OutputType, Positioned, ServerResult, Value,
    parser::types::Field,
    registry::{MetaField, MetaType, MetaTypeId, Registry},
};

use super::spec::{Record, Source, Spec};
use crate::base::secret::shown_once;

/// The object type of `R` in the registry. Never resolved: the plan writes rows.
pub(super) struct ObjectOf<R>(PhantomData<R>);

impl<R: Record> OutputType for ObjectOf<R> {
    fn type_name() -> Cow<'static, str> {
        Cow::Borrowed(R::spec().name)
    }

    fn create_type_info(registry: &mut Registry) -> String {
        registry
            .create_output_type::<Self, _>(MetaTypeId::Object, |registry| object::<R>(registry, R::spec()))
    }

    async fn resolve(&self, _: &ContextSelectionSet<'_>, _: &Positioned<Field>) -> ServerResult<Value> {
        Ok(Value::Null)
    }
}

/// Registers `R` and returns its name, as a nullable reference.
pub(super) fn register_nullable<R: Record>(registry: &mut Registry) -> String {
    ObjectOf::<R>::create_type_info(registry);
    R::spec().name.to_owned()
}

/// Registers `R` and returns the type of a list of it.
pub(super) fn register_list<R: Record>(registry: &mut Registry) -> String {
    format!("[{}]!", ObjectOf::<R>::create_type_info(registry))
}

fn object<R: Record>(registry: &mut Registry, spec: &Spec) -> MetaType {
    let fields = spec.fields.iter().map(|field| {
        let register = match &field.source {
            Source::Value { register, .. }
            | Source::Caller { register, .. }
            | Source::Secret { register }
            | Source::Parts { register, .. }
            | Source::Embedded { register, .. }
            | Source::One { register, .. }
            | Source::Many { register, .. } => register,
        };
        let mut declared = meta_field(&field.name, field.about, register(registry));
        if let Source::Secret { .. } = &field.source {
            declared.directive_invocations.push(shown_once::apply());
        }
        (field.name.clone(), declared)
    });
    let fields = fields.collect();
    object_type(spec.name, spec.about, fields, std::any::type_name::<ObjectOf<R>>())
}

/// An object type with the given fields.
pub(super) fn object_type(
    name: &str,
    about: &str,
    fields: async_graphql::indexmap::IndexMap<String, MetaField>,
    rust_typename: &'static str,
) -> MetaType {
    MetaType::Object {
        name: name.to_owned(),
        description: Some(about.to_owned()),
        fields,
        cache_control: async_graphql::CacheControl::default(),
        extends: false,
        shareable: false,
        resolvable: true,
        inaccessible: false,
        interface_object: false,
        tags: Vec::new(),
        keys: None,
        visible: None,
        is_subscription: false,
        rust_typename: Some(rust_typename),
        directive_invocations: Vec::new(),
        requires_scopes: Vec::new(),
    }
}

/// A field without arguments.
pub(super) fn meta_field(name: &str, about: &str, ty: String) -> MetaField {
    MetaField {
        name: name.to_owned(),
        description: Some(about.to_owned()),
        args: async_graphql::indexmap::IndexMap::default(),
        ty,
        deprecation: async_graphql::registry::Deprecation::NoDeprecated,
        cache_control: async_graphql::CacheControl::default(),
        external: false,
        requires: None,
        provides: None,
        visible: None,
        shareable: false,
        inaccessible: false,
        tags: Vec::new(),
        override_from: None,
        compute_complexity: None,
        directive_invocations: Vec::new(),
        requires_scopes: Vec::new(),
    }
}
