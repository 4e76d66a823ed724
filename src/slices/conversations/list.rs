//! Lists of conversations: filters and order (specification, operation 11).

use super::graphql::Conversation;
use crate::{
    base::{
        enums::{ConversationSort, ConversationStatus, SortOrder},
        ids::{AgentId, ChannelId, ContactId, ConversationId},
    },
    core::{
        access::Scope,
        store::{holding, holds},
    },
    read::Rows,
};

/// The most words of a search that are matched separately. The rest are matched as one.
const WORDS: usize = 8;

/// The filters of a list of conversations. `None` doesn't filter.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// This one.
    pub id: Option<ConversationId>,
    /// Only conversations of this agent.
    pub agent_id: Option<AgentId>,
    /// Only conversations with this contact.
    pub contact_id: Option<ContactId>,
    /// Only conversations through this channel.
    pub channel_id: Option<ChannelId>,
    /// Only conversations over this transport, spelled exactly.
    pub transport: Option<String>,
    /// Only conversations with this status.
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
    let words = filter.search.unwrap_or_default();
    let words = words.trim().splitn(WORDS, char::is_whitespace).filter(|word| !word.is_empty());
    words.fold(rows, named).order_by(order_by(sort, order))
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

/// Sorts by the name of the record that `id` names.
fn by_name(table: &str, id: &str, way: &str) -> String {
    format!(
        "(SELECT n.name_folded FROM {table} n WHERE n.organization_id = t.organization_id AND n.id = {id}) {way} NULLS LAST"
    )
}

/// Only conversations whose contact's or channel's name contains `word`. Each name is searched once, because a
/// contact has many conversations.
fn named(rows: Rows<Conversation>, word: &str) -> Rows<Conversation> {
    let Some(word) = holding(word) else { return rows.filter("1 = 0", []) };
    let holds = holds("n.name_folded");
    let condition = format!(
        "(t.contact_id IN (SELECT n.id FROM contacts n WHERE n.organization_id = $1 AND {holds}) \
         OR t.channel_id IN (SELECT n.id FROM channels n WHERE n.organization_id = $1 AND {holds}))"
    );
    rows.filter(&condition, [word.clone().into(), word.into()])
}
