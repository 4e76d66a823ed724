//! The vocabulary of access: the four roles, the permissions, and a set of permissions in one machine word.
//!
//! Which role has which permission is *not* defined here: `policies/policy.csv` defines it and casbin decides
//! (`core/policy`). A permission added here needs a line there, or `muster policy check` and the laws in
//! `tests/it/policies/files.rs` fail. `docs/contributing.md` lists the other places (*A permission*).
//!
//! A role's wire text is upper case (`OWNER`), a permission's is its name (`agent.view`); both are the same in REST,
//! GraphQL, the policy files and the database.

use std::{fmt, str::FromStr};

use async_graphql::{InputValueError, InputValueResult, Scalar, ScalarType, Value};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that is not a role or a permission. `Display` suggests a name if one is close.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} \"{text}\"{hint}")]
pub struct UnknownName {
    /// `role` or `permission`.
    pub what: &'static str,
    /// The text as given.
    pub text: String,
    /// The closest known name, if it is close enough to be a typo; else all of them, if they are few.
    hint: String,
}

impl UnknownName {
    /// For a `text` that is not in `known`.
    pub(crate) fn new(what: &'static str, text: &str, known: impl IntoIterator<Item = &'static str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let hint = match closest(text, known.iter().copied()) {
            None if known.len() < 10 => format!(": it is one of {}", known.join(", ")),
            suggestion => did_you_mean(suggestion),
        };
        Self { what, text: text.to_owned(), hint }
    }
}

/// ` (did you mean "…"?)`, or an empty string.
pub(crate) fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!(" (did you mean \"{name}\"?)")).unwrap_or_default()
}

/// The known name that `text` probably misspells: at most a third of it differs.
#[must_use]
pub fn closest<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Names are short, so a long text is not a typo; and computing the distance costs the product of both lengths.
    if text.len() > 64 {
        return None;
    }
    let folded = text.to_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::osa_distance(&folded, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance * 3 <= name.len())
        .min()
        .map(|(_, name)| name)
}

/// A member's role in an organization. Each role has every permission of the roles below it.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    async_graphql::Enum,
    sea_orm::EnumIter,
    sea_orm::DeriveActiveEnum,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[graphql(rename_items = "SCREAMING_SNAKE_CASE")]
#[sea_orm(rs_type = "String", db_type = "Text")]
pub enum Role {
    /// Owns the organization: has every permission, and by default is the only role that can edit its policy.
    #[sea_orm(string_value = "OWNER")]
    Owner,
    /// Runs the organization: members, tokens, servers, settings.
    #[sea_orm(string_value = "ADMIN")]
    Admin,
    /// Works with agents: creates, edits and starts them, and answers for them.
    #[sea_orm(string_value = "OPERATOR")]
    Operator,
    /// Has read-only access.
    #[sea_orm(string_value = "VIEWER")]
    Viewer,
}

impl Role {
    /// Every role, highest first.
    pub const ALL: [Self; 4] = [Self::Owner, Self::Admin, Self::Operator, Self::Viewer];

    /// The wire text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "OWNER",
            Self::Admin => "ADMIN",
            Self::Operator => "OPERATOR",
            Self::Viewer => "VIEWER",
        }
    }

    /// The position in [`Self::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether this role is above `other`.
    #[must_use]
    pub const fn is_above(self, other: Self) -> bool {
        (self as usize) < (other as usize)
    }
}

impl crate::base::column::Column for Role {
    const KIND: crate::base::column::Kind = crate::base::column::Kind::Text;
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| UnknownName::new("role", text, Self::ALL.map(Self::as_str)))
    }
}

/// Defines the permissions: identifier, wire name and meaning in one place.
macro_rules! permissions {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// What a caller may do in an organization: a name such as `agent.view`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Permission {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Permission {
            /// Every permission, in the order of the matrix.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The wire name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// Its meaning, in one sentence.
            #[must_use]
            pub const fn describe(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim_ascii()),+ }
            }
        }
    };
}

