-- Retention looks for old checkpoints of all chains.
CREATE INDEX audit_checkpoints_at ON audit_checkpoints (at);
