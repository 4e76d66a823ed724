//! Pages of messages (specification, operation 9). They walk the unique index on seq from a cursor, and the
//! total is a column of the conversation, so a page costs the same with ten messages or ten million.

use super::graphql::Message;
use crate::{
    base::{
        ids::{AgentId, ConversationId},
        problem::{Problem, Result, Violation},
    },
    core::access::Scope,
    read::Rows,
};

/// Where a page of messages begins. Exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// At the end: the newest messages.
    Newest,
    /// The newest messages before this seq.
    Before(i64),
    /// The oldest messages after this seq.
    After(i64),
}

impl Cursor {
    /// Reads the two parameters. At most one of them may be given.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`, naming the parameter.
    pub fn read(before: Option<&str>, after: Option<&str>) -> Result<Self> {
        let before = before.map(|text| seq("before_seq", text));
        let after = after.map(|text| seq("after_seq", text));
        match (before, after) {
            (None, None) => Ok(Self::Newest),
            (Some(before), None) => Ok(Self::Before(before.map_err(one)?)),
            (None, Some(after)) => Ok(Self::After(after.map_err(one)?)),
            (Some(before), Some(after)) => {
                let mut wrong: Vec<_> = [before, after].into_iter().filter_map(Result::err).collect();
                if wrong.is_empty() {
                    let detail = "`before_seq` and `after_seq` can't be used together.";
                    wrong.push(Violation::parameter("after_seq", "NOT_ALLOWED", detail));
                }
                Err(Problem::invalid(wrong))
            }
        }
    }
}

fn one(violation: Violation) -> Problem {
    Problem::invalid(vec![violation])
}

/// Parses a decimal integer. A number larger than any seq is still a valid cursor.
fn seq(parameter: &str, text: &str) -> Result<i64, Violation> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let detail = format!("`{parameter}` must be a decimal integer.");
        return Err(Violation::parameter(parameter, "WRONG_TYPE", detail));
    }
    Ok(text.parse().unwrap_or(i64::MAX))
}

/// The messages of a page, if the conversation is the agent's.
pub fn rows(
    scope: &Scope,
    agent: AgentId,
    conversation: ConversationId,
    cursor: Cursor,
    limit: i64,
) -> Rows<Message> {
    let rows = Rows::of(scope)
        .parts_of(
            "conversation",
            conversation.0,
            "SELECT c.message_count FROM conversations c WHERE c.organization_id = $1 AND c.id = ? AND c.agent_id = ?",
            [conversation.0.into(), agent.0.into()],
        )
        .filter("t.conversation_id = ?", [conversation.0.into()])
        .window(limit.max(0).cast_unsigned(), 0);
    match cursor {
        Cursor::Newest => rows.order_by("t.seq DESC").reversed(),
        Cursor::Before(seq) => rows.filter("t.seq < ?", [seq.into()]).order_by("t.seq DESC").reversed(),
        Cursor::After(seq) => rows.filter("t.seq > ?", [seq.into()]).order_by("t.seq"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_a_cursor_or_the_wrong_type(before in proptest::option::of("\\PC{0,30}|[0-9]{0,30}"), after in proptest::option::of(".{0,30}")) {
            let both = before.is_some() && after.is_some();
            match Cursor::read(before.as_deref(), after.as_deref()) {
                Ok(cursor) => prop_assert!(!both && (cursor == Cursor::Newest) == (before.is_none() && after.is_none())),
                Err(problem) => prop_assert!(!problem.errors.is_empty()),
            }
        }

        #[test]
        fn a_seq_round_trips(seq in 0_i64..) {
            prop_assert_eq!(Cursor::read(Some(&seq.to_string()), None).unwrap(), Cursor::Before(seq));
            prop_assert_eq!(Cursor::read(None, Some(&seq.to_string())).unwrap(), Cursor::After(seq));
        }
    }

    #[test]
    fn a_cursor_is_a_decimal_integer() {
        assert_eq!(Cursor::read(None, Some("0")).unwrap(), Cursor::After(0));
        assert_eq!(Cursor::read(Some("99999999999999999999"), None).unwrap(), Cursor::Before(i64::MAX));
        for wrong in ["", "-1", "+1", "1.5", "0x10", "１", " 1"] {
            assert_eq!(Cursor::read(Some(wrong), None).unwrap_err().errors[0].code, "WRONG_TYPE", "{wrong}");
        }
        assert_eq!(Cursor::read(Some("5"), Some("1")).unwrap_err().errors[0].code, "NOT_ALLOWED");
        assert_eq!(Cursor::read(Some("x"), Some("y")).unwrap_err().errors.len(), 2);
    }
}
