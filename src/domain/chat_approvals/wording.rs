//! Texts of requests in chats, in Markdown, and the meaning of answers. Pure.
//!
//! Text by an agent is escaped: it never acts as Markdown or passes for our own words. A request that needs more than
//! one message or has invisible characters is not shown at all: a link to the panel replaces it.

use muster_channels::{Button, Dialect, Longest, Rendered, render};

use crate::{
    base::{
        bounds,
        enums::{ApprovalKind, ApprovalOutcome, ApprovalStatus},
        ids::ApprovalId,
        plain::is_hidden,
    },
    domain::approvals::{Answer, Choice, Question, Shown},
};

/// The conditions for showing a request.
pub(super) struct Terms {
    pub agent: Option<String>,
    /// Only requests below this risk may be decided in chats.
    pub risk_limit: i64,
    /// The address of the approval in the panel.
    pub link: String,
}

/// A message with a request.
pub(super) struct RequestMessage {
    pub text: Rendered,
    pub buttons: Vec<Button>,
    /// Whether an answer to it decides.
    pub is_decidable: bool,
}

/// Whether an approval may be decided in a chat.
pub(super) fn is_decidable(shown: &Shown, risk_limit: i64) -> bool {
    let risk = match shown.kind {
        ApprovalKind::Action => shown.risk.unwrap_or(100),
        ApprovalKind::Question => shown.risk.unwrap_or(0),
        _ => return false,
    };
    risk < risk_limit
}

/// Writes the message that asks for a decision.
pub(super) fn write_request(
    shown: &Shown,
    terms: &Terms,
    (dialect, longest): (Dialect, Longest),
) -> RequestMessage {
    if is_decidable(shown, terms.risk_limit)
        && let Some(text) = render_whole(|| describe_fully(shown, terms), shown, (dialect, longest))
    {
        return RequestMessage { text, buttons: buttons(shown), is_decidable: true };
    }
    let agent = escape(terms.agent.as_deref().unwrap_or("An agent"));
    let asks = if shown.kind == ApprovalKind::Question { "asks a question" } else { "asks for approval" };
    let text = format!("**{agent} {asks}**\n\nRead and decide it in the panel: <{}>", terms.link);
    RequestMessage { text: render_short(&text, (dialect, longest)), buttons: Vec::new(), is_decidable: false }
}

/// Writes the text that replaces the request once it is closed.
pub(super) fn write_closed(shown: &Shown, terms: &Terms, (dialect, longest): (Dialect, Longest)) -> Rendered {
    let over = format!("**{}**", escape(&outcome(shown)));
    let agent = escape(terms.agent.as_deref().unwrap_or("An agent"));
    let short = format!("{agent} asked for a decision: <{}>\n\n{over}", terms.link);
    if !is_decidable(shown, terms.risk_limit) {
        return render_short(&short, (dialect, longest));
    }
    let asked = || format!("{}\n\n{over}", describe(shown, terms));
    render_whole(asked, shown, (dialect, longest)).unwrap_or_else(|| render_short(&short, (dialect, longest)))
}

/// The outcome in a sentence.
pub(super) fn outcome(shown: &Shown) -> String {
    let done = match (shown.status, shown.outcome) {
        (ApprovalStatus::Pending, _) => return "It is waiting for a decision.".to_owned(),
        (ApprovalStatus::Expired, _) => return "It has expired.".to_owned(),
        (_, Some(ApprovalOutcome::Withdrawn)) => {
            return "The agent is no longer waiting for it.".to_owned();
        }
        (_, Some(ApprovalOutcome::Approved)) => "Approved",
        (_, Some(ApprovalOutcome::Denied)) => "Denied",
        (_, Some(ApprovalOutcome::Answered)) => "Answered",
        (_, Some(ApprovalOutcome::Dismissed)) => "Dismissed",
        _ => "Resolved",
    };
    match &shown.by {
        Some(by) => format!("{done} by {by}."),
        None => format!("{done}."),
    }
}

