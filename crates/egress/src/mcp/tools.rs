//! The tools that a server lists. People switch them, and accept each definition: a server that changes one could put
//! words into the agent's context. Others are hidden from the agent.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use muster_protocol::{event::McpTool, is_too_deep, plan::ToolPin};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    bounds,
    fields::{Fields, each},
};

/// The longest reported definition, in bytes: a report has to fit into a gateway frame.
const LONGEST: usize = 16 * 1024;
/// The longest name of a tool that can be called, in characters.
pub const LONGEST_NAME: usize = 200;

/// Known tools that the server has listed with another digest, and that digest.
pub type ChangedTools = BTreeMap<String, String>;

/// The known tools of a session's server.
#[derive(Clone, Copy)]
pub struct KnownTools<'a> {
    pub pins: &'a [ToolPin],
    /// Whether none were known when the session began: then further ones are the rest of the first list.
    pub is_first: bool,
}

impl<'a> KnownTools<'a> {
    fn pin(&self, name: &str) -> Option<&'a ToolPin> {
        self.pins.iter().find(|pin| pin.name == name)
    }

    /// Whether a tool may be called. A changed one may be once the listed definition is accepted.
    pub fn allow(&self, name: &str, changed: &ChangedTools) -> bool {
        let is_accepted = |pin: &ToolPin| changed.get(name).is_none_or(|digest| *digest == pin.digest);
        self.pin(name).map_or(self.is_first, |pin| pin.usable && is_accepted(pin))
    }

    fn show(&self, tool: &McpTool) -> bool {
        self.pin(&tool.name).map_or(self.is_first, |pin| pin.usable && pin.digest == tool.digest)
    }
}

/// Removes hidden tools from the result of a request, if it is a list of tools. Returns the result, and updates
/// `changed`. If nothing is known, only tools that can't be reported are hidden.
///
/// Nothing stays of an object that could hide a list among too many fields, or under a name that some readers take for
/// `tools`.
pub fn hide(result: &str, known: Option<KnownTools<'_>>, changed: &mut ChangedTools) -> Option<String> {
    let Some(mut result) = Fields::read(result.as_bytes()) else {
        return result.starts_with('{').then(|| "{}".to_owned());
    };
    if result.misspells(&["tools"]) {
        return Some("{}".to_owned());
    }
    let mut shown = String::new();
    let is_list = each(result.raw("tools")?.as_bytes(), |item| {
        let Some(tool) = describe(item).filter(|tool| is_callable(&tool.name)) else { return };
        if known.and_then(|known| known.pin(&tool.name)).is_some_and(|pin| pin.digest != tool.digest) {
            changed.insert(tool.name, tool.digest);
            return;
        }
        changed.remove(&tool.name);
        if known.is_none_or(|known| known.show(&tool)) {
            shown.push_str(if shown.is_empty() { "" } else { "," });
            shown.push_str(&match tool.definition {
                // As the digest covers it: a field could stand there twice, and `_meta` have any words.
                Some(definition) => definition.to_string(),
                // Between values a newline is a space; texts contain none.
                None => String::from_utf8_lossy(item).replace(['\n', '\r'], " "),
            });
        }
    });
    is_list.then(|| {
        result.set("tools", format!("[{shown}]"));
        result.write(0)
    })
}

/// The first tools in the result of a list.
pub fn listed(result: &Fields<'_>) -> Vec<McpTool> {
    let mut tools = Vec::new();
    if let Some(list) = result.raw("tools") {
        each(list.as_bytes(), |item| {
            if tools.len() < bounds::LIST {
                tools.extend(describe(item));
            }
        });
    }
    tools
}

/// Whether a tool of this name can be called, and so is reported.
pub fn is_callable(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.chars().count()) && !name.contains(char::is_control)
}

