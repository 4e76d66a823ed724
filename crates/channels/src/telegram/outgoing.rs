//! Sending, and reactions.

use reqwest::multipart::Form;
use serde_json::{Value, json};

use super::{
    api::Api,
    updates::{id_of, number_of},
};
use crate::{
    contract::{ActionCall, Attachment, Button, Failure, Part, Receipt},
    network::file_part,
    reaction::Reaction,
};

/// Telegram's error for tags that it can't parse.
const PARSE_ERROR: &str = "can't parse entities";
/// Telegram's error for an edit without changes.
const UNCHANGED_ERROR: &str = "message is not modified";
/// Telegram's error for an emoji that can't be a reaction, or that the chat doesn't allow.
const REACTION_ERROR: &str = "REACTION_INVALID";

/// Prefix of the topic of a channel's direct messages in a target.
pub const DIRECT_PREFIX: &str = "direct-";

/// Sends a text or one file.
pub async fn send(api: &Api, part: &Part<'_>) -> Result<Receipt, Failure> {
    match (part.files, part.replaces) {
        ([], None) => send_text(api, "sendMessage", part).await,
        ([], Some(replaced)) => edit_text(api, part, replaced).await,
        ([file], None) => send_document(api, part, file).await,
        _ => Err(Failure::Refused("Telegram takes one file a message.".into())),
    }
}

/// Sets our reaction to a message.
pub async fn react(api: &Api, call: &ActionCall<'_>) -> Result<Receipt, Failure> {
    let reaction = Reaction::read(call.arguments).map_err(Failure::Refused)?;
    let number = number_of(api.bot(), reaction.message(call)?);
    let number = number.ok_or_else(|| Failure::Refused("The message is another bot's.".into()))?;
    // Telegram knows its reactions without the mark that makes a character an emoji.
    let emoji = reaction.emoji.replace('\u{fe0f}', "");
    let address = chat_address(call.target)?;
    let reactions = json!([{"type": "emoji", "emoji": emoji}]);
    let parameters = json!({"chat_id": address["chat_id"], "message_id": number, "reaction": reactions});
    match api.call("setMessageReaction", &parameters).await {
        Err(Failure::Refused(cause)) if cause.as_str().contains(REACTION_ERROR) => {
            let why = format!("Telegram has no reaction \"{emoji}\", or the chat does not allow it.");
            Err(Failure::Refused(why.into()))
        }
        set => set.map(|_| Receipt::default()),
    }
}

/// Splits a target into chat and topic.
pub fn split_target(target: &str) -> (&str, Option<&str>) {
    match target.split_once('/') {
        Some((chat, topic)) => (chat, Some(topic)),
        None => (target, None),
    }
}

/// `chat_id` of a target, and the field of its topic.
pub fn chat_address(target: &str) -> Result<Value, Failure> {
    let (chat, topic) = split_target(target);
    let number = |text: &str| {
        text.parse::<i64>().map_err(|_| Failure::Refused("This is not a chat of Telegram.".into()))
    };
    let mut address = json!({"chat_id": number(chat)?});
    match topic.map(|topic| (topic, topic.strip_prefix(DIRECT_PREFIX))) {
        Some((_, Some(direct))) => address["direct_messages_topic_id"] = number(direct)?.into(),
        Some((topic, None)) => address["message_thread_id"] = number(topic)?.into(),
        None => {}
    }
    Ok(address)
}

async fn edit_text(api: &Api, part: &Part<'_>, replaced: &str) -> Result<Receipt, Failure> {
    match send_text(api, "editMessageText", part).await {
        Err(Failure::Refused(cause)) if cause.as_str().contains(UNCHANGED_ERROR) => {
            Ok(Receipt { vendor_id: Some(replaced.to_owned()), target: None })
        }
        other => other,
    }
}

/// Sends with tags; if Telegram rejects those, and thus sent nothing, without.
async fn send_text(api: &Api, method: &str, part: &Part<'_>) -> Result<Receipt, Failure> {
    let mut message = message_payload(api.bot(), part)?;
    message["text"] = part.text.text.as_str().into();
    message["parse_mode"] = "HTML".into();
    match api.call(method, &message).await {
        Err(Failure::Refused(cause)) if cause.as_str().contains(PARSE_ERROR) => {
            tracing::warn!(%cause, "a text is sent to Telegram without marks");
            message["text"] = part.text.plain.as_str().into();
            message["parse_mode"] = Value::Null;
            api.call(method, &message).await.map(|sent| read_receipt(api, &sent))
        }
        sent => sent.map(|sent| read_receipt(api, &sent)),
    }
}

fn message_payload(bot: i64, part: &Part<'_>) -> Result<Value, Failure> {
    let mut message = chat_address(part.target)?;
    message["link_preview_options"] = json!({"is_disabled": true});
    if let Some(replaced) = part.replaces {
        let number = number_of(bot, replaced);
        let number = number.ok_or_else(|| Failure::Refused("The message is another bot's.".into()))?;
        message["message_id"] = number.into();
    } else if let Some(answered) = part.reply_to.and_then(|id| number_of(bot, id)) {
        message["reply_parameters"] = json!({"message_id": answered, "allow_sending_without_reply": true});
    }
    // Even without buttons: an edit without markup removes those of the message.
    let row = |button: &Button| json!([{"text": button.label, "callback_data": button.value}]);
    if !part.buttons.is_empty() || part.replaces.is_some() {
        message["reply_markup"] =
            json!({"inline_keyboard": part.buttons.iter().map(row).collect::<Vec<_>>()});
    }
    Ok(message)
}

async fn send_document(api: &Api, part: &Part<'_>, file: &Attachment) -> Result<Receipt, Failure> {
    let address = chat_address(part.target)?;
    let mut form = Form::new().part("document", file_part(file)?);
    for (name, value) in address.as_object().into_iter().flatten() {
        form = form.text(name.clone(), value.to_string());
    }
    if let Some(answered) = part.reply_to.and_then(|id| number_of(api.bot(), id)) {
        let reply = json!({"message_id": answered, "allow_sending_without_reply": true});
        form = form.text("reply_parameters", reply.to_string());
    }
    api.upload("sendDocument", form).await.map(|sent| read_receipt(api, &sent))
}

fn read_receipt(api: &Api, sent: &Value) -> Receipt {
    let (chat, kind) = (sent["chat"]["id"].as_i64(), sent["chat"]["type"].as_str().unwrap_or_default());
    // A long video gets its number later.
    let ids = chat.zip(sent["message_id"].as_i64().filter(|number| *number > 0));
    Receipt { vendor_id: ids.map(|(chat, number)| id_of(api.bot(), (chat, kind), number)), target: None }
}
