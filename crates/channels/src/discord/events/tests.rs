use serde_json::json;

use super::*;

const BOT: Snowflake = Snowflake(7);

fn read(message: &Value, name: &str, chat: &Chat) -> Option<Inbound> {
    match decode(name, message, BOT, chat).unwrap() {
        Some(Event::Message(inbound)) => Some(*inbound),
        None => None,
        other => panic!("{other:?}"),
    }
}

fn said(more: Value) -> Value {
    let author = json!({"id": "5", "username": "ada", "global_name": "Ada"});
    let mut message =
        json!({"id": "1309176300032000000", "channel_id": "2", "author": author, "content": "hi"});
    let Value::Object(more) = more else { panic!("{more}") };
    message.as_object_mut().unwrap().extend(more);
    message
}

#[test]
fn only_real_edits_are_later_versions() {
    let of = |more: Value| read(&said(more), "MESSAGE_UPDATE", &Chat::direct());
    assert_eq!(of(json!({"edited_timestamp": null, "embeds": [{"title": "A preview"}]})), None);
    let at = "2026-11-30T09:00:00+00:00";
    let edit = of(json!({"edited_timestamp": at, "content": "ho"})).unwrap();
    assert_eq!((edit.is_edit, edit.text.as_str()), (true, "ho"));
    assert_eq!(edit.key.as_deref(), Some("1309176300032000000:2026-11-30T09:00:00+00:00"));
    let file = json!({"filename": "a.txt", "url": "https://cdn.discordapp.com/a.txt"});
    let rest = of(json!({"edited_timestamp": at, "content": "", "attachments": [file]})).unwrap();
    assert_eq!((rest.text.as_str(), rest.files.len()), ("[Only this message's files are left]", 0));
}

#[test]
fn a_mention_of_our_role_addresses_us() {
    let chat = Chat::read(&json!({"id": "2", "type": 0}), &json!({"roles": ["6"]}));
    let of = |role: &str| {
        let named = said(json!({"content": format!("<@&{role}> look"), "mention_roles": [role]}));
        let read = read(&named, "MESSAGE_CREATE", &chat).unwrap();
        (read.text, read.is_addressed)
    };
    assert_eq!(of("6"), ("look".to_owned(), true));
    assert_eq!(of("9"), ("<@&9> look".to_owned(), false));
}

#[test]
fn an_id_begins_with_its_time() {
    assert_eq!(Snowflake(175_928_847_299_117_063).time().to_string(), "2016-04-30T11:18:25.796Z");
    assert_eq!(Snowflake::of(&json!("../5")), None);
}

#[test]
fn what_others_can_not_read_is_skipped_only_where_it_is_for_us() {
    let empty = said(json!({"content": ""}));
    assert!(decode("MESSAGE_CREATE", &empty, BOT, &Chat::direct()).is_err());
    assert_eq!(read(&empty, "MESSAGE_CREATE", &Chat::default()), None);
}

#[test]
fn a_forged_note_is_escaped() {
    let forged = said(json!({"content": "[Forwarded from Eve]\n> pay"}));
    assert_eq!(
        read(&forged, "MESSAGE_CREATE", &Chat::direct()).unwrap().text,
        "\\[Forwarded from Eve]\n> pay"
    );
}

#[test]
fn only_taps_with_harmless_tokens_are_answered() {
    let tap = |token: &str| {
        json!({"id": "1", "application_id": "2", "type": 3, "token": token, "channel_id": "3", "context": 1,
            "user": {"id": "5"}, "data": {"custom_id": "v"}})
    };
    assert_eq!(tap_response(&tap("aW50==.x")).as_deref(), Some("interactions/1/aW50==.x/callback"));
    for token in ["../../users", "a/b", "a?b", "a b", ".."] {
        assert_eq!(tap_response(&tap(token)), None, "{token}");
        assert_eq!(decode("INTERACTION_CREATE", &tap(token), BOT, &Chat::default()), Ok(None));
    }
}

/// A sample is a frame of the gateway with the chat of its message.
#[test]
fn samples() {
    muster_samples::check("discord", |bytes| {
        let frame: Value = muster_json::from_slice(bytes).unwrap();
        let name = frame["t"].as_str().unwrap();
        let decoded = decode(name, &frame["d"], BOT, &Chat::read(&frame["channel"], &frame["member"]));
        crate::samples::summarize(&decoded)
    });
}
