//! No parser of this crate aborts the process on hostile input, or takes more memory than a small multiple of its
//! length. Nesting, repetition and long words are generated.
//!
//! Inputs run on a thread with a worker's stack, in sizes up to 1 MB; `MUSTER_HOSTILE_BYTES` (20 MB in `tests/soak`)
//! sets another size.

use std::{cell::Cell, env, fs, thread, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::HeaderMap;
use jiff::Timestamp;
use muster_addresses::Addresses;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::{
    Attention, CodeHostRules, Dialect, Kind, Longest, MailServer, Network, Proof, RawRequest, Software, Unit,
    VendorUrls, calendar, code_host,
    dav::Multistatus,
    discord, drive,
    email::{self, MailContext},
    render, slack, telegram, traits, webhook,
};

/// Memory per byte of input.
const MEMORY_PER_BYTE: usize = 10;

const NESTING: [&str; 22] = [
    "(",
    "[",
    "{\"a\":",
    "[[",
    "<div>",
    "<!--",
    "> ",
    "- ",
    "**a ",
    "`",
    "\"",
    "\\",
    "Content-Type:message/rfc822\r\n\r\n",
    "Content-Type:multipart/mixed;boundary=a\r\n\r\n--a\r\n",
    "Content-Type:multipart/alternative;boundary=a\r\n\r\n--a\r\n",
    "Content-Type:multipart/alternative;boundary=a\r\n\r\n--a\r\n\r\na\r\n--a\r\n",
    "Content-Type:multipart/related;boundary=a;start=b;type=\"text/html\"\r\n\r\n--a\r\nContent-ID:<b>\r\n",
    "Content-Type:multipart/digest;boundary=a\r\n\r\n--a\r\n\r\n",
    "(\"a\" {1}\r\n(",
    "=?utf-8?q?",
    "=?aa?q?z",
    "a(b\\)",
];
const REPETITION: [&str; 16] = [
    "a",
    "a: b\r\n",
    "a:\r\n b",
    "--a\r\n\r\n",
    "a@b.test, ",
    "\"a\" <a@b.test> (c), ",
    "<a@b.test> ",
    "=?utf-8?q?=41?= ",
    "&amp;",
    "1 ",
    "{0}\r\n",
    "\r\n",
    "\0",
    "250-\r\n",
    "a=b; ",
    "ä",
];

#[expect(clippy::disallowed_methods, reason = "tests/soak asks for longer ones")]
fn input_sizes() -> Vec<usize> {
    match env::var("MUSTER_HOSTILE_BYTES").ok().and_then(|bytes| bytes.parse().ok()) {
        Some(bytes) => vec![bytes],
        None => vec![1 << 10, 32 << 10, 1 << 20],
    }
}

fn inputs(bytes: usize) -> impl Iterator<Item = String> {
    NESTING.iter().chain(&REPETITION).map(move |piece| piece.repeat(bytes / piece.len()))
}

/// The process's memory in bytes: now, and the peak since the last call.
fn memory() -> (usize, usize) {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    };
    let both = (of("VmRSS:"), of("VmHWM:"));
    // Resets the peak.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    both
}

fn check_all(
    name: &str,
    wrapped: impl Fn(String) -> Vec<String>,
    read: impl Fn(String) + Send + Clone + 'static,
) {
    for bytes in input_sizes() {
        for text in inputs(bytes).flat_map(&wrapped) {
            check(name, text, MEMORY_PER_BYTE, read.clone());
        }
    }
}

/// One form per long shape instead of all of them: short ones cover every form. `tests/soak` covers all.
fn sample_long_forms(wrapped: impl Fn(String) -> Vec<String>) -> impl Fn(String) -> Vec<String> {
    let (nth, is_quick) = (Cell::new(0), input_sizes().len() > 1);
    move |shape| {
        let is_long = is_quick && shape.len() > 1 << 19;
        let mut forms = wrapped(shape);
        if is_long {
            nth.set(nth.get() + 1);
            forms = vec![forms.swap_remove(nth.get() % forms.len())];
        }
        forms
    }
}

/// Parses a text on a thread like a worker's, within `multiple` times its length.
fn check(name: &str, text: String, multiple: usize, read: impl Fn(String) + Send + 'static) {
    let (length, begin) = (text.len(), format!("{:.50}", text.replace('\0', "")));
    let (before, _) = memory();
    let thread = thread::Builder::new().stack_size(2 << 20).spawn(move || read(text)).unwrap();
    thread.join().unwrap_or_else(|_| panic!("{name} panics: {begin}"));
    let taken = memory().1.saturating_sub(before);
    // Allowance for tables and for memory that the allocator retains.
    assert!(taken <= multiple * length + (48 << 20), "{name} takes {taken} bytes for {length}: {begin}");
}