/// Renders the text as one message. `None` if it has invisible characters or is too long. The text is not built if one
/// of its parts alone is too long: indentation makes deeply nested input many times longer.
fn render_whole(
    text: impl FnOnce() -> String,
    shown: &Shown,
    (dialect, longest): (Dialect, Longest),
) -> Option<Rendered> {
    let input = shown.request.as_ref().map(|request| request["input"].to_string()).unwrap_or_default();
    let tool = shown.request.as_ref().and_then(|request| request["tool"].as_str()).unwrap_or_default();
    let body = shown.body.as_deref().unwrap_or_default();
    let written = [shown.title.as_str(), body, &shown.question.text, tool, &input];
    let options = shown
        .question
        .options
        .iter()
        .flat_map(|option| [Some(option.label.as_str()), option.description.as_deref()]);
    let is_too_long = |text: &str| text.chars().count() > longest.count;
    if written.into_iter().chain(options.flatten()).any(|text| is_too_long(text) || text.contains(is_hidden))
    {
        return None;
    }
    <[Rendered; 1]>::try_from(render(&text(), dialect, longest)).ok().map(|[whole]| whole)
}

/// Renders one of our own short texts, which have only one part.
fn render_short(text: &str, (dialect, longest): (Dialect, Longest)) -> Rendered {
    let nothing = Rendered { text: String::new(), plain: String::new() };
    render(text, dialect, longest).into_iter().next().unwrap_or(nothing)
}

/// The question, the choices, and how to answer.
fn describe_fully(shown: &Shown, terms: &Terms) -> String {
    let question = &shown.question;
    let choices = (1..).zip(&question.options).map(|(n, option)| {
        let more =
            option.description.as_deref().map(|more| format!(": {}", escape(more))).unwrap_or_default();
        format!("{n}\\. {}{more}", escape(&option.label))
    });
    // A hard break ends a line but not the paragraph.
    let choices = choices.collect::<Vec<_>>().join("\\\n");
    let takes_text = shown.kind == ApprovalKind::Question && question.allow_text;
    let how = match (question.options.is_empty(), question.multiple, takes_text) {
        (true, ..) => "Reply to this message.",
        (false, true, true) => "Reply to this message with the numbers, such as 1, 2, or in your own words.",
        (false, true, false) => "Reply to this message with the numbers, such as 1, 2.",
        (false, false, true) => "Tap a button, or reply to this message with a number or in your own words.",
        (false, false, false) => "Tap a button, or reply to this message with a number.",
    };
    let parts = [describe(shown, terms), choices, format!("*{how}*")];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// The request without its choices.
fn describe(shown: &Shown, terms: &Terms) -> String {
    let agent = escape(terms.agent.as_deref().unwrap_or("An agent"));
    let asks = if shown.kind == ApprovalKind::Question { "asks" } else { "asks for approval" };
    let mut text = format!("**{agent} {asks}:** {}", escape(&shown.title));
    let question = Some(&shown.question.text).filter(|text| **text != shown.title);
    for more in [shown.body.as_ref(), question].into_iter().flatten() {
        text.push_str("\n\n");
        text.push_str(&escape(more));
    }
    if let Some(request) = &shown.request {
        let tool = request["tool"].as_str().unwrap_or_default();
        let input = serde_json::to_string_pretty(&request["input"]).unwrap_or_default();
        let input = input.lines().map(keep_indentation).collect::<Vec<_>>().join("\\\n");
        text.push_str(&format!("\n\nTool: {}\\\n{input}", escape(tool)));
    }
    text
}

/// A button for each option of a question with at most 20. That of a long option shows its number.
fn buttons(shown: &Shown) -> Vec<Button> {
    let question = &shown.question;
    if question.multiple || question.options.len() > 20 {
        return Vec::new();
    }
    let label = |n: usize, label: &str| {
        if label.chars().count() <= bounds::LABEL { label.to_owned() } else { (n + 1).to_string() }
    };
    let button = |(n, option): (usize, &Choice)| Button {
        label: label(n, &option.label),
        value: ButtonValue { approval: shown.id, digest: shown.digest.clone(), option: n }.to_string(),
    };
    question.options.iter().enumerate().map(button).collect()
}

/// The value of a button, which the vendor returns when it is tapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ButtonValue {
    pub approval: ApprovalId,
    /// Of the request as shown.
    pub digest: String,
    /// The index of the option, from 0.
    pub option: usize,
}

impl std::fmt::Display for ButtonValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a:{}:{}:{}", self.approval, self.digest, self.option)
    }
}

impl ButtonValue {
    /// `None`: not one of our buttons.
    pub fn parse(value: &str) -> Option<Self> {
        let mut parts = value.strip_prefix("a:")?.split(':');
        let approval = ApprovalId(parts.next()?.parse().ok()?);
        let digest = parts.next()?.to_owned();
        let option = parts.next()?.parse().ok()?;
        parts.next().is_none().then_some(Self { approval, digest, option })
    }
}

