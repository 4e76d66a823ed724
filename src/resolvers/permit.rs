//! The callers of a root field, declared on the field and shown in the SDL.
//!
//! `@permit(permission: "agent.edit")` opens a field of an organization to callers with that permission there,
//! `@member` to all its members. `@confirmedEmail` also requires a confirmed e-mail address. `@open(to: SIGNED_IN)`
//! marks the few fields outside organizations. With a root field that has none of `@permit`, `@member` and `@open`,
//! building the schema's catalogue fails, and the service does not start.

use std::borrow::Cow;

use async_graphql::{
    InputType, TypeDirective, Value,
    indexmap::IndexMap,
    registry::{
        __DirectiveLocation, Deprecation, MetaDirective, MetaDirectiveInvocation, MetaInputValue, Registry,
        location_traits::Directive_At_FIELD_DEFINITION,
    },
};

use crate::{base::permission::Permission, core::access::Permit};

/// Reads a field's directives. `None` if it declares nothing.
pub(super) fn read(directives: &[MetaDirectiveInvocation]) -> Option<Permit> {
    let find = |name: &str| directives.iter().find(|directive| directive.name == name);
    if let Some(declared) = find("permit") {
        let Some(Value::String(name)) = declared.args.get("permission") else { return None };
        return Some(Permit::InOrganization {
            permission: name.parse().ok()?,
            confirmed_email: find("confirmedEmail").is_some(),
        });
    }
    if find("member").is_some() {
        return Some(Permit::Member);
    }
    match find("open")?.args.get("to")? {
        Value::String(to) if to == "ANYONE" => Some(Permit::Anyone),
        Value::String(to) if to == "SIGNED_IN" => Some(Permit::SignedIn),
        _ => None,
    }
}

/// `@permit(permission:)` on a root field.
#[expect(
    non_camel_case_types,
    reason = "async-graphql names a directive by its type: `directive = permit::apply(…)`"
)]
pub struct permit;

impl permit {
    /// The field requires `permission` in the organization named by its argument `orgId`.
    #[must_use]
    pub fn apply(permission: Permission) -> MetaDirectiveInvocation {
        invocation("permit", [("permission", Value::String(permission.as_str().to_owned()))])
    }
}

impl TypeDirective for permit {
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed("permit")
    }

    fn register(&self, registry: &mut Registry) {
        let about = "The permission the caller needs in the organization named by `orgId`.";
        register(registry, "permit", about, &[("permission", "A permission of the policy.")]);
    }
}

impl Directive_At_FIELD_DEFINITION for permit {}

/// `@confirmedEmail` on a root field.
#[expect(non_camel_case_types, reason = "async-graphql names a directive by its type")]
pub struct confirmed_email;

impl confirmed_email {
    /// The field requires a caller with a confirmed e-mail address.
    #[must_use]
    pub fn apply() -> MetaDirectiveInvocation {
        invocation("confirmedEmail", [])
    }
}

impl TypeDirective for confirmed_email {
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed("confirmedEmail")
    }

    fn register(&self, registry: &mut Registry) {
        register(registry, "confirmedEmail", "The caller needs a confirmed e-mail address.", &[]);
    }
}

impl Directive_At_FIELD_DEFINITION for confirmed_email {}

/// `@member` on a root field.
#[expect(non_camel_case_types, reason = "async-graphql names a directive by its type")]
pub struct member;

impl member {
    /// The field requires a member of the organization named by its argument `orgId`.
    #[must_use]
    pub fn apply() -> MetaDirectiveInvocation {
        invocation("member", [])
    }
}

impl TypeDirective for member {
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed("member")
    }

    fn register(&self, registry: &mut Registry) {
        register(registry, "member", "The caller must belong to the organization named by `orgId`.", &[]);
    }
}

impl Directive_At_FIELD_DEFINITION for member {}

/// `@open(to:)` on a root field outside organizations.
#[expect(non_camel_case_types, reason = "async-graphql names a directive by its type")]
pub struct open;

impl open {
    /// The field is open to `ANYONE`, or to a `SIGNED_IN` person.
    #[must_use]
    pub fn apply(to: &str) -> MetaDirectiveInvocation {
        invocation("open", [("to", Value::String(to.to_owned()))])
    }
}

impl TypeDirective for open {
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed("open")
    }

    fn register(&self, registry: &mut Registry) {
        let about = "The field belongs to no organization.";
        register(registry, "open", about, &[("to", "`ANYONE` or `SIGNED_IN`.")]);
    }
}

impl Directive_At_FIELD_DEFINITION for open {}

fn invocation<const N: usize>(name: &str, args: [(&str, Value); N]) -> MetaDirectiveInvocation {
    let args = args.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    MetaDirectiveInvocation { name: name.to_owned(), args }
}

fn register(registry: &mut Registry, name: &str, about: &str, args: &[(&str, &str)]) {
    let string = <String as InputType>::create_type_info(registry);
    let args = args.iter().map(|(name, about)| ((*name).to_owned(), argument(name, about, string.clone())));
    registry.add_directive(MetaDirective {
        name: name.to_owned(),
        description: Some(about.to_owned()),
        locations: vec![__DirectiveLocation::FIELD_DEFINITION],
        args: args.collect::<IndexMap<_, _>>(),
        is_repeatable: false,
        visible: None,
        composable: None,
    });
}

pub(super) fn argument(name: &str, about: &str, ty: String) -> MetaInputValue {
    MetaInputValue {
        name: name.to_owned(),
        description: Some(about.to_owned()),
        ty,
        deprecation: Deprecation::NoDeprecated,
        default_value: None,
        visible: None,
        inaccessible: false,
        tags: Vec::new(),
        is_secret: false,
        directive_invocations: Vec::new(),
    }
}
