//! Organizations in the schema.
