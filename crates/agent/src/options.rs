//! The configuration options of a session: the only model, and the mode.

use agent_client_protocol::{
    Error,
    v1::schema::{
        SessionConfigId, SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory,
        SessionConfigOptionValue, SessionConfigSelectOption, SetSessionConfigOptionRequest,
        SetSessionConfigOptionResponse,
    },
};

use crate::{
    protocol::Agent,
    session::Session,
    settings::{DEMO_MODEL, Settings},
};

/// The name of the deterministic agent in place of a model.
const WORDS: &str = "words";
const MODE: &str = "mode";
/// The modes, with id, name and description.
const MODES: [(Mode, &str, &str, &str); 2] = [
    (Mode::Act, "act", "Act", "It carries out instructions, after asking for permission."),
    (Mode::Plan, "plan", "Plan", "It says what it would do, and changes nothing."),
];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Carry out instructions.
    #[default]
    Act,
    /// Describe a plan, and call no tools.
    Plan,
}

impl Agent {
    pub fn options(&self, session: &Session) -> Vec<SessionConfigOption> {
        options(&self.settings, session.mode())
    }

    /// Sets an option. It applies from the next turn on.
    pub fn set_option(
        &self,
        request: &SetSessionConfigOptionRequest,
    ) -> Result<SetSessionConfigOptionResponse, Error> {
        let session = self.session(&request.session_id)?;
        match requested_mode(request) {
            Some(mode) => session.set_mode(mode),
            None if self.options(&session).iter().any(|option| has_value(option, request)) => {}
            None => return Err(Error::invalid_params().data("there is nothing else to choose from")),
        }
        Ok(SetSessionConfigOptionResponse::new(self.options(&session)))
    }
}

fn options(settings: &Settings, mode: Mode) -> Vec<SessionConfigOption> {
    let (id, name, about) = match &settings.model {
        Some(access) => (access.model.as_str(), access.model.as_str(), "The model that it was started with."),
        None if settings.is_demo => {
            (DEMO_MODEL, "The demo’s rules", "No model: it answers questions about the demo’s orders.")
        }
        None => (WORDS, "No model", "It does what the words of a message say."),
    };
    let only = SessionConfigSelectOption::new(id.to_owned(), name).description(about.to_owned());
    let model = SessionConfigOption::select("model", "Model", id.to_owned(), vec![only]);
    let modes = MODES
        .map(|(_, id, name, about)| SessionConfigSelectOption::new(id, name).description(about.to_owned()));
    let now = MODES.into_iter().find(|(known, ..)| *known == mode).map_or("", |(_, id, ..)| id);
    let modes = SessionConfigOption::select(MODE, "Mode", now, modes.to_vec());
    let model = model.category(SessionConfigOptionCategory::Model);
    vec![model, modes.category(SessionConfigOptionCategory::Mode)]
}

fn requested_mode(request: &SetSessionConfigOptionRequest) -> Option<Mode> {
    if request.config_id != SessionConfigId::new(MODE) {
        return None;
    }
    let mut modes = MODES.into_iter();
    let found = modes.find(|(_, id, ..)| request.value == SessionConfigOptionValue::value_id(*id));
    found.map(|(mode, ..)| mode)
}

/// Whether the option already has the requested value.
fn has_value(option: &SessionConfigOption, request: &SetSessionConfigOptionRequest) -> bool {
    let SessionConfigKind::Select(select) = &option.kind else { return false };
    option.id == request.config_id
        && request.value == SessionConfigOptionValue::value_id(select.current_value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_chosen_by_its_id() {
        let chosen = |option: &'static str, value: &'static str| {
            let value = SessionConfigOptionValue::value_id(value);
            requested_mode(&SetSessionConfigOptionRequest::new("s", option, value))
        };
        assert_eq!(chosen("mode", "plan"), Some(Mode::Plan));
        assert_eq!(chosen("mode", "act"), Some(Mode::Act));
        assert_eq!((chosen("mode", "Plan"), chosen("model", "plan")), (None, None));
    }

    #[test]
    fn the_current_mode_is_shown() {
        let current = |is_demo: bool, mode: Mode| {
            let settings = Settings { home: "/".into(), model: None, is_demo };
            let options = serde_json::to_value(options(&settings, mode)).unwrap();
            (options[0]["currentValue"].clone(), options[1]["currentValue"].clone())
        };
        assert_eq!(current(false, Mode::default()), ("words".into(), "act".into()));
        assert_eq!(current(true, Mode::Plan), ("muster-demo".into(), "plan".into()));
    }
}
