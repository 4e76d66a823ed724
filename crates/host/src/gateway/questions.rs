//! Questions for the control plane, from when they are asked until they are answered. They can be large, and most of those who
//! ask wait for a while only: a question that nobody waits for any more is not kept, with or without a connection.

use std::{
    collections::{BTreeMap, VecDeque},
    pin::pin,
};

use muster_protocol::plan::Given;
use tokio::sync::mpsc;

use crate::shared::Ask;

/// The questions of all agents.
pub struct Questions {
    asks: mpsc::Receiver<Ask>,
    /// Those that are not answered. They are asked again on the next connection.
    open: BTreeMap<i64, Ask>,
    asked: i64,
}

impl Questions {
    /// No questions yet.
    pub fn new(asks: mpsc::Receiver<Ask>) -> Self {
        Self { asks, open: BTreeMap::new(), asked: 0 }
    }

    /// Takes the next question, and answers its number.
    pub async fn next(&mut self) -> Option<i64> {
        let ask = self.asks.recv().await?;
        self.drop_unawaited();
        self.asked += 1;
        self.open.insert(self.asked, ask);
        Some(self.asked)
    }

    /// Takes questions until this has happened.
    pub async fn collect<T>(&mut self, until: impl Future<Output = T>) -> T {
        let mut until = pin!(until);
        loop {
            tokio::select! {
                done = until.as_mut() => {
                    self.drop_unawaited();
                    return done;
                }
                Some(_) = self.next() => {}
            }
        }
    }

    /// The numbers of all that are not answered.
    pub fn open(&mut self) -> VecDeque<i64> {
        self.drop_unawaited();
        self.open.keys().copied().collect()
    }

    /// A question, if somebody waits for its answer.
    pub fn get(&self, id: i64) -> Option<&Ask> {
        self.open.get(&id).filter(|ask| !ask.told.is_closed())
    }

    /// Hands over an answer.
    pub fn answer(&mut self, id: i64, given: Given) {
        if let Some(ask) = self.open.remove(&id) {
            let _ = ask.told.send(given);
        }
    }

    fn drop_unawaited(&mut self) {
        self.open.retain(|_, ask| !ask.told.is_closed());
    }
}

#[cfg(test)]
mod tests {
    use muster_protocol::plan::Wanted;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn what_nobody_waits_for_any_more_is_not_kept() {
        let (asks, asked) = mpsc::channel(8);
        let mut questions = Questions::new(asked);
        let question = |agent_id| {
            let (told, answer) = oneshot::channel();
            (Ask { agent_id, generation: 1, wanted: Wanted::Launch, told }, answer)
        };
        let (first, awaited) = question(1);
        asks.send(first).await.unwrap();
        // There is no connection, and those who ask give up: more of them than fit into the channel.
        let asking = async {
            for agent_id in 2..52 {
                let (ask, answer) = question(agent_id);
                asks.send(ask).await.unwrap();
                drop(answer);
            }
        };
        questions.collect(asking).await;
        assert_eq!(questions.open.len(), 1);
        let (last, given_up) = question(52);
        // It arrives behind what is left in the channel.
        questions.collect(asks.send(last)).await.unwrap();
        let mut number = questions.asked;
        while number < 52 {
            number = questions.next().await.unwrap();
        }
        assert_eq!(questions.open(), [1, 52]);
        drop(given_up);
        assert!(questions.get(52).is_none(), "it is not asked any more");
        assert_eq!(questions.open(), [1]);
        questions.answer(1, Given::Refused { reason: "No.".to_owned() });
        assert_eq!(awaited.await.unwrap(), Given::Refused { reason: "No.".to_owned() });
        assert!(questions.open().is_empty());
    }
}
