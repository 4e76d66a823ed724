//! A JSON-RPC client over the pipes of a child process. It doesn't use the agent's ACP crate, so that both can't have
//! the same error.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

/// Sufficient for every answer even on a busy machine.
pub const LIMIT: Duration = Duration::from_mins(2);

/// An agent process and its unread messages.
pub struct Agent {
    /// The agent's home.
    pub home: TempDir,
    pub process: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    next: u64,
    /// Unread notifications.
    updates: Vec<Value>,
    /// Unread responses.
    answers: HashMap<u64, Value>,
    /// Unread requests of the agent.
    requests: Vec<Value>,
    /// Invalid lines.
    pub garbage: Vec<String>,
}

/// The result of a prompt.
pub struct Turn {
    pub updates: Vec<Value>,
    /// A result or an error.
    pub answer: Value,
}

impl Turn {
    /// The agent's messages, each joined from its chunks.
    pub fn messages(&self) -> Vec<String> {
        self.texts("agent_message_chunk")
    }

    /// The joined texts of another kind of chunks.
    pub fn texts(&self, kind: &str) -> Vec<String> {
        let mut texts: Vec<(Value, String)> = Vec::new();
        for update in self.updates.iter().filter(|update| update["sessionUpdate"] == kind) {
            let (id, text) = (&update["messageId"], update["content"]["text"].as_str().unwrap());
            assert!(id.is_string(), "a chunk names its message: {update}");
            match texts.last_mut() {
                Some((last, message)) if last == id => message.push_str(text),
                _ => texts.push((id.clone(), text.to_owned())),
            }
        }
        texts.into_iter().map(|(_, text)| text).collect()
    }

    /// The agent's last message.
    pub fn said(&self) -> String {
        self.messages().pop().unwrap_or_default()
    }

    /// The tool calls with id, last status and text.
    pub fn calls(&self) -> Vec<(String, String, String)> {
        let mut calls: Vec<(Value, [String; 3])> = Vec::new();
        for update in &self.updates {
            let text = |name: &str| update[name].as_str().unwrap_or_default().to_owned();
            let content = update["content"][0]["content"]["text"].as_str().unwrap_or_default().to_owned();
            if update["sessionUpdate"] == "tool_call" {
                // Default values are omitted.
                let status = update["status"].as_str().unwrap_or("pending").to_owned();
                calls.push((update["toolCallId"].clone(), [text("title"), status, content]));
            } else if update["sessionUpdate"] == "tool_call_update" {
                let call =
                    calls.iter_mut().find(|(id, _)| *id == update["toolCallId"]).expect("it was announced");
                (call.1[1], call.1[2]) = (text("status"), content);
            }
        }
        calls.into_iter().map(|(_, [title, status, content])| (title, status, content)).collect()
    }

    /// The stop reason.
    #[track_caller]
    pub fn reason(&self) -> &str {
        self.answer["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("no end: {}", self.answer))
    }
}

impl Agent {
    /// Starts an agent in a new home, and initializes it.
    pub async fn start() -> Self {
        Self::start_with(&[], json!({})).await
    }

    /// Like [`Agent::start`], with environment variables and client capabilities.
    pub async fn start_with(environment: &[(&str, &str)], capabilities: Value) -> Self {
        let mut agent = Self::spawn(tempfile::tempdir().unwrap(), environment);
        agent.initialize(capabilities).await;
        agent
    }

