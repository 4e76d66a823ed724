//! Conversations with agents: messages, search, attachments, and what agents do in them ([`turns`]).
//!
//! States (`state.rs`): OPEN; PENDING while the agent waits for a decision; RESOLVED until someone writes
//! again; ARCHIVED. Messages are only ever added ([`append`]), until all are removed (`retention.rs`): seq counts without gaps,
//! and paging walks it. Only an album of photos, which comes in parts, grows (`updates.rs`), and only the text of a message that was
//! misread changes (`reparsing.rs`). Permissions: `agent.output.view` reads one agent's conversations, `conversation.view` those of all
//! agents, `agent.interact` writes, `conversation.edit` resolves and archives. A message from the panel leaves
//! the process as a turn for the agent's host.
//!
//! `panel.rs`: what people do; `takeover.rs`: answering instead of the agent; `reports.rs`: what hosts report;
//! `incoming.rs`: what comes in through channels; `updates.rs`: parts and versions of that; `turn_messages.rs`, `delivery_messages.rs`: what
//! turns and deliveries need; `append.rs`: adding a message; `search.rs`: finding messages; `reads.rs`: how far people have read;
//! `watches.rs`: whom to tell of it; `retention.rs`: how long transcripts are kept; `storage.rs`: what they take; `tokenizer.rs`: the
//! tokens of the search index; `search_stages.rs`: where a search looks first; `attachments.rs`: files; `sources.rs`: messages as they
//! came; `reparsing.rs`: reading these again.

mod append;
mod attachments;
mod delivery_messages;
mod entity;
mod incoming;
mod panel;
mod queries;
mod reads;
mod reparsing;
pub mod reports;
mod retention;
mod retention_queries;
mod rows;
pub mod search;
mod search_queries;
mod search_stages;
mod sources;
mod state;
mod storage;
mod takeover;
mod title;
mod tokenizer;
mod turn_messages;
pub mod turns;
mod updates;
mod watches;

pub(crate) use self::{append::preview, incoming::missing_file_note, rows::require, tokenizer::place_tokens};
pub use self::{
    append::{Delivery, NewMessage, Outgoing, SentOut, add, append, append_error},
    attachments::{File, Upload, Uploaded, content, file, files_of_message, upload},
    delivery_messages::{
        DeliveryTarget, delivery_target, move_targets, record_delivery, require_message, retarget,
    },
    incoming::{ConversationOf, Incoming, bounded_name, receive, stored_keys},
    panel::{ConversationEdit, NewConversation, Post, post, reference, start, update},
    queries::{
        READ_SEQ, TARGET, UNDELIVERED, UNREAD, WATCHING, count_failed, count_undelivered, count_unread,
        unread_sql,
    },
    reads::mark_read,
    reparsing::{Reread, RereadFilter, reread},
    retention::forget_old,
    rows::{await_decision, exists, mark_decided},
    search::{merge_index, text_of, tokens},
    sources::Source,
    state::Happening,
    storage::{count_stored, require_room},
    takeover::{end_abandoned, hand_back, take_over},
    turn_messages::{
        PromptFile, PromptMessage, Thread, agent_of, assign_to_turn, forget_sessions, is_shared, load_files,
        load_thread, mark_delivered, messages_by_person, messages_for_agent, move_messages,
        record_measurement, remember_session, require_agent, settle_messages,
    },
    updates::{has_earlier, is_deletion, newest_album},
    watches::watch,
};
