//! Tests of the email transport with a real dovecot and a small SMTP server.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use mail_parser::{MessageParser, MimeHeaders};
use muster_channels::{
    Attachment, Config, Cursor, EmailConfig, Event, Failure, Inbound, Link, MailServer, Network, Rendered,
    Sink, Transport, open,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::mpsc::UnboundedReceiver,
};

use crate::{
    dovecot::{Dovecot, USER},
    support::{
        Memory, Names, Seen, SinkCall, TestSink, message, network, network_with, open_network, part, text,
    },
};

pub fn server(port: u16, password: &str) -> MailServer {
    let login = Some((USER.to_owned(), password.into()));
    MailServer { host: "127.0.0.1".into(), port, login, tls: false }
}

pub fn channel(imap: Option<MailServer>, smtp: Option<MailServer>, network: &Network) -> Arc<dyn Transport> {
    open(Config::Email(Box::new(config(imap, smtp))), network)
}

pub fn config(imap: Option<MailServer>, smtp: Option<MailServer>) -> EmailConfig {
    EmailConfig {
        imap,
        smtp,
        from: "agent@b.test".into(),
        from_name: "Agent".into(),
        id_key: "a key of this channel".into(),
        authserv_id: Some("mx.b.test".into()),
        since: jiff::Timestamp::now() - Duration::from_secs(3600),
        poll: Duration::from_secs(60),
        memory: Memory::of(usize::MAX / 2),
    }
}

pub fn mail(id: &str, said: &str) -> String {
    format!(
        "From: Ada <ada@a.test>\nTo: agent@b.test\nSubject: A question\nMessage-ID: <{id}@a.test>\n\
        Authentication-Results: mx.b.test; dmarc=pass header.from=a.test\n\n{said}\n"
    )
}

/// Listens until `seen` completes, and returns its output.
pub async fn during<T>(
    mailbox: &Arc<dyn Transport>,
    cursor: Option<Cursor>,
    sink: &dyn Sink,
    seen: impl Future<Output = T>,
) -> T {
    let limit = tokio::time::timeout(Duration::from_secs(20), seen);
    tokio::select! {
        ended = mailbox.listen(cursor, sink) => panic!("{ended:?}"),
        seen = limit => seen.expect("it comes in time"),
    }
}

/// The next events and their cursor. Calls without events only record an attempt or the start position.
pub async fn next(calls: &mut UnboundedReceiver<SinkCall>) -> (Vec<Event>, Option<Cursor>) {
    loop {
        match calls.recv().await.unwrap() {
            SinkCall::Admitted(events, cursor) if !events.is_empty() => return (events, cursor),
            SinkCall::Link(Link::Up) | SinkCall::Admitted(..) => {}
            other => panic!("{other:?}"),
        }
    }
}

pub fn texts(events: &[Event]) -> (String, String) {
    let Inbound { key, text, .. } = message(events).clone();
    (key.unwrap(), text)
}

#[tokio::test]
async fn an_endless_line_ends_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let talking = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        while stream.write_all(&[b'2'; 4096]).await.is_ok() {}
    };
    let smtp = MailServer { login: None, ..server(port, "") };
    let mailbox = channel(None, Some(smtp), &open_network(None));
    let (probed, ()) = tokio::join!(mailbox.probe(), talking);
    let failure = probed.unwrap_err();
    assert!(failure.to_string().contains("its answer is too long"), "{failure}");
}

#[tokio::test]
async fn an_oversized_literal_ends_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let talking = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"* 1 FETCH (BODY[] {100000000}\r\n").await.unwrap();
        _ = stream.read_to_end(&mut Vec::new()).await;
    };
    let mailbox = channel(Some(server(port, "secret")), None, &open_network(None));
    let (probed, ()) = tokio::join!(mailbox.probe(), talking);
    let failure = probed.unwrap_err();
    assert!(failure.to_string().contains("its answer is too long"), "{failure}");
}

