-- Generated from the migrations, for reading and comparing.

CREATE TABLE agent_backups (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    server_id BIGINT NOT NULL, -- Whose host has the file.
    cause TEXT NOT NULL CHECK (cause IN ('SCHEDULE', 'PERSON')),
    state TEXT NOT NULL CHECK (state IN ('PENDING', 'DONE', 'FAILED')),
    bytes BIGINT,
    sha256 TEXT, -- Of the file, in hexadecimal.
    error TEXT,
    author_kind TEXT NOT NULL CHECK (author_kind IN ('USER', 'SERVICE_TOKEN', 'SYSTEM', 'ANONYMOUS')),
    author_id BIGINT,
    author_name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    ended_at BIGINT,
    restore_state TEXT CHECK (restore_state IN ('PENDING', 'DONE', 'FAILED')), -- Of the last restore from it.
    restore_error TEXT,
    restored_at BIGINT, -- While it is PENDING, when it was wanted.
    UNIQUE (organization_id, id),
    CONSTRAINT agent_backups_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT agent_backups_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id),
    CONSTRAINT agent_backups_server_fk FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id)
);

CREATE INDEX agent_backups_agent ON agent_backups (organization_id, agent_id);

CREATE UNIQUE INDEX agent_backups_pending ON agent_backups (organization_id, agent_id) WHERE state = 'PENDING';

CREATE UNIQUE INDEX agent_backups_restoring ON agent_backups (organization_id, agent_id) WHERE restore_state = 'PENDING';

CREATE INDEX agent_backups_waiting ON agent_backups (created_at) WHERE state = 'PENDING';

CREATE INDEX agent_backups_waiting_restore ON agent_backups (restored_at) WHERE restore_state = 'PENDING';

CREATE TABLE agent_launches (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    generation BIGINT NOT NULL, -- Counts the agent's launches.
    revision BIGINT NOT NULL,
    started_by_kind TEXT NOT NULL CHECK (started_by_kind IN ('USER', 'SERVICE_TOKEN', 'SYSTEM', 'ANONYMOUS')),
    started_by_id BIGINT,
    started_by_name TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    up_at BIGINT,
    ended_at BIGINT,
    reason TEXT CHECK (reason IN ('HOST_AWAY', 'WAITING_FOR_HOST', 'HOST_NOT_CONFIRMED', 'RESTARTING', 'ENGINE_AWAY', 'IMAGE_NOT_FOUND', 'OUT_OF_MEMORY', 'SHIM_LOST', 'EXITED', 'KILLED', 'SPAWN_FAILED', 'NO_PROTOCOL', 'LINE_TOO_LONG', 'DISK_FULL', 'START_TIMEOUT', 'AUTH_REQUIRED', 'ORGANIZATION_STOPPED')),
    detail TEXT,
    UNIQUE (organization_id, id),
    CONSTRAINT agent_launches_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT agent_launches_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id)
);

CREATE UNIQUE INDEX agent_launches_generation ON agent_launches (organization_id, agent_id, generation DESC);

CREATE TABLE agent_limits (
    organization_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('MONEY', 'TOKENS', 'USAGE')),
    reason TEXT NOT NULL,
    until_at BIGINT, -- When to look again. Null: once someone has allowed more.
    model_credential_id BIGINT, -- The organization's model credential that is limited.
    probing_at BIGINT, -- When one of its turns was sent alone to see whether calls pass again.
    since BIGINT NOT NULL,
    PRIMARY KEY (organization_id, agent_id),
    CONSTRAINT agent_limits_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT agent_limits_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id),
    CONSTRAINT agent_limits_model_credential_fk FOREIGN KEY (organization_id, model_credential_id) REFERENCES model_credentials (organization_id, id)
);

CREATE INDEX agent_limits_due ON agent_limits (until_at) WHERE until_at IS NOT NULL;

CREATE INDEX agent_limits_model_credential ON agent_limits (organization_id, model_credential_id);

CREATE TABLE agent_months (
    organization_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    from_at BIGINT NOT NULL,
    until_at BIGINT NOT NULL,
    cost_micro BIGINT NOT NULL DEFAULT 0,
    tokens BIGINT NOT NULL DEFAULT 0,
    leased_micro BIGINT NOT NULL DEFAULT 0,
    allowed_micro BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (organization_id, agent_id, from_at),
    CONSTRAINT agent_months_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT agent_months_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id)
);

CREATE TABLE agent_revisions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    number BIGINT NOT NULL, -- 1, 2, 3, ...
    content TEXT NOT NULL, -- Canonical JSON, byte by byte: keys in order, no spaces.
    content_hash TEXT NOT NULL, -- SHA-256 of content, in hexadecimal.
    changes TEXT NOT NULL CHECK (json_valid(changes)), -- Against the one before: field -> [before, after].
    reverts_to BIGINT, -- The earlier number whose content this is again.
    author_kind TEXT NOT NULL CHECK (author_kind IN ('USER', 'SERVICE_TOKEN', 'SYSTEM', 'ANONYMOUS')),
    author_id BIGINT,
    author_name TEXT NOT NULL,
    operation TEXT, -- The root field of the schema.
    reason TEXT,
    created_at BIGINT NOT NULL,
    UNIQUE (organization_id, id),
    CONSTRAINT agent_revisions_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT agent_revisions_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id)
);

CREATE UNIQUE INDEX agent_revisions_number ON agent_revisions (organization_id, agent_id, number);

CREATE TABLE agents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    server_id BIGINT NOT NULL,
    image_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    name_folded TEXT NOT NULL,
    description TEXT,
    role TEXT,
    instructions TEXT,
    status TEXT NOT NULL DEFAULT 'STOPPED' CHECK (status IN ('STOPPED', 'SPAWNING', 'RUNNING', 'PAUSED', 'STOPPING', 'ERROR')),
    -- Counts launches; reports of an older generation are dropped.
    launch_generation BIGINT NOT NULL DEFAULT 0,
    status_reason TEXT CHECK (status_reason IN ('HOST_AWAY', 'WAITING_FOR_HOST', 'HOST_NOT_CONFIRMED', 'RESTARTING', 'ENGINE_AWAY', 'IMAGE_NOT_FOUND', 'OUT_OF_MEMORY', 'SHIM_LOST', 'EXITED', 'KILLED', 'SPAWN_FAILED', 'NO_PROTOCOL', 'LINE_TOO_LONG', 'DISK_FULL', 'START_TIMEOUT', 'AUTH_REQUIRED', 'SYNC_FAILED', 'BACKUP_FAILED', 'LIMIT_REACHED', 'ORGANIZATION_STOPPED')), -- Why it failed, or waits.
    status_detail TEXT,
    revision BIGINT NOT NULL DEFAULT 0, -- The newest of agent_revisions.
    launched_revision BIGINT, -- The one it was last launched with.
    status_changed_at BIGINT, -- When the agent entered this state; a start's deadline counts from here.
    started_at BIGINT, -- When the container started; uptime is computed from it.
    container_id TEXT,
    last_action TEXT,
    last_action_at BIGINT,
    model_credential_type TEXT CHECK (model_credential_type IN ('OAUTH', 'API_KEY')),
    model_credential_provider TEXT,
    model_credential_base_url TEXT,
    model_credential_sealed BLOB,
    auth_failed_at BIGINT,
    credential_choice TEXT NOT NULL DEFAULT 'INHERIT' CHECK (credential_choice IN ('INHERIT', 'OWN', 'NONE')),
    model_override TEXT,
    mode_override TEXT,
    resolved_model TEXT,
    running_model TEXT,
    context_floor_tokens BIGINT,
    context_floor_memory_tokens BIGINT,
    context_floor_recommended_tokens BIGINT,
    context_floor_cap_tokens BIGINT,
    analysis_score BIGINT,
    effort_override TEXT CHECK (effort_override IN ('LOW', 'MEDIUM', 'HIGH', 'MAX')),
    thinking_enabled BOOLEAN NOT NULL DEFAULT FALSE CHECK (thinking_enabled IN (0, 1)),
    language TEXT,
    mcp_http_bridge BOOLEAN NOT NULL DEFAULT FALSE CHECK (mcp_http_bridge IN (0, 1)),
    response_style TEXT NOT NULL DEFAULT 'DEFAULT' CHECK (response_style IN ('DEFAULT', 'CONCISE', 'DETAILED', 'FORMAL', 'FRIENDLY')),
    response_format TEXT NOT NULL DEFAULT 'PROSE' CHECK (response_format IN ('PROSE', 'MARKDOWN', 'PLAIN', 'STRUCTURED')),
    single_message BOOLEAN NOT NULL DEFAULT FALSE CHECK (single_message IN (0, 1)),
    no_emoji BOOLEAN NOT NULL DEFAULT FALSE CHECK (no_emoji IN (0, 1)),
    approval_ask_threshold BIGINT,
    approval_block_threshold BIGINT,
    approval_timeout_minutes BIGINT,
    approval_categories TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(approval_categories)),
    disabled_tool_groups TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(disabled_tool_groups)),
    memory_mb_override BIGINT,
    cpu_override REAL,
    hub_available BOOLEAN NOT NULL DEFAULT FALSE CHECK (hub_available IN (0, 1)),
    voice_enabled BOOLEAN NOT NULL DEFAULT FALSE CHECK (voice_enabled IN (0, 1)),
    network_privileged BOOLEAN NOT NULL DEFAULT FALSE CHECK (network_privileged IN (0, 1)),
    voice_id TEXT,
    backup_schedule TEXT NOT NULL DEFAULT 'INHERIT' CHECK (backup_schedule IN ('INHERIT', 'OFF', 'DAILY', 'WEEKLY', 'CRON')),
    timezone TEXT,
    backup_cron TEXT,
    backup_retention BIGINT,
    backup_freeze BOOLEAN NOT NULL DEFAULT FALSE CHECK (backup_freeze IN (0, 1)),
    last_backup_at BIGINT,
    cost_guard_mode TEXT NOT NULL DEFAULT 'INHERIT' CHECK (cost_guard_mode IN ('INHERIT', 'OFF', 'CUSTOM')),
    cost_guard_tokens_per_hour BIGINT,
    cost_guard_action TEXT CHECK (cost_guard_action IN ('NOTIFY', 'PAUSE', 'STOP')),
    monthly_budget_micro BIGINT, -- Null: none of its own.
    budget_action TEXT NOT NULL DEFAULT 'PAUSE' CHECK (budget_action IN ('NOTIFY', 'PAUSE', 'STOP')),
    session_reset_mode TEXT NOT NULL DEFAULT 'INHERIT' CHECK (session_reset_mode IN ('INHERIT', 'OFF', 'CUSTOM')),
    session_reset_tokens BIGINT,
    tokens_used BIGINT NOT NULL DEFAULT 0,
    cost_micro BIGINT NOT NULL DEFAULT 0,
    usage_status TEXT CHECK (usage_status IN ('ALLOWED', 'ALLOWED_WARNING', 'REJECTED')),
    usage_rate_limit_type TEXT, -- Stored as the agent sends it.
    usage_resets_at BIGINT,
    usage_overage_status TEXT CHECK (usage_overage_status IN ('ALLOWED', 'ALLOWED_WARNING', 'REJECTED')),
    usage_overage_resets_at BIGINT,
    usage_is_overage BOOLEAN NOT NULL DEFAULT FALSE CHECK (usage_is_overage IN (0, 1)),
    usage_updated_at BIGINT,
    offered_models TEXT CHECK (offered_models IS NULL OR json_valid(offered_models)), -- What its sessions offer: [{id, name, description, current}]
    offered_modes TEXT CHECK (offered_modes IS NULL OR json_valid(offered_modes)),
    sync_pending BOOLEAN NOT NULL DEFAULT FALSE CHECK (sync_pending IN (0, 1)),
    sync_version BIGINT NOT NULL DEFAULT 0, -- Counts the changes that its host must learn of.
    sync_given BIGINT NOT NULL DEFAULT 0, -- How many of them the host was told of last.
    launched_with_sealed BLOB, -- Digests of what a launch alone can give it.
    restart_reason TEXT, -- What of that has changed since.
    restart_policy TEXT NOT NULL DEFAULT 'ON_FAILURE' CHECK (restart_policy IN ('NEVER', 'ON_FAILURE', 'ALWAYS')),
    restarts BIGINT NOT NULL DEFAULT 0, -- How often it was started again in a row after failures.
    losses BIGINT NOT NULL DEFAULT 0, -- The same, after its host had lost it.
    restart_at BIGINT, -- When it is started again.
    launch_lacks TEXT, -- What its launch lacks, as its host says.
    avatar_version BIGINT,
    created_by BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    archived_at BIGINT,
    UNIQUE (organization_id, id),
    CONSTRAINT agents_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT agents_server_fk FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id),
    CONSTRAINT agents_image_fk FOREIGN KEY (organization_id, image_id) REFERENCES images (organization_id, id),
    CONSTRAINT agents_created_by_fk FOREIGN KEY (created_by) REFERENCES users (id)
);