fn block_on(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(future);
}

#[test]
fn mails() {
    let from = "From: ada@a.test\r\n";
    let wrapped = |shape: String| {
        let nested = STANDARD.encode(format!("Content-Type:message/rfc822\r\n\r\n{shape}"));
        vec![
            format!("{from}{shape}"),
            format!("{from}Subject: {shape}\r\nTo: {shape}\r\nReferences: {shape}\r\n\r\nhi"),
            format!("From: {shape}\r\n\r\nhi"),
            format!("{from}Authentication-Results: mx.b.test; {shape}\r\n\r\n{shape}"),
            format!("{from}Content-Type: text/html\r\n\r\n{shape}"),
            format!("{from}Content-Type: text/plain; a={shape}\r\nContent-Disposition: {shape}\r\n\r\nhi"),
            format!("{from}Content-Type: application/pdf; name*0*={shape}\r\n\r\nhi"),
            format!(
                "{from}Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\n{shape}\r\n--a\r\n\r\n{shape}"
            ),
            format!(
                "{from}Content-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\n{nested}"
            ),
            format!(
                "{from}Content-Type: text/plain\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n{shape}"
            ),
            format!(
                "{from}Content-Type: multipart/report; boundary=b\r\n\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\n\
                 Action: failed\r\n{shape}\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n{shape}"
            ),
        ]
    };
    check_all("mail", wrapped, |text| {
        let now = Timestamp::UNIX_EPOCH;
        let context = MailContext { labels: Vec::new(), authserv_id: Some("mx.b.test".to_owned()), now };
        drop(email::decode_event(&Bytes::from(text), context));
    });
}

/// HTML, events and parameters, aimed at the mail readers' special cases.
const MAIL_TEXTS: [(&str, &[&str]); 4] = [
    (
        "text/html",
        &[
            "<blockquote>a",
            "<li>a<br>",
            "<ol><li>a",
            "<ol type=i start=3999><li>a<br>b",
            "<ol start=9999><li>a<br>b",
            "<ol start=4294967295><li value=99999999999999999999>a",
            "<li value=-2147483648>a",
            "<ol><li>a</ol>",
            "<br>&nbsp;a",
            "&nbsp;",
            "<div id=appendonsend>",
            "<img src=data:image/png;base64,aaaaaaaa>",
            ";base64,",
            "<table><tr><td>a",
            "<td>a<td><br>",
            "<a href=http://b>c",
            "<a href=http://b><table><tr><td>c",
            "<i></b>a",
            "<b style=display:none>a",
            "<div id=divRplyFwdMsg>a",
            "<pre>a\n\n",
            "<p>a</div>",
            "<img alt=a>",
            "<div a b=c d",
            "<a b='",
            "&zwnj;&nbsp;",
            "&#1;&notit",
            "<!--->",
            "<svg><title>",
        ],
    ),
    (
        "text/calendar",
        &[
            "BEGIN:VEVENT\r\nATTENDEE:a\r\nDURATION:P1D\r\n",
            "BEGIN:VEVENT\r\n",
            "SUMMARY:a\r\n",
            " a\r\n",
            "A;B=\"c:",
            "ATTENDEE:a\r\nEND:VEVENT\r\n",
        ],
    ),
    ("text/plain; format=flowed; delsp=yes", &["> a \r\n", "a \r\n", ">", " \r\n", ">> \r\n> \r\n"]),
    ("text/plain; charset=hz-gb-2312", &["~{a~}", "~", "~~", "~{", "\x1b$)C"]),
];

#[test]
fn mail_texts() {
    for bytes in input_sizes() {
        for (kind, pieces) in MAIL_TEXTS {
            for piece in pieces {
                let text = piece.repeat(bytes / piece.len());
                let mail = format!("From: ada@a.test\r\nContent-Type: {kind}\r\n\r\n{text}");
                let begun = std::time::Instant::now();
                check(kind, mail, MEMORY_PER_BYTE, |mail| {
                    let now = Timestamp::UNIX_EPOCH;
                    let context = MailContext { labels: Vec::new(), authserv_id: None, now };
                    drop(email::decode_event(&Bytes::from(mail), context));
                });
                assert!(
                    begun.elapsed() < Duration::from_secs(60),
                    "{kind}: {piece} takes {:?}",
                    begun.elapsed()
                );
            }
        }
    }
}

