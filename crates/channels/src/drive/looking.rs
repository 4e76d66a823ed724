//! Looks for new files and comments, again and again. What was there at the first look is not new.
//!
//! A file counts once two looks in a row find the same version: until then it may be written. Google is asked for the
//! list of changes first, and only if there are any for the files; WebDAV has no such list.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
    convert::Infallible,
    mem,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::{
    Backend, Drive,
    comments::decode,
    files::{File, digest},
    google::{Google, Me},
};
use crate::{
    backoff::Backoff,
    bounds,
    contract::{Cursor, Event, Failure, Link, Sink, Skipped},
};

/// The position of a listener.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Position {
    /// The folder that it is in.
    folder: u64,
    /// When it began, by Google's clock.
    since: Timestamp,
    /// Digests of all files, with those of their versions. `None`: before the first look.
    files: Option<BTreeMap<u64, u64>>,
    /// The last comment on each of the latest files.
    comments: BTreeMap<String, Timestamp>,
}

/// A position in Google's list of changes, and our account.
struct Followed {
    me: Me,
    drive: Option<String>,
    token: String,
}

struct Listener<'a> {
    drive: &'a Drive,
    sink: &'a dyn Sink,
    position: Position,
    /// The files at the last look.
    files: Option<Vec<File>>,
    /// Digests of those that are not settled.
    unsettled: HashMap<u64, u64>,
    followed: Option<Followed>,
}

/// Why a look ended early.
enum End {
    Failed(Failure),
    Stopped,
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Listens until dropped, or until the other side can't be asked again.
pub async fn listen(drive: &Drive, cursor: Option<Cursor>, sink: &dyn Sink) -> Result<Infallible, Failure> {
    let position = cursor.and_then(|cursor| muster_json::from_str::<Position>(&cursor.0).ok());
    let position = position.unwrap_or_default();
    let (files, unsettled) = (None, HashMap::new());
    let mut listener = Listener { drive, sink, position, files, unsettled, followed: None };
    let (mut backoff, mut is_up) = (Backoff::new(), false);
    loop {
        let failure = match listener.look().await {
            Ok(()) => {
                if !mem::replace(&mut is_up, true) {
                    sink.link(Link::Up);
                }
                backoff.reset();
                sleep(drive.poll).await;
                continue;
            }
            Err(End::Stopped) => return Err(Failure::NotSent("The service takes no messages.".into())),
            Err(End::Failed(Failure::TargetGone(cause))) => return Err(Failure::Gone(cause)),
            Err(End::Failed(failure @ (Failure::Credentials(_) | Failure::Refused(_)))) => {
                return Err(failure);
            }
            Err(End::Failed(failure)) => failure,
        };
        is_up = false;
        sink.link(Link::Down(failure.to_string().into()));
        let wait = if let Failure::RateLimited { wait, .. } = failure { Some(wait) } else { None };
        backoff.wait(wait).await;
    }
}

impl Listener<'_> {
    async fn look(&mut self) -> Result<(), End> {
        let drive = self.drive;
        match &drive.backend {
            Backend::WebDav(dav) => {
                self.enter(&format!("{} {}", dav.url(), drive.folder));
                let files = dav.files().await?;
                self.take(files).await
            }
            Backend::Google(google) => {
                if self.follow(google).await? || self.files.is_none() || !self.unsettled.is_empty() {
                    // If they can't be read now, the next look reads them.
                    self.files = None;
                    let files = google.files().await?;
                    self.take(files).await?;
                }
                self.read_comments(google).await
            }
        }
    }

    /// Forgets the position if it is in another folder, of earlier settings or of another account.
    fn enter(&mut self, folder: &str) {
        let folder = digest(folder);
        if self.position.folder != folder {
            self.position = Position { folder, ..Position::default() };
        }
    }