CREATE INDEX agents_active ON agents (organization_id, id) WHERE archived_at IS NULL;

CREATE INDEX agents_image ON agents (organization_id, image_id);

CREATE UNIQUE INDEX agents_name ON agents (organization_id, name) WHERE archived_at IS NULL;

CREATE INDEX agents_restarting ON agents (restart_at) WHERE restart_at IS NOT NULL;

CREATE INDEX agents_server ON agents (organization_id, server_id, status);

CREATE INDEX agents_spawning ON agents (status_changed_at) WHERE status = 'SPAWNING';

CREATE TABLE allowed_hosts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    host TEXT NOT NULL, -- A name in lower case, or `*.` and a name of at least two labels.
    port BIGINT NOT NULL CHECK (port BETWEEN 1 AND 65535),
    created_by BIGINT,
    created_by_name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (organization_id, id),
    CONSTRAINT allowed_hosts_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT allowed_hosts_created_by_fk FOREIGN KEY (created_by) REFERENCES users (id)
);

CREATE UNIQUE INDEX allowed_hosts_host ON allowed_hosts (organization_id, host, port);

CREATE TABLE approval_asks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    approval_id BIGINT NOT NULL,
    channel_id BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    target TEXT NOT NULL, -- The chat, as the transport calls it.
    state TEXT NOT NULL CHECK (state IN ('TO_ASK', 'ASKED', 'TO_CLOSE', 'CLOSED')),
    digest TEXT, -- Of what was shown, if it may be decided there.
    vendor_id TEXT, -- The message.
    attempts BIGINT NOT NULL,
    available_at BIGINT NOT NULL, -- Not before; while it is being sent, the end of the sender's claim.
    created_at BIGINT NOT NULL,
    UNIQUE (organization_id, id),
    UNIQUE (organization_id, approval_id, channel_id, user_id),
    CONSTRAINT approval_asks_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT approval_asks_approval_fk FOREIGN KEY (organization_id, approval_id) REFERENCES approvals (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT approval_asks_channel_fk FOREIGN KEY (organization_id, channel_id) REFERENCES channels (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT approval_asks_user_fk FOREIGN KEY (organization_id, user_id) REFERENCES members (organization_id, user_id) ON DELETE CASCADE
);

CREATE INDEX approval_asks_closed ON approval_asks (available_at) WHERE state = 'CLOSED';

CREATE INDEX approval_asks_due ON approval_asks (available_at) WHERE state IN ('TO_ASK', 'TO_CLOSE');

CREATE INDEX approval_asks_message ON approval_asks (organization_id, channel_id, vendor_id) WHERE vendor_id IS NOT NULL;

CREATE INDEX approval_asks_user ON approval_asks (organization_id, user_id);

CREATE TABLE approval_snoozes (
    organization_id BIGINT NOT NULL,
    approval_id BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    until BIGINT NOT NULL,
    PRIMARY KEY (organization_id, approval_id, user_id),
    CONSTRAINT approval_snoozes_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT approval_snoozes_approval_fk FOREIGN KEY (organization_id, approval_id) REFERENCES approvals (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT approval_snoozes_user_fk FOREIGN KEY (organization_id, user_id) REFERENCES members (organization_id, user_id) ON DELETE CASCADE
);

CREATE INDEX approval_snoozes_until ON approval_snoozes (until);

CREATE INDEX approval_snoozes_user ON approval_snoozes (organization_id, user_id);

CREATE TABLE approvals (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('QUESTION', 'ACTION', 'AUTH_REQUIRED', 'COST_GUARD', 'CHANNEL_ERROR', 'ACCESS_REQUEST', 'SERVER_ALERT')),
    status TEXT NOT NULL DEFAULT 'PENDING' CHECK (status IN ('PENDING', 'RESOLVED', 'DISMISSED', 'EXPIRED')),
    outcome TEXT CHECK (outcome IN ('MANUAL', 'ANSWERED', 'APPROVED', 'DENIED', 'DISMISSED', 'EXPIRED', 'WITHDRAWN')),
    title TEXT NOT NULL,
    title_folded TEXT NOT NULL,
    body TEXT,
    severity TEXT NOT NULL DEFAULT 'MEDIUM' CHECK (severity IN ('LOW', 'MEDIUM', 'HIGH', 'CRITICAL')),
    category TEXT,
    risk BIGINT,
    agent_id BIGINT,
    server_id BIGINT, -- The subject of a SERVER_ALERT.
    model_credential_id BIGINT, -- The model credential whose provider refuses it.
    channel_id BIGINT, -- The subject of a CHANNEL_ERROR or an ACCESS_REQUEST.
    origin_id TEXT, -- Whom an ACCESS_REQUEST would let in.
    conversation_id BIGINT,
    message_seq BIGINT,
    turn_id BIGINT, -- The turn it was asked in.
    -- An agent's request: its name, unique in the launch. Null: nothing waits for the decision.
    generation BIGINT,
    request_key TEXT,
    request TEXT CHECK (request IS NULL OR json_valid(request)), -- {tool, input, digest}
    -- {text, options: [{id, label, description}], multiple, allow_text}
    question TEXT CHECK (question IS NULL OR json_valid(question)),
    spending TEXT CHECK (spending IS NULL OR json_valid(spending)), -- What a COST_GUARD asks to allow.
    answer TEXT CHECK (answer IS NULL OR json_valid(answer)), -- {options, text}
    decided_by_user_id BIGINT,
    decided_by_token_id BIGINT,
    decided_by_name TEXT,
    decided_by_kind TEXT CHECK (decided_by_kind IN ('USER', 'SERVICE_TOKEN', 'SYSTEM', 'ANONYMOUS')),
    decided_via TEXT CHECK (decided_via IN ('GRAPHQL', 'REST', 'CHANNEL', 'SYSTEM')),
    comment TEXT,
    expires_at BIGINT,
    resolved_at BIGINT,
    delivered_at BIGINT,
    delivery TEXT CHECK (delivery IN ('SENT', 'DIRECT', 'TURN', 'NONE')), -- Of the decision. A compare-and-set decides.
    honoured_at BIGINT, -- When an approval that came too late allowed the same action in the next launch.
    answer_message_id BIGINT, -- The decision, as a message of the conversation.
    assignee_id BIGINT, -- The member who should decide. Restricts no one.
    remind_at BIGINT, -- When to remind people that it expires; null: not, or done.
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (organization_id, id),
    CHECK (risk IS NULL OR risk BETWEEN 0 AND 100),
    CHECK ((status = 'PENDING') = (outcome IS NULL)),
    CONSTRAINT approvals_model_credential_fk FOREIGN KEY (organization_id, model_credential_id) REFERENCES model_credentials (organization_id, id),
    CONSTRAINT approvals_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT approvals_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id),
    CONSTRAINT approvals_server_fk FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id),
    CONSTRAINT approvals_channel_fk FOREIGN KEY (organization_id, channel_id) REFERENCES channels (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT approvals_conversation_fk FOREIGN KEY (organization_id, conversation_id) REFERENCES conversations (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT approvals_turn_fk FOREIGN KEY (organization_id, turn_id) REFERENCES turns (organization_id, id),
    CONSTRAINT approvals_answer_message_fk FOREIGN KEY (organization_id, answer_message_id) REFERENCES messages (organization_id, id),
    CONSTRAINT approvals_assignee_fk FOREIGN KEY (organization_id, assignee_id) REFERENCES members (organization_id, user_id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT approvals_decided_by_user_fk FOREIGN KEY (decided_by_user_id) REFERENCES users (id),
    CONSTRAINT approvals_decided_by_token_fk FOREIGN KEY (organization_id, decided_by_token_id) REFERENCES service_tokens (organization_id, id)
);

CREATE INDEX approvals_agent ON approvals (organization_id, agent_id, created_at DESC, id);

CREATE INDEX approvals_answer_message ON approvals (organization_id, answer_message_id) WHERE answer_message_id IS NOT NULL;

CREATE INDEX approvals_assignee ON approvals (organization_id, assignee_id) WHERE assignee_id IS NOT NULL;

CREATE INDEX approvals_channel ON approvals (organization_id, channel_id) WHERE channel_id IS NOT NULL;

CREATE INDEX approvals_conversation ON approvals (organization_id, conversation_id, status);

CREATE INDEX approvals_expiry ON approvals (expires_at) WHERE status = 'PENDING';

CREATE INDEX approvals_model_credential ON approvals (organization_id, model_credential_id) WHERE model_credential_id IS NOT NULL;

CREATE INDEX approvals_newest ON approvals (organization_id, created_at DESC, id);

CREATE INDEX approvals_pending ON approvals (organization_id, created_at DESC, id) WHERE status = 'PENDING';

CREATE INDEX approvals_reminder ON approvals (remind_at) WHERE status = 'PENDING' AND remind_at IS NOT NULL;

CREATE UNIQUE INDEX approvals_request ON approvals (organization_id, agent_id, generation, request_key) WHERE request_key IS NOT NULL;

CREATE INDEX approvals_server ON approvals (organization_id, server_id) WHERE server_id IS NOT NULL;

CREATE INDEX approvals_turn ON approvals (organization_id, turn_id) WHERE turn_id IS NOT NULL;

CREATE INDEX approvals_urgent ON approvals (
    organization_id, (CASE status WHEN 'PENDING' THEN 1 ELSE 0 END),
    (COALESCE(risk, CASE severity WHEN 'CRITICAL' THEN 90 WHEN 'HIGH' THEN 70 WHEN 'MEDIUM' THEN 40 ELSE 10 END)),
    (-COALESCE(expires_at, 9223372036854775807)), id
);

CREATE INDEX approvals_waiting ON approvals (organization_id, agent_id) WHERE status = 'PENDING';

CREATE TABLE attachment_blobs (
    organization_id BIGINT NOT NULL,
    attachment_id BIGINT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (organization_id, attachment_id),
    CONSTRAINT attachment_blobs_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT attachment_blobs_attachment_fk FOREIGN KEY (organization_id, attachment_id) REFERENCES attachments (organization_id, id) ON DELETE CASCADE
);

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

CREATE INDEX attachments_agent ON attachments (organization_id, uploaded_by_agent_id) WHERE uploaded_by_agent_id IS NOT NULL;

CREATE INDEX attachments_message ON attachments (organization_id, message_id);

CREATE TRIGGER attachments_removed AFTER DELETE ON attachments BEGIN
    UPDATE stored_bytes SET bytes = bytes - old.size_bytes WHERE organization_id = old.organization_id;
END;

CREATE TRIGGER attachments_stored AFTER INSERT ON attachments BEGIN
    INSERT INTO stored_bytes (organization_id, bytes) VALUES (new.organization_id, new.size_bytes)
    ON CONFLICT (organization_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;

CREATE INDEX attachments_unposted ON attachments (created_at) WHERE message_id IS NULL;

CREATE TABLE audit_chains (
    chain BIGINT PRIMARY KEY, -- The organization; 0 for the instance itself.
    last_seq BIGINT NOT NULL,
    last_hash BLOB NOT NULL,
    checkpoint_seq BIGINT NOT NULL DEFAULT 0,
    checkpoint_at BIGINT NOT NULL
);

CREATE TABLE audit_checkpoints (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    chain BIGINT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('CHECKPOINT', 'TOMBSTONE')),
    seq BIGINT NOT NULL,
    hash BLOB NOT NULL,
    at BIGINT NOT NULL,
    key_id TEXT NOT NULL,
    signature BLOB NOT NULL
);

CREATE INDEX audit_checkpoints_at ON audit_checkpoints (at);

CREATE UNIQUE INDEX audit_checkpoints_seq ON audit_checkpoints (chain, seq, kind);

CREATE VIEW audit_lines AS
SELECT id, organization_id, at, last_at, count, actor_kind, actor_id, actor_name, credential_kind, credential_id,
       credential_hint, operation, permission, decided_by, outcome, code, target_kind, target_id, changes, request_id, ip,
       chain_seq
FROM audit_log
UNION ALL
SELECT id, organization_id, at, last_at, count, actor_kind, actor_id, actor_name, credential_kind, credential_id,
       credential_hint, operation, permission, decided_by, outcome, code, target_kind, target_id, changes, request_id, ip,
       NULL
FROM audit_unsealed;

CREATE TABLE audit_log (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT, -- Null: concerns the whole instance.
    at BIGINT NOT NULL,
    last_at BIGINT, -- When the last event of a burst happened; null for a single event.
    count BIGINT NOT NULL DEFAULT 1, -- A burst of the same refusal is one line.
    actor_kind TEXT NOT NULL CHECK (actor_kind IN ('USER', 'SERVICE_TOKEN', 'SYSTEM', 'ANONYMOUS')),
    actor_id BIGINT,
    actor_name TEXT,
    credential_kind TEXT CHECK (credential_kind IN ('SESSION', 'SERVICE_TOKEN', 'CHANNEL_LINK')),
    credential_id BIGINT,
    credential_hint TEXT,
    operation TEXT NOT NULL,
    permission TEXT,
    decided_by TEXT, -- The policy line that decided: file, line and text.
    outcome TEXT NOT NULL CHECK (outcome IN ('ALLOWED', 'REFUSED', 'FAILED')),
    code TEXT, -- The problem's code, if it was refused.
    target_kind TEXT,
    target_id BIGINT,
    changes TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(changes)),
    request_id TEXT,
    ip TEXT,
    chain_seq BIGINT NOT NULL, -- The place in the chain.
    prev_hash BLOB NOT NULL, -- The hash of the previous line.
    hash BLOB NOT NULL,
    UNIQUE (organization_id, id),
    CONSTRAINT audit_log_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id)
);

