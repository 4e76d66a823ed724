-- Lines of the audit log wait in a table of their own until they are sealed, a moment later: so a change pays for one row and
-- no index, and the log itself is only ever added to. Conventions: ../README.md

-- No key, checks and references here: they are the log's, which the lines go to many at a time.
CREATE TABLE audit_waiting (
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- The one that the line has in the log.
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
-- Lines that wait are numbered on from where the log was, whatever retention has removed of it.
INSERT INTO sqlite_sequence (name, seq)
SELECT 'audit_waiting', COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'audit_log'), 0);

-- Every line, whether or not it is sealed.
CREATE VIEW audit_lines AS
SELECT id, organization_id, at, last_at, count, actor_kind, actor_id, actor_name, credential_kind, credential_id,
       credential_hint, operation, permission, decided_by, outcome, code, target_kind, target_id, changes, request_id, ip,
       chain_seq
FROM audit_log
UNION ALL
SELECT id, organization_id, at, last_at, count, actor_kind, actor_id, actor_name, credential_kind, credential_id,
       credential_hint, operation, permission, decided_by, outcome, code, target_kind, target_id, changes, request_id, ip,
       CAST(NULL AS BIGINT)
FROM audit_waiting;
