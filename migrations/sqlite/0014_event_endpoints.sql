-- Events of an organization, posted to addresses of its own. Conventions: ../README.md

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

-- An event for an endpoint. Those of one subject are sent in the order of their ids. One replica claims an event and postpones it
-- while sending it. Kept for a while, to be looked at and sent again.
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
CREATE INDEX event_deliveries_due ON event_deliveries (available_at) WHERE status = 'PENDING';
CREATE INDEX event_deliveries_order ON event_deliveries (organization_id, endpoint_id, subject, id) WHERE status = 'PENDING';
CREATE INDEX event_deliveries_newest ON event_deliveries (organization_id, endpoint_id, id DESC);
CREATE INDEX event_deliveries_since ON event_deliveries (organization_id, endpoint_id, created_at);
CREATE INDEX event_deliveries_created ON event_deliveries (created_at); -- For retention.
