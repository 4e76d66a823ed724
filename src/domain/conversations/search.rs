//! Search in messages: from a query to messages, each with the text around the first match. In one conversation
//! (specification, operation 10), or in all of them.

use std::{
    collections::VecDeque,
    ops::{ControlFlow, Range},
};

use async_graphql::SimpleObject;
use sea_orm::{ColumnTrait, DbBackend, QueryFilter, QuerySelect};

pub use super::tokenizer::{text_of, tokens};
use super::{
    entity::{conversations, messages},
    search_queries::{
        Found, FoundAnywhere, IndexQuery, find_anywhere, find_in_conversation, merge_segments, segments,
    },
    search_stages::Stages,
    tokenizer::{agent_token, conversation_token, indexed, is_shared, organization_token, words},
};
use crate::{
    base::{
        enums::{MessageKind, MessageRole},
        ids::{AgentId, ConversationId, MessageId},
        problem::{Problem, Result},
        time::Timestamp,
    },
    core::{Core, access::Scope},
};

/// The maximum number of messages a search returns, newest first: a million messages may contain a word. If the index
/// overmatches ([`Question::is_vague`]), this number of further candidates is read, so that few hits are missed.
const HITS: i64 = 1000;
/// The length of a hit's snippet, in characters.
const SNIPPET: usize = 240;

/// A message found by a search.
#[derive(SimpleObject)]
pub struct MessageHit {
    /// Its position in the conversation.
    pub seq: i64,
    /// Identifies the message.
    pub id: MessageId,
    /// The role of the author.
    pub role: MessageRole,
    /// The kind of content.
    pub kind: MessageKind,
    /// When it was written.
    pub created_at: Timestamp,
    /// The text around the first match.
    pub snippet: String,
    /// The positions of matches in the snippet, in characters: pairs of start and end, where end is exclusive.
    pub ranges: Vec<Vec<i64>>,
}

/// A page of messages found in all conversations.
#[derive(SimpleObject)]
pub struct MessagesFound {
    /// The messages, newest first. A page may hold fewer than `limit` while there are more.
    pub data: Vec<FoundMessage>,
    /// The cursor of the next page. Null on the last page.
    pub next: Option<String>,
}

/// A message found in some conversation.
#[derive(SimpleObject)]
pub struct FoundMessage {
    /// The message.
    pub hit: MessageHit,
    /// Its conversation.
    pub conversation_id: ConversationId,
    /// The conversation's short code.
    #[graphql(name = "ref")]
    pub reference: String,
    /// The conversation's title.
    pub title: Option<String>,
    /// The conversation's agent.
    pub agent_id: AgentId,
    /// The agent's name.
    pub agent_name: String,
}

/// The messages that a search covers.
struct SearchRange {
    /// The token of all these messages.
    whole: String,
    /// A second token that they must have.
    part: Option<String>,
    /// Only messages before this position.
    below: i64,
}

impl SearchRange {
    /// The question in the query language of the database's index, for at most `most` messages.
    fn build_query(&self, scope: &Scope, question: &Question, most: i64) -> IndexQuery {
        let is_postgres = scope.core.db.backend() == DbBackend::Postgres;
        let (quote, and) = if is_postgres { ('\'', " & ") } else { ('"', " AND ") };
        // PostgreSQL's stages contain the token `whole`.
        let whole = Some(&self.whole).filter(|_| !is_postgres);
        let places = whole.into_iter().chain(&self.part).map(|token| format!("{quote}{token}{quote}"));
        let terms: Vec<String> = places.chain([question.terms(quote, and)]).collect();
        let stages = is_postgres.then(|| Stages::build(&self.whole, self.below - 1));
        IndexQuery { terms: terms.join(and), below: self.below, most, stages }
    }
}

