//! A request to a model. The address is built from the parsed request, never from the agent's text.

use http::{Method, StatusCode, Uri};
use muster_protocol::plan::ModelAccess;
use serde_json::{Value, json};

use super::{attachments::Attachments, surcharges};
use crate::{
    fields::Fields,
    forward::{self, PathError},
};

/// Output tokens of a call without a limit: an agent could omit it.
const USUAL_OUTPUT: i64 = 16_384;

/// All relevant fields, under each of their names.
const READ: [&str; 15] = [
    "model",
    "models",
    "stream",
    "stream_options",
    "background",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "maxOutputTokens",
    "n",
    "best_of",
    "candidateCount",
    "candidate_count",
    "generationConfig",
    "generation_config",
];
/// Those that limit the length and the number of answers.
const LENGTHS: [&str; 4] = ["max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"];
const ANSWERS: [&str; 4] = ["n", "best_of", "candidateCount", "candidate_count"];
/// Objects that contain such fields.
const CONFIGS: [&str; 2] = ["generationConfig", "generation_config"];

/// Forwarded query parameters: format, API version, pagination. Others can make a provider take a key from elsewhere,
/// or hide the cost.
const PARAMETERS: [&str; 8] =
    ["api-version", "beta", "pageSize", "pageToken", "limit", "after_id", "before_id", "after"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's generateContent.
    Gemini,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// Generates an answer, at a cost.
    Generate {
        interface: Interface,
        /// The path below the provider's address.
        path: String,
        /// The model, if the path names it.
        model: Option<String>,
    },
    /// A free request: the list of models, a token count.
    Free { interface: Interface, path: String },
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("The request is too long, took too long, or is not a JSON object.")]
    Unreadable,
    /// Another reader could decode its bytes to other text.
    #[error("{0}")]
    Encoded(&'static str),
    #[error("The request names no model.")]
    NoModel,
    /// It would continue without an answer to count.
    #[error("Background responses and lists of fallback models are not supported.")]
    Uncounted,
    /// Its limits are ambiguous.
    #[error("The length and the number of answers must be whole numbers.")]
    Unclear,
    /// Another reader could understand it differently.
    #[error("A field name is ambiguous. Use the interface's spelling: max_tokens, stream, model.")]
    Misspelt,
    /// The key is for another interface.
    #[error(
        "This agent's key is for another interface. Use that one, or ask an administrator to set the model credential's base URL."
    )]
    Elsewhere,
    /// The address is invalid.
    #[error("The address of this agent's model is invalid.")]
    Address,
    /// The address sets a parameter itself.
    #[error(
        "The query sets a parameter that the address of this agent's model sets itself, or is encoded in an unusual way."
    )]
    Set,
    /// No memory.
    #[error("Too many large requests are under way. Try again later.")]
    NoRoom,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Question {
    pub model: String,
    /// Upper bound of the question's tokens, from its bytes.
    pub input: i64,
    /// Further tokens not visible in its bytes.
    pub unseen: i64,
    /// Upper bound of the answer's tokens.
    pub output: i64,
    /// The field or header that changes the model's price.
    pub unpriced: Option<&'static str>,
}

impl RequestError {
    /// The status, and its error type in the providers' format.
    pub fn kind(self) -> (StatusCode, &'static str) {
        match self {
            Self::Elsewhere => (StatusCode::NOT_FOUND, "not_found_error"),
            Self::Address => (StatusCode::BAD_GATEWAY, "api_error"),
            Self::Encoded(_) => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request_error"),
            Self::NoRoom => (StatusCode::SERVICE_UNAVAILABLE, "overloaded_error"),
            _ => (StatusCode::BAD_REQUEST, "invalid_request_error"),
        }
    }
}

