//! People in the GraphQL schema: their accounts, how they sign in, accounts at other providers, and members of
//! organizations.

mod accounts;
mod membership;
mod oidc;
mod signing_in;

pub use self::{
    accounts::AccountMutation,
    membership::{Member, MembershipMutation, MembershipQuery, USER_AVATAR_URL},
    oidc::{OidcMutation, OidcQuery},
    signing_in::{SessionMutation, SessionQuery},
};
