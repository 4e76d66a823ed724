//! Responses of well-behaved and of hostile servers.

use bytes::Bytes;
use tokio::io::{AsyncWriteExt, duplex};

use super::*;
use crate::{
    contract::Unlimited,
    email::imap_response::{Mail, Response, Status},
};

fn patience() -> Instant {
    Instant::now() + Duration::from_secs(90)
}

/// The parsed responses of a connection's bytes, arriving in chunks.
pub async fn parse_stream(bytes: &[u8], piece: usize) -> (Vec<Response>, ReadError) {
    let (mut ours, mut theirs) = duplex(64 << 10);
    let speaking = async move {
        for piece in bytes.chunks(piece) {
            if theirs.write_all(piece).await.is_err() {
                return;
            }
        }
    };
    let hearing = async move {
        let (mut responses, mut heard) = (ResponseReader::new(&Unlimited), Vec::new());
        loop {
            match responses.next(&mut ours, patience()).await.and_then(|response| response.parse()) {
                Ok(said) => heard.push(said),
                Err(broken) => return (heard, broken),
            }
        }
    };
    tokio::join!(hearing, speaking).0
}

#[tokio::test]
async fn responses_are_read_in_any_chunks() {
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
    let done = |tag, status| Response::Done { tag, status };
    let expected = [
        Response::Ready,
        Response::Capabilities(vec!["IMAP4REV1".to_owned(), "IDLE".to_owned()]),
        Response::Found(Some((5, 7))),
        Response::Found(None),
        Response::Exists,
        Response::UidValidity(12),
        Response::UidNext(13),
        Response::Other,
        Response::Other,
        Response::Mail(first),
        Response::Mail(Mail { body: Some(Bytes::from_static(b"a \"b\\")), ..mail(6) }),
        Response::Mail(mail(7)),
        Response::Continue,
        done(1, Status::Ok),
        done(2, Status::No("[LIMIT] slow".to_owned())),
        done(3, Status::Bad("what".to_owned())),
        Response::Bye,
    ];
    for piece in [1, 7, 1 << 20] {
        let (heard, broken) = parse_stream(said, piece).await;
        assert_eq!(heard, expected);
        assert!(matches!(broken, ReadError::Lost), "{broken}");
    }
}

#[tokio::test]
async fn each_limit_ends_the_connection_with_a_reason() {
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
        // Once quadratic: 25 seconds were too short in a release build.
        let (heard, broken) = parse_stream(said.as_bytes(), 4096).await;
        assert!(heard.is_empty() && broken.to_string() == expected, "{broken} {said:.60}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_literal_ends_the_connection() {
    for (pause, expected) in [(8, "the connection is lost"), (11, "it sends a mail too slowly")] {
        let (mut ours, mut theirs) = duplex(4 * STEP);
        let speaking = async move {
            _ = theirs.write_all(format!("* 1 FETCH (BODY[] {{{}}}\r\n", 3 * STEP).as_bytes()).await;
            for _ in 0..2 {
                tokio::time::sleep(Duration::from_secs(pause)).await;
                _ = theirs.write_all(&vec![b'x'; STEP]).await;
            }
        };
        let mut responses = ResponseReader::new(&Unlimited);
        let (heard, ()) = tokio::join!(responses.next(&mut ours, patience()), speaking);
        assert_eq!(heard.unwrap_err().to_string(), expected);
    }
}