CREATE INDEX audit_log_actor ON audit_log (organization_id, actor_kind, actor_id, at DESC);

CREATE UNIQUE INDEX audit_log_chain ON audit_log (COALESCE(organization_id, 0), chain_seq);

CREATE INDEX audit_log_newest ON audit_log (organization_id, at DESC, id);

CREATE INDEX audit_log_target ON audit_log (organization_id, target_kind, target_id, at DESC);

CREATE TABLE audit_unsealed (
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- The id that the line will have in the log.
    organization_id BIGINT,
    at BIGINT NOT NULL,
    last_at BIGINT,
    count BIGINT NOT NULL,
    actor_kind TEXT NOT NULL,
    actor_id BIGINT,
    actor_name TEXT,
    credential_kind TEXT,
    credential_id BIGINT,
    credential_hint TEXT,
    operation TEXT NOT NULL,
    permission TEXT,
    decided_by TEXT,
    outcome TEXT NOT NULL,
    code TEXT,
    target_kind TEXT,
    target_id BIGINT,
    changes TEXT NOT NULL,
    request_id TEXT,
    ip TEXT
);

CREATE TABLE avatars (
    version BIGINT NOT NULL, -- Random: anyone who knows a picture's URL may see it.
    organization_id BIGINT, -- Null: a person's picture.
    agent_id BIGINT, -- Null: the organization's own picture, or a person's.
    user_id BIGINT,
    mime_type TEXT NOT NULL,
    content BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (version),
    CHECK ((organization_id IS NULL) <> (user_id IS NULL)),
    CHECK (agent_id IS NULL OR organization_id IS NOT NULL),
    CONSTRAINT avatars_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT avatars_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id),
    CONSTRAINT avatars_user_fk FOREIGN KEY (user_id) REFERENCES users (id)
);

CREATE INDEX avatars_owner ON avatars (organization_id, agent_id);

CREATE TRIGGER avatars_removed AFTER DELETE ON avatars WHEN old.organization_id IS NOT NULL BEGIN
    UPDATE stored_bytes SET bytes = bytes - length(old.content) WHERE organization_id = old.organization_id;
END;

