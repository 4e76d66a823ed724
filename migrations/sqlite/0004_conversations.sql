-- Conversations, turns, messages, their search index, attachments. Conventions: ../README.md

-- Threads between an agent and a contact. message_count, last_seq and last_message_* are written in the
-- transaction that inserts a message, so that a list reads one row each.
CREATE TABLE conversations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    ref TEXT NOT NULL, -- Eight Crockford base32 characters in upper case.
    title TEXT,
    title_folded TEXT,
    titled_by_message BOOLEAN NOT NULL DEFAULT FALSE CHECK (titled_by_message IN (0, 1)), -- One of its messages gave the title, which goes with the transcript.
    created_by BIGINT, -- The person who started it in the panel.
    status TEXT NOT NULL DEFAULT 'OPEN' CHECK (status IN ('OPEN', 'PENDING', 'RESOLVED', 'ARCHIVED')),
    agent_id BIGINT NOT NULL,
    contact_id BIGINT,
    channel_id BIGINT,
    transport TEXT NOT NULL CHECK (transport IN ('TELEGRAM', 'DISCORD', 'SLACK', 'EMAIL', 'CODE_HOST', 'WEBHOOK', 'DRIVE', 'CALENDAR', 'INTERNAL')),
    model TEXT, -- The last model observed.
    message_count BIGINT NOT NULL DEFAULT 0,
    last_seq BIGINT NOT NULL DEFAULT 0,
    stored_bytes BIGINT NOT NULL DEFAULT 0, -- What its messages and readers take; `stored_bytes.message_bytes` is the sum.
    last_message_seq BIGINT,
    last_message_role TEXT CHECK (last_message_role IN ('USER', 'ASSISTANT', 'SYSTEM', 'TOOL')),
    last_message_kind TEXT CHECK (last_message_kind IN ('TEXT', 'THINKING', 'TOOL_CALL', 'TOOL_RESULT', 'FILE', 'VOICE', 'APPROVAL', 'EVENT', 'ERROR')),
    last_message_preview TEXT,
    last_message_created_at BIGINT,
    context_tokens BIGINT,
    thread_key TEXT, -- Its identity within the channel.
    target TEXT, -- Where answers go, as the transport calls it.
    readers TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(readers)), -- The addresses that got its mails.
    session TEXT, -- The agent's name for its session, which the next turn resumes.
    taken_over_by BIGINT, -- The person who answers instead of the agent.
    taken_over_at BIGINT,
    last_word_at BIGINT, -- When that person took over, or last said something.
    opened_at BIGINT NOT NULL,
    last_activity_at BIGINT NOT NULL,
    resolved_at BIGINT,
    archived_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (organization_id, id),
    CHECK (ref = upper(ref)),
    CHECK ((taken_over_by IS NULL) = (taken_over_at IS NULL) AND (taken_over_by IS NULL) = (last_word_at IS NULL)),
    CONSTRAINT conversations_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT conversations_created_by_fk FOREIGN KEY (created_by) REFERENCES users (id),
    CONSTRAINT conversations_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id),
    CONSTRAINT conversations_contact_fk FOREIGN KEY (organization_id, contact_id) REFERENCES contacts (organization_id, id),
    CONSTRAINT conversations_channel_fk FOREIGN KEY (organization_id, channel_id) REFERENCES channels (organization_id, id),
    CONSTRAINT conversations_taken_over_by_fk FOREIGN KEY (taken_over_by) REFERENCES users (id)
);
CREATE UNIQUE INDEX conversations_ref ON conversations (organization_id, ref);
CREATE INDEX conversations_activity ON conversations (organization_id, last_activity_at, id);
CREATE INDEX conversations_created ON conversations (organization_id, created_at, id);
CREATE INDEX conversations_agent ON conversations (organization_id, agent_id, last_activity_at, id);
CREATE INDEX conversations_contact ON conversations (organization_id, contact_id, last_activity_at, id);
CREATE INDEX conversations_channel ON conversations (organization_id, channel_id, last_activity_at, id);
CREATE INDEX conversations_transport ON conversations (organization_id, transport, last_activity_at, id);
CREATE INDEX conversations_model ON conversations (organization_id, model DESC, id);
CREATE INDEX conversations_status ON conversations (organization_id, status, last_activity_at, id);
CREATE INDEX conversations_taken_over ON conversations (last_word_at) WHERE taken_over_by IS NOT NULL;
CREATE INDEX conversations_holder ON conversations (organization_id, taken_over_by) WHERE taken_over_by IS NOT NULL;
CREATE INDEX conversations_created_by ON conversations (organization_id, created_by, last_activity_at, id) WHERE created_by IS NOT NULL;
CREATE INDEX conversations_thread ON conversations (organization_id, channel_id, thread_key, id) WHERE thread_key IS NOT NULL;
-- For counts and sums.
CREATE INDEX conversations_stored ON conversations (organization_id, stored_bytes);
CREATE INDEX conversations_open ON conversations (organization_id, agent_id) WHERE status IN ('OPEN', 'PENDING');

