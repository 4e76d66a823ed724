//! Sending, and reactions. Discord drops a message with the nonce of another one of the last minutes, and returns that
//! one.

use http::Method;
use reqwest::multipart::Form;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use url::form_urlencoded;

use super::api::Api;
use crate::{
    contract::{ActionCall, Attachment, Button, Failure, Part, Receipt},
    network::file_part,
    reaction::Reaction,
};

/// Sends a text or one file.
pub async fn send(api: &Api, part: &Part<'_>) -> Result<Receipt, Failure> {
    let messages = format!("channels/{}/messages", number(part.target)?);
    let sent = match (part.files, part.replaces) {
        ([], None) => api.send(Method::POST, &messages, &new_message(part)).await?,
        ([], Some(replaced)) => {
            let path = format!("{messages}/{}", number(replaced)?);
            api.send(Method::PATCH, &path, &message(part)).await?
        }
        ([file], None) => upload(api, &messages, part, file).await?,
        _ => return Err(Failure::Refused("Discord takes one file a message.".into())),
    };
    Ok(Receipt { vendor_id: sent["id"].as_str().map(str::to_owned), target: None })
}

/// Puts an emoji on a message. The message has each emoji of ours once.
pub async fn react(api: &Api, call: &ActionCall<'_>) -> Result<Receipt, Failure> {
    let reaction = Reaction::read(call.arguments).map_err(Failure::Refused)?;
    let (channel, message) = (number(call.target)?, number(reaction.message(call)?)?);
    // An emoji of a server is written `<:wave:12>` in texts.
    let emoji = reaction.emoji.trim_matches(['<', ':', '>']);
    let unknown = || {
        let why = format!("Discord has no emoji \"{emoji}\". Give the emoji itself, such as 👀.");
        Failure::Refused(why.into())
    };
    if emoji.is_ascii() && !emoji.contains(':') {
        return Err(unknown());
    }
    let encoded: String = form_urlencoded::byte_serialize(emoji.as_bytes()).collect();
    let path = format!("channels/{channel}/messages/{message}/reactions/{encoded}/@me");
    match api.send(Method::PUT, &path, &json!({})).await {
        Err(Failure::Refused(cause)) if cause.as_str() == "Discord: Unknown Emoji" => Err(unknown()),
        set => set.map(|_| Receipt::default()),
    }
}

/// An id in a path.
pub fn number(id: &str) -> Result<u64, Failure> {
    id.parse().map_err(|_| Failure::Refused("This is not an id of Discord.".into()))
}

fn message(part: &Part<'_>) -> Value {
    json!({
        "content": part.text.text,
        "allowed_mentions": {"parse": []},
        // No previews of links.
        "flags": 1 << 2,
        "components": part.buttons.chunks(5).map(row).collect::<Vec<_>>(),
    })
}

fn new_message(part: &Part<'_>) -> Value {
    let mut message = message(part);
    message["nonce"] = nonce(part).into();
    message["enforce_nonce"] = true.into();
    if let Some(answered) = part.reply_to.filter(|id| number(id).is_ok()) {
        message["message_reference"] = json!({"message_id": answered, "fail_if_not_exists": false});
    }
    message
}

/// Unlike ids of parts, at most 25 characters.
fn nonce(part: &Part<'_>) -> String {
    let digest = Sha256::digest(format!("{}/{}", part.target, part.id));
    hex::encode(&digest[..12])
}

/// A row of at most five buttons.
fn row(buttons: &[Button]) -> Value {
    let button =
        |button: &Button| json!({"type": 2, "style": 2, "label": button.label, "custom_id": button.value});
    json!({"type": 1, "components": buttons.iter().map(button).collect::<Vec<_>>()})
}

async fn upload(api: &Api, messages: &str, part: &Part<'_>, file: &Attachment) -> Result<Value, Failure> {
    let mut message = new_message(part);
    message["attachments"] = json!([{"id": 0}]);
    let form = Form::new().text("payload_json", message.to_string()).part("files[0]", file_part(file)?);
    api.upload(messages, form).await
}