permissions! {
    /// See the organization, its settings and the caller's own role in it.
    OrganizationView = "organization.view",
    /// Change the organization's name, limits and settings.
    OrganizationEdit = "organization.edit",
    /// Stop the whole organization: cancel what its agents do, and let nothing new start.
    OrganizationStop = "organization.stop",
    /// Release a stopped organization.
    OrganizationRelease = "organization.release",
    /// Export all data of the organization, delete it, and erase members and contacts.
    OrganizationErase = "organization.erase",
    /// See the members and their roles.
    MemberView = "member.view",
    /// Add and remove members and change their roles.
    MemberEdit = "member.edit",
    /// See the service tokens (never their text).
    TokenView = "token.view",
    /// Issue, change and revoke service tokens.
    TokenEdit = "token.edit",
    /// Read the audit log.
    AuditView = "audit.view",
    /// Read the policy and ask who may do what.
    PolicyView = "policy.view",
    /// Change the organization's own policy rules.
    PolicyEdit = "policy.edit",
    /// See servers.
    ServerView = "server.view",
    /// Register a server.
    ServerCreate = "server.create",
    /// Change a server, renew its provisioning token and, with credential.edit, confirm its host.
    ServerEdit = "server.edit",
    /// Remove a server.
    ServerDelete = "server.delete",
    /// See the images that agents run from.
    ImageView = "image.view",
    /// Register, change and archive images.
    ImageEdit = "image.edit",
    /// See agents and their channels.
    AgentView = "agent.view",
    /// Create an agent.
    AgentCreate = "agent.create",
    /// Change, start, stop, pause and resume an agent; connect and change its channels.
    AgentEdit = "agent.edit",
    /// Delete an agent.
    AgentDelete = "agent.delete",
    /// Read an agent's conversations and messages, and search them.
    AgentOutputView = "agent.output.view",
    /// Post a message to an agent from the panel.
    AgentInteract = "agent.interact",
    /// List the conversations of all the organization's agents at once.
    ConversationView = "conversation.view",
    /// Change a conversation's status.
    ConversationEdit = "conversation.edit",
    /// See contacts and their addresses.
    ContactView = "contact.view",
    /// Change and merge contacts.
    ContactEdit = "contact.edit",
    /// See the approvals that agents are waiting for.
    ApprovalView = "approval.view",
    /// Resolve, answer and dismiss approvals.
    ApprovalResolve = "approval.resolve",
    /// See credentials and the names of their fields (never the secrets).
    CredentialView = "credential.view",
    /// Create and change credentials, decide who uses them, and move agents that have some.
    CredentialEdit = "credential.edit",
    /// Archive a credential.
    CredentialDelete = "credential.delete",
    /// See MCP servers.
    McpView = "mcp.view",
    /// Register an MCP server.
    McpCreate = "mcp.create",
    /// Change an MCP server and restore it from the archive.
    McpEdit = "mcp.edit",
    /// Archive an MCP server.
    McpDelete = "mcp.delete",
    /// See skills.
    SkillView = "skill.view",
    /// Create a skill.
    SkillCreate = "skill.create",
    /// Change a skill.
    SkillEdit = "skill.edit",
    /// Archive a skill.
    SkillDelete = "skill.delete",
    /// Decide what agents may reach: the list of hosts, and networks past it.
    NetworkEdit = "network.edit",
}

impl Permission {
    /// The heading under which lists of permissions show it.
    #[must_use]
    pub fn group(self) -> &'static str {
        match self.as_str().split('.').next().unwrap_or_default() {
            "organization" => "Organization",
            "member" => "Members",
            "token" => "Service tokens",
            "audit" => "Audit log",
            "policy" => "Policy",
            "server" => "Servers",
            "image" => "Images",
            "agent" => "Agents",
            "conversation" => "Conversations",
            "contact" => "Contacts",
            "approval" => "Approvals",
            "credential" => "Credentials",
            "mcp" => "MCP servers",
            "skill" => "Skills",
            "network" => "Network",
            _ => "Other",
        }
    }
}

// A set is one u64.
const _: () = assert!(Permission::ALL.len() < 64);

impl Permission {
    /// This permission's bit in a [`PermissionSet`].
    #[must_use]
    pub const fn bit(self) -> u64 {
        1 << self as u8
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Permission {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|permission| permission.as_str() == text)
            .ok_or_else(|| UnknownName::new("permission", text, Self::ALL.map(Self::as_str)))
    }
}

impl Serialize for Permission {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Permission {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The name of a permission, such as `agent.view`. `policies/matrix.txt` lists them.
#[Scalar]
impl ScalarType for Permission {
    fn parse(value: Value) -> InputValueResult<Self> {
        match &value {
            Value::String(text) => {
                text.parse().map_err(|unknown: UnknownName| InputValueError::custom(unknown))
            }
            _ => Err(InputValueError::expected_type(value)),
        }
    }