-- How far each person has read. A seq never goes back.
CREATE TABLE conversation_reads (
    organization_id BIGINT NOT NULL,
    conversation_id BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (organization_id, conversation_id, user_id),
    CONSTRAINT conversation_reads_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT conversation_reads_conversation_fk FOREIGN KEY (organization_id, conversation_id) REFERENCES conversations (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT conversation_reads_member_fk FOREIGN KEY (organization_id, user_id) REFERENCES members (organization_id, user_id) ON DELETE CASCADE
);
CREATE INDEX conversation_reads_user ON conversation_reads (organization_id, user_id);

-- Who is notified of approvals in a conversation: its starter, until they opt out.
CREATE TABLE conversation_watches (
    organization_id BIGINT NOT NULL,
    conversation_id BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, conversation_id, user_id),
    CONSTRAINT conversation_watches_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT conversation_watches_conversation_fk FOREIGN KEY (organization_id, conversation_id) REFERENCES conversations (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT conversation_watches_user_fk FOREIGN KEY (organization_id, user_id) REFERENCES members (organization_id, user_id) ON DELETE CASCADE
);
CREATE INDEX conversation_watches_user ON conversation_watches (organization_id, user_id);

-- Turns: what an agent was given to do at a time, in one conversation. One waits in each conversation and one is open, at most:
-- two partial unique indexes see to it.
CREATE TABLE turns (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    conversation_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    generation BIGINT, -- The launch that it was sent to. Null: not sent.
    agent_revision BIGINT, -- The number of the agent's revision.
    cause TEXT NOT NULL CHECK (cause IN ('PANEL', 'CHANNEL', 'API', 'SCHEDULE', 'AGENT', 'SYSTEM')),
    caused_by_user_id BIGINT,
    caused_by_token_id BIGINT,
    state TEXT NOT NULL DEFAULT 'QUEUED' CHECK (state IN ('QUEUED', 'RUNNING', 'WAITING_APPROVAL', 'WAITING_LIMIT', 'DONE', 'FAILED', 'CANCELLED', 'INTERRUPTED')),
    model TEXT,
    -- Null: the agent doesn't say.
    input_tokens BIGINT,
    output_tokens BIGINT,
    cache_read_tokens BIGINT,
    cache_write_tokens BIGINT,
    cost_micro BIGINT, -- Millionths of the currency unit.
    error TEXT,
    first_seq BIGINT, -- Its first message.
    handed_seq BIGINT, -- The conversation's last message when the host was told what to say.
    last_seq BIGINT, -- Its last message.
    cancel_requested_at BIGINT,
    cut_by TEXT, -- Who ended it early. Null: no one, or the service.
    cut TEXT CHECK (cut IN ('TURN', 'AGENT', 'RESTART', 'ORGANIZATION')), -- What that person ended.
    cut_at BIGINT, -- When. What was withdrawn before was not withdrawn by that person.
    yielded BOOLEAN NOT NULL DEFAULT FALSE CHECK (yielded IN (0, 1)), -- It was cancelled because a person took the conversation over.
    held BOOLEAN NOT NULL DEFAULT FALSE CHECK (held IN (0, 1)), -- It waits for another message: a person has answered what it contains.
    limited TEXT CHECK (limited IN ('REFUSED', 'PARKED', 'RESUMED')), -- How far a limit of the agent concerns it.
    unmeasured BOOLEAN NOT NULL DEFAULT FALSE CHECK (unmeasured IN (0, 1)), -- Its cost is the agent's own figure, because nothing was measured.
    started_at BIGINT, -- When the agent got it.
    ended_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (organization_id, id),
    CHECK ((state IN ('DONE', 'FAILED', 'CANCELLED', 'INTERRUPTED')) = (ended_at IS NOT NULL)),
    CONSTRAINT turns_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT turns_conversation_fk FOREIGN KEY (organization_id, conversation_id) REFERENCES conversations (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT turns_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id),
    CONSTRAINT turns_caused_by_user_fk FOREIGN KEY (caused_by_user_id) REFERENCES users (id),
    CONSTRAINT turns_caused_by_token_fk FOREIGN KEY (organization_id, caused_by_token_id) REFERENCES service_tokens (organization_id, id)
);
CREATE UNIQUE INDEX turns_queued ON turns (organization_id, conversation_id) WHERE state = 'QUEUED';
CREATE UNIQUE INDEX turns_open ON turns (organization_id, conversation_id) WHERE state IN ('RUNNING', 'WAITING_APPROVAL', 'WAITING_LIMIT');
CREATE INDEX turns_conversation ON turns (organization_id, conversation_id, id);
CREATE INDEX turns_agent ON turns (organization_id, agent_id, id);
CREATE INDEX turns_started ON turns (organization_id, started_at); -- The usage of days.
CREATE INDEX turns_state ON turns (organization_id, state, id);
CREATE INDEX turns_unfinished ON turns (organization_id, agent_id) WHERE ended_at IS NULL;
CREATE INDEX turns_caused_by_token ON turns (organization_id, caused_by_token_id) WHERE caused_by_token_id IS NOT NULL;

-- What turns have waited for, other than people. Only their traces show it.
CREATE TABLE turn_waits (
    organization_id BIGINT NOT NULL,
    turn_id BIGINT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('BUDGET', 'TOKENS', 'STOP')),
    from_at BIGINT NOT NULL,
    until_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, turn_id, kind, from_at),
    CONSTRAINT turn_waits_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT turn_waits_turn_fk FOREIGN KEY (organization_id, turn_id) REFERENCES turns (organization_id, id) ON DELETE CASCADE
);

