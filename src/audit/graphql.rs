//! The audit log in the schema.
