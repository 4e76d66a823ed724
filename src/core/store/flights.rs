//! Single flight: those who ask the same question at the same time share one answer.
//!
//! An event reaches every subscriber at once, and each reads the same record; so do the users of a panel that asks again and
//! again. An answer is never older than its question: whoever asks while an answer is under way does not take that one, which may
//! have been read before what they know of was committed. They wait until it has come, and share the next one with everybody
//! who asks until then. It is for questions that take the database less time than that wait is worth: records by key.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};

/// What is asked just now. Cheap to clone.
pub(super) struct Flights<Q, A>(Arc<Mutex<Asked<Q, A>>>);

/// The last flight of each question.
type Asked<Q, A> = HashMap<Q, Flight<A>, foldhash::fast::RandomState>;

struct Flight<A> {
    answer: WeakShared<BoxFuture<'static, A>>,
    /// Whether it is too late to join.
    begun: Arc<AtomicBool>,
}

impl<Q, A> Flights<Q, A>
where
    Q: Clone + Eq + Hash + Send + 'static,
    A: Clone + Send + Sync + 'static,
{
    /// The answer to `question`: what `ask` gives, or what the same gave to somebody else who asked no earlier than now.
    pub async fn share(&self, question: Q, ask: impl Future<Output = A> + Send + 'static) -> A {
        self.join(question, ask).await
    }

    fn join(
        &self,
        question: Q,
        ask: impl Future<Output = A> + Send + 'static,
    ) -> Shared<BoxFuture<'static, A>> {
        let mut asked = self.asked();
        let last = asked.get(&question);
        let under_way = last.and_then(|flight| flight.answer.upgrade());
        if let (Some(flight), Some(answer)) = (last, &under_way)
            && !flight.begun.load(Ordering::Acquire)
        {
            return answer.clone();
        }
        let begun = Arc::new(AtomicBool::new(false));
        let (flights, own, key) = (self.clone(), Arc::clone(&begun), question.clone());
        let answer = async move {
            if let Some(earlier) = under_way {
                earlier.await;
            }
            own.store(true, Ordering::Release);
            let answer = ask.await;
            flights.forget(&key, &own);
            answer
        };
        let answer = answer.boxed().shared();
        if let Some(weak) = answer.downgrade() {
            asked.insert(question, Flight { answer: weak, begun });
        }
        answer
    }

    fn forget(&self, question: &Q, begun: &Arc<AtomicBool>) {
        let mut asked = self.asked();
        if asked.get(question).is_some_and(|flight| Arc::ptr_eq(&flight.begun, begun)) {
            asked.remove(question);
        }
    }

    /// Forgets what everybody has given up waiting for.
    pub fn trim(&self) {
        self.asked().retain(|_, flight| flight.answer.upgrade().is_some());
    }

    fn asked(&self) -> MutexGuard<'_, Asked<Q, A>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Q, A> Clone for Flights<Q, A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<Q, A> Default for Flights<Q, A> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<Q, A> std::fmt::Debug for Flights<Q, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Flights").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::Pin, sync::atomic::AtomicI64};

    use futures::{channel::oneshot, future::join_all, poll};

    use super::*;

    /// Something that changes, and how often it was looked at.
    #[derive(Default)]
    struct Stored {
        value: AtomicI64,
        asked: AtomicI64,
    }

    type Waiting = Pin<Box<dyn Future<Output = i64>>>;

    /// Somebody who asks; the answer is read at once, and comes when it is let.
    fn asks(flights: &Flights<&'static str, i64>, stored: &Arc<Stored>) -> (Waiting, oneshot::Sender<()>) {
        let (let_it, comes) = oneshot::channel::<()>();
        let (flights, stored) = (flights.clone(), Arc::clone(stored));
        let ask = async move {
            let read = stored.value.load(Ordering::SeqCst);
            stored.asked.fetch_add(1, Ordering::SeqCst);
            let _ = comes.await;
            read
        };
        (Box::pin(async move { flights.share("question", ask).await }), let_it)
    }

    #[tokio::test]
    async fn an_answer_is_never_older_than_its_question() {
        let (flights, stored) = (Flights::default(), Arc::<Stored>::default());
        let (mut first, let_first) = asks(&flights, &stored);
        assert!(poll!(&mut first).is_pending());
        stored.value.store(1, Ordering::SeqCst);
        let (mut second, let_second) = asks(&flights, &stored);
        let mut third = asks(&flights, &stored).0;
        assert!(poll!(&mut second).is_pending() && poll!(&mut third).is_pending());
        let_first.send(()).unwrap();
        assert_eq!(first.await, 0);
        let_second.send(()).unwrap();
        assert_eq!((second.await, third.await), (1, 1));
        assert_eq!(stored.asked.load(Ordering::SeqCst), 2, "the second and the third are one");
        assert!(flights.asked().is_empty(), "nothing is kept");
    }

    #[tokio::test]
    async fn whoever_gives_up_keeps_nobody_waiting() {
        let (flights, stored) = (Flights::default(), Arc::<Stored>::default());
        let (mut first, let_first) = asks(&flights, &stored);
        let (mut second, let_second) = asks(&flights, &stored);
        assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
        let mut third = asks(&flights, &stored).0;
        assert!(poll!(&mut third).is_pending());
        drop((first, second));
        let_first.send(()).unwrap();
        let_second.send(()).unwrap();
        assert_eq!(third.await, 0);
        let (mut alone, _never) = asks(&flights, &stored);
        assert!(poll!(&mut alone).is_pending());
        drop(alone);
        flights.trim();
        assert!(flights.asked().is_empty(), "nothing is kept");
    }

    #[tokio::test]
    async fn other_questions_have_answers_of_their_own() {
        let flights = Flights::<i64, i64>::default();
        let answers = join_all((0..50).map(|n| flights.share(n % 5, async move { n % 5 }))).await;
        assert_eq!(answers, (0..50).map(|n| n % 5).collect::<Vec<_>>());
    }
}