CREATE TRIGGER avatars_stored AFTER INSERT ON avatars WHEN new.organization_id IS NOT NULL BEGIN
    INSERT INTO stored_bytes (organization_id, bytes) VALUES (new.organization_id, length(new.content))
    ON CONFLICT (organization_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;

CREATE INDEX avatars_user ON avatars (user_id);

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

CREATE INDEX channel_link_codes_expires ON channel_link_codes (expires_at);

CREATE INDEX channel_link_codes_user ON channel_link_codes (organization_id, user_id);

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

CREATE TABLE channel_whitelist (
    organization_id BIGINT NOT NULL,
    channel_id BIGINT NOT NULL,
    origin_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, channel_id, origin_id),
    CONSTRAINT channel_whitelist_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT channel_whitelist_channel_fk FOREIGN KEY (organization_id, channel_id) REFERENCES channels (organization_id, id) ON DELETE CASCADE
);

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

CREATE INDEX channels_agent ON channels (organization_id, agent_id, id);

CREATE UNIQUE INDEX channels_bot ON channels (bot_hash);

CREATE UNIQUE INDEX channels_inbound_slug ON channels (inbound_slug);

CREATE INDEX channels_installation ON channels (code_host_installation_id) WHERE code_host_installation_id IS NOT NULL;

CREATE INDEX channels_name ON channels (organization_id, name_folded, id);

CREATE INDEX channels_notify_conversation ON channels (organization_id, notify_conversation_id) WHERE notify_conversation_id IS NOT NULL;

CREATE TABLE commands (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    server_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    generation BIGINT NOT NULL, -- The launch that the command belongs to.
    kind TEXT NOT NULL CHECK (kind IN ('LAUNCH', 'STOP', 'PAUSE', 'RESUME', 'TURN', 'CANCEL', 'ANSWER', 'VERDICT', 'SYNC', 'TEST_MCP', 'BACKUP', 'RESTORE', 'FORGET')),
    payload TEXT NOT NULL CHECK (json_valid(payload)), -- Ids, never secrets.
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL, -- From then on it is useless.
    host_seq BIGINT, -- Its number among those of its server, from when it is first sent.
    acknowledged_at BIGINT,
    CONSTRAINT commands_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT commands_server_fk FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id),
    CONSTRAINT commands_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id)
);

CREATE INDEX commands_acknowledged ON commands (acknowledged_at) WHERE acknowledged_at IS NOT NULL;

CREATE INDEX commands_agent ON commands (organization_id, agent_id) WHERE acknowledged_at IS NULL;

CREATE INDEX commands_expires ON commands (expires_at) WHERE acknowledged_at IS NULL;

CREATE UNIQUE INDEX commands_host_seq ON commands (server_id, host_seq) WHERE acknowledged_at IS NULL;

CREATE INDEX commands_server ON commands (organization_id, server_id, acknowledged_at, id);

CREATE INDEX commands_waiting ON commands (kind, created_at) WHERE acknowledged_at IS NULL;

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

CREATE INDEX conversations_activity ON conversations (organization_id, last_activity_at, id);

CREATE INDEX conversations_agent ON conversations (organization_id, agent_id, last_activity_at, id);

CREATE INDEX conversations_channel ON conversations (organization_id, channel_id, last_activity_at, id);

CREATE INDEX conversations_contact ON conversations (organization_id, contact_id, last_activity_at, id);

CREATE INDEX conversations_created ON conversations (organization_id, created_at, id);

CREATE INDEX conversations_created_by ON conversations (organization_id, created_by, last_activity_at, id) WHERE created_by IS NOT NULL;

CREATE INDEX conversations_holder ON conversations (organization_id, taken_over_by) WHERE taken_over_by IS NOT NULL;

CREATE INDEX conversations_model ON conversations (organization_id, model DESC, id);

CREATE INDEX conversations_open ON conversations (organization_id, agent_id) WHERE status IN ('OPEN', 'PENDING');

CREATE UNIQUE INDEX conversations_ref ON conversations (organization_id, ref);

CREATE INDEX conversations_status ON conversations (organization_id, status, last_activity_at, id);

CREATE INDEX conversations_stored ON conversations (organization_id, stored_bytes);

CREATE INDEX conversations_taken_over ON conversations (last_word_at) WHERE taken_over_by IS NOT NULL;

CREATE INDEX conversations_thread ON conversations (organization_id, channel_id, thread_key, id) WHERE thread_key IS NOT NULL;

CREATE INDEX conversations_transport ON conversations (organization_id, transport, last_activity_at, id);

CREATE TABLE credential_agents (
    organization_id BIGINT NOT NULL,
    credential_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    assigned_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, credential_id, agent_id),
    CONSTRAINT credential_agents_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT credential_agents_credential_fk FOREIGN KEY (organization_id, credential_id) REFERENCES credentials (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT credential_agents_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id) ON DELETE CASCADE
);

CREATE INDEX credential_agents_agent ON credential_agents (organization_id, agent_id);

CREATE TABLE credential_fields (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    credential_id BIGINT NOT NULL,
    label TEXT NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('text', 'secret', 'multiline', 'url', 'number', 'boolean', 'json')),
    position BIGINT NOT NULL DEFAULT 0,
    value_sealed BLOB,
    UNIQUE (organization_id, id),
    CONSTRAINT credential_fields_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT credential_fields_credential_fk FOREIGN KEY (organization_id, credential_id) REFERENCES credentials (organization_id, id) ON DELETE CASCADE
);

CREATE UNIQUE INDEX credential_fields_label ON credential_fields (organization_id, credential_id, label);

CREATE TABLE credential_members (
    organization_id BIGINT NOT NULL,
    credential_id BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    granted_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, credential_id, user_id),
    CONSTRAINT credential_members_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT credential_members_credential_fk FOREIGN KEY (organization_id, credential_id) REFERENCES credentials (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT credential_members_user_fk FOREIGN KEY (organization_id, user_id) REFERENCES members (organization_id, user_id) ON DELETE CASCADE
);

CREATE INDEX credential_members_user ON credential_members (organization_id, user_id);

CREATE TABLE credentials (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    name_folded TEXT NOT NULL,
    description TEXT,
    kind TEXT NOT NULL CHECK (kind IN ('api-key', 'bearer-token', 'basic-auth', 'oauth2', 'ssh-key', 'certificate', 'connection-string', 'custom')),
    destinations TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(destinations)),
    agent_may_read_at BIGINT, -- When a person said that agents may read it. Null: they may not.
    agent_may_read_by BIGINT,
    agent_may_read_by_name TEXT,
    last_used_at BIGINT,
    created_by BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    archived_at BIGINT,
    UNIQUE (organization_id, id),
    CONSTRAINT credentials_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT credentials_agent_may_read_by_fk FOREIGN KEY (agent_may_read_by) REFERENCES users (id),
    CONSTRAINT credentials_created_by_fk FOREIGN KEY (created_by) REFERENCES users (id)
);

CREATE UNIQUE INDEX credentials_name ON credentials (organization_id, name) WHERE archived_at IS NULL;

CREATE TABLE decisions (
    organization_id BIGINT NOT NULL,
    day BIGINT NOT NULL, -- Days since 1970.
    subject TEXT NOT NULL, -- A role, or service_token.
    token_id BIGINT NOT NULL DEFAULT 0, -- The service token; 0: a person.
    operation TEXT NOT NULL, -- The root field of the schema.
    permission TEXT NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('ALLOWED', 'REFUSED', 'NOT_ISSUED')), -- NOT_ISSUED: the token was not issued with it.
    count BIGINT NOT NULL,
    PRIMARY KEY (organization_id, day, subject, token_id, operation, outcome),
    CONSTRAINT decisions_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id)
);

CREATE INDEX decisions_day ON decisions (day);

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

CREATE INDEX deliveries_conversation ON deliveries (organization_id, conversation_id, id);

CREATE INDEX deliveries_due ON deliveries (organization_id, channel_id, available_at) WHERE status IN ('PENDING', 'SENDING');

CREATE INDEX deliveries_order ON deliveries (organization_id, conversation_id, message_id, part) WHERE status IN ('PENDING', 'SENDING');

CREATE INDEX deliveries_vendor ON deliveries (organization_id, channel_id, vendor_id) WHERE vendor_id IS NOT NULL;

CREATE TABLE edits (
    organization_id BIGINT NOT NULL,
    kind TEXT NOT NULL, -- As in target_kind of the log.
    record_id BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    actor_id BIGINT, -- Null: the operator.
    actor_name TEXT,
    at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, kind, record_id),
    CONSTRAINT edits_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id)
);

CREATE TABLE email_tokens (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id BIGINT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('CONFIRM', 'RESET')),
    -- Where the link was sent. Using the link confirms that address, and makes it the account's.
    email TEXT,
    token_hash BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT,
    CONSTRAINT email_tokens_user_fk FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE UNIQUE INDEX email_tokens_hash ON email_tokens (token_hash);

CREATE INDEX email_tokens_user ON email_tokens (user_id, kind);

