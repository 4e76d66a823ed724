//! The search in a conversation (specification, operation 10): from a question to messages, each with the text around
//! the first word found.

use std::{
    collections::VecDeque,
    ops::{ControlFlow, Range},
};

use sea_orm::{ColumnTrait, DbBackend, DbErr, PaginatorTrait, QueryFilter, QueryResult};

pub use super::words::{text_of, tokens};
use super::{
    entity::conversations,
    graphql::MessageHit,
    words::{conversation_token, words},
};
use crate::{
    access::Scope,
    enums::MessageKind,
    error::{Problem, Result},
    ids::{AgentId, ConversationId},
};

/// The most messages that a search finds: the newest ones.
const HITS: i64 = 1000;
/// How many characters of a message a hit shows.
const SNIPPET: usize = 240;
/// How many of them come before the first word found.
const LEAD: usize = 60;

/// The index is walked from the newest message, and the messages are read only for the hits. In FTS5 the order by row id
/// costs nothing; `CROSS JOIN` keeps the planner from beginning with the messages.
const SQLITE: &str = "SELECT m.seq, m.id, m.role, m.kind, m.created_at, m.content \
    FROM messages_fts CROSS JOIN messages m ON m.id = messages_fts.rowid \
    WHERE messages_fts MATCH $3 AND m.organization_id = $1 AND m.conversation_id = $2 \
    ORDER BY messages_fts.rowid DESC LIMIT $4";

/// For a rare word the planner takes the GIN index; for a common one it walks the conversation from its end.
const POSTGRES: &str = "SELECT m.seq, m.id, m.role, m.kind, m.created_at, m.content::text \
    FROM (SELECT s.message_id FROM message_search s \
        WHERE s.organization_id = $1 AND s.conversation_id = $2 AND s.tokens @@ $3::tsquery \
        ORDER BY s.seq DESC LIMIT $4) h \
    JOIN messages m ON m.organization_id = $1 AND m.id = h.message_id \
    ORDER BY m.seq DESC";

/// The messages of the agent's conversation that hold every word of `q`, oldest first.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn find(
    scope: &Scope,
    agent: AgentId,
    conversation: ConversationId,
    q: &str,
) -> Result<Vec<MessageHit>> {
    use conversations::Column;
    let db = scope.app.db.read();
    let found = scope.find::<conversations::Entity>().filter(Column::Id.eq(conversation));
    if found.filter(Column::AgentId.eq(agent)).count(db).await? == 0 {
        return Err(Problem::not_found("conversation", conversation));
    }
    let question = Question::read(q);
    if question.runs.is_empty() {
        return Ok(Vec::new());
    }
    let (sql, terms) = match scope.app.db.backend() {
        DbBackend::Postgres => (POSTGRES, question.terms(conversation, '\'', " & ")),
        _ => (SQLITE, question.terms(conversation, '"', " AND ")),
    };
    let values = vec![scope.org.0.into(), conversation.0.into(), terms.into(), HITS.into()];
    let rows = scope.app.db.all(sql.to_owned(), values).await?;
    Ok(rows.iter().rev().map(|row| hit(row, &question)).collect::<Result<_, DbErr>>()?)
}

fn hit(row: &QueryResult, question: &Question) -> Result<MessageHit, DbErr> {
    let kind: MessageKind = row.try_get_by(3)?;
    let content: String = row.try_get_by(5)?;
    // The database keeps valid JSON only.
    let content = serde_json::from_str(&content).unwrap_or_default();
    let (snippet, ranges) = question.snippet(&text_of(kind, &content));
    Ok(MessageHit {
        seq: row.try_get_by(0)?,
        id: row.try_get_by(1)?,
        role: row.try_get_by(2)?,
        kind,
        created_at: row.try_get_by(4)?,
        snippet,
        ranges,
    })
}

/// What is looked for: runs of tokens, each of which has to occur; the tokens of a run touch.
struct Question {
    runs: Vec<Vec<String>>,
}

impl Question {
    /// Whatever a person has typed: all of it is text.
    fn read(q: &str) -> Self {
        let mut runs: Vec<Vec<String>> = Vec::new();
        let mut end = usize::MAX;
        words(q, |token, range| {
            match runs.last_mut() {
                Some(run) if range.start == end => run.push(token.to_owned()),
                _ => runs.push(vec![token.to_owned()]),
            }
            end = range.end;
            ControlFlow::Continue(())
        });
        runs.sort();
        runs.dedup();
        Self { runs }
    }

    /// The question in a database's query language. Tokens hold neither quotes nor operators (`words.rs`), so quoting
    /// each is enough.
    fn terms(&self, conversation: ConversationId, quote: char, and: &str) -> String {
        let mut terms = vec![conversation_token(conversation)];
        for run in &self.runs {
            match run.as_slice() {
                [token] => terms.push(token.clone()),
                many => terms.extend(many.windows(2).map(<[String]>::concat)),
            }
        }
        terms.iter().map(|term| format!("{quote}{term}{quote}")).collect::<Vec<_>>().join(and)
    }

    /// The text around the first word found, and where in it words were found, in characters.
    fn snippet(&self, text: &str) -> (String, Vec<Vec<i64>>) {
        let found = self.places(text);
        let first = found.first().map_or(0, |range| range.start);
        let begin = back(text, first, LEAD);
        let end = text[begin..].char_indices().nth(SNIPPET).map_or(text.len(), |(at, _)| begin + at);
        let mut snippet = String::with_capacity(end - begin + 6);
        if begin > 0 {
            snippet.push('…');
        }
        snippet.extend(text[begin..end].chars().map(|c| if c.is_control() { ' ' } else { c }));
        if end < text.len() {
            snippet.push('…');
        }
        let shown = i64::from(begin > 0);
        let place = |at: usize| shown + text[begin..at].chars().count().cast_signed() as i64;
        let inside = found.iter().filter(|range| range.start < end);
        let ranges = inside.map(|range| vec![place(range.start), place(range.end.min(end))]);
        let ranges = ranges.collect();
        (snippet, ranges)
    }

