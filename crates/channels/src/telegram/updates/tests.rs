use serde_json::json;

use super::*;

fn inbound(message: &Value) -> Inbound {
    let me = BotIdentity { id: 7, username: Some("muster_bot".to_owned()) };
    match decode(&json!({"update_id": 1, "message": message}), &me) {
        Ok(Some(Event::Message(inbound))) => *inbound,
        other => panic!("{other:?}"),
    }
}

fn group(text: &str, more: &Value) -> Value {
    let mut message = json!({"message_id": 3, "date": 1_700_000_000, "text": text,
        "from": {"id": 5, "is_bot": false, "first_name": "Ada", "last_name": "L"},
        "chat": {"id": -100, "type": "supergroup", "title": "Team"}});
    for (key, value) in more.as_object().unwrap() {
        message[key] = value.clone();
    }
    message
}

#[test]
fn in_a_group_only_mentions_are_read() {
    assert!(!inbound(&group("hello", &json!({}))).is_addressed);
    let named = json!({"entities": [{"type": "mention", "offset": 3, "length": 11}]});
    let named = inbound(&group("😀 @Muster_Bot hello", &named));
    assert!(named.is_addressed);
    assert_eq!(named.text, "😀  hello");
    let other = json!({"entities": [{"type": "mention", "offset": 0, "length": 6}]});
    assert!(!inbound(&group("@other hello", &other)).is_addressed);
    let reply =
        json!({"reply_to_message": {"message_id": 2, "from": {"id": 7, "is_bot": true, "first_name": "M"}}});
    let reply = inbound(&group("yes", &reply));
    assert!(reply.is_addressed);
    assert_eq!((reply.thread.refs, reply.context.as_str()), (vec!["-100:2".to_owned()], ""));
    assert_eq!(reply.answers.as_deref(), Some("-100:2"));
    let command = json!({"entities": [{"type": "bot_command", "offset": 0, "length": 18}]});
    assert_eq!(inbound(&group("/status@muster_bot now", &command)).text, "/status now");
}

#[test]
fn sender_and_target_are_read() {
    let message = inbound(&group("hello", &json!({"message_thread_id": 9, "is_topic_message": true})));
    assert_eq!(
        message.origin,
        Origin { id: "5".into(), place: Some("-100".into()), name: OneLine::name("Ada L") }
    );
    assert_eq!(message.thread.target, "-100/9");
    assert_eq!((message.key.as_deref(), message.thread.is_private), (Some("-100:3"), false));
}

#[test]
fn names_and_titles_are_on_one_line() {
    let forged = json!({
        "from": {"id": 5, "first_name": "Ada\u{202e}gro.evil", "last_name": "\nBob: pay"},
        "chat": {"id": -100, "type": "supergroup", "title": "Team\n\nBob: pay\u{2066}"}
    });
    let read = inbound(&group("hi", &forged));
    assert_eq!(read.origin.name.as_deref(), Some("Adagro.evil  Bob: pay"));
    assert_eq!(read.thread.title.as_deref(), Some("Team  Bob: pay"));
    let unseen = inbound(&group("hi", &json!({"from": {"id": 5, "first_name": "\u{200b}"}})));
    assert_eq!((unseen.origin.name.as_deref(), unseen.origin.author().as_deref()), (None, Some("5")));
}

#[test]
fn an_answer_goes_into_the_topic() {
    use super::super::outgoing::chat_address;
    let asked =
        json!({"message_thread_id": 9, "is_topic_message": true, "direct_messages_topic": {"topic_id": 5}});
    let target = inbound(&group("hello", &asked)).thread.target;
    assert_eq!(chat_address(&target).unwrap(), json!({"chat_id": -100, "direct_messages_topic_id": 5}));
    assert_eq!(chat_address("-100/9").unwrap(), json!({"chat_id": -100, "message_thread_id": 9}));
    assert!(chat_address("-100/direct-x").is_err());
}

