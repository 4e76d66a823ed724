//! The bounds of input values. They are declared once on an argument or input field, shown in the SDL, and read
//! back by the validator of both interfaces ([`validate`](super::validate)) and the OpenAPI document.

use std::borrow::Cow;

use async_graphql::{
    InputType, Number, TypeDirective, Value,
    registry::{
        __DirectiveLocation, MetaDirective, MetaDirectiveInvocation, Registry,
        location_traits::{Directive_At_ARGUMENT_DEFINITION, Directive_At_INPUT_FIELD_DEFINITION},
    },
};

use crate::base::plain::is_line;

/// The most labels of a record.
pub const MAX_LABELS: usize = 50;

/// The most characters of a label's name, and of its value.
pub const LONGEST_LABEL: usize = 255;

/// The bounds of one value. `None` means unbounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    pub min: Option<i64>,
    pub max: Option<i64>,
    /// The fewest characters.
    pub min_length: Option<i64>,
    /// The most characters.
    pub max_length: Option<i64>,
    /// The most items in a list. The other bounds then apply to each item.
    pub max_items: Option<i64>,
    /// Whether the text needs a character that isn't white space.
    pub not_blank: bool,
    /// Whether the text is a decimal integer, digits only.
    pub digits: bool,
    /// Whether the text is a single line, as for names, labels, and reasons.
    pub line: bool,
    /// Whether the text can be a folder name: it leads nowhere else and isn't hidden.
    pub folder: bool,
    /// Whether null is refused although the field may be left out: an edit can't clear the value.
    pub not_null: bool,
}

#[must_use]
pub const fn range(min: i64, max: i64) -> Bounds {
    Bounds {
        min: Some(min),
        max: Some(max),
        min_length: None,
        max_length: None,
        max_items: None,
        not_blank: false,
        digits: false,
        line: false,
        folder: false,
        not_null: false,
    }
}

/// A number of at least `min`.
#[must_use]
pub const fn at_least(min: i64) -> Bounds {
    Bounds { max: None, ..range(min, 0) }
}

/// A text of `min` to `max` characters.
#[must_use]
pub const fn length(min: i64, max: i64) -> Bounds {
    Bounds {
        min: None,
        max: None,
        min_length: Some(min),
        max_length: Some(max),
        max_items: None,
        not_blank: false,
        digits: false,
        line: false,
        folder: false,
        not_null: false,
    }
}

/// A text of 1 to `max` characters that isn't blank, for free text.
#[must_use]
pub const fn free_text(max: i64) -> Bounds {
    Bounds { not_blank: true, ..length(1, max) }
}

/// A single line of 1 to `max` characters that isn't blank, for names, labels, and reasons.
#[must_use]
pub const fn name(max: i64) -> Bounds {
    Bounds { line: true, ..free_text(max) }
}

/// A name that is also a folder name.
#[must_use]
pub const fn folder(max: i64) -> Bounds {
    Bounds { folder: true, ..free_text(max) }
}

/// A decimal integer as text, for numbers that may exceed 2^53.
#[must_use]
pub const fn digits(max: i64) -> Bounds {
    Bounds { digits: true, ..length(1, max) }
}

/// A list of at most `items` values, each within `each`.
#[must_use]
pub const fn list(items: i64, each: Bounds) -> Bounds {
    Bounds { max_items: Some(items), ..each }
}

/// A list of at most `items` values.
#[must_use]
pub const fn items(items: i64) -> Bounds {
    Bounds { min_length: None, max_length: None, ..list(items, length(0, 0)) }
}

/// Any value except null.
#[must_use]
pub const fn not_null() -> Bounds {
    Bounds { min_length: None, max_length: None, ..length(0, 0) }.not_null()
}

/// Whether a text, once trimmed, can be a folder name: it must not lead out of its parent folder or be hidden.
#[must_use]
pub fn is_folder(text: &str) -> bool {
    !text.contains(['/', '\\']) && is_line(text) && !text.trim_start().starts_with('.')
}

