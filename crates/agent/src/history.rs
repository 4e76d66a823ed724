//! What of a session is kept in its file, `<home>/.muster-agent/sessions/<id>.json`, so that an agent that was killed
//! resumes it.
//!
//! A file is written whole under another name, and then renamed: it is there as it was or as it is.

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

/// A session that goes on without end, in bytes of text. What is older is forgotten, turn by turn.
const MOST_BYTES: usize = 1024 * 1024;

/// A session as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Its name.
    pub id: String,
    /// The folder it works in.
    pub cwd: PathBuf,
    /// How many turns it has had, the running one included.
    #[serde(default)]
    pub turns: u64,
    /// What it was told to remember.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What was said and done, oldest first.
    #[serde(default)]
    pub entries: VecDeque<Entry>,
}

/// Something that was said or done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    /// The beginning of a turn: what the person said.
    User(Said),
    /// What the agent said.
    Agent(Said),
    /// What it thought.
    Thought(Said),
    /// A tool that it called.
    Tool(Call),
}

/// A text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Said {
    /// The message's id.
    pub id: String,
    /// The text.
    pub text: String,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The call's id.
    pub id: String,
    /// The tool's name, if it has one. Where a model made it up, it may be any text.
    pub name: Option<String>,
    /// What people read.
    pub title: String,
    /// The kind of tool, in the protocol's words.
    pub tool: agent_client_protocol::v1::schema::ToolKind,
    /// The input.
    pub input: Value,
    /// What came of it: none as long as it runs, and forever if the agent was killed meanwhile.
    pub result: Option<Outcome>,
}

/// What came of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Whether it failed.
    pub failed: bool,
    /// The output.
    pub text: String,
}

impl Entry {
    /// The same, with the beginnings of what is too long.
    fn shortened(mut self) -> Self {
        match &mut self {
            Self::User(said) | Self::Agent(said) | Self::Thought(said) => cut(&mut said.text, TEXT),
            Self::Tool(call) => {
                let bytes = call.input.to_string().len();
                if bytes > TEXT {
                    call.input = json!({ "forgotten": format!("{bytes} bytes") });
                }
            }
        }
        self
    }

    /// Its size in bytes of text.
    pub fn bytes(&self) -> usize {
        match self {
            Self::User(said) | Self::Agent(said) | Self::Thought(said) => said.text.len(),
            Self::Tool(call) => {
                call.input.to_string().len() + call.result.as_ref().map_or(0, |outcome| outcome.text.len())
            }
        }
    }
}

/// The beginning of a text that is too long.
pub fn cut(text: &mut String, longest: usize) {
    if text.len() > longest {
        text.truncate(text.floor_char_boundary(longest));
        text.push_str(" […]");
    }
}

impl Record {
    /// A new session.
    pub fn new(cwd: PathBuf) -> Self {
        let id = Uuid::new_v4().to_string();
        Self { id, cwd, turns: 0, notes: Vec::new(), entries: VecDeque::new() }
    }

    /// Adds an entry, and forgets the oldest turns if there is too much.
    pub fn push(&mut self, entry: Entry) {
        self.entries.push_back(entry.shortened());
        let mut bytes = self.bytes();
        while bytes > MOST_BYTES && self.entries.len() > 1 {
            bytes -= self.entries.pop_front().map_or(0, |entry| entry.bytes());
            // What is left begins with what a person said.
            while self.entries.len() > 1 && !matches!(self.entries[0], Entry::User(_)) {
                bytes -= self.entries.pop_front().map_or(0, |entry| entry.bytes());
            }
        }
    }

    /// Notes what came of a call.
    pub fn finish(&mut self, id: &str, failed: bool, mut text: String) {
        cut(&mut text, TEXT);
        for entry in self.entries.iter_mut().rev() {
            if let Entry::Tool(call) = entry
                && call.id == id
            {
                call.result = Some(Outcome { failed, text });
                return;
            }
        }
    }

    /// Adds a note, and forgets the oldest if there are too many.
    pub fn note(&mut self, mut text: String) {
        cut(&mut text, 1024);
        self.notes.push(text);
        if self.notes.len() > LIST {
            self.notes.remove(0);
        }
    }

    /// The size of what is remembered, in bytes of text.
    pub fn bytes(&self) -> usize {
        self.entries.iter().map(Entry::bytes).sum()
    }
}

/// The folder of the sessions' files.
#[derive(Clone)]
pub struct Folder(PathBuf);

impl Folder {
    /// In a home.
    pub fn new(home: &Path) -> Self {
        Self(home.join(".muster-agent/sessions"))
    }

    /// Where a session is. A client's id must not lead anywhere else.
    fn file(&self, id: &str) -> Option<PathBuf> {
        Uuid::try_parse(id).ok().map(|id| self.0.join(format!("{id}.json")))
    }

    /// Stores a session.
    pub async fn store(&self, record: &Record) -> io::Result<()> {
        let Some(path) = self.file(&record.id) else { return Err(io::ErrorKind::InvalidInput.into()) };
        let bytes = serde_json::to_vec(record)?;
        fs::create_dir_all(&self.0).await?;
        let new = path.with_extension("new");
        let mut file = fs::File::create(&new).await?;
        file.write_all(&bytes).await?;
        file.sync_data().await?;
        fs::rename(new, path).await
    }

    /// Reads a session, if it exists.
    pub async fn load(&self, id: &str) -> io::Result<Option<Record>> {
        let Some(path) = self.file(id) else { return Ok(None) };
        let file = match fs::File::open(path).await {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        // A larger file is none of ours.
        file.take(LARGEST as u64).read_to_end(&mut bytes).await?;
        Ok(Some(serde_json::from_slice(&bytes)?))
    }

    /// The latest sessions, the latest first.
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
            // A file that can't be read must not hide the others.
            records.extend(self.load(&id).await.ok().flatten());
        }
        Ok(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Said {
        Said { id: "m".to_owned(), text: text.to_owned() }
    }

    #[test]
    fn whole_turns_are_forgotten_from_the_beginning() {
        let mut record = Record::new("/".into());
        let long = "x".repeat(2 * TEXT);
        for turn in 0..10 {
            record.push(Entry::User(said(&format!("turn {turn}"))));
            record.push(Entry::Agent(said(&long)));
        }
        assert!(record.bytes() <= MOST_BYTES);
        assert_eq!(record.entries[0], Entry::User(said("turn 3")));
        assert_eq!(record.entries.len(), 14);
    }

    #[test]
    fn an_input_that_is_too_long_is_forgotten_and_a_result_is_cut() {
        let mut record = Record::new("/".into());
        let long = "é".repeat(TEXT);
        let tool = agent_client_protocol::v1::schema::ToolKind::Other;
        let (id, title, input) = ("c".to_owned(), String::new(), json!({ "text": long }));
        record.push(Entry::Tool(Call { id, name: None, title, tool, input, result: None }));
        record.finish("c", false, long);
        assert!(record.bytes() < TEXT + 100, "{}", record.bytes());
    }

    #[tokio::test]
    async fn an_id_that_is_a_path_names_no_session() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(home.path());
        std::fs::write(home.path().join("x.json"), "{}").unwrap();
        assert!(folder.load("../../x").await.unwrap().is_none());
        let record = Record::new("/".into());
        folder.store(&record).await.unwrap();
        assert_eq!(folder.load(&record.id).await.unwrap().unwrap().id, record.id);
        assert_eq!(folder.list().await.unwrap().len(), 1);
    }
}
