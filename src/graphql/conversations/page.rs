//! Pages of messages (specification, operation 9). They walk the unique index on seq from a cursor, and the
//! total is a column of the conversation, so a page costs the same with ten messages or ten million.

use super::Message;
use crate::{
    base::{
        ids::{AgentId, ConversationId},
        problem::{Problem, Result, Violation},
    },
    core::access::Scope,
    read::{Ends, Rows},
};

/// The position of a page of messages. Exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// At the end: the newest messages.
    Newest,
    /// The newest messages before this seq.
    Before(i64),
    /// The oldest messages after this seq.
    After(i64),
    /// The messages on both sides of this seq.
    Around(i64),
}

impl Cursor {
    /// Reads the three parameters. At most one of them may be given.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`, naming the parameter.
    pub fn read(before: Option<i64>, after: Option<i64>, around: Option<i64>) -> Result<Self> {
        let cursors = [
            ("before_seq", before.map(Self::Before)),
            ("after_seq", after.map(Self::After)),
            ("around_seq", around.map(Self::Around)),
        ];
        let mut given = cursors.into_iter().filter_map(|(name, cursor)| Some((name, cursor?)));
        let Some((_, cursor)) = given.next() else { return Ok(Self::Newest) };
        match given.next_back() {
            None => Ok(cursor),
            Some((last, _)) => {
                let detail =
                    format!("A page is before, after or around a message: leave `{last}` out, or the other.");
                Err(Problem::invalid(vec![Violation::parameter(last, "NOT_ALLOWED", detail)]))
            }
        }
    }

    /// How to determine whether there are messages on either side of the page.
    #[must_use]
    pub const fn ends(self) -> Ends {
        let of_none = match self {
            Self::Newest | Self::Around(_) => [false, false],
            Self::Before(_) => [false, true],
            Self::After(_) => [true, false],
        };
        Ends { of_row: [AFTER_FIRST, BEFORE_LAST], of_none }
    }
}

/// SQL: the message is not the first that its conversation still has.
const AFTER_FIRST: &str = "(t.seq > (SELECT c.last_seq - c.message_count + 1 FROM conversations c WHERE c.organization_id = t.organization_id AND c.id = t.conversation_id))";
/// SQL: the message is not the last of its conversation.
const BEFORE_LAST: &str = "(t.seq < (SELECT c.last_seq FROM conversations c WHERE c.organization_id = t.organization_id AND c.id = t.conversation_id))";

/// The messages of a page, if the conversation is the agent's. None: any agent's.
pub fn rows(
    scope: &Scope,
    agent: Option<AgentId>,
    conversation: ConversationId,
    cursor: Cursor,
    limit: i64,
) -> Rows<Message> {
    const COUNT: &str =
        "SELECT c.message_count FROM conversations c WHERE c.organization_id = $1 AND c.id = ?";
    let rows = Rows::of(scope);
    let rows = match agent {
        Some(agent) => {
            let count = format!("{COUNT} AND c.agent_id = ?");
            rows.parts_of("conversation", conversation.0, &count, [conversation.0.into(), agent.0.into()])
        }
        None => rows.parts_of("conversation", conversation.0, COUNT, [conversation.0.into()]),
    };
    let rows =
        rows.filter("t.conversation_id = ?", [conversation.0.into()]).window(limit.max(0).cast_unsigned(), 0);
    match cursor {
        Cursor::Newest => rows.order_by("t.seq DESC").reversed(),
        Cursor::Before(seq) => rows.filter("t.seq < ?", [seq.into()]).order_by("t.seq DESC").reversed(),
        Cursor::After(seq) => rows.filter("t.seq > ?", [seq.into()]).order_by("t.seq"),
        Cursor::Around(seq) => {
            // A full page even near the end: seqs have no gaps.
            let first = "t.seq >= (SELECT CASE WHEN c.last_seq - ? < ? THEN c.last_seq - ? ELSE ? END \
                         FROM conversations c WHERE c.organization_id = $1 AND c.id = ?)";
            let (from, back) = (seq.saturating_sub(limit / 2), limit.saturating_sub(1));
            let values = [back, from, back, from, conversation.0].map(sea_orm::Value::from);
            rows.filter(first, values).order_by("t.seq")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_one_seq_is_a_cursor() {
        assert_eq!(Cursor::read(None, None, None).unwrap(), Cursor::Newest);
        assert_eq!(Cursor::read(Some(5), None, None).unwrap(), Cursor::Before(5));
        assert_eq!(Cursor::read(None, Some(0), None).unwrap(), Cursor::After(0));
        assert_eq!(Cursor::read(None, None, Some(7)).unwrap(), Cursor::Around(7));
        for (before, after, around) in [
            (Some(5), Some(1), None),
            (Some(5), None, Some(1)),
            (None, Some(5), Some(1)),
            (Some(5), Some(1), Some(2)),
        ] {
            let refused = Cursor::read(before, after, around).unwrap_err().errors;
            assert_eq!((refused.len(), refused[0].code), (1, "NOT_ALLOWED"));
        }
    }
}