#[tokio::test]
async fn malformed_answers_have_readable_errors() {
    let nest = "(".repeat(1_000);
    for (said, expected) in [
        (format!("* 1 FETCH (BODYSTRUCTURE {nest}"), "its answer is nested too deeply"),
        ("\u{1}\u{2}garbage\r\n".to_owned(), "its answer can't be understood"),
        ("* BYE too busy\r\n".to_owned(), "the connection is lost"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let talking = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(said.as_bytes()).await.unwrap();
            _ = stream.read_to_end(&mut Vec::new()).await;
        };
        let mailbox = channel(Some(server(port, "secret")), None, &open_network(None));
        let (probed, ()) = tokio::join!(mailbox.probe(), talking);
        assert_eq!(probed.unwrap_err().to_string(), format!("The mail server can't be used: {expected}."));
    }
}

/// The failure of a login that the server refuses with this text.
async fn refused(words: &str) -> Failure {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let refusing = async {
        let mut stream = BufReader::new(listener.accept().await.unwrap().0);
        stream.write_all(b"* OK hi\r\n").await.unwrap();
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        let tag = line.split(' ').next().unwrap();
        stream.write_all(format!("{tag} NO {words}\r\n").as_bytes()).await.unwrap();
    };
    let mailbox = channel(Some(server(port, "secret")), None, &open_network(None));
    tokio::join!(mailbox.probe(), refusing).0.unwrap_err()
}

#[tokio::test]
async fn a_temporary_login_failure_is_no_credentials_failure() {
    for words in [
        "[UNAVAILABLE] User's backend did not respond in time.",
        "[ALERT] Too many simultaneous connections. (Failure)",
        "[SERVERBUG] Internal error occurred. Please try again later.",
        "[CONTACTADMIN] Ask your administrator.",
        "Temporary authentication failure.",
    ] {
        let failure = refused(words).await;
        assert!(matches!(failure, Failure::NotSent(_)), "{words}: {failure}");
    }
    for words in ["[AUTHENTICATIONFAILED] Authentication failed.", "[ALERT] Invalid credentials (Failure)"] {
        let failure = refused(words).await;
        assert!(matches!(failure, Failure::Credentials(_)), "{words}: {failure}");
    }
}

#[tokio::test]
async fn mails_are_read_once_on_arrival() {
    let dovecot = Dovecot::start().await;
    dovecot.deliver_at("old", &mail("old", "before"), SystemTime::now() - Duration::from_secs(2 * 3600));
    dovecot.deliver("m0", &mail("m0", "zero"));
    let mailbox = channel(Some(server(dovecot.address.port(), "secret")), None, &open_network(None));
    let (sink, mut calls) = TestSink::new(99);
    // Mails from before the channel are not read, later ones are, and new ones end the wait.
    let cursor = during(&mailbox, None, &sink, async {
        assert_eq!(texts(&next(&mut calls).await.0).1, "zero");
        // A mail delivered before the wait would be found anyway.
        tokio::time::sleep(Duration::from_millis(300)).await;
        dovecot.deliver("m1", &mail("m1", "one"));
        let (events, cursor) = next(&mut calls).await;
        assert_eq!(texts(&events), ("m1@a.test".into(), "one".into()));
        assert_eq!(message(&events).proof, muster_channels::Proof::Signed);
        while dovecot.seen() == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        cursor
    })
    .await;

    // Mails that arrive while no one listens are read later. An unstored mail is read again.
    dovecot.deliver("m2", &mail("m2", "two"));
    let (full, mut calls) = TestSink::new(1);
    assert!(matches!(mailbox.listen(cursor.clone(), &full).await, Err(Failure::NotSent(_))));
    assert_eq!(texts(&next(&mut calls).await.0).1, "two");
    assert_eq!(dovecot.seen(), 1);
    let (sink, mut calls) = TestSink::new(99);
    let cursor = during(&mailbox, cursor, &sink, async {
        let (events, cursor) = next(&mut calls).await;
        assert_eq!(texts(&events), ("m2@a.test".into(), "two".into()));
        cursor
    })
    .await;

    // After a new UIDVALIDITY, the mails are read again with the same keys.
    dovecot.forget_numbers().await;
    let (sink, mut calls) = TestSink::new(99);
    during(&mailbox, cursor.clone(), &sink, async {
        let mut again = Vec::new();
        for _ in 0..3 {
            again.push(texts(&next(&mut calls).await.0).0);
        }
        again.sort();
        assert_eq!(again, ["m0@a.test", "m1@a.test", "m2@a.test"]);
        dovecot.deliver("m3", &mail("m3", "three"));
        assert_eq!(texts(&next(&mut calls).await.0).1, "three");
    })
    .await;
}

