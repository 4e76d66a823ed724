//! Profiles: how an agent's program is wired. Each is a file; the control plane sends it with the plan.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a program is wired. In values, `{name}` stands for what the host knows: see [`Profile::PLACES`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    /// Its name, as people choose it in a list.
    pub name: String,
    /// The program and its arguments, inside the container.
    pub command: Vec<String>,
    /// The interface with which it speaks to its model.
    pub interface: Interface,
    /// The environment. A variable that names a place which this agent doesn't have is left out.
    pub environment: BTreeMap<String, String>,
    /// Files in its home, written before it starts: the path, and the text. One that names a place which this agent
    /// doesn't have is left out. Places stand between double quotes; what is put there is escaped as in JSON, which
    /// TOML and YAML read alike.
    pub files: BTreeMap<String, String>,
    /// The model, where neither the agent nor its image names one.
    pub model: Option<String>,
    /// Models that it can't work with.
    pub refused_models: Vec<String>,
    /// Whether it can't do without a model: then it isn't launched without access to one, and its name.
    pub needs_model: bool,
    /// The HTTP status that makes it stop, and not try again, when nothing may be spent on its model.
    pub stop_status: u16,
}

impl Profile {
    /// What `{name}` may be: the address of the model's interface as the program's library wants it, what stands in for
    /// the key, the model, its provider, the home.
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

/// The interface of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Interface {
    /// OpenAI's chat completions. Addresses end in `/v1`, or what stands for it.
    #[default]
    OpenaiChat,
    /// OpenAI's responses. Addresses end in `/v1`, or what stands for it.
    OpenaiResponses,
    /// Anthropic's messages. Addresses end before `/v1`.
    Anthropic,
    /// Gemini's generateContent. Addresses end before `/v1beta`.
    Gemini,
}

impl Interface {
    /// It as a word: `OPENAI_CHAT`.
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
