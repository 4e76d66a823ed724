//! Answers with a model: forwards its text, and calls the tools that it requests after asking for permission.
//!
//! [`openai`] and [`anthropic`] translate requests and answers to the providers' APIs.

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
    history::{Entry, Message, Outcome},
    mcp::Tool,
    options::Mode,
    settings::Access,
    skills::{self, Skill},
    turn::{Stop, TokenUsage, Turn},
};

/// The tool that reads skills and received files.
const READ_FILE: &str = "read_file";
/// The folders of the home that `read_file` can access.
const READABLE: [&str; 2] = ["skills", "inbox"];
/// The system prompt's addition in plan mode.
const PLAN_MODE: &str = "\n\nYou are in plan mode: say what you would do, step by step, and do none of it. You \
    can read your skills and the files that you were sent; your other tools are switched off.";
/// Muster's own server asks for permission itself.
const OWN_SERVER: &str = "muster";

struct ModelRequest<'a> {
    model: &'a str,
    system: String,
    entries: Vec<Entry>,
    tools: &'a [ToolOffer],
}

/// A tool in a request.
struct ToolOffer {
    name: String,
    description: String,
    schema: Value,
    /// None for `read_file`.
    tool: Option<Tool>,
}

/// The answer so far.
#[derive(Default)]
struct Answer {
    text: String,
    thought: String,
    /// By index in the answer.
    tool_requests: BTreeMap<u64, ToolRequest>,
    usage: Option<TokenUsage>,
    /// None after a normal end.
    stop: Option<StopReason>,
    /// Whether the answer has ended.
    complete: bool,
}

#[derive(Default)]
struct ToolRequest {
    name: String,
    /// JSON, unchecked.
    input: String,
}

enum Chunk {
    Text(String),
    Thought(String),
}

/// Answers the last entry of the session.
pub async fn answer(turn: &mut Turn, access: &Access) -> Result<(), Stop> {
    let skills = skills::read_skills(&turn.agent.settings.home).await;
    let mode = turn.session.mode();
    let (tools, problems) = match mode {
        Mode::Act => turn.until_cancelled(turn.session.servers.tools()).await?,
        Mode::Plan => (Vec::new(), Vec::new()),
    };
    let offers = offer_tools(tools);
    let mut system = system_prompt(&skills, &problems);
    if mode == Mode::Plan {
        system.push_str(PLAN_MODE);
    }
    // A model may request tools forever.
    for _ in 0..30 {
        let entries = turn.session.with_record(|record| {
            record.entries.iter().cloned().map(|entry| normalize_entry(entry, &record.id)).collect()
        });
        let request = ModelRequest { model: &access.model, system: system.clone(), entries, tools: &offers };
        let mut answer = Answer::default();
        let result = query_model(turn, access, request, &mut answer).await;
        if let Some(usage) = answer.usage {
            *turn.usage.get_or_insert_default() += usage;
            turn.context = Some(usage.input + usage.cache_read + usage.cache_write + usage.output);
        }
        result?;
        if let Some(reason) = answer.stop {
            return Err(Stop::Model(reason));
        }
        if answer.tool_requests.is_empty() {
            return Ok(());
        }
        for request in answer.tool_requests.into_values() {
            use_tool(turn, &offers, request).await?;
        }
    }
    Err(Stop::Model(StopReason::MaxTurnRequests))
}

/// Adapts an entry to the limits of all services. A call must have a name of at most 64 letters, digits, `_` and `-`,
/// but the deterministic agent stores none and models make names up. Some services refuse ids of more than 40
/// characters, so the session's id at the start is removed.
fn normalize_entry(mut entry: Entry, session: &str) -> Entry {
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

/// Queries the model, forwards its answer to the client, and stores it even if the turn is cancelled.
async fn query_model(
    turn: &mut Turn,
    access: &Access,
    request: ModelRequest<'_>,
    answer: &mut Answer,
) -> Result<(), Stop> {
    let (thought, text) = (turn.new_id(), turn.new_id());
    let received = async {
        let mut stream = call::open_stream(&turn.agent.http, access, &request).await?;
        while let Some(event) = call::next_event(&mut stream).await? {
            for chunk in call::apply_event(access.provider, answer, &event)? {
                match chunk {
                    Chunk::Text(chunk) => turn.send_chunk(&text, false, &chunk).await?,
                    Chunk::Thought(chunk) => turn.send_chunk(&thought, true, &chunk).await?,
                }
            }
        }
        if answer.complete {
            Ok(())
        } else {
            Err(call::failure("The model's answer broke off.".to_owned(), None))
        }
    };
    let received = turn.until_cancelled(received).await;
    if !answer.thought.is_empty() {
        turn.record(Entry::Thought(Message { id: thought, text: answer.thought.clone() })).await;
    }
    if !answer.text.is_empty() {
        turn.record(Entry::Agent(Message { id: text, text: answer.text.clone() })).await;
    }
    received?
}

async fn use_tool(turn: &mut Turn, offers: &[ToolOffer], request: ToolRequest) -> Result<(), Stop> {
    let offer = offers.iter().find(|offer| offer.name == request.name);
    let input =
        if request.input.trim().is_empty() { Ok(Map::new()) } else { serde_json::from_str(&request.input) };
    let shown =
        input.as_ref().map_or_else(|_| json!({ "invalid": request.input }), |input| input.clone().into());
    let tool = offer.and_then(|offer| offer.tool.as_ref());
    let title = tool.map_or_else(|| request.name.clone(), |tool| format!("{}: {}", tool.server, tool.name));
    let kind = if tool.is_some() { ToolKind::Other } else { ToolKind::Read };
    let call = turn.announce_call(Some(request.name.clone()), title, kind, shown).await?;
    let error = match (&input, offer) {
        (Err(error), _) => Some(format!("The input is not a JSON object: {error}")),
        (_, None) => Some(format!("Unknown tool: {}.", request.name)),
        _ => None,
    };
    if let Some(text) = error {
        return turn.finish_call(&call, Outcome { failed: true, text }, None).await;
    }
    let Some(tool) = tool else {
        let path = call.input["path"].as_str().unwrap_or_default();
        let (failed, text) = match read_file(&turn.agent.settings.home, path).await {
            Ok(text) => (false, text),
            Err(error) => (true, format!("{path} can't be read: {error}")),
        };
        return turn.finish_call(&call, Outcome { failed, text }, None).await;
    };
    let is_judged = tool.server == OWN_SERVER || turn.agent.is_judged_by_client();
    if is_judged || turn.request_permission(&call).await? {
        turn.call(&call, tool).await?;
    }
    Ok(())
}

/// Reads a file in a readable folder. A model must not see the other files of the home.
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

fn offer_tools(tools: Vec<Tool>) -> Vec<ToolOffer> {
    let mut offers = vec![ToolOffer {
        name: READ_FILE.to_owned(),
        description: "Reads a text file: a skill, or a received file.".to_owned(),
        schema: json!({
            "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"],
        }),
        tool: None,
    }];
    for tool in tools {
        let name = tool.full_name();
        // Services refuse duplicate names; the first server wins.
        if offers.len() < LIST && offers.iter().all(|offer| offer.name != name) {
            let (description, schema) = (tool.description.clone(), Value::Object((*tool.schema).clone()));
            offers.push(ToolOffer { name, description, schema, tool: Some(tool) });
        }
    }
    offers
}

fn system_prompt(skills: &[Skill], problems: &[String]) -> String {
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
