//! An agent's instructions for the beginning of each session. Pure.

use crate::base::enums::{ResponseFormat, ResponseStyle};

/// The settings of an agent that its instructions express.
#[derive(Clone, Copy, Debug)]
pub struct Persona<'a> {
    pub name: &'a str,
    pub role: Option<&'a str>,
    pub description: Option<&'a str>,
    /// The code of a language.
    pub language: Option<&'a str>,
    pub style: ResponseStyle,
    pub format: ResponseFormat,
    pub single_message: bool,
    pub no_emoji: bool,
}

/// The instructions of an agent. `not_enforced` are the kinds of action that it must ask about by itself, because no
/// risk rule covers them.
pub fn build(agent: &Persona<'_>, not_enforced: &[String]) -> String {
    let mut lines = vec![match non_blank(agent.role) {
        Some(role) => format!("You are {}. Your role: {role}.", agent.name),
        None => format!("You are {}.", agent.name),
    }];
    lines.extend(non_blank(agent.description).map(str::to_owned));
    lines.extend(non_blank(agent.language).map(|language| {
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

fn non_blank(text: Option<&str>) -> Option<&str> {
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

    const NEW: Persona<'_> = Persona {
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
        let full = Persona {
            role: Some("dispatcher"),
            description: Some("  Plans the routes of the day.\n"),
            language: Some("pt-BR"),
            style: ResponseStyle::Formal,
            format: ResponseFormat::Plain,
            single_message: true,
            no_emoji: true,
            ..NEW
        };
        let blank = Persona {
            role: Some(" "),
            description: Some(""),
            style: ResponseStyle::Concise,
            format: ResponseFormat::Structured,
            ..NEW
        };
        let kinds = ["promising dates to customers".to_owned(), "refunds above 50 euros".to_owned()];
        let shown = [
            ("a new agent", build(&NEW, &[])),
            ("an agent with everything", build(&full, &kinds)),
            ("blank texts", build(&blank, &[])),
        ];
        let all: String = shown.map(|(what, text)| format!("# {what}\n{text}\n\n")).concat();
        insta::assert_snapshot!(all);
    }
}
