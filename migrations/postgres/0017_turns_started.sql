-- The usage of days reads their turns.
CREATE INDEX turns_started ON turns (organization_id, started_at);