/// Parses the answer to a question. `None`: it is unclear.
///
/// A number chooses an option, also if a colon, comma, full stop or line break and a text follow it; so does the
/// option's label. A number that is not one of the options is a mistake. Everything else is text, which answers a
/// question that allows it.
pub(super) fn parse_answer(question: &Question, kind: ApprovalKind, said: &str) -> Option<Answer> {
    let said = said.trim();
    let id = |n: usize| question.options.get(n.checked_sub(1)?).map(|option| option.id.clone());
    let exactly = |option: &&Choice| option.label == said;
    let loosely = |option: &&Choice| option.label.to_lowercase() == said.to_lowercase();
    let options = || question.options.iter();
    if let Some(option) = options().find(exactly).or_else(|| options().find(loosely)) {
        return Some(Answer { options: vec![option.id.clone()], text: None });
    }
    if question.multiple {
        let numbers = said.split([',', ' ', '\n']).filter(|word| !word.is_empty());
        let options: Option<Vec<_>> = numbers.map(|word| word.parse().ok().and_then(id)).collect();
        if let Some(options) = options.filter(|options| !options.is_empty()) {
            return Some(Answer { options, text: None });
        }
    } else {
        let digits = said.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = said.split_at(digits);
        // `1:30` and `2.5` don't choose anything.
        let is_apart = match rest.strip_prefix([':', ',', '.', '\n']) {
            Some(rest) => !rest.starts_with(|c: char| c.is_ascii_digit()),
            None => rest.is_empty(),
        };
        let text = rest.trim_start_matches([':', ',', '.', '\n', ' ']).trim();
        let text = Some(text.to_owned()).filter(|text| !text.is_empty());
        if is_apart && let Some(option) = number.parse().ok().and_then(id) {
            return Some(Answer { options: vec![option], text });
        }
    }
    let number = said.trim_end_matches([':', ',', '.']);
    let is_mistake = !question.options.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_text = kind == ApprovalKind::Question && question.allow_text && !said.is_empty() && !is_mistake;
    is_text.then(|| Answer { options: Vec::new(), text: Some(said.to_owned()) })
}

/// A line of JSON with its indentation, which Markdown would drop.
fn keep_indentation(line: &str) -> String {
    let text = line.trim_start_matches(' ');
    let indent = "\u{a0}".repeat(line.len() - text.len());
    format!("{indent}{}", escape(text))
}

/// Escapes a text, so that Markdown shows it literally, with its line breaks.
fn escape(text: &str) -> String {
    let escape_line = |line: &str| {
        line.trim().chars().fold(String::new(), |mut written, letter| {
            if letter.is_ascii_punctuation() {
                written.push('\\');
            }
            written.push(letter);
            written
        })
    };
    let mut written = String::new();
    let mut before = "";
    for line in text.trim().lines() {
        if !written.is_empty() {
            // A hard break keeps a line break; an empty line starts a paragraph.
            written.push_str(if line.trim().is_empty() || before.trim().is_empty() { "\n" } else { "\\\n" });
        }
        written.push_str(&escape_line(line));
        before = line;
    }
    written
}

#[cfg(test)]
mod tests {
    use muster_channels::{Kind, traits};
    use serde_json::json;

    use super::*;

    fn telegram_limits() -> (Dialect, Longest) {
        let facts = traits(Kind::Telegram);
        (facts.dialect, facts.longest)
    }

    fn terms() -> Terms {
        Terms {
            agent: Some("At*las".into()),
            risk_limit: 70,
            link: "https://muster.example/o/1/approvals/7".into(),
        }
    }

    fn action(title: &str, risk: Option<i64>) -> Shown {
        Shown {
            id: ApprovalId(7),
            kind: ApprovalKind::Action,
            status: ApprovalStatus::Pending,
            outcome: None,
            by: None,
            title: title.to_owned(),
            body: None,
            request: Some(json!({ "tool": "shell", "input": { "command": "rm -rf <b>/tmp/x</b>" } })),
            question: Question::approve_or_deny(title),
            risk,
            agent: None,
            digest: "0123456789abcdef".into(),
        }
    }