#[test]
fn imap_servers() {
    let wrapped = |shape: String| {
        vec![
            format!("{shape}\r\n"),
            format!("* OK {shape}\r\n"),
            format!("* SEARCH {shape}\r\n"),
            format!("* CAPABILITY {shape}\r\n"),
            format!("* 1 FETCH (BODYSTRUCTURE {shape}"),
            format!("* 1 FETCH (FLAGS ({shape}) INTERNALDATE \"{shape}\" UID 5)\r\n"),
            format!("* 1 FETCH (UID 5 BODY[] {{{}}}\r\n{shape})\r\n", shape.len()),
            format!("A1 NO {shape}\r\n"),
        ]
    };
    check_all("IMAP", wrapped, |text| {
        block_on(async { drop(email::parse_stream(text.as_bytes(), 64 << 10).await) });
    });
}

#[test]
fn calendar_servers() {
    let wrapped = |shape: String| {
        let data = format!(
            "<d:multistatus xmlns:d=\"DAV:\" xmlns:c=\"urn:ietf:params:xml:ns:caldav\"><d:response>\
            <d:href>{shape}</d:href><d:propstat><d:prop><c:calendar-data>{shape}</c:calendar-data></d:prop>"
        );
        let attributes = "xmlns:a='b' ".repeat(shape.len() / 12);
        vec![
            shape.clone(),
            data,
            format!("<a {shape}"),
            format!("<a {attributes}>"),
            format!("<![CDATA[{shape}"),
            format!("<!DOCTYPE a [<!ENTITY a \"{shape}\">]><a>&a;</a>"),
        ]
    };
    check_all("WebDAV", sample_long_forms(wrapped), |text| drop(Multistatus::read(text.as_bytes())));
    for element in [
        "<d:response/>",
        "<d:response>",
        "<d:response><d:propstat><d:prop><d:getetag/></d:prop></d:propstat></d:response>",
    ] {
        let text = format!(
            "<d:multistatus xmlns:d=\"DAV:\">{}</d:multistatus>",
            element.repeat((1 << 20) / element.len())
        );
        check("WebDAV", text, MEMORY_PER_BYTE, |text| drop(Multistatus::read(text.as_bytes())));
    }
    let object = |shape: String| {
        let line =
            |name: &str| format!("BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20261201T100000Z\n{name}:{shape}\n");
        ["RRULE", "EXDATE", "RDATE", "ATTENDEE", "CATEGORIES", "RECURRENCE-ID"].map(line).to_vec()
    };
    check_all("iCalendar", sample_long_forms(object), |text| drop(calendar::decode(&text)));
    let event = |shape: String| {
        let person = json!({ "email": &shape, "displayName": &shape, "responseStatus": &shape });
        let event = json!({ "id": "1", "summary": &shape, "start": { "date": &shape }, "recurrence": [&shape],
            "end": { "dateTime": "2026-12-01T10:00:00Z", "timeZone": &shape }, "attendees": [&person], "organizer": person });
        vec![event.to_string()]
    };
    check_all("Google Calendar", sample_long_forms(event), |text| {
        let event = muster_json::from_str::<Value>(&text).unwrap();
        drop(calendar::decode(&calendar::to_icalendar(&event)));
    });
}

#[expect(clippy::disallowed_methods, reason = "no scope here, and no clock that a test moves")]
fn network() -> Network {
    let nowhere = || "http://127.0.0.1:9/".parse::<url::Url>().unwrap();
    let vendors = VendorUrls {
        discord: nowhere(),
        discord_files: nowhere(),
        slack: nowhere(),
        slack_files: nowhere(),
        telegram: nowhere(),
        google_accounts: nowhere(),
        google_tokens: nowhere(),
        google_api: nowhere(),
        github: nowhere(),
        github_api: nowhere(),
    };
    let addresses = Addresses::new(vec!["127.0.0.0/8".parse().unwrap()]);
    Network::new(addresses, vendors, Timestamp::now, muster_certificates::of(&[])).unwrap()
}

#[test]
fn smtp_servers() {
    let wrapped = |shape: String| vec![format!("220 {shape}\r\n"), format!("220-{shape}\r\n220 hi\r\n")];
    let network = network();
    check_all("SMTP", wrapped, move |text| {
        let begun = std::time::Instant::now();
        block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = listener.local_addr().unwrap().port();
            let speaking = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                drop(stream.write_all(text.as_bytes()).await);
                drop(stream.shutdown().await);
                drop(stream.read_to_end(&mut Vec::new()).await);
            };
            let server = MailServer { host: "127.0.0.1".to_owned(), port, login: None, tls: false };
            let (tried, ()) = tokio::join!(email::check_login(&network, &server), speaking);
            assert!(tried.is_err());
        });
        assert!(begun.elapsed() < Duration::from_secs(5), "it took {:?}", begun.elapsed());
    });
}

