-- Approvals. Conventions: ../README.md

-- Decisions that agents are waiting for. A compare-and-set on status decides.
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
CREATE INDEX approvals_newest ON approvals (organization_id, created_at DESC, id);
CREATE INDEX approvals_pending ON approvals (organization_id, created_at DESC, id) WHERE status = 'PENDING';
CREATE INDEX approvals_agent ON approvals (organization_id, agent_id, created_at DESC, id);
-- What needs a decision first: pending before decided, then by risk, then by what expires first. All keys descend.
CREATE INDEX approvals_urgent ON approvals (
    organization_id, (CASE status WHEN 'PENDING' THEN 1 ELSE 0 END),
    (COALESCE(risk, CASE severity WHEN 'CRITICAL' THEN 90 WHEN 'HIGH' THEN 70 WHEN 'MEDIUM' THEN 40 ELSE 10 END)),
    (-COALESCE(expires_at, 9223372036854775807)), id
);
CREATE INDEX approvals_waiting ON approvals (organization_id, agent_id) WHERE status = 'PENDING';
CREATE INDEX approvals_conversation ON approvals (organization_id, conversation_id, status);
CREATE INDEX approvals_channel ON approvals (organization_id, channel_id) WHERE channel_id IS NOT NULL;
CREATE INDEX approvals_server ON approvals (organization_id, server_id) WHERE server_id IS NOT NULL;
CREATE INDEX approvals_expiry ON approvals (expires_at) WHERE status = 'PENDING';
CREATE INDEX approvals_reminder ON approvals (remind_at) WHERE status = 'PENDING' AND remind_at IS NOT NULL;
CREATE INDEX approvals_assignee ON approvals (organization_id, assignee_id) WHERE assignee_id IS NOT NULL;
CREATE UNIQUE INDEX approvals_request ON approvals (organization_id, agent_id, generation, request_key) WHERE request_key IS NOT NULL;
CREATE INDEX approvals_turn ON approvals (organization_id, turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX approvals_answer_message ON approvals (organization_id, answer_message_id) WHERE answer_message_id IS NOT NULL;

-- The categories of the risk rules in force, for agents' records. Written at start. Folded: in lower case, without spaces.
CREATE TABLE risk_categories (
    folded TEXT NOT NULL PRIMARY KEY
);

-- What members are asked in their chats. What is to be sent, or taken away, is claimed by one replica at a time.
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
CREATE INDEX approval_asks_due ON approval_asks (available_at) WHERE state IN ('TO_ASK', 'TO_CLOSE');
CREATE INDEX approval_asks_message ON approval_asks (organization_id, channel_id, vendor_id) WHERE vendor_id IS NOT NULL;
CREATE INDEX approval_asks_user ON approval_asks (organization_id, user_id);
CREATE INDEX approval_asks_closed ON approval_asks (available_at) WHERE state = 'CLOSED'; -- For retention.

-- Who does not want to see an approval for now.
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
CREATE INDEX approval_snoozes_user ON approval_snoozes (organization_id, user_id);
CREATE INDEX approval_snoozes_until ON approval_snoozes (until); -- For retention.

-- What members want to be told, if they have said so. Null: the default of their role.
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

-- What people are still to be told. Written in the transaction that causes it, and deleted when its mail is written.
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
CREATE INDEX notifications_due ON notifications (due_at, user_id);
CREATE INDEX notifications_user ON notifications (user_id, due_at);
CREATE UNIQUE INDEX notifications_approval ON notifications (organization_id, approval_id, user_id, what) WHERE approval_id IS NOT NULL;
CREATE UNIQUE INDEX notifications_agent ON notifications (organization_id, agent_id, user_id) WHERE agent_id IS NOT NULL;

-- When people were last told something, so that they are not told more often than every few minutes.
CREATE TABLE notified (
    user_id BIGINT NOT NULL,
    told_at BIGINT NOT NULL,
    PRIMARY KEY (user_id),
    CONSTRAINT notified_user_fk FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
