//! Conversations with agents: messages, search, attachments, and agents' turns ([`turns`]).
//!
//! States (`state.rs`): OPEN; PENDING while the agent waits for a decision; RESOLVED until someone writes again;
//! ARCHIVED. Messages are only added ([`append`]), until retention removes them (`retention.rs`): seq counts without
//! gaps, and paging walks it. Only two kinds of messages change: an album of photos, which arrives in parts
//! (`updates.rs`), and a misread mail (`reparsing.rs`). A message from the panel leaves the process as a turn for the
//! agent's host. Permissions: `agent.output.view` reads one agent's conversations, `conversation.view` those of all
//! agents, `agent.interact` writes, `conversation.edit` resolves and archives.
//!
//! `panel.rs`: people's actions; `acting.rs`: agents' actions at vendors; `takeover.rs`: answering instead of the
//! agent; `reports.rs`: hosts' reports; `incoming.rs`: messages from channels; `updates.rs`: their parts and versions;
//! `notices.rs`: notices of them elsewhere; `turn_messages.rs`, `delivery_messages.rs`: messages of turns and
//! deliveries; `append.rs`: adding messages; `search.rs`: finding messages; `reads.rs`: read marks; `watches.rs`:
//! watchers; `retention.rs`: removing transcripts; `storage.rs`: storage use; `tokenizer.rs`: tokens of the search
//! index; `search_stages.rs`: stages of a search; `attachments.rs`: files; `sources.rs`: original mails;
//! `reparsing.rs`: reading them again.

mod acting;
mod append;
mod attachments;
mod delivery_messages;
mod entity;
mod incoming;
mod notices;
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

pub use self::{
    acting::{Acting, act, offered_actions},
    append::{
        Added, AddedMessage, Delivery, NewMessage, Outgoing, OutgoingAdded, VendorAction, append,
        append_error, append_with_seq,
    },
    attachments::{File, Upload, Uploaded, content, file, load_message_files, upload},
    delivery_messages::{
        DeliveryTarget, load_delivery_target, move_targets, record_delivery, require_message, retarget,
        target_in_channel,
    },
    incoming::{ConversationOf, Incoming, bounded_name, find_stored_keys, receive},
    notices::{Sources, append_notices},
    panel::{ConversationEdit, NewConversation, Post, post, reference, start, update},
    queries::{
        FAILED, READ_SEQ, TARGET, UNDELIVERED, UNREAD, WATCHING, count_failed, count_undelivered,
        count_unread, unread_sql,
    },
    reads::mark_read,
    reparsing::{Reread, RereadFilter, reread},
    retention::forget_old,
    rows::{await_decision, exists, mark_decided, reopen},
    search::{merge_index, text_of, tokens},
    sources::{Source, source},
    state::StatusEvent,
    storage::{count_stored, require_room},
    takeover::{end_abandoned, hand_back, take_over},
    turn_messages::{
        PromptFile, PromptMessage, Thread, agent_of, assign_to_turn, forget_sessions, is_shared, load_files,
        load_messages_by_person, load_messages_for_agent, load_thread, mark_delivered, move_messages,
        record_measurement, remember_session, require_agent, resend_messages, settle_messages,
    },
    updates::{has_earlier, has_thread, is_deletion, newest_album},
    watches::watch,
};
pub(crate) use self::{append::preview, incoming::missing_file_note, rows::require, tokenizer::place_tokens};
