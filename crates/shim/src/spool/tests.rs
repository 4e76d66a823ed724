//! The spool's files: reading, crashes, trimming.

use super::*;

fn made(dir: &Path, lines: std::ops::RangeInclusive<u64>) -> Spool {
    let mut spool = Spool::create(dir, 3, 64 << 10).unwrap();
    for line in lines {
        spool.push(text(line).as_bytes());
        spool.flush().unwrap();
    }
    spool
}

fn text(seq: u64) -> String {
    format!("line {seq} {}", "x".repeat(usize::try_from(seq % 90).unwrap()))
}

fn read_all(dir: &Path, from: u64) -> Vec<u64> {
    let lines = read(dir, from).unwrap().map(Result::unwrap);
    lines.map(|(seq, bytes)| (assert_eq!(bytes, text(seq).into_bytes()), seq).1).collect()
}

/// A client's data, read through a buffer of this size.
fn copied(spool: &Spool, from: u64, buffer: usize) -> String {
    let mut cursor = Cursor::at(from);
    let (mut to, mut buffer) = (Vec::new(), vec![0; buffer]);
    while spool.copy(&mut cursor, &mut Vec::new(), &mut to, &mut buffer).unwrap() {}
    String::from_utf8(to).unwrap()
}

fn sent(lines: std::ops::RangeInclusive<u64>) -> String {
    lines.map(|line| format!("OUT {line} {}\n{}", text(line).len(), text(line))).collect()
}

#[test]
fn a_client_gets_lines_from_any_offset_in_reads_of_any_size() {
    let dir = tempfile::tempdir().unwrap();
    let spool = made(dir.path(), 1..=400);
    assert!(spool.segments.len() > 2, "there are {}", spool.segments.len());
    for buffer in [40, 100, 1000, 64 << 10] {
        for from in [1, 2, 57, 399, 400] {
            assert_eq!(copied(&spool, from, buffer), sent(from..=400), "from {from} by {buffer}");
        }
        assert_eq!(copied(&spool, 401, buffer), "");
    }
}

#[test]
fn control_headers_never_split_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let spool = made(dir.path(), 1..=50);
    let (mut cursor, mut to, mut buffer) = (Cursor::at(1), Vec::new(), [0; 64]);
    let mut control = b"TOOK 1\n".to_vec();
    while spool.copy(&mut cursor, &mut control, &mut to, &mut buffer).unwrap() {
        control = b"TOOK 1\n".to_vec();
    }
    let (mut rest, mut lines, mut words) = (&to[..], 0, 0);
    while let Some(header) = read_header(&mut rest).unwrap() {
        match FromShim::parse(&header).unwrap() {
            FromShim::Out { seq, len } => {
                lines += 1;
                assert_eq!((seq, &rest[..len]), (lines, text(lines).as_bytes()));
                rest = &rest[len..];
            }
            _ => words += 1,
        }
    }
    assert_eq!(lines, 50);
    assert!(words > 10, "{words}");
}

#[test]
fn segments_go_when_all_their_lines_are_trimmed() {
    let dir = tempfile::tempdir().unwrap();
    let mut spool = made(dir.path(), 1..=2000);
    assert!(spool.is_full());
    let files = || fs::read_dir(dir.path().join(SPOOL)).unwrap().count();
    let all = files();
    spool.trim(1700, None);
    assert!(!spool.is_full());
    assert!(files() < all);
    assert_eq!((spool.first(), copied(&spool, 1, 1000)), (1701, sent(1701..=2000)));
    // Includes the current segment.
    spool.trim(2000, None);
    assert_eq!((files(), spool.total), (0, 0));
    spool.push(text(2001).as_bytes());
    spool.flush().unwrap();
    assert_eq!(copied(&spool, 1, 1000), sent(2001..=2001));
    assert_eq!(read_all(dir.path(), 1), [2001]);
}

#[test]
fn a_client_finishes_the_line_that_it_trims() {
    let dir = tempfile::tempdir().unwrap();
    let mut spool = made(dir.path(), 1..=3);
    let (mut cursor, mut to, mut buffer) = (Cursor::at(1), Vec::new(), [0; 12]);
    assert!(spool.copy(&mut cursor, &mut Vec::new(), &mut to, &mut buffer).unwrap());
    assert!(cursor.is_amid());
    spool.trim(3, None);
    while spool.copy(&mut cursor, &mut Vec::new(), &mut to, &mut buffer).unwrap() {}
    assert_eq!(String::from_utf8(to).unwrap(), sent(1..=1));
}

#[test]
fn a_torn_end_is_dropped_wherever_it_is_torn() {
    let dir = tempfile::tempdir().unwrap();
    drop(made(dir.path(), 1..=20));
    let path = path_of(&dir.path().join(SPOOL), 1);
    let whole = fs::read(&path).unwrap();
    assert_eq!(read_all(dir.path(), 1), (1..=20).collect::<Vec<_>>());
    assert_eq!(read_all(dir.path(), 18), [18, 19, 20]);
    let mut before = 21;
    for len in (0..whole.len()).rev().step_by(3) {
        fs::write(&path, &whole[..len]).unwrap();
        let seqs = read_all(dir.path(), 1);
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "cut to {len} bytes");
        assert!(seqs.len() <= before);
        before = seqs.len();
    }
    assert!(before < 2);
    // Unwritten blocks may be zeros.
    let mut zeros = whole.clone();
    let half = zeros.len() / 2;
    zeros[half..].fill(0);
    fs::write(&path, &zeros).unwrap();
    assert!((1..20).contains(&read_all(dir.path(), 1).len()));
}

#[test]
fn nothing_follows_a_missing_segment() {
    let dir = tempfile::tempdir().unwrap();
    let spool = made(dir.path(), 1..=400);
    let second = spool.segments[1].first;
    fs::remove_file(path_of(&spool.folder, second)).unwrap();
    assert_eq!(read_all(dir.path(), 1), (1..second).collect::<Vec<_>>());
}

#[test]
fn a_folder_is_used_once() {
    let dir = tempfile::tempdir().unwrap();
    drop(made(dir.path(), 1..=1));
    let error = Spool::create(dir.path(), 4, 64 << 10).err().unwrap();
    assert!(error.to_string().contains("each launch needs a folder of its own"), "{error}");
}