#[tokio::test]
async fn wrong_passwords_are_reported() {
    let dovecot = Dovecot::start().await;
    let port = dovecot.address.port();
    let right = channel(Some(server(port, "secret")), None, &open_network(None));
    assert_eq!(right.probe().await.unwrap().self_ids, ["agent@b.test"]);
    let wrong = channel(Some(server(port, "canary")), None, &open_network(None));
    let failure = wrong.probe().await.unwrap_err();
    assert!(
        matches!(failure, Failure::Credentials(_)) && !format!("{failure:?}").contains("canary"),
        "{failure:?}"
    );
    assert!(matches!(wrong.listen(None, &TestSink::new(1).0).await, Err(Failure::Credentials(_))));
}

#[tokio::test]
async fn passwords_cross_networks_encrypted() {
    let dovecot = Dovecot::start().await;
    let names = || {
        Names(vec![("mail.test", vec![[127, 0, 0, 1].into()]), ("other.test", vec![[127, 0, 0, 1].into()])])
    };
    let at = |host: &str| MailServer {
        host: host.to_owned(),
        tls: true,
        ..server(dovecot.address.port(), "secret")
    };
    let certificate = || vec![dovecot.certificate().into()];
    let believing = network_with(&["127.0.0.0/8"], names(), None, &certificate());
    channel(Some(at("mail.test")), None, &believing).probe().await.unwrap();
    // Another name's certificate, or an untrusted one.
    let other = channel(Some(at("other.test")), None, &believing).probe().await.unwrap_err();
    assert!(matches!(other, Failure::NotSent(_)), "{other}");
    let doubting = network(&["127.0.0.0/8"], names(), None);
    assert!(matches!(
        channel(Some(at("mail.test")), None, &doubting).probe().await,
        Err(Failure::NotSent(_))
    ));
    // An SMTP server without encryption gets no password.
    let (port, _) = smtp("250 ok", "250 ok").await;
    let plain =
        channel(None, Some(MailServer { port, ..at("mail.test") }), &believing).probe().await.unwrap_err();
    assert!(matches!(&plain, Failure::NotSent(cause) if cause.as_str().contains("no encryption")), "{plain}");
    // Without a password, a server in the operator's network needs no encryption.
    let anonymous = MailServer { port, login: None, ..at("mail.test") };
    channel(None, Some(anonymous), &believing).probe().await.unwrap();
}

#[tokio::test]
async fn mail_servers_are_guarded() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let names = Names(vec![("mail.test", vec!["1.1.1.1".parse().unwrap(), "127.0.0.1".parse().unwrap()])]);
    let closed = network(&[], names, None);
    for host in ["127.0.0.1", "mail.test", "[::1]", "0.0.0.0"] {
        let server = || Some(MailServer { host: host.to_owned(), ..server(port, "secret") });
        for mailbox in [channel(server(), None, &closed), channel(None, server(), &closed)] {
            let failure = mailbox.probe().await.unwrap_err();
            assert!(
                matches!(&failure, Failure::NotPublic(cause) if cause.as_str().contains("not public")),
                "{host}: {failure}"
            );
        }
    }
    let connection = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
    assert!(connection.is_err());
}

/// An SMTP server with fixed answers to RCPT and DATA.
pub async fn smtp(at_rcpt: &'static str, at_data: &'static str) -> (u16, Seen<String>) {
    let seen = Seen::<String>::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let kept = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(speak(stream, at_rcpt, at_data, Arc::clone(&kept)));
        }
    });
    (port, seen)
}

