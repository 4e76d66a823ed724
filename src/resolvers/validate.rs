//! Checks values against the schema: types, unknown keys, and bounds. Every error names its position.
//!
//! REST runs this on a request's body and parameters before executing anything. GraphQL runs it on a root
//! field's arguments in `enter`, after the executor has checked their types. With one validator, bounds are the
//! same on both interfaces.

use async_graphql::{
    Name, Value,
    indexmap::IndexMap,
    registry::{MetaInputValue, MetaType, MetaTypeName, Registry},
};

use super::bounds::{Bounds, LONGEST_LABEL, MAX_LABELS, is_folder};
use crate::base::{
    ids::AN_ID,
    numerals::with_noun,
    permission::closest,
    plain::is_line,
    problem::{At, Violation},
    spelling::snake_case,
};

/// After this many wrong values, or unknown keys of an object, validation stops. A caller can send a hundred thousand;
/// each is compared with all known names, and the answer suggests alternatives for each.
pub const MAX_WRONG: usize = 100;

/// The spelling of the keys of input objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// As in the schema.
    Camel,
    /// As in REST.
    Snake,
}

/// Checks values against input types.
pub struct Validator<'a> {
    registry: &'a Registry,
    spelling: Spelling,
    /// Whether to check only types.
    types_only: bool,
    /// The violations found so far.
    pub violations: Vec<Violation>,
}

impl<'a> Validator<'a> {
    /// A validator without violations.
    #[must_use]
    pub fn new(registry: &'a Registry, spelling: Spelling) -> Self {
        Self { registry, spelling, types_only: false, violations: Vec::new() }
    }

    /// A validator for the types of variables. Bounds are checked later, only for callers with the permission.
    #[must_use]
    pub fn of_types(registry: &'a Registry) -> Self {
        Self { types_only: true, ..Self::new(registry, Spelling::Camel) }
    }

    /// Checks `value` as the input `declared` at `pointer`, and returns it with its keys spelled as in the
    /// schema. `None` stands for an absent value.
    pub fn check(&mut self, declared: &MetaInputValue, value: Option<Value>, pointer: &str) -> Option<Value> {
        let required = declared.ty.ends_with('!') && declared.default_value.is_none();
        match value {
            None if required => {
                self.require(pointer);
                None
            }
            None => None,
            Some(value) => {
                let bounds = if self.types_only {
                    Bounds::default()
                } else {
                    Bounds::read(&declared.directive_invocations)
                };
                Some(self.typed(&declared.ty, bounds, value, pointer))
            }
        }
    }

    /// Reports a missing value.
    pub fn require(&mut self, pointer: &str) {
        self.wrong(pointer, "REQUIRED", format!("`{}` is required.", last(pointer)));
    }

    /// `value` as the type `ty` accepts it, without checking bounds.
    pub fn coerce(&mut self, ty: &str, value: Value, pointer: &str) -> Value {
        self.typed(ty, Bounds::default(), value, pointer)
    }

    fn typed(&mut self, ty: &str, bounds: Bounds, value: Value, pointer: &str) -> Value {
        if self.violations.len() >= MAX_WRONG {
            return value;
        }
        match MetaTypeName::create(ty) {
            MetaTypeName::NonNull(_) if value == Value::Null => {
                self.wrong(pointer, "WRONG_TYPE", format!("`{}` must not be null.", last(pointer)));
                value
            }
            MetaTypeName::NonNull(inner) => self.typed(inner, bounds, value, pointer),
            _ if value == Value::Null && bounds.not_null => {
                self.wrong(pointer, "WRONG_TYPE", format!("`{}` must not be null.", last(pointer)));
                value
            }
            _ if value == Value::Null => value,
            MetaTypeName::List(inner) => self.list(inner, bounds, value, pointer),
            MetaTypeName::Named(name) => self.named(name, bounds, value, pointer),
        }
    }

