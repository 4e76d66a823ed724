//! What an organization sees of its audit log besides the entries. `core/audit` keeps the log.

mod queries;

pub use self::queries::{AuditSeal, seal};
