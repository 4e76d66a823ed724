-- How people reach agents: channels, contacts, identities. Conventions: ../README.md

-- An agent's connections to messaging transports. Columns for a single transport are prefixed with its name.
CREATE TABLE channels (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    transport TEXT NOT NULL CHECK (transport IN ('TELEGRAM', 'DISCORD', 'SLACK', 'EMAIL', 'CODE_HOST', 'WEBHOOK', 'DRIVE', 'CALENDAR', 'INTERNAL')),
    scope TEXT NOT NULL DEFAULT 'EXTERNAL' CHECK (scope IN ('EXTERNAL', 'INTERNAL')),
    direction TEXT NOT NULL DEFAULT 'BIDIRECTIONAL' CHECK (direction IN ('INBOUND', 'OUTBOUND', 'BIDIRECTIONAL')),
    name TEXT NOT NULL,
    name_folded TEXT NOT NULL,
    target TEXT, -- A bot's handle, or a destination.
    bot_username TEXT,
    bot_token_sealed BLOB,
    bot_hash BLOB, -- A keyed digest of the token, so that no two channels have the same.
    self_ids JSON NOT NULL DEFAULT '[]', -- Under which the vendor shows our own messages, as it said.
    warnings JSON NOT NULL DEFAULT '[]', -- What the vendor or its settings prevent, as it said.
    label_whitelist TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(label_whitelist)),
    mention_off TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(mention_off)),
    -- The last segment of the inbound path. It is random and globally unique, and acts as a secret.
    inbound_slug TEXT,
    webhook_registered BOOLEAN NOT NULL DEFAULT FALSE CHECK (webhook_registered IN (0, 1)),
    webhook_outbound_url TEXT,
    webhook_outbound_secret_sealed BLOB,
    webhook_inbound_secret_sealed BLOB,
    webhook_outbound_previous_sealed BLOB, -- The secret before, which counts for a while longer.
    webhook_outbound_previous_until BIGINT,
    webhook_inbound_previous_sealed BLOB,
    webhook_inbound_previous_until BIGINT,
    webhook_signature_header TEXT,
    webhook_actor_paths TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(webhook_actor_paths)),
    webhook_self_ids TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(webhook_self_ids)),
    invite_url TEXT,
    email_imap_host TEXT,
    email_imap_port BIGINT,
    email_imap_user TEXT,
    email_imap_pass_sealed BLOB,
    email_imap_tls BOOLEAN NOT NULL DEFAULT TRUE CHECK (email_imap_tls IN (0, 1)),
    email_smtp_host TEXT,
    email_smtp_port BIGINT,
    email_smtp_user TEXT,
    email_smtp_pass_sealed BLOB,
    email_smtp_from TEXT,
    email_authserv_id TEXT, -- The mail server that is believed about senders.
    code_host_host TEXT, -- A host that the operator names; null at GitHub.
    code_host_installation_id BIGINT,
    code_host_repos TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(code_host_repos)),
    code_host_events TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(code_host_events)),
    code_host_listen_scope TEXT NOT NULL DEFAULT 'involved' CHECK (code_host_listen_scope IN ('involved', 'mentions', 'all')),
    code_host_raw_payload BOOLEAN NOT NULL DEFAULT FALSE CHECK (code_host_raw_payload IN (0, 1)),
    code_host_oauth_authorized BOOLEAN NOT NULL DEFAULT FALSE CHECK (code_host_oauth_authorized IN (0, 1)),
    code_host_oauth_user_login TEXT,
    code_host_oauth_expires_at BIGINT,
    provider_connected BOOLEAN NOT NULL DEFAULT FALSE CHECK (provider_connected IN (0, 1)),
    provider_email TEXT,
    provider_expires_at BIGINT,
    oauth_access_token_sealed BLOB, -- Tokens of the account at a provider or code host.
    oauth_access_until BIGINT, -- When the access token lapses; null if it lasts.
    oauth_refresh_token_sealed BLOB,
    oauth_refreshing_until BIGINT, -- The lease of the process that refreshes them.
    oauth_state_hash BLOB, -- Of an authorization that has begun: its state, the session, and its end.
    oauth_state_session BIGINT,
    oauth_state_until BIGINT,
    drive_folder_id TEXT,
    drive_folder_name TEXT,
    drive_url TEXT, -- A WebDAV server; null: Google.
    drive_user TEXT,
    drive_pass_sealed BLOB, -- A password, or a service account's key.
    calendar_url TEXT, -- A CalDAV server. NULL: the calendars are the connected account's.
    calendar_user TEXT,
    calendar_pass_sealed BLOB,
    -- Objects {id, name}.
    calendar_whitelist TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(calendar_whitelist)),
    calendar_reminder_lead_minutes BIGINT,
    instructions TEXT,
    notify_conversation_id BIGINT,
    alert_recipient_user_ids TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(alert_recipient_user_ids)),
    is_active BOOLEAN NOT NULL DEFAULT TRUE CHECK (is_active IN (0, 1)),
    inactive_reason TEXT CHECK (inactive_reason IN ('MANUAL', 'AUTH_FAILED', 'GONE', 'DELIVERY_FAILING', 'AGENT_ARCHIVED', 'PLAN_LIMIT')),
    created_by BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    last_activity_at BIGINT,
    send_after BIGINT, -- The vendor asks to send nothing before.
    failing_since BIGINT, -- Since when nothing could be sent; null once something is.
    archived_at BIGINT, -- Deleted: hidden, without secrets and path; the row stays for the conversations that refer to it.
    UNIQUE (organization_id, id),
    CONSTRAINT channels_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT channels_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id),
    CONSTRAINT channels_notify_conversation_fk FOREIGN KEY (organization_id, notify_conversation_id) REFERENCES conversations (organization_id, id),
    CONSTRAINT channels_created_by_fk FOREIGN KEY (created_by) REFERENCES users (id)
);
CREATE UNIQUE INDEX channels_inbound_slug ON channels (inbound_slug);
CREATE UNIQUE INDEX channels_bot ON channels (bot_hash);
CREATE INDEX channels_agent ON channels (organization_id, agent_id, id);
CREATE INDEX channels_installation ON channels (code_host_installation_id) WHERE code_host_installation_id IS NOT NULL;
CREATE INDEX channels_name ON channels (organization_id, name_folded, id);
CREATE INDEX channels_notify_conversation ON channels (organization_id, notify_conversation_id) WHERE notify_conversation_id IS NOT NULL;

