//! Answers without a model: does what the words in the prompt say.
//!
//! Tokens are counted by one rule: a token is four bytes of text, rounded up. Read is the prompt and what tools and people
//! answer, written is everything that the agent says, thinks and gives to tools; the context holds what the session
//! remembers.

use std::{io, sync::atomic::Ordering::Relaxed, time::Duration};

use agent_client_protocol::{Error, v1::schema::ToolKind};
use serde_json::{Map, Value, json};
use tokio::{fs, io::AsyncWriteExt, time::sleep};

use crate::{
    history::{Entry, Outcome, Said},
    mcp::Tool,
    options::Mode,
    skills,
    turn::{Answered, Spent, Stop, Turn},
    words::{self, Word},
};

/// Answers a prompt.
pub async fn answer(turn: &mut Turn, prompt: &str) -> Result<(), Stop> {
    let mut result = Ok(());
    let mode = turn.session.mode();
    for word in words::parse(prompt) {
        result = match planned(&word).filter(|_| mode == Mode::Plan) {
            Some(plan) => turn.say(plan).await,
            None => perform(turn, word).await,
        };
        if result.is_err() {
            break;
        }
    }
    let (input, output) = (tokens(turn.text.read.load(Relaxed)), tokens(turn.text.written.load(Relaxed)));
    turn.spent = Some(Spent { input, output, ..Spent::default() });
    turn.context = Some(turn.session.with(|record| tokens(record.bytes())));
    result
}

/// How many tokens a text of so many bytes is.
fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

/// What the agent would do, if it is more than saying something.
fn planned(word: &Word) -> Option<String> {
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
            let said = Said { id: turn.new_id(), text };
            turn.piece(&said.id, true, &said.text).await?;
            turn.keep(Entry::Thought(said)).await;
            Ok(())
        }
        Word::Slowly { pieces, pause } => slowly(turn, pieces, pause).await,
        Word::Ask { question, options } => ask(turn, question, options).await,
        Word::Do { kind, title, input } => act(turn, kind, title, input).await,
        Word::Call { tool, input } => call(turn, &tool, input).await.map(drop),
        Word::Tools => list_tools(turn).await,
        Word::File { name, text } => {
            call(turn, "send_file", object(json!({ "filename": name, "content": text }))).await.map(drop)
        }
        Word::Flood(waves) => flood(turn, waves).await,
        Word::Hang { hard: true } => std::future::pending().await,
        Word::Hang { hard: false } => turn.unless_cancelled(std::future::pending()).await,
        Word::Garbage => {
            turn.agent
                .wire
                .raw(b"this is no JSON\n{\"jsonrpc\": \"2.0\", \n[1, 2]\n\xff\xfe\n\n".to_vec())
                .await?;
            turn.say("I have printed five lines that are not messages.").await
        }
        Word::LongLine(bytes) => {
            turn.agent.wire.line("x".repeat(usize::try_from(bytes).unwrap_or(usize::MAX))).await?;
            turn.say(format!("I have printed a line of {bytes} bytes.")).await
        }
        Word::Exit(code) => {
            turn.agent.wire.flush().await;
            std::process::exit(i32::from(code))
        }
        Word::Crash => {
            turn.agent.wire.flush().await;
            std::process::abort()
        }
        Word::Fill(mib) => match turn.unless_cancelled(fill(turn, mib)).await? {
            Ok(()) => turn.say(format!("I have written {mib} MiB into the file fill.")).await,
            Err(error) => turn.say(format!("I could not write {mib} MiB: {error}.")).await,
        },
        Word::Error => Err(Stop::Failed(Error::internal_error().data("the prompt told the agent to fail"))),
        Word::Auth => Err(Stop::Failed(Error::auth_required().data("the prompt told the agent to say so"))),
        Word::Env(name) => {
            let said = match std::env::var_os(&name) {
                Some(value) => format!("{name} is set: {} bytes.", value.len()),
                None => format!("{name} is not set."),
            };
            turn.say(said).await
        }
        Word::Remember(text) => {
            let notes = turn.session.with(|record| {
                record.note(text);
                record.notes.len()
            });
            turn.say(format!("I remember {notes}.")).await
        }
        Word::Recall => {
            let notes = turn.session.with(|record| record.notes.join("; "));
            let notes = if notes.is_empty() { "nothing".to_owned() } else { notes };
            turn.say(format!("This is turn {}. I remember: {notes}.", turn.number)).await
        }
    }
}

