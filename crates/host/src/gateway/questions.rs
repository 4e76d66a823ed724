//! Pending questions to the control plane. They can be large, and most callers wait only for a while, so abandoned
//! questions are dropped, with or without a connection.

use std::{
    collections::{BTreeMap, VecDeque},
    pin::pin,
};

use muster_protocol::plan::PlanResponse;
use tokio::sync::mpsc;

use crate::shared::Ask;

/// The questions of all agents.
pub struct Questions {
    asks: mpsc::Receiver<Ask>,
    /// Unanswered questions, sent again on the next connection.
    open: BTreeMap<i64, Ask>,
    asked: i64,
}

impl Questions {
    pub fn new(asks: mpsc::Receiver<Ask>) -> Self {
        Self { asks, open: BTreeMap::new(), asked: 0 }
    }

    /// Receives the next question, and returns its number.
    pub async fn next(&mut self) -> Option<i64> {
        let ask = self.asks.recv().await?;
        self.drop_unawaited();
        self.asked += 1;
        self.open.insert(self.asked, ask);
        Some(self.asked)
    }

    /// Receives questions until `until` is done.
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

    /// The numbers of unanswered questions.
    pub fn open(&mut self) -> VecDeque<i64> {
        self.drop_unawaited();
        self.open.keys().copied().collect()
    }

    /// A question, if its caller still waits.
    pub fn get(&self, id: i64) -> Option<&Ask> {
        self.open.get(&id).filter(|ask| !ask.told.is_closed())
    }

    /// Delivers an answer.
    pub fn answer(&mut self, id: i64, given: PlanResponse) {
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
    use muster_protocol::plan::PlanRequest;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn abandoned_questions_are_dropped() {
        let (asks, asked) = mpsc::channel(8);
        let mut questions = Questions::new(asked);
        let question = |agent_id| {
            let (told, answer) = oneshot::channel();
            (Ask { agent_id, generation: 1, wanted: PlanRequest::Launch, told }, answer)
        };
        let (first, awaited) = question(1);
        asks.send(first).await.unwrap();
        // Without a connection, the callers give up: more of them than fit into the channel.
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
        // It arrives behind the rest of the channel.
        questions.collect(asks.send(last)).await.unwrap();
        let mut number = questions.asked;
        while number < 52 {
            number = questions.next().await.unwrap();
        }
        assert_eq!(questions.open(), [1, 52]);
        drop(given_up);
        assert!(questions.get(52).is_none(), "an abandoned question is not sent");
        assert_eq!(questions.open(), [1]);
        questions.answer(1, PlanResponse::Refused { reason: "No.".to_owned() });
        assert_eq!(awaited.await.unwrap(), PlanResponse::Refused { reason: "No.".to_owned() });
        assert!(questions.open().is_empty());
    }
}
