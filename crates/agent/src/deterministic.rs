//! Answers without a model: executes the words in the prompt.
//!
//! A token is four bytes of text, rounded up. Input is the prompt and the answers of tools and people; output is the
//! agent's messages, thoughts and tool inputs; the context is the session's history.

use std::{io, sync::atomic::Ordering::Relaxed, time::Duration};

use agent_client_protocol::{Error, v1::schema::ToolKind};
use serde_json::{Map, Value, json};
use tokio::{fs, io::AsyncWriteExt};

use crate::{
    history::{Entry, Message, Outcome},
    mcp::Tool,
    options::Mode,
    output::report_error,
    skills,
    turn::{PersonAnswer, Stop, TokenUsage, Turn},
    words::{self, Word},
};

pub async fn answer(turn: &mut Turn, prompt: &str) -> Result<(), Stop> {
    let mut result = Ok(());
    let mode = turn.session.mode();
    for word in words::parse(prompt) {
        result = match describe_plan(&word).filter(|_| mode == Mode::Plan) {
            Some(plan) => turn.send_message(plan).await,
            None => perform(turn, word).await,
        };
        if result.is_err() {
            break;
        }
    }
    count_usage(turn);
    result
}

/// Sets the turn's usage and context by the rule.
pub fn count_usage(turn: &mut Turn) {
    let (input, output) = (
        count_tokens(turn.text_bytes.read.load(Relaxed)),
        count_tokens(turn.text_bytes.written.load(Relaxed)),
    );
    turn.usage = Some(TokenUsage { input, output, ..TokenUsage::default() });
    turn.context = Some(turn.session.with_record(|record| count_tokens(record.bytes())));
}

