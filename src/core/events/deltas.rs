//! The text of messages while it is written. A viewer that sees a hole in the offsets reads the message.

use serde::{Deserialize, Serialize};

use super::piece::{Key, Piece};
use crate::base::ids::{ConversationId, OrgId};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    pub org: OrgId,
    pub conversation: ConversationId,
    /// Identifies the message within the launch of its agent.
    pub message: String,
    pub thinking: bool,
    /// Where the text begins in the message, in UTF-8 bytes.
    pub offset: i64,
    pub text: String,
}

impl Piece for Delta {
    type Of = ConversationId;

    const CHANNEL: &'static str = "muster_deltas";

    fn key(&self) -> Key<Self> {
        (self.org, self.conversation)
    }

    /// `None` if the text isn't what makes it long.
    fn halves(self) -> Option<(Self, Self)> {
        let middle = (self.text.len() / 2..self.text.len()).find(|at| self.text.is_char_boundary(*at))?;
        if middle == 0 {
            return None;
        }
        let second = Self {
            offset: self.offset.saturating_add(middle.cast_signed() as i64),
            text: self.text[middle..].to_owned(),
            message: self.message.clone(),
            ..self
        };
        Some((Self { text: self.text[..middle].to_owned(), ..self }, second))
    }
}
