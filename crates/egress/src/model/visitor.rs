//! Visits the values of JSON without storing them.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Callbacks for each value. An error ends the visit.
pub trait JsonVisitor {
    /// The meaning of a value by its position.
    type Position: Copy;

    fn text<E: Error>(&mut self, position: Self::Position, text: &str) -> Result<(), E>;

    fn number<E: Error>(&mut self, _: Self::Position) -> Result<(), E> {
        Ok(())
    }

    /// Starts an object. Returns whether to visit its fields.
    fn object(&mut self, _: Self::Position) -> bool {
        true
    }

    /// The position of a field's value.
    fn field<E: Error>(&mut self, object: Self::Position, name: &str) -> Result<Self::Position, E>;

    /// The position of a list's items.
    fn item(&self, list: Self::Position) -> Self::Position;
}

/// Visits all values.
///
/// # Errors
///
/// Not JSON, nested too deeply, or ended by `visitor`.
pub fn visit<L: JsonVisitor>(json: &str, visitor: &mut L, position: L::Position) -> serde_json::Result<()> {
    ValueSeed { visitor, position }.deserialize(&mut serde_json::Deserializer::from_str(json))
}

/// The current value.
struct ValueSeed<'l, L: JsonVisitor> {
    visitor: &'l mut L,
    position: L::Position,
}

impl<'de, L: JsonVisitor> DeserializeSeed<'de> for ValueSeed<'_, L> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de, L: JsonVisitor> Visitor<'de> for ValueSeed<'_, L> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.visitor.number(self.position)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        self.visitor.number(self.position)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.visitor.number(self.position)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.visitor.text(self.position, text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let position = self.visitor.item(self.position);
        while list.next_element_seed(ValueSeed { visitor: &mut *self.visitor, position })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if !self.visitor.object(self.position) {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        while let Some(name) = map.next_key::<String>()? {
            let position = self.visitor.field(self.position, &name)?;
            map.next_value_seed(ValueSeed { visitor: &mut *self.visitor, position })?;
        }
        Ok(())
    }
}