fn count_tokens(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

/// The plan for a word that does more than send a message.
fn describe_plan(word: &Word) -> Option<String> {
    Some(match word {
        Word::Do { title, .. } => format!("I would do this: {title}"),
        Word::Call { tool, .. } => format!("I would call {tool}."),
        Word::File { name, .. } => format!("I would send the file {name}."),
        Word::Fill(mib) => format!("I would write {mib} MiB into the file fill."),
        _ => return None,
    })
}

async fn perform(turn: &mut Turn, word: Word) -> Result<(), Stop> {
    match word {
        Word::Text(text) => echo(turn, &text).await,
        Word::Think(text) => {
            let thought = Message { id: turn.new_id(), text };
            turn.send_chunk(&thought.id, true, &thought.text).await?;
            turn.record(Entry::Thought(thought)).await;
            Ok(())
        }
        Word::Slowly { pieces, pause } => {
            let numbers = (1..=pieces).map(|number| format!("{number} "));
            turn.send_pieces(numbers, Duration::from_millis(pause)).await
        }
        Word::Ask { question, options } => ask_person(turn, question, options).await,
        Word::Do { kind, title, input } => perform_action(turn, kind, title, input).await,
        Word::Call { tool, input } => call_tool(turn, &tool, input).await.map(drop),
        Word::Tools => list_tools(turn).await,
        Word::File { name, text } => {
            call_tool(turn, "send_file", to_object(json!({ "filename": name, "content": text })))
                .await
                .map(drop)
        }
        Word::Flood(waves) => send_flood(turn, waves).await,
        Word::Hang { hard: true } => std::future::pending().await,
        Word::Hang { hard: false } => turn.until_cancelled(std::future::pending()).await,
        Word::Garbage => {
            turn.agent
                .wire
                .write_bytes(b"this is not JSON\n{\"jsonrpc\": \"2.0\", \n[1, 2]\n\xff\xfe\n\n".to_vec())
                .await?;
            turn.send_message("I have printed five lines that are not messages.").await
        }
        Word::LongLine(bytes) => {
            turn.agent.wire.write_line("x".repeat(usize::try_from(bytes).unwrap_or(usize::MAX))).await?;
            turn.send_message(format!("I have printed a line of {bytes} bytes.")).await
        }
        Word::Stderr(text) => {
            report_error(text);
            turn.send_message("I have written to standard error.").await
        }
        Word::Exit(code) => {
            turn.agent.wire.flush().await;
            std::process::exit(i32::from(code))
        }
        Word::Crash => {
            turn.agent.wire.flush().await;
            std::process::abort()
        }
        Word::Fill(mib) => match turn.until_cancelled(fill_disk(turn, mib)).await? {
            Ok(()) => turn.send_message(format!("I have written {mib} MiB into the file fill.")).await,
            Err(error) => turn.send_message(format!("I could not write {mib} MiB: {error}.")).await,
        },
        Word::Error => Err(Stop::Failed(Error::internal_error().data("the prompt told the agent to fail"))),
        Word::Auth => Err(Stop::Failed(Error::auth_required().data("the prompt told the agent to say so"))),
        Word::Env(name) => {
            let text = match std::env::var_os(&name) {
                Some(value) => format!("{name} is set: {} bytes.", value.len()),
                None => format!("{name} is not set."),
            };
            turn.send_message(text).await
        }
        Word::Remember(text) => {
            let notes = turn.session.with_record(|record| {
                record.add_note(text);
                record.notes.len()
            });
            turn.send_message(format!("I remember {notes}.")).await
        }
        Word::Recall => {
            let notes = turn.session.with_record(|record| record.notes.join("; "));
            let notes = if notes.is_empty() { "nothing".to_owned() } else { notes };
            turn.send_message(format!("This is turn {}. I remember: {notes}.", turn.number)).await
        }
    }
}

async fn echo(turn: &mut Turn, text: &str) -> Result<(), Stop> {
    let skills = skills::read_skills(&turn.agent.settings.home).await;
    let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    turn.send_message(format!(
        "You said: {text}\n\nThis is turn {} of this session. Skills: {names}.",
        turn.number
    ))
    .await
}

async fn ask_person(turn: &mut Turn, question: String, options: Vec<String>) -> Result<(), Stop> {
    match turn.ask_person(&question, &options).await? {
        Some(PersonAnswer::Text(text)) => return turn.send_message(format!("The answer is: {text}")).await,
        Some(PersonAnswer::Declined) => return turn.send_message("There was no answer.").await,
        None => {}
    }
    let input = to_object(json!({ "question": question, "options": options }));
    match find_tool(turn, "ask_person").await? {
        Ok(tool) => {
            let outcome = use_tool(turn, &tool, input).await?;
            turn.send_message(format!("The answer is: {}", outcome.text)).await
        }
        Err(_) => turn.send_message("I can't ask: neither the client nor a tool offers it.").await,
    }
}

async fn perform_action(turn: &mut Turn, kind: ToolKind, title: String, input: Value) -> Result<(), Stop> {
    let call = turn.announce_call(None, title, kind, input).await?;
    if !turn.request_permission(&call).await? {
        return turn.send_message(format!("I was not allowed to: {}", call.title)).await;
    }
    turn.report_start(&call).await?;
    let text = "Done. (The reference agent only pretends.)".to_owned();
    turn.finish_call(&call, Outcome { failed: false, text }, None).await?;
    turn.send_message(format!("I was allowed to: {}", call.title)).await
}

async fn call_tool(turn: &mut Turn, name: &str, input: Map<String, Value>) -> Result<(), Stop> {
    match find_tool(turn, name).await? {
        Ok(tool) => {
            let outcome = use_tool(turn, &tool, input).await?;
            let verb = if outcome.failed { "failed" } else { "answered" };
            turn.send_message(format!("{name} {verb}: {}", outcome.text)).await
        }
        Err(problem) => turn.send_message(problem).await,
    }
}

/// Finds a tool by its short or full name. The inner error explains why there is none.
async fn find_tool(turn: &Turn, name: &str) -> Result<Result<Tool, String>, Stop> {
    let (tools, problems) = turn.until_cancelled(turn.session.servers.tools()).await?;
    let found = tools.into_iter().find(|tool| tool.name == name || tool.full_name() == name);
    Ok(found.ok_or_else(|| format!("Unknown tool: {name}. {}", problems.join(". ")).trim().to_owned()))
}

/// Calls a tool without asking for permission.
pub async fn use_tool(turn: &mut Turn, tool: &Tool, input: Map<String, Value>) -> Result<Outcome, Stop> {
    let title = format!("{}: {}", tool.server, tool.name);
    let call =
        turn.announce_call(Some(tool.full_name()), title, ToolKind::Other, Value::Object(input)).await?;
    turn.call(&call, tool).await
}

async fn list_tools(turn: &mut Turn) -> Result<(), Stop> {
    let (tools, mut lines) = turn.until_cancelled(turn.session.servers.tools()).await?;
    lines.extend(tools.iter().map(|tool| format!("- {} ({}): {}", tool.name, tool.server, tool.description)));
    if lines.is_empty() {
        lines.push("There are no tools.".to_owned());
    }
    turn.send_message(lines.join("\n")).await
}

async fn send_flood(turn: &mut Turn, waves: u64) -> Result<(), Stop> {
    let id = turn.new_id();
    for number in 0..waves {
        let piece = format!("{number:>width$}\n", width = 16 * 1024 - 1);
        turn.until_cancelled(turn.send_chunk(&id, false, &piece)).await??;
    }
    turn.record(Entry::Agent(Message { id, text: format!("[a flood of {waves} updates]") })).await;
    Ok(())
}

async fn fill_disk(turn: &Turn, mib: u64) -> io::Result<()> {
    let mut file = fs::File::create(turn.agent.settings.home.join("fill")).await?;
    let block = vec![b'.'; 1024 * 1024];
    for _ in 0..mib {
        file.write_all(&block).await?;
    }
    file.flush().await?;
    file.sync_data().await
}

pub fn to_object(value: Value) -> Map<String, Value> {
    if let Value::Object(map) = value { map } else { Map::new() }
}
