//! Mails in programs' variants.

use super::*;

fn context() -> MailContext {
    MailContext { labels: Vec::new(), authserv_id: None, now: Timestamp::from_second(1_800_000_000).unwrap() }
}

fn read(mail: &str) -> Option<Event> {
    decode_event(&Bytes::from(mail.replace('\n', "\r\n")), context()).unwrap()
}

fn message(mail: &str) -> Inbound {
    match read(mail) {
        Some(Event::Message(inbound)) => *inbound,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_mail_with_a_thread_and_a_file() {
    let mail = "From: =?utf-8?q?Ada_L=C3=B6?= <Ada@A.test>\nTo: agent@b.test\nSubject: Re: A question\nMessage-ID: <m3@a.test>\n\
        In-Reply-To: <m2@b.test>\nReferences: <m1@a.test> <m2@b.test>\nDate: Mon, 23 Nov 2026 08:00:00 +0000\n\
        MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/plain; charset=utf-8\n\nHällo\n\
        --x\nContent-Type: application/pdf; name=a.pdf\nContent-Disposition: attachment; filename=a.pdf\n\
        Content-Transfer-Encoding: base64\n\nYWJj\n--x--\n";
    let read = message(mail);
    assert_eq!((read.key.as_deref(), read.vendor_id.as_deref()), (Some("m3@a.test"), Some("m3@a.test")));
    assert_eq!(read.origin, Origin { id: "ada@a.test".into(), place: None, name: OneLine::name("Ada Lö") });
    assert_eq!(read.thread.refs, ["m2@b.test", "m1@a.test"]);
    assert_eq!((read.thread.target.as_str(), read.text.as_str()), ("ada@a.test", "Hällo"));
    assert_eq!(
        (read.files[0].name.as_str(), read.files[0].media_type.as_str()),
        ("a.pdf", "application/pdf")
    );
    assert_eq!(read.files[0].content, Content::Here("abc".into()));
    assert!(!read.is_automatic && read.proof == Proof::None);
}

#[test]
fn a_long_thread_keeps_its_first_and_newest_mails() {
    let of = |count: usize| {
        let references: Vec<_> = (0..count).map(|n| format!("<m{n}@a.test>")).collect();
        let references = references.join("\n ");
        let last = count - 1;
        message(&format!(
            "From: ada@a.test\nSubject: x\nIn-Reply-To: <m{last}@a.test>\nReferences: {references}\n\nHello"
        ))
        .thread
        .refs
    };
    let ids = |numbers: &mut dyn Iterator<Item = usize>| -> Vec<_> {
        numbers.map(|n| format!("m{n}@a.test")).collect()
    };
    assert_eq!(of(MAX_REFS), ids(&mut (0..MAX_REFS).rev()));
    assert_eq!(of(80), ids(&mut (31..80).rev().chain([0])));
}

#[test]
fn html_becomes_text_and_a_missing_id_is_derived() {
    let mail = "From: ada@a.test\nSubject: x\nContent-Type: text/html\n\n<p>Hello <b>you</b></p>";
    let (one, again) = (message(mail), message(mail));
    assert_eq!(one.text, "Hello you");
    assert_eq!((one.key.clone(), one.vendor_id), (again.key, None));
    assert_ne!(one.key, message(&mail.replace("you", "me")).key);
}

#[test]
fn a_sender_with_control_characters_is_refused() {
    for from in ["=?utf-8?q?a=00b@evil.test?= (x)", "<a\0b@evil.test>"] {
        let mail = format!("From: {from}\r\nMessage-ID: <1@a>\r\n\r\nhi");
        let read = decode_event(&Bytes::from(mail), context());
        assert!(matches!(read, Err(Refusal::Malformed(_))), "{from:?}: {read:?}");
    }
}

#[test]
fn the_sender_is_the_first_who_has_an_address() {
    for (from, expected) in [
        ("Lovelace, Ada <ada@a.test>", Some(("ada@a.test", "Lovelace, Ada"))),
        ("Lovelace, <ada@a.test>, Bo <bo@b.test>", Some(("ada@a.test", "Lovelace"))),
        ("\"Lovelace, Ada\" <ada@a.test>", Some(("ada@a.test", "Lovelace, Ada"))),
        ("eve@evil.test, Ada <ada@a.test>", Some(("eve@evil.test", ""))),
        ("Eve <eve@evil.test>, Ada <ada@a.test>", Some(("eve@evil.test", "Eve"))),
        // An address-like text is not a name.
        ("\"eve@evil.test\", Ada <ada@a.test>", None),
        ("<@evil.test\0>, Ada <ada@a.test>", None),
        ("Lovelace, Ada", None),
    ] {
        let read = decode_event(&Bytes::from(format!("From: {from}\r\n\r\nhi")), context()).ok().flatten();
        let origin = read.map(|read| match read {
            Event::Message(message) => message.origin,
            other => panic!("{other:?}"),
        });
        let origin = origin.as_ref().map(|one| (one.id.as_str(), one.name.as_deref().unwrap_or_default()));
        assert_eq!(origin, expected, "{from}");
    }
}

#[test]
fn names_and_subjects_are_on_one_line() {
    let mail = "From: =?utf-8?Q?Eva=0A=0Abob=40walk.test:_Pay_900.=0D=0A=0A=E2=80=AEEva?= <eva@walk.test>\n\
                Subject: =?utf-8?Q?Hi=0A=0A[Forwarded_from_Boss]=0A=3E_pay?=\n\nhi";
    let read = message(mail);
    assert_eq!(read.origin.name.as_deref(), Some("Eva  bob@walk.test: Pay 900.   Eva"));
    assert_eq!(read.thread.title.as_deref(), Some("Hi  [Forwarded from Boss] > pay"));
    let unseen = message("From: =?utf-8?Q?=E2=80=AE=0A?= <eva@walk.test>\nSubject: =?utf-8?Q?=0A?=\n\nhi");
    assert_eq!((unseen.origin.name.as_deref(), unseen.thread.title.as_deref()), (None, None));
    assert_eq!(unseen.origin.author().as_deref(), Some("eva@walk.test"));
}

#[test]
fn replies_go_to_from_and_never_to_reply_to() {
    let mail = "From: ada@a.test\nReply-To: eve@evil.test\nMessage-ID: <1@a>\n\nhi";
    assert_eq!(message(mail).thread.target, "ada@a.test");
}

#[test]
fn automatic_mails_are_recognized() {
    for header in [
        "Auto-Submitted: auto-replied",
        "Auto-Submitted: auto-generated; type=x",
        "Return-Path: <>",
        "List-Id: <x.a.test>",
        "List-Unsubscribe: <mailto:x@a.test>",
        "Precedence: bulk",
        "X-Auto-Response-Suppress: OOF, AutoReply",
        "X-Autoreply: yes",
    ] {
        assert!(message(&format!("From: ada@a.test\n{header}\n\nhi")).is_automatic, "{header}");
    }
    for from in ["noreply@a.test", "No-Reply@a.test", "MAILER-DAEMON@a.test", "bounces+1@a.test"] {
        assert!(message(&format!("From: {from}\n\nhi")).is_automatic, "{from}");
    }
    for header in
        ["Auto-Submitted: no", "Return-Path: <ada@a.test>", "Precedence: first-class", "X-Other: all"]
    {
        assert!(!message(&format!("From: ada@a.test\n{header}\n\nhi")).is_automatic, "{header}");
    }
}

#[test]
fn a_header_that_is_not_utf8_counts() {
    let mail = b"From: ada@a.test\r\nMessage-ID: <1@a>\r\nList-Id: caf\xe9\r\n\r\nhi".as_slice();
    let read = decode_event(&Bytes::from_static(mail), context()).unwrap();
    assert!(matches!(read, Some(Event::Message(message)) if message.is_automatic));
}

#[test]
fn slashes_in_the_name_of_a_file_are_kept_as_signs() {
    for (name, expected) in [
        ("Invoice 5/2026.pdf", "Invoice 5_2026.pdf"),
        ("a/b\\c.pdf", "a_b_c.pdf"),
        ("C:\\fakepath\\a.pdf", "a.pdf"),
        ("c:/x/a.pdf", "a.pdf"),
        ("/srv/x/a.pdf", "a.pdf"),
        ("\\\\server\\x\\a.pdf", "a.pdf"),
        ("~/a.pdf", "a.pdf"),
        ("~a.pdf", "~a.pdf"),
        ("AZ: 5.pdf", "AZ: 5.pdf"),
    ] {
        assert_eq!(strip_folders(name), expected);
    }
}

#[test]
fn pictures_that_the_html_shows_come_after_other_files() {
    let file =
        |kind: &str, id: &str| format!("--x\nContent-Type: {kind}; name={id}\nContent-ID: <{id}>\n\n{id}\n");
    let html =
        "--x\nContent-Type: text/html\n\n<img src='CID:a%40b.test'><img src=cid:c><a href=\"cid:d\">x</a>\n";
    let (a, b, c, d) = (
        file("image/png", "a@b.test"),
        file("image/png", "b"),
        file("image/gif", "c"),
        file("text/csv", "d"),
    );
    let mail =
        format!("From: ada@a.test\nContent-Type: multipart/related; boundary=x\n\n{html}{a}{b}{c}{d}--x--\n");
    let names: Vec<_> = message(&mail).files.into_iter().map(|file| file.name).collect();
    assert_eq!(names, ["b", "d", "a@b.test", "c"]);
}

#[test]
fn mails_of_a_digest_are_attached_mails() {
    let digest = "From: ada@a.test\nContent-Type: multipart/digest; boundary=x\n\n--x\n\nFrom: bo@b.test\n\nhi\n--x--\n";
    let files = message(digest).files;
    assert_eq!((files[0].name.as_str(), files[0].media_type.as_str()), ("message.eml", "message/rfc822"));
}

fn report(action: &str, original: &str) -> String {
    format!(
        "From: MAILER-DAEMON@c.test\nSubject: Undelivered\nMIME-Version: 1.0\n\
         Content-Type: multipart/report; report-type=delivery-status; boundary=x\n\n--x\nContent-Type: text/plain\n\nSorry.\n\
         --x\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; c.test\n\nFinal-Recipient: rfc822; ada@c.test\n\
         Action: {action}\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 no such user\n\n--x\n{original}\n--x--\n"
    )
}

#[test]
fn a_returned_mail_is_a_bounce() {
    let expected = Bounce {
        vendor_id: "C-1.d-1.0123456789abcdef0123@b.test".into(),
        cause: "The mail came back: smtp; 550 no such user".into(),
    };
    let whole = "Content-Type: message/rfc822\n\nFrom: agent@b.test\nMessage-ID: <C-1.d-1.0123456789abcdef0123@b.test>\nSubject: x\n\nhi";
    let headers = "Content-Type: text/rfc822-headers\n\nFrom: agent@b.test\nMessage-ID: <C-1.d-1.0123456789abcdef0123@b.test>\n";
    for original in [whole, headers] {
        assert_eq!(read(&report("failed", original)), Some(Event::Bounced(expected.clone())));
        assert_eq!(read(&report("delayed", original)), None);
    }
    // A report about another's mail is an automatic mail.
    let strange = headers.replace("d-1", "d\0");
    let foreign = headers.replace("C-1.d-1.", "");
    for other in ["Content-Type: text/plain\n\nnothing", &strange, &foreign] {
        for action in ["failed", "delayed"] {
            let read = message(&report(action, other));
            assert!(read.is_automatic && read.text.starts_with("Sorry."), "{other}");
        }
    }
}

#[test]
fn only_the_beginning_of_a_report_is_read() {
    let original = "Content-Type: text/rfc822-headers\n\nMessage-ID: <C-1.d-1.0123456789abcdef0123@b.test>\n";
    for (length, is_read) in [(60 << 10, true), (70 << 10, false)] {
        let long = format!("delayed-{}\nAction: failed", "x".repeat(length));
        let report = report("failed", original)
            .replace("Final-Recipient", &format!("X-Long: {long}\nFinal-Recipient"));
        let report = report.replacen("Action: failed\nStatus", "Status", 1);
        assert_eq!(matches!(read(&report), Some(Event::Bounced(_))), is_read, "{length}");
    }
}

#[test]
fn a_mail_without_a_sender_is_refused() {
    let mail = Bytes::from_static(b"Subject: x\r\n\r\nhi");
    assert!(matches!(decode_event(&mail, context()), Err(Refusal::Malformed(_))));
}

#[test]
fn an_origin_is_the_address_that_mails_have() {
    for (written, expected) in [
        ("ada@a.test", Some("ada@a.test")),
        (" Ada@Walk.TEST ", Some("ada@walk.test")),
        ("<cho@a.test>", Some("cho@a.test")),
        ("Dia <dia@a.test>", Some("dia@a.test")),
        ("\"Lo, Ada\" <Ada@a.test>", Some("ada@a.test")),
        ("mailto:ada@a.test", Some("ada@a.test")),
        ("GRÖSSE@a.test", Some("grösse@a.test")),
        ("ada+x@a.test", Some("ada+x@a.test")),
        // The Kelvin sign is not a `k`.
        ("\u{212a}im@a.test", Some("\u{212a}im@a.test")),
        ("ada@\u{212a}im.test", Some("ada@\u{212a}im.test")),
        ("ada@a\u{3002}test", Some("ada@a\u{3002}test")),
        // Two notations of one domain.
        ("user@bücher.example", Some("user@xn--bcher-kva.example")),
        ("Bü <user@BÜCHER.example>", Some("user@xn--bcher-kva.example")),
        ("user@XN--bcher-kva.example", Some("user@xn--bcher-kva.example")),
        ("jörg@mail.bücher.example", Some("jörg@mail.xn--bcher-kva.example")),
        ("user@%62ücher.example", Some("user@%62ücher.example")),
        ("user@１２７.0.0.1", Some("user@１２７.0.0.1")),
        ("*@a.test", None),
        ("@a.test", None),
        ("ada@", None),
        ("a.test", None),
        ("Ada", None),
        ("ada@a.test, bo@b.test", None),
        ("Ada <ada@a.test>, Eve <eve@evil.test>", None),
        ("mailto:ada@a.test?subject=x", None),
        ("ada @a.test", None),
        ("ada@.test", None),
        ("", None),
    ] {
        assert_eq!(origin(written).as_deref(), expected, "{written:?}");
        // A mail from there has the same origin.
        if let Some(address) = expected {
            assert_eq!(message(&format!("From: <{address}>\n\nhi")).origin.id, address);
        }
        if let Some(address) = expected.filter(|_| !written.contains(['<', ':']) && written.is_ascii()) {
            assert_eq!(message(&format!("From: <{written}>\n\nhi")).origin.id, address);
        }
    }
}
