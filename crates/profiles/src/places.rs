//! Placeholders in a profile's values: `{home}` and the like. Other braces, as in JSON, are plain text.

use muster_protocol::profile::Profile;

/// An unknown placeholder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{{{0}}} is not a placeholder; these are: {places}", places = Profile::PLACES.map(|place| format!("{{{place}}}")).join(", "))]
pub struct Unknown(pub String);

/// Fills the placeholders of a value. `None`: one of them has no value.
///
/// # Errors
/// A word in braces that is not a place.
pub fn filled(value: &str, with: impl Fn(&str) -> Option<String>) -> Result<Option<String>, Unknown> {
    let (mut text, mut rest, mut lacks) = (String::new(), value, false);
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let word = after.split_once('}').map(|(word, _)| word).filter(|word| is_word(word));
        let Some(word) = word else {
            text.push('{');
            rest = after;
            continue;
        };
        if !Profile::PLACES.contains(&word) {
            return Err(Unknown(word.to_owned()));
        }
        match with(word) {
            Some(value) => text.push_str(&value),
            None => lacks = true,
        }
        rest = &after[word.len() + 1..];
    }
    text.push_str(rest);
    Ok((!lacks).then_some(text))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|char| char.is_ascii_lowercase() || char == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(place: &str) -> Option<String> {
        (place != "model").then(|| format!("<{place}>"))
    }

    #[test]
    fn places_are_filled_and_other_braces_are_text() {
        let fill = |value: &str| filled(value, with);
        assert_eq!(fill("{home}/x:{home}").unwrap().unwrap(), "<home>/x:<home>");
        let json = "{ \"a\": {\"b\": {}}, \"c\": \"{provider}\" }";
        assert_eq!(fill(json).unwrap().unwrap(), "{ \"a\": {\"b\": {}}, \"c\": \"<provider>\" }");
        assert_eq!(fill("{").unwrap().unwrap(), "{");
        assert_eq!(fill("a {model} b"), Ok(None));
        assert_eq!(fill("{nope}"), Err(Unknown("nope".to_owned())));
    }

    #[test]
    fn what_is_filled_in_is_not_filled_again() {
        assert_eq!(filled("{home}", |_| Some("{model}".to_owned())).unwrap().unwrap(), "{model}");
    }
}