CREATE TABLE erasures (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    subject TEXT NOT NULL CHECK (subject IN ('ORGANIZATION', 'MEMBER', 'CONTACT')),
    user_id BIGINT, -- The member, who may have left.
    contact_id BIGINT,
    state TEXT NOT NULL CHECK (state IN ('SCHEDULED', 'ENDING', 'DELETING')),
    state_at BIGINT NOT NULL, -- Since when.
    requested_by BIGINT, -- Null: the operator.
    requested_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL, -- Until then it can be cancelled.
    UNIQUE (organization_id, id),
    CHECK ((subject = 'MEMBER') = (user_id IS NOT NULL) AND (subject = 'CONTACT') = (contact_id IS NOT NULL)),
    CONSTRAINT erasures_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT erasures_user_fk FOREIGN KEY (user_id) REFERENCES users (id),
    CONSTRAINT erasures_contact_fk FOREIGN KEY (organization_id, contact_id) REFERENCES contacts (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT erasures_requested_by_fk FOREIGN KEY (requested_by) REFERENCES users (id)
);

CREATE UNIQUE INDEX erasures_contact ON erasures (organization_id, contact_id) WHERE subject = 'CONTACT';

CREATE INDEX erasures_due ON erasures (due_at);

CREATE UNIQUE INDEX erasures_organization ON erasures (organization_id) WHERE subject = 'ORGANIZATION';

CREATE UNIQUE INDEX erasures_user ON erasures (organization_id, user_id) WHERE subject = 'MEMBER';

CREATE TABLE event_deliveries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    endpoint_id BIGINT NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('agent.failed', 'approval.raised', 'approval.decided', 'conversation.message_added', 'turn.ended', 'channel.deactivated', 'spending.reached')),
    subject TEXT NOT NULL, -- The record that it is about, such as agent:7.
    data TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(data)), -- Ids and a link, never content.
    status TEXT NOT NULL CHECK (status IN ('PENDING', 'WAITING', 'SENT', 'FAILED')),
    attempts BIGINT NOT NULL DEFAULT 0,
    available_at BIGINT NOT NULL,
    error TEXT, -- Why the last attempt failed.
    created_at BIGINT NOT NULL,
    sent_at BIGINT,
    UNIQUE (organization_id, id),
    CONSTRAINT event_deliveries_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT event_deliveries_endpoint_fk FOREIGN KEY (organization_id, endpoint_id) REFERENCES event_endpoints (organization_id, id) ON DELETE CASCADE
);

CREATE INDEX event_deliveries_created ON event_deliveries (created_at);

CREATE INDEX event_deliveries_due ON event_deliveries (available_at) WHERE status = 'PENDING';

CREATE INDEX event_deliveries_newest ON event_deliveries (organization_id, endpoint_id, id DESC);

CREATE INDEX event_deliveries_order ON event_deliveries (organization_id, endpoint_id, subject, id) WHERE status = 'PENDING';

CREATE INDEX event_deliveries_since ON event_deliveries (organization_id, endpoint_id, created_at);

CREATE TABLE event_endpoints (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    types TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(types)), -- The types of events that it gets.
    secret_sealed BLOB NOT NULL, -- Signs what is sent.
    previous_secret_sealed BLOB, -- Signs as well until previous_until.
    previous_until BIGINT,
    is_active BOOLEAN NOT NULL DEFAULT TRUE CHECK (is_active IN (0, 1)),
    inactive_reason TEXT CHECK (inactive_reason IN ('MANUAL', 'GONE', 'DELIVERY_FAILING')),
    inactive_detail TEXT, -- The outcome of the last attempt.
    failing_since BIGINT, -- Since when nothing has been accepted. Null: the last attempt was.
    created_by BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (organization_id, id),
    CONSTRAINT event_endpoints_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT event_endpoints_created_by_fk FOREIGN KEY (created_by) REFERENCES users (id)
);

CREATE TABLE first_start (
    id BIGINT NOT NULL CHECK (id = 1),
    code_hash BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE idempotency_keys (
    organization_id BIGINT NOT NULL, -- 0: a GraphQL request, which may involve several.
    caller TEXT NOT NULL, -- `user:7` or `token:9`.
    idempotency_key TEXT NOT NULL,
    holder TEXT NOT NULL, -- The request that holds the row: random.
    request_hash BLOB NOT NULL,
    changed BOOLEAN NOT NULL DEFAULT FALSE CHECK (changed IN (0, 1)),
    status BIGINT, -- Null until there is a response.
    answer_sealed BLOB, -- Sealed, because not everyone may read it.
    answer_bytes BIGINT, -- Its size, so that a caller's responses can be added up.
    records TEXT, -- The records that the request has created, such as `MESSAGE:7 TURN:9`.
    claimed_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, caller, idempotency_key)
);

CREATE INDEX idempotency_keys_answers ON idempotency_keys (caller, answer_bytes) WHERE answer_bytes IS NOT NULL;

CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

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

CREATE INDEX identities_channel ON identities (organization_id, channel_id) WHERE channel_id IS NOT NULL;

CREATE INDEX identities_contact ON identities (organization_id, contact_id);

CREATE UNIQUE INDEX identities_origin ON identities (organization_id, transport, origin_id) WHERE transport <> 'WEBHOOK';

CREATE UNIQUE INDEX identities_webhook_origin ON identities (organization_id, channel_id, origin_id) WHERE transport = 'WEBHOOK';

CREATE TABLE images (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    name_folded TEXT NOT NULL,
    reference TEXT NOT NULL, -- Its name in a registry: registry.example/agent:1.2
    description TEXT,
    digest TEXT,
    default_model TEXT, -- The model of agents with this image that don't override it.
    profile TEXT, -- How its program is wired; null: as the owner of the host lists it.
    created_by BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    archived_at BIGINT,
    UNIQUE (organization_id, id),
    CONSTRAINT images_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT images_created_by_fk FOREIGN KEY (created_by) REFERENCES users (id)
);

CREATE UNIQUE INDEX images_name ON images (organization_id, name) WHERE archived_at IS NULL;

CREATE TABLE invitations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    email TEXT NOT NULL,
    email_folded TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('OWNER', 'ADMIN', 'OPERATOR', 'VIEWER')),
    token_hash BLOB NOT NULL,
    invited_by BIGINT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    accepted_at BIGINT,
    accepted_by BIGINT,
    revoked_at BIGINT,
    sent_at BIGINT, -- When the mail with the link was last sent.
    UNIQUE (organization_id, id),
    CONSTRAINT invitations_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT invitations_invited_by_fk FOREIGN KEY (invited_by) REFERENCES users (id),
    CONSTRAINT invitations_accepted_by_fk FOREIGN KEY (accepted_by) REFERENCES users (id)
);

CREATE UNIQUE INDEX invitations_open ON invitations (organization_id, email_folded) WHERE accepted_at IS NULL AND revoked_at IS NULL;

CREATE UNIQUE INDEX invitations_token ON invitations (token_hash);

CREATE TABLE leases (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    question BIGINT NOT NULL, -- What identifies the host's question. Asked again, it gets the same lease.
    month_at BIGINT NOT NULL, -- The month from whose budgets it is: when it begins.
    cost_micro BIGINT, -- Null: unlimited.
    tokens BIGINT, -- Null: unlimited.
    used_micro BIGINT NOT NULL DEFAULT 0,
    used_tokens BIGINT NOT NULL DEFAULT 0,
    until_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    closed_at BIGINT, -- It was returned, or is over: what was left has gone back.
    UNIQUE (organization_id, id),
    CONSTRAINT leases_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT leases_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id)
);

CREATE INDEX leases_closed ON leases (closed_at) WHERE closed_at IS NOT NULL;

CREATE INDEX leases_due ON leases (until_at) WHERE closed_at IS NULL;

CREATE INDEX leases_open ON leases (organization_id, agent_id) WHERE closed_at IS NULL;

CREATE TABLE mails (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    payload TEXT NOT NULL CHECK (json_valid(payload)), -- Ids, never secrets.
    order_key TEXT,
    attempts BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    available_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL -- From then on it is useless.
);

CREATE INDEX mails_due ON mails (available_at);

CREATE INDEX mails_expires ON mails (expires_at);

CREATE INDEX mails_order ON mails (order_key, id) WHERE order_key IS NOT NULL;

CREATE TABLE mcp_server_agents (
    organization_id BIGINT NOT NULL,
    mcp_server_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    assigned_at BIGINT NOT NULL,
    -- The last report of the agent's host, and its launch.
    state TEXT CHECK (state IN ('IDLE', 'STARTING', 'RUNNING', 'FAILED')),
    launch_generation BIGINT,
    reported_at BIGINT,
    error TEXT,
    stderr TEXT,
    tools TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(tools)),
    -- The last test of the connection, and its result.
    test_asked_at BIGINT,
    tested_at BIGINT,
    test_error TEXT,
    protocol TEXT,
    program TEXT,
    PRIMARY KEY (organization_id, mcp_server_id, agent_id),
    CONSTRAINT mcp_server_agents_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT mcp_server_agents_mcp_server_fk FOREIGN KEY (organization_id, mcp_server_id) REFERENCES mcp_servers (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT mcp_server_agents_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id) ON DELETE CASCADE
);

CREATE INDEX mcp_server_agents_agent ON mcp_server_agents (organization_id, agent_id);

CREATE TABLE mcp_server_tools (
    organization_id BIGINT NOT NULL,
    mcp_server_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    -- The accepted definition. Null with a digest: it is too long to be kept. Null without one: none was accepted yet.
    definition TEXT CHECK (definition IS NULL OR json_valid(definition)),
    digest TEXT,
    -- A later definition that has not been accepted.
    new_definition TEXT CHECK (new_definition IS NULL OR json_valid(new_definition)),
    new_digest TEXT,
    enabled BOOLEAN NOT NULL DEFAULT TRUE CHECK (enabled IN (0, 1)),
    risk BIGINT CHECK (risk BETWEEN 0 AND 100),
    known_since BIGINT NOT NULL,
    PRIMARY KEY (organization_id, mcp_server_id, name),
    CONSTRAINT mcp_server_tools_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT mcp_server_tools_mcp_server_fk FOREIGN KEY (organization_id, mcp_server_id) REFERENCES mcp_servers (organization_id, id) ON DELETE CASCADE
);

CREATE TABLE mcp_servers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    name_folded TEXT NOT NULL,
    description TEXT,
    transport TEXT NOT NULL CHECK (transport IN ('STDIO', 'HTTP', 'SSE')),
    command TEXT,
    args TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(args)),
    url TEXT,
    auth TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(auth)), -- The names of the secrets it needs.
    workspace TEXT NOT NULL DEFAULT 'NONE' CHECK (workspace IN ('NONE', 'READ')),
    created_by BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    archived_at BIGINT,
    UNIQUE (organization_id, id),
    CONSTRAINT mcp_servers_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT mcp_servers_created_by_fk FOREIGN KEY (created_by) REFERENCES users (id)
);