    fn list(&mut self, inner: &str, bounds: Bounds, value: Value, pointer: &str) -> Value {
        let items = match value {
            Value::List(items) => items,
            // GraphQL accepts a single value for a list of one (specification, section 3.11).
            one if self.spelling == Spelling::Camel => vec![one],
            value => {
                self.wrong(pointer, "WRONG_TYPE", format!("`{}` must be a list.", last(pointer)));
                return value;
            }
        };
        if let Some(max) = bounds.max_items
            && items.len() > usize::try_from(max).unwrap_or(usize::MAX)
        {
            let detail = format!(
                "`{}` can have at most {}, not {}.",
                last(pointer),
                with_noun(max, "item"),
                items.len()
            );
            self.wrong(pointer, "TOO_LONG", detail);
            return Value::Null;
        }
        let items = items.into_iter().enumerate();
        Value::List(
            items.map(|(n, item)| self.typed(inner, bounds, item, &format!("{pointer}/{n}"))).collect(),
        )
    }

    fn named(&mut self, name: &str, bounds: Bounds, value: Value, pointer: &str) -> Value {
        match self.registry.types.get(name) {
            Some(MetaType::InputObject { input_fields, .. }) => self.object(input_fields, value, pointer),
            Some(MetaType::Enum { enum_values, .. }) => {
                match &value {
                    Value::String(text) if enum_values.contains_key(text) => {}
                    Value::Enum(text) if enum_values.contains_key(text.as_str()) => {}
                    Value::String(text) => {
                        let known: Vec<&str> = enum_values.keys().map(String::as_str).collect();
                        self.wrong(pointer, "NOT_ALLOWED", not_one_of(&last(pointer), text, &known));
                    }
                    _ => self.wrong_type(pointer, "a string"),
                }
                value
            }
            Some(MetaType::Scalar { is_valid, .. }) => {
                let value = if matches!(name, "Int" | "Id") { whole(value) } else { value };
                self.scalar(name, bounds, &value, pointer);
                if is_valid.as_ref().is_some_and(|is_valid| !is_valid(&value)) && !self.blames(pointer) {
                    self.wrong(pointer, "WRONG_TYPE", format!("`{}` is not a valid {name}.", last(pointer)));
                }
                value
            }
            _ => value,
        }
    }

    fn object(&mut self, declared: &IndexMap<String, MetaInputValue>, value: Value, pointer: &str) -> Value {
        let Value::Object(mut given) = value else {
            self.wrong_type(pointer, "an object");
            return value;
        };
        let mut checked = IndexMap::new();
        for (name, field) in declared {
            let spelled = self.spell(name);
            let value = given.shift_remove(spelled.as_str());
            if let Some(value) = self.check(field, value, &format!("{pointer}/{spelled}")) {
                checked.insert(Name::new(name), value);
            }
        }
        let known: Vec<String> = if given.is_empty() {
            Vec::new()
        } else {
            declared.keys().map(|name| self.spell(name)).collect()
        };
        for key in given.keys().take(MAX_WRONG) {
            let detail = format!("Unknown key `{key}`{}.", meant(key, known.iter().map(String::as_str)));
            self.wrong(&format!("{pointer}/{}", escape(key)), "UNKNOWN_KEY", detail);
        }
        Value::Object(checked)
    }