async fn speak(stream: TcpStream, at_rcpt: &'static str, at_data: &'static str, seen: Seen<String>) {
    let mut stream = BufReader::new(stream);
    stream.write_all(b"220 hi\r\n").await.unwrap();
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line).await.unwrap_or_default() == 0 {
            return;
        }
        let word = line.split([' ', '\r']).next().unwrap_or_default().to_ascii_uppercase();
        let answer = match word.as_str() {
            "EHLO" => "250-here\r\n250-AUTH PLAIN\r\n250 8BITMIME",
            "AUTH" if line.contains("AGFnZW50AHNlY3JldA==") => "235 ok",
            "AUTH" => "535 no",
            "RCPT" => at_rcpt,
            "DATA" => {
                stream.write_all(b"354 go\r\n").await.unwrap();
                let mut mail = String::new();
                while !mail.ends_with("\r\n.\r\n") {
                    if stream.read_line(&mut mail).await.unwrap_or_default() == 0 {
                        return;
                    }
                }
                seen.lock().unwrap().push(mail.trim_end_matches(".\r\n").to_owned());
                if at_data.is_empty() {
                    return;
                }
                at_data
            }
            "QUIT" => "221 bye",
            _ => "250 ok",
        };
        stream.write_all(format!("{answer}\r\n").as_bytes()).await.unwrap();
    }
}

#[tokio::test]
async fn a_reply_belongs_to_its_thread() {
    let (port, seen) = smtp("250 ok", "250 taken").await;
    let mailbox = channel(None, Some(server(port, "secret")), &open_network(None));
    mailbox.probe().await.unwrap();
    let said = Rendered { text: "<p>Hällo <strong>you</strong></p>".into(), plain: "Hällo you".into() };
    let files =
        [Attachment { name: "ü.txt".into(), media_type: "text/plain".into(), content: "abc".into() }];
    let refs = ["m1@a.test".to_owned(), "C-1.d-0.x@b.test".to_owned()];
    let mut answer = part(&said, "ada@a.test");
    (answer.files, answer.refs, answer.reply_to, answer.title) =
        (&files, &refs, Some("m2@a.test"), Some("A question\r\nBcc: eve@evil.test"));
    let receipt = mailbox.send(&answer).await.unwrap();
    let again = mailbox.send(&answer).await.unwrap();
    assert_eq!(receipt, again);
    let id = receipt.vendor_id.unwrap();
    assert!(id.starts_with("C-1.d-1.") && id.ends_with("@b.test") && id.len() > 30, "{id}");

    let sent = seen.lock().unwrap().pop().unwrap();
    let read = MessageParser::default().parse(sent.as_bytes()).unwrap();
    assert_eq!(read.message_id(), Some(id.as_str()));
    assert_eq!(read.subject(), Some("Re: A questionBcc: eve@evil.test"));
    assert_eq!(read.header_raw("Bcc"), None);
    assert_eq!(read.in_reply_to().as_text(), Some("m2@a.test"));
    assert_eq!(read.references().as_text_list().unwrap(), ["m1@a.test", "C-1.d-0.x@b.test", "m2@a.test"]);
    assert_eq!(read.header_raw("Auto-Submitted").map(str::trim), Some("auto-replied"));
    assert_eq!(read.body_text(0).unwrap().trim(), "Hällo you");
    assert!(read.body_html(0).unwrap().contains("<strong>you</strong>"));
    let file = read.attachment(0).unwrap();
    assert_eq!((file.attachment_name(), file.contents()), (Some("ü.txt"), &b"abc"[..]));

    // A sender address with a name.
    let named =
        EmailConfig { from: "Help <Agent@b.test>".into(), ..config(None, Some(server(port, "secret"))) };
    let named = open(Config::Email(Box::new(named)), &open_network(None));
    assert_eq!(named.probe().await.unwrap().self_ids, ["agent@b.test"]);
    named.send(&answer).await.unwrap();
    let sent = seen.lock().unwrap().pop().unwrap();
    assert!(
        sent.contains("From: Help <Agent@b.test>") || sent.contains("From: \"Help\" <Agent@b.test>"),
        "{sent}"
    );
    // A person's message is not marked as automatic.
    answer.speaker = Some("Bob");
    mailbox.send(&answer).await.unwrap();
    let sent = seen.lock().unwrap().pop().unwrap();
    let read = MessageParser::default().parse(sent.as_bytes()).unwrap();
    assert_eq!(read.header_raw("Auto-Submitted"), None);
    assert_eq!(read.from().unwrap().first().unwrap().name(), Some("Bob"));
}

