//! Conversations.

mod entity;
