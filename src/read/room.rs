//! How large answers may be that are made at a time: those of one request, and together those of a batch or a socket.
//!
//! Relations multiply, so a short document can ask for gigabytes. What records are written to is counted while it is
//! written. Operations that one client sends together share a [`Room`]: else each of them would have all of it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::base::problem::{Code, Problem, Result};

/// The most, in bytes of JSON.
const MOST: usize = 64 << 20;
/// As how much a byte counts that the executor takes apart, which needs some twenty times as much room.
const TAKEN_APART: usize = 8;
/// What a request may have although others have taken everything: a change is told to whoever made it, and an event to
/// whoever waits for it, whatever else they have asked for.
const SMALL: usize = 64 << 10;
/// The most, in bytes of JSON, that one request may ask about the schema, all operations of a batch together: five
/// times what the query of code generators takes.
const MOST_ABOUT_SCHEMA: usize = 2 << 20;

/// What the operations of a batch or of a socket have taken together.
pub struct Room {
    of: &'static str,
    taken: AtomicUsize,
    /// What was taken of the schema, where that is bounded for all together.
    about_schema: Option<AtomicUsize>,
}

impl Room {
    /// Nothing is taken yet; `of` is what a caller knows it as.
    #[must_use]
    pub fn new(of: &'static str) -> Arc<Self> {
        Arc::new(Self { of, taken: AtomicUsize::new(0), about_schema: None })
    }

    /// The room of a batch, which is one request.
    #[must_use]
    pub fn of_batch() -> Arc<Self> {
        let about_schema = Some(AtomicUsize::new(0));
        Arc::new(Self { of: "batch", taken: AtomicUsize::new(0), about_schema })
    }

    /// Keeps an answer until everything is answered.
    ///
    /// # Errors
    /// `QUERY_TOO_COMPLEX` for one that does not fit any more.
    pub fn keep(&self, answer: &[u8]) -> Result<()> {
        let before = self.taken.fetch_add(answer.len(), Ordering::Relaxed);
        if answer.len() <= SMALL || before + answer.len() <= MOST {
            return Ok(());
        }
        self.taken.fetch_sub(answer.len(), Ordering::Relaxed);
        Err(self.is_full())
    }

    fn is_full(&self) -> Problem {
        let detail = format!(
            "The answers of one {} are together larger than it may have at a time: ask for less at once.",
            self.of
        );
        Problem::new(Code::QueryTooComplex, detail)
    }
}

/// What one request has taken. It is given back when the request is gone.
pub struct Share {
    room: Option<Arc<Room>>,
    taken: AtomicUsize,
    about_schema: AtomicUsize,
    weight: usize,
}

impl Default for Share {
    fn default() -> Self {
        Self::of(None)
    }
}

impl Share {
    /// The share of an operation that has the room with others, or for itself alone.
    #[must_use]
    pub fn of(room: Option<Arc<Room>>) -> Self {
        Self { room, taken: AtomicUsize::new(0), about_schema: AtomicUsize::new(0), weight: TAKEN_APART }
    }

    /// The same, where the bytes are `copied` as they are, or else taken apart.
    #[must_use]
    pub fn copied(mut self, copied: bool) -> Self {
        self.weight = if copied { 1 } else { TAKEN_APART };
        self
    }

    /// Whether there is room for so many bytes more.
    ///
    /// # Errors
    /// `QUERY_TOO_COMPLEX`.
    pub fn check(&self, bytes: usize) -> Result<()> {
        let more = bytes * self.weight;
        let mine = self.taken.load(Ordering::Relaxed) + more;
        if mine > MOST {
            let detail = "The response is larger than one request may ask for.";
            return Err(Problem::new(Code::QueryTooComplex, detail));
        }
        match &self.room {
            Some(room) if mine > SMALL && room.taken.load(Ordering::Relaxed) + more > MOST => {
                Err(room.is_full())
            }
            _ => Ok(()),
        }
    }

    /// Takes so many bytes.
    pub fn take(&self, bytes: usize) {
        let more = bytes * self.weight;
        self.taken.fetch_add(more, Ordering::Relaxed);
        if let Some(room) = &self.room {
            room.taken.fetch_add(more, Ordering::Relaxed);
        }
    }

    fn about_schema(&self) -> &AtomicUsize {
        let together = self.room.as_ref().and_then(|room| room.about_schema.as_ref());
        together.unwrap_or(&self.about_schema)
    }

    /// Whether there is room for so many bytes more about the schema.
    ///
    /// # Errors
    /// `QUERY_TOO_COMPLEX`.
    pub fn check_about_schema(&self, bytes: usize) -> Result<()> {
        if self.about_schema().load(Ordering::Relaxed) + bytes > MOST_ABOUT_SCHEMA {
            let detail = "One request may not ask for so much of the schema: ask for less at once.";
            return Err(Problem::new(Code::QueryTooComplex, detail));
        }
        self.check(bytes)
    }

    /// Takes so many bytes about the schema. They are not given back: making them was the work.
    pub fn take_about_schema(&self, bytes: usize) {
        self.about_schema().fetch_add(bytes, Ordering::Relaxed);
        self.take(bytes);
    }

    /// Gives everything back: it is on its way to the client.
    pub fn give_back(&self) {
        let mine = self.taken.swap(0, Ordering::Relaxed);
        if let Some(room) = &self.room {
            room.taken.fetch_sub(mine, Ordering::Relaxed);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back();
    }
}
