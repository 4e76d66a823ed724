//! Membership: who belongs to an organization in which role, and how people join and leave.

pub mod graphql;
pub mod invitations;
pub mod members;
mod queries;
pub mod rows;
