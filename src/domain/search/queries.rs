//! SQL of the search.

use crate::{
    base::{enums::RecordKind, ids::AgentId, problem::Result},
    core::{
        access::Scope,
        store::sql::{OrgSql, row, sql},
    },
    domain::contacts::is_reached,
};

/// The statement for a kind: the records found by an index, and the matching ones of its newest 20,000. Each row is a
/// [`Hit`] with its rank, and `$order`, which breaks ties between kinds. `$found` is a condition that is too expensive
/// for all rows: it is checked only for hits.
///
/// `$2` is the folded text; `$3` and `$4` are the patterns for names that start with it and that contain it; `$5` is an
/// id, `$6` a short code, `$7` the number of hits.
macro_rules! source {
    (
        $kind:ident, $order:literal, $from:literal, visible: $visible:literal, found: ($found:expr, $found_among_newest:expr),
        id: $id:literal, name: $name:literal, exact: $exact:literal, folded: ($folded:literal $(, $other:literal)*),
        detail: $detail:expr, reference: $reference:literal, agent: $agent:literal, newest: $newest:literal
    ) => {
        sql!(
            "SELECT * FROM (SELECT * FROM (SELECT '",
            RecordKind::$kind.as_str(),
            "' AS kind, ",
            $order,
            " AS place, 0 AS rank, ",
            source!(columns $id, $name, $reference, $agent),
            $detail,
            " AS detail FROM ",
            $from,
            " WHERE t.organization_id = $org AND (",
            $id,
            " = $5 OR ",
            $exact,
            ")",
            $visible,
            " AND ",
            $found,
            " UNION SELECT '",
            RecordKind::$kind.as_str(),
            "', ",
            $order,
            ", n.rank, n.id, n.name, n.reference, n.agent_id, n.detail FROM (SELECT CASE WHEN (",
            $id,
            " = $5 OR ",
            $exact,
            " OR ",
            source!(any " = $2", $folded $(, $other)*),
            ") THEN 0 WHEN ",
            source!(any " LIKE $3 ESCAPE '\\'", $folded $(, $other)*),
            " THEN 1 ELSE 2 END AS rank, (",
            source!(any " LIKE $4 ESCAPE '\\'", $folded $(, $other)*),
            ") AS matches, ",
            source!(columns $id, $name, $reference, $agent),
            $detail,
            " AS detail FROM ",
            $from,
            " WHERE t.organization_id = $org",
            $visible,
            " ORDER BY ",
            $newest,
            " LIMIT 20000) n WHERE n.matches AND ",
            $found_among_newest,
            ") e ORDER BY rank, id DESC LIMIT $7) p",
            $order
        )
    };
    (columns $id:literal, $name:literal, $reference:literal, $agent:literal) => {
        concat!(
            $id, " AS id, ", $name, " AS name, CAST(", $reference, " AS TEXT) AS reference, CAST(", $agent,
            " AS BIGINT) AS agent_id, "
        )
    };
    (any $test:literal, $folded:literal $(, $other:literal)*) => {
        concat!($folded, $test $(, " OR ", $other, $test)*)
    };
    ($kind:ident, $order:literal, $from:literal, visible: $visible:literal, detail: $detail:literal, agent: $agent:literal) => {
        source!(
            $kind, $order, $from, visible: $visible, found: ("1 = 1", "1 = 1"), id: "t.id", name: "t.name", exact: "1 = 0",
            folded: ("t.name_folded"), detail: $detail, reference: "NULL", agent: $agent, newest: "t.id DESC"
        )
    };
}

/// The name of the record's agent.
const AGENT_NAME: &str =
    "(SELECT a.name FROM agents a WHERE a.organization_id = t.organization_id AND a.id = t.agent_id)";

pub(super) const AGENTS: OrgSql =
    source!(Agent, "0", "agents t", visible: " AND t.archived_at IS NULL", detail: "t.role", agent: "NULL");