    fn scalar(&mut self, name: &str, bounds: Bounds, value: &Value, pointer: &str) {
        match (name, value) {
            ("Int", Value::Number(number)) => match number.as_i64() {
                Some(number) => self.number(bounds, number, pointer),
                None => self.wrong_type(pointer, "an integer"),
            },
            ("Id", Value::Number(number)) => match number.as_i64() {
                // Its range is part of the type.
                Some(number) => {
                    self.within(super::bounds::range(1, crate::base::ids::MAX_ID), number, pointer);
                }
                None => self.wrong_type(pointer, AN_ID),
            },
            ("Id", _) => self.wrong_type(pointer, AN_ID),
            ("Float", Value::Number(number)) => match number.as_f64() {
                Some(float) if bounds.min.is_some_and(|min| float < min as f64) => {
                    let min = bounds.min.unwrap_or_default();
                    self.wrong(pointer, "TOO_SMALL", format!("`{}` must be at least {min}.", last(pointer)));
                }
                Some(float) if bounds.max.is_some_and(|max| float > max as f64) => {
                    let max = bounds.max.unwrap_or_default();
                    self.wrong(pointer, "TOO_LARGE", format!("`{}` must be at most {max}.", last(pointer)));
                }
                _ => {}
            },
            ("Int", _) => self.wrong_type(pointer, "an integer"),
            ("Float", _) => self.wrong_type(pointer, "a number"),
            ("Boolean", Value::Boolean(_)) => {}
            ("Boolean", _) => self.wrong_type(pointer, "true or false"),
            ("String" | "SecretString", Value::String(text)) => self.text(bounds, text, pointer),
            ("String" | "SecretString", _) => self.wrong_type(pointer, "a string"),
            ("Timestamp", Value::String(text)) if text.parse::<crate::base::time::Timestamp>().is_ok() => {}
            ("Timestamp", _) => self.wrong_type(pointer, "a timestamp such as 2026-01-31T08:00:00.000Z"),
            ("Labels", Value::Object(labels)) => self.labels(labels, pointer),
            ("Labels", _) => self.wrong_type(pointer, "an object whose values are strings"),
            (name, value) => self.other_scalar(name, value, pointer),
        }
    }

    fn labels(&mut self, labels: &IndexMap<Name, Value>, pointer: &str) {
        if labels.len() > MAX_LABELS {
            let what = last(pointer);
            let detail = format!("`{what}` can have at most {MAX_LABELS} labels, not {}.", labels.len());
            return self.wrong(pointer, "TOO_LONG", detail);
        }
        for (name, value) in labels {
            self.label_text("A name in", name, pointer);
            let at = format!("{pointer}/{}", escape(name));
            match value {
                Value::String(text) => self.label_text("The label", text, &at),
                _ => self.wrong_type(&at, "a string"),
            }
        }
    }

    fn label_text(&mut self, what: &str, text: &str, pointer: &str) {
        let count = text.chars().count();
        if text.contains('\0') {
            self.nul(pointer);
        } else if count > LONGEST_LABEL {
            let name = last(pointer);
            let detail = format!("{what} `{name}` can have at most {LONGEST_LABEL} characters, not {count}.");
            self.wrong(pointer, "TOO_LONG", detail);
        }
    }

    /// Our own scalars that are closed sets (permissions, kinds of credential), and free JSON.
    fn other_scalar(&mut self, name: &str, value: &Value, pointer: &str) {
        if self.types_only {
            return; // the scalar validates itself
        }
        if name == "JSON" && holds_nul(value) {
            return self.nul(pointer);
        }
        let known = super::catalogue::values_of_scalar(name);
        if known.is_empty() {
            return;
        }
        let Value::String(text) = value else { return self.wrong_type(pointer, "a string") };
        if !known.contains(&text.as_str()) {
            self.wrong(pointer, "NOT_ALLOWED", not_one_of(&last(pointer), text, &known));
        }
    }

    fn number(&mut self, bounds: Bounds, number: i64, pointer: &str) {
        if !self.types_only {
            self.within(bounds, number, pointer);
        }
    }

    fn within(&mut self, bounds: Bounds, number: i64, pointer: &str) {
        if let Some(min) = bounds.min.filter(|min| number < *min) {
            self.wrong(pointer, "TOO_SMALL", format!("`{}` must be at least {min}.", last(pointer)));
        }
        let max = bounds.max.unwrap_or(i64::from(i32::MAX));
        if number > max {
            self.wrong(pointer, "TOO_LARGE", format!("`{}` must be at most {max}.", last(pointer)));
        }
    }

