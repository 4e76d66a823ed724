//! Goes through JSON without keeping any of it.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Looks for something. An error ends it.
pub trait Look {
    /// What a value is, by where it stands.
    type Place: Copy;

    /// A text.
    fn text<E: Error>(&mut self, place: Self::Place, text: &str) -> Result<(), E>;

    /// A number.
    fn number<E: Error>(&mut self, _: Self::Place) -> Result<(), E> {
        Ok(())
    }

    /// An object begins. Returns whether its fields are looked at.
    fn object(&mut self, _: Self::Place) -> bool {
        true
    }

    /// What the value of a field of an object is.
    fn field<E: Error>(&mut self, object: Self::Place, name: &str) -> Result<Self::Place, E>;

    /// What the items of a list are.
    fn item(&self, list: Self::Place) -> Self::Place;
}

/// Looks through JSON.
///
/// # Errors
/// It is not JSON, is nested too deeply to be looked through, or `look` ended it.
pub fn through<L: Look>(json: &str, look: &mut L, place: L::Place) -> serde_json::Result<()> {
    At { look, place }.deserialize(&mut serde_json::Deserializer::from_str(json))
}

/// A value that is being looked at.
struct At<'l, L: Look> {
    look: &'l mut L,
    place: L::Place,
}

impl<'de, L: Look> DeserializeSeed<'de> for At<'_, L> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de, L: Look> Visitor<'de> for At<'_, L> {
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
        self.look.number(self.place)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        self.look.number(self.place)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.look.number(self.place)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.look.text(self.place, text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let place = self.look.item(self.place);
        while list.next_element_seed(At { look: &mut *self.look, place })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if !self.look.object(self.place) {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        while let Some(name) = map.next_key::<String>()? {
            let place = self.look.field(self.place, &name)?;
            map.next_value_seed(At { look: &mut *self.look, place })?;
        }
        Ok(())
    }
}
