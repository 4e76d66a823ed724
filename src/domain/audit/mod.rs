//! The state of an organization's audit log, apart from its entries. `core/audit` keeps the log.

mod queries;

pub use self::queries::{AuditSeal, seal};
