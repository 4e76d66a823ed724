//! The caller as a value.

use std::sync::Arc;

use super::token::TokenHash;
use crate::base::permission::{PermissionSet, Role};
use crate::base::{
    enums::ActorKind,
    ids::{OrgId, SessionId, TokenId, UserId},
    problem::{Code, Problem, Result},
    time::Timestamp,
};

/// Who sent a request.
#[derive(Clone, Debug)]
pub enum Caller {
    /// Nobody that we know.
    Anonymous,
    /// A person with a session.
    Person(Arc<Person>),
    /// An integration.
    Token(Arc<ServiceToken>),
    /// The operator at the command line, or the service itself.
    System,
}

/// A person with a session.
#[derive(Debug)]
pub struct Person {
    /// The user.
    pub id: UserId,
    /// The session that the access token belongs to.
    pub session: SessionId,
    /// The name, as it is shown.
    pub name: String,
    /// The e-mail address.
    pub email: String,
    /// Whether the address is known to be theirs.
    pub email_confirmed: bool,
    /// When the access token ends.
    pub expires_at: Timestamp,
}

/// A service token: one organization, and permissions of its own.
#[derive(Debug)]
pub struct ServiceToken {
    /// The token.
    pub id: TokenId,
    /// The organization it was issued in.
    pub org: OrgId,
    /// The name that its issuer gave it.
    pub name: String,
    /// The last characters, to tell tokens apart.
    pub hint: String,
    /// What it was issued for; the policy's cap is applied on top.
    pub permissions: PermissionSet,
    /// When it ends, if it does; for a secret that was replaced, when the overlap ends if that is earlier.
    pub expires_at: Option<Timestamp>,
    /// Of the secret that was shown, which may be the one before the last rotation.
    pub secret: TokenHash,
}

/// What a caller is in one organization.
#[derive(Clone, Copy, Debug)]
pub struct Membership {
    /// The role; none for a service token.
    pub role: Option<Role>,
    /// What that allows.
    pub permissions: PermissionSet,
}

impl Caller {
    /// Refuses a credential that has ended since it was checked.
    ///
    /// # Errors
    /// `TOKEN_EXPIRED`.
    pub fn require_current(&self, now: Timestamp) -> Result<()> {
        let expires_at = match self {
            Self::Person(person) => Some(person.expires_at),
            Self::Token(token) => token.expires_at,
            Self::Anonymous | Self::System => None,
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
            Self::Anonymous => {
                Err(Problem::new(Code::Unauthenticated, "Send `Authorization: Bearer` with a token."))
            }
            Self::Person(_) | Self::Token(_) | Self::System => Ok(()),
        }
    }

    /// The person, where it has to be one.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` without identity, `PERMISSION_DENIED` for a service token.
    pub fn person(&self) -> Result<&Person> {
        self.require_identity()?;
        match self {
            Self::Person(person) => Ok(person),
            _ => Err(Problem::new(Code::PermissionDenied, "Only a person can do this, not a service token.")),
        }
    }

    /// A service token counts as confirmed: issuing one needs a confirmed address.
    #[must_use]
    pub fn has_confirmed_email(&self) -> bool {
        match self {
            Self::Anonymous => false,
            Self::Person(person) => person.email_confirmed,
            Self::Token(_) | Self::System => true,
        }
    }

    /// The user, where the caller is a person.
    #[must_use]
    pub fn user(&self) -> Option<UserId> {
        match self {
            Self::Person(person) => Some(person.id),
            _ => None,
        }
    }

    /// The service token, where the caller is one.
    #[must_use]
    pub fn token(&self) -> Option<TokenId> {
        match self {
            Self::Token(token) => Some(token.id),
            _ => None,
        }
    }

    /// What the audit log calls the caller.
    #[must_use]
    pub fn kind(&self) -> ActorKind {
        match self {
            Self::Anonymous => ActorKind::Anonymous,
            Self::Person(_) => ActorKind::User,
            Self::Token(_) => ActorKind::ServiceToken,
            Self::System => ActorKind::System,
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

    /// The name, as it is shown.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Anonymous => "",
            Self::Person(person) => &person.name,
            Self::Token(token) => &token.name,
            Self::System => "system",
        }
    }
}
