//! The stored part of a session, `<home>/.muster-agent/sessions/<id>.json`: a killed agent resumes from it.
//!
//! A file is written under another name and then renamed, so that it is never incomplete.

use std::{
    collections::VecDeque,
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{fs, io::AsyncReadExt, io::AsyncWriteExt};
use uuid::Uuid;

use crate::bounds::{LARGEST, LIST, TEXT};

/// Bytes of text per session. The oldest turns beyond that are dropped.
const MAX_BYTES: usize = 1024 * 1024;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    pub id: String,
    pub cwd: PathBuf,
    /// Including the running one.
    #[serde(default)]
    pub turns: u64,
    /// From the word `remember`.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Oldest first.
    #[serde(default)]
    pub entries: VecDeque<Entry>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    /// The person's message, which begins a turn.
    User(Message),
    Agent(Message),
    Thought(Message),
    Tool(Call),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub id: String,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    pub id: String,
    /// Any text if a model made it up.
    pub name: Option<String>,
    /// Shown to people.
    pub title: String,
    pub tool: agent_client_protocol::v1::schema::ToolKind,
    pub input: Value,
    /// None while the call runs, and if the agent was killed during it.
    pub result: Option<Outcome>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub failed: bool,
    pub text: String,
}

impl Entry {
    fn truncated(mut self) -> Self {
        match &mut self {
            Self::User(message) | Self::Agent(message) | Self::Thought(message) => {
                truncate(&mut message.text, TEXT);
            }
            Self::Tool(call) => {
                let bytes = call.input.to_string().len();
                if bytes > TEXT {
                    call.input = json!({ "forgotten": format!("{bytes} bytes") });
                }
            }
        }
        self
    }

    /// The size in bytes of text.
    pub fn bytes(&self) -> usize {
        match self {
            Self::User(message) | Self::Agent(message) | Self::Thought(message) => message.text.len(),
            Self::Tool(call) => {
                call.input.to_string().len() + call.result.as_ref().map_or(0, |outcome| outcome.text.len())
            }
        }
    }
}

pub fn truncate(text: &mut String, max: usize) {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max));
        text.push_str(" […]");
    }
}

impl Record {
    pub fn new(cwd: PathBuf) -> Self {
        let id = Uuid::new_v4().to_string();
        Self { id, cwd, turns: 0, notes: Vec::new(), entries: VecDeque::new() }
    }

    /// Adds an entry, and drops the oldest turns if the session is too large.
    pub fn push(&mut self, entry: Entry) {
        self.entries.push_back(entry.truncated());
        let mut bytes = self.bytes();
        while bytes > MAX_BYTES && self.entries.len() > 1 {
            bytes -= self.entries.pop_front().map_or(0, |entry| entry.bytes());
            // The history must begin with a person's message.
            while self.entries.len() > 1 && !matches!(self.entries[0], Entry::User(_)) {
                bytes -= self.entries.pop_front().map_or(0, |entry| entry.bytes());
            }
        }
    }

    pub fn finish_call(&mut self, id: &str, failed: bool, mut text: String) {
        truncate(&mut text, TEXT);
        for entry in self.entries.iter_mut().rev() {
            if let Entry::Tool(call) = entry
                && call.id == id
            {
                call.result = Some(Outcome { failed, text });
                return;
            }
        }
    }

    /// Adds a note, and drops the oldest if there are too many.
    pub fn add_note(&mut self, mut text: String) {
        truncate(&mut text, 1024);
        self.notes.push(text);
        if self.notes.len() > LIST {
            self.notes.remove(0);
        }
    }

    /// The size in bytes of text.
    pub fn bytes(&self) -> usize {
        self.entries.iter().map(Entry::bytes).sum()
    }
}

/// Sessions in files.
#[derive(Clone)]
pub struct SessionStore(PathBuf);

impl SessionStore {
    pub fn new(home: &Path) -> Self {
        Self(home.join(".muster-agent/sessions"))
    }

    /// The file of a session. The id comes from the client, so it must be a UUID and not a path.
    fn path(&self, id: &str) -> Option<PathBuf> {
        Uuid::try_parse(id).ok().map(|id| self.0.join(format!("{id}.json")))
    }

    pub async fn save(&self, record: &Record) -> io::Result<()> {
        let Some(path) = self.path(&record.id) else { return Err(io::ErrorKind::InvalidInput.into()) };
        let bytes = serde_json::to_vec(record)?;
        fs::create_dir_all(&self.0).await?;
        let new = path.with_extension("new");
        let mut file = fs::File::create(&new).await?;
        file.write_all(&bytes).await?;
        file.sync_data().await?;
        fs::rename(new, path).await
    }

    pub async fn load(&self, id: &str) -> io::Result<Option<Record>> {
        let Some(path) = self.path(id) else { return Ok(None) };
        let file = match fs::File::open(path).await {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        // The agent writes no larger file.
        file.take(LARGEST as u64).read_to_end(&mut bytes).await?;
        Ok(Some(serde_json::from_slice(&bytes)?))
    }

    /// The latest sessions first.
    pub async fn list(&self) -> io::Result<Vec<Record>> {
        let mut files = match fs::read_dir(&self.0).await {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut found = Vec::new();
        while let Some(file) = files.next_entry().await? {
            let name = file.file_name().into_string().unwrap_or_default();
            if let Some(id) = name.strip_suffix(".json") {
                found.push((file.metadata().await?.modified()?, id.to_owned()));
            }
        }
        found.sort_by(|a, b| b.cmp(a));
        let mut records = Vec::new();
        for (_, id) in found.into_iter().take(LIST) {
            // An unreadable file must not hide the others.
            records.extend(self.load(&id).await.ok().flatten());
        }
        Ok(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Message {
        Message { id: "m".to_owned(), text: text.to_owned() }
    }

    #[test]
    fn the_oldest_turns_are_dropped_as_a_whole() {
        let mut record = Record::new("/".into());
        let long = "x".repeat(2 * TEXT);
        for turn in 0..10 {
            record.push(Entry::User(message(&format!("turn {turn}"))));
            record.push(Entry::Agent(message(&long)));
        }
        assert!(record.bytes() <= MAX_BYTES);
        assert_eq!(record.entries[0], Entry::User(message("turn 3")));
        assert_eq!(record.entries.len(), 14);
    }

    #[test]
    fn long_tool_inputs_are_dropped_and_results_truncated() {
        let mut record = Record::new("/".into());
        let long = "é".repeat(TEXT);
        let tool = agent_client_protocol::v1::schema::ToolKind::Other;
        let (id, title, input) = ("c".to_owned(), String::new(), json!({ "text": long }));
        record.push(Entry::Tool(Call { id, name: None, title, tool, input, result: None }));
        record.finish_call("c", false, long);
        assert!(record.bytes() < TEXT + 100, "{}", record.bytes());
    }

    #[tokio::test]
    async fn a_path_is_no_session_id() {
        let home = tempfile::tempdir().unwrap();
        let store = SessionStore::new(home.path());
        std::fs::write(home.path().join("x.json"), "{}").unwrap();
        assert!(store.load("../../x").await.unwrap().is_none());
        let record = Record::new("/".into());
        store.save(&record).await.unwrap();
        assert_eq!(store.load(&record.id).await.unwrap().unwrap().id, record.id);
        assert_eq!(store.list().await.unwrap().len(), 1);
    }
}
