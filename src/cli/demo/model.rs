//! The model of the demo's agents, from three variables. Without it they answer by rules.

use async_graphql::MaybeUndefined;

use super::Failure;
use crate::{
    base::{ids::AgentId, problem::Result, secret::SecretText},
    core::{access::Scope, config::variable},
    domain::agents::{self, UpdateAgentInput},
};

const URL: &str = "MUSTER_DEMO_MODEL_URL";
const NAME: &str = "MUSTER_DEMO_MODEL";
const KEY: &str = "MUSTER_DEMO_MODEL_KEY";

/// A model and the access to it.
pub struct Model {
    url: String,
    name: String,
    key: String,
}

impl Model {
    /// The model that the environment names.
    ///
    /// # Errors
    /// Some of the variables are missing.
    pub fn read() -> std::result::Result<Option<Self>, Failure> {
        match [URL, NAME, KEY].map(variable) {
            [None, None, None] => Ok(None),
            [Some(url), Some(name), Some(key)] => Ok(Some(Self { url, name, key })),
            _ => Err(Failure::new(format!(
                "a model needs {URL}, {NAME} and {KEY}: its address, its name and its key. For a model that takes no \
                 key, give any text"
            ))),
        }
    }

    /// Gives it to an agent, from its next start on.
    pub async fn give(&self, scope: &Scope, agent: AgentId) -> Result<()> {
        let text = |text: &str| MaybeUndefined::Value(text.to_owned());
        let edit = UpdateAgentInput {
            model_override: text(&self.name),
            model_credential_provider: text(self.provider()),
            model_credential_base_url: text(&self.url),
            model_credential: MaybeUndefined::Value(SecretText(self.key.clone().into())),
            ..UpdateAgentInput::default()
        };
        agents::update(scope, agent, edit, None).await
    }

    /// By the address: most others offer OpenAI's interface.
    fn provider(&self) -> &'static str {
        if self.url.contains("anthropic.com") { "anthropic" } else { "openai" }
    }
}
