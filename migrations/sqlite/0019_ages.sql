-- Retention looks for old checkpoints of all chains.
CREATE INDEX audit_checkpoints_at ON audit_checkpoints (at);
-- Commands that a host has acknowledged go by and by.
CREATE INDEX outbox_acknowledged ON outbox (acknowledged_at) WHERE acknowledged_at IS NOT NULL;
