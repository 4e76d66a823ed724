//! Identifiers: one newtype per kind of record, so that an agent's id can't be passed where a server's belongs.
//!
//! On the wire every id is a positive JSON number below 2^53 (on both interfaces); in the schema all of them are the
//! scalar `Id`; in the database they are `BIGINT`.

use async_graphql::{InputValueError, InputValueResult, Number, Scalar, ScalarType, Value};

/// The largest id: the largest integer that JSON readers with IEEE doubles represent exactly.
pub const MAX_ID: i64 = (1 << 53) - 1;

/// The requirement for an `Id` in error messages.
pub const AN_ID: &str = "a positive integer";

/// Identifies a record. A positive integer below 2^53.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub i64);

/// Identifies a record. A positive integer below 2^53.
#[Scalar]
impl ScalarType for Id {
    fn parse(value: Value) -> InputValueResult<Self> {
        match &value {
            Value::Number(number) => match number.as_i64() {
                Some(id @ 1..=MAX_ID) => Ok(Self(id)),
                _ => Err(InputValueError::custom("an id must be an integer from 1 to 2^53-1")),
            },
            _ => Err(InputValueError::expected_type(value)),
        }
    }

    fn is_valid(value: &Value) -> bool {
        matches!(value, Value::Number(number) if matches!(number.as_i64(), Some(1..=MAX_ID)))
    }

    fn to_value(&self) -> Value {
        Value::Number(Number::from(self.0))
    }
}

/// Defines id newtypes that sea-orm, serde and the schema all understand.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident,)+) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize, sea_orm::DeriveValueType,
        )]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<$name> for i64 {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl async_graphql::InputType for $name {
            type RawValueType = i64;

            fn type_name() -> std::borrow::Cow<'static, str> {
                <Id as async_graphql::InputType>::type_name()
            }

            fn create_type_info(registry: &mut async_graphql::registry::Registry) -> String {
                <Id as async_graphql::InputType>::create_type_info(registry)
            }

            fn parse(value: Option<Value>) -> InputValueResult<Self> {
                <Id as async_graphql::InputType>::parse(value)
                    .map(|id| Self(id.0))
                    .map_err(InputValueError::propagate)
            }

            fn to_value(&self) -> Value {
                <Id as async_graphql::InputType>::to_value(&Id(self.0))
            }

            fn as_raw_value(&self) -> Option<&i64> {
                Some(&self.0)
            }
        }

        impl async_graphql::OutputType for $name {
            fn type_name() -> std::borrow::Cow<'static, str> {
                <Id as async_graphql::InputType>::type_name()
            }

            fn create_type_info(registry: &mut async_graphql::registry::Registry) -> String {
                <Id as async_graphql::InputType>::create_type_info(registry)
            }

            async fn resolve(
                &self,
                _: &async_graphql::ContextSelectionSet<'_>,
                _: &async_graphql::Positioned<async_graphql::parser::types::Field>,
            ) -> async_graphql::ServerResult<Value> {
                Ok(<Id as async_graphql::InputType>::to_value(&Id(self.0)))
            }
        }

        impl super::column::Column for $name {
            const KIND: super::column::Kind = super::column::Kind::Int;
        }
    )+};
}

ids! {
    /// An organization: the tenant.
    OrgId,
    /// A person who can sign in.
    UserId,
    /// A person's session.
    SessionId,
    /// A person's account with an identity provider, for signing in.
    LinkedAccountId,
    /// A service token.
    TokenId,
    /// A part of a message that is sent through a channel.
    DeliveryId,
    /// A message that asks a member for a decision in a linked chat.
    AskId,
    /// An invitation into an organization.
    InvitationId,
    /// A machine on which agents run.
    ServerId,
    /// A container image that agents run from.
    ImageId,
    /// An agent.
    AgentId,
    /// A launch of an agent.
    AgentLaunchId,
    /// A revision of an agent.
    AgentRevisionId,
    /// A channel between an agent and the outside world.
    ChannelId,
    /// A person on the other side of a channel.
    ContactId,
    /// One address of a contact on one transport.
    IdentityId,
    /// A conversation of an agent.
    ConversationId,
    /// A message of a conversation.
    MessageId,
    /// A turn of an agent.
    TurnId,
    /// A file sent along with a message.
    AttachmentId,
    /// A decision that an agent waits for.
    ApprovalId,
    /// A named set of secrets.
    CredentialId,
    /// One secret of a credential.
    CredentialFieldId,
    /// An MCP server.
    McpServerId,
    /// A skill.
    SkillId,
    /// A version of a skill.
    SkillVersionId,
    /// An address that gets events of an organization.
    EventEndpointId,
    /// An event for an endpoint.
    EventDeliveryId,
    /// A line of the audit log.
    AuditId,
    /// A version of an organization's policy.
    PolicyVersionId,
    /// A model credential of an organization.
    ModelCredentialId,
    /// A network destination that agents may reach.
    AllowedHostId,
    /// A call of a model.
    ModelCallId,
    /// A copy of an agent's home.
    BackupId,
    /// The right of an agent's host to spend.
    LeaseId,
    /// A scheduled erasure.
    ErasureId,
}
