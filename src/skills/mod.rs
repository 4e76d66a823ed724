//! Skills.

mod entity;
