//! Membership: the members of an organization, their roles, and how people join and leave.

pub mod invitations;
pub mod members;
pub mod queries;
pub mod rows;