#[test]
fn vendor_requests() {
    let as_is =
        |shape: String| vec![json!({ "text": &shape, "sender": { "id": &shape } }).to_string(), shape];
    check_all("webhook", sample_long_forms(as_is), |text| {
        let request = RawRequest { headers: &HeaderMap::new(), body: text.as_bytes() };
        drop(webhook::decode(&request, &["sender.id".to_owned()], Timestamp::UNIX_EPOCH));
    });
    let event = |shape: String| {
        let text = json!({ "type": "message", "text": shape, "channel": "C", "user": "U", "ts": "1.2" });
        let section = json!({ "type": "section", "text": { "type": "mrkdwn", "text": &shape } });
        let shared = json!({ "is_share": true, "attachments": [{ "is_share": true, "text": &shape }] });
        let shown = json!({ "type": "message", "channel": "C", "user": "U", "bot_id": "B", "ts": "1.2",
            "blocks": [section], "attachments": [shared] });
        let whole = |event: Value| json!({ "type": "event_callback", "event": event }).to_string();
        vec![whole(text), whole(shown)]
    };
    check_all("Slack", sample_long_forms(event), |text| {
        let value = muster_json::from_str::<Value>(&text).unwrap();
        drop(slack::decode(&value, Proof::Vendor));
    });
    let update = |shape: String| {
        let message = json!({
            "message_id": 1, "date": 1, "text": &shape, "chat": { "id": 1, "type": "private" },
            "from": { "id": 1, "is_bot": false, "first_name": &shape },
            "entities": [{ "type": "mention", "offset": 0, "length": 1 }],
        });
        let mut answer = message.clone();
        answer["forward_origin"] = json!({ "type": "hidden_user", "sender_user_name": "Bob" });
        answer["entities"] = json!([
            { "type": "blockquote", "offset": 0, "length": shape.len() },
            { "type": "pre", "offset": 0, "length": shape.len(), "language": "a" },
        ]);
        [message, answer].map(|message| json!({ "update_id": 1, "message": message }).to_string()).to_vec()
    };
    check_all("Telegram", sample_long_forms(update), |text| {
        let bot = telegram::Bot { id: 7, username: Some("bot".to_owned()) };
        let value = muster_json::from_str::<Value>(&text).unwrap();
        drop(telegram::decode(&value, &bot));
    });
    let message = |shape: String| {
        let author = json!({ "id": "5", "username": &shape });
        let message = json!({ "id": "1", "channel_id": "2", "type": 19, "author": &author, "content": &shape,
            "referenced_message": { "author": author, "content": &shape } });
        let embed = json!({ "title": &shape, "fields": [{ "name": "a", "value": &shape }] });
        let forwarded = json!({ "id": "1", "channel_id": "2", "author": { "id": "5", "bot": true },
            "embeds": [embed], "message_snapshots": [{ "message": { "content": shape } }] });
        [message, forwarded].map(|message| message.to_string()).to_vec()
    };
    let code = |shape: String| {
        let github = json!({ "action": "created", "sender": { "id": 5, "login": &shape }, "repository": { "full_name": "a/b" },
            "issue": { "number": 1, "title": &shape, "labels": [{ "name": &shape }] },
            "comment": { "id": 2, "body": format!("@muster {shape}") } });
        let gitlab = json!({ "object_kind": "note", "user": { "id": 5, "username": &shape },
            "project": { "id": 9, "path_with_namespace": &shape }, "issue": { "iid": 1, "title": &shape },
            "object_attributes": { "id": 2, "noteable_type": "Issue", "note": shape } });
        [github, gitlab].map(|payload| payload.to_string()).to_vec()
    };
    check_all("code host", sample_long_forms(code), |text| {
        let value = muster_json::from_str::<Value>(&text).unwrap();
        let rules = CodeHostRules {
            login: Some("muster".to_owned()),
            repos: Vec::new(),
            events: Vec::new(),
            labels: Vec::new(),
            attention: Attention::All,
            has_payload: false,
        };
        for software in [Software::Github, Software::Gitlab] {
            drop(code_host::decode(software, "issue_comment", &value, &rules));
        }
    });
    check_all("Discord", sample_long_forms(message), |text| {
        let (value, me) = (muster_json::from_str::<Value>(&text).unwrap(), discord::Snowflake(7));
        drop(discord::decode("MESSAGE_CREATE", &value, me, &discord::Chat::direct()));
    });
    let comment = |shape: String| {
        let said = json!({ "id": &shape, "createdTime": "2026-11-30T10:00:00Z", "content": &shape,
            "author": { "displayName": &shape } });
        let mut comment = said.clone();
        (comment["replies"], comment["quotedFileContent"]) = (json!([said]), json!({ "value": shape }));
        vec![comment.to_string()]
    };
    check_all("Google Drive", sample_long_forms(comment), |text| {
        let value = muster_json::from_str::<Value>(&text).unwrap();
        let (file, me) =
            (drive::SharedFile::default(), drive::Me { name: "a".to_owned(), ..drive::Me::default() });
        drop(drive::decode(&value, &file, &me, Timestamp::UNIX_EPOCH));
    });
}

