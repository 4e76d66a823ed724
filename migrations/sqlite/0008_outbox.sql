-- What must still leave the process. Conventions: ../README.md

-- Written in the transaction that causes it. Rows with the same order_key are sent in the order of their ids.
-- One replica claims a MAIL and postpones it while sending it. The row is deleted when the mail is sent or given up. It contains
-- no link and no token: a link is created when the mail is sent.
-- All other kinds are commands for a server's host, sent again until the host acknowledges them or they expire.
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('LAUNCH', 'STOP', 'PAUSE', 'RESUME', 'TURN', 'CANCEL', 'ANSWER', 'VERDICT', 'SYNC', 'BACKUP', 'RESTORE', 'FORGET', 'MAIL')),
    payload TEXT NOT NULL CHECK (json_valid(payload)), -- Ids, never secrets: src/core/outbox/kinds.rs.
    organization_id BIGINT,
    server_id BIGINT,
    agent_id BIGINT,
    generation BIGINT, -- The launch that the command belongs to.
    order_key TEXT,
    attempts BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    available_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL, -- From then on it is useless.
    host_seq BIGINT, -- The number of a command among those of its server, from when it is first sent.
    acknowledged_at BIGINT,
    CONSTRAINT outbox_host CHECK (kind = 'MAIL' OR (organization_id IS NOT NULL AND server_id IS NOT NULL)),
    CONSTRAINT outbox_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT outbox_server_fk FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id),
    CONSTRAINT outbox_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id)
);
CREATE INDEX outbox_due ON outbox (kind, available_at, created_at) WHERE acknowledged_at IS NULL;
CREATE INDEX outbox_order ON outbox (order_key, id) WHERE acknowledged_at IS NULL;
CREATE INDEX outbox_server ON outbox (organization_id, server_id, acknowledged_at, id) WHERE server_id IS NOT NULL;
CREATE UNIQUE INDEX outbox_host_seq ON outbox (server_id, host_seq) WHERE acknowledged_at IS NULL;
CREATE INDEX outbox_expires ON outbox (expires_at) WHERE acknowledged_at IS NULL; -- For retention.
CREATE INDEX outbox_acknowledged ON outbox (acknowledged_at) WHERE acknowledged_at IS NOT NULL; -- For retention.