/// A tool with its definition.
fn describe(item: &[u8]) -> Option<McpTool> {
    let name = Fields::read(item)?.text("name")?;
    let read = |item| muster_json::from_slice::<Value>(item).ok().filter(|value| !is_too_deep(value));
    let mut definition = (item.len() <= LONGEST).then(|| read(item)).flatten();
    if let Some(definition) = &mut definition {
        if let Some(fields) = definition.as_object_mut() {
            fields.shift_remove("_meta");
        }
        // The order of fields means nothing, and some servers change it with each start.
        definition.sort_all_objects();
    }
    let written = definition.as_ref().map(Value::to_string);
    let digest = Sha256::digest(written.as_deref().map_or(item, str::as_bytes));
    Some(McpTool { name, digest: BASE64_STANDARD.encode(digest), definition })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(item: &str) -> String {
        describe(item.as_bytes()).unwrap().digest
    }

    #[test]
    fn a_definition_is_the_same_in_another_order() {
        let one = digest(r#"{"name":"a","description":"x","inputSchema":{"type":"object","a":1}}"#);
        let same = r#"{ "inputSchema": {"a": 1, "type": "object"}, "name": "a", "_meta": {"n": 2}, "description": "x" }"#;
        assert_eq!(digest(same), one);
        for other in [
            r#"{"name":"a","description":"y","inputSchema":{"type":"object","a":1}}"#,
            r#"{"name":"a","description":"x","inputSchema":{"type":"object","a":2}}"#,
            r#"{"name":"a","description":"x","inputSchema":{"type":"object","a":1},"annotations":{}}"#,
        ] {
            assert_ne!(digest(other), one, "{other}");
        }
        let long = format!(r#"{{"name":"a","description":"{}"}}"#, "x".repeat(LONGEST));
        let tool = describe(long.as_bytes()).unwrap();
        assert_eq!((tool.definition, tool.digest == digest(&long.replacen('x', "y", 1))), (None, false));
        assert!(["{}", "[]", r#"{"name":1}"#].iter().all(|wrong| describe(wrong.as_bytes()).is_none()));
        let names = [String::new(), "a\0".to_owned(), "é".repeat(201), "é".repeat(200)];
        assert_eq!(names.map(|name| is_callable(&name)), [false, false, false, true]);
    }

    #[test]
    fn only_known_usable_tools_are_shown() {
        let tools = [r#"{"name":"a"}"#, r#"{"name":"b"}"#, r#"{"name":"c"}"#, r#"{"name":"d"}"#];
        let pin = |name: &str, digest: String, usable| ToolPin { name: name.to_owned(), digest, usable };
        let pins = [
            pin("a", digest(tools[0]), true),
            pin("b", digest(tools[1]), false),
            pin("c", "old".to_owned(), true),
        ];
        let result = format!(r#"{{"tools":[{}],"nextCursor":"n"}}"#, tools.join(","));
        let shown = |is_first| {
            let mut changed = ChangedTools::from([("a".to_owned(), "other".to_owned())]);
            let known = KnownTools { pins: &pins, is_first };
            (
                hide(&result, Some(known), &mut changed).unwrap(),
                changed.into_keys().collect::<Vec<_>>().join(" "),
            )
        };
        let rest = r#"],"nextCursor":"n"}"#;
        assert_eq!(shown(false), (format!(r#"{{"tools":[{}{rest}"#, tools[0]), "c".to_owned()));
        assert_eq!(shown(true), (format!(r#"{{"tools":[{},{}{rest}"#, tools[0], tools[3]), "c".to_owned()));
        let none = KnownTools { pins: &[], is_first: false };
        let hidden = |result: &str| hide(result, Some(none), &mut ChangedTools::new());
        assert_eq!([r#"{"content":[]}"#, "[]", "null"].map(hidden), [None, None, None]);
        assert_eq!(hidden(r#"{"Tools":[{"name":"a"}]}"#).as_deref(), Some("{}"));
        let many: String = (0..bounds::LIST).map(|n| format!(r#","{n}":0"#)).collect();
        assert_eq!(hidden(&format!(r#"{{"tools":[{}]{many}}}"#, tools[0])).as_deref(), Some("{}"));
        let twice =
            r#"{"tools":[{"name":"a","name":"b","_meta":{"hint":"a"}},{"name":"a\u0000"},{"title":"a"}]}"#;
        let read_once = hide(twice, None, &mut ChangedTools::new());
        assert_eq!(read_once.as_deref(), Some(r#"{"tools":[{"name":"b"}]}"#), "all may be used");
        let (unchanged, first) = (ChangedTools::new(), KnownTools { pins: &[], is_first: true });
        assert!(!none.allow("a", &unchanged) && first.allow("a", &unchanged));
        let known = KnownTools { pins: &pins, is_first: false };
        let changed = |digest: &str| ChangedTools::from([("c".to_owned(), digest.to_owned())]);
        assert!(!known.allow("c", &changed("new")) && known.allow("c", &changed("old")), "it was accepted");
    }
}
