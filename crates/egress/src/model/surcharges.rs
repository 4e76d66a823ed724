//! Options that raise the cost of a call above the model's token price: a faster lane, another region, another kind of
//! answer, a tool run by the provider, a longer cache, a longer context.

use http::HeaderMap;
use serde::de::Error;
use serde_json::Value;

use super::visitor::{JsonVisitor, visit};
use crate::fields::{self, Fields};

/// Fields, and their values without a surcharge.
const PRICED: [(&str, &[&str]); 12] = [
    ("service_tier", TIERS),
    ("serviceTier", TIERS),
    ("speed", &["standard"]),
    ("inference_geo", &["global"]),
    ("provider", &[]),
    ("modalities", &["text"]),
    ("responseModalities", &["text"]),
    ("response_modalities", &["text"]),
    ("web_search_options", &[]),
    ("search_parameters", &[]),
    ("enable_search", &[]),
    ("plugins", &[]),
];
const TIERS: &[&str] = &["auto", "default", "standard", "standard_only", "flex"];
/// Fields with nested options.
const SEARCHED: [(&str, Position); 4] = [
    (TOOLS, Position::Tools),
    (CACHE, Position::Cache),
    ("system", Position::Elsewhere),
    ("messages", Position::Elsewhere),
];
const TOOLS: &str = "tools";
const CACHE: &str = "cache_control";
const TTL: &str = "ttl";
/// The cache lifetime included in the price of cache writes.
const USUAL_TTL: &str = "5m";
/// Kinds of tools without a surcharge: those run by the agent, and some of the provider's.
const FREE_TOOLS: [&str; 16] = [
    "apply_patch",
    "bash_*",
    "computer",
    "computer_*",
    "custom",
    "function",
    "local_shell",
    "mcp",
    "mcp_toolset",
    "memory_*",
    "namespace",
    "text_editor_*",
    "tool_search",
    "tool_search_*",
    "web_fetch",
    "web_fetch_*",
];
/// Tools identified by a field instead of a kind, by normalized name.
const PRICED_TOOLS: [&str; 6] =
    ["enterprisewebsearch", "filesearch", "googlemaps", "googlesearch", "googlesearchretrieval", "retrieval"];
/// Prefix of a beta with a higher token price, and the field that requests betas.
const PRICED_TRIAL: &str = "context-1m";
const TRIALS: &str = "anthropic-beta";
const TRIAL_FIELDS: [&str; 2] = ["anthropic_beta", "betas"];
/// Suffixes of model names with which a router does more than ask the model.
const PRICED_ENDS: [&str; 2] = [":online", ":nitro"];

/// Whether another reader could confuse a field with one of these.
pub fn misspells(fields: &Fields<'_>) -> bool {
    let searched = SEARCHED.iter().map(|(name, _)| *name);
    let names: Vec<&str> = PRICED.iter().map(|(name, _)| *name).chain(searched).chain(TRIAL_FIELDS).collect();
    fields.misspells(&names)
}

/// The first field that may raise the cost.
pub fn by_fields(fields: &Fields<'_>) -> Option<&'static str> {
    let priced = PRICED.iter().filter(|(name, _)| fields.has(name));
    let priced = priced.filter(|(name, covered)| match fields.value(name) {
        Some(Value::Array(all)) => !all.iter().all(|value| is_covered(value, covered)),
        Some(value) => !is_covered(&value, covered),
        None => true,
    });
    let searched = SEARCHED.iter().filter_map(|(name, position)| search(name, fields.raw(name)?, *position));
    let trials = TRIAL_FIELDS.iter().filter(|name| fields.raw(name).is_some_and(names_a_trial));
    priced.map(|(name, _)| *name).chain(searched).chain(trials.copied()).next()
}

/// The first header that may raise the cost.
pub fn by_headers(headers: &HeaderMap) -> Option<&'static str> {
    let named =
        headers.get_all(TRIALS).iter().any(|value| names_a_trial(&String::from_utf8_lossy(value.as_bytes())));
    named.then_some(TRIALS)
}

/// Whether the model's name raises the cost.
pub fn by_name(model: &str) -> Option<&'static str> {
    let model = model.trim().to_lowercase();
    PRICED_ENDS.iter().any(|end| model.ends_with(end)).then_some("model")
}

fn names_a_trial(text: &str) -> bool {
    text.to_lowercase().contains(PRICED_TRIAL)
}

fn is_covered(value: &Value, covered: &[&str]) -> bool {
    match value {
        Value::String(text) => covered.contains(&text.to_lowercase().as_str()),
        value => matches!(value, Value::Null | Value::Bool(false)),
    }
}

