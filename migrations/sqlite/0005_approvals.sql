-- Approvals. Conventions: ../README.md

-- Decisions that agents are waiting for. A compare-and-set on status decides.
CREATE TABLE approvals (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('QUESTION', 'ACTION', 'AUTH_REQUIRED', 'COST_GUARD', 'CHANNEL_ERROR', 'ACCESS_REQUEST', 'SERVER_ALERT')),
    status TEXT NOT NULL DEFAULT 'PENDING' CHECK (status IN ('PENDING', 'RESOLVED', 'DISMISSED', 'EXPIRED')),
    outcome TEXT CHECK (outcome IN ('MANUAL', 'ANSWERED', 'APPROVED', 'DENIED', 'DISMISSED', 'EXPIRED', 'WITHDRAWN')),
    title TEXT NOT NULL,
    body TEXT,
    severity TEXT NOT NULL DEFAULT 'MEDIUM' CHECK (severity IN ('LOW', 'MEDIUM', 'HIGH', 'CRITICAL')),
    category TEXT,
    risk BIGINT,
    agent_id BIGINT,
    server_id BIGINT, -- The subject of a SERVER_ALERT.
    channel_id BIGINT, -- The subject of a CHANNEL_ERROR or an ACCESS_REQUEST.
    conversation_id BIGINT,
    message_seq BIGINT,
    turn_id BIGINT, -- The turn it was asked in.
    -- An agent's request: its name, unique in the launch. Null: nothing waits for the decision.
    generation BIGINT,
    request_key TEXT,
    request TEXT CHECK (json_valid(request)), -- {tool, input, digest}
    -- {text, options: [{id, label, description}], multiple, allow_text}
    question TEXT CHECK (json_valid(question)),
    answer TEXT CHECK (json_valid(answer)), -- {options, text}
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
    answer_message_id BIGINT, -- The decision, as a message of the conversation.
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (organization_id, id),
    CHECK (risk IS NULL OR risk BETWEEN 0 AND 100),
    CHECK ((status = 'PENDING') = (outcome IS NULL)),
    CONSTRAINT approvals_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT approvals_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id),
    CONSTRAINT approvals_server_fk FOREIGN KEY (organization_id, server_id) REFERENCES servers (organization_id, id),
    CONSTRAINT approvals_channel_fk FOREIGN KEY (organization_id, channel_id) REFERENCES channels (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT approvals_conversation_fk FOREIGN KEY (organization_id, conversation_id) REFERENCES conversations (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT approvals_turn_fk FOREIGN KEY (organization_id, turn_id) REFERENCES turns (organization_id, id),
    CONSTRAINT approvals_answer_message_fk FOREIGN KEY (organization_id, answer_message_id) REFERENCES messages (organization_id, id),
    CONSTRAINT approvals_decided_by_user_fk FOREIGN KEY (decided_by_user_id) REFERENCES users (id),
    CONSTRAINT approvals_decided_by_token_fk FOREIGN KEY (organization_id, decided_by_token_id) REFERENCES service_tokens (organization_id, id)
);
CREATE INDEX approvals_newest ON approvals (organization_id, created_at DESC, id);
CREATE INDEX approvals_pending ON approvals (organization_id, created_at DESC, id) WHERE status = 'PENDING';
CREATE INDEX approvals_agent ON approvals (organization_id, agent_id, created_at DESC, id);
CREATE INDEX approvals_conversation ON approvals (organization_id, conversation_id, status);
CREATE INDEX approvals_channel ON approvals (organization_id, channel_id) WHERE channel_id IS NOT NULL;
CREATE INDEX approvals_server ON approvals (organization_id, server_id) WHERE server_id IS NOT NULL;
CREATE INDEX approvals_expiry ON approvals (expires_at) WHERE status = 'PENDING';
CREATE UNIQUE INDEX approvals_request ON approvals (organization_id, agent_id, generation, request_key) WHERE request_key IS NOT NULL;
CREATE INDEX approvals_turn ON approvals (organization_id, turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX approvals_answer_message ON approvals (organization_id, answer_message_id) WHERE answer_message_id IS NOT NULL;

-- The categories of the risk rules in force, for agents' records. Written at start. Folded: in lower case, without spaces.
CREATE TABLE risk_categories (
    folded TEXT NOT NULL PRIMARY KEY
);