/// The messages of the agent's conversation that contain every word of `q`, oldest first.
pub async fn find(
    scope: &Scope,
    agent: AgentId,
    conversation: ConversationId,
    q: &str,
) -> Result<Vec<MessageHit>> {
    use conversations::Column;
    let found = scope.find::<conversations::Entity>().filter(Column::Id.eq(conversation));
    let found = found.filter(Column::AgentId.eq(agent)).select_only().column(Column::LastSeq);
    let last: Option<i64> = found.into_tuple().one(scope.core.db.read()).await?;
    let last = last.ok_or_else(|| Problem::not_found("conversation", conversation))?;
    let question = Question::parse(q);
    if question.runs.is_empty() {
        return Ok(Vec::new());
    }
    let range = SearchRange { whole: conversation_token(conversation), part: None, below: last + 1 };
    let is_vague = question.is_vague();
    let wanted = range.build_query(scope, &question, if is_vague { 2 * HITS } else { HITS });
    let hits = find_in_conversation(scope, wanted, |found| to_hit(found, &question, is_vague)).await?;
    let mut hits: Vec<_> = hits.into_iter().flatten().take(HITS as usize).collect();
    hits.reverse();
    Ok(hits)
}

/// A page of messages of all conversations, or of one agent's, that contain every word of `q`, newest first. It holds
/// fewer than `limit` if many matches of the index don't contain the words side by side.
///
/// # Errors
/// `VALIDATION_FAILED` for an `after` that is not a cursor.
pub async fn find_everywhere(
    scope: &Scope,
    agent: Option<AgentId>,
    q: &str,
    after: Option<&str>,
    limit: i64,
) -> Result<MessagesFound> {
    let question = Question::parse(q);
    let below = match after {
        Some(cursor) => parse_cursor(cursor)?,
        None => newest_message_id(scope).await? + 1,
    };
    if question.runs.is_empty() || below <= 1 {
        return Ok(MessagesFound { data: Vec::new(), next: None });
    }
    let range = SearchRange { whole: organization_token(scope.org), part: agent.map(agent_token), below };
    let is_vague = question.is_vague();
    let most = limit + 1 + if is_vague { HITS } else { 0 };
    let read = |row: FoundAnywhere| (row.message.id.0, to_found_message(row, &question, is_vague));
    let rows: Vec<(i64, Option<FoundMessage>)> =
        find_anywhere(scope, range.build_query(scope, &question, most), read).await?;
    let oldest = rows.last().filter(|_| rows.len() == most as usize).map(|(id, _)| *id);
    let mut data: Vec<_> = rows.into_iter().filter_map(|(_, found)| found).collect();
    let last = if data.len() > limit as usize {
        data.truncate(limit as usize);
        data.last().map(|found| found.hit.id.0)
    } else {
        // All candidates were read. There may be more matches after them.
        oldest
    };
    Ok(MessagesFound { data, next: last.map(|id| id.to_string()) })
}

/// The id of the organization's newest message; 0 if it has none.
async fn newest_message_id(scope: &Scope) -> Result<i64> {
    let found =
        scope.find::<messages::Entity>().select_only().column_as(messages::Column::Id.max(), "newest");
    let newest: Option<Option<i64>> = found.into_tuple().one(scope.core.db.read()).await?;
    Ok(newest.flatten().unwrap_or_default())
}

fn parse_cursor(cursor: &str) -> Result<i64> {
    let place = cursor.parse().ok().filter(|place| *place > 0);
    place.ok_or_else(|| {
        let detail = "`after` is not a cursor of this list. Use `next` of the page before.";
        Problem::invalid_parameter("after", "WRONG_TYPE", detail)
    })
}

fn to_found_message(row: FoundAnywhere, question: &Question, is_vague: bool) -> Option<FoundMessage> {
    let FoundAnywhere { message, conversation_id, reference, title, agent_id, agent_name } = row;
    let hit = to_hit(message, question, is_vague)?;
    Some(FoundMessage { hit, conversation_id, reference, title, agent_id, agent_name })
}

/// Merges the segments of SQLite's index once there are many: each message adds a segment, and a search reads every
/// segment for each of its words. Works in steps of 256 pages or 0.1 s, so that writers never wait long. Returns the
/// number of steps.
pub async fn merge_index(core: &Core) -> Result<u64> {
    let mut steps = 0;
    if core.db.backend() == DbBackend::Sqlite {
        while steps < 1_000 && segments(core).await? > 4 {
            // A negative number starts a merge of all segments. Later steps continue it.
            let pages = if steps == 0 { -256 } else { 256 };
            merge_segments(core, pages).await?;
            steps += 1;
        }
    }
    Ok(steps)
}

