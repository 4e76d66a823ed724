-- What must still leave the process, written in the transaction that causes it. Conventions: ../README.md

-- Commands for a server's host, sent again until the host acknowledges them or they expire.
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
CREATE INDEX commands_waiting ON commands (kind, created_at) WHERE acknowledged_at IS NULL;
CREATE INDEX commands_agent ON commands (organization_id, agent_id) WHERE acknowledged_at IS NULL;
CREATE INDEX commands_server ON commands (organization_id, server_id, acknowledged_at, id);
CREATE UNIQUE INDEX commands_host_seq ON commands (server_id, host_seq) WHERE acknowledged_at IS NULL;
CREATE INDEX commands_expires ON commands (expires_at) WHERE acknowledged_at IS NULL; -- For retention.
CREATE INDEX commands_acknowledged ON commands (acknowledged_at) WHERE acknowledged_at IS NOT NULL; -- For retention.

-- Mails without links and tokens: a link is created when its mail is sent. Those with the same order_key are sent in the order of
-- their ids. One replica claims a mail and postpones it while sending it. It is deleted when it is sent or given up.
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
CREATE INDEX mails_order ON mails (order_key, id) WHERE order_key IS NOT NULL;
CREATE INDEX mails_expires ON mails (expires_at); -- For retention.
