//! People: users, their sessions, their membership of organizations; and service tokens.
//!
//! A user is a person with an e-mail address and a password, of no organization; a membership gives them a role
//! in one. Who may: `member.*`, `token.*` inside an organization; their own account, everybody who is signed in.
//! What belongs to no organization (`users`, `sessions`) can't go through a scope: those two files, and no other,
//! find rows by themselves and write through the database's own transactions. Whatever ends a credential or
//! changes a membership makes the process forget what it knew of them ([`Sessions::forget`](crate::access::Sessions)).

pub mod account;
mod entity;
pub mod graphql;
mod members;
mod sessions;
mod tokens;
mod users;

pub use self::{
    members::{add_member, add_to, has_member_with, missing, remove_member, role_of, update_member},
    sessions::{
        Client, OpenSession, SignedIn, open_session, open_sessions, refresh_session, revoke_session, sign_in,
        sign_out,
    },
    tokens::{EditToken, NewToken, OVERLAP, create_token, revoke_token, rotate_token, tokens, update_token},
    users::{Membership, NewUser, User, create_user, find_user, invite_user, memberships, set_avatar, user},
};
