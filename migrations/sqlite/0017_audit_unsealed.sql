-- Lines of the audit log wait as one value each, as on PostgreSQL, where that is cheaper. Conventions: ../README.md

-- Only a version before this one writes audit_waiting.
CREATE TABLE audit_unsealed (
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- The one that the line has in the log.
    line TEXT NOT NULL -- The columns of audit_log that it has values for.
);
-- Lines that wait are numbered on from where the log and those before them were, whatever retention has removed.
INSERT INTO sqlite_sequence (name, seq)
SELECT 'audit_unsealed', COALESCE((SELECT MAX(seq) FROM sqlite_sequence WHERE name IN ('audit_log', 'audit_waiting')), 0);

-- Every line, whether or not it is sealed. The view with this name that was there had the first two parts.
DROP VIEW audit_lines;
CREATE VIEW audit_lines AS
SELECT id, organization_id, at, last_at, count, actor_kind, actor_id, actor_name, credential_kind, credential_id,
       credential_hint, operation, permission, decided_by, outcome, code, target_kind, target_id, changes, request_id, ip,
       chain_seq
FROM audit_log
UNION ALL
SELECT id, organization_id, at, last_at, count, actor_kind, actor_id, actor_name, credential_kind, credential_id,
       credential_hint, operation, permission, decided_by, outcome, code, target_kind, target_id, changes, request_id, ip,
       CAST(NULL AS BIGINT)
FROM audit_waiting
UNION ALL
SELECT id, line ->> 'organization_id', line ->> 'at', line ->> 'last_at', line ->> 'count', line ->> 'actor_kind',
       line ->> 'actor_id', line ->> 'actor_name', line ->> 'credential_kind', line ->> 'credential_id',
       line ->> 'credential_hint', line ->> 'operation', line ->> 'permission', line ->> 'decided_by', line ->> 'outcome',
       line ->> 'code', line ->> 'target_kind', line ->> 'target_id', line -> 'changes', line ->> 'request_id', line ->> 'ip',
       CAST(NULL AS BIGINT)
FROM audit_unsealed;
