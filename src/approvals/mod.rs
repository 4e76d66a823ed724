//! Approvals.

mod entity;
