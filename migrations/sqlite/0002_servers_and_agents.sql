-- Where agents run, and the agents. Conventions: ../README.md

-- Hosts on which agents run.
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
CREATE UNIQUE INDEX servers_name ON servers (organization_id, name);
CREATE UNIQUE INDEX servers_provisioning_token ON servers (provisioning_token_hash);
CREATE UNIQUE INDEX servers_host_token ON servers (host_token_hash);

-- The load of servers' machines in five minutes each.
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

-- Container images for agents.
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

-- The agents. Deleting one archives it: its conversations and approvals stay readable.
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
CREATE UNIQUE INDEX agents_name ON agents (organization_id, name) WHERE archived_at IS NULL;
CREATE INDEX agents_active ON agents (organization_id, id) WHERE archived_at IS NULL;
CREATE INDEX agents_server ON agents (organization_id, server_id, status);
CREATE INDEX agents_image ON agents (organization_id, image_id);
CREATE INDEX agents_spawning ON agents (status_changed_at) WHERE status = 'SPAWNING';
CREATE INDEX agents_restarting ON agents (restart_at) WHERE restart_at IS NOT NULL;

-- Revisions of agents: their settings and assignments, never their secrets. Rows are never changed.
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

-- How each launch of an agent went. The newest of each agent are kept.
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

-- Copies of agents' homes. The files are on the hosts of the servers.
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
-- At most one is under way.
CREATE UNIQUE INDEX agent_backups_pending ON agent_backups (organization_id, agent_id) WHERE state = 'PENDING';
CREATE UNIQUE INDEX agent_backups_restoring ON agent_backups (organization_id, agent_id) WHERE restore_state = 'PENDING';
CREATE INDEX agent_backups_waiting ON agent_backups (created_at) WHERE state = 'PENDING';
CREATE INDEX agent_backups_waiting_restore ON agent_backups (restored_at) WHERE restore_state = 'PENDING';
