//! The journal's guarantees.

use muster_protocol::{
    Command,
    event::{Asked, Request},
};
use serde_json::{Value, json};

use super::*;

fn envelope(seq: i64, id: i64) -> CommandEnvelope {
    CommandEnvelope { seq, id, agent_id: 1, generation: 1, deadline: 0, command: Command::Stop }
}

fn events(count: usize) -> Vec<Draft> {
    let draft = Draft { agent_id: 1, generation: 1, at: 5, what: HostEvent::Synced };
    vec![draft; count]
}

#[test]
fn a_journal_that_is_half_put_aside_is_still_there() {
    let dir = tempfile::tempdir().unwrap();
    let [path, first, second] = ["journal", "first", "second"].map(|name| dir.path().join(name));
    let records = |path: &Path| Journal::contents(path).unwrap().agents;
    let of = |text: &str| vec![(1, text.as_bytes().to_vec())];
    Journal::begin_again(&path, &first, of("before")).unwrap();
    assert!(!first.exists(), "there was none");
    // The command is killed after its first step, and repeated.
    store::keep_aside(&path, &first).unwrap();
    assert_eq!(records(&path), of("before"));
    Journal::begin_again(&path, &second, of("after")).unwrap();
    assert_eq!(
        [records(&path), records(&first), records(&second)],
        [of("after"), of("before"), of("before")]
    );
}

#[tokio::test]
async fn a_repeated_command_is_new_only_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let (journal, _) = Journal::open(&path).unwrap();
    assert_eq!(journal.receive(vec![envelope(1, 10), envelope(2, 11)]).await.unwrap().len(), 2);
    assert!(journal.receive(vec![envelope(1, 10), envelope(2, 11)]).await.unwrap().is_empty());
    assert!(
        journal.receive(vec![envelope(3, 10)]).await.unwrap().is_empty(),
        "the same id under a new number"
    );
    assert_eq!(journal.position().borrow().commands, 3);
    let change = Change { done: vec![1], ..Change::default() };
    journal.commit(change).await.unwrap();
    drop(journal);
    let (journal, contents) = reopened(&path).await;
    assert_eq!((contents.commands, contents.pending_commands), (3, vec![envelope(2, 11)]));
    assert!(
        journal.receive(vec![envelope(4, 10)]).await.unwrap().is_empty(),
        "an id is known after it was done"
    );
}

/// The last sync fails after the new header became visible: the writer repeats the same batch from its original
/// position.
#[tokio::test]
async fn a_batch_whose_failed_commit_is_visible_is_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let (store, contents) = Store::open(&dir.path().join("journal")).unwrap();
    let (done, _kept) = oneshot::channel();
    let step = Change { record: Some((1, b"{}".to_vec())), events: events(3), done: Vec::new() };
    let first = writer::write(&store, &[Task::Commit(step, done)], contents.position(1024 * 1024)).unwrap().0;
    let (received, _kept) = oneshot::channel();
    let (done, _other) = oneshot::channel();
    let batch = [
        Task::Acknowledge { through: 2, window: None },
        Task::Receive(vec![envelope(1, 10), envelope(2, 11), envelope(3, 10)], received),
        Task::Commit(Change { events: events(4), ..Change::default() }, done),
    ];
    let (seen, fresh) = writer::write(&store, &batch, first).unwrap();
    assert_eq!(fresh, [vec![envelope(1, 10), envelope(2, 11)]]);
    let again = JournalPosition { waiting: store.waiting().unwrap(), ..first };
    let (now, repeated) = writer::write(&store, &batch, again).unwrap();
    assert_eq!((now, &repeated), (seen, &fresh), "the same commands are new, and nothing counts twice");
    assert_eq!((now.events, now.waiting), (7, store.waiting().unwrap()));
    let seqs: Vec<i64> = store.events_after(0, usize::MAX).unwrap().iter().map(|event| event.seq).collect();
    assert_eq!(seqs, [3, 4, 5, 6, 7]);
    let later = [Task::Receive(vec![envelope(4, 11)], oneshot::channel().0)];
    assert_eq!(writer::write(&store, &later, now).unwrap().1, [vec![]], "another number is a repetition");
}