/// Nested or repeated Markdown of this length.
fn markdown(bytes: usize) -> Vec<String> {
    let many = |piece: &str| piece.repeat(bytes / piece.len());
    let lines = |line: fn(usize) -> String| {
        let mut text = String::new();
        for line in (0..).map(line) {
            if text.len() + line.len() > bytes {
                break;
            }
            text.push_str(&line);
        }
        text
    };
    let nests = [lines(|n| format!("{}- a\n", "  ".repeat(n))), lines(|n| format!("{}a\n", "> ".repeat(n)))];
    let tables = format!("|a|b|\n|-|-|\n{}", many("|c|d|\n"));
    let pieces = ["[a](b) ", "**a *b ", "<div>\n", "a", "```\n"];
    nests.into_iter().chain([tables]).chain(pieces.map(many)).collect()
}

/// Unusual Markdown of this length.
fn odd_markdown(bytes: usize) -> Vec<String> {
    let many = |piece: &str| piece.repeat(bytes / piece.len());
    let texts = [
        format!("{}{}", "> - ".repeat(30), many("a\n")),
        format!("{}\n{}", "|a".repeat(bytes / 4), "|-".repeat(bytes / 4)),
        format!("|{}|\n|-|\n{}", "a".repeat(bytes / 2), "|b|\n".repeat(bytes / 8)),
        format!("[a]: https://a.test/{}\n\n{}", "b".repeat(bytes / 8), many("[a] ")),
    ];
    let pieces = [
        "> - 1. ",
        "- a\n\n",
        "[a](",
        "![[",
        "[a][b]",
        "*",
        "_a__b",
        "~~a *b* ",
        "|a",
        "<!--",
        "<a b='",
        "&amp;",
        "a ",
        "`",
        "` ``",
        "\\",
        "ä",
        "https://a.test/",
    ];
    texts.into_iter().chain(pieces.map(many)).collect()
}

fn check_rendering(kind: Kind, text: &str) {
    let facts = traits(kind);
    if facts.longest.count == 0 {
        return;
    }
    let parts = render(text, facts.dialect, facts.longest);
    assert!(parts.len() <= 100, "{} parts", parts.len());
    for part in parts {
        let counted = match facts.longest.unit {
            Unit::Characters => part.text.chars().count(),
            Unit::VisibleUtf16 => part.plain.encode_utf16().count(),
        };
        assert!(counted <= facts.longest.count, "a part has {counted} characters");
        let most = 20 * facts.longest.count;
        assert!(part.text.len().max(part.plain.len()) <= most, "a part has {} bytes", part.text.len());
        drop(code_host::neutralize(&part.text));
    }
}

#[test]
fn rendered_markdown() {
    let kinds = Kind::ALL;
    for bytes in input_sizes() {
        let odd = if bytes < 1 << 20 { odd_markdown(bytes) } else { Vec::new() };
        for (nth, text) in markdown(bytes).into_iter().chain(odd).enumerate() {
            // Words, marks and nodes are held until the whole text is parsed.
            check("markdown", text, 200, move |text| {
                // Parsing is the same for every vendor, so each long text is rendered for one.
                let is_for = |at: usize| bytes <= 1 << 10 || nth % kinds.len() == at;
                for (_, kind) in kinds.iter().enumerate().filter(|(at, _)| is_for(*at)) {
                    check_rendering(*kind, &text);
                }
                let title = Longest { count: 2_000, unit: Unit::Characters };
                drop(render(&text[..text.floor_char_boundary(2_000)], Dialect::Plain, title));
            });
        }
    }
}