async fn echo(turn: &mut Turn, text: &str) -> Result<(), Stop> {
    let skills = skills::read(&turn.agent.settings.home).await;
    let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    turn.say(format!("You said: {text}\n\nThis is turn {} of this session. Skills: {names}.", turn.number))
        .await
}

async fn slowly(turn: &mut Turn, pieces: u64, pause: u64) -> Result<(), Stop> {
    let id = turn.new_id();
    let mut text = String::new();
    let mut said = Ok(());
    for number in 1..=pieces {
        if number > 1 {
            said = turn.unless_cancelled(sleep(Duration::from_millis(pause))).await;
        }
        if said.is_err() {
            break;
        }
        let piece = format!("{number} ");
        turn.piece(&id, false, &piece).await?;
        text.push_str(&piece);
    }
    turn.keep(Entry::Agent(Said { id, text })).await;
    said
}

async fn ask(turn: &mut Turn, question: String, options: Vec<String>) -> Result<(), Stop> {
    match turn.ask(&question, &options).await? {
        Some(Answered::Text(text)) => return turn.say(format!("The answer is: {text}")).await,
        Some(Answered::Declined) => return turn.say("There was no answer.").await,
        None => {}
    }
    let input = object(json!({ "question": question, "options": options }));
    match find(turn, "ask_person").await? {
        Ok(tool) => {
            let outcome = use_tool(turn, &tool, input).await?;
            turn.say(format!("The answer is: {}", outcome.text)).await
        }
        Err(_) => turn.say("I can't ask: neither the client nor a tool offers it.").await,
    }
}

async fn act(turn: &mut Turn, kind: ToolKind, title: String, input: Value) -> Result<(), Stop> {
    let call = turn.announce(None, title, kind, input).await?;
    if !turn.permitted(&call).await? {
        return turn.say(format!("I was not allowed to: {}", call.title)).await;
    }
    turn.started(&call).await?;
    let text = "Done. (The reference agent only pretends.)".to_owned();
    turn.finish(&call, Outcome { failed: false, text }, None).await?;
    turn.say(format!("I was allowed to: {}", call.title)).await
}

async fn call(turn: &mut Turn, name: &str, input: Map<String, Value>) -> Result<(), Stop> {
    match find(turn, name).await? {
        Ok(tool) => {
            let outcome = use_tool(turn, &tool, input).await?;
            let verb = if outcome.failed { "failed" } else { "answered" };
            turn.say(format!("{name} {verb}: {}", outcome.text)).await
        }
        Err(problem) => turn.say(problem).await,
    }
}

/// A tool by its name, or by its name among all tools. If there is none, why.
async fn find(turn: &Turn, name: &str) -> Result<Result<Tool, String>, Stop> {
    let (tools, problems) = turn.unless_cancelled(turn.session.servers.tools()).await?;
    let found = tools.into_iter().find(|tool| tool.name == name || tool.full_name() == name);
    Ok(found.ok_or_else(|| format!("Unknown tool: {name}. {}", problems.join(". ")).trim().to_owned()))
}

async fn use_tool(turn: &mut Turn, tool: &Tool, input: Map<String, Value>) -> Result<Outcome, Stop> {
    let title = format!("{}: {}", tool.server, tool.name);
    let call = turn.announce(Some(tool.full_name()), title, ToolKind::Other, Value::Object(input)).await?;
    turn.call(&call, tool).await
}

async fn list_tools(turn: &mut Turn) -> Result<(), Stop> {
    let (tools, mut lines) = turn.unless_cancelled(turn.session.servers.tools()).await?;
    lines.extend(tools.iter().map(|tool| format!("- {} ({}): {}", tool.name, tool.server, tool.description)));
    if lines.is_empty() {
        lines.push("There are no tools.".to_owned());
    }
    turn.say(lines.join("\n")).await
}

async fn flood(turn: &mut Turn, waves: u64) -> Result<(), Stop> {
    let id = turn.new_id();
    for number in 0..waves {
        let piece = format!("{number:>width$}\n", width = 16 * 1024 - 1);
        turn.unless_cancelled(turn.piece(&id, false, &piece)).await??;
    }
    turn.keep(Entry::Agent(Said { id, text: format!("[a flood of {waves} updates]") })).await;
    Ok(())
}

async fn fill(turn: &Turn, mib: u64) -> io::Result<()> {
    let mut file = fs::File::create(turn.agent.settings.home.join("fill")).await?;
    let block = vec![b'.'; 1024 * 1024];
    for _ in 0..mib {
        file.write_all(&block).await?;
    }
    file.flush().await?;
    file.sync_data().await
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(map) = value { map } else { Map::new() }
}