#[tokio::test]
async fn events_have_no_gaps_and_stay_until_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let (journal, _) = Journal::open(&path).unwrap();
    let many = (0..20).map(|_| {
        let change = Change { record: Some((1, b"{}".to_vec())), events: events(3), done: Vec::new() };
        journal.commit(change)
    });
    for committed in futures::future::join_all(many).await {
        committed.unwrap();
    }
    let seqs: Vec<i64> = journal.events_after(0, usize::MAX).unwrap().iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=60).collect::<Vec<_>>());
    journal.acknowledge(50, None).await.unwrap();
    journal.commit(Change::default()).await.unwrap();
    drop(journal);
    let (journal, contents) = reopened(&path).await;
    assert_eq!((contents.events, contents.agents.len()), (60, 1));
    assert_eq!(journal.events_after(0, usize::MAX).unwrap().len(), 10);
    assert_eq!(journal.events_after(57, 1).unwrap().len(), 1, "at least one, however large");
    assert_eq!(contents.waiting, journal.position().borrow().waiting);
}

#[tokio::test]
async fn an_unreadable_event_keeps_its_number_and_blocks_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = Journal::open(&dir.path().join("journal")).unwrap();
    let asked = Asked::Action {
        tool: None,
        tool_kind: "read".to_owned(),
        title: "Look".to_owned(),
        input: (0..125).fold(Value::Null, |inner, _| json!([inner])),
    };
    let request = Request { request: "1.h1".to_owned(), conversation_id: 1, turn_id: Some(5), asked };
    let mut drafts = events(3);
    drafts[1].what = HostEvent::Asked(request);
    journal.commit(Change { events: drafts, ..Change::default() }).await.unwrap();
    let event = |seq, what| Event { seq, agent_id: 1, generation: 1, at: 5, what };
    let withdrawn = HostEvent::Withdrawn { request: "1.h1".to_owned() };
    let expected = [event(1, HostEvent::Synced), event(2, withdrawn), event(3, HostEvent::Synced)];
    assert_eq!(journal.events_after(0, usize::MAX).unwrap(), expected);
}

#[tokio::test]
async fn no_more_is_read_than_may_wait_until_it_is_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = Journal::open(&dir.path().join("journal")).unwrap();
    journal.acknowledge(0, Some(100)).await.unwrap();
    journal.commit(Change { events: events(5), ..Change::default() }).await.unwrap();
    assert!(journal.position().borrow().waiting > 100);
    let room = journal.wait_for_room();
    futures::pin_mut!(room);
    assert!(futures::poll!(room.as_mut()).is_pending());
    journal.acknowledge(5, None).await.unwrap();
    room.await.unwrap();
    assert_eq!(journal.position().borrow().waiting, 0);
}

#[tokio::test]
async fn a_journal_that_was_not_finished_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.redb");
    std::fs::write(path.with_extension("new"), vec![0; 4096]).unwrap();
    let (journal, contents) = Journal::open(&path).unwrap();
    assert_eq!((contents.commands, contents.events), (0, 0));
    journal.commit(Change { events: events(1), ..Change::default() }).await.unwrap();
    assert!(!path.with_extension("new").exists());
    std::fs::write(dir.path().join("damaged"), vec![0; 4096]).unwrap();
    assert!(Journal::open(&dir.path().join("damaged")).is_err(), "what it is not sure of, it leaves alone");
}

/// The previous journal's thread may need a moment to close the file.
async fn reopened(path: &Path) -> (Journal, Contents) {
    loop {
        match Journal::open(path) {
            Ok(opened) => return opened,
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// Mounts a small file system, which requires root; otherwise the test reports that it was skipped.
struct Small(tempfile::TempDir);

impl Small {
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=3m", "tmpfs"]).arg(dir.path());
        mount.output().is_ok_and(|output| output.status.success()).then(|| Self(dir))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

#[tokio::test]
async fn a_full_disk_is_waited_for() {
    let Some(small) = Small::mount() else {
        eprintln!("skipped: no file system can be mounted");
        return;
    };
    let (journal, _) = Journal::open(&small.0.path().join("journal")).unwrap();
    let filler = small.0.path().join("filler");
    let _ = std::fs::write(&filler, vec![0; 4 << 20]);
    let large = Change { record: Some((1, vec![b' '; 1 << 20])), events: events(2), done: Vec::new() };
    let commit = journal.commit(large);
    futures::pin_mut!(commit);
    let waited = tokio::time::timeout(std::time::Duration::from_millis(1500), commit.as_mut()).await;
    assert!(waited.is_err(), "nothing is confirmed that is not on the disk");
    std::fs::remove_file(&filler).unwrap();
    commit.await.unwrap();
    assert_eq!(journal.events_after(0, usize::MAX).unwrap().len(), 2);
    assert_eq!(journal.position().borrow().events, 2, "each is there once");
}