    #[test]
    fn an_action_is_shown_letter_by_letter_with_its_choices() {
        let asked = write_request(
            &action("Run *it* [now](http://evil.example) <b>", Some(10)),
            &terms(),
            telegram_limits(),
        );
        assert!(asked.is_decidable);
        let plain = &asked.text.plain;
        assert!(
            plain.starts_with("At*las asks for approval: Run *it* [now](http://evil.example) <b>"),
            "{plain}"
        );
        assert!(plain.contains("\"command\": \"rm -rf <b>/tmp/x</b>\""), "{plain}");
        assert!(plain.contains("1. Approve\n2. Deny"), "{plain}");
        assert!(!asked.text.text.contains("<a "), "{}", asked.text.text);
        let values: Vec<_> =
            asked.buttons.iter().map(|button| (button.label.as_str(), button.value.as_str())).collect();
        assert_eq!(values, [("Approve", "a:7:0123456789abcdef:0"), ("Deny", "a:7:0123456789abcdef:1")]);
        let read = ButtonValue::parse("a:7:0123456789abcdef:1").unwrap();
        assert_eq!((read.approval, read.option), (ApprovalId(7), 1));
        assert_eq!(ButtonValue::parse("a:7:x:1:2"), None);
        assert_eq!(ButtonValue::parse("b:7:x:1"), None);
    }

    #[test]
    fn requests_that_can_not_be_shown_whole_become_a_link() {
        let long = "x".repeat(5000);
        for (title, risk) in [
            (long.as_str(), Some(10)),
            ("Pay\u{202e}eno", Some(10)),
            ("Pay\u{200b}", Some(10)),
            ("Pay", Some(70)),
            ("Pay", None),
        ] {
            let asked = write_request(&action(title, risk), &terms(), telegram_limits());
            assert!(!asked.is_decidable && asked.buttons.is_empty());
            assert!(
                asked.text.plain.contains("https://muster.example/o/1/approvals/7"),
                "{}",
                asked.text.plain
            );
            assert!(!asked.text.plain.contains("Pay") && !asked.text.plain.contains("xxx"));
        }
    }

    #[test]
    fn too_long_requests_are_not_even_built() {
        let mut shown = action("Pay", Some(10));
        shown.request = Some(json!({ "tool": "pay", "input": vec![0; telegram_limits().1.count] }));
        assert!(render_whole(|| panic!("it is built"), &shown, telegram_limits()).is_none());
        let asked = write_request(&shown, &terms(), telegram_limits());
        assert!(!asked.is_decidable && asked.text.plain.contains("approvals/7"), "{}", asked.text.plain);
        let over = write_closed(&shown, &terms(), telegram_limits());
        assert!(over.plain.contains("approvals/7"), "{}", over.plain);
    }

    #[test]
    fn answers_are_numbers_labels_or_texts() {
        let choice = |id: &str, label: &str| Choice { id: id.into(), label: label.into(), description: None };
        let options = vec![choice("air", "By air"), choice("sea", "By sea")];
        let question = Question { text: "How?".into(), options, multiple: false, allow_text: true };
        let of = |kind, said: &str| {
            parse_answer(&question, kind, said).map(|answer| (answer.options, answer.text))
        };
        let chosen = |id: &str, text: Option<&str>| Some((vec![id.to_owned()], text.map(str::to_owned)));
        let text = |text: &str| Some((vec![], Some(text.to_owned())));
        let question_of = |said| of(ApprovalKind::Question, said);
        assert_eq!(question_of(" 2 "), chosen("sea", None));
        assert_eq!(question_of("by AIR"), chosen("air", None));
        assert_eq!(question_of("2: not on a Friday"), chosen("sea", Some("not on a Friday")));
        assert_eq!(question_of("2 days would do"), text("2 days would do"));
        assert_eq!((question_of("3"), question_of("3.")), (None, None));
        assert_eq!(question_of("1:30 pm"), text("1:30 pm"));
        assert_eq!(question_of("2.12.2026 is better"), text("2.12.2026 is better"));
        assert_eq!(of(ApprovalKind::Action, "1.5 is too much"), None);
        assert_eq!(question_of("3 of them"), text("3 of them"));
        assert_eq!(of(ApprovalKind::Action, "yes please"), None);
        assert_eq!(of(ApprovalKind::Action, "3"), None);
        let cases = vec![choice("lower", "a1"), choice("upper", "A1")];
        let alike = Question { options: cases, ..question.clone() };
        assert_eq!(parse_answer(&alike, ApprovalKind::Question, "A1").unwrap().options, ["upper"]);
        let several = Question { multiple: true, allow_text: false, ..question.clone() };
        assert_eq!(parse_answer(&several, ApprovalKind::Question, "1, 2").unwrap().options, ["air", "sea"]);
        assert_eq!(parse_answer(&several, ApprovalKind::Question, "1, 3"), None);
    }
}
