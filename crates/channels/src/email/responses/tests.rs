//! Responses of servers that behave, and of others.

use bytes::Bytes;
use tokio::io::{AsyncWriteExt, duplex};

use super::*;
use crate::{
    contract::Endless,
    email::said::{Mail, Said, Verdict},
};

fn patience() -> Instant {
    Instant::now() + Duration::from_secs(90)
}

/// What is understood of a connection's bytes, which come in pieces of so many bytes.
pub async fn heard(bytes: &[u8], piece: usize) -> (Vec<Said>, Broken) {
    let (mut ours, mut theirs) = duplex(64 << 10);
    let speaking = async move {
        for piece in bytes.chunks(piece) {
            if theirs.write_all(piece).await.is_err() {
                return;
            }
        }
    };
    let hearing = async move {
        let (mut responses, mut heard) = (Responses::new(&Endless), Vec::new());
        loop {
            match responses.next(&mut ours, patience()).await.and_then(|response| response.said()) {
                Ok(said) => heard.push(said),
                Err(broken) => return (heard, broken),
            }
        }
    };
    tokio::join!(hearing, speaking).0
}

#[tokio::test]
async fn responses_are_understood_in_any_pieces() {
    let said = b"* OK [CAPABILITY IMAP4rev1] it's \"5\" (o'clock\r\n* CAPABILITY IMAP4rev1 idle\r\n* SEARCH 5 7 6\r\n* SEARCH\r\n\
        * 3 EXISTS\r\n* OK [UIDVALIDITY 12] ok\r\n* OK [uidnext 13] ok\r\n* FLAGS (\\Seen)\r\n* LIST () \"/\" {5}\r\nINBOX\r\n\
        * 1 FETCH (X-NEW (a (b {3}\r\n))))) UID 5 RFC822.SIZE 4 FLAGS (\\Seen work) INTERNALDATE \"17-Jul-1996 02:44:25 -0700\" BODY[] {4}\r\n)\r\n()\r\n\
        * 2 FETCH (BODY[HEADER.FIELDS (SUBJECT)] \"a \\\"b\\\\\" UID 6)\r\n* 2 FETCH (UID 7 BODY[] NIL)\r\n\
        + go on\r\nA1 OK done\r\nA2 NO [LIMIT] slow\r\nA3 BAD what\r\n* BYE\r\n";
    let mail = |uid| Mail { uid: Some(uid), ..Mail::default() };
    let first = Mail {
        size: Some(4),
        labels: vec!["work".to_owned()],
        arrived: Some("1996-07-17T09:44:25Z".parse().unwrap()),
        body: Some(Bytes::from_static(b")\r\n(")),
        ..mail(5)
    };
    let done = |tag, verdict| Said::Done { tag, verdict };
    let expected = [
        Said::Ready,
        Said::Can(vec!["IMAP4REV1".to_owned(), "IDLE".to_owned()]),
        Said::Found(Some((5, 7))),
        Said::Found(None),
        Said::Exists,
        Said::Validity(12),
        Said::Next(13),
        Said::Other,
        Said::Other,
        Said::Mail(first),
        Said::Mail(Mail { body: Some(Bytes::from_static(b"a \"b\\")), ..mail(6) }),
        Said::Mail(mail(7)),
        Said::Go,
        done(1, Verdict::Ok),
        done(2, Verdict::No("[LIMIT] slow".to_owned())),
        done(3, Verdict::Bad("what".to_owned())),
        Said::Bye,
    ];
    for piece in [1, 7, 1 << 20] {
        let (heard, broken) = heard(said, piece).await;
        assert_eq!(heard, expected);
        assert!(matches!(broken, Broken::Lost), "{broken}");
    }
}

#[tokio::test]
async fn beyond_each_bound_the_connection_ends_with_a_reason() {
    let nest = |open: &str, depth: usize| format!("* 1 FETCH (BODYSTRUCTURE {}", open.repeat(depth));
    let strange = String::from_utf8_lossy(&[0xff, 0, 1, b'\r', b'\n']).into_owned();
    for (said, expected) in [
        (nest("(", 1_000), "its answer is nested too deeply"),
        (nest("[", 100_000), "its answer is nested too deeply"),
        (nest("\"(\" {1}\r\n(", 1_000_000), "its answer is too long"),
        (format!("* SEARCH {}", "1 ".repeat(4 << 20)), "its answer is too long"),
        ("* 1 FETCH (BODY[] {100000000}\r\n".to_owned(), "its answer is too long"),
        (format!("* 1 FETCH (BODY[] {{{}}}\r\n", u64::MAX), "its answer is too long"),
        (format!("* {}\r\n", "{0}\r\n".repeat(1 << 20)), "its answer is too long"),
        (strange, "its answer can't be understood"),
        ("* 1 FETCH garbage\r\n".to_owned(), "its answer can't be understood"),
        ("* 1 FETCH (UID\r\n".to_owned(), "its answer can't be understood"),
        ("HTTP/1.1 400 Bad Request\r\n".to_owned(), "its answer can't be understood"),
        ("* 1 FETCH (BODY[] {100}\r\nshort".to_owned(), "the connection is lost"),
    ] {
        // It was quadratic: 25 seconds were not enough in a release build.
        let (heard, broken) = heard(said.as_bytes(), 4096).await;
        assert!(heard.is_empty() && broken.to_string() == expected, "{broken} {said:.60}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_literal_that_comes_too_slowly_ends_the_connection() {
    for (pause, expected) in [(8, "the connection is lost"), (11, "it sends a mail too slowly")] {
        let (mut ours, mut theirs) = duplex(4 * STEP);
        let speaking = async move {
            _ = theirs.write_all(format!("* 1 FETCH (BODY[] {{{}}}\r\n", 3 * STEP).as_bytes()).await;
            for _ in 0..2 {
                tokio::time::sleep(Duration::from_secs(pause)).await;
                _ = theirs.write_all(&vec![b'x'; STEP]).await;
            }
        };
        let mut responses = Responses::new(&Endless);
        let (heard, ()) = tokio::join!(responses.next(&mut ours, patience()), speaking);
        assert_eq!(heard.unwrap_err().to_string(), expected);
    }
}