impl Bounds {
    /// The same bounds, with null refused.
    #[must_use]
    pub const fn not_null(mut self) -> Self {
        self.not_null = true;
        self
    }

    /// Reads the bounds of a schema element. Without the directive there are none.
    #[must_use]
    pub fn read(directives: &[MetaDirectiveInvocation]) -> Self {
        let Some(declared) = directives.iter().find(|directive| directive.name == "bounds") else {
            return Self::default();
        };
        let number = |name: &str| match declared.args.get(name) {
            Some(Value::Number(number)) => number.as_i64(),
            _ => None,
        };
        Self {
            min: number("min"),
            max: number("max"),
            min_length: number("minLength"),
            max_length: number("maxLength"),
            max_items: number("maxItems"),
            not_blank: declared.args.contains_key("notBlank"),
            digits: declared.args.contains_key("digits"),
            line: declared.args.contains_key("line"),
            folder: declared.args.contains_key("folder"),
            not_null: declared.args.contains_key("notNull"),
        }
    }
}

/// `@bounds(…)` on an argument or an input field.
#[expect(
    non_camel_case_types,
    reason = "async-graphql names a directive by its type: `directive = bounds::apply(…)`"
)]
pub struct bounds;

impl bounds {
    /// Bounds the value.
    #[must_use]
    pub fn apply(declared: Bounds) -> MetaDirectiveInvocation {
        let numbers = [
            ("min", declared.min),
            ("max", declared.max),
            ("minLength", declared.min_length),
            ("maxLength", declared.max_length),
            ("maxItems", declared.max_items),
        ];
        let numbers = numbers
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), Value::Number(Number::from(value?)))));
        let flags = [
            ("notBlank", declared.not_blank),
            ("digits", declared.digits),
            ("line", declared.line),
            ("folder", declared.folder),
            ("notNull", declared.not_null),
        ];
        let flags = flags.into_iter().filter(|(_, set)| *set);
        let flags = flags.map(|(name, _)| (name.to_owned(), Value::Boolean(true)));
        MetaDirectiveInvocation { name: "bounds".to_owned(), args: numbers.chain(flags).collect() }
    }
}

impl TypeDirective for bounds {
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed("bounds")
    }

    fn register(&self, registry: &mut Registry) {
        let int = <Option<i64> as InputType>::create_type_info(registry);
        // Bounds may be larger than an `Int`.
        let number = <Option<f64> as InputType>::create_type_info(registry);
        let boolean = <Option<bool> as InputType>::create_type_info(registry);
        let args = [
            ("min", "The smallest number.", &number),
            ("max", "The largest number.", &number),
            ("minLength", "The fewest characters.", &int),
            ("maxLength", "The most characters.", &int),
            ("maxItems", "The most items in a list. The other bounds apply to each item.", &int),
            ("notBlank", "The text must contain a character that is not white space.", &boolean),
            ("digits", "The text is a decimal integer.", &boolean),
            ("line", "The text is a single line without control characters.", &boolean),
            (
                "folder",
                "The text is a folder name: no slashes, no control characters, and no dot at the start.",
                &boolean,
            ),
            ("notNull", "The value may be left out, but must not be null.", &boolean),
        ];
        let args = args
            .into_iter()
            .map(|(name, about, ty)| (name.to_owned(), super::permit::argument(name, about, ty.clone())));
        registry.add_directive(MetaDirective {
            name: "bounds".to_owned(),
            description: Some("The bounds of a value. Values outside them are refused.".to_owned()),
            locations: vec![
                __DirectiveLocation::ARGUMENT_DEFINITION,
                __DirectiveLocation::INPUT_FIELD_DEFINITION,
            ],
            args: args.collect(),
            is_repeatable: false,
            visible: None,
            composable: None,
        });
    }
}

impl Directive_At_ARGUMENT_DEFINITION for bounds {}
impl Directive_At_INPUT_FIELD_DEFINITION for bounds {}
