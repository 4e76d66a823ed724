//! Lists of conversations: filters and order (specification, operation 11), and the feed that people read.

use super::Conversation;
use crate::{
    base::{
        enums::{ConversationSort, ConversationStatus, SortOrder},
        ids::{AgentId, ChannelId, ContactId, ConversationId},
        time::Timestamp,
    },
    core::{
        access::Scope,
        store::{holding, holds},
    },
    domain::conversations::{UNDELIVERED, UNREAD},
    read::{Keys, Rows, words},
};

/// The filters of a list of conversations. `None` doesn't filter.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub id: Option<ConversationId>,
    pub agent_id: Option<AgentId>,
    pub contact_id: Option<ContactId>,
    pub channel_id: Option<ChannelId>,
    /// Only conversations over this transport, spelled exactly.
    pub transport: Option<String>,
    pub status: Option<ConversationStatus>,
    /// Only conversations last seen with this model.
    pub model: Option<String>,
    /// Only the conversation with this short code. Case doesn't matter.
    pub reference: Option<String>,
    /// Only conversations whose contact's and channel's names contain every word.
    pub search: Option<String>,
}

/// The conversations that pass `filter`, in order.
pub fn rows(scope: &Scope, filter: Filter, sort: ConversationSort, order: SortOrder) -> Rows<Conversation> {
    let rows = Rows::of(scope)
        .filter_if("t.id = ?", filter.id.map(|id| id.0))
        .filter_if("t.agent_id = ?", filter.agent_id.map(|id| id.0))
        .filter_if("t.contact_id = ?", filter.contact_id.map(|id| id.0))
        .filter_if("t.channel_id = ?", filter.channel_id.map(|id| id.0))
        .filter_if("t.transport = ?", filter.transport)
        .filter_if("t.status = ?", filter.status.map(ConversationStatus::as_str))
        .filter_if("t.model = ?", filter.model)
        .filter_if("t.ref = ?", filter.reference.map(|text| text.to_uppercase()));
    words(filter.search.as_deref()).fold(rows, named).order_by(order_by(sort, order))
}

/// The ORDER BY clause. Ties are broken by id in the same direction; missing values come last on both
/// databases.
fn order_by(sort: ConversationSort, order: SortOrder) -> String {
    let way = match order {
        SortOrder::Asc => "ASC",
        SortOrder::Desc => "DESC",
    };
    let by = match sort {
        ConversationSort::Activity => format!("t.last_activity_at {way}"),
        ConversationSort::Created => format!("t.created_at {way}"),
        ConversationSort::Status => format!("t.status {way}"),
        ConversationSort::Model => format!("t.model {way} NULLS LAST"),
        ConversationSort::Contact => by_name("contacts", "t.contact_id", way),
        ConversationSort::Channel => by_name("channels", "t.channel_id", way),
        ConversationSort::Agent => by_name("agents", "t.agent_id", way),
    };
    format!("{by}, t.id {way}")
}

/// Sorts by the name of the record with the id in `id`.
fn by_name(table: &str, id: &str, way: &str) -> String {
    format!(
        "(SELECT n.name_folded FROM {table} n WHERE n.organization_id = t.organization_id AND n.id = {id}) {way} NULLS LAST"
    )
}

/// Only conversations whose contact's or channel's name contains `word`. Each name is searched once, because a
/// contact has many conversations.
fn named(rows: Rows<Conversation>, word: &str) -> Rows<Conversation> {
    let Some(word) = holding(word) else { return rows.filter("1 = 0", []) };
    rows.filter(&format!("({})", has_name()), [word.clone().into(), word.into()])
}

/// SQL: the contact's or the channel's name contains a text, which has to be bound twice.
fn has_name() -> String {
    let holds = holds("n.name_folded");
    format!(
        "t.contact_id IN (SELECT n.id FROM contacts n WHERE n.organization_id = $1 AND {holds}) \
         OR t.channel_id IN (SELECT n.id FROM channels n WHERE n.organization_id = $1 AND {holds})"
    )
}

/// The filters of the feed. `None` doesn't filter.
#[derive(Clone, Debug, Default)]
pub struct FeedFilter {
    pub status: Option<Vec<ConversationStatus>>,
    pub agent_id: Option<AgentId>,
    pub contact_id: Option<ContactId>,
    pub channel_id: Option<ChannelId>,
    /// Only conversations with activity at or after this time.
    pub from: Option<Timestamp>,
    /// Only conversations without activity at or after this time.
    pub to: Option<Timestamp>,
    /// Only those that the caller has not read to the end, or has.
    pub unread: Option<bool>,
    /// Only the caller's own, or the others.
    pub mine: Option<bool>,
    /// Only those that a person has taken over, or has not.
    pub taken_over: Option<bool>,
    /// Only those whose agent waits for a decision, or doesn't.
    pub waiting: Option<bool>,
    /// Only those with a message that could not be delivered lately, or without.
    pub undelivered: Option<bool>,
    /// Only conversations whose title, contact's name, channel's name, or short code contains every word.
    pub search: Option<String>,
}

/// SQL: the agent waits for a decision in it.
const WAITING: &str = "t.id IN (SELECT COALESCE(p.conversation_id, 0) FROM approvals p WHERE p.organization_id = $1 \
                       AND p.status = 'PENDING' AND (p.expires_at IS NULL OR p.expires_at > :now))";

/// SQL: the caller started it, watches it, or has taken it over. False for a service token.
const fn mine() -> &'static str {
    "t.id IN (SELECT c.id FROM conversations c WHERE c.organization_id = $1 AND c.created_by = :viewer \
     UNION ALL SELECT c.id FROM conversations c WHERE c.organization_id = $1 AND c.taken_over_by = :viewer \
     UNION ALL SELECT w.conversation_id FROM conversation_watches w WHERE w.organization_id = $1 AND w.user_id = :viewer)"
}

/// The conversations of the feed.
pub fn feed(scope: &Scope, filter: &FeedFilter) -> Rows<Conversation> {
    let rows = Rows::of(scope)
        .one_of("t.status", filter.status.as_deref(), ConversationStatus::as_str)
        .filter_if("t.agent_id = ?", filter.agent_id.map(|id| id.0))
        .filter_if("t.contact_id = ?", filter.contact_id.map(|id| id.0))
        .filter_if("t.channel_id = ?", filter.channel_id.map(|id| id.0))
        .filter_if("t.last_activity_at >= ?", filter.from)
        .filter_if("t.last_activity_at < ?", filter.to)
        .whether(UNREAD, filter.unread)
        .whether(mine(), filter.mine)
        .whether("t.taken_over_by IS NOT NULL", filter.taken_over)
        .whether(WAITING, filter.waiting)
        .whether(UNDELIVERED, filter.undelivered);
    words(filter.search.as_deref()).fold(rows, |rows, word| {
        let Some(pattern) = holding(word) else { return rows.filter("1 = 0", []) };
        let condition = format!("({} OR {} OR t.ref = ?)", has_name(), holds("t.title_folded"));
        let pattern = sea_orm::Value::from(pattern);
        rows.filter(&condition, [pattern.clone(), pattern.clone(), pattern, word.to_uppercase().into()])
    })
}

/// The feed's order: the latest activity first.
pub fn keys(order: Option<SortOrder>) -> Keys {
    Keys::new("ACTIVITY", order.unwrap_or(SortOrder::Desc)).int("t.last_activity_at")
}
