//! `search`: records by name, title, short code or id, best first: exact matches, then names that start with the text,
//! then names that contain it.
//!
//! One statement with a part for each kind. The work is bounded: ids, short codes and exact names of contacts have
//! indexes; the rest searches the newest 20,000 records of each kind. Each part returns no more rows than the answer
//! may have.

mod queries;

use async_graphql::SimpleObject;

use self::queries::{Hit, SearchTerms};
use crate::{
    base::{
        enums::RecordKind,
        folding,
        ids::{AgentId, Id},
        permission::Permission,
        problem::Result,
    },
    core::{
        access::Scope,
        store::{holding, sql::OrgSql, starting},
    },
    read::id_of,
};

/// A record that a search has found.
#[derive(SimpleObject)]
pub struct SearchHit {
    /// The kind of record.
    pub kind: RecordKind,
    /// Its id; for a member, the user's.
    pub id: Id,
    /// Its name.
    pub name: String,
    /// What tells it from others of the same name.
    pub detail: Option<String>,
    /// The short code.
    #[graphql(name = "ref")]
    pub reference: Option<String>,
    /// The agent it belongs to.
    pub agent_id: Option<AgentId>,
}

/// Every kind that can be found, in the order of equally good hits.
const SOURCES: [(RecordKind, Permission, OrgSql); 13] = [
    (RecordKind::Agent, Permission::AgentView, queries::AGENTS),
    (RecordKind::Conversation, Permission::AgentOutputView, queries::CONVERSATIONS),
    (RecordKind::Contact, Permission::ContactView, queries::CONTACTS),
    (RecordKind::Channel, Permission::AgentView, queries::CHANNELS),
    (RecordKind::Server, Permission::ServerView, queries::SERVERS),
    (RecordKind::Image, Permission::ImageView, queries::IMAGES),
    (RecordKind::Credential, Permission::CredentialView, queries::CREDENTIALS),
    (RecordKind::McpServer, Permission::McpView, queries::MCP_SERVERS),
    (RecordKind::Skill, Permission::SkillView, queries::SKILLS),
    (RecordKind::Member, Permission::MemberView, queries::MEMBERS),
    (RecordKind::Invitation, Permission::MemberView, queries::INVITATIONS),
    (RecordKind::ServiceToken, Permission::TokenView, queries::SERVICE_TOKENS),
    (RecordKind::Approval, Permission::ApprovalView, queries::APPROVALS),
];

/// Parses a query. `None`: nothing to search for.
fn parse_query(q: &str) -> Option<SearchTerms> {
    let q = q.trim();
    Some(SearchTerms {
        exact: folding::name(q),
        begins: starting(q)?,
        contains: holding(q)?,
        id: id_of(q),
        reference: q.strip_prefix('#').unwrap_or(q).to_uppercase(),
    })
}

/// The records that match `q`, best first, of all `kinds` that the caller may see.
pub async fn find(
    scope: &Scope,
    q: &str,
    kinds: Option<&[RecordKind]>,
    limit: i64,
) -> Result<Vec<SearchHit>> {
    let Some(terms) = parse_query(q) else { return Ok(Vec::new()) };
    let sources: Vec<OrgSql> = SOURCES
        .iter()
        .filter(|(_, permission, _)| scope.may(*permission))
        .filter(|(kind, ..)| kinds.is_none_or(|kinds| kinds.contains(kind)))
        .map(|(_, _, sql)| *sql)
        .collect();
    if sources.is_empty() {
        return Ok(Vec::new());
    }
    let hits = queries::find(scope, &sources, terms, limit).await?;
    Ok(hits.into_iter().map(to_search_hit).collect())
}

fn to_search_hit(Hit { kind, id, name, detail, reference, agent_id }: Hit) -> SearchHit {
    SearchHit { kind, id: Id(id), name, detail, reference, agent_id }
}
