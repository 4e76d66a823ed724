//! What becomes of each table's rows when a person is erased, and when an organization is exported or deleted. A test
//! compares the list with the schema, so a new table needs a line here.
//!
//! The tables of organizations are listed in the order of their deletion: a table before those that it refers to.

use super::queries::MEMBERS;

/// A table, and what becomes of its rows.
#[derive(Debug)]
pub struct TableRights {
    pub table: &'static str,
    /// Which rows are the organization's: a condition in which `$1` is its id. `None`: the table belongs to none.
    pub rows: Option<&'static str>,
    pub exported: Exported,
    pub deleted: Deleted,
    pub erased: Erased,
}

/// How the organization's rows are exported.
#[derive(Debug)]
pub enum Exported {
    /// As lines, with all columns that hold no secret.
    Lines,
    /// As lines, with these columns.
    Columns(&'static [&'static str]),
    /// As files in this folder. The columns of their id and content.
    Files { folder: &'static str, id: &'static str, content: &'static str },
    /// As lines, and the sealed mails as files.
    Mails,
    /// Not at all, for this reason.
    No(&'static str),
}

/// How the organization's rows are deleted.
#[derive(Debug)]
pub enum Deleted {
    /// In batches.
    Rows,
    /// By the database, with the rows of this table.
    With(&'static str),
    /// In batches, after all others, once nothing more is written to the log.
    Log,
    /// In the last transaction, with the organization.
    Last,
    /// Not at all, for this reason.
    Kept(&'static str),
}

/// What becomes of what the rows say about an erased person.
#[derive(Debug)]
pub enum Erased {
    /// Their name is replaced in these columns.
    Names(&'static [Name]),
    /// The rows that meet this condition, in which `$1` is the person's id, are deleted.
    Rows(&'static str),
    /// A function of its own does this.
    Otherwise(&'static str),
    /// Nothing: ids at most.
    Nothing,
    /// It stays, for this reason.
    Kept(&'static str),
}

/// A column with the name of a person.
#[derive(Debug)]
pub struct Name {
    pub column: &'static str,
    pub of: NameOf,
}

/// The person whose name it is.
#[derive(Debug)]
pub enum NameOf {
    /// The one with the id in this column.
    User(&'static str),
    /// The same, if the second column says USER.
    Actor(&'static str, &'static str),
    /// The same, if it is their present name: the id may be a service token's.
    Namesake(&'static str),
    /// Any person with this name, in the person's organizations.
    Bearer,
}

/// The value of a replaced name.
pub const ERASED: &str = "Erased person";

/// Columns whose text is a secret, although its type does not show it. Sealed secrets and digests are bytes.
pub const SECRETS: &[(&str, &str)] = &[("channels", "inbound_slug")];

const fn of_org(table: &'static str) -> TableRights {
    TableRights {
        table,
        rows: Some("organization_id = $1"),
        exported: Exported::Lines,
        deleted: Deleted::Rows,
        erased: Erased::Nothing,
    }
}

const fn of_none(table: &'static str, why: &'static str) -> TableRights {
    TableRights {
        table,
        rows: None,
        exported: Exported::No(why),
        deleted: Deleted::Kept(why),
        erased: Erased::Nothing,
    }
}

impl TableRights {
    const fn unexported(self, why: &'static str) -> Self {
        Self { exported: Exported::No(why), ..self }
    }

    const fn exported(self, exported: Exported) -> Self {
        Self { exported, ..self }
    }

    const fn deleted(self, deleted: Deleted) -> Self {
        Self { deleted, ..self }
    }

    const fn erased(self, erased: Erased) -> Self {
        Self { erased, ..self }
    }

    const fn names(self, names: &'static [Name]) -> Self {
        self.erased(Erased::Names(names))
    }
}

const fn name(column: &'static str, of: NameOf) -> Name {
    Name { column, of }
}

/// The author of a version or a backup.
const AUTHOR: &[Name] = &[name("author_name", NameOf::Actor("author_id", "author_kind"))];

const ACTOR: &[Name] = &[name("actor_name", NameOf::Actor("actor_id", "actor_kind"))];

/// The reason for rows that only concern the moment.
const PASSING: &str = "Work in progress.";

/// The reason for the installation's own tables.
const INSTALLATION: &str = "It belongs to the installation.";

/// The reason for a person's own rows.
const PERSON: &str = "It belongs to a person, who may be in other organizations.";

/// All tables.
pub const RIGHTS: &[TableRights] = &[
    of_org("notifications").unexported(PASSING),
    of_org("notification_settings"),
    of_org("conversation_watches"),
    of_org("conversation_reads"),
    of_org("approval_snoozes"),
    of_org("approval_asks").unexported(PASSING),
    of_org("channel_link_codes").unexported(PASSING),
    of_org("channel_links")
        .erased(Erased::Otherwise("Deleted, with the membership or for a contact's address.")),
    of_org("credential_members"),
    of_org("members").erased(Erased::Otherwise("The membership ends.")),
    of_org("invitations").erased(Erased::Otherwise("The address is replaced.")),
    of_org("idempotency_keys")
        .unexported("Answers to requests that may be repeated, for a day.")
        .erased(Erased::Kept("Answers to requests, sealed, for a day.")),
    of_org("deliveries"),
    of_org("attachment_blobs")
        .exported(Exported::Files { folder: "attachments", id: "attachment_id", content: "content" })
        .erased(Erased::Kept("The contents of files are not searched for people.")),
    of_org("attachments"),
    of_org("message_sources")
        .exported(Exported::Mails)
        .erased(Erased::Otherwise("A contact's raw mails are deleted.")),
    of_org("approvals").names(&[name("decided_by_name", NameOf::User("decided_by_user_id"))]),
    of_org("turn_waits").unexported("It times traces."),
    of_org("leases").unexported(PASSING),
    of_org("model_calls"),
    of_org("model_days"),
    of_org("organization_months"),
    of_org("agent_months"),
    of_org("agent_limits"),
    of_org("token_allowances").unexported(PASSING),
    of_org("refused_destinations"),
    of_org("message_search").unexported("It is made from the messages.").deleted(Deleted::With("messages")),
    TableRights {
        table: "messages_fts",
        rows: None,
        exported: Exported::No("It is made from the messages."),
        deleted: Deleted::With("messages"),
        erased: Erased::Nothing,
    },
    of_org("messages").names(&[name("author_name", NameOf::User("author_user_id"))]),
    of_org("turns").names(&[name("cut_by", NameOf::Bearer)]),
    of_org("commands").unexported(PASSING),
    of_org("agent_backups").names(AUTHOR),
    of_org("agent_launches")
        .names(&[name("started_by_name", NameOf::Actor("started_by_id", "started_by_kind"))]),
    of_org("agent_revisions").names(AUTHOR),
    of_org("credential_agents"),
    of_org("credential_fields"),
    of_org("credentials").names(&[name("agent_may_read_by_name", NameOf::User("agent_may_read_by"))]),
    of_org("mcp_server_agents"),
    of_org("mcp_server_tools"),
    of_org("mcp_servers"),
    of_org("skill_agents"),
    of_org("skill_versions").names(AUTHOR),
    of_org("skills"),
    of_org("model_credentials"),
    of_org("allowed_hosts").names(&[name("created_by_name", NameOf::User("created_by"))]),
    of_org("avatars")
        .exported(Exported::Files { folder: "avatars", id: "version", content: "content" })
        .erased(Erased::Rows("user_id = $1")),
    of_org("channel_listeners").unexported(PASSING),
    of_org("channel_refusals").erased(Erased::Otherwise("A contact's rows are deleted.")),
    of_org("channel_skips")
        .erased(Erased::Kept("Subjects of unreadable mails, the newest 100 of each channel.")),
    of_org("channel_whitelist").erased(Erased::Otherwise("A contact's rows are deleted.")),
    of_org("identities").erased(Erased::Otherwise("A contact's addresses and names are replaced.")),
    of_org("conversations").erased(Erased::Otherwise("A contact's addresses are removed.")),
    of_org("contacts").erased(Erased::Otherwise("The name is replaced, the note removed.")),
    of_org("channels"),
    of_org("agents"),
    of_org("images"),
    of_org("server_loads"),
    of_org("servers")
        .names(&[name("provisioned_by_name", NameOf::Actor("provisioned_by_id", "provisioned_by_kind"))]),
    of_org("service_tokens"),
    of_org("event_deliveries"),
    of_org("event_endpoints"),
    of_org("policy_versions").names(AUTHOR),
    of_org("decisions"),
    of_org("edits").names(&[name("actor_name", NameOf::Namesake("actor_id"))]),
    of_org("stored_bytes"),
    of_org("erasures").deleted(Deleted::Last),
    of_org("audit_unsealed")
        .unexported("The lines get into the log within seconds.")
        .deleted(Deleted::Last)
        .names(ACTOR),
    // Without the chain's row, its lines are not looked for.
    TableRights {
        rows: Some("chain = $1"),
        ..of_org("audit_chains").deleted(Deleted::Log).unexported("`muster audit export` has them.")
    },
    TableRights {
        rows: Some("chain = $1"),
        ..of_org("audit_checkpoints").deleted(Deleted::Log).unexported("`muster audit export` has them.")
    },
    of_org("audit_log").deleted(Deleted::Log).names(ACTOR),
    TableRights { rows: Some("id = $1"), ..of_org("organizations") }
        .deleted(Deleted::Last)
        .names(&[name("stopped_by_name", NameOf::User("stopped_by"))]),
    TableRights {
        table: "users",
        rows: Some(MEMBERS),
        exported: Exported::Columns(&["id", "name", "email"]),
        deleted: Deleted::Kept(PERSON),
        erased: Erased::Otherwise(
            "The name and the address are replaced, everything else is removed; the id stays.",
        ),
    },
    of_none("email_tokens", PERSON).erased(Erased::Rows("user_id = $1")),
    of_none("first_start", INSTALLATION),
    of_none("mails", "Mails in progress, for three days at most.")
        .erased(Erased::Kept("For three days at most.")),
    of_none("notified", PERSON).erased(Erased::Rows("user_id = $1")),
    of_none("plans", INSTALLATION),
    of_none("recovery_codes", PERSON).erased(Erased::Rows("user_id = $1")),
    of_none("replicas", INSTALLATION),
    of_none("risk_categories", INSTALLATION),
    of_none("sessions", PERSON).erased(Erased::Rows("user_id = $1")),
    of_none("sign_in_challenges", PERSON).erased(Erased::Rows("user_id = $1")),
    of_none("sign_in_throttle", "Digests, for twelve hours."),
    of_none("signing_keys", INSTALLATION),
    of_none("step_versions", INSTALLATION),
    of_none("user_identities", PERSON).erased(Erased::Rows("user_id = $1")),
];