#[test]
fn ids_numbered_per_bot_contain_the_bot() {
    for (kind, chat, named) in [("private", 5, "7/5"), ("group", -9, "7/-9"), ("supergroup", -100, "-100")] {
        let more = json!({"chat": {"id": chat, "type": kind}, "reply_to_message": {"message_id": 2}});
        let message = inbound(&group("yes", &more));
        let (own, answered) = (format!("{named}:3"), format!("{named}:2"));
        assert_eq!((message.key.as_ref(), message.vendor_id.as_ref()), (Some(&own), Some(&own)), "{kind}");
        assert_eq!(message.answers.as_ref(), Some(&answered), "{kind}");
        assert_eq!(message.thread.refs, [answered], "{kind}");
        assert_eq!(number_of(7, &own), Some(3), "{kind}");
    }
    assert_eq!((number_of(9, "7/5:3"), number_of(9, "-100:3")), (None, Some(3)));
}

#[test]
fn other_updates_are_ignored() {
    let me = BotIdentity { id: 7, username: None };
    let service = json!({"update_id": 1, "message": {"message_id": 1, "date": 1, "chat": {"id": 1, "type": "private"},
        "new_chat_members": []}});
    assert_eq!(decode(&service, &me), Ok(None));
    assert_eq!(decode(&json!({"update_id": 1, "poll": {}}), &me), Ok(None));
    assert!(matches!(decode(&json!({"message": 5}), &me), Err(Refusal::Malformed(_))));
    let moved = group("", &json!({"migrate_to_chat_id": -1009}));
    let expected = Event::Moved { from: "-100".into(), to: "-1009".into() };
    assert_eq!(decode(&json!({"message": moved}), &me), Ok(Some(expected)));
}

#[test]
fn files_come_with_their_caption() {
    let photo = json!({"text": null, "caption": "look", "photo": [{"file_id": "small"}, {"file_id": "large", "file_size": 9}]});
    let message = inbound(&group("", &photo));
    assert_eq!((message.text.as_str(), message.files.len()), ("look", 1));
    assert_eq!(message.files[0].content, Content::There("large".into()));
    let live = json!({"text": null, "live_photo": {"file_id": "moving", "duration": 2, "photo": [{"file_id": "still"}]}});
    let message = inbound(&group("", &live));
    let files: Vec<_> = message.files.iter().map(|file| (file.name.as_str(), file.content.clone())).collect();
    let at = |id: &str| Content::There(id.to_owned());
    assert_eq!(files, [("photo.jpg", at("still")), ("live photo.mp4", at("moving"))]);
}

#[test]
fn senders_on_behalf_of_a_chat_are_people() {
    let channel = json!({"id": -200, "type": "channel", "title": "News"});
    for (more, id, is_automatic) in [
        (
            json!({"from": {"id": 1_087_968_824, "is_bot": true, "first_name": "Group", "username": "GroupAnonymousBot"},
            "sender_chat": {"id": -100, "type": "supergroup", "title": "Team"}}),
            "-100",
            false,
        ),
        (
            json!({"from": {"id": 136_817_688, "is_bot": true, "first_name": "Channel", "username": "Channel_Bot"},
            "sender_chat": channel}),
            "-200",
            false,
        ),
        (
            json!({"from": {"id": 777_000, "is_bot": false, "first_name": "Telegram"}, "sender_chat": channel,
            "is_automatic_forward": true, "forward_origin": {"type": "channel", "chat": channel}}),
            "-200",
            true,
        ),
        (json!({"from": {"id": 9, "is_bot": true, "first_name": "Other"}}), "9", true),
        (json!({}), "5", false),
    ] {
        let message = inbound(&group("hello", &more));
        assert_eq!((message.origin.id.as_str(), message.is_automatic), (id, is_automatic), "{more}");
        assert_eq!(message.text, "hello");
    }
}

