-- What still has to leave the process. Conventions: ../README.md

-- Commands for hosts, written in the transaction that decides them. They are sent again until the host has acknowledged them,
-- in the order of their ids for each agent.
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
CREATE INDEX outbox_acknowledged ON outbox (acknowledged_at) WHERE acknowledged_at IS NOT NULL; -- For retention.

-- Mail that still has to leave, written with the change that causes it. It holds no link and no token: a link is made when the
-- mail is sent. A row goes when the mail has left, or is too late.
CREATE TABLE mail_outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('CONFIRM_EMAIL', 'RESET_PASSWORD', 'INVITATION', 'NOTICE')),
    recipient TEXT NOT NULL,
    subject_id BIGINT, -- The row of email_tokens or invitations that the link is for.
    parts TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(parts)), -- What the text names; never a secret.
    attempts BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    available_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX mail_outbox_due ON mail_outbox (available_at);