impl CallKind {
    /// Parses a path below `/model/`. Client libraries differ in whether their base address ends in a version.
    pub fn parse(method: &Method, path: &str, provider: &str) -> Option<Self> {
        let path = path.trim_matches('/');
        let versioned = |version: &str| path.strip_prefix(version).and_then(|rest| rest.strip_prefix('/'));
        let (version, rest) = ["v1beta", "v1alpha", "v1"]
            .into_iter()
            .find_map(|version| Some((Some(version), versioned(version)?)))
            .unwrap_or((None, path));
        let usual = interface_of(provider);
        if *method == Method::GET {
            let is_list = rest == "models" || rest.strip_prefix("models/").is_some_and(is_plain);
            let path = match usual {
                Interface::Chat | Interface::Responses => rest.to_owned(),
                Interface::Anthropic => format!("v1/{rest}"),
                Interface::Gemini => format!("{}/{rest}", version.unwrap_or("v1beta")),
            };
            return is_list.then_some(Self::Free { interface: usual, path });
        }
        if *method != Method::POST {
            return None;
        }
        let generate =
            |interface, path: &str| Some(Self::Generate { interface, path: path.to_owned(), model: None });
        match rest {
            "chat/completions" => generate(Interface::Chat, rest),
            "responses" => generate(Interface::Responses, rest),
            "messages" => generate(Interface::Anthropic, "v1/messages"),
            "messages/count_tokens" => Some(Self::Free {
                interface: Interface::Anthropic,
                path: "v1/messages/count_tokens".to_owned(),
            }),
            _ => gemini(version.unwrap_or("v1beta"), rest),
        }
    }

    pub fn interface(&self) -> Interface {
        match self {
            Self::Generate { interface, .. } | Self::Free { interface, .. } => *interface,
        }
    }

    /// The target: the credential's own address, or the provider's.
    pub fn target(&self, access: &ModelAccess, query: Option<&str>) -> Result<Uri, RequestError> {
        let (Self::Generate { path, .. } | Self::Free { path, .. }) = self;
        let base = match &access.base_url {
            Some(base) => base,
            None => home(&access.provider, self.interface()).ok_or(RequestError::Elsewhere)?,
        };
        let pairs = query.unwrap_or_default().split('&').filter(|pair| is_passed_on(pair));
        let query = pairs.collect::<Vec<_>>().join("&");
        forward::below(base, path, (!query.is_empty()).then_some(&query)).map_err(|astray| match astray {
            PathError::Query => RequestError::Set,
            PathError::Base | PathError::Path => RequestError::Address,
        })
    }
}

fn is_passed_on(pair: &str) -> bool {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    let is_plain = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%+/=:".contains(&byte));
    is_plain && (PARAMETERS.contains(&name) || name == "alt" && matches!(value, "sse" | "json"))
}

fn interface_of(provider: &str) -> Interface {
    let provider = provider.to_lowercase();
    match provider.as_str() {
        "anthropic" | "claude" => Interface::Anthropic,
        "gemini" | "google" => Interface::Gemini,
        _ => Interface::Chat,
    }
}

/// A provider's own address for its own interface. No key is sent to any other.
fn home(provider: &str, interface: Interface) -> Option<&'static str> {
    match (provider.to_lowercase().as_str(), interface) {
        ("anthropic" | "claude", Interface::Anthropic) => Some("https://api.anthropic.com"),
        ("gemini" | "google", Interface::Gemini) => Some("https://generativelanguage.googleapis.com"),
        ("openai", Interface::Chat | Interface::Responses) => Some("https://api.openai.com/v1"),
        _ => None,
    }
}

fn gemini(version: &str, rest: &str) -> Option<CallKind> {
    let (model, method) = rest.strip_prefix("models/")?.split_once(':')?;
    if !is_plain(model) || model.contains('/') {
        return None;
    }
    let (interface, path) = (Interface::Gemini, format!("{version}/models/{model}:{method}"));
    match method {
        "generateContent" | "streamGenerateContent" => {
            Some(CallKind::Generate { interface, path, model: Some(model.to_owned()) })
        }
        "countTokens" => Some(CallKind::Free { interface, path }),
        _ => None,
    }
}

/// Whether a path consists of characters of model names.
fn is_plain(path: &str) -> bool {
    !forward::leads_upwards(path)
        && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:@/%".contains(&byte))
        && path.split('/').all(|segment| !segment.is_empty())
}

