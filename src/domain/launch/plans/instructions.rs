//! What an agent is told in words at the beginning of each session. Pure.

use crate::base::enums::{ResponseFormat, ResponseStyle};

/// Who the agent is, and how it answers.
#[derive(Clone, Copy, Debug)]
pub struct Manner<'a> {
    pub name: &'a str,
    pub role: Option<&'a str>,
    /// What it does.
    pub description: Option<&'a str>,
    /// The code of a language.
    pub language: Option<&'a str>,
    pub style: ResponseStyle,
    pub format: ResponseFormat,
    /// Whether it sends each answer as one message.
    pub single_message: bool,
    /// Whether it avoids emoji.
    pub no_emoji: bool,
}

/// The instructions of an agent. `not_enforced` are the kinds of action that it has to ask about by itself, because no rule
/// knows them.
pub fn of(agent: &Manner<'_>, not_enforced: &[String]) -> String {
    let mut lines = vec![match given(agent.role) {
        Some(role) => format!("You are {}. Your role: {role}.", agent.name),
        None => format!("You are {}.", agent.name),
    }];
    lines.extend(given(agent.description).map(str::to_owned));
    lines.extend(given(agent.language).map(|language| {
        format!(
            "Answer in the language with the code {language}, regardless of the language of the messages."
        )
    }));
    lines.extend(style(agent.style).map(str::to_owned));
    lines.push(format(agent.format).to_owned());
    if agent.single_message {
        lines.push("Send your answer as one message at the end, without intermediate ones.".to_owned());
    }
    if agent.no_emoji {
        lines.push("Do not use emoji.".to_owned());
    }
    lines.push(
        "If you need a decision or a fact that only a person has, ask with the tool `ask_person`. Answers can take hours: if \
         the tool tells you to end your turn, do so, and the answer comes as the next message."
            .to_owned(),
    );
    if !not_enforced.is_empty() {
        lines.push("Before you do anything of these kinds, ask with the tool `request_approval`:".to_owned());
        lines.extend(not_enforced.iter().map(|category| format!("- {category}")));
    }
    lines.join("\n")
}

fn given(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

const fn style(style: ResponseStyle) -> Option<&'static str> {
    match style {
        ResponseStyle::Default => None,
        ResponseStyle::Concise => Some("Be brief."),
        ResponseStyle::Detailed => Some("Be thorough, and give details."),
        ResponseStyle::Formal => Some("Write formally."),
        ResponseStyle::Friendly => Some("Write in a friendly tone."),
    }
}

const fn format(format: ResponseFormat) -> &'static str {
    match format {
        ResponseFormat::Prose => "Write in paragraphs.",
        ResponseFormat::Markdown => "Format your answers with markdown.",
        ResponseFormat::Plain => "Write plain text, without markdown.",
        ResponseFormat::Structured => "Structure your answers with headings and lists, in markdown.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: Manner<'_> = Manner {
        name: "Ada",
        role: None,
        description: None,
        language: None,
        style: ResponseStyle::Default,
        format: ResponseFormat::Prose,
        single_message: false,
        no_emoji: false,
    };

    #[test]
    fn instructions_say_what_is_set() {
        let full = Manner {
            role: Some("dispatcher"),
            description: Some("  Plans the routes of the day.\n"),
            language: Some("pt-BR"),
            style: ResponseStyle::Formal,
            format: ResponseFormat::Plain,
            single_message: true,
            no_emoji: true,
            ..NEW
        };
        let blank = Manner {
            role: Some(" "),
            description: Some(""),
            style: ResponseStyle::Concise,
            format: ResponseFormat::Structured,
            ..NEW
        };
        let kinds = ["promising dates to customers".to_owned(), "refunds above 50 euros".to_owned()];
        let shown = [
            ("a new agent", of(&NEW, &[])),
            ("an agent with everything", of(&full, &kinds)),
            ("blank texts", of(&blank, &[])),
        ];
        let all: String = shown.map(|(what, text)| format!("# {what}\n{text}\n\n")).concat();
        insta::assert_snapshot!(all);
    }
}
