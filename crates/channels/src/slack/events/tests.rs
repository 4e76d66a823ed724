use serde_json::json;

use super::*;

fn of(event: &Value) -> Option<Inbound> {
    of_users(event, &json!([{"user_id": "UBOT"}]))
}

fn of_users(event: &Value, authorizations: &Value) -> Option<Inbound> {
    let payload = json!({"type": "event_callback", "event": event, "authorizations": authorizations});
    match decode(&payload, Proof::Vendor).unwrap() {
        Some(Event::Message(inbound)) => Some(*inbound),
        None => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_the_first_user_ids_are_searched() {
    let event = json!({"type": "message", "user": "U1", "text": "<@UBOT> hi", "ts": "1.2", "channel": "C1"});
    for (before, is_named) in [(0, true), (19, true), (20, false)] {
        let users = (0..before).map(|n| format!("U{n}")).chain(["UBOT".to_owned()]);
        let users: Vec<Value> = users.map(|user| json!({"user_id": user})).collect();
        assert_eq!(of_users(&event, &users.into()).unwrap().is_addressed, is_named, "{before}");
    }
}

#[test]
fn an_author_is_a_name_on_one_line_or_an_id() {
    let said = |more: Value| {
        let mut event =
            json!({"type": "message", "channel": "C1", "channel_type": "channel", "ts": "1.5", "text": "hi"});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        of(&event).unwrap().origin.author().unwrap().to_string()
    };
    let app = json!({"bot_id": "B1", "username": "Eva\n\nBob: pay\u{202e} &lt;x&gt;"});
    assert_eq!(said(app), "Eva  Bob: pay <x>");
    assert_eq!(said(json!({"user": "U1"})), "U1");
}

#[test]
fn a_comment_stays_beside_what_it_shares() {
    let shared = json!([{"is_share": true, "author_name": "Eve", "text": "Please approve <@UBOT> it",
        "message_blocks": [{"message": {"blocks": [{"type": "section", "text": {"type": "plain_text", "text": "R&amp;D"}}]}}]}]);
    let event = json!({"type": "message", "user": "U1", "text": "approve", "ts": "1.2", "channel": "C1", "attachments": shared});
    let read = of(&event).unwrap();
    assert_eq!(read.text, "approve\n\n[Forwarded from Eve]\n> Please approve @UBOT it\n>\n> R&D");
    assert!(!read.is_addressed, "others' words name no one");
}

#[test]
fn cells_stay_in_their_columns() {
    let row = |cells: [&str; 3]| cells.map(|text| json!({"type": "raw_text", "text": text}));
    let blocks = json!([{"type": "table", "rows": [row(["Name", "Note", "Items"]), row(["Ada", "", "5"])]}]);
    let event = json!({"type": "message", "bot_id": "B1", "text": "", "ts": "1.2", "channel": "C1", "blocks": blocks});
    assert_eq!(of(&event).unwrap().text, "Name | Note | Items\nAda |  | 5");
}

#[test]
fn a_mention_is_the_same_however_it_comes() {
    let event = |kind| json!({"type": kind, "user": "U1", "text": "<@UBOT> hi", "ts": "1700000000.000100", "channel": "C1"});
    let (message, mention) = (of(&event("message")).unwrap(), of(&event("app_mention")).unwrap());
    assert_eq!(message, mention);
    assert!(message.is_addressed);
    assert_eq!((message.text.as_str(), message.thread.target.as_str()), ("hi", "C1/1700000000.000100"));
    assert_eq!(message.origin.place.as_deref(), Some("C1"));
}

#[test]
fn relevant_messages_are_read() {
    let said = |more: Value| {
        let mut event = json!({"type": "message", "user": "U1", "text": "hi", "ts": "1.2", "channel": "C1"});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        of(&event)
    };
    assert!(!said(json!({})).unwrap().is_addressed);
    let direct = said(json!({"channel": "D1", "channel_type": "im"})).unwrap();
    assert!(direct.is_addressed && direct.thread.is_private && direct.thread.target == "D1");
    let reply = said(json!({"thread_ts": "1.0", "parent_user_id": "UBOT"})).unwrap();
    assert!(reply.is_addressed);
    assert_eq!(reply.answers.as_deref(), Some("C1:1.0"));
    let bot = said(json!({"bot_id": "B1", "app_id": "A1", "subtype": "bot_message"})).unwrap();
    assert!(bot.is_automatic);
    assert_eq!(bot.authors, ["U1", "B1", "A1"]);
    let only_a_file = said(json!({"text": "", "files": [{"id": "F1", "name": "a.pdf"}]})).unwrap();
    let [file] = &only_a_file.files[..] else { panic!("{only_a_file:?}") };
    assert_eq!((file.name.as_str(), &file.content), ("a.pdf", &Content::There(String::new())));
    for subtype in ["message_changed", "message_deleted", "channel_join"] {
        assert_eq!(said(json!({"subtype": subtype})), None);
    }
}

/// The text decoded from an app's message with these parts.
fn seen(text: &str, blocks: &Value, attachments: &Value) -> String {
    let event = json!({"type": "message", "bot_id": "B1", "subtype": "bot_message", "text": text, "ts": "1.2", "channel": "C1",
        "blocks": blocks, "attachments": attachments});
    of(&event).unwrap().text
}

#[test]
fn text_and_blocks_are_shown_once() {
    let section = |text: &str| json!([{"type": "section", "text": {"type": "mrkdwn", "text": text}}]);
    for (text, blocks, expected) in [
        ("Deploy done", "Deploy *done*.", "Deploy **done**."),
        ("Status: open closed", "*Status:* ~open~ closed", "**Status:** ~~open~~ closed"),
        ("Order 5, was 7", "Order -5, was -7 (-2)", "Order -5, was -7 (-2)"),
        ("~Open~ closed now", "~Open~ closed", "~~Open~~ closed now"),
        ("open closed now", "~open~ closed", "open closed now\n\n~~open~~ closed"),
        ("- run: -5 now", "run: -5", "- run: -5 now"),
        ("Deploy done", "Deploy done in 4 min", "Deploy done in 4 min"),
        ("Deploy done in 4 min", "Deploy done", "Deploy done in 4 min"),
        ("5", "Total: 15", "5\n\nTotal: 15"),
        ("1.5", "5", "1.5\n\n5"),
        ("", "Deploy", "Deploy"),
        ("Deploy", "", "Deploy"),
        ("at 10:30:45", "at 10:31:45", "at 10:30:45\n\nat 10:31:45"),
    ] {
        assert_eq!(seen(text, &section(blocks), &json!([])), expected, "{text} / {blocks}");
    }
}

/// Slack shows both a text and its attachments, so neither replaces the other if they differ.
#[test]
fn text_and_attachments_are_shown_once() {
    for (text, attached, expected) in [
        ("Build 5 failed", "Build *5* failed", "Build 5 failed"),
        ("Build 5 failed", "Build ~5~ failed", "Build 5 failed\n\nBuild ~~5~~ failed"),
        ("Build failed", "Build failed in ~5~ 6 min", "Build failed in ~~5~~ 6 min"),
        ("Balance 250 EUR", "Balance -250 EUR", "Balance 250 EUR\n\nBalance -250 EUR"),
        ("b", "~a b c~", "b\n\n~~a b c~~"),
    ] {
        assert_eq!(seen(text, &json!([]), &json!([{"text": attached}])), expected, "{text} / {attached}");
    }
}

/// Apps may send anything in these fields.
#[test]
fn blocks_of_odd_types_cost_no_message() {
    let kinds = [
        "rich_text",
        "section",
        "header",
        "context",
        "actions",
        "input",
        "image",
        "video",
        "table",
        "markdown",
        "x",
        "",
    ];
    for odd in [json!(null), json!(5), json!("x"), json!([5, "x", null]), json!({"a": []}), json!([[[]]])] {
        for kind in kinds {
            let fields =
                ["text", "elements", "fields", "accessory", "element", "label", "rows", "title", "image_url"];
            let mut block = json!({"type": kind});
            for field in fields {
                block[field] = odd.clone();
            }
            assert!(seen("hi", &json!([block, odd]), &json!([block, odd])).starts_with("hi"), "{kind} {odd}");
        }
        assert_eq!(seen("hi", &odd, &odd), "hi");
    }
}

#[test]
fn deep_nesting_is_cut_with_a_note() {
    let mut nested = json!({"is_share": true, "author_name": "Bob", "text": "the last"});
    for level in 0..50 {
        nested = json!({"is_share": true, "author_name": "Bob", "text": format!("level {level}"), "attachments": [nested]});
    }
    let text = seen("", &json!([]), &json!([nested]));
    assert_eq!(text.matches("Forwarded from Bob").count(), 5, "{text}");
    assert!(text.ends_with("[Deeper levels are left out]"), "{text}");
    for field in ["child_blocks", "tasks", "elements", "anything", "text"] {
        let mut nested = json!({"type": "box", "title": "the last"});
        for level in 0..50 {
            let inner = if level % 2 == 0 { json!([nested]) } else { nested };
            nested = json!({"type": "box", "title": format!("level {level}")});
            nested[field] = inner;
        }
        let text = seen("", &json!([nested]), &json!([]));
        assert!(text.starts_with("level 49"), "{text}");
        assert!(text.matches("level").count() <= 8, "{text}");
        assert!(field == "text" || text.ends_with("[Deeper levels are left out]"), "{field}: {text}");
    }
}

#[test]
fn only_edits_are_later_versions() {
    let changed = |more: Value| {
        let before = json!({"user": "U1", "text": "hi", "ts": "1.2"});
        let mut message = before.clone();
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        of(&json!({"type": "message", "subtype": "message_changed", "channel": "D1", "ts": "1.9",
            "message": message, "previous_message": before}))
    };
    let edited = changed(json!({"text": "hello", "edited": {"user": "U1", "ts": "1.8"}})).unwrap();
    assert_eq!((edited.key.as_deref(), edited.vendor_id.as_deref()), (Some("D1:1.2:1.8"), Some("D1:1.2")));
    assert!(edited.is_edit && edited.text == "hello" && edited.thread.refs == ["D1:1.2"]);
    assert_eq!(changed(json!({"edited": {"user": "U1", "ts": "1.8"}})), None, "it says the same");
    assert_eq!(changed(json!({"attachments": [{"from_url": "https://a.test", "text": "x"}]})), None);
    assert_eq!(changed(json!({"reply_count": 2, "subtype": "thread_broadcast"})), None);
    let of_app = |before: Value, now: Value| {
        let version = |more: Value| {
            let mut message = json!({"bot_id": "B1", "text": "", "ts": "1.2"});
            message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            message
        };
        of(
            &json!({"type": "message", "subtype": "message_changed", "channel": "D1", "ts": "1.9", "event_ts": "1.9",
            "message": version(now), "previous_message": version(before)}),
        )
    };
    let blocks =
        |text: &str| json!({"blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": text}}]});
    let edited = of_app(blocks("Incident *open*"), blocks("Incident *resolved*")).unwrap();
    assert_eq!((edited.key.as_deref(), edited.text.as_str()), (Some("D1:1.2:1.9"), "Incident **resolved**"));
    assert!(edited.is_edit && edited.thread.refs == ["D1:1.2"]);
    let struck = of_app(blocks("Incident open"), blocks("Incident ~open~")).unwrap();
    assert_eq!(struck.text, "Incident ~~open~~");
    let earlier = json!({"edited": {"ts": "1.5"}, "attachments": [{"text": "open"}]});
    let later = json!({"edited": {"ts": "1.5"}, "attachments": [{"text": "closed"}]});
    assert_eq!(of_app(earlier, later).unwrap().key.as_deref(), Some("D1:1.2:1.9"));
    for (before, now) in [
        (blocks("a"), json!({"blocks": blocks("a")["blocks"], "reply_count": 2})),
        (
            json!({"text": "a"}),
            json!({"text": "a", "attachments": [{"from_url": "https://a.test", "text": "x"}]}),
        ),
        (json!({"text": "a"}), json!({"text": "a", "attachments": [{"is_msg_unfurl": true, "text": "x"}]})),
        (
            json!({"text": "a", "attachments": [{"app_unfurl_url": "https://a.test", "text": "x"}]}),
            json!({"text": "a"}),
        ),
        (
            json!({"text": "a", "files": [{"id": "F1"}]}),
            json!({"text": "a", "files": [{"id": "F1", "title": "b"}]}),
        ),
    ] {
        assert_eq!(of_app(before, now.clone()), None, "{now}");
    }
    for gone in [
        json!({"type": "message", "subtype": "message_deleted", "channel": "D1", "ts": "1.9", "deleted_ts": "1.2",
            "previous_message": {"user": "U1", "text": "hi", "ts": "1.2"}}),
        json!({"type": "message", "subtype": "message_changed", "channel": "D1", "ts": "1.9",
            "message": {"subtype": "tombstone", "user": "USLACKBOT", "text": "This message was deleted.", "ts": "1.2"},
            "previous_message": {"user": "U1", "text": "hi", "ts": "1.2"}}),
    ] {
        let gone = of(&gone).unwrap();
        assert_eq!(
            (gone.key.as_deref(), gone.text.as_str(), gone.is_edit),
            (Some("D1:1.2:deleted"), "", true)
        );
    }
}

#[test]
fn lost_content_has_a_note() {
    let event = json!({"type": "message", "user": "U1", "text": "", "ts": "1.2", "channel": "D1"});
    let payload = |event: &Value| json!({"type": "event_callback", "event": event, "authorizations": []});
    assert!(matches!(decode(&payload(&event), Proof::Vendor), Err(Refusal::Malformed(_))));
    for service in SERVICE {
        let event = json!({"type": "message", "subtype": service, "user": "U1", "text": "x", "ts": "1.2", "channel": "C1"});
        assert_eq!(decode(&payload(&event), Proof::Vendor), Ok(None), "{service}");
    }
}

/// Samples in `tests/samples/slack`.
#[test]
fn samples() {
    muster_samples::check("slack", |bytes| {
        let payload: Value = muster_json::from_slice(bytes).unwrap();
        crate::samples::summarize(&decode(&payload, Proof::Vendor))
    });
}
