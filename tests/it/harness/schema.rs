//! Documents generated from the schema, for laws that walk all of it.

use std::{collections::BTreeMap, fmt::Write};

use async_graphql::registry::{MetaField, MetaInputValue, MetaType};
use muster::resolvers::Catalogue;

/// The schema, and the values to use for its arguments.
pub struct Walker {
    pub catalogue: Catalogue,
}

/// `[Agent!]!` → `Agent`.
pub fn named(ty: &str) -> &str {
    ty.trim_matches(['[', ']', '!'])
}

impl Walker {
    pub fn new() -> Self {
        Self { catalogue: muster::graphql::catalogue().unwrap() }
    }

    /// The fields of an object type, empty for other types.
    pub fn fields(&self, ty: &str) -> Option<impl Iterator<Item = &MetaField>> {
        match self.catalogue.registry.types.get(named(ty)) {
            Some(MetaType::Object { fields, .. }) => {
                Some(fields.values().filter(|f| !f.name.starts_with("__")))
            }
            _ => None,
        }
    }

    pub fn is_object(&self, ty: &str) -> bool {
        self.fields(ty).is_some()
    }

    /// `(orgId: 1, …)`: the required arguments, and those in `known`.
    pub fn arguments(&self, field: &MetaField, known: &dyn Fn(&str, &str) -> Option<String>) -> String {
        let given: Vec<String> = field.args.values().filter_map(|arg| self.given(arg, known, 0)).collect();
        if given.is_empty() { String::new() } else { format!("({})", given.join(", ")) }
    }

    /// `name: value`, or nothing if none is needed.
    fn given(
        &self,
        arg: &MetaInputValue,
        known: &dyn Fn(&str, &str) -> Option<String>,
        depth: usize,
    ) -> Option<String> {
        let required = arg.ty.ends_with('!') && arg.default_value.is_none();
        let value = match known(&arg.name, &arg.ty) {
            Some(value) => value,
            None if required => self.literal(&arg.ty, known, depth),
            None => return None,
        };
        Some(format!("{}: {value}", arg.name))
    }

    /// A value of a type, as a literal.
    fn literal(&self, ty: &str, known: &dyn Fn(&str, &str) -> Option<String>, depth: usize) -> String {
        assert!(depth < 8, "endless input type {ty}");
        if ty.starts_with('[') {
            return "[]".into();
        }
        match named(ty) {
            "Id" | "Int" => return "1".into(),
            "Float" => return "1.5".into(),
            "Boolean" => return "true".into(),
            "Permission" => return "\"agent.view\"".into(),
            "CredentialKind" => return "\"api-key\"".into(),
            "Timestamp" => return "\"2027-01-01T00:00:00Z\"".into(),
            "JSON" | "JSONObject" | "Labels" => return "{}".into(),
            _ => {}
        }
        match self.catalogue.registry.types.get(named(ty)) {
            Some(MetaType::Enum { enum_values, .. }) => enum_values.keys().next().unwrap().clone(),
            Some(MetaType::InputObject { input_fields, oneof, .. }) => {
                let mut given: Vec<String> =
                    input_fields.values().filter_map(|field| self.given(field, known, depth + 1)).collect();
                if *oneof && given.is_empty() {
                    let (name, field) = input_fields.first().unwrap();
                    given.push(format!("{name}: {}", self.literal(&field.ty, known, depth + 1)));
                }
                format!("{{{}}}", given.join(", "))
            }
            _ => "\"something\"".into(),
        }
    }

    /// A document that calls one root field and selects as little as possible.
    pub fn shortest(
        &self,
        root: &str,
        field: &MetaField,
        known: &dyn Fn(&str, &str) -> Option<String>,
    ) -> String {
        let selection = if self.is_object(&field.ty) { "{ __typename }" } else { "" };
        let kind = root.to_lowercase();
        format!("{kind} {{ {}{} {selection} }}", field.name, self.arguments(field, known))
    }

    /// A document that calls one query and selects everything, following relations `depth` times.
    pub fn fullest(
        &self,
        field: &MetaField,
        depth: usize,
        known: &dyn Fn(&str, &str) -> Option<String>,
    ) -> String {
        let mut fragments = BTreeMap::new();
        let selection = self.everything(&field.ty, depth, &mut fragments);
        let arguments = self.arguments(field, known);
        let mut document = format!("query {{ {}{arguments} {selection} }}\n", field.name);
        for (name, (ty, body)) in fragments {
            writeln!(document, "fragment {name} on {ty} {body}").unwrap();
        }
        document
    }

    /// The fields of an object type that need no arguments, with how deep each may be followed. A page or other
    /// wrapper costs no depth; what it wraps does.
    pub fn children(&self, ty: &str, depth: usize) -> Option<Vec<(&MetaField, usize)>> {
        let cost = usize::from(!is_wrapper(named(ty)));
        let fields = self.fields(ty)?.filter(|field| !needs_arguments(field));
        let below =
            |field: &MetaField| if self.is_object(&field.ty) { depth.checked_sub(cost) } else { Some(0) };
        Some(fields.filter_map(|field| Some((field, below(field)?))).collect())
    }

    /// The query root fields that return many records.
    pub fn lists(&self) -> Vec<&MetaField> {
        let queries = self.catalogue.root_fields().filter(|root| root.root == "Query").map(|root| root.field);
        let is_page =
            |ty: &str| self.fields(ty).is_some_and(|mut fields| fields.any(|field| field.name == "data"));
        queries.filter(|field| field.ty.starts_with('[') || is_page(&field.ty)).collect()
    }

    /// Whether a type is read by a plan. The few others are async-graphql's own objects, with their own quirks
    /// (`docs/quirks.md`).
    pub fn is_planned(&self, ty: &str) -> bool {
        let found = self.catalogue.registry.types.get(named(ty));
        let Some(MetaType::Object { rust_typename: Some(name), .. }) = found else { return false };
        name.starts_with("muster::read::")
    }

    fn everything(
        &self,
        ty: &str,
        depth: usize,
        fragments: &mut BTreeMap<String, (String, String)>,
    ) -> String {
        let Some(children) = self.children(ty, depth) else { return String::new() };
        let ty = named(ty);
        let name = format!("{ty}{depth}");
        if !fragments.contains_key(&name) {
            let mut body = String::from("{ __typename");
            for (field, below) in children {
                let below = self.everything(&field.ty, below, fragments);
                write!(body, " {} {below}", field.name).unwrap();
            }
            body.push_str(" }");
            fragments.insert(name.clone(), (ty.to_owned(), body));
        }
        format!("{{ ...{name} }}")
    }
}

fn needs_arguments(field: &MetaField) -> bool {
    field.args.values().any(|arg| arg.ty.ends_with('!') && arg.default_value.is_none())
}

fn is_wrapper(ty: &str) -> bool {
    ["Page", "List", "Feed"].iter().any(|end| ty.ends_with(end))
}