#[test]
fn edits_refer_to_the_original() {
    let me = BotIdentity { id: 7, username: None };
    let edited = json!({"update_id": 12, "edited_message": group("hello, world", &json!({"edit_date": 1_700_000_009}))});
    let Ok(Some(Event::Message(message))) = decode(&edited, &me) else { panic!("it is a message") };
    assert_eq!((message.vendor_id.as_deref(), message.key.as_deref()), (Some("-100:3"), Some("-100:3:12")));
    assert!(message.is_edit && message.album.is_none());
    assert_eq!((message.thread.refs, message.text.as_str()), (vec!["-100:3".to_owned()], "hello, world"));
    // An update of a live location.
    let moves = json!({"location": {"latitude": 1.5, "longitude": 2.5, "live_period": 900}, "text": null});
    assert_eq!(decode(&json!({"update_id": 13, "edited_message": group("", &moves)}), &me), Ok(None));
}

#[test]
fn channel_posts_belong_to_the_channel() {
    let me = BotIdentity { id: 7, username: Some("muster_bot".to_owned()) };
    let post = json!({"message_id": 3, "date": 1_700_000_000, "text": "@muster_bot hello", "author_signature": "Ada",
        "entities": [{"type": "mention", "offset": 0, "length": 11}],
        "sender_chat": {"id": -200, "type": "channel", "title": "News"}, "chat": {"id": -200, "type": "channel", "title": "News"}});
    for (name, is_edit) in [("channel_post", false), ("edited_channel_post", true)] {
        let Ok(Some(Event::Message(message))) = decode(&json!({"update_id": 1, name: post}), &me) else {
            panic!("{name}")
        };
        assert_eq!((message.is_edit, message.is_addressed, message.is_automatic), (is_edit, true, false));
        assert_eq!(
            message.origin,
            Origin { id: "-200".into(), place: Some("-200".into()), name: OneLine::name("Ada (News)") }
        );
        assert_eq!((message.text.as_str(), message.thread.target.as_str()), ("hello", "-200"));
    }
}

#[test]
fn a_mention_in_one_part_counts_for_the_album() {
    let me = BotIdentity { id: 7, username: Some("muster_bot".to_owned()) };
    let part = |id: i64, album: &str, caption: &str| {
        let named = json!([{"type": "mention", "offset": 0, "length": 11}]);
        let more = json!({"message_id": id, "media_group_id": album, "text": null, "caption": caption,
            "caption_entities": if caption.is_empty() { json!([]) } else { named },
            "photo": [{"file_id": "f"}]});
        decode(&json!({"update_id": id, "message": group("", &more)}), &me).unwrap().unwrap()
    };
    let mut events = vec![part(1, "a", ""), part(2, "a", "@muster_bot look"), part(3, "b", "")];
    address_albums(&mut events);
    let addressed: Vec<_> = events
        .iter()
        .map(|event| match event {
            Event::Message(message) => (message.album.as_deref().unwrap(), message.is_addressed),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(addressed, [("-100:a", true), ("-100:a", true), ("-100:b", false)]);
}

#[test]
fn only_a_mention_refers_to_the_replied_message() {
    let named = json!({"entities": [{"type": "mention", "offset": 0, "length": 11}],
        "reply_to_message": {"message_id": 2, "from": {"id": 6, "first_name": "Bob"}, "text": "It costs 5"}});
    let message = inbound(&group("@muster_bot", &named));
    assert_eq!(
        (message.text.as_str(), message.context.as_str()),
        ("", "[In answer to what Bob wrote]\n> It costs 5")
    );
    let me = BotIdentity { id: 7, username: Some("muster_bot".to_owned()) };
    let alone = json!({"entities": [{"type": "mention", "offset": 0, "length": 11}]});
    assert_eq!(decode(&json!({"update_id": 1, "message": group("@muster_bot", &alone)}), &me), Ok(None));
}

/// Samples in `tests/samples/telegram`.
#[test]
fn samples() {
    muster_samples::check("telegram", |bytes| {
        let me = BotIdentity { id: 7, username: Some("muster_bot".to_owned()) };
        let update: Value = muster_json::from_slice(bytes).unwrap();
        crate::samples::summarize(&decode(&update, &me))
    });
}
