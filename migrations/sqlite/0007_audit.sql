-- The audit log: its lines, the hash chain of each organization, and signed checkpoints. Conventions: ../README.md

-- Who did what, or was refused what, in chains: each line's hash covers the previous line. Rows are only ever added. They
-- store names as they were, and no foreign keys to records that may be deleted.
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
CREATE INDEX audit_log_newest ON audit_log (organization_id, at DESC, id);
CREATE INDEX audit_log_target ON audit_log (organization_id, target_kind, target_id, at DESC);
CREATE INDEX audit_log_actor ON audit_log (organization_id, actor_kind, actor_id, at DESC);
-- The chain of the instance itself has the organization 0.
CREATE UNIQUE INDEX audit_log_chain ON audit_log (COALESCE(organization_id, 0), chain_seq);

-- Lines waiting for their place in a chain, which they get a moment after the change. The table lacks the log's checks and
-- other indexes, so that a change pays little.
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

-- Every line, sealed or not.
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

-- How often callers have edited each record, and who did last. A name as it was, and no foreign keys, as in the log. Agents
-- count in their own revisions.
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

-- The end of each chain, and the reach of its checkpoints.
CREATE TABLE audit_chains (
    chain BIGINT PRIMARY KEY, -- The organization; 0 for the instance itself.
    last_seq BIGINT NOT NULL,
    last_hash BLOB NOT NULL,
    checkpoint_seq BIGINT NOT NULL DEFAULT 0,
    checkpoint_at BIGINT NOT NULL
);

-- Signed statements about a chain: its state up to a line (CHECKPOINT), or its removal up to a line (TOMBSTONE).
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
CREATE UNIQUE INDEX audit_checkpoints_seq ON audit_checkpoints (chain, seq, kind);
CREATE INDEX audit_checkpoints_at ON audit_checkpoints (at); -- For retention, which looks for old ones in all chains.