#[tokio::test]
async fn a_message_id_does_not_depend_on_the_password() {
    let (port, _) = smtp("250 ok", "250 taken").await;
    let said = Rendered { text: "<p>Hello</p>".into(), plain: "Hello".into() };
    let id = async |login: Option<&str>, key: &str| {
        let login = login.map(|user| (user.to_owned(), "secret".into()));
        let smtp = MailServer { login, ..server(port, "secret") };
        let config = EmailConfig { id_key: key.into(), ..config(None, Some(smtp)) };
        let mailbox = open(Config::Email(Box::new(config)), &open_network(None));
        mailbox.send(&part(&said, "ada@a.test")).await.unwrap().vendor_id.unwrap()
    };
    let of_channel = id(Some(USER), "the channel's key").await;
    assert_eq!(id(None, "the channel's key").await, of_channel, "the password does not reveal the id");
    assert_ne!(id(Some(USER), "another channel's").await, of_channel);
}

#[tokio::test]
async fn replies_without_text_are_understood() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let talking = async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = BufReader::new(stream);
        stream.write_all(b"220\r\n").await.unwrap();
        let (mut line, mut in_mail) = (String::new(), false);
        while stream.read_line(&mut line).await.unwrap_or_default() > 0 {
            let said: &[u8] = match line.split([' ', '\r']).next().unwrap_or_default() {
                // An accepted mail, with text in GBK.
                "." => b"250 \xd2\xd1\xca\xd5\xb5\xbd\r\n",
                _ if in_mail => b"",
                "EHLO" => b"250-\r\n250\r\n",
                "DATA" => b"354\r\n",
                "QUIT" => b"221\r\n",
                _ => b"250\r\n",
            };
            in_mail = in_mail && line != ".\r\n" || line.starts_with("DATA");
            stream.write_all(said).await.unwrap();
            line.clear();
        }
    };
    let smtp = MailServer { login: None, ..server(port, "") };
    let mailbox = channel(None, Some(smtp), &open_network(None));
    let words = text("x");
    let answer = part(&words, "ada@a.test");
    let (sent, ()) = tokio::join!(mailbox.send(&answer), talking);
    sent.unwrap();
}

#[tokio::test]
async fn server_answers_map_to_failures() {
    let failed = async |at_rcpt, at_data, password: &str| {
        let (port, _) = smtp(at_rcpt, at_data).await;
        let mailbox = channel(None, Some(server(port, password)), &open_network(None));
        mailbox.send(&part(&text("x"), "ada@a.test")).await.unwrap_err()
    };
    assert!(matches!(failed("550 no such user", "", "secret").await, Failure::TargetGone(_)));
    assert!(matches!(failed("450 later", "", "secret").await, Failure::NotSent(_)));
    assert!(matches!(failed("552 full", "", "secret").await, Failure::NotSent(_)));
    assert!(matches!(failed("250 ok", "554 spam", "secret").await, Failure::Refused(_)));
    assert!(matches!(failed("250 ok", "451 later", "secret").await, Failure::NotSent(_)));
    // The server reads the whole mail and closes the connection.
    let lost = failed("250 ok", "", "secret").await;
    assert!(matches!(lost, Failure::Unknown(_)), "{lost}");
    let refused = failed("250 ok", "250 ok", "canary").await;
    assert!(
        matches!(refused, Failure::Credentials(_)) && !format!("{refused:?}").contains("canary"),
        "{refused:?}"
    );
    let mailbox = channel(None, Some(server(9, "secret")), &open_network(None));
    for target in ["not an address", "a@b.test\r\nRCPT TO:<eve@evil.test>"] {
        assert!(
            matches!(mailbox.send(&part(&text("x"), target)).await, Err(Failure::Refused(_))),
            "{target}"
        );
    }
}
