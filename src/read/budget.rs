//! Limits the size of answers held at a time: those of one request, and all those of a batch or a socket.
//!
//! Relations multiply, so a short document can ask for gigabytes. The size of records is counted while they are
//! written. Operations that a client sends together share a [`SharedBudget`]; otherwise each would have the full
//! budget.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::{
    base::problem::{Code, Problem, Result},
    core::resource_limits::OWED,
};

/// The largest total, in bytes of JSON, regardless of the caller's request.
const MOST: usize = 64 << 20;
/// Weight of a byte that is parsed into `Value`s: they take about 20 times the memory. So a caller can't fill it with
/// parsed text.
pub const PARSED_WEIGHT: usize = 8;
/// The maximum size of introspection answers per request or batch, in bytes of JSON: five times the size of the code
/// generators' query. Callers without a credential may request them too.
const MAX_ABOUT_SCHEMA: usize = 2 << 20;

/// The bytes that the operations of a batch or a socket have taken together.
pub struct SharedBudget {
    of: &'static str,
    taken: AtomicUsize,
    /// The introspection taken, if limited for all operations together.
    about_schema: Option<AtomicUsize>,
}

impl SharedBudget {
    /// An empty budget. `of` names it in errors.
    #[must_use]
    pub fn new(of: &'static str) -> Arc<Self> {
        Arc::new(Self { of, taken: AtomicUsize::new(0), about_schema: None })
    }

    /// The budget of a batch, which is one request.
    #[must_use]
    pub fn of_batch() -> Arc<Self> {
        let about_schema = Some(AtomicUsize::new(0));
        Arc::new(Self { of: "batch", taken: AtomicUsize::new(0), about_schema })
    }

    /// Counts an answer that is held until the whole batch is answered.
    ///
    /// # Errors
    /// `QUERY_TOO_COMPLEX` for an answer that no longer fits.
    pub fn count_answer(&self, answer: &[u8]) -> Result<()> {
        let before = self.taken.fetch_add(answer.len(), Ordering::Relaxed);
        if answer.len() <= OWED || before + answer.len() <= MOST {
            return Ok(());
        }
        self.taken.fetch_sub(answer.len(), Ordering::Relaxed);
        Err(self.is_full())
    }

    fn is_full(&self) -> Problem {
        let detail = format!(
            "Together, the answers of one {} are larger than the limit. Ask for less at once.",
            self.of
        );
        Problem::new(Code::QueryTooComplex, detail)
    }
}

/// The bytes taken by one request. They are released when the request is gone.
pub struct AnswerBudget {
    room: Option<Arc<SharedBudget>>,
    taken: AtomicUsize,
    about_schema: AtomicUsize,
    weight: usize,
}

impl Default for AnswerBudget {
    fn default() -> Self {
        Self::within(None)
    }
}

impl AnswerBudget {
    /// The budget of an operation, on its own or as a part of `room`.
    #[must_use]
    pub fn within(room: Option<Arc<SharedBudget>>) -> Self {
        Self { room, taken: AtomicUsize::new(0), about_schema: AtomicUsize::new(0), weight: PARSED_WEIGHT }
    }

    /// Sets whether the bytes are `copied` unchanged or parsed.
    #[must_use]
    pub fn copied(mut self, copied: bool) -> Self {
        self.weight = if copied { 1 } else { PARSED_WEIGHT };
        self
    }

    /// Checks that there is room for this many more bytes.
    ///
    /// # Errors
    /// `QUERY_TOO_COMPLEX`.
    pub fn check(&self, bytes: usize) -> Result<()> {
        let more = bytes * self.weight;
        let mine = self.taken.load(Ordering::Relaxed) + more;
        if mine > MOST {
            let detail = "The response is larger than the limit for one request.";
            return Err(Problem::new(Code::QueryTooComplex, detail));
        }
        match &self.room {
            Some(room) if mine > OWED && room.taken.load(Ordering::Relaxed) + more > MOST => {
                Err(room.is_full())
            }
            _ => Ok(()),
        }
    }

    /// Takes this many bytes.
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

    /// Checks that there is room for this many more bytes of introspection.
    ///
    /// # Errors
    /// `QUERY_TOO_COMPLEX`.
    pub fn check_about_schema(&self, bytes: usize) -> Result<()> {
        if self.about_schema().load(Ordering::Relaxed) + bytes > MAX_ABOUT_SCHEMA {
            let detail = "The request asks for too much of the schema. Ask for less at once.";
            return Err(Problem::new(Code::QueryTooComplex, detail));
        }
        self.check(bytes)
    }

    /// Takes this many bytes of introspection. They are never released, because producing them was the work.
    pub fn take_about_schema(&self, bytes: usize) {
        self.about_schema().fetch_add(bytes, Ordering::Relaxed);
        self.take(bytes);
    }

    /// Releases everything, because it is on its way to the client.
    pub fn give_back(&self) {
        let mine = self.taken.swap(0, Ordering::Relaxed);
        if let Some(room) = &self.room {
            room.taken.fetch_sub(mine, Ordering::Relaxed);
        }
    }
}

impl Drop for AnswerBudget {
    fn drop(&mut self) {
        self.give_back();
    }
}