CREATE UNIQUE INDEX mcp_servers_name ON mcp_servers (organization_id, name) WHERE archived_at IS NULL;

CREATE TABLE members (
    organization_id BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('OWNER', 'ADMIN', 'OPERATOR', 'VIEWER')),
    created_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, user_id),
    CONSTRAINT members_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT members_user_fk FOREIGN KEY (user_id) REFERENCES users (id)
);

CREATE INDEX members_user ON members (user_id);

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

CREATE TRIGGER message_sources_removed AFTER DELETE ON message_sources BEGIN
    UPDATE stored_bytes SET bytes = bytes - old.size_bytes WHERE organization_id = old.organization_id;
END;

CREATE TRIGGER message_sources_stored AFTER INSERT ON message_sources BEGIN
    INSERT INTO stored_bytes (organization_id, bytes) VALUES (new.organization_id, new.size_bytes)
    ON CONFLICT (organization_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;

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

CREATE INDEX messages_album ON messages (organization_id, via_channel_id, album, id) WHERE album IS NOT NULL;

CREATE INDEX messages_channel ON messages (organization_id, via_channel_id, id) WHERE via_channel_id IS NOT NULL;

CREATE UNIQUE INDEX messages_dedupe_key ON messages (organization_id, via_channel_id, dedupe_key) WHERE dedupe_key IS NOT NULL;

CREATE INDEX messages_delivery ON messages (organization_id, id) WHERE delivery_status IN ('PENDING', 'SENDING');

CREATE UNIQUE INDEX messages_host_key ON messages (organization_id, conversation_id, host_key) WHERE host_key IS NOT NULL;

CREATE INDEX messages_identity ON messages (organization_id, via_identity_id, created_at) WHERE via_identity_id IS NOT NULL;

CREATE INDEX messages_turn ON messages (organization_id, turn_id) WHERE turn_id IS NOT NULL;

CREATE INDEX messages_undelivered ON messages (organization_id, created_at) WHERE delivery_status = 'FAILED';

CREATE TRIGGER messages_unindex AFTER DELETE ON messages BEGIN
    DELETE FROM messages_fts WHERE rowid = old.id;
END;

CREATE INDEX messages_vendor ON messages (organization_id, via_channel_id, vendor_id, id) WHERE vendor_id IS NOT NULL;

CREATE VIRTUAL TABLE messages_fts USING fts5 (
    tokens, content='', contentless_delete=1, detail=none,
    tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Co Cf Cn Cs'"
);

CREATE TABLE model_calls (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    turn_id BIGINT,
    model_credential_id BIGINT, -- Null: the agent's own, or none.
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    status BIGINT, -- The HTTP status. Null: the model could not be reached, or the agent hung up.
    started_at BIGINT NOT NULL,
    millis BIGINT NOT NULL,
    input_tokens BIGINT,
    output_tokens BIGINT,
    cache_read_tokens BIGINT,
    cache_write_tokens BIGINT,
    cost_micro BIGINT, -- Null: the model has no price, or the usage is unknown.
    UNIQUE (organization_id, id),
    CONSTRAINT model_calls_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT model_calls_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id),
    CONSTRAINT model_calls_turn_fk FOREIGN KEY (organization_id, turn_id) REFERENCES turns (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT model_calls_model_credential_fk FOREIGN KEY (organization_id, model_credential_id) REFERENCES model_credentials (organization_id, id)
);

CREATE INDEX model_calls_agent ON model_calls (organization_id, agent_id, started_at);

CREATE INDEX model_calls_started ON model_calls (started_at);

CREATE INDEX model_calls_turn ON model_calls (organization_id, turn_id);

CREATE TABLE model_credentials (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    provider TEXT NOT NULL, -- In lower case.
    base_url TEXT, -- Null: the provider's own.
    type TEXT NOT NULL DEFAULT 'API_KEY' CHECK (type IN ('OAUTH', 'API_KEY')),
    secret_sealed BLOB, -- Null once it is archived.
    is_default BOOLEAN NOT NULL DEFAULT FALSE CHECK (is_default IN (0, 1)),
    limited_until BIGINT, -- The provider refuses calls until then. Null: it doesn't.
    limit_detail TEXT,
    probing_at BIGINT, -- When a turn was sent alone to see whether calls pass again.
    auth_failed_at BIGINT,
    created_by BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    archived_at BIGINT,
    UNIQUE (organization_id, id),
    CONSTRAINT model_credentials_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT model_credentials_created_by_fk FOREIGN KEY (created_by) REFERENCES users (id)
);

CREATE UNIQUE INDEX model_credentials_default ON model_credentials (organization_id, provider) WHERE is_default AND archived_at IS NULL;

CREATE INDEX model_credentials_limited ON model_credentials (limited_until) WHERE limited_until IS NOT NULL;

CREATE UNIQUE INDEX model_credentials_name ON model_credentials (organization_id, name) WHERE archived_at IS NULL;

CREATE TABLE model_days (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    day TEXT NOT NULL, -- 2026-06-01
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    calls BIGINT NOT NULL DEFAULT 0,
    unpriced_calls BIGINT NOT NULL DEFAULT 0, -- Calls whose cost is unknown.
    input_tokens BIGINT NOT NULL DEFAULT 0,
    output_tokens BIGINT NOT NULL DEFAULT 0,
    cache_read_tokens BIGINT NOT NULL DEFAULT 0,
    cache_write_tokens BIGINT NOT NULL DEFAULT 0,
    cost_micro BIGINT NOT NULL DEFAULT 0,
    UNIQUE (organization_id, id),
    CONSTRAINT model_days_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT model_days_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id)
);

CREATE UNIQUE INDEX model_days_day ON model_days (organization_id, agent_id, day, provider, model);

CREATE INDEX model_days_newest ON model_days (organization_id, day DESC, id);

CREATE TABLE notification_settings (
    organization_id BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    approval_raised TEXT CHECK (approval_raised IN ('OFF', 'AT_ONCE', 'DIGEST')),
    approval_expiring TEXT CHECK (approval_expiring IN ('OFF', 'AT_ONCE', 'DIGEST')),
    agent_failed TEXT CHECK (agent_failed IN ('OFF', 'AT_ONCE', 'DIGEST')),
    PRIMARY KEY (organization_id, user_id),
    CONSTRAINT notification_settings_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT notification_settings_user_fk FOREIGN KEY (organization_id, user_id) REFERENCES members (organization_id, user_id) ON DELETE CASCADE
);

CREATE TABLE notifications (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    what TEXT NOT NULL CHECK (what IN ('APPROVAL_RAISED', 'APPROVAL_ASSIGNED', 'APPROVAL_EXPIRING', 'AGENT_FAILED')),
    approval_id BIGINT,
    agent_id BIGINT, -- Of AGENT_FAILED.
    due_at BIGINT NOT NULL,
    raised BIGINT NOT NULL DEFAULT 1, -- How often it has happened: what happens again while it is collected is not lost.
    UNIQUE (organization_id, id),
    CHECK ((approval_id IS NULL) = (what = 'AGENT_FAILED') AND (agent_id IS NULL) <> (approval_id IS NULL)),
    CONSTRAINT notifications_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT notifications_user_fk FOREIGN KEY (user_id) REFERENCES users (id),
    CONSTRAINT notifications_approval_fk FOREIGN KEY (organization_id, approval_id) REFERENCES approvals (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT notifications_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id)
);

CREATE UNIQUE INDEX notifications_agent ON notifications (organization_id, agent_id, user_id) WHERE agent_id IS NOT NULL;

CREATE UNIQUE INDEX notifications_approval ON notifications (organization_id, approval_id, user_id, what) WHERE approval_id IS NOT NULL;

CREATE INDEX notifications_due ON notifications (due_at, user_id);

CREATE INDEX notifications_user ON notifications (user_id, due_at);

CREATE TABLE notified (
    user_id BIGINT NOT NULL,
    told_at BIGINT NOT NULL,
    PRIMARY KEY (user_id),
    CONSTRAINT notified_user_fk FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE TABLE organization_months (
    organization_id BIGINT NOT NULL,
    from_at BIGINT NOT NULL, -- When the month begins.
    until_at BIGINT NOT NULL, -- When the next one begins.
    cost_micro BIGINT NOT NULL DEFAULT 0,
    tokens BIGINT NOT NULL DEFAULT 0,
    leased_micro BIGINT NOT NULL DEFAULT 0, -- What open leases may still spend.
    allowed_micro BIGINT NOT NULL DEFAULT 0, -- What people have allowed on top of the budget.
    PRIMARY KEY (organization_id, from_at),
    CONSTRAINT organization_months_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id)
);