/// Parses the body. The forwarded body is written from the parsed fields, so that the provider can't read anything
/// else.
pub fn read(asked: &CallKind, bytes: &[u8]) -> Result<(Question, String), RequestError> {
    let CallKind::Generate { interface, model, .. } = asked else { return Err(RequestError::Unreadable) };
    let mut fields = Fields::read(bytes).ok_or(RequestError::Unreadable)?;
    if fields.misspells(&READ) || surcharges::misspells(&fields) {
        return Err(RequestError::Misspelt);
    }
    let is_on = |name: &str| fields.has(name) && !matches!(fields.raw(name), Some("false" | "null"));
    if is_on("background") || fields.has("models") {
        return Err(RequestError::Uncounted);
    }
    if *interface == Interface::Chat && is_on("stream") {
        let options = fields.value("stream_options").filter(Value::is_object);
        let mut options = options.unwrap_or_else(|| json!({}));
        options["include_usage"] = true.into();
        fields.set("stream_options", options.to_string());
    }
    let named = || fields.text("model");
    let model =
        model.clone().or_else(named).filter(|model| !model.trim().is_empty()).ok_or(RequestError::NoModel)?;
    let (output, unpriced) = bounds(&mut fields)?;
    let unpriced = unpriced.or(surcharges::by_name(&model));
    let body = fields.write(bytes.len() + 64);
    // Three bytes per token: more tokens than usual, fewer than possible in plain text.
    let input = i64::try_from(body.len() / 3 + 16).unwrap_or(i64::MAX);
    let attachments = Attachments::scan(&body);
    let unpriced = unpriced.or(attachments.sound.then_some("audio"));
    let (model, unseen) = (model.chars().take(200).collect(), attachments.tokens());
    Ok((Question { model, input, unseen, output, unpriced }, body))
}

/// The limit of the answer's tokens: the largest of all given numbers, since the provider chooses which counts. Also
/// returns the first field that the model's price doesn't cover.
fn bounds(fields: &mut Fields<'_>) -> Result<(i64, Option<&'static str>), RequestError> {
    let (mut length, mut answers, mut beyond) = (None::<i64>, None::<i64>, None);
    let mut look = |fields: &Fields<'_>| -> Result<(), RequestError> {
        length = length.max(largest(fields, &LENGTHS)?);
        answers = answers.max(largest(fields, &ANSWERS)?);
        beyond = beyond.or(surcharges::by_fields(fields));
        Ok(())
    };
    look(fields)?;
    for name in CONFIGS {
        if !fields.has(name) || fields.raw(name) == Some("null") {
            continue;
        }
        let config = fields.within(name).ok_or(RequestError::Unclear)?;
        if config.misspells(&READ) || surcharges::misspells(&config) {
            return Err(RequestError::Misspelt);
        }
        look(&config)?;
        fields.set(name, config.write(0));
    }
    Ok((length.unwrap_or(USUAL_OUTPUT).saturating_mul(answers.unwrap_or(1)), beyond))
}