    fn text(&mut self, bounds: Bounds, text: &str, pointer: &str) {
        if self.types_only {
            return;
        }
        if text.contains('\0') {
            return self.nul(pointer);
        }
        if bounds.digits && !text.is_empty() && !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return self.wrong_type(pointer, "a decimal integer");
        }
        if bounds.line && !is_line(text) {
            let detail = format!("`{}` must be a single line without control characters.", last(pointer));
            return self.wrong(pointer, "NOT_ALLOWED", detail);
        }
        if bounds.folder && !is_folder(text) {
            let detail =
                "is a folder name: it can't contain slashes or control characters, or start with a dot.";
            return self.wrong(pointer, "NOT_ALLOWED", format!("`{}` {detail}", last(pointer)));
        }
        let count = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        if let Some(min) = bounds.min_length.filter(|min| count < *min) {
            let detail = format!("`{}` must have at least {}.", last(pointer), with_noun(min, "character"));
            self.wrong(pointer, "TOO_SHORT", detail);
        } else if bounds.not_blank && text.trim().is_empty() {
            self.wrong(pointer, "TOO_SHORT", format!("`{}` must not be blank.", last(pointer)));
        }
        if let Some(max) = bounds.max_length.filter(|max| count > *max) {
            let detail =
                format!("`{}` can have at most {}, not {count}.", last(pointer), with_noun(max, "character"));
            self.wrong(pointer, "TOO_LONG", detail);
        }
    }

    /// Whether the value at `pointer`, or a part of it, already has a violation.
    fn blames(&self, pointer: &str) -> bool {
        let Some(Violation { at: At::Pointer(at), .. }) = self.violations.last() else { return false };
        at.strip_prefix(pointer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn spell(&self, name: &str) -> String {
        match self.spelling {
            Spelling::Camel => name.to_owned(),
            Spelling::Snake => snake_case(name),
        }
    }

    /// Reports a character that PostgreSQL keeps neither in text nor in JSON.
    fn nul(&mut self, pointer: &str) {
        let detail = format!("`{}` contains the character U+0000.", last(pointer));
        self.wrong(pointer, "NOT_ALLOWED", detail);
    }

    fn wrong_type(&mut self, pointer: &str, wanted: &str) {
        self.wrong(pointer, "WRONG_TYPE", format!("`{}` must be {wanted}.", last(pointer)));
    }

    fn wrong(&mut self, pointer: &str, code: &'static str, detail: String) {
        self.violations.push(Violation::at(pointer, code, detail));
    }
}

/// Whether a text or a key has U+0000, at any depth.
fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::List(items) => items.iter().any(holds_nul),
        Value::Object(fields) => fields.iter().any(|(key, value)| key.contains('\0') || holds_nul(value)),
        _ => false,
    }
}

/// JSON has one kind of number: `112.0` is the integer 112. Beyond 2^53, a float no longer identifies one
/// integer.
fn whole(value: Value) -> Value {
    match &value {
        Value::Number(number) if number.as_i64().is_none() => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() <= crate::base::ids::MAX_ID as f64 => {
                Value::from(float as i64)
            }
            _ => value,
        },
        _ => value,
    }
}

/// ` (did you mean …?)`, or nothing.
pub fn meant<'k>(given: &str, known: impl Iterator<Item = &'k str>) -> String {
    closest(given, known).map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

/// The message that lists the allowed values of `name`.
pub fn not_one_of(name: &str, given: &str, known: &[&str]) -> String {
    format!("`{name}` must be one of {}{}.", known.join(", "), meant(given, known.iter().copied()))
}

/// The last token of a JSON pointer, unescaped: how messages name the value.
fn last(pointer: &str) -> String {
    let token = pointer.rsplit('/').next().unwrap_or_default();
    if token.is_empty() { "body".to_owned() } else { token.replace("~1", "/").replace("~0", "~") }
}

/// Escapes a key for a JSON pointer (RFC 6901, section 3).
fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
