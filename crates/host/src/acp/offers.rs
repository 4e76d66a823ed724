//! Models and modes offered by the agent, from its sessions: as options of the session, or in fields of their own in
//! the older protocol.

use agent_client_protocol_schema::v1::{SessionConfigOption, SessionConfigOptionCategory};
use muster_protocol::{HostEvent, event::Offer};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Effects, Machine,
    options::{self, Select},
    short,
};
use crate::bounds::NAME;

/// Offers of one session. `None`: not reported.
#[derive(Debug, Default, PartialEq)]
pub struct SessionOffers {
    models: Option<Vec<Offer>>,
    modes: Option<Vec<Offer>>,
}

/// The reported offers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offered {
    models: Vec<Offer>,
    modes: Vec<Offer>,
}

impl SessionOffers {
    /// From the answer to a request that opens a session or changes its options.
    pub fn in_answer(answer: &Value) -> Self {
        let Self { models, modes } = Self::in_options(&options::in_answer(answer));
        Self {
            models: models.or_else(|| older(answer, "models", "Model", "modelId")),
            modes: modes.or_else(|| older(answer, "modes", "Mode", "id")),
        }
    }

    /// From a session's options.
    pub fn in_options(options: &[SessionConfigOption]) -> Self {
        let of = |category| chosen_from(options, &category);
        Self { models: of(SessionConfigOptionCategory::Model), modes: of(SessionConfigOptionCategory::Mode) }
    }
}

fn chosen_from(
    options: &[SessionConfigOption],
    category: &SessionConfigOptionCategory,
) -> Option<Vec<Offer>> {
    let Select { current, values, .. } = Select::find(options, category)?;
    let offers = values.into_iter().map(|option| {
        offer(&option.value.to_string(), &option.name, option.description.as_deref(), &current)
    });
    Some(offers.flatten().collect())
}

/// `{ "currentModelId": …, "availableModels": [{ "modelId": …, "name": …, "description": … }] }`, and the same for
/// modes.
fn older(answer: &Value, field: &str, word: &str, id: &str) -> Option<Vec<Offer>> {
    let told = answer.get(field)?.as_object()?;
    let current = told.get(&format!("current{word}Id")).and_then(Value::as_str).unwrap_or_default();
    let all = told.get(&format!("available{word}s"))?.as_array()?;
    let offers = all.iter().map(|one| {
        let text = |name: &str| one.get(name).and_then(Value::as_str);
        let id = text(id)?;
        offer(id, text("name").unwrap_or(id), text("description"), current)
    });
    Some(offers.flatten().collect())
}

fn offer(id: &str, name: &str, description: Option<&str>, current: &str) -> Option<Offer> {
    let is_fine = (1..=NAME).contains(&id.len()) && !id.contains(char::is_control);
    let readable = |text: &str, most| short(&text.replace(char::is_control, " "), most);
    is_fine.then(|| Offer {
        id: id.to_owned(),
        name: readable(name, 200),
        description: description.map(|text| readable(text, 500)),
        current: id == current,
    })
}

impl Machine {
    /// Reports a session's offers if they are new.
    pub(super) fn offers(&mut self, found: SessionOffers, fx: &mut Effects) {
        let mut now = self.offered.clone().unwrap_or_default();
        now.models = found.models.unwrap_or(now.models);
        now.modes = found.modes.unwrap_or(now.modes);
        self.report_offers(now, fx);
    }

    /// Handles a session's change of mode.
    pub(super) fn mode_changed(&mut self, mode: &str, fx: &mut Effects) {
        let Some(mut now) = self.offered.clone() else { return };
        for offer in &mut now.modes {
            offer.current = offer.id == mode;
        }
        self.report_offers(now, fx);
    }

    fn report_offers(&mut self, mut now: Offered, fx: &mut Effects) {
        now.models.truncate(100);
        now.modes.truncate(100);
        if self.offered.as_ref() != Some(&now) {
            let Offered { models, modes } = now.clone();
            fx.events.push(HostEvent::Offered { models, modes });
            self.offered = Some(now);
        }
    }
}
