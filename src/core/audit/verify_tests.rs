use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    base::time::Timestamp,
    core::{
        audit::{AuditKey, statement},
        sealing::KeyFile,
    },
};

/// An export of organization 7 with this many lines and a checkpoint after every third.
fn exported(lines: i64) -> (Vec<Value>, AuditKey) {
    let key = AuditKey::derive(&KeyFile::generate()).unwrap();
    let mut prev = GENESIS.to_vec();
    let mut out = Vec::new();
    for seq in 1..=lines {
        let mut entry = json!({
            "v": 1, "id": seq * 10, "organization_id": 7, "seq": seq, "operation": format!("o{seq}"),
            "changes": { "n": seq, "text": "é" }, "actor_name": null,
        });
        let own = hash(&prev, &canonical(&entry));
        entry["type"] = "entry".into();
        entry["prev_hash"] = hex::encode(&prev).into();
        entry["hash"] = hex::encode(own).into();
        out.push(entry);
        prev = own.to_vec();
        if seq % 3 == 0 {
            out.push(said(&key, "checkpoint", seq, &prev, |_| ()));
        }
    }
    let header = said(&key, "export", lines, &prev, |header| {
        header["from_seq"] = 1.into();
        header["from_hash"] = hex::encode(GENESIS).into();
    });
    out.insert(0, header);
    (out, key)
}

fn said(key: &AuditKey, kind: &str, seq: i64, hash: &[u8], more: impl Fn(&mut Value)) -> Value {
    let mut said = statement::statement(kind, 7, seq, hash, Timestamp(0), key.public().id());
    more(&mut said);
    let signature = statement::sign(key, &said);
    statement::with_signature(said, &signature)
}

fn looked_at(lines: &[Value], key: &AuditKey) -> Report {
    let keys = [key.public().clone()];
    let mut verifier = Verifier::new(Some(7), &keys);
    for line in lines {
        verifier.take_line(line.clone());
    }
    verifier.finish(None, 0)
}

fn broken(lines: &[Value], key: &AuditKey) -> (i64, Fault) {
    let broken = looked_at(lines, key).broken.expect("something is wrong");
    (broken.seq, broken.fault)
}

/// The index of the entry with this place.
fn at(lines: &[Value], seq: i64) -> usize {
    lines.iter().position(|line| line["type"] == "entry" && line["seq"] == seq).unwrap()
}

/// Rehashes every entry from this place on, as an attacker who can write but not sign could.
fn rehash(lines: &mut [Value], from: i64) {
    let mut prev: Option<Vec<u8>> = None;
    for line in lines.iter_mut().filter(|line| line["type"] == "entry" && line["seq"].as_i64() >= Some(from))
    {
        let before = prev.unwrap_or_else(|| hex::decode(line["prev_hash"].as_str().unwrap()).unwrap());
        let mut content = line.clone();
        for name in ["type", "prev_hash", "hash"] {
            content.as_object_mut().unwrap().remove(name);
        }
        let own = hash(&before, &canonical(&content)).to_vec();
        line["prev_hash"] = hex::encode(&before).into();
        line["hash"] = hex::encode(&own).into();
        prev = Some(own);
    }
}

#[test]
fn what_was_left_alone_is_good() {
    for lines in [0, 1, 3, 10] {
        let (log, key) = exported(lines);
        let report = looked_at(&log, &key);
        assert_eq!(
            (report.ok, report.lines, report.signed_up_to),
            (true, lines.unsigned_abs(), lines),
            "{report}"
        );
        assert!(!report.partial && !report.begins_after_tombstone);
    }
}

#[test]
fn a_changed_line_is_named() {
    let (mut log, key) = exported(10);
    let n = at(&log, 5);
    log[n]["operation"] = "nothing".into();
    assert_eq!(broken(&log, &key), (5, Fault::Changed));
    // Rehashed: the next line reveals it. With the rest of the chain rehashed: the checkpoint does.
    let mut once = log.clone();
    rehash(&mut once[n..=n], 5);
    assert_eq!(broken(&once, &key), (5, Fault::Changed));
    rehash(&mut log, 5);
    assert_eq!(broken(&log, &key), (6, Fault::Changed));
    assert!(looked_at(&log, &key).broken.unwrap().detail.contains("from 4 to 6"));
}