    /// The bytes of the text where something is found, as far as a snippet can show them.
    fn places(&self, text: &str) -> Vec<Range<usize>> {
        let longest = self.runs.iter().map(Vec::len).max().unwrap_or(0);
        let mut recent: VecDeque<(String, Range<usize>)> = VecDeque::with_capacity(longest + 1);
        let mut found: Vec<Range<usize>> = Vec::new();
        words(text, |token, range| {
            if found.first().is_some_and(|first| range.start > first.end + SNIPPET * 4) {
                return ControlFlow::Break(());
            }
            if recent.back().is_some_and(|(_, before)| before.end != range.start) {
                recent.clear();
            }
            recent.push_back((token.to_owned(), range.clone()));
            if recent.len() > longest {
                recent.pop_front();
            }
            let ends_here = |run: &&Vec<String>| {
                run.len() <= recent.len()
                    && recent.iter().rev().zip(run.iter().rev()).all(|((token, _), wanted)| token == wanted)
            };
            // The longest run that ends here; shorter ones lie inside it.
            if let Some(run) = self.runs.iter().filter(ends_here).max_by_key(|run| run.len()) {
                let start = recent[recent.len() - run.len()].1.start;
                match found.last_mut() {
                    Some(last) if start < last.end => last.end = range.end,
                    _ => found.push(start..range.end),
                }
            }
            ControlFlow::Continue(())
        });
        found
    }
}

/// The place `chars` characters before `at`, or after the white space that follows it.
fn back(text: &str, at: usize, chars: usize) -> usize {
    let begin = text[..at].char_indices().rev().nth(chars - 1).map_or(0, |(begin, _)| begin);
    match text[begin..at].find(char::is_whitespace) {
        Some(space) if begin > 0 => {
            let rest = &text[begin + space..at];
            at - rest.trim_start().len()
        }
        _ => begin,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whatever_is_typed_becomes_quoted_tokens(q in "\\PC{0,120}|[ -~]{0,60}", text in "\\PC{0,300}") {
            let question = Question::read(&q);
            for (quote, and) in [('"', " AND "), ('\'', " & ")] {
                for term in question.terms(ConversationId(5), quote, and).split(and) {
                    let token = term.strip_prefix(quote).and_then(|term| term.strip_suffix(quote)).unwrap();
                    prop_assert!(!token.is_empty() && !token.contains([' ', '"', '\'', '\\', '&', '\0']), "{term}");
                }
            }
            let (snippet, ranges) = question.snippet(&text);
            let length = snippet.chars().count() as i64;
            prop_assert!(ranges.iter().all(|range| 0 <= range[0] && range[0] < range[1] && range[1] <= length));
            prop_assert!(ranges.windows(2).all(|pair| pair[0][1] <= pair[1][0]));
        }

        #[test]
        fn a_text_is_found_by_each_part_of_itself(text in "\\PC{0,200}|[a-z0-9 京東ァéß'.-]{0,80}", parts in any::<[prop::sample::Index; 2]>()) {
            let words: Vec<&str> = text.split(' ').collect();
            let [from, to] = parts.map(|part| part.index(words.len()));
            let (from, to) = (from.min(to), from.max(to));
            let question = Question::read(&words[from..=to].join(" "));
            let known = tokens(&text);
            for term in question.terms(ConversationId(5), '"', " AND ").split(" AND ").skip(1) {
                prop_assert!(known.iter().any(|token| *token == term.trim_matches('"')), "{term}: {known:?}");
            }
            prop_assert_eq!(question.places(&text).is_empty(), question.runs.is_empty());
        }
    }

    fn marked(q: &str, text: &str) -> String {
        let (snippet, ranges) = Question::read(q).snippet(text);
        let chars: Vec<char> = snippet.chars().collect();
        let mut out = String::new();
        let mut at = 0;
        for range in ranges {
            let (from, to) = (range[0] as usize, range[1] as usize);
            out.extend(&chars[at..from]);
            out.push('[');
            out.extend(&chars[from..to]);
            out.push(']');
            at = to;
        }
        out.extend(&chars[at..]);
        out
    }

    #[test]
    fn every_word_found_is_marked() {
        assert_eq!(
            marked("CAFE order", "Order at the Café, re-order."),
            "[Order] at the [Café], re-[order]."
        );
        assert_eq!(marked("straße", "Die STRASSE"), "Die [STRASSE]");
        assert_eq!(marked("東京", "京都と東京の東"), "京都と[東京]の東");
    }

    #[test]
    fn a_snippet_begins_shortly_before_the_first_word() {
        let text = format!("{}needle{}", "hay ".repeat(100), " hay".repeat(100));
        let snippet = marked("needle", &text);
        assert!(snippet.starts_with("…hay ") && snippet.ends_with('…'), "{snippet}");
        assert_eq!(snippet.chars().count(), SNIPPET + 4);
        assert!(snippet.contains("hay [needle] hay"));
    }

    #[test]
    fn operators_are_words() {
        let question = Question::read("a\" OR \"b* NOT (c) NEAR/2 ^d {x}: ' & | ! <->");
        let terms = question.terms(ConversationId(5), '"', " AND ");
        assert_eq!(terms.matches('"').count() % 2, 0);
        assert!(terms.starts_with("\"#5\" AND \"2\" AND \"a\""), "{terms}");
        assert!(Question::read(" \t * % ' \" ").runs.is_empty());
    }
}
