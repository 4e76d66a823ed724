//! Setting models and modes of sessions.

use super::*;

/// A session's options: current model and mode.
fn options(model: &str, mode: &str) -> Value {
    let values = |values: [&str; 2]| values.map(|value| json!({ "value": value, "name": value }));
    json!([
        { "id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": model,
            "options": values(["small", "large"]) },
        { "id": "how", "name": "Mode", "category": "mode", "type": "select", "currentValue": mode,
            "options": values(["act", "plan"]) },
    ])
}

/// The modes of a session in the older protocol.
fn older(mode: &str) -> Value {
    json!({ "currentModeId": mode, "availableModes": [{ "id": "act", "name": "Act" }, { "id": "plan", "name": "Plan" }] })
}

impl Script {
    fn wants(&mut self, model: Option<&str>, mode: Option<&str>) {
        let settings = &mut self.machine.settings;
        (settings.model, settings.mode) = (model.map(str::to_owned), mode.map(str::to_owned));
    }

    /// Opens a new session with this answer.
    fn opens(&mut self, mut answer: Value) -> Vec<Value> {
        self.turn(5, None);
        self.written();
        answer["sessionId"] = "s".into();
        self.says(&json!({ "id": "3.50.new", "result": answer }));
        self.written()
    }

    /// The last reported mode.
    fn mode(&self) -> Option<&str> {
        let mut offers = self.fx.events.iter().filter_map(|event| match event {
            HostEvent::Offered { modes, .. } => Some(modes),
            _ => None,
        });
        let current = offers.next_back()?.iter().find(|mode| mode.current)?;
        Some(&current.id)
    }
}

#[test]
fn the_chosen_mode_is_set_after_the_model_and_before_the_prompt() {
    let mut script = Script::plain();
    script.wants(Some("large"), Some("plan"));
    let model = script.opens(json!({ "configOptions": options("small", "act") })).remove(0);
    assert_eq!((&model["id"], &model["params"]["configId"]), (&json!("3.50.model"), &json!("model")));
    script.says(&json!({ "id": "3.50.model", "result": { "configOptions": options("large", "act") } }));
    let mode = script.written().remove(0);
    assert_eq!((&mode["id"], &mode["method"]), (&json!("3.50.mode"), &json!("session/set_config_option")));
    assert_eq!(mode["params"], json!({ "sessionId": "s", "configId": "how", "value": "plan" }));
    script.says(&json!({ "id": "3.50.mode", "result": { "configOptions": options("large", "plan") } }));
    assert_eq!(script.written()[0]["method"], "session/prompt");
    assert_eq!(script.mode(), Some("plan"));
}

#[test]
fn a_mode_is_not_set_that_the_session_has_or_does_not_offer() {
    for wanted in [Some("act"), Some("fly"), None] {
        let mut script = Script::plain();
        script.wants(None, wanted);
        let prompt = script.opens(json!({ "configOptions": options("small", "act") })).remove(0);
        assert_eq!(prompt["method"], "session/prompt", "{wanted:?}");
        assert_eq!(script.mode(), Some("act"));
    }
}

#[test]
fn older_agents_get_the_mode_in_their_format() {
    let mut script = Script::plain();
    script.wants(None, Some("plan"));
    let mode = script.opens(json!({ "modes": older("act") })).remove(0);
    assert_eq!((&mode["id"], &mode["method"]), (&json!("3.50.mode"), &json!("session/set_mode")));
    assert_eq!(mode["params"], json!({ "sessionId": "s", "modeId": "plan" }));
    script.says(&json!({ "id": "3.50.mode", "result": {} }));
    assert_eq!(script.written()[0]["method"], "session/prompt");
    assert_eq!(script.mode(), Some("plan"));

    let mut script = Script::plain();
    script.wants(None, Some("plan"));
    assert_eq!(script.opens(json!({ "modes": older("plan") }))[0]["method"], "session/prompt");
}