/// The largest number in these fields. Fractions are refused, because parsers disagree about them.
fn largest(fields: &Fields<'_>, names: &[&str]) -> Result<Option<i64>, RequestError> {
    let mut most = None::<i64>;
    for name in names.iter().filter(|name| fields.has(name)) {
        let number = match fields.value(name).ok_or(RequestError::Unclear)? {
            Value::Null => continue,
            value => value.as_i64().filter(|number| *number >= 0).ok_or(RequestError::Unclear)?,
        };
        most = most.max(Some(number).filter(|number| *number > 0));
    }
    Ok(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(
        method: &Method,
        path: &str,
        provider: &str,
        base: Option<&str>,
        query: Option<&str>,
    ) -> Option<String> {
        let access = ModelAccess {
            credential_id: None,
            provider: provider.to_owned(),
            base_url: base.map(str::to_owned),
            key: "k".to_owned().into(),
        };
        Some(CallKind::parse(method, path, provider)?.target(&access, query).ok()?.to_string())
    }

    #[test]
    fn a_recognized_path_is_sent_to_the_provider() {
        let post = |path, provider| target(&Method::POST, path, provider, None, None);
        let chat = "https://api.openai.com/v1/chat/completions";
        assert_eq!(post("chat/completions", "openai").as_deref(), Some(chat));
        assert_eq!(post("v1/chat/completions", "openai").as_deref(), Some(chat));
        assert_eq!(post("v1/responses", "openai").as_deref(), Some("https://api.openai.com/v1/responses"));
        assert_eq!(
            post("v1/messages", "anthropic").as_deref(),
            Some("https://api.anthropic.com/v1/messages")
        );
        assert_eq!(post("messages", "anthropic").as_deref(), Some("https://api.anthropic.com/v1/messages"));
        let gemini = target(
            &Method::POST,
            "v1beta/models/gemini-2.5-pro:streamGenerateContent",
            "gemini",
            Some("http://models.example/x/"),
            Some("alt=sse&key=placeholder"),
        );
        let expected = "http://models.example/x/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse";
        assert_eq!(gemini.as_deref(), Some(expected));
        let list = target(&Method::GET, "v1/models", "openai", Some("https://o.example/api/v1"), None);
        assert_eq!(list.as_deref(), Some("https://o.example/api/v1/models"));
    }

    #[test]
    fn a_key_goes_only_to_its_own_address() {
        let paths = [
            ("chat/completions", "openai"),
            ("v1/responses", "openai"),
            ("v1/messages", "anthropic"),
            ("v1/messages/count_tokens", "anthropic"),
            ("v1beta/models/m:generateContent", "gemini"),
            ("v1beta/models/m:countTokens", "gemini"),
        ];
        for provider in ["openai", "anthropic", "gemini", "mistral", ""] {
            for (path, whose) in paths {
                let sent = target(&Method::POST, path, provider, None, None);
                assert_eq!(sent.is_some(), provider == whose, "{provider}: {path}: {sent:?}");
                let own = target(&Method::POST, path, provider, Some("https://own.example/"), None);
                assert!(own.is_some_and(|own| own.starts_with("https://own.example/")), "{provider}: {path}");
            }
        }
        assert_eq!(target(&Method::GET, "v1/models", "mistral", None, None), None);
        assert!(target(&Method::GET, "v1/models", "OpenAI", None, None).is_some());
        assert!(target(&Method::GET, "v1beta/models", "google", None, None).is_some());
        assert!(target(&Method::GET, "models", "claude", None, None).is_some());
    }

    #[test]
    fn everything_else_is_refused() {
        for path in [
            "embeddings",
            "v1/files",
            "v1/messages/batches",
            "chat/completions/../../admin",
            "v1/organization/usage",
            "models/a/../b:generateContent",
            "v1beta/models/a:batchGenerateContent",
            "v1/images/generations",
            "models/a%2f..%2fb:generateContent",
            "",
        ] {
            assert_eq!(target(&Method::POST, path, "openai", None, None), None, "{path}");
        }
        assert_eq!(target(&Method::DELETE, "v1/models/x", "openai", None, None), None);
        assert_eq!(target(&Method::GET, "v1/models/../files", "openai", None, None), None);
    }

    #[test]
    fn a_chat_stream_is_asked_for_its_usage() {
        let chat = CallKind::parse(&Method::POST, "chat/completions", "openai").unwrap();
        let read = |text: &str| read(&chat, text.as_bytes());
        let (question, body) =
            read(r#"{"model":"m","stream":true,"max_tokens":7,"n":2,"temperature":0.1}"#).unwrap();
        let body: Value = muster_json::from_str(&body).unwrap();
        assert_eq!(body["stream_options"]["include_usage"], true);
        assert_eq!((question.output, body["temperature"].as_f64()), (14, Some(0.1)));
        // Of duplicate fields, the one that was read is sent.
        let (twice, sent) = read(r#"{"model":"cheap","model":"dear"}"#).unwrap();
        assert_eq!((twice.model.as_str(), sent.as_str()), ("dear", r#"{"model":"dear"}"#));
        assert_eq!(read("{}").unwrap_err(), RequestError::NoModel);
        assert_eq!(read("[]").unwrap_err(), RequestError::Unreadable);
        assert_eq!(read(r#"{"model":"m","background":true}"#).unwrap_err(), RequestError::Uncounted);
        assert!(read(r#"{"model":"m","background":false}"#).is_ok());
        assert_eq!(read(r#"{"model":"m","Stream":true}"#).unwrap_err(), RequestError::Misspelt);
    }

    #[test]
    fn a_query_says_nothing_that_is_not_the_models() {
        let sent = |query: &str| {
            let path = "v1beta/models/m:streamGenerateContent";
            target(&Method::POST, path, "gemini", Some("https://m.example"), Some(query))
        };
        let plain = "https://m.example/v1beta/models/m:streamGenerateContent";
        for dropped in [
            "key=x",
            "%6bey=x",
            "access_token=x",
            "alt=media",
            "$alt=proto",
            "fields=candidates",
            "$httpHeaders=x",
            "$httpMethod=DELETE",
            "beta=true;fields=candidates",
        ] {
            assert_eq!(sent(dropped).as_deref(), Some(plain), "{dropped}");
        }
        assert_eq!(sent("alt=sse&beta=true").unwrap(), format!("{plain}?alt=sse&beta=true"));
        let version = |query| {
            let base = Some("https://m.example?api-version=2025-01-01");
            target(&Method::POST, "chat/completions", "azure", base, query)
        };
        assert_eq!(version(Some("api-version=2024-01-01")), None);
        let once = "https://m.example/chat/completions?api-version=2025-01-01";
        assert_eq!(version(None).as_deref(), Some(once));
        assert_eq!(version(Some("api-version=2025-01-01")).as_deref(), Some(once), "as libraries repeat it");
    }

    #[test]
    fn the_largest_readable_number_is_reserved() {
        let output = |path: &str, text: &str| {
            let asked = CallKind::parse(&Method::POST, path, "openai").unwrap();
            read(&asked, format!("{{\"model\":\"m\"{text}}}").as_bytes()).map(|(question, _)| question.output)
        };
        let chat = |text: &str| output("chat/completions", text);
        assert_eq!(chat(""), Ok(USUAL_OUTPUT));
        assert_eq!(chat(r#","max_tokens":100000,"max_completion_tokens":1"#), Ok(100_000));
        assert_eq!(chat(r#","max_tokens":1,"max_completion_tokens":100000"#), Ok(100_000));
        assert_eq!(chat(r#","max_tokens":10,"n":3,"best_of":5"#), Ok(50));
        assert_eq!(chat(r#","max_tokens":null,"n":null"#), Ok(USUAL_OUTPUT));
        assert_eq!(chat(r#","max_tokens":0"#), Ok(USUAL_OUTPUT));
        assert_eq!(chat(r#","max_tokens":9223372036854775807,"n":9"#), Ok(i64::MAX));
        for wrong in ["1.5", "1e5", "\"100000\"", "[1]", "true", "-1", "99999999999999999999"] {
            assert_eq!(chat(&format!(",\"max_tokens\":{wrong}")), Err(RequestError::Unclear), "{wrong}");
            assert_eq!(
                chat(&format!(",\"max_tokens\":7,\"n\":{wrong}")),
                Err(RequestError::Unclear),
                "{wrong}"
            );
        }
        assert_eq!(chat(r#","Max_Tokens":100000"#), Err(RequestError::Misspelt));
        let gemini = |text: &str| output("v1beta/models/m:generateContent", text);
        assert_eq!(gemini(r#","generationConfig":{"max_output_tokens":7,"candidateCount":2}"#), Ok(14));
        assert_eq!(
            gemini(r#","generationConfig":{"maxOutputTokens":7},"generation_config":{"maxOutputTokens":9}"#),
            Ok(9)
        );
        assert_eq!(gemini(r#","generationConfig":{"maxOutputTokens":"100000"}"#), Err(RequestError::Unclear));
        assert_eq!(gemini(r#","generationConfig":7"#), Err(RequestError::Unclear));
    }
}