-- Messages. Pages of messages use the unique index on seq, however long the conversation is.
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    conversation_id BIGINT NOT NULL,
    seq BIGINT NOT NULL, -- Counts from 1 within the conversation.
    turn_id BIGINT, -- The turn that it causes or belongs to.
    host_key TEXT, -- What the agent's host calls it: unique, so that no message is stored twice.
    role TEXT NOT NULL CHECK (role IN ('USER', 'ASSISTANT', 'SYSTEM', 'TOOL')),
    kind TEXT NOT NULL CHECK (kind IN ('TEXT', 'THINKING', 'TOOL_CALL', 'TOOL_RESULT', 'FILE', 'VOICE', 'APPROVAL', 'EVENT', 'ERROR')),
    via_channel_id BIGINT,
    via_identity_id BIGINT,
    dedupe_key TEXT, -- Unique in its channel, so that what comes twice is stored once.
    vendor_id TEXT, -- Its id at the vendor, if it came in.
    album TEXT, -- What it is a part of at the vendor: later parts join it.
    album_keys TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(album_keys)), -- The keys of those that did.
    unproven BOOLEAN NOT NULL DEFAULT FALSE CHECK (unproven IN (0, 1)), -- It came in, and no one vouches for who wrote it.
    author_user_id BIGINT,
    author_name TEXT,
    status TEXT NOT NULL DEFAULT 'PENDING' CHECK (status IN ('PENDING', 'DELIVERED', 'FAILED', 'CANCELLED')),
    -- Null: not sent through a channel.
    delivery_status TEXT CHECK (delivery_status IN ('PENDING', 'SENDING', 'SENT', 'DELIVERED', 'READ', 'FAILED', 'SKIPPED')),
    delivery_attempts BIGINT NOT NULL DEFAULT 0,
    delivery_error TEXT,
    delivery_sent_at BIGINT,
    -- By kind: {text, format}, {tool, call_id, input}, …
    content TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(content)),
    created_at BIGINT NOT NULL,
    UNIQUE (organization_id, id),
    CONSTRAINT messages_seq UNIQUE (organization_id, conversation_id, seq),
    CONSTRAINT messages_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT messages_conversation_fk FOREIGN KEY (organization_id, conversation_id) REFERENCES conversations (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT messages_turn_fk FOREIGN KEY (organization_id, turn_id) REFERENCES turns (organization_id, id),
    CONSTRAINT messages_via_channel_fk FOREIGN KEY (organization_id, via_channel_id) REFERENCES channels (organization_id, id),
    CONSTRAINT messages_via_identity_fk FOREIGN KEY (organization_id, via_identity_id) REFERENCES identities (organization_id, id),
    CONSTRAINT messages_author_user_fk FOREIGN KEY (author_user_id) REFERENCES users (id)
);
CREATE UNIQUE INDEX messages_host_key ON messages (organization_id, conversation_id, host_key) WHERE host_key IS NOT NULL;
CREATE INDEX messages_turn ON messages (organization_id, turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX messages_channel ON messages (organization_id, via_channel_id, id) WHERE via_channel_id IS NOT NULL;
CREATE INDEX messages_identity ON messages (organization_id, via_identity_id, created_at) WHERE via_identity_id IS NOT NULL;
CREATE UNIQUE INDEX messages_dedupe_key ON messages (organization_id, via_channel_id, dedupe_key) WHERE dedupe_key IS NOT NULL;
CREATE INDEX messages_vendor ON messages (organization_id, via_channel_id, vendor_id, id) WHERE vendor_id IS NOT NULL;
CREATE INDEX messages_album ON messages (organization_id, via_channel_id, album, id) WHERE album IS NOT NULL;
CREATE INDEX messages_delivery ON messages (organization_id, id) WHERE delivery_status IN ('PENDING', 'SENDING');
CREATE INDEX messages_undelivered ON messages (organization_id, created_at) WHERE delivery_status = 'FAILED';

-- The search index of messages. The row id is the message's. The tokens, separated by one space, are the folded words and
-- those of its organization, agent and conversation (`#o<id>`, `#a<id>`, `#<id>`); no word begins with `#`, so no text can
-- imitate one. Words are folded beforehand and only spaces separate them, so that a quoted token never counts as a phrase,
-- which detail=none does not support. Only row ids are stored (content='').
CREATE VIRTUAL TABLE messages_fts USING fts5 (
    tokens, content='', contentless_delete=1, detail=none,
    tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Co Cf Cn Cs'"
);
CREATE TRIGGER messages_unindex AFTER DELETE ON messages BEGIN
    DELETE FROM messages_fts WHERE rowid = old.id;
END;

-- What is sent through channels: one row for each part of a message, and for each action. Those of a conversation are sent in the order of their ids.
CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    channel_id BIGINT NOT NULL,
    conversation_id BIGINT NOT NULL,
    message_id BIGINT NOT NULL,
    part BIGINT NOT NULL, -- Counts from 1 within the message.
    status TEXT NOT NULL CHECK (status IN ('PENDING', 'SENDING', 'SENT', 'DELIVERED', 'READ', 'FAILED', 'SKIPPED')),
    draft TEXT CHECK (draft IN ('markdown', 'plain')), -- How `text` is written while it is the whole message. Null for a part.
    action TEXT, -- The action that it performs, instead of sending a message.
    text TEXT, -- As the vendor's dialect writes it; the arguments of an action. Null once it is sent.
    plain TEXT, -- Without the dialect's marks.
    first_file BIGINT NOT NULL DEFAULT 0, -- The first of the message's files that goes with it.
    files BIGINT NOT NULL DEFAULT 0, -- How many go with it.
    attempts BIGINT NOT NULL DEFAULT 0,
    available_at BIGINT NOT NULL, -- Not to be sent before; while it is being sent, the end of the sender's lease.
    code TEXT CHECK (code IN ('refused', 'target_gone', 'unknown_outcome', 'gave_up', 'earlier_part', 'bounced')), -- Why it failed for good.
    error TEXT, -- Why the last attempt failed.
    vendor_id TEXT, -- Its id at the vendor.
    created_at BIGINT NOT NULL,
    sent_at BIGINT,
    UNIQUE (organization_id, id),
    CONSTRAINT deliveries_part UNIQUE (organization_id, message_id, part),
    CONSTRAINT deliveries_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT deliveries_channel_fk FOREIGN KEY (organization_id, channel_id) REFERENCES channels (organization_id, id),
    CONSTRAINT deliveries_conversation_fk FOREIGN KEY (organization_id, conversation_id) REFERENCES conversations (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT deliveries_message_fk FOREIGN KEY (organization_id, message_id) REFERENCES messages (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX deliveries_due ON deliveries (organization_id, channel_id, available_at) WHERE status IN ('PENDING', 'SENDING');
CREATE INDEX deliveries_order ON deliveries (organization_id, conversation_id, message_id, part) WHERE status IN ('PENDING', 'SENDING');
CREATE INDEX deliveries_conversation ON deliveries (organization_id, conversation_id, id);
CREATE INDEX deliveries_vendor ON deliveries (organization_id, channel_id, vendor_id) WHERE vendor_id IS NOT NULL;

-- Files sent with messages; their bytes are in attachment_blobs.
CREATE TABLE attachments (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    message_id BIGINT, -- Null from upload until the message is posted.
    position BIGINT NOT NULL DEFAULT 0, -- Its place among the files of its message.
    filename TEXT NOT NULL,
    mime_type TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    sha256 BLOB NOT NULL,
    uploaded_by_agent_id BIGINT,
    uploaded_by_user_id BIGINT,
    created_at BIGINT NOT NULL,
    UNIQUE (organization_id, id),
    CONSTRAINT attachments_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT attachments_message_fk FOREIGN KEY (organization_id, message_id) REFERENCES messages (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT attachments_uploaded_by_agent_fk FOREIGN KEY (organization_id, uploaded_by_agent_id) REFERENCES agents (organization_id, id),
    CONSTRAINT attachments_uploaded_by_user_fk FOREIGN KEY (uploaded_by_user_id) REFERENCES users (id)
);
CREATE INDEX attachments_message ON attachments (organization_id, message_id);
CREATE INDEX attachments_agent ON attachments (organization_id, uploaded_by_agent_id) WHERE uploaded_by_agent_id IS NOT NULL;
CREATE INDEX attachments_unposted ON attachments (created_at) WHERE message_id IS NULL;

-- The bytes of attachments, separate from the rows that lists read.
CREATE TABLE attachment_blobs (
    organization_id BIGINT NOT NULL,
    attachment_id BIGINT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (organization_id, attachment_id),
    CONSTRAINT attachment_blobs_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT attachment_blobs_attachment_fk FOREIGN KEY (organization_id, attachment_id) REFERENCES attachments (organization_id, id) ON DELETE CASCADE
);

-- Messages as they came (mails), so that a later version can read them again.
CREATE TABLE message_sources (
    organization_id BIGINT NOT NULL,
    message_id BIGINT NOT NULL,
    source_sealed BLOB NOT NULL,
    notes TEXT NOT NULL, -- What stands in the message below what it says: the files that were not kept.
    size_bytes BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, message_id),
    CONSTRAINT message_sources_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT message_sources_message_fk FOREIGN KEY (organization_id, message_id) REFERENCES messages (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX message_sources_created ON message_sources (created_at);
