//! Live text for current viewers: gathered for 25 ms, and dropped if the connection is slow. Viewers that detect a gap
//! reload the message.

use std::time::Duration;

use muster_protocol::frame::Delta;
use tokio::{sync::mpsc, time::Instant};

use crate::{acp::Piece, bounds::TEXT};

/// Live text of an agent.
#[derive(Debug)]
pub struct Deltas {
    agent_id: i64,
    to: mpsc::Sender<Delta>,
    gathered: Vec<Delta>,
    due: Option<Instant>,
}

impl Deltas {
    pub fn new(agent_id: i64, to: mpsc::Sender<Delta>) -> Self {
        Self { agent_id, to, gathered: Vec::new(), due: None }
    }

    /// Time of the next sending.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    pub fn push(&mut self, generation: i64, piece: &Piece) {
        let last = self.gathered.iter_mut().rev().find(|delta| delta.message == piece.key);
        match last {
            Some(delta)
                if delta.offset as usize + delta.text.len() == piece.offset
                    && delta.text.len() + piece.text.len() <= TEXT =>
            {
                delta.text.push_str(&piece.text);
            }
            _ => self.begin(generation, piece),
        }
        self.due.get_or_insert_with(|| Instant::now() + Duration::from_millis(25));
        if self.gathered.len() >= 64 {
            self.flush();
        }
    }

    fn begin(&mut self, generation: i64, piece: &Piece) {
        let (mut rest, mut offset) = (piece.text.as_str(), piece.offset);
        while !rest.is_empty() {
            let most = (0..=TEXT.min(rest.len())).rev().find(|&at| rest.is_char_boundary(at)).unwrap_or(0);
            let (text, later) = rest.split_at(most);
            self.gathered.push(Delta {
                agent_id: self.agent_id,
                generation,
                conversation_id: piece.conversation_id,
                message: piece.key.clone(),
                thinking: piece.is_thinking,
                offset: i64::try_from(offset).unwrap_or(i64::MAX),
                text: text.to_owned(),
            });
            offset += text.len();
            rest = later;
        }
    }

    /// Sends the text if it is due.
    pub fn flush_due(&mut self, now: Instant) {
        if self.due.is_some_and(|due| due <= now) {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.due = None;
        for delta in self.gathered.drain(..) {
            // A slow connection shows less; the message itself is an event.
            let _ = self.to.try_send(delta);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(offset: usize, text: &str) -> Piece {
        Piece { conversation_id: 1, key: "k".to_owned(), is_thinking: false, offset, text: text.to_owned() }
    }

    #[tokio::test]
    async fn pieces_that_follow_each_other_become_one() {
        let (to, mut sent) = mpsc::channel(8);
        let mut deltas = Deltas::new(1, to);
        deltas.push(1, &piece(0, "Hello"));
        deltas.push(1, &piece(5, " there"));
        deltas.push(1, &piece(20, "!"));
        deltas.flush();
        let texts: Vec<(i64, String)> = [sent.recv().await, sent.recv().await]
            .into_iter()
            .flatten()
            .map(|delta| (delta.offset, delta.text))
            .collect();
        assert_eq!(texts, [(0, "Hello there".to_owned()), (20, "!".to_owned())]);
        assert!(deltas.due().is_none());
    }

    #[tokio::test]
    async fn a_long_piece_is_split_and_overflow_is_dropped() {
        let (to, mut sent) = mpsc::channel(2);
        let mut deltas = Deltas::new(1, to);
        deltas.push(1, &piece(0, &"ä".repeat(5000)));
        deltas.flush();
        let first = sent.recv().await.unwrap();
        let second = sent.recv().await.unwrap();
        assert_eq!((first.text.len(), second.offset, second.text.len()), (4096, 4096, 4096));
        assert!(sent.try_recv().is_err());
    }
}