    /// Starts an agent without initializing it.
    pub fn spawn(home: TempDir, environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_muster-agent"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", home.path());
        command.envs(environment.iter().copied()).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().unwrap()).lines();
        let (updates, requests, garbage) = (Vec::new(), Vec::new(), Vec::new());
        Self { home, process, input, output, next: 0, updates, answers: HashMap::new(), requests, garbage }
    }

    /// Kills the agent, and starts it again in the same home.
    pub async fn restarted(mut self) -> Self {
        self.process.kill().await.unwrap();
        let mut agent = Self::spawn(self.home, &[]);
        agent.initialize(json!({})).await;
        agent
    }

    /// Initializes the agent with client capabilities.
    pub async fn initialize(&mut self, capabilities: Value) -> Value {
        let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        self.call("initialize", params).await
    }

    pub async fn write(&mut self, line: &str) {
        let input = self.input.as_mut().expect("its input is open");
        input.write_all(line.as_bytes()).await.unwrap();
        input.write_all(b"\n").await.unwrap();
    }

    /// Sends a request, and returns its id.
    pub async fn request(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let message = json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        self.write(&message.to_string()).await;
        self.next
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()).await;
    }

    /// Reads a line. None at the end.
    async fn read(&mut self) -> Option<()> {
        let line = timeout(LIMIT, self.output.next_line()).await.expect("the agent says something in time");
        let line = line.unwrap_or_else(|error| Some(error.to_string()))?;
        let message = serde_json::from_str::<Value>(&line).ok().filter(|message| message["jsonrpc"] == "2.0");
        match message {
            None => self.garbage.push(line),
            Some(message) if message["method"].is_string() && message.get("id").is_some() => {
                self.requests.push(message);
            }
            Some(message) if message["method"].is_string() => self.updates.push(message["params"].clone()),
            Some(message) => {
                // The response to an invalid message has no id.
                self.answers.insert(message["id"].as_u64().unwrap_or_default(), message);
            }
        }
        Some(())
    }

    /// Waits for the response to a request.
    pub async fn answer(&mut self, id: u64) -> Value {
        while !self.answers.contains_key(&id) {
            self.read().await.expect("an answer before its end");
        }
        self.answers.remove(&id).unwrap()
    }

    /// Sends a request, and returns its result.
    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        let mut answer = self.answer(id).await;
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    /// Sends a request, and returns the error's code and message.
    pub async fn refused(&mut self, method: &str, params: Value) -> (i64, String) {
        let id = self.request(method, params).await;
        refusal(&self.answer(id).await)
    }

    pub async fn asked(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self.requests.iter().position(|request| request["method"] == method) {
                return self.requests.remove(at);
            }
            self.read().await.expect("a request before its end");
        }
    }

    pub async fn reply(&mut self, request: &Value, result: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string()).await;
    }

    /// Waits for an update with this text.
    pub async fn hears(&mut self, text: &str) {
        while !self.updates.iter().any(|update| update.to_string().contains(text)) {
            self.read().await.expect("the text before its end");
        }
    }

    /// The updates of a session so far.
    pub fn updates(&mut self, session: &str) -> Vec<Value> {
        let (here, others) = self.updates.drain(..).partition(|update| update["sessionId"] == session);
        self.updates = others;
        here.into_iter().map(|mut update: Value| update["update"].take()).collect()
    }

    /// Opens a session with these MCP servers.
    pub async fn session_with(&mut self, servers: Value) -> String {
        let new = self.call("session/new", json!({ "cwd": "/", "mcpServers": servers })).await;
        new["sessionId"].as_str().unwrap().to_owned()
    }

    /// Opens a session.
    pub async fn session(&mut self) -> String {
        self.session_with(json!([])).await
    }

    /// Sends a prompt without waiting.
    pub async fn say(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.request("session/prompt", json!({ "sessionId": session, "prompt": prompt })).await
    }

    /// Waits for the response to a prompt.
    pub async fn end(&mut self, session: &str, id: u64) -> Turn {
        let answer = self.answer(id).await;
        Turn { updates: self.updates(session), answer }
    }

    /// Sends a prompt, and waits for the response.
    pub async fn prompt(&mut self, session: &str, text: &str) -> Turn {
        let id = self.say(session, text).await;
        self.end(session, id).await
    }

    pub async fn cancel(&mut self, session: &str) {
        self.notify("session/cancel", json!({ "sessionId": session })).await;
    }

    /// Closes the agent's input.
    pub fn hang_up(&mut self) {
        self.input = None;
    }

    /// Waits for the exit code, or the signal as a negative number.
    pub async fn ended(&mut self) -> i32 {
        while self.read().await.is_some() {}
        let status = timeout(LIMIT, self.process.wait()).await.expect("it ends").unwrap();
        status.code().unwrap_or_else(|| -std::os::unix::process::ExitStatusExt::signal(&status).unwrap())
    }

    /// Installs a skill like a host.
    pub fn skill(&self, name: &str, text: &str) {
        let folder = self.home.path().join("skills").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("SKILL.md"), text).unwrap();
    }
}

/// The code and message of an error.
#[track_caller]
pub fn refusal(answer: &Value) -> (i64, String) {
    let error = answer.get("error").unwrap_or_else(|| panic!("it was not refused: {answer}"));
    let said = format!("{} {}", error["message"].as_str().unwrap(), error["data"]);
    (error["code"].as_i64().unwrap(), said)
}

/// A path in `tests/peers`.
pub fn peers(path: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers");
    assert!(folder.join("node_modules").is_dir(), "the peers are not installed: npm ci --prefix tests/peers");
    folder.join(path).canonicalize().unwrap()
}
