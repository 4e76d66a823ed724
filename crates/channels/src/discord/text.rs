//! Discord's text as Markdown: <https://discord.com/developers/docs/reference#message-formatting>. Its marks are nearly
//! Markdown's; mentions, emoji and times are not.

use jiff::Timestamp;

use super::events::{Snowflake, User};
use crate::quoting::short_name;

/// Replaces mentions, emoji and times by words, and removes mentions of `ours`: the bot and its roles.
pub fn to_markdown(text: &str, ours: &[Snowflake], mentions: &[User]) -> String {
    let (mut read, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        read.push_str(before);
        let inside = &from[1..];
        // A form has no `<`. So each byte is searched once.
        let end = inside.find(['<', '>']).filter(|end| inside[*end..].starts_with('>'));
        let words =
            end.and_then(|end| Some((read_form(&inside[..end], ours, mentions)?, &inside[end + 1..])));
        let (words, after) = words.unwrap_or_else(|| ("<".to_owned(), inside));
        let is_double_space = words.is_empty() && (read.is_empty() || read.ends_with(' '));
        rest = if is_double_space { after.strip_prefix(' ').unwrap_or(after) } else { after };
        read.push_str(&words);
    }
    read.push_str(rest);
    read.trim().to_owned()
}

/// The words of a form without its brackets. `None`: it stays as it is.
fn read_form(form: &str, ours: &[Snowflake], mentions: &[User]) -> Option<String> {
    if let Some(id) = form.strip_prefix('@') {
        let id = Snowflake(id.trim_start_matches(['!', '&']).parse().ok()?);
        if ours.contains(&id) {
            return Some(String::new());
        }
        return mentions
            .iter()
            .find(|user| user.id == id)
            .map(|user| format!("@{}", short_name(user.name())));
    }
    if let Some(time) = form.strip_prefix("t:") {
        let seconds = time.split(':').next()?.parse().ok()?;
        return Timestamp::from_second(seconds).ok().map(|time| time.to_string());
    }
    let named = form.strip_prefix("a:").or_else(|| form.strip_prefix(':'));
    let (name, id) = named.or_else(|| form.strip_prefix('/'))?.rsplit_once(':')?;
    id.parse::<u64>().ok()?;
    Some(if named.is_some() { format!(":{name}:") } else { format!("/{name}") })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[test]
    fn mentions_emoji_and_times_become_words() {
        let ada = json!({"id": "5", "username": "ada", "global_name": "Ada\nL."});
        let mentions = [User::deserialize(&ada).unwrap()];
        for (text, expected) in [
            ("<@7> look at <@!5>", "look at @Ada L."),
            ("so <@7> and <@7>, <@9>", "so and , <@9>"),
            ("<:wave:12> <a:dance:34> </list all:56>", ":wave: :dance: /list all"),
            ("at <t:1618953630:R>", "at 2021-04-20T21:20:30Z"),
            ("1 < 2 <#8> <@&6> <b>", "1 < 2 <#8> <@&6> <b>"),
            ("<t:x> <:a:b> <", "<t:x> <:a:b> <"),
        ] {
            assert_eq!(to_markdown(text, &[Snowflake(7)], &mentions), expected);
        }
    }
}