CREATE TABLE organizations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    plan TEXT NOT NULL DEFAULT 'FREE' CHECK (plan IN ('FREE', 'STARTER', 'PRO', 'BUSINESS', 'ENTERPRISE')),
    avatar_version BIGINT, -- Set while there is an avatar; part of its URL.
    provider_oauth_client_id TEXT,
    provider_oauth_secret_sealed BLOB,
    voice_key_sealed BLOB,
    transcription_key_sealed BLOB,
    timezone TEXT NOT NULL DEFAULT 'UTC',
    default_image_id BIGINT, -- The image of agents created without one.
    trial_ends_at BIGINT,
    grace_until BIGINT,
    grace_from_plan TEXT CHECK (grace_from_plan IN ('FREE', 'STARTER', 'PRO', 'BUSINESS', 'ENTERPRISE')),
    support_access_until BIGINT,
    support_access_granted_at BIGINT,
    support_access_granted_by BIGINT,
    customer_type TEXT NOT NULL DEFAULT 'BUSINESS' CHECK (customer_type IN ('BUSINESS', 'INDIVIDUAL')),
    tax_name TEXT,
    tax_id TEXT,
    tax_country TEXT,
    tax_address TEXT,
    tax_postal_code TEXT,
    tax_city TEXT,
    vat_validated BOOLEAN NOT NULL DEFAULT FALSE CHECK (vat_validated IN (0, 1)),
    vat_validated_at BIGINT,
    backup_retention BIGINT,
    backup_cron TEXT,
    cost_guard_tokens_per_hour BIGINT,
    cost_guard_action TEXT NOT NULL DEFAULT 'NOTIFY' CHECK (cost_guard_action IN ('NOTIFY', 'PAUSE', 'STOP')),
    currency TEXT NOT NULL DEFAULT 'USD', -- Of all its money: three capital letters.
    monthly_budget_micro BIGINT, -- Null: none.
    budget_action TEXT NOT NULL DEFAULT 'PAUSE' CHECK (budget_action IN ('NOTIFY', 'PAUSE', 'STOP')),
    trace_content BOOLEAN NOT NULL DEFAULT FALSE CHECK (trace_content IN (0, 1)), -- Whether traces contain prompts and answers.
    session_reset_tokens BIGINT,
    transcript_retention_days BIGINT,
    contracted_agents BIGINT, -- Overrides the plan's max_agents.
    max_channels_per_agent BIGINT, -- Overrides the plan's channels_per_agent.
    doctor_runs_per_month BIGINT, -- Overrides the plan's.
    cron_llm_runs_per_month BIGINT, -- Overrides the plan's.
    file_versions BIGINT, -- Overrides the plan's.
    max_servers_override BIGINT, -- Overrides the plan's max_servers.
    min_cron_interval_minutes_override BIGINT, -- Overrides the plan's min_cron_interval_minutes.
    min_mail_poll_minutes_override BIGINT, -- Overrides the plan's min_mail_poll_minutes.
    version_retention TEXT NOT NULL DEFAULT 'SPREAD' CHECK (version_retention IN ('SPREAD', 'LATEST', 'ALL')),
    server_alert_ram_pct BIGINT,
    server_alert_cpu_pct BIGINT,
    server_alert_load_factor REAL,
    require_second_factor BOOLEAN NOT NULL DEFAULT FALSE CHECK (require_second_factor IN (0, 1)), -- Members without one are refused.
    mail_request_text BOOLEAN NOT NULL DEFAULT FALSE CHECK (mail_request_text IN (0, 1)), -- Whether mail about approvals contains what is asked.
    chat_risk_limit BIGINT NOT NULL DEFAULT 70 CHECK (chat_risk_limit BETWEEN 0 AND 101), -- Only actions of less risk may be decided in chats.
    stopped_at BIGINT, -- Since then nothing new starts, until someone lets go.
    stopped_by BIGINT, -- The member who stopped it; null: a service token or the operator.
    stopped_by_name TEXT,
    stop_reason TEXT,
    letting_go_at BIGINT, -- After a stop, while queued turns are sent a few at a time: when the last ones were.
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    CONSTRAINT organizations_plan_fk FOREIGN KEY (plan) REFERENCES plans (plan),
    CONSTRAINT organizations_stopped_by_fk FOREIGN KEY (stopped_by) REFERENCES users (id),
    CONSTRAINT organizations_support_access_granted_by_fk FOREIGN KEY (support_access_granted_by) REFERENCES users (id),
    CONSTRAINT organizations_default_image_fk FOREIGN KEY (id, default_image_id) REFERENCES images (organization_id, id) DEFERRABLE INITIALLY DEFERRED
);

CREATE INDEX organizations_letting_go ON organizations (letting_go_at) WHERE letting_go_at IS NOT NULL;

CREATE TABLE plans (
    plan TEXT NOT NULL CHECK (plan IN ('FREE', 'STARTER', 'PRO', 'BUSINESS', 'ENTERPRISE')),
    max_agents BIGINT NOT NULL,
    max_servers BIGINT NOT NULL,
    channels_per_agent BIGINT NOT NULL,
    min_cron_interval_minutes BIGINT NOT NULL,
    min_mail_poll_minutes BIGINT NOT NULL,
    doctor_runs_per_month BIGINT NOT NULL,
    cron_llm_runs_per_month BIGINT NOT NULL,
    file_versions BIGINT NOT NULL,
    max_stored_mib BIGINT NOT NULL DEFAULT 500,
    max_members BIGINT NOT NULL DEFAULT 25,
    max_open_invitations BIGINT NOT NULL DEFAULT 50,
    max_service_tokens BIGINT NOT NULL DEFAULT 25,
    max_images BIGINT NOT NULL DEFAULT 50,
    max_credentials BIGINT NOT NULL DEFAULT 100,
    max_mcp_servers BIGINT NOT NULL DEFAULT 100,
    max_skills BIGINT NOT NULL DEFAULT 100,
    PRIMARY KEY (plan)
);

CREATE TABLE policy_versions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    text TEXT, -- Null: no rules of its own.
    version TEXT NOT NULL, -- Identifies the text that an edit is based on.
    author_kind TEXT NOT NULL CHECK (author_kind IN ('USER', 'OPERATOR')),
    author_id BIGINT,
    author_name TEXT,
    reason TEXT NOT NULL,
    reverts_to BIGINT, -- The earlier version whose text this is again.
    at BIGINT NOT NULL,
    UNIQUE (organization_id, id),
    CONSTRAINT policy_versions_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id)
);

CREATE TABLE recovery_codes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id BIGINT NOT NULL,
    code_hash BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT,
    CONSTRAINT recovery_codes_user_fk FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE UNIQUE INDEX recovery_codes_code ON recovery_codes (user_id, code_hash);

CREATE TABLE refused_destinations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    host TEXT NOT NULL,
    port BIGINT NOT NULL,
    reason TEXT NOT NULL,
    count BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    UNIQUE (organization_id, id),
    CONSTRAINT refused_destinations_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT refused_destinations_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id)
);

CREATE UNIQUE INDEX refused_destinations_host ON refused_destinations (organization_id, agent_id, host, port);

CREATE TABLE replicas (
    id TEXT NOT NULL, -- Random, chosen at start.
    address TEXT NOT NULL, -- The machine, and the address it listens on.
    started_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    policy_folder TEXT NOT NULL, -- Identifies the content of its policy folder.
    PRIMARY KEY (id)
);

CREATE TABLE risk_categories (
    folded TEXT NOT NULL PRIMARY KEY
);

CREATE TABLE server_loads (
    organization_id BIGINT NOT NULL,
    server_id BIGINT NOT NULL,
    period_at BIGINT NOT NULL, -- When the five minutes begin.
    cpu_avg REAL, -- In per cent, like the next three. Null: not measured.
    cpu_max REAL,
    ram_avg REAL,
    ram_max REAL,
    load_avg REAL, -- Of the load over 1 minute.
    load_max REAL,
    PRIMARY KEY (organization_id, server_id, period_at),
    CONSTRAINT server_loads_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT server_loads_server_fk FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id)
);

CREATE INDEX server_loads_period ON server_loads (period_at);

CREATE TABLE servers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    name_folded TEXT NOT NULL,
    description TEXT,
    hostname TEXT,
    address TEXT,
    region TEXT,
    labels TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(labels)), -- An object of strings.
    status TEXT NOT NULL DEFAULT 'PENDING' CHECK (status IN ('PENDING', 'ONLINE', 'DEGRADED', 'OFFLINE')),
    version TEXT,
    protocol_version BIGINT,
    os TEXT,
    arch TEXT,
    cpu_cores BIGINT,
    memory_mb BIGINT,
    disk_mb BIGINT,
    cpu_pct REAL,
    ram_pct REAL,
    load_1 REAL,
    load_5 REAL,
    load_15 REAL,
    uptime_seconds BIGINT,
    runtime TEXT CHECK (runtime IN ('DOCKER', 'PODMAN', 'PROCESS')),
    runtime_version TEXT,
    provisioning_token_hash BLOB,
    provisioning_token_expires_at BIGINT,
    host_token_hash BLOB, -- The host's credential after its first connection.
    -- Who made the provisioning token, and whether that confirms the host that joins with it.
    provisioned_by_kind TEXT CHECK (provisioned_by_kind IN ('USER', 'SERVICE_TOKEN', 'SYSTEM', 'ANONYMOUS')),
    provisioned_by_id BIGINT,
    provisioned_by_name TEXT,
    provisioning_confirms BOOLEAN NOT NULL DEFAULT FALSE,
    joins BIGINT NOT NULL DEFAULT 0, -- Counts the hosts that have joined. A confirmation names the one that it is about.
    joined_from TEXT, -- The address from which the host joined.
    host_confirmed_at BIGINT, -- Null: the host gets no plan that holds a secret.
    machine_id TEXT, -- The host's folder, which made this up when it joined.
    -- Counts the host's accepted connections. Whatever a connection writes names its epoch, so an older one writes nothing.
    host_epoch BIGINT NOT NULL DEFAULT 0,
    host_replica TEXT, -- The replica that holds the connection.
    command_seq BIGINT NOT NULL DEFAULT 0, -- The last number given to a command.
    command_ack BIGINT NOT NULL DEFAULT 0, -- The last command in the host's journal.
    event_seq BIGINT NOT NULL DEFAULT 0, -- The last event of the host that is stored.
    -- Why its host was refused, if someone has to mend it. Null from its next connection on.
    refused_code TEXT CHECK (refused_code IN ('VERSION', 'JOURNAL_LOST', 'RESTORED', 'SUPERSEDED')),
    refused_reason TEXT,
    refused_at BIGINT,
    provisioned_at BIGINT,
    last_seen_at BIGINT,
    created_by BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    archived_at BIGINT, -- Deleted: hidden. The row stays for the deleted agents and approvals that refer to it.
    UNIQUE (organization_id, id),
    CONSTRAINT servers_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT servers_created_by_fk FOREIGN KEY (created_by) REFERENCES users (id)
);

