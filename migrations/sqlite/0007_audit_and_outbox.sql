-- What was done, and what has still to leave the process. Conventions: ../README.md

-- Who did what, or was refused it. Rows are only ever added; they hold names as they were, and no foreign
-- keys to what may be deleted.
CREATE TABLE audit_log (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT, -- Null: concerns the whole instance.
    at BIGINT NOT NULL,
    actor_kind TEXT NOT NULL CHECK (actor_kind IN ('USER', 'SERVICE_TOKEN', 'SYSTEM', 'ANONYMOUS')),
    actor_id BIGINT,
    actor_name TEXT,
    credential_hint TEXT,
    operation TEXT NOT NULL,
    permission TEXT,
    outcome TEXT NOT NULL CHECK (outcome IN ('ALLOWED', 'REFUSED', 'FAILED')),
    target_kind TEXT,
    target_id BIGINT,
    changes TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(changes)),
    request_id TEXT,
    ip TEXT,
    prev_hash BLOB, -- For a chain over the rows; not used yet.
    hash BLOB,
    UNIQUE (organization_id, id),
    CONSTRAINT audit_log_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id)
);
CREATE INDEX audit_log_newest ON audit_log (organization_id, at DESC, id);
CREATE INDEX audit_log_target ON audit_log (organization_id, target_kind, target_id, at DESC);
CREATE INDEX audit_log_actor ON audit_log (organization_id, actor_kind, actor_id, at DESC);

-- Commands for hosts, written in the transaction that decides them, resent until acknowledged, in order of id
-- per agent.
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    server_id BIGINT NOT NULL,
    agent_id BIGINT,
    kind TEXT NOT NULL CHECK (kind IN ('LAUNCH', 'STOP', 'PAUSE', 'RESUME', 'TURN', 'ANSWER', 'SYNC', 'BACKUP')),
    payload TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(payload)), -- Ids, never secrets.
    generation BIGINT, -- The launch that the command belongs to.
    attempts BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    available_at BIGINT NOT NULL,
    delivered_at BIGINT,
    acknowledged_at BIGINT,
    result TEXT CHECK (json_valid(result)),
    UNIQUE (organization_id, id),
    CONSTRAINT outbox_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT outbox_server_fk FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id),
    CONSTRAINT outbox_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id)
);
CREATE INDEX outbox_waiting ON outbox (organization_id, server_id, id) WHERE acknowledged_at IS NULL;
CREATE INDEX outbox_due ON outbox (available_at, id) WHERE acknowledged_at IS NULL;
CREATE INDEX outbox_agent ON outbox (organization_id, agent_id, id);
