//! The vocabulary: every enumeration that is stored or sent, each defined once.
//!
//! A value is spelled the same everywhere: in the database (TEXT with a CHECK), in JSON and in the schema. A new value
//! needs a line here and a migration that widens the CHECK (`migrations/README.md`).

#[macro_use]
mod define;
mod agents;
mod approvals;
mod conversations;
mod credentials;
mod events;
mod lists;
mod people;

pub use self::{
    agents::*, approvals::*, conversations::*, credentials::*, define::UnknownValue, events::*, lists::*,
    people::*,
};

text_enum! {
    /// A kind of record, as events and the audit log name it.
    pub RecordKind {
        Agent = "AGENT": "An agent.",
        Approval = "APPROVAL": "An approval.",
        Attachment = "ATTACHMENT": "A file of a conversation.",
        AuditEntry = "AUDIT_ENTRY": "An entry of the audit log, identified by the id of the newest of several.",
        Channel = "CHANNEL": "A channel.",
        Contact = "CONTACT": "A contact.",
        Conversation = "CONVERSATION": "A conversation.",
        Credential = "CREDENTIAL": "A credential.",
        EventEndpoint = "EVENT_ENDPOINT": "An event endpoint of the organization.",
        Image = "IMAGE": "An image that agents run from.",
        Invitation = "INVITATION": "An invitation.",
        McpServer = "MCP_SERVER": "An MCP server.",
        Member = "MEMBER": "A member, identified by the id of the user.",
        Message = "MESSAGE": "A message of a conversation.",
        ModelCredential = "MODEL_CREDENTIAL": "A model credential of the organization.",
        Organization = "ORGANIZATION": "The organization itself.",
        Policy = "POLICY": "The organization's policy, identified by the id of a version.",
        Server = "SERVER": "A server.",
        ServiceToken = "SERVICE_TOKEN": "A service token.",
        Skill = "SKILL": "A skill.",
        Turn = "TURN": "A turn of an agent.",
    }
}

impl RecordKind {
    /// The name in the audit log: `mcp_server`.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Approval => "approval",
            Self::Attachment => "attachment",
            Self::AuditEntry => "audit_entry",
            Self::Channel => "channel",
            Self::Contact => "contact",
            Self::Conversation => "conversation",
            Self::Credential => "credential",
            Self::EventEndpoint => "event_endpoint",
            Self::Image => "image",
            Self::Invitation => "invitation",
            Self::McpServer => "mcp_server",
            Self::Member => "member",
            Self::Message => "message",
            Self::ModelCredential => "model_credential",
            Self::Organization => "organization",
            Self::Policy => "policy",
            Self::Server => "server",
            Self::ServiceToken => "service_token",
            Self::Skill => "skill",
            Self::Turn => "turn",
        }
    }
}

text_enum! {
    /// What happened to a record.
    pub ChangeOp {
        Created = "CREATED": "The record was created.",
        Updated = "UPDATED": "The record changed, or was archived or restored.",
        Deleted = "DELETED": "The record was deleted.",
        Resync = "RESYNC": "Changes may have been missed: read everything again.",
    }
}

text_enum! {
    /// The kinds of commands for hosts.
    pub CommandKind {
        Launch = "LAUNCH": "Launch an agent.",
        Stop = "STOP": "Stop an agent.",
        Pause = "PAUSE": "Pause an agent.",
        Resume = "RESUME": "Resume an agent.",
        Turn = "TURN": "Give an agent a turn.",
        Cancel = "CANCEL": "End a turn that is running.",
        Answer = "ANSWER": "Deliver a decision to an agent.",
        Verdict = "VERDICT": "Answer a request that no person has to decide.",
        Sync = "SYNC": "Bring an agent's skills, servers and credentials up to date.",
        TestMcp = "TEST_MCP": "Test the connection to an MCP server.",
        Backup = "BACKUP": "Keep a copy of an agent's volume.",
        Restore = "RESTORE": "Make an agent's volume what it was in a backup.",
        Forget = "FORGET": "Remove a backup.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_read_back_from_its_wire_text() {
        for &value in AgentStatus::ALL {
            assert_eq!(value.as_str().parse(), Ok(value));
        }
        for &value in CredentialKind::ALL {
            assert_eq!(
                serde_json::from_value::<CredentialKind>(serde_json::json!(value.as_str())).unwrap(),
                value
            );
        }
    }

    #[test]
    fn an_unknown_text_is_refused_by_name() {
        let refused = "running".parse::<AgentStatus>().unwrap_err().to_string();
        assert_eq!(refused, "`running` is not one of STOPPED, SPAWNING, RUNNING, PAUSED, STOPPING, ERROR");
    }
}