#[test]
fn a_refused_mode_does_not_stop_a_turn_but_a_cancel_does() {
    let mut script = Script::plain();
    script.wants(None, Some("plan"));
    script.opens(json!({ "modes": older("act") }));
    script.says(&json!({ "id": "3.50.mode", "error": { "code": -32602, "message": "not now" } }));
    assert_eq!(script.written()[0]["method"], "session/prompt");
    assert_eq!(script.mode(), Some("act"), "it is in the mode that it was in");

    let mut script = Script::plain();
    script.wants(None, Some("plan"));
    script.opens(json!({ "modes": older("act") }));
    script.machine.cancel(5, &mut script.fx);
    script.says(&json!({ "id": "3.50.mode", "result": {} }));
    assert!(script.written().is_empty());
    assert_eq!(script.end().outcome, TurnOutcome::Cancelled);
}

#[test]
fn a_silent_session_gets_a_changed_mode_with_its_next_turn() {
    for able in [json!({ "sessionCapabilities": { "resume": {} } }), json!({})] {
        let mut script = Script::new(&able);
        script.opens(json!({ "configOptions": options("small", "act") }));
        script.says(&json!({ "id": "3.50", "result": { "stopReason": "end_turn" } }));
        let settings = Settings { mode: Some("plan".to_owned()), ..Settings::default() };
        script.machine.assignments_changed(settings);
        script.turn(6, Some("s"));
        if script.machine.capabilities.resume {
            assert_eq!(script.written()[0]["opening"], json!({ "Resume": { "session": "s" } }));
            script.says(&json!({ "id": "3.60.again", "result": {} }));
        }
        let mode = script.written().remove(0);
        assert_eq!((&mode["id"], &mode["params"]["value"]), (&json!("3.60.mode"), &json!("plan")), "{able}");
        script.says(&json!({ "id": "3.60.mode", "result": { "configOptions": options("small", "plan") } }));
        assert_eq!(script.written()[0]["id"], "3.60");
        assert_eq!(script.mode(), Some("plan"));
    }
}

#[test]
fn a_turn_cancelled_during_opening_leaves_mode_to_the_next() {
    let mut script = Script::plain();
    script.wants(None, Some("plan"));
    script.turn(5, None);
    script.written();
    script.machine.cancel(5, &mut script.fx);
    script.says(&json!({ "id": "3.50.new", "result": { "sessionId": "s", "configOptions": options("small", "act") } }));
    assert_eq!(script.end().outcome, TurnOutcome::Cancelled);
    script.written();
    script.turn(6, Some("s"));
    let next = script.written().remove(0);
    assert_ne!(next["method"], "session/prompt", "the mode comes first");
}

#[test]
fn the_chosen_model_is_set_if_the_session_offers_it() {
    let options = json!([{ "id": "model", "name": "Model", "category": "model", "type": "select",
        "currentValue": "small", "options": [{ "value": "small", "name": "S" }, { "value": "large", "name": "L" }] }]);
    for (wanted, is_offered) in [("large", true), ("huge", false), ("small", false)] {
        let mut script = Script::plain();
        script.machine.settings.model = Some(wanted.to_owned());
        script.turn(5, None);
        script.written();
        script.says(&json!({ "id": "3.50.new", "result": { "sessionId": "s", "configOptions": options } }));
        if is_offered {
            let choice = script.written().remove(0);
            assert_eq!(
                (&choice["method"], &choice["params"]["value"]),
                (&"session/set_config_option".into(), &"large".into())
            );
            script.says(&json!({ "id": "3.50.model", "result": { "configOptions": [] } }));
        }
        assert_eq!(script.written()[0]["method"], "session/prompt", "{wanted}");
        script.says(&json!({ "id": "3.50", "result": { "stopReason": "end_turn" } }));
        let used = if is_offered { "large" } else { "small" };
        assert_eq!(script.end().model.as_deref(), Some(used), "{wanted}");
    }
}
