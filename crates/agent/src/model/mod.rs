//! Answers with a model: says what it says, and calls the tools that it wants to, after asking for permission.
//!
//! The interfaces differ in how a request looks and how an answer arrives; [`openai`] and [`anthropic`] translate.

mod anthropic;
mod call;
mod openai;

use std::{collections::BTreeMap, io, path::Path};

use agent_client_protocol::v1::schema::{StopReason, ToolKind};
use reqwest::Url;
use serde_json::{Map, Value, json};
use tokio::{fs, io::AsyncReadExt};

use crate::{
    bounds::{LIST, TEXT},
    history::{Entry, Outcome, Said},
    mcp::Tool,
    options::Mode,
    settings::Access,
    skills::{self, Skill},
    turn::{Spent, Stop, Turn},
};

/// The tool that reads skills, and files that people have sent.
const READ_FILE: &str = "read_file";
/// The folders of the home that it reads from.
const READABLE: [&str; 2] = ["skills", "inbox"];
/// The model's instruction for plan mode.
const PLANNING: &str = "\n\nYou are in plan mode: say what you would do, step by step, and do none of it. You \
    can read your skills and the files that you were sent; your other tools are switched off.";
/// What Muster's own server offers asks a person by itself.
const OWN_SERVER: &str = "muster";

/// What the model is asked.
struct Question<'a> {
    model: &'a str,
    system: String,
    entries: Vec<Entry>,
    tools: &'a [Offer],
}

/// A tool, as it is offered to the model.
struct Offer {
    name: String,
    description: String,
    schema: Value,
    /// None: the tool that reads a file.
    tool: Option<Tool>,
}

/// What the model has answered so far.
#[derive(Default)]
struct Answer {
    text: String,
    thought: String,
    /// The tools that it wants to call, by their place in the answer.
    wanted: BTreeMap<u64, Wanted>,
    spent: Option<Spent>,
    /// Why it ended, unless that is as usual.
    stop: Option<StopReason>,
    /// Whether it has ended.
    complete: bool,
}

/// A tool that the model wants to call.
#[derive(Default)]
struct Wanted {
    name: String,
    /// JSON, as the model wrote it.
    input: String,
}

/// What arrives: pieces of text or of a thought.
enum Piece {
    Text(String),
    Thought(String),
}

/// Answers what the session's last entry says.
pub async fn answer(turn: &mut Turn, access: &Access) -> Result<(), Stop> {
    let skills = skills::read(&turn.agent.settings.home).await;
    let mode = turn.session.mode();
    let (tools, problems) = match mode {
        Mode::Act => turn.unless_cancelled(turn.session.servers.tools()).await?,
        Mode::Plan => (Vec::new(), Vec::new()),
    };
    let offers = offers(tools);
    let mut system = system(&skills, &problems);
    if mode == Mode::Plan {
        system.push_str(PLANNING);
    }
    // A model that asks for tools without end.
    for _ in 0..30 {
        let entries = turn.session.with(|record| {
            record.entries.iter().cloned().map(|entry| acceptable(entry, &record.id)).collect()
        });
        let question = Question { model: &access.model, system: system.clone(), entries, tools: &offers };
        let mut answer = Answer::default();
        let asked = ask(turn, access, question, &mut answer).await;
        if let Some(spent) = answer.spent {
            *turn.spent.get_or_insert_default() += spent;
            turn.context = Some(spent.input + spent.cache_read + spent.cache_write + spent.output);
        }
        asked?;
        if let Some(reason) = answer.stop {
            return Err(Stop::Model(reason));
        }
        if answer.wanted.is_empty() {
            return Ok(());
        }
        for wanted in answer.wanted.into_values() {
            use_tool(turn, &offers, wanted).await?;
        }
    }
    Err(Stop::Model(StopReason::MaxTurnRequests))
}