CREATE UNIQUE INDEX servers_host_token ON servers (host_token_hash);

CREATE UNIQUE INDEX servers_name ON servers (organization_id, name);

CREATE UNIQUE INDEX servers_provisioning_token ON servers (provisioning_token_hash);

CREATE TABLE service_tokens (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    name_folded TEXT NOT NULL,
    token_hash BLOB NOT NULL,
    hint TEXT NOT NULL, -- The last four characters.
    permissions TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(permissions)),
    created_by BIGINT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    last_used_at BIGINT,
    revoked_at BIGINT,
    rotated_at BIGINT,
    previous_token_hash BLOB,
    previous_hint TEXT,
    previous_expires_at BIGINT,
    previous_last_used_at BIGINT,
    UNIQUE (organization_id, id),
    CONSTRAINT service_tokens_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT service_tokens_created_by_fk FOREIGN KEY (created_by) REFERENCES users (id)
);

CREATE UNIQUE INDEX service_tokens_hash ON service_tokens (token_hash);

CREATE UNIQUE INDEX service_tokens_previous_hash ON service_tokens (previous_token_hash) WHERE previous_token_hash IS NOT NULL;

CREATE TABLE sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id BIGINT NOT NULL,
    family TEXT NOT NULL, -- The sign-in that started this session.
    generation BIGINT NOT NULL DEFAULT 0,
    kind TEXT NOT NULL CHECK (kind IN ('BROWSER', 'TOKENS')),
    token_hash BLOB NOT NULL, -- Of the cookie, or of the refresh token.
    user_agent TEXT,
    ip TEXT,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT,
    CONSTRAINT sessions_user_fk FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE INDEX sessions_expiry ON sessions (expires_at);

CREATE INDEX sessions_family ON sessions (family);

CREATE UNIQUE INDEX sessions_token ON sessions (token_hash);

CREATE INDEX sessions_user ON sessions (user_id, created_at);

CREATE TABLE sign_in_challenges (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id BIGINT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('SECOND_FACTOR', 'CODE')),
    token_hash BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT,
    CONSTRAINT sign_in_challenges_user_fk FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE INDEX sign_in_challenges_expiry ON sign_in_challenges (expires_at);

CREATE UNIQUE INDEX sign_in_challenges_token ON sign_in_challenges (token_hash);

CREATE INDEX sign_in_challenges_user ON sign_in_challenges (user_id);

CREATE TABLE sign_in_throttle (
    key_hash BLOB NOT NULL,
    failures BIGINT NOT NULL,
    blocked_until BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (key_hash)
);

CREATE INDEX sign_in_throttle_age ON sign_in_throttle (updated_at);

CREATE TABLE signing_keys (
    kid TEXT NOT NULL,
    algorithm TEXT NOT NULL,
    public_key TEXT NOT NULL,
    private_key_sealed BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    activate_at BIGINT, -- When the next key becomes the active one.
    activated_at BIGINT,
    retired_at BIGINT,
    verify_until BIGINT, -- When a retired key stops verifying.
    PRIMARY KEY (kid)
);

CREATE UNIQUE INDEX signing_keys_one_active ON signing_keys (algorithm) WHERE activated_at IS NOT NULL AND retired_at IS NULL;

CREATE UNIQUE INDEX signing_keys_one_next ON signing_keys (algorithm) WHERE activated_at IS NULL AND retired_at IS NULL;

CREATE TABLE skill_agents (
    organization_id BIGINT NOT NULL,
    skill_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    assigned_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, skill_id, agent_id),
    CONSTRAINT skill_agents_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT skill_agents_skill_fk FOREIGN KEY (organization_id, skill_id) REFERENCES skills (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT skill_agents_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id) ON DELETE CASCADE
);

CREATE INDEX skill_agents_agent ON skill_agents (organization_id, agent_id);

CREATE TABLE skill_versions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    skill_id BIGINT NOT NULL,
    number BIGINT NOT NULL, -- 1, 2, 3, ...
    content TEXT NOT NULL, -- Canonical JSON, byte by byte: keys in order, no spaces.
    content_hash TEXT NOT NULL, -- SHA-256 of content, in hexadecimal.
    bytes BIGINT NOT NULL, -- The length of content.
    changes TEXT NOT NULL CHECK (json_valid(changes)), -- Against the one before: field -> [before, after].
    reverts_to BIGINT, -- The earlier number whose content this is again.
    author_kind TEXT NOT NULL CHECK (author_kind IN ('USER', 'SERVICE_TOKEN', 'SYSTEM', 'ANONYMOUS')),
    author_id BIGINT,
    author_name TEXT NOT NULL,
    operation TEXT, -- The root field of the schema.
    reason TEXT,
    created_at BIGINT NOT NULL,
    UNIQUE (organization_id, id),
    CONSTRAINT skill_versions_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT skill_versions_skill_fk FOREIGN KEY (organization_id, skill_id) REFERENCES skills (organization_id, id)
);

CREATE UNIQUE INDEX skill_versions_number ON skill_versions (organization_id, skill_id, number);

CREATE TABLE skills (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    name_folded TEXT NOT NULL,
    description TEXT,
    content TEXT NOT NULL DEFAULT '',
    content_hash TEXT NOT NULL, -- SHA-256 of content, in hexadecimal.
    version BIGINT NOT NULL DEFAULT 0, -- The newest of skill_versions.
    model TEXT,
    effort TEXT CHECK (effort IN ('LOW', 'MEDIUM', 'HIGH', 'MAX')),
    created_by BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    archived_at BIGINT,
    UNIQUE (organization_id, id),
    CONSTRAINT skills_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT skills_created_by_fk FOREIGN KEY (created_by) REFERENCES users (id)
);

CREATE UNIQUE INDEX skills_name ON skills (organization_id, name) WHERE archived_at IS NULL;

CREATE TRIGGER skills_removed AFTER DELETE ON skills BEGIN
    UPDATE stored_bytes SET bytes = bytes - length(CAST(old.content AS BLOB))
    WHERE organization_id = old.organization_id;
END;

CREATE TRIGGER skills_rewritten AFTER UPDATE OF content ON skills BEGIN
    UPDATE stored_bytes SET bytes = bytes + length(CAST(new.content AS BLOB)) - length(CAST(old.content AS BLOB))
    WHERE organization_id = new.organization_id;
END;

CREATE TRIGGER skills_stored AFTER INSERT ON skills BEGIN
    INSERT INTO stored_bytes (organization_id, bytes)
    VALUES (new.organization_id, length(CAST(new.content AS BLOB)))
    ON CONFLICT (organization_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;

CREATE TABLE step_versions (
    step BIGINT NOT NULL,
    muster TEXT NOT NULL, -- Such as 0.1.0.
    PRIMARY KEY (step)
);

CREATE TABLE stored_bytes (
    organization_id BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    message_bytes BIGINT NOT NULL DEFAULT 0, -- What messages take, as it was summed last: each minute.
    PRIMARY KEY (organization_id),
    CONSTRAINT stored_bytes_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id)
);

CREATE TABLE token_allowances (
    organization_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    until_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, agent_id),
    CONSTRAINT token_allowances_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT token_allowances_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id)
);

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

CREATE INDEX turns_agent ON turns (organization_id, agent_id, id);

CREATE INDEX turns_caused_by_token ON turns (organization_id, caused_by_token_id) WHERE caused_by_token_id IS NOT NULL;

CREATE INDEX turns_conversation ON turns (organization_id, conversation_id, id);

CREATE UNIQUE INDEX turns_open ON turns (organization_id, conversation_id) WHERE state IN ('RUNNING', 'WAITING_APPROVAL', 'WAITING_LIMIT');

CREATE UNIQUE INDEX turns_queued ON turns (organization_id, conversation_id) WHERE state = 'QUEUED';

CREATE INDEX turns_started ON turns (organization_id, started_at);

CREATE INDEX turns_state ON turns (organization_id, state, id);

CREATE INDEX turns_unfinished ON turns (organization_id, agent_id) WHERE ended_at IS NULL;

CREATE TABLE user_identities (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id BIGINT NOT NULL,
    provider TEXT NOT NULL, -- The provider's name in the configuration.
    subject TEXT NOT NULL, -- The account's id there.
    email TEXT NOT NULL, -- Its address when it was last used.
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    CONSTRAINT user_identities_user_fk FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);

CREATE UNIQUE INDEX user_identities_subject ON user_identities (provider, subject);

CREATE INDEX user_identities_user ON user_identities (user_id);

CREATE TABLE users (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    email TEXT NOT NULL, -- As entered.
    email_folded TEXT NOT NULL, -- In lower case. Unique.
    name TEXT NOT NULL,
    name_folded TEXT NOT NULL,
    password_hash TEXT, -- Argon2id in PHC form; null until a password is set.
    email_confirmed_at BIGINT,
    avatar_version BIGINT,
    disabled_at BIGINT,
    totp_secret_sealed BLOB, -- The second factor.
    totp_confirmed_at BIGINT, -- Null: not active yet.
    totp_last_step BIGINT, -- The last accepted time step, so that a code works only once.
    preferences TEXT CHECK (preferences IS NULL OR json_valid(preferences)), -- What the person has set for the panel: an object.
    time_zone TEXT, -- Of the preferences, if it names one.
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE UNIQUE INDEX users_email ON users (email_folded);
