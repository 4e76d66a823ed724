//! The samples in `tests/samples/acp`: a permission request as an agent writes it, its view for people, and the agent's
//! answer for each decision.

use super::*;

/// Feeds the request in the middle of a turn.
fn asked(line: &str) -> (Script, Option<Request>) {
    let mut script = Script::prompted();
    script.written();
    script.raw(line);
    let request = match script.fx.events.pop() {
        Some(HostEvent::Asked(request)) => Some(request),
        _ => None,
    };
    (script, request)
}

/// The agent's only answer.
fn got(script: &mut Script) -> Value {
    let [line] = &script.written()[..] else { return Value::Null };
    if let Some(error) = line.get("error") {
        return json!({ "error": error["code"], "message": error["message"] });
    }
    let outcome = &line["result"]["outcome"];
    match outcome["outcome"].as_str() {
        Some("selected") => json!({ "selected": outcome["optionId"] }),
        _ => outcome["outcome"].clone(),
    }
}

fn decided(line: &str, decision: &Decision) -> Value {
    let (mut script, request) = asked(line);
    let key = request.unwrap().request;
    let answered = script.machine.decide(&key, decision, Some(9));
    let mut got = got(&mut script);
    if answered == DecisionEffect::NotWaiting {
        got["then"] = "The next turn says it in words.".into();
    }
    got
}

fn came_of_it(bytes: &[u8]) -> Value {
    let line = std::str::from_utf8(bytes).unwrap().trim_end();
    let (mut script, request) = asked(line);
    let Some(request) = request else { return json!({ "not_asked": got(&mut script) }) };
    let Asked::Action { tool, title, .. } = request.asked else { panic!("{:?}", request.asked) };
    let comment = || None;
    json!({
        "people_see": { "title": title, "tool": tool },
        "approved": decided(line, &Decision::Approved { comment: comment() }),
        "denied": decided(line, &Decision::Denied { comment: comment() }),
    })
}

#[test]
fn samples() {
    muster_samples::check("acp", came_of_it);
}
