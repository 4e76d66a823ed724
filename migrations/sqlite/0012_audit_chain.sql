-- Refusals beside what was done, a hash chain over the lines of each organization, and its signed checkpoints.
-- Conventions: ../README.md

ALTER TABLE audit_log ADD COLUMN credential_kind TEXT CHECK (credential_kind IN ('SESSION', 'SERVICE_TOKEN'));
ALTER TABLE audit_log ADD COLUMN credential_id BIGINT;
ALTER TABLE audit_log ADD COLUMN decided_by TEXT; -- The deciding line of the policy: file, line and its text.
ALTER TABLE audit_log ADD COLUMN code TEXT; -- Of what was refused: the problem's code.
ALTER TABLE audit_log ADD COLUMN count BIGINT NOT NULL DEFAULT 1; -- A burst of the same refusal is one line.
ALTER TABLE audit_log ADD COLUMN last_at BIGINT; -- When the last of a burst was; null where there was one.
ALTER TABLE audit_log ADD COLUMN chain_seq BIGINT; -- The place in the chain; null until the line is sealed.
-- The chain of the instance itself has the organization 0.
CREATE UNIQUE INDEX audit_log_chain ON audit_log (COALESCE(organization_id, 0), chain_seq) WHERE chain_seq IS NOT NULL;
CREATE INDEX audit_log_unsealed ON audit_log (id) WHERE chain_seq IS NULL;

-- The end of each chain, and how far its checkpoints reach.
CREATE TABLE audit_chains (
    chain BIGINT PRIMARY KEY, -- The organization; 0 is the instance itself.
    last_seq BIGINT NOT NULL,
    last_hash BLOB NOT NULL,
    checkpoint_seq BIGINT NOT NULL DEFAULT 0,
    checkpoint_at BIGINT NOT NULL
);

-- Signed statements about a chain: up to here it was so (CHECKPOINT); up to here it was removed (TOMBSTONE).
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
