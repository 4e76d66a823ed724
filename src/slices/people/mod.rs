//! People: users, their sessions and memberships, and service tokens.
//!
//! A user is a person with an e-mail address and a password who belongs to no organization; a membership gives
//! them a role in one. Permissions: `member.*`, `token.*` in an organization; anyone signed in can manage their
//! own account. Data outside organizations (users, sessions, links, second factors) can't go through a scope:
//! those files look up rows themselves, always by person or by a secret that identifies one, and write through
//! the database's own transactions. Whatever ends a credential or changes a membership also clears the
//! process's cache of it ([`invalidate_all`](crate::core::access::CredentialCache::invalidate_all)).
//!
//! - `users.rs`, `members.rs`, `invitations.rs`: accounts, memberships, and how people join.
//! - `signin.rs`, `factor.rs`, `sessions.rs`, `throttle.rs`: from password and code to a session, with rate
//!   limits.
//! - `credentials.rs`, `links.rs`, `letters.rs`: a person's name, address, and password; mails and their links.
//! - `oidc/`, `identities.rs`: signing in with an account at another provider, and unlinking it.
//! - `operator.rs`, `directory.rs`: the operator's commands on accounts, and the operator's view of them.
//! - `account.rs`, `own.rs`, `graphql.rs`: the GraphQL schema for all of this.

pub mod account;
mod credentials;
mod directory;
mod entity;
mod factor;
pub mod graphql;
mod identities;
mod invitations;
mod letters;
mod links;
mod members;
pub mod oidc;
mod operator;
pub mod own;
mod sessions;
mod signin;
mod throttle;
mod tokens;
mod users;

pub use self::{
    credentials::{
        change_email, change_name, change_password, confirm_email, request_email_confirmation,
        request_password_reset, reset_password,
    },
    directory::{Account, Details, MadeToken, Whose, accounts, details},
    factor::{Enrolment, begin as begin_totp, confirm as confirm_totp, disable as disable_totp, regenerate},
    identities::{LinkedAccount, linked_accounts, unlink as unlink_account},
    invitations::{
        Acceptance, Accepted, Delivery, accept as accept_invitation, invite, resend as resend_invitation,
        revoke as revoke_invitation,
    },
    letters::deliver_due,
    members::{
        add_member, add_to, has_member_with, leave, make_owner, missing, remove_member, role_of,
        update_member,
    },
    operator::{
        Disabled, Enabled, NewLink, OrganizationRef, WithoutFactor, disable as disable_user,
        enable as enable_user, reset_password as reset_user_password, reset_second_factor,
    },
    sessions::{
        OpenSession, SignInOrigin, SignedIn, create_session, open_sessions, refresh_session,
        revoke_other_sessions, revoke_session, sign_out,
    },
    signin::{Challenge, Step, complete_sign_in, exchange, sign_in},
    tokens::{EditToken, NewToken, OVERLAP, create_token, revoke_token, rotate_token, tokens, update_token},
    users::{
        Membership, NewUser, User, create_user, find_role_in, find_user, find_user_by, find_user_in,
        has_second_factor, invite_user, memberships, set_avatar, user,
    },
};