/// Returns `None` if `is_vague` and the text doesn't contain the words.
fn to_hit(found: Found, question: &Question, is_vague: bool) -> Option<MessageHit> {
    let Found { seq, id, role, kind, created_at, content } = found;
    // The database stores only valid JSON.
    let content = muster_json::from_str(&content).unwrap_or_default();
    let text = text_of(kind, &content);
    if is_vague && !question.is_in(&text) {
        return None;
    }
    let (snippet, ranges) = question.snippet(&text);
    Some(MessageHit { seq, id, role, kind, created_at, snippet, ranges })
}

/// A parsed query: runs of adjacent tokens, each of which must occur.
struct Question {
    runs: Vec<Vec<String>>,
}

impl Question {
    /// Parses typed text. It has no operators.
    fn parse(q: &str) -> Self {
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

    /// The question in a database's query language. Tokens contain no quotes or operators (`tokenizer.rs`), so
    /// quoting each is enough.
    fn terms(&self, quote: char, and: &str) -> String {
        let mut terms = Vec::new();
        for run in &self.runs {
            match run.as_slice() {
                [word] => terms.push(indexed(word).to_owned()),
                many => {
                    terms.extend(many.windows(2).map(|pair| [indexed(&pair[0]), indexed(&pair[1])].concat()));
                }
            }
        }
        terms.iter().map(|term: &String| format!("{quote}{term}{quote}")).collect::<Vec<_>>().join(and)
    }

    /// Whether the index may overmatch: it stores pairs of tokens but no longer runs, and only the beginning of
    /// long words.
    fn is_vague(&self) -> bool {
        self.runs.iter().any(|run| run.len() > 2 || run.iter().any(|word| is_shared(word)))
    }

    /// Whether the text contains every run as whole words.
    fn is_in(&self, text: &str) -> bool {
        let mut missing: Vec<&[String]> = self.runs.iter().map(Vec::as_slice).collect();
        let mut recent = Recent::new(self);
        words(text, |word, range| {
            recent.push(word, range);
            missing.retain(|run| !recent.ends_with(run));
            if missing.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        missing.is_empty()
    }

    /// The text around the first match, and the positions of matches in it, in characters.
    fn snippet(&self, text: &str) -> (String, Vec<Vec<i64>>) {
        let found = self.places(text);
        let first = found.first().map_or(0, |range| range.start);
        let begin = snippet_start(text, first, 60);
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

    /// The byte ranges of matches in the text, as far as a snippet can show them.
    fn places(&self, text: &str) -> Vec<Range<usize>> {
        let mut recent = Recent::new(self);
        let mut found: Vec<Range<usize>> = Vec::new();
        words(text, |word, range| {
            if found.first().is_some_and(|first| range.start > first.end + SNIPPET * 4) {
                return ControlFlow::Break(());
            }
            let end = range.end;
            recent.push(word, range);
            // The longest run that ends here. Shorter ones lie inside it.
            let ending = self.runs.iter().filter(|run| recent.ends_with(run));
            if let Some(run) = ending.max_by_key(|run| run.len()) {
                let start = recent.start_of(run.len());
                match found.last_mut() {
                    Some(last) if start < last.end => last.end = end,
                    _ => found.push(start..end),
                }
            }
            ControlFlow::Continue(())
        });
        found
    }
}

/// The last adjacent words that occur in the query, as many as the longest run has.
struct Recent<'a> {
    question: &'a Question,
    longest: usize,
    words: VecDeque<(&'a str, Range<usize>)>,
}

impl<'a> Recent<'a> {
    fn new(question: &'a Question) -> Self {
        let longest = question.runs.iter().map(Vec::len).max().unwrap_or(0);
        Self { question, longest, words: VecDeque::with_capacity(longest + 1) }
    }

    fn push(&mut self, word: &str, range: Range<usize>) {
        if self.words.back().is_some_and(|(_, before)| before.end != range.start) {
            self.words.clear();
        }
        match self.question.runs.iter().flatten().find(|wanted| *wanted == word) {
            Some(wanted) => self.words.push_back((wanted, range)),
            None => self.words.clear(),
        }
        if self.words.len() > self.longest {
            self.words.pop_front();
        }
    }

    fn ends_with(&self, run: &[String]) -> bool {
        run.len() <= self.words.len()
            && self.words.iter().rev().zip(run.iter().rev()).all(|((word, _), wanted)| *word == wanted)
    }

    /// The byte where the last `words` words begin.
    fn start_of(&self, words: usize) -> usize {
        self.words[self.words.len() - words].1.start
    }
}

/// The position `chars` characters before `at`, moved forward past any white space.
fn snippet_start(text: &str, at: usize, chars: usize) -> usize {
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
        fn typed_text_becomes_quoted_tokens(q in "\\PC{0,120}|[ -~]{0,60}", text in "\\PC{0,300}") {
            let question = Question::parse(&q);
            for (quote, and) in [('"', " AND "), ('\'', " & ")] {
                for term in question.terms(quote, and).split(and).filter(|term| !term.is_empty()) {
                    let token = term.strip_prefix(quote).and_then(|term| term.strip_suffix(quote)).unwrap();
                    prop_assert!(!token.is_empty() && !token.contains([' ', '"', '\'', '\\', '&', '\0']), "{term}");
                }
            }
            let (snippet, ranges) = question.snippet(&text);
            let length = snippet.chars().count().cast_signed() as i64;
            prop_assert!(ranges.iter().all(|range| 0 <= range[0] && range[0] < range[1] && range[1] <= length));
            prop_assert!(ranges.windows(2).all(|pair| pair[0][1] <= pair[1][0]));
        }

        #[test]
        fn a_text_is_found_by_any_of_its_parts(text in "\\PC{0,200}|[a-z0-9 京東ァéß'.-]{0,80}", parts in any::<[prop::sample::Index; 2]>()) {
            let words: Vec<&str> = text.split(' ').collect();
            let [from, to] = parts.map(|part| part.index(words.len()));
            let (from, to) = (from.min(to), from.max(to));
            let question = Question::parse(&words[from..=to].join(" "));
            let known = tokens(&text);
            for term in question.terms('"', " AND ").split(" AND ").filter(|term| !term.is_empty()) {
                prop_assert!(known.iter().any(|token| *token == term.trim_matches('"')), "{term}: {known:?}");
            }
            prop_assert_eq!(question.places(&text).is_empty(), question.runs.is_empty());
        }
    }

    fn marked(q: &str, text: &str) -> String {
        let (snippet, ranges) = Question::parse(q).snippet(text);
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
    fn every_match_is_highlighted() {
        assert_eq!(
            marked("CAFE order", "Order at the Café, re-order."),
            "[Order] at the [Café], re-[order]."
        );
        assert_eq!(marked("straße", "Die STRASSE"), "Die [STRASSE]");
        assert_eq!(marked("東京", "京都と東京の東"), "京都と[東京]の東");
    }

    #[test]
    fn vague_matches_are_checked_against_the_text() {
        let is_in = |q: &str, text: &str| {
            let question = Question::parse(q);
            assert!(question.is_vague(), "{q}");
            question.is_in(text)
        };
        assert!(is_in("東京都", "昨日の東京都は雨") && !is_in("東京都", "京都と東京"));
        assert!(is_in("雨 東京都", "東京都は雨") && !is_in("雪 東京都", "東京都は雨"));
        let long = "a".repeat(64);
        assert!(is_in(&format!("{long}x"), &format!("b {long}X c")));
        assert!(!is_in(&format!("{long}x"), &format!("{long}y")) && !is_in(&format!("{long}x"), &long));
        assert!(is_in(&long, &long) && !is_in(&long, &format!("{long}x")));
        assert!(!Question::parse(&format!("東京 cafe {}", &long[1..])).is_vague());
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
        let question = Question::parse("a\" OR \"b* NOT (c) NEAR/2 ^d {x}: ' & | ! <->");
        let terms = question.terms('"', " AND ");
        assert_eq!(terms.matches('"').count() % 2, 0);
        assert!(terms.starts_with("\"2\" AND \"a\""), "{terms}");
        assert!(Question::parse(" \t * % ' \" ").runs.is_empty());
    }
}
