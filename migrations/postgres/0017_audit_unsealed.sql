-- Lines of the audit log wait as one value each: PostgreSQL spends more on reading the twenty values of a row from a statement's
-- text than on storing them. Conventions: ../README.md

-- No key, check or index, as for audit_waiting, which only a version before this one writes.
CREATE TABLE audit_unsealed (
    id BIGINT NOT NULL DEFAULT nextval('audit_log_id_seq'), -- The one that the line has in the log.
    line JSON NOT NULL -- The columns of audit_log that it has values for.
);
-- What has waited is deleted all the time.
ALTER TABLE audit_unsealed SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- A call is not planned, and what a procedure does is planned once a connection.
CREATE PROCEDURE write_audit_line(said JSON) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_unsealed (line) VALUES (said);
END
$$;

-- Checked for each line that is sealed; an organization is never deleted.
ALTER TABLE audit_log DROP CONSTRAINT audit_log_organization_fk;

-- Every line, whether or not it is sealed.
CREATE OR REPLACE VIEW audit_lines AS
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
SELECT u.id, l.organization_id, l.at, l.last_at, l.count, l.actor_kind, l.actor_id, l.actor_name, l.credential_kind,
       l.credential_id, l.credential_hint, l.operation, l.permission, l.decided_by, l.outcome, l.code, l.target_kind,
       l.target_id, l.changes, l.request_id, l.ip, CAST(NULL AS BIGINT)
FROM audit_unsealed u CROSS JOIN LATERAL json_populate_record(CAST(NULL AS audit_log), u.line) l;