pub(super) const CONVERSATIONS: OrgSql = source!(
    Conversation, "1", "conversations t", visible: "", found: ("1 = 1", "1 = 1"), id: "t.id", name: "COALESCE(t.title, t.ref)",
    exact: "t.ref = $6", folded: ("t.title_folded"), detail: AGENT_NAME, reference: "t.ref", agent: "t.agent_id",
    newest: "t.last_activity_at DESC, t.id DESC"
);
pub(super) const CONTACTS: OrgSql = source!(
    Contact, "2", "contacts t", visible: " AND t.archived_at IS NULL",
    found: (is_reached!("$org", "t.id"), is_reached!("$org", "n.id")), id: "t.id", name: "t.name",
    exact: "t.name_folded = $2", folded: ("t.name_folded"), detail: "t.note", reference: "NULL", agent: "NULL",
    newest: "t.id DESC"
);
pub(super) const CHANNELS: OrgSql = source!(
    Channel, "3", "channels t", visible: " AND t.archived_at IS NULL", detail: "t.transport", agent: "t.agent_id"
);
pub(super) const SERVERS: OrgSql = source!(
    Server, "4", "servers t", visible: " AND t.archived_at IS NULL", detail: "t.hostname", agent: "NULL"
);
pub(super) const IMAGES: OrgSql = source!(
    Image, "5", "images t", visible: " AND t.archived_at IS NULL", detail: "t.reference", agent: "NULL"
);
pub(super) const CREDENTIALS: OrgSql = source!(
    Credential, "6", "credentials t", visible: " AND t.archived_at IS NULL", detail: "t.kind", agent: "NULL"
);
pub(super) const MCP_SERVERS: OrgSql = source!(
    McpServer, "7", "mcp_servers t", visible: " AND t.archived_at IS NULL", detail: "t.transport", agent: "NULL"
);
pub(super) const SKILLS: OrgSql = source!(
    Skill, "8", "skills t", visible: " AND t.archived_at IS NULL", detail: "t.description", agent: "NULL"
);
pub(super) const MEMBERS: OrgSql = source!(
    Member, "9", "members t JOIN users u ON u.id = t.user_id", visible: "", found: ("1 = 1", "1 = 1"), id: "t.user_id",
    name: "u.name", exact: "1 = 0", folded: ("u.name_folded", "u.email_folded"), detail: "u.email", reference: "NULL",
    agent: "NULL", newest: "t.user_id DESC"
);
pub(super) const INVITATIONS: OrgSql = source!(
    Invitation, "10", "invitations t", visible: " AND t.accepted_at IS NULL AND t.revoked_at IS NULL",
    found: ("1 = 1", "1 = 1"), id: "t.id", name: "t.email", exact: "1 = 0", folded: ("t.email_folded"), detail: "t.role",
    reference: "NULL", agent: "NULL", newest: "t.id DESC"
);
pub(super) const SERVICE_TOKENS: OrgSql = source!(
    ServiceToken, "11", "service_tokens t", visible: " AND t.revoked_at IS NULL", detail: "t.hint", agent: "NULL"
);
pub(super) const APPROVALS: OrgSql = source!(
    Approval, "12", "approvals t", visible: "", found: ("1 = 1", "1 = 1"), id: "t.id", name: "t.title", exact: "1 = 0",
    folded: ("t.title_folded"), detail: AGENT_NAME, reference: "NULL", agent: "t.agent_id", newest: "t.id DESC"
);

row! {
    /// A found record.
    pub(super) struct Hit {
        kind: RecordKind,
        id: i64,
        name: String,
        detail: Option<String>,
        reference: Option<String>,
        agent_id: Option<AgentId>,
    }
}

/// A parsed query.
pub(super) struct SearchTerms {
    /// The folded text.
    pub exact: String,
    /// The pattern for names that start with the text.
    pub begins: String,
    /// The pattern for names that contain the text.
    pub contains: String,
    /// The text as an id.
    pub id: Option<i64>,
    /// The text as a short code.
    pub reference: String,
}

/// The matching records of these sources, best first, at most `most`.
pub(super) async fn find(
    scope: &Scope,
    sources: &[OrgSql],
    terms: SearchTerms,
    most: i64,
) -> Result<Vec<Hit>> {
    const BEST: (&str, &str) = (
        "SELECT kind, id, name, detail, reference, agent_id FROM (",
        ") h ORDER BY rank, place, LENGTH(name), id DESC LIMIT $7",
    );
    let SearchTerms { exact, begins, contains, id, reference } = terms;
    let values = [exact.into(), begins.into(), contains.into(), id.into(), reference.into(), most.into()];
    scope.union(sources, BEST, values).await
}