-- Who may write to a channel. If senders name themselves, an empty list admits no one.
CREATE TABLE channel_whitelist (
    organization_id BIGINT NOT NULL,
    channel_id BIGINT NOT NULL,
    origin_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, channel_id, origin_id),
    CONSTRAINT channel_whitelist_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT channel_whitelist_channel_fk FOREIGN KEY (organization_id, channel_id) REFERENCES channels (organization_id, id) ON DELETE CASCADE
);

-- The last refused origins of each channel. Refusals are counted in memory and written once a second.
CREATE TABLE channel_refusals (
    organization_id BIGINT NOT NULL,
    channel_id BIGINT NOT NULL,
    origin_id TEXT NOT NULL,
    origin_name TEXT,
    reason TEXT NOT NULL CHECK (reason IN ('NOT_WHITELISTED', 'LABEL', 'NOT_ADDRESSED', 'UNPROVEN')),
    count BIGINT NOT NULL,
    first_at BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, channel_id, origin_id),
    CONSTRAINT channel_refusals_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT channel_refusals_channel_fk FOREIGN KEY (organization_id, channel_id) REFERENCES channels (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX channel_refusals_last ON channel_refusals (organization_id, channel_id, last_at);

-- Messages that can't be read: the newest of each channel.
CREATE TABLE channel_skips (
    organization_id BIGINT NOT NULL,
    channel_id BIGINT NOT NULL,
    vendor_id TEXT NOT NULL, -- A mail's UID.
    subject TEXT,
    reason TEXT NOT NULL,
    skipped_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, channel_id, vendor_id),
    CONSTRAINT channel_skips_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT channel_skips_channel_fk FOREIGN KEY (organization_id, channel_id) REFERENCES channels (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX channel_skips_last ON channel_skips (organization_id, channel_id, skipped_at);

-- Who listens to a channel whose vendor is asked: one process at a time, for as long as its lease lasts.
CREATE TABLE channel_listeners (
    organization_id BIGINT NOT NULL,
    channel_id BIGINT NOT NULL,
    holder TEXT NOT NULL, -- The process.
    until BIGINT NOT NULL, -- When its lease ends. No one listens before, except its holder.
    cursor TEXT, -- How far it has read, as the transport calls it.
    link TEXT NOT NULL DEFAULT 'DOWN' CHECK (link IN ('UP', 'DOWN')), -- Whether the vendor is reached.
    cause TEXT, -- Why not.
    linked_at BIGINT, -- Since when.
    PRIMARY KEY (organization_id, channel_id),
    CONSTRAINT channel_listeners_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT channel_listeners_channel_fk FOREIGN KEY (organization_id, channel_id) REFERENCES channels (organization_id, id) ON DELETE CASCADE
);

-- Which chat is whose: members who have shown, by a code, who they are at the vendor. There they are asked, and decide.
CREATE TABLE channel_links (
    organization_id BIGINT NOT NULL,
    channel_id BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    origin_id TEXT NOT NULL, -- Who they are, as the vendor calls them.
    origin_name TEXT,
    target TEXT NOT NULL, -- Their private chat, as the transport calls it.
    created_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, channel_id, user_id),
    CONSTRAINT channel_links_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT channel_links_channel_fk FOREIGN KEY (organization_id, channel_id) REFERENCES channels (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT channel_links_user_fk FOREIGN KEY (organization_id, user_id) REFERENCES members (organization_id, user_id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX channel_links_origin ON channel_links (organization_id, channel_id, origin_id);
CREATE INDEX channel_links_user ON channel_links (organization_id, user_id);

-- Codes by which members link their chats. One for each member and channel.
CREATE TABLE channel_link_codes (
    organization_id BIGINT NOT NULL,
    channel_id BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    code_hash BLOB NOT NULL,
    tries BIGINT NOT NULL, -- How many wrong ones were tried in the channel.
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, channel_id, user_id),
    CONSTRAINT channel_link_codes_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT channel_link_codes_channel_fk FOREIGN KEY (organization_id, channel_id) REFERENCES channels (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT channel_link_codes_user_fk FOREIGN KEY (organization_id, user_id) REFERENCES members (organization_id, user_id) ON DELETE CASCADE
);
CREATE INDEX channel_link_codes_user ON channel_link_codes (organization_id, user_id);
CREATE INDEX channel_link_codes_expires ON channel_link_codes (expires_at); -- For retention.

-- People on the other side of channels.
CREATE TABLE contacts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    name_folded TEXT NOT NULL,
    note TEXT,
    avatar_version BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    archived_at BIGINT,
    UNIQUE (organization_id, id),
    CONSTRAINT contacts_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id)
);
CREATE INDEX contacts_name ON contacts (organization_id, name_folded, id);

-- A contact's address on one transport.
CREATE TABLE identities (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    contact_id BIGINT NOT NULL,
    channel_id BIGINT, -- The channel where the address was first seen. A webhook's counts there alone.
    transport TEXT NOT NULL CHECK (transport IN ('TELEGRAM', 'DISCORD', 'SLACK', 'EMAIL', 'CODE_HOST', 'WEBHOOK', 'DRIVE', 'CALENDAR', 'INTERNAL')),
    origin_id TEXT NOT NULL,
    origin_id_folded TEXT NOT NULL,
    display_name TEXT,
    display_name_folded TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    last_seen_at BIGINT,
    UNIQUE (organization_id, id),
    CONSTRAINT identities_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT identities_contact_fk FOREIGN KEY (organization_id, contact_id) REFERENCES contacts (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT identities_channel_fk FOREIGN KEY (organization_id, channel_id) REFERENCES channels (organization_id, id)
);
-- A vendor's address is one person in all channels. What a webhook's sender calls people means something in its channel alone.
CREATE UNIQUE INDEX identities_origin ON identities (organization_id, transport, origin_id) WHERE transport <> 'WEBHOOK';
CREATE UNIQUE INDEX identities_webhook_origin ON identities (organization_id, channel_id, origin_id) WHERE transport = 'WEBHOOK';
CREATE INDEX identities_contact ON identities (organization_id, contact_id);
CREATE INDEX identities_channel ON identities (organization_id, channel_id) WHERE channel_id IS NOT NULL;
