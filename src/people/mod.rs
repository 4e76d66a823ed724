//! People.

mod entity;