#[test]
fn a_missing_an_added_a_moved_and_a_cut_line_are_named() {
    let (log, key) = exported(10);
    let mut missing = log.clone();
    missing.remove(at(&log, 5));
    assert_eq!(broken(&missing, &key), (5, Fault::Missing));
    let mut first = log.clone();
    first.remove(at(&log, 1));
    assert_eq!(broken(&first, &key), (1, Fault::Missing));
    let mut added = log.clone();
    added.insert(at(&log, 5), log[at(&log, 4)].clone());
    assert_eq!(broken(&added, &key), (4, Fault::Inserted));
    let mut moved = log.clone();
    moved.swap(at(&log, 4), at(&log, 5));
    assert_eq!(broken(&moved, &key), (4, Fault::Reordered));
    let mut renumbered = log.clone();
    let (a, b) = (at(&log, 4), at(&log, 5));
    renumbered.swap(a, b);
    (renumbered[a]["seq"], renumbered[b]["seq"]) = (4.into(), 5.into());
    assert_eq!(broken(&renumbered, &key), (4, Fault::Reordered));
    let cut = &log[..at(&log, 9)];
    assert_eq!(broken(cut, &key), (9, Fault::Truncated));
    let lost = &log[..1];
    assert_eq!(broken(lost, &key), (1, Fault::Truncated));
}

#[test]
fn statements_count_only_with_a_good_signature_of_a_known_key() {
    let (log, key) = exported(10);
    let n = log.iter().position(|line| line["type"] == "checkpoint").unwrap();
    let mut forged = log.clone();
    forged[n]["hash"] = hex::encode([7; 32]).into();
    assert_eq!(broken(&forged, &key), (3, Fault::BadStatement));
    let other = AuditKey::derive(&KeyFile::generate()).unwrap();
    let report = looked_at(&log, &other);
    assert_eq!(report.broken.as_ref().unwrap().fault, Fault::BadStatement);
    assert!(report.to_string().contains("--key"), "{report}");
    // Another organization's statement proves nothing here.
    let mut foreign = statement::statement("checkpoint", 8, 3, &[0; 32], Timestamp(0), key.public().id());
    foreign = statement::with_signature(foreign.clone(), &statement::sign(&key, &foreign));
    let mut mixed = log.clone();
    mixed[n] = foreign;
    assert_eq!(broken(&mixed, &key).1, Fault::BadStatement);
}

#[test]
fn a_tombstone_stands_for_what_was_removed() {
    let (log, key) = exported(10);
    let last = hex::decode(log[at(&log, 6)]["hash"].as_str().unwrap()).unwrap();
    let mut left = vec![said(&key, "tombstone", 6, &last, |_| ())];
    left.extend_from_slice(&log[at(&log, 7)..]);
    let report = looked_at(&left, &key);
    assert!(report.ok && report.begins_after_tombstone, "{report}");
    assert_eq!((report.first_seq, report.lines), (Some(7), 4));
    // Without it, or with a different one, the lines are missing.
    assert_eq!(broken(&left[1..], &key), (1, Fault::Missing));
    left[0] = said(&key, "tombstone", 6, &[1; 32], |_| ());
    assert_eq!(broken(&left, &key), (7, Fault::Missing));
    left[0] = said(&key, "tombstone", 5, &last, |_| ());
    assert_eq!(broken(&left, &key), (6, Fault::Missing));
}

#[test]
fn a_key_is_read_back_and_nothing_else_is_one() {
    let key = AuditKey::derive(&KeyFile::generate()).unwrap();
    assert_eq!(PublicKey::parse(&key.public().to_string()).as_ref(), Some(key.public()));
    for wrong in ["", "AAAA", "not base64!", &"A".repeat(1000)] {
        assert_eq!(PublicKey::parse(wrong), None, "{wrong}");
    }
}

proptest! {
    /// Verification notices each replaced value of a line, except a person's name: erasing the person replaces it.
    #[test]
    fn only_a_persons_name_can_be_replaced(line in 0_usize..12, field in 0_usize..12, to in prop_oneof![
        any::<i64>().prop_map(Value::from), "[a-f0-9]{64}".prop_map(Value::from), "\\PC{0,12}".prop_map(Value::from),
        Just(Value::Null), Just(json!({})),
    ]) {
        let (mut log, key) = exported(9);
        let line = line % log.len();
        let fields = log[line].as_object_mut().unwrap();
        let name = fields.keys().nth(field % fields.len()).unwrap().clone();
        let before = fields.insert(name.clone(), to.clone());
        let report = looked_at(&log, &key);
        prop_assume!(name != "actor_name");
        prop_assert_eq!(report.ok, before.as_ref() == Some(&to), "{} of {} to {}: {}", name, line, to, report);
    }

    /// Lines in any order never cause a panic, and only the whole log passes.
    #[test]
    fn any_file_is_judged(picked in proptest::collection::vec(0_usize..14, 0..20)) {
        let (log, key) = exported(9);
        let some: Vec<Value> = picked.iter().map(|n| log.get(*n).cloned().unwrap_or(json!([1]))).collect();
        let report = looked_at(&some, &key);
        prop_assert!(!report.ok || report.last_seq <= 9);
    }
}