/// The same entry as every model's service accepts it. A call has a name, of at most 64 letters, digits, `_` and `-`: one
/// made without a model has none, and models make names up. Some services refuse an id of more than 40 characters, so
/// the session's id, with which it begins, is left out.
fn acceptable(mut entry: Entry, session: &str) -> Entry {
    if let Entry::Tool(call) = &mut entry {
        call.id = call.id.replace(&format!("{session}-"), "");
        let name = call.name.get_or_insert_default();
        name.retain(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        name.truncate(64);
        if name.is_empty() {
            name.push_str("tool");
        }
    }
    entry
}

/// Asks, tells the client what arrives, and keeps it, also when the turn is cancelled meanwhile.
async fn ask(
    turn: &mut Turn,
    access: &Access,
    question: Question<'_>,
    answer: &mut Answer,
) -> Result<(), Stop> {
    let (thought, text) = (turn.new_id(), turn.new_id());
    let heard = async {
        let mut stream = call::stream(&turn.agent.http, access, &question).await?;
        while let Some(event) = call::next(&mut stream).await? {
            for piece in call::absorb(access.provider, answer, &event)? {
                match piece {
                    Piece::Text(piece) => turn.piece(&text, false, &piece).await?,
                    Piece::Thought(piece) => turn.piece(&thought, true, &piece).await?,
                }
            }
        }
        if answer.complete {
            Ok(())
        } else {
            Err(call::failed("The model's answer broke off.".to_owned(), None))
        }
    };
    let heard = turn.unless_cancelled(heard).await;
    if !answer.thought.is_empty() {
        turn.keep(Entry::Thought(Said { id: thought, text: answer.thought.clone() })).await;
    }
    if !answer.text.is_empty() {
        turn.keep(Entry::Agent(Said { id: text, text: answer.text.clone() })).await;
    }
    heard?
}

async fn use_tool(turn: &mut Turn, offers: &[Offer], wanted: Wanted) -> Result<(), Stop> {
    let offer = offers.iter().find(|offer| offer.name == wanted.name);
    let input =
        if wanted.input.trim().is_empty() { Ok(Map::new()) } else { serde_json::from_str(&wanted.input) };
    let shown =
        input.as_ref().map_or_else(|_| json!({ "invalid": wanted.input }), |input| input.clone().into());
    let tool = offer.and_then(|offer| offer.tool.as_ref());
    let title = tool.map_or_else(|| wanted.name.clone(), |tool| format!("{}: {}", tool.server, tool.name));
    let kind = if tool.is_some() { ToolKind::Other } else { ToolKind::Read };
    let call = turn.announce(Some(wanted.name.clone()), title, kind, shown).await?;
    let refused = match (&input, offer) {
        (Err(error), _) => Some(format!("The input is not a JSON object: {error}")),
        (_, None) => Some(format!("Unknown tool: {}.", wanted.name)),
        _ => None,
    };
    if let Some(text) = refused {
        return turn.finish(&call, Outcome { failed: true, text }, None).await;
    }
    let Some(tool) = tool else {
        let path = call.input["path"].as_str().unwrap_or_default();
        let (failed, text) = match read_file(&turn.agent.settings.home, path).await {
            Ok(text) => (false, text),
            Err(error) => (true, format!("{path} can't be read: {error}")),
        };
        return turn.finish(&call, Outcome { failed, text }, None).await;
    };
    if tool.server == OWN_SERVER || turn.permitted(&call).await? {
        turn.call(&call, tool).await?;
    }
    Ok(())
}

/// Reads a file in one of the folders that the host fills. Other files of the home are nothing for a model.
async fn read_file(home: &Path, path: &str) -> io::Result<String> {
    let given = Url::parse(path).ok().and_then(|url| url.to_file_path().ok()).unwrap_or_else(|| path.into());
    let path = fs::canonicalize(home.join(given)).await?;
    let mut folders = Vec::new();
    for folder in READABLE {
        folders.extend(fs::canonicalize(home.join(folder)).await);
    }
    if !folders.iter().any(|folder| path.starts_with(folder)) {
        return Err(io::Error::other(format!("only files in {} can be read", READABLE.join(" and "))));
    }
    let mut bytes = Vec::new();
    fs::File::open(path).await?.take(TEXT as u64).read_to_end(&mut bytes).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn offers(tools: Vec<Tool>) -> Vec<Offer> {
    let mut offers = vec![Offer {
        name: READ_FILE.to_owned(),
        description: "Reads a text file: a skill, or a received file.".to_owned(),
        schema: json!({
            "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"],
        }),
        tool: None,
    }];
    for tool in tools {
        let name = tool.full_name();
        // Two tools of one name would be refused; the first server wins.
        if offers.len() < LIST && offers.iter().all(|offer| offer.name != name) {
            let (description, schema) = (tool.description.clone(), Value::Object((*tool.schema).clone()));
            offers.push(Offer { name, description, schema, tool: Some(tool) });
        }
    }
    offers
}

/// The model's first instruction.
fn system(skills: &[Skill], problems: &[String]) -> String {
    let mut text = "You are an agent of an organization. People write to you, and read your answers as Markdown. \
        Before a tool is called a person may be asked for permission; if it is denied, don't try to get the same \
        result in another way."
        .to_owned();
    if !skills.is_empty() {
        text.push_str(&format!("\n\nYour skills. Read one with {READ_FILE} before you do what it is about:"));
    }
    for skill in skills {
        text.push_str(&format!("\n- {} ({}): {}", skill.name, skill.path, skill.description));
    }
    for problem in problems {
        text.push_str(&format!("\n\nNot available: {problem}"));
    }
    text
}