    fn is_valid(value: &Value) -> bool {
        matches!(value, Value::String(_))
    }

    fn to_value(&self) -> Value {
        Value::String(self.as_str().to_owned())
    }
}

/// A set of permissions, one bit each. In JSON it is a list of names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PermissionSet(u64);

impl PermissionSet {
    /// No permissions.
    pub const EMPTY: Self = Self(0);
    /// Every permission.
    pub const ALL: Self = Self((1 << Permission::ALL.len()) - 1);

    /// The set with these bits; bits without a permission are dropped.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// The bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The set of the permissions named; fails with the first unknown name.
    pub fn from_names<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Result<Self, UnknownName> {
        names.into_iter().map(|name| name.as_ref().parse::<Permission>()).collect()
    }

    /// Whether the set contains `permission`.
    #[must_use]
    pub const fn contains(self, permission: Permission) -> bool {
        self.0 & permission.bit() != 0
    }

    /// Whether every permission of this set is in `other`.
    #[must_use]
    pub const fn is_subset(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// The permissions in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The permissions in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The permissions in this set that are not in `other`.
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Adds or removes `permission`.
    pub const fn set(&mut self, permission: Permission, present: bool) {
        if present {
            self.0 |= permission.bit();
        } else {
            self.0 &= !permission.bit();
        }
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The number of permissions in the set.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The permissions in the set, in the order of [`Permission::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::ALL.into_iter().filter(move |permission| self.contains(*permission))
    }

    /// The wire names of the permissions in the set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.iter().map(Permission::as_str)
    }
}

impl FromIterator<Permission> for PermissionSet {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        Self(permissions.into_iter().fold(0, |bits, permission| bits | permission.bit()))
    }
}

impl Serialize for PermissionSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for PermissionSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<Permission>::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back() {
        for permission in Permission::ALL {
            assert_eq!(permission.as_str().parse(), Ok(permission));
            assert_eq!(Permission::ALL[permission as usize], permission);
            // Plain text, in lists and sentences.
            let meaning = permission.describe();
            assert!(meaning.ends_with('.') && !meaning.contains('`'), "{permission}");
            assert_ne!(permission.group(), "Other", "{permission}");
        }
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
            assert_eq!(Role::ALL[role.index()], role);
            assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
            assert_eq!(sea_orm::ActiveEnum::to_value(&role), role.as_str());
        }
        assert!(Role::Owner.is_above(Role::Viewer) && !Role::Viewer.is_above(Role::Viewer));
    }

    #[test]
    fn a_slip_is_answered_with_what_was_meant() {
        let unknown = "agent.edti".parse::<Permission>().unwrap_err();
        assert_eq!(unknown.to_string(), r#"unknown permission "agent.edti" (did you mean "agent.edit"?)"#);
        let unknown = "owner".parse::<Role>().unwrap_err();
        assert_eq!(unknown.to_string(), r#"unknown role "owner" (did you mean "OWNER"?)"#);
        let unknown = "BOSS".parse::<Role>().unwrap_err();
        assert_eq!(
            unknown.to_string(),
            r#"unknown role "BOSS": it is one of OWNER, ADMIN, OPERATOR, VIEWER"#
        );
        let unknown = "fly".parse::<Permission>().unwrap_err();
        assert_eq!(unknown.to_string(), r#"unknown permission "fly""#);
    }

    #[test]
    fn a_set_is_its_names() {
        let set = PermissionSet::from_names(["agent.view", "skill.edit", "agent.view"]).unwrap();
        assert_eq!(set.names().collect::<Vec<_>>(), ["agent.view", "skill.edit"]);
        assert_eq!(set.len(), 2);
        assert_eq!(serde_json::to_string(&set).unwrap(), r#"["agent.view","skill.edit"]"#);
        assert_eq!(muster_json::from_str::<PermissionSet>(r#"["agent.view","skill.edit"]"#).unwrap(), set);
        assert!(set.is_subset(PermissionSet::ALL) && !PermissionSet::ALL.is_subset(set));
        assert_eq!(PermissionSet::from_bits(u64::MAX), PermissionSet::ALL);
        assert_eq!(PermissionSet::ALL.difference(set).intersection(set), PermissionSet::EMPTY);
        assert!(PermissionSet::from_names(["agent.fly"]).is_err());
    }
}
