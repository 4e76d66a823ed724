//! Profiles: how an agent's program is wired. Each is a file; the control plane sends it with the plan.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a program is wired. In values, `{name}` is a placeholder that the host fills: see [`Profile::PLACES`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    /// Its name in lists.
    pub name: String,
    /// The program and its arguments, inside the container.
    pub command: Vec<String>,
    /// The API with which it calls its model.
    pub interface: Interface,
    /// The environment. A variable with a placeholder that this agent has no value for is omitted.
    pub environment: BTreeMap<String, String>,
    /// Files in its home, written before it starts: path and text. A file with a placeholder that this agent has no
    /// value for is omitted. Placeholders are inside double quotes; values are escaped as in JSON, which TOML and YAML
    /// read alike.
    pub files: BTreeMap<String, String>,
    /// The model, if neither the agent nor its image names one.
    pub model: Option<String>,
    /// Models that it does not support.
    pub refused_models: Vec<String>,
    /// Whether it requires a model: without access to one, and its name, it is not launched.
    pub needs_model: bool,
    /// The HTTP status that makes it stop, instead of retrying, when nothing may be spent on its model.
    pub stop_status: u16,
}

impl Profile {
    /// The placeholders: the address of the model's API as the program's library expects it, the placeholder for the
    /// key, the model, its provider, the home.
    pub const PLACES: [&str; 5] = ["model_url", "placeholder", "model", "provider", "home"];
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            name: String::new(),
            command: Vec::new(),
            interface: Interface::default(),
            environment: BTreeMap::new(),
            files: BTreeMap::new(),
            model: None,
            refused_models: Vec::new(),
            needs_model: false,
            stop_status: 402,
        }
    }
}

/// A model's API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Interface {
    /// OpenAI's chat completions. Addresses end in `/v1` or its equivalent.
    #[default]
    OpenaiChat,
    /// OpenAI's responses. Addresses end in `/v1` or its equivalent.
    OpenaiResponses,
    /// Anthropic's messages. Addresses end before `/v1`.
    Anthropic,
    /// Gemini's generateContent. Addresses end before `/v1beta`.
    Gemini,
}

impl Interface {
    /// The wire name: `OPENAI_CHAT`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenaiChat => "OPENAI_CHAT",
            Self::OpenaiResponses => "OPENAI_RESPONSES",
            Self::Anthropic => "ANTHROPIC",
            Self::Gemini => "GEMINI",
        }
    }
}
