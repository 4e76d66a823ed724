//! Membership: who belongs to an organization in which role, and how people join and leave.

pub mod invitations;
pub mod members;
pub mod queries;
pub mod rows;