/// Searches a value for surcharges. One nested too deeply may contain any.
fn search(name: &'static str, raw: &str, position: Position) -> Option<&'static str> {
    // Most values are long and contain none.
    if matches!(position, Position::Elsewhere) && !raw.contains(CACHE) && !raw.contains("\\u00") {
        return None;
    }
    let mut found = Found(None);
    match visit(raw, &mut found, position) {
        Ok(()) => None,
        Err(_) => Some(found.0.unwrap_or(name)),
    }
}

/// Position of a value.
#[derive(Clone, Copy, Debug)]
enum Position {
    Elsewhere,
    Tools,
    Tool,
    /// Kind of a tool.
    Kind,
    Cache,
    Ttl,
}

impl Position {
    /// Position of a field's value.
    fn within(self, name: &str) -> Self {
        match (self, name) {
            (_, CACHE) => Self::Cache,
            (Self::Cache, TTL) => Self::Ttl,
            (Self::Tools | Self::Tool, "type") => Self::Kind,
            _ => Self::Elsewhere,
        }
    }
}

/// The result, which ends the search.
struct Found(Option<&'static str>);

impl Found {
    fn at<E: Error>(&mut self, what: &'static str) -> Result<(), E> {
        self.0 = Some(what);
        Err(E::custom(what))
    }
}

impl JsonVisitor for Found {
    type Position = Position;

    fn text<E: Error>(&mut self, position: Position, text: &str) -> Result<(), E> {
        let is_free = |kind: &str| match kind.strip_suffix('*') {
            Some(begin) => text.starts_with(begin),
            None => text == kind,
        };
        match position {
            Position::Kind if !FREE_TOOLS.iter().any(|kind| is_free(kind)) => self.at(TOOLS),
            Position::Ttl if text != USUAL_TTL => self.at(CACHE),
            _ => Ok(()),
        }
    }

    fn number<E: Error>(&mut self, position: Position) -> Result<(), E> {
        if matches!(position, Position::Ttl) { self.at(CACHE) } else { Ok(()) }
    }

    fn field<E: Error>(&mut self, object: Position, name: &str) -> Result<Position, E> {
        let is_tool = matches!(object, Position::Tools | Position::Tool);
        if is_tool && PRICED_TOOLS.contains(&fields::plain(name).as_str()) {
            self.at(TOOLS)?;
        }
        Ok(object.within(name))
    }

    fn item(&self, list: Position) -> Position {
        if matches!(list, Position::Tools) { Position::Tool } else { Position::Elsewhere }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, Method};

    use super::*;
    use crate::model::call::{CallKind, RequestError, read};

    fn unpriced(path: &str, text: &str) -> Result<Option<&'static str>, RequestError> {
        let asked = CallKind::parse(&Method::POST, path, "openai").unwrap();
        let read = read(&asked, format!("{{\"model\":\"m\"{text}}}").as_bytes());
        read.map(|(question, _)| question.unpriced)
    }

    fn chat(text: &str) -> Result<Option<&'static str>, RequestError> {
        unpriced("chat/completions", text)
    }

    #[test]
    fn priced_fields_are_found_in_any_spelling() {
        for (text, field) in [
            (r#","service_tier":"priority""#, "service_tier"),
            (r#","service_tier":"auto","service_tier":"scale""#, "service_tier"),
            (r#","serviceTier":"PRIORITY""#, "serviceTier"),
            (r#","service_tier":["priority"]"#, "service_tier"),
            (r#","service_tier":7"#, "service_tier"),
            (r#","speed":"fast""#, "speed"),
            (r#","inference_geo":"us""#, "inference_geo"),
            (r#","provider":{"order":["dear"]}"#, "provider"),
            (r#","modalities":["text","audio"]"#, "modalities"),
            (r#","web_search_options":{}"#, "web_search_options"),
            (r#","search_parameters":{"mode":"on"}"#, "search_parameters"),
            (r#","enable_search":true"#, "enable_search"),
            (r#","plugins":[{"id":"web"}]"#, "plugins"),
            (r#","model":"m:online""#, "model"),
            (r#","anthropic_beta":["x","context-1m-2025-08-07"]"#, "anthropic_beta"),
        ] {
            assert_eq!(chat(text), Ok(Some(field)), "{text}");
        }
        for text in [
            "",
            r#","service_tier":null"#,
            r#","service_tier":"auto""#,
            r#","service_tier":"flex""#,
            r#","speed":"standard""#,
            r#","modalities":["text"]"#,
            r#","enable_search":false,"plugins":[],"web_search_options":null"#,
            r#","anthropic_beta":["interleaved-thinking-2025-05-14"],"model":"m:free""#,
        ] {
            assert_eq!(chat(text), Ok(None), "{text}");
        }
        for text in [
            r#","Service_Tier":"priority""#,
            r#","SPEED":"fast""#,
            r#","Tools":[]"#,
            r#","webSearchOptions":{}"#,
        ] {
            assert_eq!(chat(text), Err(RequestError::Misspelt), "{text}");
        }
        let gemini = unpriced(
            "v1beta/models/m:generateContent",
            r#","generationConfig":{"responseModalities":["TEXT","IMAGE"]}"#,
        );
        assert_eq!(gemini, Ok(Some("responseModalities")));
    }

    #[test]
    fn tools_that_the_provider_runs_cost_more() {
        for tool in [
            r#"{"type":"web_search_20250305","name":"web_search"}"#,
            r#"{"type":"code_execution_20250825","name":"code_execution"}"#,
            r#"{"type":"web_search"}"#,
            r#"{"type":"web_search_preview"}"#,
            r#"{"type":"code_interpreter","container":{"type":"auto"}}"#,
            r#"{"type":"file_search"}"#,
            r#"{"type":"image_generation"}"#,
            r#"{"type":"function","type":"web_search"}"#,
            r#"{"type":"web_search","type":"function"}"#,
            r#"{"t\u0079pe":"web_search"}"#,
            r#"{"googleSearch":{}}"#,
            r#"{"google_search_retrieval":{}}"#,
            r#"{"functionDeclarations":[],"googleMaps":{}}"#,
        ] {
            assert_eq!(chat(&format!(",\"tools\":[{{\"name\":\"x\"}},{tool}]")), Ok(Some(TOOLS)), "{tool}");
            assert_eq!(chat(&format!(",\"tools\":{tool}")), Ok(Some(TOOLS)), "{tool}");
        }
        for tool in [
            r#"{"name":"web_search","input_schema":{"type":"object","properties":{"type":{"type":"web_search"}}}}"#,
            r#"{"type":"custom","name":"x"}"#,
            r#"{"type":"function","function":{"name":"web_search","parameters":{"type":"object"}}}"#,
            r#"{"type":"bash_20250124","name":"bash"}"#,
            r#"{"type":"text_editor_20250728","name":"edit"}"#,
            r#"{"type":"mcp_toolset"}"#,
            r#"{"type":null,"name":"x"}"#,
            r#"{"functionDeclarations":[{"name":"googleSearch"}]}"#,
            r#"{"urlContext":{}}"#,
        ] {
            assert_eq!(chat(&format!(",\"tools\":[{tool}]")), Ok(None), "{tool}");
        }
        assert_eq!(chat(r#","tools":null"#), Ok(None));
        let deep = format!(",\"tools\":[{}1{}]", "[".repeat(200), "]".repeat(200));
        assert_eq!(chat(&deep), Ok(Some(TOOLS)), "too deep to scan");
    }

    #[test]
    fn a_cache_for_longer_than_usual_costs_more() {
        for text in [
            r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#,
            r#","system":[{"text":"x","cache_control":{"ttl":"1h"}}]"#,
            r#","messages":[{"role":"user","content":[{"cache_control":{"ttl":"1h"}}]}]"#,
            r#","messages":[{"content":[{"cache_control":{"ttl":"5m","ttl":"1h"}}]}]"#,
            r#","messages":[{"content":[{"cache_control":{"\u0074tl":3600}}]}]"#,
            r#","tools":[{"name":"x","cache_control":{"ttl":"1h"}}]"#,
        ] {
            assert_eq!(chat(text), Ok(Some(CACHE)), "{text}");
        }
        for text in [
            r#","cache_control":{"type":"ephemeral"}"#,
            r#","messages":[{"content":[{"text":"ttl 1h","cache_control":{"ttl":"5m"}}]}]"#,
            r#","messages":[{"content":[{"input":{"ttl":"1h"}}]}]"#,
        ] {
            assert_eq!(chat(text), Ok(None), "{text}");
        }
    }

    #[test]
    fn a_long_context_costs_more() {
        let by = |value: &'static str| {
            let name = http::HeaderName::from_static(TRIALS);
            by_headers(&[(name, HeaderValue::from_static(value))].into_iter().collect())
        };
        assert_eq!(by("interleaved-thinking-2025-05-14, Context-1M-2025-08-07"), Some(TRIALS));
        assert_eq!(by("interleaved-thinking-2025-05-14"), None);
    }
}
