//! Samples in `tests/samples/mail`.

use std::{fs, path::Path};

use bytes::Bytes;
use jiff::Timestamp;
use proptest::{collection, prelude::*, sample::Index};
use serde_json::{Value, json};

use super::{MailContext, decode_event};
use crate::contract::{Event, Inbound, Proof, RemoteFile};

#[test]
fn samples() {
    muster_samples::check("mail", |mail| {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let context = MailContext { labels: Vec::new(), authserv_id: Some("mx.example.com".to_owned()), now };
        // Mails end their lines with CRLF.
        let text = mail.iter().fold(Vec::new(), |mut text, byte| {
            if *byte == b'\n' && text.last() != Some(&b'\r') {
                text.push(b'\r');
            }
            text.push(*byte);
            text
        });
        match decode_event(&Bytes::from(text), context) {
            Ok(Some(Event::Message(message))) => said(&message),
            Ok(Some(Event::Bounced(bounce))) => {
                json!({ "bounced": bounce.vendor_id, "cause": bounce.cause.to_string() })
            }
            Ok(other) => json!({ "nothing": other.is_none() }),
            Err(refusal) => json!({ "refused": refusal.to_string() }),
        }
    });
}

/// Readable form of a sample, without empty fields.
fn said(message: &Inbound) -> Value {
    let file = |file: &RemoteFile| json!({ "name": &file.name, "type": &file.media_type, "size": file.size });
    let mut value = json!({
        "from": message.origin.name.as_deref().map_or_else(
            || message.origin.id.clone(),
            |name| format!("{name} <{}>", message.origin.id),
        ),
        "subject": message.thread.title.as_deref(),
        "text": message.text.lines().collect::<Vec<_>>(),
        "files": message.files.iter().map(file).collect::<Vec<_>>(),
        "refs": &message.thread.refs,
        "at": (message.at != Timestamp::from_second(1_800_000_000).unwrap()).then(|| message.at.to_string()),
        "is_automatic": message.is_automatic.then_some(true),
        "is_proven": (message.proof != Proof::None).then_some(true),
    });
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, value| !value.is_null() && *value != json!([]));
    }
    value
}

fn mails() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/samples/mail");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|file| file.extension().is_some_and(|ending| ending == "eml"))
        .map(|file| fs::read(file).unwrap())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_mail_is_read_or_refused(
        which: Index, from: Index, to: Index, put in prop_oneof![
            collection::vec(any::<u8>(), 0..8),
            prop::sample::select(vec!["<div id=divRplyFwdMsg>", "<td>", "</table>", "</a>", "=?", "\r\n\r\n", "--", "\"", "*0*=", "&#", "<!--"])
                .prop_map(|text| text.as_bytes().to_vec()),
        ],
    ) {
        let mails = mails();
        let mail = which.get(&mails);
        let (from, to) = (from.index(mail.len()), to.index(mail.len()));
        let damaged = [&mail[..from.min(to)], &put, &mail[from.max(to)..]].concat();
        let context = MailContext { labels: Vec::new(), authserv_id: None, now: Timestamp::UNIX_EPOCH };
        drop(decode_event(&Bytes::from(damaged), context));
    }
}