    /// Moves on in Google's list of changes. Returns whether there are any, or there may be.
    async fn follow(&mut self, google: &Google) -> Result<bool, Failure> {
        if let Some(followed) = &mut self.followed
            && let Some(changes) = google.changes(&followed.token, followed.drive.as_deref()).await?
        {
            followed.token = changes.token;
            return Ok(changes.any);
        }
        let (me, (folder, drive)) = (google.me().await?, google.folder().await?);
        self.enter(&folder);
        let (token, now) = google.begin(drive.as_deref()).await?;
        if self.position.files.is_none() {
            self.position.since = now;
        }
        self.followed = Some(Followed { me, drive, token });
        Ok(true)
    }

    /// Takes the files of a look: those that are new or changed, and settled, are messages.
    async fn take(&mut self, files: Vec<File>) -> Result<(), End> {
        let now: HashMap<u64, u64> = files.iter().map(File::digests).collect();
        let before = mem::take(&mut self.unsettled);
        let Some(known) = &mut self.position.files else {
            self.position.files = Some(now.into_iter().collect());
            self.files = Some(files);
            return self.store(Vec::new()).await;
        };
        let count = known.len();
        // A storage that is away looks like an empty folder: its files would all be new when it is back.
        if !files.is_empty() {
            known.retain(|id, _| now.contains_key(id));
        }
        let is_changed = known.len() < count;
        let is_news = |file: &&File| {
            let (id, version) = file.digests();
            known.get(&id) != Some(&version)
        };
        let news: Vec<&File> = files.iter().filter(is_news).collect();
        let mut is_stored = !is_changed;
        for file in news {
            let (id, version) = file.digests();
            if before.get(&id) == Some(&version) {
                let known = self.position.files.get_or_insert_default();
                let is_new = known.insert(id, version).is_none();
                let event = self.drive.event_of(file, is_new);
                self.store(event.into_iter().collect()).await?;
                is_stored = true;
            } else {
                self.unsettled.insert(id, version);
            }
        }
        self.files = Some(files);
        if is_stored { Ok(()) } else { self.store(Vec::new()).await }
    }

    /// Reads the comments on the files that changed last: a comment does not change its file.
    async fn read_comments(&mut self, google: &Google) -> Result<(), End> {
        let Some(Followed { me, .. }) = &self.followed else { return Ok(()) };
        let mut files: Vec<&File> = self.files.iter().flatten().collect();
        files.sort_by_key(|file| Reverse(file.modified));
        files.truncate(bounds::LIST);
        let latest: HashSet<&str> = files.iter().map(|file| file.id.as_str()).collect();
        self.position.comments.retain(|file, _| latest.contains(file.as_str()));
        for file in files {
            let since = self.position.comments.get(&file.id).copied().unwrap_or(self.position.since);
            let comments = match google.comments(&file.id, since).await {
                // Removed meanwhile, or without comments.
                Err(Failure::TargetGone(_) | Failure::Refused(_)) => continue,
                comments => comments?,
            };
            let mut events = Vec::new();
            for comment in &comments {
                match decode(comment, file, me, since) {
                    Ok(decoded) => events.extend(decoded),
                    Err(refusal) => {
                        let vendor_id = comment["id"].as_str().unwrap_or_default().to_owned();
                        let reason = refusal.to_string().into();
                        self.sink.skipped(Skipped { vendor_id, subject: None, reason }).await;
                    }
                }
            }
            events.sort_by_key(|(at, _)| *at);
            if let Some((last, _)) = events.last() {
                self.position.comments.insert(file.id.clone(), *last);
                self.store(events.into_iter().map(|(_, event)| event).collect()).await?;
            }
        }
        Ok(())
    }

    /// Stores events with the position.
    async fn store(&self, events: Vec<Event>) -> Result<(), End> {
        let cursor = serde_json::to_string(&self.position).ok().map(Cursor);
        self.sink.admit(events, cursor).await.map_err(|_| End::Stopped)
    }
}
