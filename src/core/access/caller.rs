//! The callers of a request.

use std::{collections::HashMap, sync::Arc};

use super::token::TokenHash;
use crate::base::{
    enums::{ActorKind, CredentialUsed, SessionKind},
    ids::{ChannelId, OrgId, SessionId, TokenId, UserId},
    permission::{PermissionSet, Role},
    problem::{Code, Problem, Result},
    time::Timestamp,
};

/// The sender of a request.
#[derive(Clone, Debug)]
pub enum Caller {
    /// No credential.
    Anonymous,
    Person(Arc<Person>),
    /// A person in a chat that they have linked. Created for a decision that comes in through the chat; no request has
    /// it.
    LinkedChat(Arc<LinkedChat>),
    /// A service token: an integration.
    Token(Arc<ServiceToken>),
    /// The operator at the command line, or the service itself.
    System,
}

#[derive(Debug)]
pub struct Person {
    pub id: UserId,
    /// The session that the access token or the cookie belongs to.
    pub session: SessionId,
    /// Access token or cookie.
    pub kind: SessionKind,
    pub name: String,
    pub email: String,
    pub email_confirmed: bool,
    /// When the access token expires; for a cookie, when its session ends at the latest.
    pub expires_at: Timestamp,
}

/// A person in a chat that they have linked.
#[derive(Debug)]
pub struct LinkedChat {
    pub id: UserId,
    pub name: String,
    pub channel: ChannelId,
}

/// A service token: it belongs to one organization and has its own permissions.
#[derive(Debug)]
pub struct ServiceToken {
    pub id: TokenId,
    pub org: OrgId,
    pub name: String,
    /// The last characters, to tell tokens apart.
    pub hint: String,
    /// The permissions it was issued with; the policy's cap still applies.
    pub permissions: PermissionSet,
    /// When it expires, if ever; for a replaced secret, when the overlap ends if that is earlier.
    pub expires_at: Option<Timestamp>,
    /// The hash of the secret that was used, which may be the previous one.
    pub secret: TokenHash,
}

/// A caller's rights in one organization.
#[derive(Clone, Copy, Debug)]
pub struct Membership {
    /// The role; `None` for a service token and for the service itself.
    pub role: Option<Role>,
    /// The permissions in effect.
    pub permissions: PermissionSet,
}

/// A credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CredentialKey {
    Session(SessionId),
    /// A service token, identified also by the secret that was used: it has two while one replaces the other.
    Token(TokenId, TokenHash),
}

/// The memberships of callers in one organization, by credential. A missing caller must be checked individually.
pub type Memberships = HashMap<CredentialKey, Membership>;

impl Caller {
    /// Refuses a credential that has expired since it was checked.
    ///
    /// # Errors
    /// `TOKEN_EXPIRED`.
    pub fn require_current(&self, now: Timestamp) -> Result<()> {
        let expires_at = match self {
            Self::Person(person) => Some(person.expires_at),
            Self::Token(token) => token.expires_at,
            Self::Anonymous | Self::LinkedChat(_) | Self::System => None,
        };
        match expires_at {
            Some(at) if at <= now => Err(Problem::new(Code::TokenExpired, "The token has expired.")),
            _ => Ok(()),
        }
    }

    /// Refuses the anonymous caller.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`.
    pub fn require_identity(&self) -> Result<()> {
        match self {
            Self::Anonymous => Err(Problem::new(
                Code::Unauthenticated,
                "Sign in, or send a token in `Authorization: Bearer <token>`.",
            )),
            Self::Person(_) | Self::LinkedChat(_) | Self::Token(_) | Self::System => Ok(()),
        }
    }

    /// The person; refuses service tokens.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` for an anonymous caller, `PERMISSION_DENIED` for a service token.
    pub fn person(&self) -> Result<&Person> {
        self.require_identity()?;
        match self {
            Self::Person(person) => Ok(person),
            _ => Err(Problem::new(Code::PermissionDenied, "Only a person can do this, not a service token.")),
        }
    }

    /// A service token counts as confirmed: issuing one requires a confirmed address.
    #[must_use]
    pub fn has_confirmed_email(&self) -> bool {
        match self {
            Self::Anonymous => false,
            Self::Person(person) => person.email_confirmed,
            // Chats only accept decisions from people with a confirmed address.
            Self::LinkedChat(_) | Self::Token(_) | Self::System => true,
        }
    }

    /// The user, if the caller is a person.
    #[must_use]
    pub fn user(&self) -> Option<UserId> {
        match self {
            Self::Person(person) => Some(person.id),
            Self::LinkedChat(person) => Some(person.id),
            _ => None,
        }
    }

    /// The service token, if the caller is one.
    #[must_use]
    pub fn token(&self) -> Option<TokenId> {
        match self {
            Self::Token(token) => Some(token.id),
            _ => None,
        }
    }

    /// The kind of actor in the audit log.
    #[must_use]
    pub fn kind(&self) -> ActorKind {
        match self {
            Self::Anonymous => ActorKind::Anonymous,
            Self::Person(_) | Self::LinkedChat(_) => ActorKind::User,
            Self::Token(_) => ActorKind::ServiceToken,
            Self::System => ActorKind::System,
        }
    }

    /// The actor's id in the audit log: a user's, or a service token's.
    #[must_use]
    pub fn actor(&self) -> Option<i64> {
        self.user().map(|id| id.0).or(self.token().map(|id| id.0))
    }

    /// The credential in the audit log: its kind, and its id.
    #[must_use]
    pub fn audited_credential(&self) -> (Option<CredentialUsed>, Option<i64>) {
        match self {
            Self::Person(person) => (Some(CredentialUsed::Session), Some(person.session.0)),
            Self::LinkedChat(person) => (Some(CredentialUsed::ChannelLink), Some(person.channel.0)),
            Self::Token(token) => (Some(CredentialUsed::ServiceToken), Some(token.id.0)),
            Self::Anonymous | Self::System => (None, None),
        }
    }

    /// The last characters of a service token, to tell tokens apart.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Token(token) => Some(&token.hint),
            _ => None,
        }
    }

    /// The credential, if there is one.
    #[must_use]
    pub fn credential_key(&self) -> Option<CredentialKey> {
        match self {
            Self::Person(person) => Some(CredentialKey::Session(person.session)),
            Self::Token(token) => Some(CredentialKey::Token(token.id, token.secret)),
            Self::Anonymous | Self::LinkedChat(_) | Self::System => None,
        }
    }

    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Anonymous => "",
            Self::Person(person) => &person.name,
            Self::LinkedChat(person) => &person.name,
            Self::Token(token) => &token.name,
            Self::System => "system",
        }
    }
}
