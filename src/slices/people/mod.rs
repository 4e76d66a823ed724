//! People: users, their sessions, their membership of organizations; and service tokens.
//!
//! A user is a person with an e-mail address and a password, of no organization; a membership gives them a role
//! in one. Who may: `member.*`, `token.*` inside an organization; their own account, everybody who is signed in.
//! What belongs to no organization (users, sessions, links, second factors) can't go through a scope: those files find
//! rows by themselves, always by the person or by a secret that names one, and write through the database's own
//! transactions. Whatever ends a credential or
//! changes a membership makes the process forget what it knew of them ([`invalidate_all`](crate::core::access::CredentialCache::invalidate_all)).
//!
//! - `users.rs`, `members.rs`, `invitations.rs`: who there is, who belongs where, and how they get there.
//! - `signin.rs`, `factor.rs`, `sessions.rs`, `throttle.rs`: from a password and a code to a session, at a bounded pace.
//! - `credentials.rs`, `links.rs`, `letters.rs`: one's own name, address and password; what mail brings.
//! - `oidc/`, `identities.rs`: signing in with an account elsewhere, and unlinking it.
//! - `operator.rs`, `directory.rs`: what the operator does to accounts at the command line, and sees of them.
//! - `account.rs`, `own.rs`, `graphql.rs`: all of that in the schema.

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
        Disabled, Enabled, House, NewLink, WithoutFactor, disable as disable_user, enable as enable_user,
        reset_password as reset_user_password, reset_second_factor,
    },
    sessions::{
        Client, OpenSession, SignedIn, create_session, open_sessions, refresh_session, revoke_other_sessions,
        revoke_session, sign_out,
    },
    signin::{Challenge, Step, complete_sign_in, exchange, sign_in},
    tokens::{EditToken, NewToken, OVERLAP, create_token, revoke_token, rotate_token, tokens, update_token},
    users::{
        Membership, NewUser, User, create_user, find_role_in, find_user, find_user_by, find_user_in,
        has_second_factor, invite_user, memberships, set_avatar, user,
    },
};
