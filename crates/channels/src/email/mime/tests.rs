//! Mails in parts: of programs, and of hostile strangers.

use super::*;

fn texts(mail: &str) -> Vec<String> {
    let split = MimeMail::parse(mail.as_bytes()).unwrap();
    split.select(&split.texts).map(|part| part.text().trim().to_owned()).collect()
}

fn files(mail: &str) -> Vec<String> {
    let split = MimeMail::parse(mail.as_bytes()).unwrap();
    split
        .select(&split.files)
        .map(|part| String::from_utf8_lossy(&part.content()).trim().to_owned())
        .collect()
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn several(kind: &str, parts: &[&str]) -> String {
    // A boundary per level.
    let boundary = format!("b{}", parts.concat().len());
    let inner: String = parts.iter().map(|part| format!("--{boundary}\r\n{part}\r\n")).collect();
    format!(
        "Content-Type: MULTIPART/{kind}; boundary=\"{boundary}\"\r\n\r\npreamble\r\n{inner}--{boundary}--\r\nepilogue"
    )
}

const PLAIN: &str = "Content-Type: Text/Plain\r\n\r\nplain";
const HTML: &str = "Content-Type: text/html\r\n\r\n<p>html</p>";
const FILE: &str = "Content-Type: text/plain; name=a.txt\r\nContent-Disposition: attachment\r\nContent-Transfer-Encoding: BASE64\r\n\r\nZmlsZQ==";
const PICTURE: &str = "Content-Type: image/png\r\nContent-Disposition: inline\r\n\r\npicture";

#[test]
fn texts_and_files_are_distinguished() {
    for (mail, expected_texts, expected_files) in [
        (PLAIN.to_owned(), vec!["plain"], vec![]),
        ("\r\nno headers".to_owned(), vec!["no headers"], vec![]),
        (several("mixed", &[PLAIN, FILE]), vec!["plain"], vec!["file"]),
        (several("alternative", &[PLAIN, HTML]), vec!["plain"], vec![]),
        (several("alternative", &[HTML]), vec!["html"], vec![]),
        (several("mixed", &[&several("alternative", &[PLAIN, HTML]), FILE]), vec!["plain"], vec!["file"]),
        (
            several("alternative", &[PLAIN, &several("related", &[HTML, PICTURE])]),
            vec!["plain"],
            vec!["picture"],
        ),
        (several("mixed", &[PLAIN, PICTURE, "\r\nafter"]), vec!["plain", "after"], vec!["picture"]),
        // A missing, a wrong and an impossible boundary.
        ("Content-Type: multipart/mixed; boundary=x\r\n\r\nnone".to_owned(), vec!["none"], vec![]),
        (
            "Content-Type: multipart/mixed\r\n\r\nnone\r\n-- \r\nAda".to_owned(),
            vec!["none\n-- \nAda"],
            vec![],
        ),
        (
            format!(
                "Content-Type: multipart/mixed; boundary=x\r\n\r\n--y\r\n{PLAIN}\r\n--y\r\n{FILE}\r\n--y--"
            ),
            vec!["plain"],
            vec!["file"],
        ),
        (
            format!("Content-Type: multipart/alternative\r\n\r\n--y\r\n{PLAIN}\r\n--y\r\n{HTML}\r\n--y--"),
            vec!["plain"],
            vec![],
        ),
        (
            "Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\nnever closed".to_owned(),
            vec!["never closed"],
            vec![],
        ),
        (
            "Content-Type: multipart/mixed; boundary=x\n\n--x\n\none\n--xy\n--x \n\ntwo\n--x--".to_owned(),
            vec!["one\n--xy", "two"],
            vec![],
        ),
    ] {
        assert_eq!((texts(&mail), files(&mail)), (owned(&expected_texts), owned(&expected_files)), "{mail}");
    }
}

#[test]
fn the_root_of_related_parts_is_read() {
    let style = "Content-Type: text/css\r\nContent-ID: <b>\r\n\r\nstyle";
    let named = "Content-Type: text/html; name=a.html\r\nContent-ID: <a@b.test>\r\n\r\nnamed";
    for (params, parts, expected_texts, expected_files) in [
        ("start=\"<a@b.test>\"", [PICTURE, style, named], vec!["named"], vec!["picture", "style"]),
        ("start=a@b.test", [style, named, PICTURE], vec!["named"], vec!["style", "picture"]),
        ("type=\"Text/HTML\"", [style, PICTURE, named], vec!["named"], vec!["style", "picture"]),
        ("start=\"<c>\"; type=text/html", [style, named, PICTURE], vec!["named"], vec!["style", "picture"]),
        ("start=\"<b>\"; type=text/html", [named, style, PICTURE], vec!["style"], vec!["named", "picture"]),
        ("type=\"image/png\"", [PICTURE, HTML, style], vec!["html"], vec!["picture", "style"]),
        ("start=\"\"", [PICTURE, PLAIN, HTML], vec!["plain"], vec!["picture", "<p>html</p>"]),
    ] {
        let mail = several("related", &parts).replacen(';', &format!("; {params};"), 1);
        assert_eq!((texts(&mail), files(&mail)), (owned(&expected_texts), owned(&expected_files)), "{mail}");
    }
    let alternative = several("alternative", &[PLAIN, HTML]);
    let mail = several("related", &[PICTURE, &alternative]);
    assert_eq!((texts(&mail), files(&mail)), (owned(&["plain"]), owned(&["picture"])));
}

#[test]
fn a_text_with_exchanges_generated_name_is_read() {
    let named = |name: &str, text: &str| {
        format!("Content-Type: text/plain\r\nContent-Disposition: attachment; filename={name}\r\n\r\n{text}")
    };
    for (name, is_read) in [
        ("ATT00001.txt", true),
        ("att12345.TXT", true),
        ("ATT00001.htm", true),
        ("ATT0001.txt", false),
        ("ATT00001.txt.exe", false),
        ("ATT00001.csv", false),
        ("ATTACHED.txt", false),
    ] {
        let mail = several("mixed", &[PLAIN, PICTURE, &named(name, "more")]);
        assert_eq!(texts(&mail).len() == 2, is_read, "{name}");
        assert_eq!(files(&mail).len() == 1, is_read, "{name}");
    }
    let long = named("ATT00001.txt", &"a".repeat(bounds::TEXT + 1));
    assert_eq!(texts(&several("mixed", &[PLAIN, &long])), ["plain"]);
}

#[test]
fn headers_have_the_charset_of_the_first_text_with_one() {
    let html =
        "Content-Type: text/html\r\nContent-Transfer-Encoding: base64\r\n\r\nPG1ldGEgY2hhcnNldD1iaWc1Pg==";
    let unsaid = "Content-Type: text/plain; charset=us-ascii\r\n\r\nhi";
    let greek = "Content-Type: text/plain; charset=iso-8859-7\r\n\r\nhi";
    for (mail, expected) in [
        (PLAIN.to_owned(), None),
        (greek.to_owned(), Some("iso-8859-7")),
        (several("mixed", &[PICTURE, greek]), Some("iso-8859-7")),
        (several("alternative", &[unsaid, html, greek]), Some("big5")),
        (several("mixed", &[unsaid, PICTURE]), None),
        (several("mixed", &[greek]).replacen(';', "; charset=gbk;", 1), Some("gbk")),
        (several("mixed", &[greek]).replacen(';', "; charset=unknown-8bit;", 1), Some("iso-8859-7")),
    ] {
        assert_eq!(MimeMail::parse(mail.as_bytes()).unwrap().charset().as_deref(), expected, "{mail}");
    }
}

#[test]
fn a_name_in_raw_bytes_changes_no_address() {
    let of = |from: &[u8], charset| {
        let mail = [b"From: ", from, b"\r\n\r\nhi"].concat();
        let people = Headers::read(&mail).unwrap().people("From", charset)?;
        let first = people.first()?;
        Some((first.name().map(str::to_owned), first.address().unwrap_or_default().to_owned()))
    };
    let person = |name: &str, address: &str| Some((Some(name.to_owned()), address.to_owned()));
    for (from, charset, expected) in [
        (b"\xcd\xf5 <a@b.test>".as_slice(), Some("gbk"), person("王", "a@b.test")),
        (b"\"J\xf6rg, B\" <a@b.test>", None, person("Jörg, B", "a@b.test")),
        (b"J\xf6rg <a@b.test>", Some("utf-8"), person("Jörg", "a@b.test")),
        ("Jörg <a@b.test>".as_bytes(), Some("gbk"), person("Jörg", "a@b.test")),
        (b"\x83@ <a@b.test>", Some("shift_jis"), person("ァ", "a@b.test")),
        // In UTF-16, `<@>` would be other letters, and others would be an address.
        (b"\xff <a@b.test>", Some("utf-16le"), person("\u{fffd}", "a@b.test")),
    ] {
        assert_eq!(of(from, charset), expected, "{charset:?}");
    }
}

#[test]
fn a_mail_in_a_mail_stays_a_file() {
    let inner = format!("Subject: inner\r\n{}", several("mixed", &[PLAIN, FILE]));
    let plain = format!("Content-Type: message/rfc822\r\n\r\n{inner}");
    let digest = several("digest", &[&format!("\r\n{inner}")]);
    let encoded =
        "Content-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\nU3ViamVjdDogaW5uZXI=";
    for mail in [several("mixed", &[PLAIN, &plain]), digest, several("mixed", &[encoded])] {
        let split = MimeMail::parse(mail.as_bytes()).unwrap();
        let mails: Vec<_> = split.select(&split.files).filter(|part| part.kind == Kind::Mail).collect();
        assert!(mails.len() == 1 && mails[0].content().starts_with(b"Subject: inner"), "{mail}");
    }
}

#[test]
fn a_text_is_decoded_by_its_charset() {
    for (charset, encoded, expected) in [
        ("iso-8859-1", "J=E4ger", "Jäger"),
        ("utf-8", "J=C3=A4ger", "Jäger"),
        ("gb2312", "=C4=E3=BA=C3", "你好"),
        ("unknown", "plain", "plain"),
    ] {
        let mail = format!(
            "Content-Type: text/plain; charset={charset}\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n{encoded}"
        );
        assert_eq!(texts(&mail), [expected], "{charset}");
    }
}

#[test]
fn a_mail_over_a_limit_is_refused() {
    let nested = |depth: usize| (0..depth).fold(PLAIN.to_owned(), |inner, _| several("mixed", &[&inner]));
    let many = |parts: usize| several("mixed", &vec![PLAIN; parts]);
    let lines = |lines: usize| format!("{}\r\nhi", "X: y\r\n".repeat(lines));
    let of = |mail: String| MimeMail::parse(mail.as_bytes()).map(|split| split.parts.len());
    assert_eq!((of(nested(DEPTH)), of(nested(DEPTH + 1))), (Ok(1), Err(LimitError::Depth)));
    assert_eq!((of(many(PARTS - 1)), of(many(PARTS))), (Ok(PARTS - 1), Err(LimitError::Parts)));
    assert_eq!((of(lines(HEADER_LINES)), of(lines(HEADER_LINES + 1))), (Ok(1), Err(LimitError::Lines)));
    assert_eq!(of(format!("X: {}\r\n\r\nhi", "y".repeat(HEADER_BYTES))), Err(LimitError::Headers));
    // Headers of parts count together.
    let part = format!("{}\r\nhi", "X: y\r\n".repeat(HEADER_LINES / 2));
    assert_eq!(of(several("mixed", &[&part, &part])), Err(LimitError::Lines));
}

#[test]
fn the_last_header_of_a_name_counts_with_all_its_lines() {
    let head =
        Headers::read(b"Subject: one\r\nbroken\r\n goes on\r\nSUBJECT : two\r\n  three\r\n\r\nSubject: body")
            .unwrap();
    assert_eq!(head.raw("subject").collect::<Vec<_>>(), [" one\r\n", " two\r\n  three\r\n"]);
    assert_eq!(head.text("Subject", None).as_deref(), Some("two three"));
}

#[test]
fn a_line_of_spaces_goes_on_with_its_header() {
    let head = Headers::read(b"Subject: long\r\n \r\n\tone\r\nFrom: ada@a.test\r\n\r\nhi").unwrap();
    assert_eq!((head.text("Subject", None).as_deref(), head.raw("from").count()), (Some("long one"), 1));
}

#[test]
fn the_name_of_an_encoding_is_read_as_programs_write_it() {
    for (encoding, body) in [
        ("Base64;", "aGk="),
        ("\"base64\"", "aGk="),
        (" base64 (of a program)", "aGk="),
        ("(x) 8bit", "hi"),
        ("quoted-printable;", "=68i"),
        ("", "hi"),
    ] {
        let mail = format!("Content-Type: text/plain\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n{body}");
        assert_eq!(texts(&mail), ["hi"], "{encoding}");
    }
}

#[test]
fn lines_below_base64_are_kept() {
    let of = |body: &str| {
        texts(&format!("Content-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\n{body}"))
    };
    assert_eq!(
        of("aGVs\r\nbG8=\r\n\r\n-- \r\nOur list\r\n"),
        ["hello\r\n-- \r\nOur list".replace("\r\n", "\n")]
    );
    assert_eq!(of("no base64, at all"), ["no base64, at all"]);
    assert_eq!(of("\r\n\r\nno base64!"), ["no base64!"]);
}

#[test]
fn bare_equals_signs_stay_in_quoted_printable() {
    let mail = "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
                caf=C3=A9 <a href=\"?q=zebra\"> so=\r\nft";
    assert_eq!(texts(mail), ["caf\u{e9} <a href=\"?q=zebra\"> soft"]);
}

#[test]
fn encoded_words_without_an_end_stay_as_they_are() {
    let subject = |value: &str| {
        let mail = format!("Subject: {value}\r\n\r\nhi");
        let value = Headers::read(mail.as_bytes()).unwrap().value("Subject");
        value.and_then(mail_parser::HeaderValue::into_text).map(std::borrow::Cow::into_owned)
    };
    assert_eq!(subject("=?utf-8?q?a?= =?").unwrap(), "a =?");
    let many = subject(&"=?aa?q?z".repeat(8_000)).unwrap();
    assert!(many.starts_with("= ?aa?q?z= ?aa"), "{many:.40}");
}
