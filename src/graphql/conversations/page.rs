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
    pub fn read(before: Option<&str>, after: Option<&str>, around: Option<&str>) -> Result<Self> {
        let given = [("before_seq", before), ("after_seq", after), ("around_seq", around)];
        let given = given.into_iter().filter_map(|(name, text)| Some((name, seq(name, text?))));
        let given: Vec<_> = given.collect();
        let [(name, seq)] = given.as_slice() else {
            let mut wrong: Vec<_> = given.iter().filter_map(|(_, seq)| seq.clone().err()).collect();
            if let (true, Some((last, _))) = (wrong.is_empty(), given.last()) {
                let detail =
                    format!("A page is before, after or around a message: leave `{last}` out, or the other.");
                wrong.push(Violation::parameter(*last, "NOT_ALLOWED", detail));
            }
            return if wrong.is_empty() { Ok(Self::Newest) } else { Err(Problem::invalid(wrong)) };
        };
        let seq = seq.clone().map_err(|wrong| Problem::invalid(vec![wrong]))?;
        Ok(match *name {
            "before_seq" => Self::Before(seq),
            "after_seq" => Self::After(seq),
            _ => Self::Around(seq),
        })
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

/// Parses a decimal integer. A number larger than any seq is still a valid cursor.
fn seq(parameter: &str, text: &str) -> Result<i64, Violation> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let detail = format!("`{parameter}` must be a decimal integer.");
        return Err(Violation::parameter(parameter, "WRONG_TYPE", detail));
    }
    Ok(text.parse().unwrap_or(i64::MAX))
}

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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_a_cursor_or_the_wrong_type(before in proptest::option::of("\\PC{0,30}|[0-9]{0,30}"), after in proptest::option::of(".{0,30}"), around in proptest::option::of("[0-9a]{0,9}")) {
            let given = [&before, &after, &around].iter().filter(|it| it.is_some()).count();
            match Cursor::read(before.as_deref(), after.as_deref(), around.as_deref()) {
                Ok(cursor) => prop_assert!(given < 2 && (cursor == Cursor::Newest) == (given == 0)),
                Err(problem) => prop_assert!(!problem.errors.is_empty()),
            }
        }

        #[test]
        fn a_seq_round_trips(seq in 0_i64..) {
            prop_assert_eq!(Cursor::read(Some(&seq.to_string()), None, None).unwrap(), Cursor::Before(seq));
            prop_assert_eq!(Cursor::read(None, Some(&seq.to_string()), None).unwrap(), Cursor::After(seq));
            prop_assert_eq!(Cursor::read(None, None, Some(&seq.to_string())).unwrap(), Cursor::Around(seq));
        }
    }

    #[test]
    fn a_cursor_is_a_decimal_integer() {
        assert_eq!(Cursor::read(None, Some("0"), None).unwrap(), Cursor::After(0));
        assert_eq!(Cursor::read(Some("99999999999999999999"), None, None).unwrap(), Cursor::Before(i64::MAX));
        for wrong in ["", "-1", "+1", "1.5", "0x10", "１", " 1"] {
            assert_eq!(
                Cursor::read(Some(wrong), None, None).unwrap_err().errors[0].code,
                "WRONG_TYPE",
                "{wrong}"
            );
        }
        assert_eq!(Cursor::read(Some("5"), Some("1"), None).unwrap_err().errors[0].code, "NOT_ALLOWED");
        assert_eq!(Cursor::read(Some("5"), None, Some("1")).unwrap_err().errors[0].code, "NOT_ALLOWED");
        assert_eq!(Cursor::read(Some("x"), Some("y"), Some("z")).unwrap_err().errors.len(), 3);
    }
}
